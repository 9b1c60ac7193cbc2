"""Seekers: what they find, in how many steps, and that they claim only what they see."""

import numpy as np
import pytest

from scrubjay.game.actions import NAMES, NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.players.by_name import make_seeker
from scrubjay.players.seekers import GroundTruth
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World

SEEING = ("frontier", "bfs", "oracle")
AHEAD = (0.0, 0.9, 0.045, 1.0, 0.0, 0.0, 0.0)
"""On the floor, north of the middle."""
IN_DRAWER = (0.0, 1.7, 0.67, 1.0, 0.0, 0.0, 0.0)


def search(world: World, name: str, spec: EpisodeSpec) -> tuple[bool, list[str], int]:
    """Plays a search; returns whether the object was found, the actions, and the number of failed claims."""
    game, player, names, false = CacheGame(world, lambda *_: spec), make_seeker(name, 1), [], 0
    while True:
        action, place = player(game, np.ones(1, bool))
        result = game.step(action, place)
        names.append(NAMES[action[0]])
        false += names[-1] == "ClaimVisible" and not result.success[0]
        if result.finished[0]:
            return bool(result.found[0]), names, false


@pytest.fixture(scope="module")
def world(chest):
    with World([chest], size=224) as world:
        yield world


@pytest.mark.parametrize("name", SEEING)
def test_an_object_ahead_is_approached_and_claimed(world, name):
    spec = EpisodeSpec("Tomato", AgentPose(0.0, -1.75, 0.0, True), Stage.S, Stage.S, pose=AHEAD)
    found, names, false = search(world, name, spec)
    assert found and not false
    if name == "oracle":
        # 2.65 m away; after five steps of 0.25 m it is 1.4 m, which is in reach.
        assert names == ["MoveAhead"] * 5 + ["ClaimVisible"]
    assert len(names) < 12


@pytest.mark.parametrize("name", SEEING)
def test_an_object_in_a_drawer_is_found_by_opening(world, name):
    spec = EpisodeSpec("Tomato", AgentPose(-1.5, -1.5, 180.0, True), Stage.S, Stage.S, pose=IN_DRAWER)
    found, names, false = search(world, name, spec)
    assert found and not false
    assert any(action.startswith("OpenAt") for action in names)
    assert len(names) < {"frontier": 150, "bfs": 40, "oracle": 25}[name]


def test_invisible_objects_are_never_claimed(world):
    """The object is far above the room."""
    spec = EpisodeSpec(
        "Tomato", AgentPose(0.0, 0.0, 0.0, True), Stage.S, Stage.S, pose=(0.0, 0.0, 50.0, 1.0, 0.0, 0.0, 0.0)
    )
    for name in SEEING:
        game = CacheGame(world, lambda *_: spec, np.array([1, 1, 1, 1, 70]))
        player, places = make_seeker(name), set()
        for _ in range(69):
            action, place = player(game, np.ones(1, bool))
            assert NAMES[action[0]] != "ClaimVisible"
            places.add(tuple(game.step(action, place).place[0].tolist()))
        assert name == "oracle" or len(places) > 35


def test_seekers_leave_other_stages_alone(world):
    game = CacheGame(world, RandomEpisodes(seed=1))
    for name in SEEING:
        action, _ = make_seeker(name)(game, np.ones(1, bool))
        assert action[0] == NOTHING


def test_the_ground_truth_knows_which_steps_succeed_whatever_is_open(chest):
    """Passable steps, against taking them."""
    for is_open in ((), (0,), (0, 1)):
        spec = EpisodeSpec("Tomato", AgentPose(0.0, 0.0, 30.0, True), Stage.S, Stage.S, pose=AHEAD, open=is_open)
        with World([chest], copies=4, size=28) as world:
            game = CacheGame(world, lambda *_, spec=spec: spec)
            truth = GroundTruth(game, 0)
            passable = truth.passable()
            free = world._floors.free(
                np.zeros(len(truth.grid), int), truth.grid.positions, np.tile(truth.is_open, (len(truth.grid), 1))
            )
            for number, (x, y) in enumerate((truth.grid.cells - truth.origin).tolist()):
                if not free[number]:
                    continue
                world.state.position[:] = truth.grid.positions[number]
                world.state.rotation[:] = truth.grid.angle + 90.0 * np.arange(4)
                assert (world.move(np.zeros(4, int)) == passable[x, y]).all()
