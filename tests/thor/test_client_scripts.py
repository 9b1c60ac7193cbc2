"""Scripts for AI2-THOR, run unmodified with the client from PyPI on our engine."""

from __future__ import annotations

import ctypes.util
import json
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from scrubjay.bench.thor import measure
from scrubjay.thor.install import COMMIT, install, launcher_path, remove

pytestmark = pytest.mark.slow  # The client and its packages, 360 MB, are installed first.
START = """
import json, sys
from ai2thor.controller import Controller
controller = Controller(**json.loads(sys.argv[1]))
event = controller.step("RotateRight")
print(json.dumps([bool(event), event.metadata["sceneName"], list(event.frame.shape), bool(event.frame.std() > 5)]))
controller.stop()
"""
STARTED = [True, "FloorPlan10_physics", [300, 300, 3], True]
"""The client takes the first scene by name."""


# Ways to start.


def test_an_executable_needs_neither_display_nor_installation(run_script, home):
    assert (
        run_script(START, json.dumps({"local_executable_path": str(launcher_path(home)), "x_display": "0"})) == STARTED
    )


def test_a_plain_controller_starts_with_a_display(run_script, display):
    assert run_script(START, "{}", DISPLAY=display) == STARTED


def test_cloud_rendering_starts_without_a_display(run_script):
    if ctypes.util.find_library("vulkan") is None:
        pytest.skip("no Vulkan library here; on Debian and Ubuntu `apt-get install libvulkan1`")
    assert run_script(START, '{"platform": "CloudRendering"}') == STARTED


def test_a_local_build_starts_with_a_display(run_script, client_python, tmp_path, display):
    site = Path(sysconfig.get_path("purelib", vars={"base": str(client_python.parents[1])}))
    install(tmp_path, COMMIT, site / "ai2thor")
    try:
        assert run_script(START, '{"local_build": true}', DISPLAY=display) == STARTED
    finally:
        remove(tmp_path)
    assert not (site / "unity" / "builds" / "thor-Linux64-local").exists()


# Scripts in the style of AI2-THOR's documentation.


def test_navigation(run_script, display):
    got = run_script("navigation.py", DISPLAY=display)
    assert got["scene"] == "FloorPlan10_physics" and got["frame"] == [300, 300, 3] and got["colors"] > 20
    start, rotation, horizon = got["start"]
    assert start["y"] == pytest.approx(0.901, abs=0.01)
    ahead = np.array([np.sin(np.radians(rotation)), np.cos(np.radians(rotation))])
    right = np.array([ahead[1], -ahead[0]])
    offsets = {"MoveAhead": ahead, "MoveBack": -ahead, "MoveRight": right, "MoveLeft": -right}
    assert any(success for success, _ in got["steps"].values())
    for action, (success, position) in got["steps"].items():
        moved = [position["x"] - start["x"], position["z"] - start["z"]]
        assert moved == pytest.approx((0.25 * success * offsets[action]).tolist(), abs=1e-4)
    assert [(turn - rotation) % 360 for turn in got["turns"]] == pytest.approx([90, 60])
    assert [look - horizon for look in got["looks"]] == pytest.approx([30, 20])
    assert got["refused"][0][0] is False and got["refused"][0][1]
    assert got["standing"] == [True, False, True]
    assert got["heights"][0] == pytest.approx(got["heights"][2]) and got["heights"][0] - got["heights"][
        1
    ] == pytest.approx(0.675, abs=0.01)
    there = got["there"]
    assert (there["rotation"]["y"], there["cameraHorizon"], there["isStanding"]) == (180, pytest.approx(30), False)
    assert got["outside"][0] is False and got["outside"][1] and got["done"]


def test_reachable_positions(run_script, display):
    got = run_script("reachable.py", DISPLAY=display)
    positions = np.array([[position["x"], position["z"]] for position in got["positions"]])
    assert len(positions) > 30 and len(np.unique(positions.round(3), axis=0)) == len(positions)
    steps = (positions - positions[0]) / 0.25
    assert np.allclose(steps, steps.round(), atol=1e-3)
    visited, tried = got["visited"]
    assert visited == tried
    assert got["poses"] > 0 and got["visible"] and got["distance"] < 2.5
    path = got["path"]
    assert path[0]["x"] == pytest.approx(positions[0][0], abs=0.05) and path[-1]["z"] == pytest.approx(
        positions[-1][1], abs=0.05
    )
    assert got["bounds"]["x"] > 2 and got["bounds"]["y"] > 2


def test_interaction(run_script, display):
    got = run_script("interaction.py", DISPLAY=display)
    assert got["there"] and got["open 0.5"] == [True, True, 0.5] and got["open 1.0"] == [True, True, 1.0]
    assert got["close"] == [True, False, 0]
    success, picked, inventory, name, held = got["pick up"]
    assert success and picked and inventory == [{"objectId": held, "objectType": name}]
    assert got["second"][0] is False and got["second"][1]
    success, words, parents, receptacle = got["put"]
    assert success, words
    assert receptacle in parents and got["empty"] == []
    assert got["drop"] == [True, True, False, True]
    assert got["toggled"][0] is True


def test_segmentation(run_script, display):
    got = run_script("segmentation.py", DISPLAY=display)
    assert got["frame"] == got["instances"] == got["semantics"] == got["normals"] == [240, 320, 3]
    assert got["depth"] == [240, 320, "float32"]
    low, high = got["range"]
    assert 0.05 < low < high < 15
    assert got["boxes"] and len(got["sizes"]) > 8 and all("|" in name for name in got["sizes"])
    same, by_class, of_class = got["colors"]
    assert same and 0 < by_class <= 240 * 320 and of_class > 0
    visible, masked = got["visible"]
    assert masked >= 0.8 * visible


def test_cameras(run_script, display):
    got = run_script("cameras.py", DISPLAY=display)
    assert got["frames"] == 1 and got["shape"] == [300, 300, 3]
    camera = got["camera"]
    assert camera["position"] == pytest.approx({"x": -1.25, "y": 1.5, "z": 1.0}, abs=1e-4)
    assert camera["rotation"] == pytest.approx({"x": 20, "y": 90, "z": 0}, abs=1e-3) and camera["fieldOfView"] == 90
    assert got["turned"] > 5
    assert got["map"][:2] == [2, True] and got["map"][2] > 1 and got["contrast"] > 10
    assert got["others"][:2] == [2, 2] and got["others"][2] > 5
    assert got["after"] == 2
    assert got["words"].startswith("action: AddThirdPartyCamera has an invalid argument: lens")


def test_two_agents(run_script, display):
    got = run_script("multi_agent.py", DISPLAY=display)
    assert got["events"] == 2 and got["active"] == 1 and got["back"] == 0
    assert got["turned"] == pytest.approx(90) and got["still"] and got["differ"]
    assert got["frames"] == [[300, 300, 3]] * 2
    first, second = got["start"]
    assert np.hypot(first["x"] - second["x"], first["z"] - second["z"]) > 0.3


def test_bad_input(run_script, display):
    got = run_script("bad_input.py", DISPLAY=display)
    for name in ("unknown action", "unknown argument", "wrong type", "missing argument", "unknown scene"):
        assert got[name][0] == "ValueError", name
    assert got["unknown argument"][1].startswith("action: MoveAhead has an invalid argument: speed")
    assert "Levitate" in got["unknown action"][1] and "FloorPlan999" in got["unknown scene"][1]
    for name in ("unknown object", "out of the room", "nothing held"):
        assert got[name][0] is False and got[name][1] and not got[name][2], name
    assert all(answer[0] in (False, "ValueError") for name, answer in got.items() if name != "after")
    assert got["after"] is True


def test_random_actions_give_the_same_twice(run_script, home):
    first, second, refused = run_script("same_twice.py", str(launcher_path(home)))
    assert first == second and refused < 100


def test_allenacts_environment(run_script, client_python, allenact, home):
    """The real class, with the client's own packages; torch, SciPy and NetworkX are ours."""
    client = next((client_python.parents[1] / "lib").glob("python*/site-packages"))
    paths = ":".join(map(str, (allenact, client, Path(torch.__file__).parents[1])))
    got = run_script("allenact_environment.py", str(launcher_path(home)), PYTHONPATH=paths)
    assert got["scene"] == "FloorPlan1_physics" and got["second"] == "FloorPlan2_physics"
    assert got["frame"] == [224, 224, 3] and got["reachable"] > 30 and got["placed"]
    assert any(success for action, success, _ in got["steps"] if action == "MoveAhead")
    assert all(success for action, success, _ in got["steps"] if action.startswith("Rotate"))
    assert got["pickupable"] > 5 and got["closest"] == "Fridge"


def test_the_benchmark_measures_all_parts(client_python, monkeypatch):
    monkeypatch.setattr("scrubjay.bench.thor.SIZES", (64,))
    rows = measure(client_python, "FloorPlan28", 20, Console(quiet=True))
    assert [(row["protocol"], row["pictures"]) for row in rows] == [
        ("FIFO", "rgb"), ("FIFO", "rgb, depth, ids"), ("WSGI", "rgb")
    ]  # fmt: skip
    for row in rows:
        assert min(row["ms"].values()) > 0
        assert sum(row["ms"].values()) == pytest.approx(1000 / row["steps_per_s"], rel=0.02)
