"""The same game in two worlds, step by step: what our engine behind AI2-THOR's client must have in common with ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scrubjay.game.actions import NAMES, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.players.base import Player
from scrubjay.sim.base_world import BaseWorld

ONE = np.ones(1, bool)
POSE_TOLERANCE = 1e-4
"""Meters, and units of a quaternion: poses pass through Euler angles."""
PUSHED_TOLERANCE = 0.03
"""The same once a door has pushed the object: in one world alone, 10^-12 m before grow to a millimeter after."""
OUTCOMES = (
    "action", "success", "hit", "placed", "counts", "visible", "ended", "finished", "found", "place", "opened", "open",
)  # fmt: skip


def play_in_step(games: Sequence[CacheGame], players: Sequence[Player], steps: int) -> list[str]:
    """Plays the games with players of the same seed and asserts that they do not differ; returns what was done."""
    done: list[str] = []
    last, tolerance = None, POSE_TOLERANCE
    for number in range(steps):
        choices = [player(game, ONE) for game, player in zip(games, players, strict=True)]
        first, second = (game.step(*choice) for game, choice in zip(games, choices, strict=True))
        name = NAMES[second.action[0]] if second.action[0] >= 0 else "PS"
        where = f"step {number}, {name} in {Stage(second.stage[0]).name}"
        assert_equal_steps(first, second, where)
        if games[1].world.state.goal[0] >= 0:
            pose, held = second.pose[0], games[1].world.state.held[0]
            if (
                last is not None
                and not held
                and name.startswith(("OpenAt", "Close"))
                and not np.array_equal(last, pose)
            ):
                tolerance = PUSHED_TOLERANCE
            last, tolerance = pose, POSE_TOLERANCE if held else tolerance
            assert_equal_poses(first.pose[0], pose, where, tolerance)
            assert containers(games[0].world) == containers(games[1].world), where
        done.append(name)
    return done


def assert_equal_steps(first: StepResult, second: StepResult, where: str) -> None:
    for outcome in OUTCOMES:
        a, b = getattr(first, outcome), getattr(second, outcome)
        assert np.array_equal(a, b), f"{where}: {outcome} is {a}, and in the other world {b}"


def assert_equal_poses(
    first: np.ndarray, second: np.ndarray, where: str = "", tolerance: float = POSE_TOLERANCE
) -> None:
    """Poses (7,) up to the sign of their quaternions, which means nothing."""
    turned = [np.abs(first - second * [1, 1, 1, *[sign] * 4]).max() for sign in (1, -1)]
    assert min(turned) < tolerance, f"{where}: the object is at {first}, and in the other world at {second}"


def containers(world: BaseWorld) -> list[str | None]:
    """The names of the things that contain the goal objects."""
    return [
        None if thing < 0 else world.rooms[room].things[thing]
        for room, thing in zip(world.room_of, world.contained(), strict=True)
    ]


def names_in(world: BaseWorld, ids: np.ndarray) -> np.ndarray:
    """The names of the things in the ids (B, height, width) of a world of one room; structure has one name."""
    things = np.array([*world.rooms[0].things, "background"])
    parts = [str(name).split("_")[0] for name in things]
    things[np.isin(parts, ["Wall", "CounterBase", "Oven"])] = "structure"
    return things[ids]
