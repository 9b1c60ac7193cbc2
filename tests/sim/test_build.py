"""Rooms are built in child processes from any kind of program, and no child outlives it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import scrubjay
from scrubjay.errors import ProcessError, RoomError
from scrubjay.rooms.generate import make_room
from scrubjay.sim.build import build_rooms
from scrubjay.workers.processes import ProcessPool

SCENES = [f"foyer-{seed}" for seed in range(8)]
SCRIPT = f"""
print("begin", flush=True)
from scrubjay.sim.build import build_rooms
rooms = build_rooms({SCENES!r}, processes=2)
print(*[room.room.scene for room in rooms])
"""
NOTEBOOK = f"""
import sys, types
main = sys.modules["__main__"] = types.ModuleType("__main__")
exec(compile({SCRIPT!r}, "<cell 1>", "exec"), main.__dict__)
"""
LONG_BUILD = """
from scrubjay.sim.build import build_rooms
print("begin", flush=True)
build_rooms([f"kitchen-{seed}" for seed in range(400)], processes=2)
"""


def run(*command: str, **keywords) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120, **keywords)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def soon(happens, seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not happens() and time.monotonic() < end:
        time.sleep(0.01)
    return happens()


def gone(pid: int) -> bool:
    """A child of a killed process is a zombie until init reaps it."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_script_without_a_main_guard_builds_rooms(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    assert run(str(path)) == f"begin\n{' '.join(SCENES)}\n"


def test_a_script_on_standard_input_builds_rooms():
    assert run("-", input=SCRIPT) == f"begin\n{' '.join(SCENES)}\n"


def test_a_command_line_script_builds_rooms():
    assert run("-c", SCRIPT) == f"begin\n{' '.join(SCENES)}\n"


def test_a_module_builds_rooms(tmp_path):
    (tmp_path / "mine.py").write_text(SCRIPT)
    assert run("-m", "mine", cwd=tmp_path) == f"begin\n{' '.join(SCENES)}\n"


def test_a_notebook_builds_rooms():
    """Cells run in a `__main__` that has neither a file nor a spec."""
    assert run("-c", NOTEBOOK) == f"begin\n{' '.join(SCENES)}\n"


def test_children_import_the_package_that_the_script_imported(tmp_path):
    root = Path(scrubjay.__file__).parents[1]
    (tmp_path / "script.py").write_text(f"import sys\nsys.path.insert(0, {str(root)!r})\n{SCRIPT}")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    assert run(str(tmp_path / "script.py"), env=env) == f"begin\n{' '.join(SCENES)}\n"


def test_rooms_are_in_the_order_of_their_names_and_the_same_as_without_processes():
    assert [room.room for room in build_rooms(SCENES, processes=2)] == [make_room(scene) for scene in SCENES]


def test_an_error_in_a_child_is_raised_here():
    with pytest.raises(RoomError, match="unknown scene 'cellar-1'"):
        build_rooms([*SCENES, "cellar-1"], processes=2)


def test_a_child_that_dies_is_an_error():
    with ProcessPool(os._exit, 2) as pool, pytest.raises(ProcessError, match="exit code 7"):
        list(pool.map([(7,)]))
    assert not pool.children


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_no_child_outlives_its_parent(how):
    parent = subprocess.Popen([sys.executable, "-c", LONG_BUILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert parent.stdout and parent.stdout.readline() == b"begin\n"
    assert soon(lambda: len(children(parent.pid)) == 2)
    pids = children(parent.pid)
    time.sleep(3)  # Let them build.
    parent.send_signal(how)
    _, errors = parent.communicate(timeout=30)
    assert parent.returncode == -how and (how != signal.SIGINT or errors.endswith(b"KeyboardInterrupt\n"))
    assert soon(lambda: all(map(gone, pids)))
