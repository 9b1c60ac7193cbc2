"""Installing into a home of the test's own: what is there afterwards, what is left alone, and that all comes back."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import run_command

from scrubjay.errors import ThorError
from scrubjay.thor import install as installation
from scrubjay.thor.install import COMMIT, client_commit, find_client, install, launcher, launcher_path, remove

pytest.importorskip("msgpack")
NAMES = [f"thor-Linux64-{COMMIT}", f"thor-CloudRendering-{COMMIT}"]


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return home


def digest(folder: Path) -> list[tuple[str, str, int, int]]:
    """All that is in a folder: names, contents, permissions, times."""
    return [
        (
            str(path.relative_to(folder)),
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
    ]


def real_release(home: Path, name: str = NAMES[0]) -> Path:
    """Something like an installation of AI2-THOR's own."""
    folder = home / ".ai2thor" / "releases" / name
    (folder / "data").mkdir(parents=True)
    (folder / name).write_bytes(b"\x7fELF")
    (folder / name).chmod(0o755)
    (folder / "data" / "level0").write_bytes(bytes(range(256)))
    os.utime(folder / "data" / "level0", (1_600_000_000, 1_600_000_000))
    return folder


def ai2thor(site: Path, commit: str = "0123456789abcdef0123456789abcdef01234567") -> Path:
    package = site / "ai2thor"
    package.mkdir(parents=True)
    (package / "_builds.py").write_text(f"# GENERATED\nCOMMIT_ID = '{commit}'\n")
    (package / "__init__.py").write_text("raise SystemExit('nothing of the client is run')")
    return package


def test_the_folders_are_what_the_client_looks_for(home):
    executables = install(home, COMMIT)
    assert executables == [home / ".ai2thor" / "releases" / name / name for name in NAMES]
    for path in executables:
        assert os.access(path, os.X_OK)
        assert json.loads((path.parent / "metadata.json").read_text()) == {"server_types": ["FIFO", "WSGI"]}
    assert install(home, COMMIT) == executables  # Again, over our own.
    assert sorted(path.name for path in (home / ".ai2thor").iterdir()) == ["releases", installation.RECORD]
    assert [what for _, what in remove(home)] == ["removed", "removed"]
    assert not list(home.iterdir())
    assert remove(home) == []


def test_the_launcher_needs_nothing_of_the_environment(home):
    path = install(home, COMMIT)[0]
    # Neither PATH nor HOME; and a folder full of traps to start in.
    for name in ("scrubjay.py", "json.py", "numpy.py"):
        (home / name).write_text("raise SystemExit('a trap')")
    done = subprocess.run([path, "-screen-width", "300"], env={"PYTHONPATH": str(home)}, cwd=home, capture_output=True)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"scrubjay: AI2THOR_SERVER_TYPE is not set")


def test_an_installation_that_is_not_ours_is_left_alone_unless_asked(home):
    real_release(home)
    before = digest(home)
    with pytest.raises(ThorError, match="is not Scrubjay's; --replace moves it aside"):
        install(home, COMMIT)
    assert digest(home) == before


def test_removing_restores_a_replaced_installation_exactly(home):
    real, other = real_release(home), real_release(home, "thor-Linux64-0000000")
    before = digest(home)
    install(home, COMMIT, replace=True)
    install(home, COMMIT)  # Ours by now: nothing to ask, and the real one stays aside.
    assert installation.is_ours(real) and not (real / "data").exists() and (other / "data").exists()
    assert sorted(remove(home)) == [(home / ".ai2thor" / "releases" / NAMES[1], "removed"), (real, "restored")]
    # Only the parents' own times differ.
    kept = [entry for entry in digest(home) if entry[0] not in (".ai2thor", ".ai2thor/releases")]
    assert kept == [entry for entry in before if entry[0] not in (".ai2thor", ".ai2thor/releases")]


def test_what_the_client_pruned_does_not_keep_the_real_one_away(home):
    real = real_release(home)
    install(home, COMMIT, replace=True)
    for path in real.iterdir():
        path.unlink()
    real.rmdir()
    assert (real, "restored") in remove(home)
    assert (real / "data" / "level0").exists()


def test_a_release_that_came_back_is_kept_beside_the_one_aside(home):
    real = real_release(home)
    install(home, COMMIT, replace=True)
    for path in real.iterdir():
        path.unlink()
    (real / "downloaded").write_text("again")
    ((_, _), (folder, what)) = remove(home)
    assert folder == real and what.startswith("left alone")
    assert (real / "downloaded").exists() and installation.aside(real).exists()


def test_ours_are_the_first_that_the_client_deletes(home):
    others = [real_release(home, f"thor-Linux64-{number:07}") for number in range(3)]
    ours = [path.parent for path in install(home, COMMIT)]
    folders = sorted((home / ".ai2thor" / "releases").iterdir(), key=lambda folder: folder.stat().st_mtime)
    assert set(folders[:-3]) == set(ours) and set(folders[-3:]) == set(others)
    assert installation.others(home) == 3


def test_a_local_build_goes_beside_the_package_and_away_again(home, tmp_path):
    package = ai2thor(tmp_path / "site")
    executables = install(home, client_commit(package), package)
    local = tmp_path / "site" / "unity" / "builds" / "thor-Linux64-local" / "thor-Linux64-local"
    assert executables[-1] == local and "0123456789abcdef" in executables[0].name
    remove(home)
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["ai2thor"]


def test_a_folder_in_use_is_not_touched(home):
    folder = install(home, COMMIT)[0].parent
    # As the client does while it runs; a lock of this process would not count.
    code = (
        "import fcntl, sys; file = open(sys.argv[1], 'w+'); fcntl.lockf(file, fcntl.LOCK_SH); "
        "print('locked', flush=True); input()"
    )
    client = subprocess.Popen(
        [sys.executable, "-c", code, f"{folder}.lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    client.stdout.readline()
    try:
        for act in (lambda: install(home, COMMIT), lambda: remove(home)):
            with pytest.raises(ThorError, match="a client is running"):
                act()
        assert folder.exists()
    finally:
        client.communicate(b"\n")
    assert len(remove(home)) == 2


def test_something_of_the_users_in_our_folder_is_not_deleted(home):
    folder = install(home, COMMIT)[0].parent
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ThorError, match=r"holds notes\.txt, which Scrubjay did not write"):
        remove(home)
    assert (folder / "notes.txt").exists()


def test_a_path_that_the_client_would_split_is_refused(tmp_path, monkeypatch):
    home = tmp_path / "my home"
    home.mkdir()
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for act in (lambda: install(home, COMMIT), lambda: launcher_path(home)):
        with pytest.raises(ThorError, match="spaces or quotes"):
            act()
    assert not list(home.iterdir())


@pytest.mark.parametrize("commit", ["", "../../x", "F0825767", "f08"])
def test_a_commit_is_hexadecimal(home, commit):
    with pytest.raises(ThorError, match="hexadecimal digits"):
        install(home, commit)
    assert not list(home.iterdir())


def test_a_damaged_record_is_named(home):
    install(home, COMMIT)
    (home / ".ai2thor" / installation.RECORD).write_text("{")
    with pytest.raises(ThorError, match="damaged; delete it"):
        remove(home)


def test_the_clients_package_is_found_without_running_it(tmp_path, monkeypatch):
    package = ai2thor(tmp_path / "site", "abcdef0")
    assert client_commit(find_client(tmp_path / "site")) == "abcdef0"
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "ai2thor", raising=False)  # Other tests import the real one.
    assert find_client() == package
    with pytest.raises(ThorError, match="holds no ai2thor package"):
        find_client(tmp_path)
    (package / "_builds.py").write_text("COMMIT_ID = None")
    with pytest.raises(ThorError, match="names no build"):
        client_commit(package)
    assert client_commit(None) == COMMIT


def test_the_commands(home, monkeypatch, capsys, tmp_path):
    ai2thor(tmp_path / "site", "abcdef0")
    code, printed, _ = run_command(monkeypatch, capsys, "thor", "install", "--site-packages", str(tmp_path / "site"))
    assert code == 0 and printed.splitlines() == [
        f"{home}/.ai2thor/releases/thor-{name}-abcdef0/thor-{name}-abcdef0" for name in ("Linux64", "CloudRendering")
    ]
    code, printed, _ = run_command(monkeypatch, capsys, "thor", "path")
    assert code == 0 and Path(printed.strip()).read_text() == launcher() and os.access(printed.strip(), os.X_OK)
    assert run_command(monkeypatch, capsys, "thor", "path")[1] == printed
    code, printed, _ = run_command(monkeypatch, capsys, "thor", "remove")
    assert code == 0 and printed.count("removed") == 2
    code, printed, errors = run_command(monkeypatch, capsys, "thor", "remove")
    assert (code, printed) == (0, "") and "Nothing is installed" in errors
    real_release(home)
    code, printed, errors = run_command(monkeypatch, capsys, "thor", "install")
    assert (code, printed) == (2, "") and "is not Scrubjay's" in errors


def test_the_benchmark_wants_an_interpreter_with_the_client(monkeypatch, capsys):
    code, _, errors = run_command(monkeypatch, capsys, "bench", "thor", "--python", "/bin/false")
    assert code == 2 and "/bin/false has no ai2thor package; name an interpreter that has it with --python" in errors
