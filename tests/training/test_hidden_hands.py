"""Hands that are hidden for a while: pictures lack the object, everything else stays as it is."""

import numpy as np
import pytest
import torch

from scrubjay.game.actions import Stage, action_index
from scrubjay.game.episode import RandomEpisodes
from scrubjay.sim.world import World
from scrubjay.training.config import TrainConfig
from scrubjay.training.episode_stats import EpisodeStats, TrackedGame
from scrubjay.training.frames import record_frames, render_frames
from scrubjay.training.hidden_hands import FIRST, LENGTH, HiddenHands

COPIES = 12


@pytest.fixture(scope="module")
def world(chest):
    with World([chest], COPIES, "warp", 56) as world:
        yield world


def manipulate(world: World, share: float) -> TrackedGame:
    hands = HiddenHands(share, COPIES, np.random.default_rng(4))
    return TrackedGame(world, RandomEpisodes(3, first=Stage.OM, last=Stage.OM), EpisodeStats(), hidden_hands=hands)


def test_hidden_objects_are_missing_in_pictures_alone(world):
    game, turn = manipulate(world, 1.0), np.full(COPIES, action_index("RotateHand|+Y"))
    hidden = []
    for _ in range(FIRST[1] + LENGTH[1]):
        mask, there = world.goal_mask(game.look(("rgb", "ids"))), world.goal_mask(world.view(("ids",)))
        gone = game.hidden()
        assert not mask[gone].any() and torch.equal(mask[~gone], there[~gone])
        assert there[gone].flatten(1).any(1).all(), "it is only not drawn"
        # Replayed images are rendered from frames: those lack it, too.
        images = render_frames(world, record_frames(world, None, gone), augmented=False)
        assert torch.equal(images, game.look().rgb)
        before = world.state.pose.copy()
        game.step(turn)
        assert (world.state.pose != before).any(1).all(), "the hand goes on"
        hidden.append(gone)
    steps = np.array(hidden)
    assert not steps[: FIRST[0]].any(), "at first it is seen"
    lengths = steps.sum(0)
    assert LENGTH[0] <= lengths.min() and lengths.max() < LENGTH[1]
    assert (np.diff(steps.astype(int), axis=0, prepend=0, append=0) == 1).sum(0).tolist() == [1] * COPIES, (
        "one span each"
    )


def test_only_a_share_of_the_manipulations_is_hidden(world):
    game, turn = manipulate(world, 0.5), np.full(COPIES, action_index("RotateHand|+Y"))
    ever = np.zeros(COPIES, bool)
    for _ in range(FIRST[1] + LENGTH[1]):
        ever |= game.hidden()
        game.step(turn)
    assert 2 <= ever.sum() <= 10


def test_hands_are_hidden_only_where_there_are_hands():
    assert TrainConfig.preset("cache", hidden_share=0.3).hidden_share == 0.3
    with pytest.raises(ValueError, match="hidden_share"):
        TrainConfig.preset("explore", hidden_share=0.3)
