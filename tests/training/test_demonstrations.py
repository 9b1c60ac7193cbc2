"""Demonstrated manipulations: they are played as their files say, imitated, and nothing else is learned from them."""

import numpy as np
import pytest
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.placements.episodes import Demonstration, PlacementEpisodes
from scrubjay.placements.generate import make_placements
from scrubjay.sim.world import World
from scrubjay.training.config import TrainConfig
from scrubjay.training.demonstrations import Demonstrations
from scrubjay.training.episode_stats import EpisodeStats, TrackedGame
from scrubjay.training.learner import Learner, Objective
from scrubjay.training.rollout import Collector

STEPS = 60


@pytest.fixture(scope="module")
def placements(chest):
    return [make_placements(chest, "Cup", 9)]


class WatchedGame(TrackedGame):
    """Notes which games are demonstrated at each step."""

    def before_reset(self, result) -> None:
        self.shown = [*getattr(self, "shown", []), [isinstance(self.specs[b], Demonstration) for b in range(len(self))]]
        super().before_reset(result)


@pytest.fixture(scope="module")
def played(chest, placements):
    """An agent, a rollout of six games, half of them demonstrated, the steps' results, the statistics of hits."""
    torch.manual_seed(0)
    agent, results, stats = Agent(SMALL), [], EpisodeStats()
    with World([chest], copies=6, size=SMALL.image_size) as world:
        sampler = PlacementEpisodes(placements, turned=True, seed=1)
        sampler.demonstrated = 0.5
        game = WatchedGame(world, sampler, stats)
        collector = Collector(
            agent, [game], 1, on_step=lambda _, __, result: results.append(result), demonstrations=True
        )
        rollout = collector.collect(STEPS)
    return agent, rollout, results, np.array(game.shown), stats.pop_means()


def test_demonstrated_games_hit_their_targets(chest, placements):
    sampler = PlacementEpisodes(placements, turned=True, seed=1)
    sampler.demonstrated = 1.0
    with World([chest], copies=6) as world:
        game = CacheGame(world, sampler)
        demonstrations, hits = Demonstrations(game), []
        for _ in range(STEPS):
            result = game.step(demonstrations.next_actions())
            demonstrations.begin(result.finished)
            hits += result.hit[result.finished].tolist()
    assert len(hits) > 8 and all(hits)


def test_demonstrated_games_do_not_count(played):
    _, rollout, results, shown, stats = played
    assert rollout.demonstrated.numpy().tolist() == shown.tolist()
    ended, hit = (np.stack([getattr(result, name) for result in results]) for name in ("ended", "hit"))
    assert (ended & shown).any() and hit[ended & shown].any()
    assert stats["hit"] == pytest.approx(hit[ended & ~shown].mean()) and stats["hit"] < 0.5


def test_the_policy_learns_from_its_own_steps_alone_and_imitates_the_others(played):
    agent, rollout, *_ = played
    learner = Learner(agent, Objective(openable=0, hindsight=0), {Stage.OM}, shared=False)
    with torch.no_grad():
        losses, _ = learner(rollout)
        step = agent.evaluate(rollout.state, rollout.observation, rollout.is_first, rollout.stages)
    assert losses.keys() == learner.weights(rollout).keys()
    logits, mask = step.decision.logits.float(), rollout.demonstrated
    by_hand = -logits.log_softmax(-1).gather(-1, rollout.action[..., None])[..., 0][rollout.imitated].mean()
    assert losses["om/demonstration"].item() == pytest.approx(by_hand.item(), rel=1e-4)
    entropy = torch.distributions.Categorical(logits=logits[~mask]).entropy().mean()
    assert abs(losses["om/entropy"].item()) == pytest.approx(entropy.item(), rel=1e-4)


def test_detours_are_played_and_not_imitated(chest, placements):
    assert any(one.detour[1] for one in placements[0].placements)
    sampler = PlacementEpisodes(placements, turned=True, seed=1)
    sampler.demonstrated = 1.0
    agent = Agent(SMALL)
    with World([chest], copies=6, size=SMALL.image_size) as world:
        game = CacheGame(world, sampler)
        first = [(len(spec.actions), spec.detour) for _, spec in sorted(game.specs.items())]
        rollout = Collector(agent, [game], 1, demonstrations=True).collect(STEPS)
    assert rollout.demonstrated.all()
    for b, (length, (begin, end)) in enumerate(first):
        assert rollout.imitated[:length, b].tolist() == [not begin <= t < end for t in range(length)]


def test_a_share_of_demonstrations_leaves_places_and_targets_as_they_are(chest, placements):
    with World([chest], copies=1, size=28) as world:
        none, some = (PlacementEpisodes(placements, turned=True, seed=3) for _ in range(2))
        some.demonstrated = 0.3
        pairs = [(none(world, 0), some(world, 0)) for _ in range(40)]
    shown = [other for _, other in pairs if isinstance(other, Demonstration)]
    assert 4 < len(shown) < 24 and all(other.open == () and other.actions for other in shown)
    for one, other in pairs:
        assert (one.place, one.target) == (other.place, other.target)
        assert isinstance(other, Demonstration) or one == other


def test_demonstrations_need_placements():
    with pytest.raises(ValueError, match="demonstration_share: placements are demonstrated"):
        TrainConfig.preset("manipulate", demonstration_share=0.3)
