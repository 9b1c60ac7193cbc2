"""AI2-THOR's rooms are rooms to play in: whole games, hiding spots, replays."""

import numpy as np
import pytest

import scrubjay
from scrubjay.rooms.generate import make_room
from scrubjay.sim.access import find_opening_poses
from scrubjay.sim.build import build_room
from scrubjay.spots.spots import load_spots, make_spots, save_spots, spots_path

SCENE = "iTHOR:FloorPlan28"
BATHROOM = "iTHOR:FloorPlan413"
LIMITS = (30, 1, 15, 12, 30)


def test_a_whole_game_runs_and_replays():
    record = scrubjay.play("heuristic", "frontier", SCENE, "Tomato", size=56, limits=LIMITS)
    assert record.scene == SCENE
    assert len(list(scrubjay.replay(record))) == len(record.actions)


def test_spots_of_such_a_room_are_files_like_others(tmp_path):
    spots = make_spots(BATHROOM, "Cup", candidates=24)
    path = spots_path(tmp_path, BATHROOM, "Cup")
    save_spots(spots, path)
    assert load_spots(path, BATHROOM, "Cup") == spots
    assert spots.room == make_room(BATHROOM).digest


@pytest.mark.parametrize("scene", [SCENE, "iTHOR:FloorPlan206", "iTHOR:FloorPlan413"])
def test_a_body_walks_and_opens_nearly_everything(scene):
    compiled = build_room(scene)
    grid = compiled.floor.reachable()
    poses = find_opening_poses(compiled, grid)
    assert len(grid) > 50
    assert np.mean([bool(found) for found in poses]) > 0.9
