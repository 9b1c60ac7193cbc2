"""The guides "add an encoder" and "add a task", followed."""

import json

import pytest
from guides import follow, run_in

pytestmark = pytest.mark.slow

TINY = [
    "--scenes", "FloorPlan401", "--copies", "2", "--minibatch-games", "2", "--unroll-length", "4", "--updates", "1",
    "--validation-games", "0", "--out", "run",
]  # fmt: skip


def test_add_an_encoder(tmp_path):
    touched = follow("add_an_encoder.md", tmp_path)
    assert touched == ["my_encoders.py", "src/scrubjay/agent/encoders.py"]
    printed = run_in(tmp_path, "-m", "scrubjay", "train", "demo", "--encoder", "python:my_encoders:Patches", *TINY)
    assert json.loads(printed)["update"] == 1
    named = [word if word != "run" else "named" for word in TINY]
    printed = run_in(tmp_path, "-m", "scrubjay", "train", "demo", "--encoder", "patches", "--freeze-encoder", *named)
    assert json.loads(printed)["update"] == 1
    load = "import scrubjay; print(type(scrubjay.load_agent('named').encoder).__name__)"
    assert run_in(tmp_path, "-c", load).strip() == "Patches"


def test_add_a_task(tmp_path):
    assert follow("add_a_task.md", tmp_path) == ["src/scrubjay/envs/tasks.py"]
    train = [
        "-m",
        "scrubjay",
        "train",
        "manipulate",
        "--task",
        "place_on_top",
        "--practice",
        *"000",
        "--agent",
        "small",
    ]
    assert json.loads(run_in(tmp_path, *train, *TINY))["update"] == 1
    assert json.loads((tmp_path / "run" / "run.json").read_text())["config"]["task"] == "place_on_top"
