"""E&M's reward for good hiding places, against the paper's formulas computed the slow way from recorded values."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import tree
from scrubjay.agent.agent import Agent, explored_maps
from scrubjay.agent.config import SMALL
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.rewards import HidingReward, em_hide, em_mean_value
from scrubjay.sim.world import World
from scrubjay.training.hiding_reward import place_values
from scrubjay.training.rollout import Collector


@pytest.fixture(scope="module")
def agent() -> Agent:
    """An agent whose place scores differ widely, and that walks a lot."""
    torch.manual_seed(0)
    agent = Agent(SMALL)
    with torch.no_grad():
        agent.perspective.place_head.weight *= 30
        agent.heads.stages["EM"].actor.bias[:7] += 4
    return agent


def slow_values(agent: Agent, metric_map, place: torch.Tensor) -> torch.Tensor:
    """`place_values` from the scores of whole maps, including headings never taken."""
    explored, origin = explored_maps(metric_map.entries)
    scores = agent.perspective.place_scores(agent.perspective.encode_maps(explored), torch.ones_like(explored.places))
    right, ahead, quarter, _ = place.T
    return scores[torch.arange(len(place)), quarter, origin[:, 1] - ahead, right - origin[:, 0]]


@torch.no_grad()
def test_place_values_equal_the_scores_of_whole_maps(agent):
    generator = torch.Generator().manual_seed(1)
    steps, games = 40, 5
    place = torch.stack([torch.randint(-3, 4, (steps, games), generator=generator) for _ in range(2)], -1)
    views = torch.stack([torch.randint(n, (steps, games), generator=generator) for n in (4, 2)], -1)
    place = torch.cat([place * torch.tensor([1, 2]), views], -1)
    value = torch.randn(steps, games, SMALL.map_value, generator=generator)
    yes = torch.ones(steps, games, dtype=torch.bool)
    empty = agent.memory.metric_map.initial_state(games)
    _, metric_map = agent.memory.metric_map.write(empty, place, value, yes, ~yes)
    computed = []
    for there in place:
        computed.append(place_values(agent, metric_map, there))
        torch.testing.assert_close(computed[-1], slow_values(agent, metric_map, there), atol=1e-5, rtol=1e-4)
    turned = place[0].clone()
    turned[:, 2] = (turned[:, 2] + 1) % 4
    torch.testing.assert_close(place_values(agent, metric_map, turned), slow_values(agent, metric_map, turned))
    with torch.autocast("cpu", torch.bfloat16):
        rough = place_values(agent, metric_map, place[0])
    torch.testing.assert_close(rough, computed[0], atol=0.1, rtol=0)
    assert torch.stack(computed).std() > 0.1, "places must differ for the test to mean anything"


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 10_000))
def test_rewards_follow_the_papers_formula(games, steps, seed):
    """Games of random lengths, with steps in other stages; now and then a state is paid for twice with `keep=False`."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(steps, games)).astype(np.float32)
    is_first, new = rng.random((steps, games)) < 0.2, rng.random((steps, games)) < 0.6
    is_first[0] = True
    # A game explores first and never again.
    exploring = np.zeros((steps, games), bool)
    for t in range(steps):
        exploring[t] = is_first[t] | (exploring[t - 1] & (rng.random(games) < 0.8))
    stage = torch.from_numpy(np.where(exploring, int(Stage.EM), int(Stage.S)))
    running = HidingReward(games, torch.device("cpu"))
    for t in range(steps):
        running.unseen = torch.from_numpy(new[t])
        inputs = torch.from_numpy(values[t]), stage[t], torch.from_numpy(is_first[t])
        if rng.random() < 0.3:
            first = running.pay(*inputs, keep=False)
            assert torch.equal(first, running.pay(*inputs, keep=False)), "nothing was counted"
        paid = running.pay(*inputs).numpy()
        for b in range(games):
            since = np.flatnonzero(is_first[: t + 1, b])[-1]
            expected = 0.0
            if exploring[t, b] and t > since:
                unseen = new[since : t + 1, b].copy()
                unseen[0] = True
                mean = em_mean_value(values[since:t, b], unseen[:-1])
                expected = em_hide(values[t, b], mean, unseen[-1])
            assert paid[b] == pytest.approx(float(expected), abs=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("last", [Stage.EM, Stage.PS])
def test_exploration_is_rewarded_by_the_values_of_visited_places(agent, chest, last):
    """The same games, played with and without the reward, differ by the formula on values recorded step by step."""
    limits, results = np.array([9, 1, 2, 2, 5]), []
    rollouts = {}
    for valued in (False, True):
        results.clear()
        with World([chest], copies=3, size=SMALL.image_size) as world:
            game = CacheGame(world, RandomEpisodes(3, last=last), limits)
            on_step = lambda number, game, result: results.append(result)  # noqa: E731
            collector = Collector(agent, [game], seed=1, on_step=on_step, hiding_value=valued)
            rollouts[valued] = [collector.collect(13), collector.collect(13)]

    for without, with_it in zip(*rollouts.values(), strict=True):
        assert torch.equal(without.action, with_it.action), "rewards do not change the actions"
    rewards = {valued: torch.cat([part.reward for part in parts]) for valued, parts in rollouts.items()}
    paid = (rewards[True] - rewards[False]).numpy()

    seen = [tree.index(part.observation, t) for part in rollouts[True] for t in range(len(part))]
    seen.append(rollouts[True][-1].last)
    is_first = torch.cat([*(part.is_first for part in rollouts[True]), torch.from_numpy(results[-1].finished)[None]])
    stage = torch.stack([one.stage for one in seen])
    values, state = [], rollouts[True][0].state
    for observation, first in zip(seen, is_first, strict=True):
        state = agent.act(state, observation, first).state
        # Places in PS may be off the map; their values are not used.
        place = torch.where((observation.stage == Stage.EM)[:, None], observation.place, 0)
        values.append(slow_values(agent, state.metric_map, place).numpy())
    values, unseen = (
        np.array(values),
        np.array([one.success & (one.novelty.place | one.novelty.opened) for one in results]),
    )
    expected = np.zeros_like(paid)
    for t, b in np.ndindex(*paid.shape):
        since = np.flatnonzero(is_first[: t + 1, b])[-1]
        if stage[t + 1, b] == Stage.EM and not is_first[t + 1, b]:
            new = np.array([True, *unseen[since : t + 1, b]])
            expected[t, b] = em_hide(values[t + 1, b], em_mean_value(values[since : t + 1, b], new[:-1]), new[-1])
    assert paid == pytest.approx(expected, abs=1e-4)
    assert (expected > 1e-3).sum() > 3, "the test needs rewarded steps"
    assert (expected[[12, 25]] > 1e-3).any() or last != Stage.EM, "also at the end of a rollout"
