"""The server's persistent state: one SQLite file. Nothing is sent to a client before it is committed here.

One thread writes, in explicit transactions; readers open their own connections.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from scrubjay.errors import DatabaseError
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record
from scrubjay.web.migrations import migrate

VERSION = 2
"""Of the schema. Labs have data in it: column names and stored JSON must stay readable, and `migrations` brings older
databases to this version."""
SCHEMA = """
CREATE TABLE studies (name TEXT PRIMARY KEY, definition TEXT NOT NULL);
CREATE TABLE locations (
  id INTEGER PRIMARY KEY, study TEXT NOT NULL, number INTEGER NOT NULL, source TEXT NOT NULL, scene TEXT NOT NULL,
  deal TEXT NOT NULL, seeable INTEGER NOT NULL, UNIQUE (study, number));
CREATE TABLE participants (
  id INTEGER PRIMARY KEY, token TEXT NOT NULL UNIQUE, study TEXT NOT NULL, identity TEXT UNIQUE,
  parameters TEXT NOT NULL, status TEXT NOT NULL, code TEXT, joined REAL NOT NULL, finished REAL, consented REAL,
  declined REAL, browser TEXT NOT NULL DEFAULT '');
CREATE TABLE answers (
  participant INTEGER NOT NULL REFERENCES participants, part TEXT NOT NULL, question TEXT NOT NULL,
  answer TEXT NOT NULL, time REAL NOT NULL, client_time REAL, PRIMARY KEY (participant, part, question)) WITHOUT ROWID;
CREATE TABLE trials (
  id INTEGER PRIMARY KEY, token TEXT NOT NULL UNIQUE, study TEXT, participant INTEGER REFERENCES participants,
  location INTEGER REFERENCES locations, role TEXT NOT NULL, practice INTEGER NOT NULL, scene TEXT NOT NULL,
  goal TEXT NOT NULL, opponent TEXT NOT NULL, seed INTEGER NOT NULL, patience REAL NOT NULL, deal TEXT,
  created REAL NOT NULL, started REAL, ended REAL, found INTEGER, given_up INTEGER, steps INTEGER,
  record TEXT, record_id TEXT);
CREATE INDEX trials_of_participants ON trials (participant);
CREATE INDEX trials_of_locations ON trials (study, location);
CREATE TABLE steps (
  trial INTEGER NOT NULL REFERENCES trials, number INTEGER NOT NULL, action TEXT NOT NULL, success INTEGER NOT NULL,
  script INTEGER NOT NULL, time REAL NOT NULL, client_time REAL, PRIMARY KEY (trial, number)) WITHOUT ROWID;
CREATE TABLE focus (
  id INTEGER PRIMARY KEY, trial INTEGER NOT NULL REFERENCES trials, focused INTEGER NOT NULL, time REAL NOT NULL,
  client_time REAL NOT NULL);
CREATE INDEX focus_of_trials ON focus (trial);
CREATE TABLE records (id TEXT PRIMARY KEY, record TEXT NOT NULL);
"""


def new_token() -> str:
    """A random, unguessable URL-safe token."""
    return secrets.token_urlsafe(24)


class Database:
    """A connection to the file. `writable` locks the file, and creates it if it does not exist."""

    def __init__(self, path: str | os.PathLike[str], writable: bool = False) -> None:
        self.path = path = Path(path)
        self._lock: int | None = None
        if not writable and not path.is_file():
            raise DatabaseError(f"{path}: no such file")
        if writable:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _lock_file(path)
            _keep_private(path)
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        self.db.row_factory = sqlite3.Row
        try:
            self._prepare(path, writable)
        except sqlite3.OperationalError as error:  # A full disk, for one.
            self.close()
            raise DatabaseError(f"{path}: cannot be opened: {error}") from error
        except sqlite3.DatabaseError as error:
            self.close()
            raise DatabaseError(f"{path}: not a Scrubjay database: {error}") from error

    def _prepare(self, path: Path, writable: bool) -> None:
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        tables = {row["name"] for row in self.db.execute("SELECT name FROM sqlite_master")}
        if writable and not tables:
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        elif not version or not tables >= {"studies", "participants", "trials", "steps"}:
            raise DatabaseError(f"{path}: not a Scrubjay database")
        elif version > VERSION:
            raise DatabaseError(f"{path}: written by a newer Scrubjay (version {version} of the database)")
        elif version < VERSION and not writable:
            raise DatabaseError(f"{path}: written by an older Scrubjay: start `scrubjay serve --data {path}` once")
        elif version < VERSION:
            with self.transaction():
                migrate(self.db)
                self.db.execute(f"PRAGMA user_version = {VERSION}")
        # Commits are synced to disk before they are acknowledged, so that even a power failure loses none.
        self.db.execute("PRAGMA synchronous = FULL" if writable else "PRAGMA query_only = ON")

    def close(self) -> None:
        self.db.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits at the end; rolls back on an exception."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def probe(self) -> None:
        """Writes a page that changes nothing; raises if the file cannot be written."""
        with self.transaction():
            self.db.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part of a transaction that is rolled back alone if it fails."""
        self.db.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self.db.in_transaction:  # Not if SQLite has rolled everything back, as on a full disk.
                self.db.execute("ROLLBACK TO part")
                self.db.execute("RELEASE part")
            raise
        self.db.execute("RELEASE part")

    def one(self, query: str, *values: Any) -> sqlite3.Row | None:
        return self.db.execute(query, values).fetchone()

    def all(self, query: str, *values: Any) -> list[sqlite3.Row]:
        return self.db.execute(query, values).fetchall()

    def insert(self, table: str, **values: Any) -> int:
        """Inserts a row and returns its id. Table and column names must be this package's own, never a client's."""
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        return self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(values.values())).lastrowid or 0

    def update(self, table: str, row: int, **values: Any) -> None:
        names = ", ".join(f"{name} = ?" for name in values)
        self.db.execute(f"UPDATE {table} SET {names} WHERE id = ?", [*values.values(), row])

    # Trials.

    def new_trial(self, role: str, scene: str, goal: str, opponent: str, seed: int, now: float, **columns: Any) -> str:
        """Inserts a new trial and returns its token. `patience`: seconds until giving up is allowed."""
        token = new_token()
        values = {"practice": False, "patience": 0.0, **columns}
        self.insert("trials", token=token, role=role, scene=scene, goal=goal, opponent=opponent, seed=seed, created=now,
                    **values)  # fmt: skip
        return token

    def trial(self, token: str) -> sqlite3.Row | None:
        return self.one("SELECT * FROM trials WHERE token = ?", token)

    def delete_unplayed(self, before: float, keep: Collection[int] = ()) -> None:
        """Deletes the trials outside studies that were created earlier and in which no person has acted."""
        rows = self.all(
            "SELECT id FROM trials WHERE study IS NULL AND ended IS NULL AND created < ? "
            "AND NOT EXISTS (SELECT 1 FROM steps WHERE trial = trials.id AND NOT script)", before,
        )  # fmt: skip
        unplayed = [(row["id"],) for row in rows if row["id"] not in keep]
        self.db.executemany("DELETE FROM steps WHERE trial = ?", unplayed)
        self.db.executemany("DELETE FROM trials WHERE id = ?", unplayed)

    def steps(self, trial: int) -> list[sqlite3.Row]:
        return self.all("SELECT action, success, script FROM steps WHERE trial = ? ORDER BY number", trial)

    def add_steps(
        self,
        trial: int,
        first: int,
        steps: Iterable[tuple[str, bool]],
        now: float,
        script: bool = False,
        client_time: float | None = None,
    ) -> None:
        """Appends steps (action, success), numbered from `first`; `script` marks those of a scripted player."""
        rows = [
            (trial, first + k, action, success, script, now, client_time) for k, (action, success) in enumerate(steps)
        ]
        self.db.executemany("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def add_record(self, record: Record, internals: dict[str, Any] | None = None, name: str = "") -> str:
        """Stores a record with its players' internals, if any; returns its name, without which nobody can watch it."""
        name = name or new_token()
        extra = {} if internals is None else {"internals": internals}
        self.insert("records", id=name, record=json.dumps({**record.to_dict(), **extra}))
        return name

    def record(self, name: str) -> tuple[Record, dict[str, Any] | None] | None:
        """A stored record and its internals."""
        row = self.one("SELECT record FROM records WHERE id = ?", name)
        if row is None:
            return None
        data = json.loads(row["record"])
        internals = data.pop("internals", None)
        return Record.from_dict(data), internals


def _lock_file(path: Path) -> int:
    """Locks out a second server, whose sessions in memory would not match this one's."""
    handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise DatabaseError(f"{path}: in use by another server") from error
    return handle


def _keep_private(path: Path) -> None:
    """Creates the file for its owner alone, since it holds tokens; SQLite gives its -wal and -shm the same mode.

    Files of earlier versions are closed to others; a group that was given access keeps it.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        if file.exists() and (mode := file.stat().st_mode) & 0o007:
            with suppress(PermissionError):  # Another user's.
                file.chmod(mode & 0o770 if mode & 0o020 else 0o600)


def spec_to_json(spec: EpisodeSpec, size: int | None = None) -> str:
    """An episode spec as the `deal` columns store it, with the image size of a free game."""
    return json.dumps(spec.to_dict() | ({} if size is None else {"size": size}))


def spec_from_json(text: str) -> EpisodeSpec:
    return EpisodeSpec.from_dict({name: value for name, value in json.loads(text).items() if name != "size"})


def size_from_json(text: str) -> int | None:
    """The image size stored with a spec; None if there is none: the size is that of studies."""
    return json.loads(text).get("size")
