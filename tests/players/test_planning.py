"""Path planning: against a slow search, and on paths that can be counted by hand."""

from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.game.actions import NAMES
from scrubjay.players.planning import plan_path
from scrubjay.rooms.directions import COMPASS

STEPS = {"MoveAhead": 0, "MoveRight": 1, "MoveLeft": -1}
TURNS = {"RotateRight": 1, "RotateLeft": -1}


def open_floor(free: np.ndarray) -> np.ndarray:
    """Steps between free cells (X, Y) that are next to each other."""
    passable = np.zeros((*free.shape, 4), bool)
    for x, y in np.argwhere(free):
        for quarter, (dx, dy) in enumerate(COMPASS):
            inside = 0 <= x + dx < free.shape[0] and 0 <= y + dy < free.shape[1]
            passable[x, y, quarter] = inside and free[x + dx, y + dy]
    return passable


def successor(passable, pose, name):
    """The pose after an action; None if it fails."""
    x, y, quarter, height = pose
    if name in STEPS:
        towards = (quarter + STEPS[name]) % 4
        dx, dy = COMPASS[towards].tolist()
        return (x + dx, y + dy, quarter, height) if passable[x, y, towards] else None
    if name in TURNS:
        return x, y, (quarter + TURNS[name]) % 4, height
    return None if (name == "Stand") == bool(height) else (x, y, quarter, 1 - height)


def slow_distances(passable, start):
    distances, queue = {start: 0}, deque([start])
    while queue:
        pose = queue.popleft()
        for name in (*STEPS, *TURNS, "Stand", "Crouch"):
            reached = successor(passable, pose, name)
            if reached is not None and reached not in distances:
                distances[reached] = distances[pose] + 1
                queue.append(reached)
    return distances


def walk(passable, start, path):
    pose = start
    for action in path:
        pose = successor(passable, pose, NAMES[action])
        assert pose is not None, "a planned action fails"
    return pose


@given(st.data())
def test_a_path_leads_to_the_most_gain_per_step(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    free = rng.random((5, 4)) < 0.7
    free[2, 1] = True
    passable, start = open_floor(free), (2, 1, int(rng.integers(4)), int(rng.integers(2)))
    gain = np.where(rng.random((5, 4, 4, 2)) < 0.1, rng.integers(1, 9, (5, 4, 4, 2)), 0).astype(float)
    distances = slow_distances(passable, start)
    scores = {pose: gain[pose] / steps for pose, steps in distances.items() if steps}
    path = plan_path(passable, start, gain)
    if not any(scores.values()):
        assert path == []
        return
    end = walk(passable, start, path)
    assert len(path) == distances[end] and scores[end] == max(scores.values())


def test_paths_never_walk_backwards():
    passable = open_floor(np.ones((1, 3), bool))
    gain = np.zeros((1, 3, 4, 2))
    gain[0, 0] = 1.0
    assert [NAMES[action] for action in plan_path(passable, (0, 1, 2, 1), gain)] == ["MoveAhead"]
    # Facing away, sideways steps are possible after one quarter turn.
    assert len(plan_path(passable, (0, 1, 0, 1), gain)) == 2
    assert plan_path(passable, (0, 0, 0, 1), np.zeros((1, 3, 4, 2))) == []
