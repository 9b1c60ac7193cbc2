"""Benchmarks of the engine behind the unmodified AI2-THOR client: steps per second, and where the time goes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from scrubjay.errors import ThorError
from scrubjay.study.record import machine
from scrubjay.thor.install import launcher

SIZES = (224, 300)
KINDS = {"rgb": {}, "rgb, depth, ids": {"renderDepthImage": True, "renderInstanceSegmentation": True}}
WARM_UP = 200
"""Steps before the clock starts: software OpenGL compiles a shader for each new combination of states."""
START = (
    "import sys; root, times = sys.argv[1:3]; del sys.argv[1:3]; root in sys.path or sys.path.insert(0, root); "
    "from scrubjay.bench.thor_engine import serve_timed; sys.exit(serve_timed(times))"
)
CLIENT = """
import json, random, sys, time
import ai2thor.fifo_server, ai2thor.wsgi_server
from ai2thor.controller import Controller

executable, protocol, scene, size, steps, warm_up, options = sys.argv[1:]
server = {"FIFO": ai2thor.fifo_server.FifoServer, "WSGI": ai2thor.wsgi_server.WsgiServer}[protocol]
start = time.perf_counter()
controller = Controller(
    local_executable_path=executable, x_display="0", scene=scene, width=int(size), height=int(size),
    server_class=server, **json.loads(options),
)
started = time.perf_counter() - start
actions = ["MoveAhead"] * 4 + ["RotateLeft", "RotateRight", "LookUp", "LookDown", "MoveLeft", "MoveBack"]
choose = random.Random(0).choice
for _ in range(int(warm_up)):
    controller.step(choose(actions))
controller.step("Done")
start = time.perf_counter()
for _ in range(int(steps)):
    controller.step(choose(actions))
seconds = time.perf_counter() - start
controller.step("Done")
print(json.dumps({"seconds": seconds, "started": started, "objects": len(controller.last_event.metadata["objects"])}))
controller.stop()
"""


def measure(python: Path | None, scene: str, steps: int, console: Console) -> list[dict[str, Any]]:
    """A row for each protocol, size and set of pictures: steps a second, and milliseconds of a step by part."""
    interpreter = str(python or sys.executable)
    _check_client(interpreter)
    cases = [("FIFO", size, kinds) for size in SIZES for kinds in KINDS] + [("WSGI", SIZES[0], "rgb")]
    rows = []
    for protocol, size, kinds in cases:
        console.print(f"{protocol}, {kinds} at {size} x {size}")
        rows.append(_measure(interpreter, protocol, scene, size, kinds, steps))
    return rows


def _measure(python: str, protocol: str, scene: str, size: int, kinds: str, steps: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        executable, times = Path(folder) / "engine", Path(folder) / "times.jsonl"
        executable.write_text(launcher(START, (str(times),)))
        executable.chmod(0o755)
        arguments = [str(executable), protocol, scene, str(size), str(steps), str(WARM_UP), json.dumps(KINDS[kinds])]
        # A home of its own: the client writes logs there, and deletes releases.
        environment = {**os.environ, "HOME": folder}
        done = subprocess.run([python, "-c", CLIENT, *arguments], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise ThorError(f"the client failed: {done.stderr.strip().splitlines()[-1]}")
        client = json.loads(done.stdout.splitlines()[-1])
        before, after = (json.loads(line) for line in times.read_text().splitlines())
    spent = {part: (after[part] - before[part]) * 1000 / steps for part in after}
    step = client["seconds"] * 1000 / steps
    packing = spent["packing"] + spent["form"]
    parts = {
        "actions_and_metadata": spent["engine"] - spent["visible"], "visible": spent["visible"],
        "drawing": spent["drawing"], "packing": packing,
        "client_and_transfer": step - spent["engine"] - spent["drawing"] - packing,
    }  # fmt: skip
    return {
        "protocol": protocol,
        "pictures": kinds,
        "size": size,
        "steps_per_s": round(1000 / step, 1),
        "ms": {part: round(value, 3) for part, value in parts.items()},
        "start_s": round(client["started"], 3),
        "scene": scene,
        "objects": client["objects"],
        "steps": steps,
        "machine": machine("cpu"),
    }


def _check_client(python: str) -> None:
    if python == sys.executable and importlib.util.find_spec("ai2thor"):
        return
    done = subprocess.run([python, "-c", "import ai2thor"], capture_output=True)
    if done.returncode:
        raise ThorError(f"{python} has no ai2thor package; name an interpreter that has it with --python")
