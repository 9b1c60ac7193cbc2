"""Shortest ways: against a slow search, and on ways that can be counted by eye."""

from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.game.actions import NAMES
from scrubjay.players.planning import plan
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


def done(passable, place, name):
    """Where an action leads; None if it fails."""
    x, y, quarter, height = place
    if name in STEPS:
        way = (quarter + STEPS[name]) % 4
        return (int(x + COMPASS[way][0]), int(y + COMPASS[way][1]), quarter, height) if passable[x, y, way] else None
    if name in TURNS:
        return x, y, (quarter + TURNS[name]) % 4, height
    return None if (name == "Stand") == bool(height) else (x, y, quarter, 1 - height)


def slow_distances(passable, start):
    away, queue = {start: 0}, deque([start])
    while queue:
        place = queue.popleft()
        for name in (*STEPS, *TURNS, "Stand", "Crouch"):
            there = done(passable, place, name)
            if there is not None and there not in away:
                away[there] = away[place] + 1
                queue.append(there)
    return away


def walk(passable, start, way):
    place = start
    for action in way:
        place = done(passable, place, NAMES[action])
        assert place is not None, "a planned action fails"
    return place


@given(st.data())
def test_a_plan_is_a_way_to_the_most_gain_for_its_length(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    free = rng.random((5, 4)) < 0.7
    free[2, 1] = True
    passable, start = open_floor(free), (2, 1, int(rng.integers(4)), int(rng.integers(2)))
    gain = np.where(rng.random((5, 4, 4, 2)) < 0.1, rng.integers(1, 9, (5, 4, 4, 2)), 0).astype(float)
    away = slow_distances(passable, start)
    scores = {place: gain[place] / steps for place, steps in away.items() if steps}
    way = plan(passable, start, gain)
    if not any(scores.values()):
        assert way == []
        return
    end = walk(passable, start, way)
    assert len(way) == away[end] and scores[end] == max(scores.values())


def test_nobody_walks_backwards():
    passable = open_floor(np.ones((1, 3), bool))
    gain = np.zeros((1, 3, 4, 2))
    gain[0, 0] = 1.0
    assert [NAMES[action] for action in plan(passable, (0, 1, 2, 1), gain)] == ["MoveAhead"]
    # Facing away, sideways steps are possible after one quarter turn.
    assert len(plan(passable, (0, 1, 0, 1), gain)) == 2
    assert plan(passable, (0, 0, 0, 1), np.zeros((1, 3, 4, 2))) == []
