"""Manipulations that begin with the hand elsewhere: in view, within reach, in free air, and only where they may."""

import numpy as np
import pytest
import torch

from scrubjay.game.actions import PLACE_ACTIONS, Stage
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.placements.episodes import Demonstration
from scrubjay.sim.pose import REACH, cameras, in_view, project, reach, unproject
from scrubjay.sim.world import World
from scrubjay.training.config import TrainConfig
from scrubjay.training.displaced_hands import DisplacedHands
from scrubjay.training.episode_stats import EpisodeStats, TrackedGame

COPIES = 24


@pytest.fixture(scope="module")
def world(chest):
    with World([chest], COPIES, "warp", 56) as world:
        yield world


def manipulate(world: World, share: float, sampler=None) -> TrackedGame:
    sampler = sampler or RandomEpisodes(3, first=Stage.OM, last=Stage.OM)
    hands = DisplacedHands(share, np.random.default_rng(4))
    return TrackedGame(world, sampler, EpisodeStats(), displaced_hands=hands)


def test_unproject_is_the_inverse_of_project():
    rng = np.random.default_rng(0)
    camera = cameras(rng.normal(size=(50, 2)), rng.uniform(0, 360, 50), rng.random(50) < 0.5)
    image, depth = rng.random((50, 2)), rng.uniform(0.2, 3, 50)
    point = unproject(*camera, image, depth)
    np.testing.assert_allclose(project(*camera, point), image, atol=1e-12)
    # The camera looks down by 30 degrees: the image's middle, 2 m away along its axis, is 1 m lower.
    eye, matrix = cameras(np.zeros(2), np.array(0.0), np.array(True))
    np.testing.assert_allclose(unproject(eye, matrix, np.full(2, 0.5), np.array(2.0)), [0, np.sqrt(3), 1.5765 - 1])


def test_hands_begin_where_the_game_begins_them_or_anywhere_that_a_hand_can_be(world):
    default = manipulate(world, 0.0).world.state.pose.copy()
    game = manipulate(world, 1.0)
    state = game.world.state
    moved = (state.pose[:, :3] != default[:, :3]).any(1)
    assert moved.mean() > 0.2, "free air is in view of many places"
    assert state.held.all() and (game.stage == Stage.OM).all()
    np.testing.assert_array_equal(state.pose[:, 3:], default[:, 3:])
    point = state.pose[moved, :3]
    camera = cameras(state.position, state.rotation, state.standing)
    assert (reach(state.position[moved], point) <= REACH).all()
    assert in_view(camera[0][moved], camera[1][moved], point).all()
    assert (
        game.world.goal_mask(game.look(("rgb", "ids"))).flatten(1).any(1)[torch.from_numpy(moved)].float().mean() > 0.9
    )
    # Physics agrees that the air is free: nothing pushes an object that is turned where it is, and turned back.
    before = state.pose.copy()
    for turn in (2, 3):
        game.world.rotate_hand(np.full(COPIES, turn))
    assert (np.abs(state.pose[moved, :3] - before[moved, :3]).max(1) < 1e-6).all()


def test_only_a_share_begins_elsewhere(world):
    default = manipulate(world, 0.0).world.state.pose.copy()
    moved = [(manipulate(world, share).world.state.pose != default).any(1).sum() for share in (0.3, 1.0)]
    assert 0 < moved[0] < moved[1]


def test_demonstrations_and_manipulations_of_games_begin_as_ever(world):
    default = manipulate(world, 0.0)
    specs = [default.specs[b] for b in range(COPIES)]
    poses = default.world.state.pose.copy()

    def demonstrated(world: World, number: int) -> EpisodeSpec:
        return Demonstration(**vars(specs[number]), actions=(1,))

    assert np.array_equal(manipulate(world, 1.0, demonstrated).world.state.pose, poses)

    def hiding(world: World, number: int) -> EpisodeSpec:
        spec = specs[number]
        return EpisodeSpec(spec.goal, spec.start, Stage.OH, Stage.OH, spec.place)

    game = manipulate(world, 1.0, hiding)
    held = game.world.state.pose.copy()
    game.step(np.full(COPIES, PLACE_ACTIONS[0]))
    assert (game.stage == Stage.OM).all()
    np.testing.assert_array_equal(game.world.state.pose, held)


def test_objects_stay_where_arm_view_or_things_are_in_the_way(world):
    game = manipulate(world, 0.0)
    state = game.world.state
    before, eye = state.pose.copy(), cameras(state.position, state.rotation, state.standing)[0]
    behind = eye.copy()
    behind[:, 2] += 1
    assert not game.world.move_hand_to(behind).any(), "above the head is not in view"
    assert not game.world.move_hand_to(np.full((COPIES, 3), np.nan)).any()
    below = state.pose[:, :3] * [1, 1, 0] - [0, 0, 0.2]
    assert not game.world.move_hand_to(below).any(), "the floor is in the way"
    np.testing.assert_array_equal(state.pose, before)
    state.held[:] = False
    assert not game.world.move_hand_to(before[:, :3]).any(), "nothing is held"


def test_hands_begin_elsewhere_only_where_manipulations_are_practiced():
    assert TrainConfig.preset("manipulate", displaced_share=0.5).displaced_share == 0.5
    for preset in ("explore", "cache"):
        with pytest.raises(ValueError, match="displaced_share"):
            TrainConfig.preset(preset, displaced_share=0.5)
    assert TrainConfig.preset("manipulate", numbers="paper").displaced_share == 0
