"""Puts the engine where the unmodified `ai2thor` package looks for Unity's player, and takes it away again.

The client looks for `~/.ai2thor/releases/thor-PLATFORM-COMMIT/thor-PLATFORM-COMMIT`, an executable, before it downloads
anything. Ours is a script of three lines beside a marker, by which `remove` knows it. A folder that is not ours is
moved aside only if asked, to a place that the client does not clean up, and comes back by renaming.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shlex
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import scrubjay
from scrubjay.errors import ThorError, reason
from scrubjay.files import write_atomically

COMMIT = "f0825767cd50d69f666c7f282e54abfe58f1e917"
"""The build that ai2thor 5.0.0 asks for."""
PLATFORMS = ("Linux64", "CloudRendering")
LOCAL = "thor-Linux64-local"
MARKER, METADATA = "scrubjay.json", "metadata.json"
ASIDE = "scrubjay-replaced"
"""Beside the folder of builds; inside it the client would delete what is old."""
RECORD = "scrubjay-installed.json"
START = (
    "import sys; root = sys.argv.pop(1); root in sys.path or sys.path.insert(0, root); "
    "from scrubjay.thor.serve import main; sys.exit(main())"
)


def launcher(start: str = START, arguments: tuple[str, ...] = ()) -> str:
    """A script that starts the engine with this interpreter and this package, whatever the environment holds."""
    # -E: the client's PYTHONPATH is for the client's Python. -P: nor is the working directory ours.
    command = [sys.executable, "-E", "-P", "-c", start, str(Path(scrubjay.__file__).parents[1]), *arguments]
    comment = "# Scrubjay's engine for AI2-THOR's client: see `scrubjay thor --help`."
    return f'#!/bin/sh\n{comment}\nexec {shlex.join(command)} "$@"\n'


def launcher_path(home: Path) -> Path:
    """Writes the launcher, if it is not there, and returns its path, for `Controller(local_executable_path=...)`."""
    check_packages()
    script = launcher()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    path = data / "scrubjay" / f"scrubjay-thor-{hashlib.sha256(script.encode()).hexdigest()[:8]}"
    check_path(path)
    if not (path.is_file() and path.read_text() == script and os.access(path, os.X_OK)):
        write_atomically(path, script)
        path.chmod(0o755)
    return path


def find_client(site_packages: Path | None = None) -> Path | None:
    """The folder of the `ai2thor` package: in the given folder, or in this environment, if it is there."""
    if site_packages is not None:
        package = site_packages / "ai2thor"
        if not (package / "_builds.py").is_file():
            raise ThorError(f"{site_packages} holds no ai2thor package")
        return package
    spec = importlib.util.find_spec("ai2thor")  # Finds the package without running any of its code.
    return Path(spec.origin).parent if spec and spec.origin else None


def client_commit(package: Path | None) -> str:
    """The build that a client asks for; that of 5.0.0 if there is no client."""
    if package is None:
        return COMMIT
    try:
        named = re.search(r"^COMMIT_ID = ['\"](\w+)['\"]", (package / "_builds.py").read_text(), re.M)
    except OSError as error:
        raise ThorError(f"{package / '_builds.py'}: {reason(error)}") from error
    if named is None:
        raise ThorError(f"{package / '_builds.py'} names no build; give it with --commit")
    return named[1]


def install(home: Path, commit: str, local_build: Path | None = None, replace: bool = False) -> list[Path]:
    """Writes the release folders for a build, and a local build beside the given package; returns the executables.

    Checks everything first: a folder that is not ours stops it, unless `replace`, which moves it aside.
    """
    check_packages()
    if not re.fullmatch(r"[0-9a-f]{7,40}", commit):
        raise ThorError(f"commit: 7 to 40 hexadecimal digits, not {commit!r}")
    folders = [home / ".ai2thor" / "releases" / f"thor-{platform}-{commit}" for platform in PLATFORMS]
    if local_build is not None:
        folders.append(local_build.parent / "unity" / "builds" / LOCAL)
    for folder in folders:
        _check(folder, replace)
    _note(home, {*_noted(home), *folders})
    for folder in folders:
        _put(folder)
    return [folder / folder.name for folder in folders]


def remove(home: Path) -> list[tuple[Path, str]]:
    """Removes all that `install` wrote, and moves back what it had moved aside; returns folders and what was done."""
    releases = home / ".ai2thor" / "releases"
    listed = {folder for folder in releases.glob("thor-*") if is_ours(folder)}
    listed |= {releases / moved.name for moved in (releases.parent / ASIDE).glob("thor-*")}
    folders = sorted(listed | _noted(home))
    for folder in folders:
        if is_ours(folder):
            _check_untouched(folder)
            _check_unused(folder)
    done = [(folder, _take_away(folder)) for folder in folders]
    (home / ".ai2thor" / RECORD).unlink(missing_ok=True)
    for folder in folders:
        for parent in (aside(folder).parent, folder.parent, folder.parent.parent):
            _drop_if_empty(parent)
    return [(folder, what) for folder, what in done if what]


def is_ours(folder: Path) -> bool:
    """Is it a folder that `install` wrote?"""
    return not folder.is_symlink() and (folder / MARKER).is_file()


def aside(folder: Path) -> Path:
    """Where a folder that was not ours is kept."""
    return folder.parent.parent / ASIDE / folder.name


def others(home: Path) -> int:
    """How many release folders that are not ours the client has."""
    return sum(not is_ours(folder) for folder in (home / ".ai2thor" / "releases").glob("*/"))


def check_packages() -> None:
    """Raises ThorError if what the protocol needs is not installed: the engine could not even tell the client."""
    if importlib.util.find_spec("msgpack") is None:
        raise ThorError("AI2-THOR's protocol needs msgpack: pip install 'scrubjay[thor]'")


def check_path(path: Path) -> None:
    """Raises ThorError for a path that the client would split into words."""
    if shlex.split(str(path)) != [str(path)]:
        raise ThorError(f"AI2-THOR's client cannot start a program whose path has spaces or quotes: {path}")


def _check(folder: Path, replace: bool) -> None:
    check_path(folder)
    if not os.path.lexists(folder):
        return
    if not is_ours(folder):
        if not replace:
            raise ThorError(f"{folder} is not Scrubjay's; --replace moves it aside until `scrubjay thor remove`")
        if os.path.lexists(aside(folder)):
            raise ThorError(f"{aside(folder)} is in the way of moving {folder} aside; move one of them")
    else:
        _check_untouched(folder)
    _check_unused(folder)


def _check_untouched(folder: Path) -> None:
    """Raises ThorError if one of our folders holds something that is not ours."""
    if extra := sorted({path.name for path in folder.iterdir()} - {folder.name, METADATA, MARKER}):
        raise ThorError(f"{folder} holds {extra[0]}, which Scrubjay did not write; move it away first")


def _check_unused(folder: Path) -> None:
    """Raises ThorError if a client runs from the folder: it holds a lock on a file beside it."""
    try:
        with open(f"{folder}.lock", "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        pass
    except BlockingIOError as error:
        raise ThorError(f"a client is running with {folder}; stop it first") from error


def _put(folder: Path) -> None:
    """Writes our folder beside its place and renames it; what is in its place is moved aside, or deleted if ours."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent.parent, prefix=".scrubjay-") as scratch:
        fresh, old = Path(scratch) / "fresh", Path(scratch) / "old"
        fresh.mkdir(mode=0o755)
        (fresh / folder.name).write_text(launcher())
        (fresh / folder.name).chmod(0o755)
        (fresh / METADATA).write_text(json.dumps({"server_types": ["FIFO", "WSGI"]}))
        (fresh / MARKER).write_text(json.dumps({"made_by": "scrubjay thor install", "version": scrubjay.__version__}))
        # The client deletes all releases but the three newest: let it be ours, not the user's own.
        os.utime(fresh, (0, 0))
        before = None
        if os.path.lexists(folder):
            before = old if is_ours(folder) else aside(folder)
            before.parent.mkdir(exist_ok=True)
            os.rename(folder, before)
        try:
            os.rename(fresh, folder)
        except BaseException:
            if before is not None:
                os.rename(before, folder)
            raise


def _take_away(folder: Path) -> str:
    """Removes a folder if it is ours, and moves back what was there before; says what it did."""
    moved, done = aside(folder), ""
    if is_ours(folder):
        with tempfile.TemporaryDirectory(dir=folder.parent.parent, prefix=".scrubjay-") as scratch:
            os.rename(folder, Path(scratch) / "ours")
            done = "removed"
            if os.path.lexists(moved):
                os.rename(moved, folder)
                done = "restored"
    elif os.path.lexists(moved):
        if os.path.lexists(folder):
            return f"left alone, and so is {moved}: the client has fetched it again since"
        os.rename(moved, folder)
        done = "restored"
    return done


def _noted(home: Path) -> set[Path]:
    """Folders that were installed; local builds may be anywhere."""
    try:
        return {Path(folder) for folder in json.loads((home / ".ai2thor" / RECORD).read_text())}
    except FileNotFoundError:
        return set()
    except (ValueError, TypeError) as error:
        raise ThorError(f"{home / '.ai2thor' / RECORD} is damaged; delete it and run the command again") from error


def _note(home: Path, folders: set[Path]) -> None:
    write_atomically(home / ".ai2thor" / RECORD, json.dumps(sorted(map(str, folders))))


def _drop_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
