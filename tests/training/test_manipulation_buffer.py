"""Whole manipulations in their buffer against the games they come from, and the losses computed from them."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from helpers import check_without_values, eager_agent

from scrubjay import tree
from scrubjay.agent.agent import Agent
from scrubjay.agent.config import PAPER, SMALL
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.observation import Observation
from scrubjay.game.rewards import step_reward
from scrubjay.sim.world import World
from scrubjay.training import manipulation_buffer
from scrubjay.training.config import TrainConfig
from scrubjay.training.learner import Learner, Objective
from scrubjay.training.manipulation_buffer import ManipulationBuffer
from scrubjay.training.rollout import Collector, Rollout
from scrubjay.training.trainer import Trainer

LIMITS = np.array([6, 1, 3, 6, 5])
STEPS = 44
OM_ONLY = frozenset({int(Stage.OM)})


@pytest.fixture(scope="module")
def played(chest):
    """An agent, rollouts of one step each of 3 + 3 games in two worlds, their results, the buffer after all of them."""
    agent, results = eager_agent(), ([], [])
    worlds = [World([chest], copies=3, size=SMALL.image_size) for _ in range(2)]
    games = [CacheGame(world, RandomEpisodes(3 + number), LIMITS) for number, world in enumerate(worlds)]
    buffer = ManipulationBuffer(agent, games)
    collector = Collector(
        agent, games, 1, on_step=lambda number, _, result: results[number].append(result), hiding=True
    )
    rollouts = []
    for _ in range(STEPS):
        rollouts.append(collector.collect(1))
        buffer.add(rollouts[-1])
    for world in worlds:
        world.close()
    return agent, rollouts, results, buffer


def manipulations_by_hand(results) -> list[tuple[int, list[int]]]:
    """Games and steps of the manipulations that ended, in the order of ending: one game and one step at a time."""
    finished, steps = [], {}
    for t in range(STEPS):
        for b in range(6):
            result, game = results[b // 3][t], b % 3
            if result.stage[game] == Stage.OM:
                steps.setdefault(b, []).append(t)
                if result.ended[game]:
                    finished.append((b, steps.pop(b)))
    return finished


def taken(buffer: ManipulationBuffer, count: int, monkeypatch) -> list[Rollout]:
    """All finished manipulations of a buffer, in minibatches of `count`, in order; it keeps them."""
    with monkeypatch.context() as patch:
        patch.setattr(torch, "randperm", torch.arange)
        patch.setattr(buffer, "_finished", buffer._finished)
        patch.setattr(buffer._steps, "free", lambda rows: None)
        return [batch.rollout for batch in buffer.minibatches(buffer.ready(count), count, 1)]


def test_kept_manipulations_equal_the_step_results(played, monkeypatch):
    _, rollouts, results, buffer = played
    expected, kept = manipulations_by_hand(results), taken(buffer, 1, monkeypatch)
    assert len(kept) == len(expected) > 10
    assert {len(steps) for _, steps in expected} > {1, int(LIMITS[Stage.OM])}, "some are cut by the limit, some at once"
    for rollout, (b, steps) in zip(kept, expected, strict=True):
        mine, count = [results[b // 3][t] for t in steps], len(steps)
        assert rollout.action.shape == (LIMITS[Stage.OM], 1) and rollout.stages == OM_ONLY
        assert rollout.observation.stage[:, 0].tolist() == [3] * count + [1] * (len(rollout) - count)
        assert rollout.action[:count, 0].tolist() == [r.action[b % 3] for r in mine]
        assert rollout.reward[:count, 0].tolist() == [np.float32(step_reward(r)[b % 3]) for r in mine]
        for name, field in (("success", "success"), ("dones", "ended"), ("truncated", "truncated"), ("hit", "hit")):
            assert getattr(rollout, name)[:count, 0].tolist() == [bool(getattr(r, field)[b % 3]) for r in mine], name
            assert not getattr(rollout, name)[count:].any()
        assert rollout.opened[:count, 0].tolist() == [bool(r.novelty.opened[b % 3]) for r in mine]
        assert not rollout.reward[count:].any() and (rollout.landed[count:] == -1).all()
        for name in ("log_probs", "landed"):
            assert getattr(rollout, name)[:count, 0].tolist() == [getattr(rollouts[t], name)[0, b] for t in steps]
        for field in fields(Observation):
            seen = torch.stack([getattr(rollouts[t].observation, field.name)[0, b] for t in steps])
            assert torch.equal(getattr(rollout.observation, field.name)[:count, 0], seen), field.name


def as_collected(rollouts, b: int, steps: list[int]) -> Rollout:
    """The slow way: a game's steps joined into one rollout, from the agent's own state before the first."""
    parts = [rollouts[t].games(torch.tensor([b])) for t in steps]
    joined = {
        f.name: tree.cat([getattr(part, f.name) for part in parts])
        for f in fields(Rollout) if f.name not in ("bootstrap_value", "state", "last", "stages")
    }  # fmt: skip
    first, last = parts[0], parts[-1]
    return Rollout(
        **joined, bootstrap_value=last.bootstrap_value, state=first.state, last=last.last, stages=OM_ONLY,
    )  # fmt: skip


@pytest.mark.parametrize("bootstrap", [False, True])
def test_losses_of_kept_manipulations_equal_those_of_the_steps_as_collected(played, monkeypatch, bootstrap):
    agent, rollouts, results, buffer = played
    objective = Objective(gae_lambda=0.9, bootstrap_time_limits=bootstrap)
    mine, manipulate = Learner(agent, objective, {Stage.OM}, shared=False), Learner(agent, objective)
    expected = []
    with torch.no_grad():
        for rollout, (b, steps) in zip(taken(buffer, 1, monkeypatch), manipulations_by_hand(results), strict=True):
            losses, metrics = mine(rollout)
            reference, its_metrics = manipulate(as_collected(rollouts, b, steps))
            assert losses.keys() == mine.weights(rollout).keys() == {n for n in reference if n.startswith("om/")}
            for name, value in (losses | metrics).items():
                torch.testing.assert_close(value, (reference | its_metrics)[name], rtol=1e-3, atol=1e-4, msg=name)
            assert metrics["om/approx_kl"] < 1e-4, "OM is the same without the map that was explored"
            expected.append((len(steps), losses))
        missed = [losses["om/hindsight"] > 0 for _, losses in expected]
        assert any(missed) and any(m and count > 1 for m, (count, _) in zip(missed, expected, strict=True))
        # Several at once: means over all their steps.
        together, count = mine(taken(buffer, 8, monkeypatch)[0])[0], 8
        for name in ("policy_loss", "value_loss", "entropy", "attainable", "hindsight"):
            every = [losses[f"om/{name}"] for _, losses in expected[:count]]
            lengths = [n * (name != "hindsight" or bool(m)) for (n, _), m in zip(expected, missed, strict=True)][:count]
            mean = sum(n * value for n, value in zip(lengths, every, strict=True)) / sum(lengths)
            torch.testing.assert_close(together[f"om/{name}"], mean, rtol=1e-3, atol=1e-4, msg=name)


def test_learning_from_manipulations_never_looks_at_values(played, monkeypatch):
    """A CUDA graph of it can be captured."""
    batch = taken(played[3], 8, monkeypatch)[0]
    learner = Learner(Agent(SMALL).to("meta"), Objective(bootstrap_time_limits=True), {Stage.OM}, shared=False)
    check_without_values(learner.agent, learner, learner.weights(batch), batch, monkeypatch)


def test_short_manipulations_are_padded_less_and_have_the_same_losses(played, monkeypatch):
    agent, _, _, buffer = played
    learner = Learner(agent, Objective(), {Stage.OM}, shared=False)
    full = taken(buffer, 1, monkeypatch)
    monkeypatch.setattr(buffer, "lengths", (3, int(LIMITS[Stage.OM])))
    split = taken(buffer, 1, monkeypatch)
    lengths = [int((rollout.observation.stage == Stage.OM).sum()) for rollout in full]
    assert {len(rollout) for rollout in split} == {3, 6}
    assert [len(r) for r in split] == [3] * sum(n <= 3 for n in lengths) + [6] * sum(n > 3 for n in lengths)
    short = [rollout for rollout, length in zip(full, lengths, strict=True) if length <= 3]
    with torch.no_grad():
        for mine, its in zip(split, short, strict=False):
            torch.testing.assert_close(learner(mine)[0], learner(its)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("short", [20, 3])
def test_minibatches_free_what_they_took_and_leave_the_rest(chest, monkeypatch, short):
    monkeypatch.setattr(manipulation_buffer, "SHORT", short)
    agent = eager_agent()
    with World([chest], copies=4, size=SMALL.image_size) as world:
        game = CacheGame(world, RandomEpisodes(3, first=Stage.OM, last=Stage.OM), LIMITS)
        buffer = ManipulationBuffer(agent, [game])
        collector = Collector(agent, [game], 1)
        sizes = []
        for _ in range(12):
            buffer.add(collector.collect(5))
            before, ready = len(buffer), sum(buffer.ready(3))
            batches = list(buffer.minibatches(buffer.ready(3), 3, 2))
            assert len(batches) == 2 * ready and len(buffer) == before - 3 * ready < 3 * len(buffer.lengths)
            for epoch in (batches[:ready], batches[ready:]) if ready else ():
                seen = sorted(float(b.rollout.log_probs[0, n]) for b in epoch for n in range(3))
                assert len(set(seen)) == 3 * ready
            sizes.append(len(buffer._steps))
            used = len(buffer._steps) - len(buffer._steps._free)
            running, waiting = buffer._length.clip(min=0).sum(), buffer._finished.length.sum()
            assert used == running + waiting <= 4 * LIMITS[Stage.OM] + 6 * LIMITS[Stage.OM]
            assert len(set(buffer._steps._free)) == len(buffer._steps._free)
        assert sizes[-1] == sizes[4] < 100, "12 rollouts have 240 steps"


@pytest.mark.slow
def test_hindsight_happens_in_whole_games_whose_rollouts_are_shorter_than_manipulations():
    config = TrainConfig.preset(
        "demo", task="cache", scenes=("FloorPlan401",), copies=4, unroll_length=3, minibatch_games=4, replay_batches=0,
        stage_limits=(4, 1, 4, 8, 4), hiding_minibatch=2, manipulation_minibatch=2, agent=SMALL,
    )  # fmt: skip
    trainer = Trainer(config)
    trainer.agent.load_state_dict(eager_agent().state_dict())
    collector, replay = trainer.start_segment()
    before = trainer.agent.heads[Stage.OM].actor.weight.detach().clone()
    rows = [trainer.update(collector, replay) for _ in range(16)]
    trainer.close()
    hindsight = [row["losses"]["om/hindsight"] for row in rows if "om/hindsight" in row["losses"]]
    assert len(hindsight) > 3 and max(hindsight) > 1, hindsight
    assert not torch.equal(trainer.agent.heads[Stage.OM].actor.weight, before)
    assert all(("om/policy_loss" in row["losses"]) == ("om/grad_norm" in row["losses"]) for row in rows)


@pytest.mark.parametrize(
    "change", [{"manipulation_minibatch": 0}, {"agent": PAPER, "manipulation_minibatch": 10_000}]
)  # fmt: skip
def test_invalid_sizes_are_refused(change):
    with pytest.raises(ValueError, match="manipulation_minibatch"):
        TrainConfig.preset("cache", **change)
