"""Finished games in the hiding buffer against the games themselves, and the losses computed from them."""

import contextlib
import json
import shutil
from dataclasses import fields, is_dataclass, replace
from functools import partial

import numpy as np
import pytest
import torch
from helpers import Anywhere, check_without_values, eager_agent
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import tree
from scrubjay.agent.agent import Agent, explored_maps
from scrubjay.agent.config import PAPER, SMALL
from scrubjay.agent.hiding_outcomes import NOT_HIDDEN, NUM_PLACEMENTS
from scrubjay.agent.mental_seeker import SEEKER_ACTIONS, SEEKER_CLAIM, Rollouts
from scrubjay.agent.metric_map import unpack
from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.observation import NO_ACTION, Observation, observe
from scrubjay.game.rewards import OH_PERCENTILE, oh_step_terms, place_at_terms, total
from scrubjay.game.stages import LIMITS
from scrubjay.sim.world import World
from scrubjay.training import perspective_losses
from scrubjay.training.actor_critic import total_loss
from scrubjay.training.config import TrainConfig
from scrubjay.training.hiding_buffer import (
    FinishedBatch,
    FinishedGames,
    HidingBuffer,
    HidingEpisodes,
    PerspectiveBatch,
    RecentGames,
    SeekingEpisodes,
)
from scrubjay.training.hiding_learner import (
    HidingBatch,
    HidingLearner,
    HidingObjective,
    container_left_open,
    hiding_rewards,
    out_of_time,
    recall_targets,
    seeker_map_poses,
)
from scrubjay.training.rollout import Collector
from scrubjay.training.run import Run, checkpoints
from scrubjay.training.train import train
from scrubjay.training.trainer import Trainer

SHORT = np.array([10, 1, 4, 5, 8])
OH_LOSSES = {
    f"oh/{name}"
    for name in ("policy_loss", "value_loss", "entropy", "recall_tried", "recall_landed", "attainable", "closing")
}  # fmt: skip
EARLY_LOSSES = {"oh/modality", "oh/spatial"}
PS_LOSSES = {f"ps/{name}" for name in ("outcome", "ranking", "mental_policy", "mental_success", "mental_claim")}


@pytest.fixture(scope="module")
def played(chest):
    """An agent, its collector, the observations and rows of 4 games, the step results, the finished games."""
    agent, results = eager_agent(), []
    with World([chest], copies=4, size=SMALL.image_size) as world:
        game = CacheGame(world, Anywhere(3), SHORT)
        collector = Collector(agent, [game], 1, on_step=lambda _, __, result: results.append(result), hiding=True)
        rollouts = [collector.collect(30) for _ in range(4)]
        names = ("is_first", "action", "log_probs", "success", "claimable")
        rows = {name: torch.cat([getattr(rollout, name) for rollout in rollouts]) for name in names}
        seen = tree.cat([rollout.observation for rollout in rollouts])
    games = collector.finished_games.take(len(collector.finished_games))
    return agent, collector, (seen, rows), results, games


def finished_games_by_hand(results):
    """Each finished game, in the order of ending: its number, its steps by stage, and its OH rewards.

    One game and one step at a time, with a hit probability of 0.2 for every PlaceAt and no percentile.
    """
    finished, in_progress = [], {}
    for time, result in enumerate(results):
        at_once, later = total(oh_step_terms(result)), total(place_at_terms(result, 0.2))
        for game, stage in enumerate(result.stage.tolist()):
            about = in_progress.setdefault(
                game, {"game": game, **{s: [] for s in Stage}, "reward": [], "success": [], "hit": []}
            )
            about[Stage(stage)].append(time)
            if stage == Stage.OH:
                about["reward"].append(at_once[game])
                places = actions.PLACE_AT[result.action[game]] != NOTHING
                about["success"].append(bool(result.success[game]) and not places)
                about["hit"].append(False)
            if stage == Stage.OM and result.ended[game]:
                about["reward"][-1] += later[game]
                about["success"][-1] = bool(result.placed[game])
                about["hit"][-1] = bool(result.hit[game])
            if result.finished[game]:
                finished.append(in_progress.pop(game) | {"found": bool(result.found[game])})
    return finished


def test_finished_games_equal_the_step_results(played):
    _, _, (seen, rows), results, games = played
    expected = finished_games_by_hand(results)
    assert len(games) == len(expected) > 8
    hid, sought = games.hiding, games.seeking
    for n, about in enumerate(expected):
        b, times = about["game"], about[Stage.OH]
        assert hid.steps[n] == len(times) and hid.success[n, : len(times)].tolist() == about["success"]
        assert hid.hit[n].tolist() == about["hit"] + [False] * (hid.hit.shape[1] - len(times))
        assert int(hid.manipulated[n].sum()) == sum(bool(results[t].ended[b]) for t in about[Stage.OM])
        assert hid.action[n, : len(times)].tolist() == [results[t].action[b] for t in times]
        assert hid.opened[n, : len(times)].tolist() == [bool(results[t].novelty.opened[b]) for t in times]
        assert not hid.success[n, len(times) :].any() and not hid.mask[n, len(times) :].any()
        for field in fields(Observation):
            kept = getattr(hid.observation, field.name)[n, : len(times)]
            assert torch.equal(kept, getattr(seen, field.name)[times, b]), field.name
        torch.testing.assert_close(hid.log_probs[n, : len(times)], rows["log_probs"][times, b])
        times = about[Stage.S]
        assert sought.steps[n] == len(times) and bool(sought.found[n]) == about["found"]
        for name in ("action", "success", "claimable"):
            assert torch.equal(getattr(sought, name)[n, : len(times)], rows[name][times, b]), name
        assert torch.equal(sought.place[n, : len(times)].long(), seen.place[times, b])
        among = torch.tensor([SEEKER_ACTIONS.index(int(a)) for a in rows["action"][times, b]])
        chance = sought.policy[n, torch.arange(len(times)), among].float()
        torch.testing.assert_close(chance.log(), rows["log_probs"][times, b], atol=2e-3, rtol=1e-3)
    placed = hid.success & (hid.place_at >= 0)
    assert placed.any() and (~placed.any(1)).any(), "the test needs games with and without a placement"
    again = (hid.place_at >= 0) & (placed.cumsum(1) > placed)
    assert again.any() and sought.found.any() and (hid.success & (hid.action == action_index("ReadyForSeeker"))).any()


def test_the_kept_map_holds_the_explored_places(played):
    _, _, (seen, _), results, games = played
    _, origins = explored_maps(games.metric_map.entries)
    for n, about in enumerate(finished_games_by_hand(results)):
        keys = games.metric_map.keys[n]
        visited = {tuple(place) for place in seen.place[about[Stage.EM], about["game"]].tolist()}
        assert {tuple(place) for place in unpack(keys[keys >= 0]).tolist()} == visited
        # The hider was moved to the chosen place and hid from there.
        row, column, quarter = games.choice.place[n].tolist()
        (west, north), there = origins[n].tolist(), games.hiding.observation.place[n, 0, :3].tolist()
        assert there == [west + column, north - row, quarter]


def test_hiding_rewards_equal_those_computed_step_by_step(played):
    *_, results, games = played
    percentile = torch.linspace(-1, 1, len(games))
    hid = replace(games.hiding, hit_probability=torch.full_like(games.hiding.hit_probability, 0.2))
    paid = hiding_rewards(hid, percentile)
    for n, about in enumerate(finished_games_by_hand(results)):
        expected, times = list(about["reward"]), about[Stage.OH]
        act = [results[t].action[about["game"]] for t in times]
        done = [i for i, success in enumerate(about["success"]) if success and actions.READY[act[i]] == NOTHING]
        if any(actions.PLACE_AT[act[i]] != NOTHING for i in done):
            expected[done[-1]] += OH_PERCENTILE * percentile[n].item()
        np.testing.assert_allclose(paid[n, : len(times)], expected, atol=1e-5)
        assert not paid[n, len(times) :].any()


def test_a_centered_percentile_pays_who_places_nothing_no_more_than_who_places_as_well_as_others(played):
    """However slow mental seekers are: the percentiles of those who placed something add up to nothing."""
    agent, *_, games = played
    plain, centered = (HidingLearner(agent, HidingObjective(center_percentile=each)) for each in (False, True))
    percentile = torch.linspace(-1, -0.5, len(games))
    none = plain.hiding_batch(games, torch.zeros_like(percentile)).reward
    slow, fast = (centered.hiding_batch(games, percentile + more).reward for more in (0.0, 1.2))
    torch.testing.assert_close(slow, fast)
    placed = (games.hiding.success & (games.hiding.place_at >= 0)).any(1)
    earned, mean = (slow - none).sum(1), percentile[placed].mean()
    torch.testing.assert_close(earned, torch.where(placed, OH_PERCENTILE * (percentile - mean), 0), atol=1e-5, rtol=0)
    assert earned[placed].mean().abs() < 1e-6 < earned[placed].std()
    assert (plain.hiding_batch(games, percentile).reward - none)[placed].sum(1).max() < -2


def test_evaluating_kept_steps_gives_the_probabilities_actions_were_sampled_with(played):
    agent, *_, games = played
    learner = HidingLearner(agent, HidingObjective())
    hid = games.hiding
    with torch.no_grad():
        observation = tree.map(lambda tensor: tensor.transpose(0, 1), hid.observation)
        output = agent.evaluate(learner._initial_state(games), observation, torch.zeros_like(observation.last_success))
    logs = output.decision.logits.log_softmax(-1).gather(-1, hid.action.T[..., None])[..., 0].T
    within = hid.mask
    torch.testing.assert_close(logs[within], hid.log_probs[within], atol=1e-4, rtol=1e-3)
    n, t = (hid.place_at >= 0).nonzero().unbind(1)
    chance = output.decision.hittable.sigmoid().flatten(-3)[t, n, hid.place_at[n, t]]
    torch.testing.assert_close(hid.hit_probability[n, t], chance, atol=1e-4, rtol=1e-3)
    empty = replace(games, metric_map=tree.map(lambda kept: torch.full_like(kept, -1), games.metric_map))
    with torch.no_grad():
        other = agent.evaluate(learner._initial_state(empty), observation, torch.zeros_like(observation.last_success))
    assert not torch.allclose(other.decision.logits[0], output.decision.logits[0]), "the map matters"


def hiding_of(names, success, landed=(), standing=()) -> HidingEpisodes:
    """OH's steps of one game from the names of its actions; `landed` are names or None."""
    count = len(names)
    zeros, many = torch.zeros(1, count, dtype=torch.int64), torch.zeros(1, count, 4, dtype=torch.int64)
    where = torch.tensor([[NO_ACTION if name is None else action_index(name) for name in landed or [None] * count]])
    observation = Observation(
        torch.zeros(1, count, 2, 2, 3, dtype=torch.uint8), zeros, zeros > 0,
        torch.tensor([standing or [True] * count]), zeros, zeros + Stage.OH, many, where, many[..., :3],
        torch.ones(1, count),
    )  # fmt: skip
    action = torch.tensor([[action_index(name) for name in names]])
    return HidingEpisodes(
        observation, torch.zeros(1, count), torch.full((1, count), 0.5), zeros > 0, action, torch.tensor([success]),
        zeros > 0, torch.tensor([count]),
    )  # fmt: skip


def test_recall_targets_and_open_containers_by_hand():
    """A PlaceAt that lands out of view, one that misses, one that succeeds, one after that; then CloseObjects twice."""
    names = [
        "PlaceAt|0,1,1",
        "PlaceAt|0,1,2",
        "Crouch",
        "PlaceAt|1,1,3",
        "PlaceAt|2,1,1",
        "CloseObjects",
        "CloseObjects",
    ]
    landed = [None, None, "PlaceAt|0,2,2", None, "PlaceAt|1,1,4", None, None]
    hid = hiding_of(
        names, [False, False, True, True, False, False, True], landed, [True, True, True, False, *[True] * 3]
    )
    tried, lay = recall_targets(hid)
    assert tried.tolist() == [[-1, 0, 1, 1, 49 + 2, 98, 98]]
    assert lay.tolist() == [[-1, -1, 8, 8, 49 + 3, 49 + 3, 49 + 3]]
    assert container_left_open(hid).tolist() == [[False] * 4 + [True] * 3]
    assert hid.outcome.tolist() == [49 + 2], "crouching, contained, row 1, column 3"
    stood = replace(hid, observation=replace(hid.observation, standing=torch.ones(1, 7, dtype=torch.bool)))
    assert stood.outcome.tolist() == [NUM_PLACEMENTS + 49 + 2]
    failed = replace(hid, success=hid.success & False)
    assert failed.outcome.tolist() == [NOT_HIDDEN] and not container_left_open(failed).any()
    closed = hiding_of(["PlaceAt|1,1,3", "CloseObjects", "Stand"], [True, True, True])
    assert container_left_open(closed).tolist() == [[False, True, False]]
    on_top = hiding_of(["PlaceAt|0,1,3", "CloseObjects", "Stand"], [True, True, True])
    assert not container_left_open(on_top).any()
    short = replace(hid, steps=torch.tensor([2]), success=hid.success & False)
    assert short.place_at.tolist() == [[0, 1, *[-1] * 5]]


def test_a_hiding_runs_out_of_time_with_its_last_step_unless_the_hider_is_ready():
    late = hiding_of(["Crouch", "PlaceAt|0,1,1", "Stand"], [True] * 3)
    assert out_of_time(late).tolist() == [[False, False, True]]
    assert not out_of_time(replace(late, steps=torch.tensor([2]))).any(), "it ended before the limit"
    ready = hiding_of(["PlaceAt|0,1,1", "Crouch", "ReadyForSeeker"], [True] * 3)
    assert not out_of_time(ready).any()
    assert out_of_time(replace(ready, success=ready.success & False)).tolist() == [[False, False, True]]
    placing = hiding_of(["Crouch", "Stand", "PlaceAt|0,1,1"], [True] * 3)
    assert out_of_time(placing)[0, 2], "its manipulation is played, but there is no step after it"


def test_hidings_that_run_out_of_time_are_bootstrapped_if_configured(played):
    agent, *_, games = played
    hid, gamma = games.hiding, 0.5
    cut = out_of_time(hid)
    assert cut.any()
    percentile, means, values = torch.zeros(len(games)), {}, None
    for bootstrap in (False, True):
        learner = HidingLearner(agent, HidingObjective(gamma=gamma, bootstrap_time_limits=bootstrap))
        norm = agent.heads[Stage.OH].return_norm
        before = [tensor.clone() for tensor in (norm.mean, norm.variance, norm.batches)]
        with torch.no_grad():
            observation = tree.map(lambda tensor: tensor.transpose(0, 1), hid.observation)
            is_first = torch.zeros_like(observation.last_success)
            values = agent.evaluate(learner._initial_state(games), observation, is_first).decision.value.T
            learner.oh_losses(learner.hiding_batch(games, percentile), early=False)
        norm.batches.zero_()  # The first batch is the mean.
        norm.commit()
        means[bootstrap] = norm.mean.item()
        for tensor, saved in zip((norm.mean, norm.variance, norm.batches), before, strict=True):
            tensor.copy_(saved)
    # The value of the last state, discounted once more for every step before it.
    n, t = cut.nonzero().unbind(1)
    extra = sum(values[i, j] * sum(gamma**k for k in range(1, j + 2)) for i, j in zip(n, t, strict=True))
    assert means[True] - means[False] == pytest.approx((extra / hid.mask.sum()).item(), rel=1e-3, abs=1e-6)


def test_the_losses_of_hidings_equal_loops_over_their_steps(played):
    """Returns are discounted by 0.8; in the first game the object is put into something that stays open."""
    agent, *_, games = played
    action, success = games.hiding.action.clone(), games.hiding.success.clone()
    action[0], success[0] = action_index("Crouch"), True
    action[0, 0] = action_index("PlaceAt|1,1,1")
    hid = replace(games.hiding, action=action, success=success)
    learner = HidingLearner(agent, HidingObjective())
    reward = learner.hiding_batch(games, torch.linspace(-1, 1, len(games))).reward
    batch = HidingBatch(hid, games.metric_map, reward, hid.log_probs)
    with torch.no_grad():
        losses, _ = learner.oh_losses(batch, early=True)
        observation = tree.map(lambda tensor: tensor.transpose(0, 1), hid.observation)
        step = agent.evaluate(learner._initial_state(batch), observation, torch.zeros_like(observation.last_success))
    logs, values = step.decision.logits.float().log_softmax(-1), step.decision.value.float()
    policy, closing, close = [], [], action_index("CloseObjects")
    for n, count in enumerate(hid.steps.tolist()):
        inside = closed = False
        for t in range(count):
            discounted = sum(0.8 ** (k - t) * reward[n, k].item() for k in range(t, count))
            policy.append(-logs[t, n, action[n, t]].item() * (discounted - values[t, n].item()))
            if inside and not closed:
                closing.append(-logs[t, n, close].item())
            closed |= inside and bool(success[n, t]) and int(action[n, t]) == close
            inside |= bool(success[n, t]) and actions.NAMES[action[n, t]].startswith("PlaceAt|1")
    assert len(closing) >= int(hid.steps[0]) - 1 > 0 and reward.abs().sum() > 0
    assert losses["oh/closing"].item() == pytest.approx(np.mean(closing), rel=1e-4)
    assert losses["oh/policy_loss"].item() == pytest.approx(np.mean(policy), rel=1e-3)
    assert all(losses[name] != 0 for name in OH_LOSSES | {"oh/spatial"})


def test_every_loss_of_hiding_has_the_objectives_weight():
    objective = HidingObjective(
        entropy=0.02, vf_coef=0.03, modality=0.04, spatial=0.05, recall=0.06, attainable=0.07, closing=0.08,
        outcome=0.09, ranking=0.1, mental=0.11,
    )  # fmt: skip
    late = {
        "oh/policy_loss": 1.0, "oh/value_loss": 0.03, "oh/entropy": -0.02, "oh/recall_tried": 0.06,
        "oh/recall_landed": 0.06, "oh/attainable": 0.07, "oh/closing": 0.08,
    }  # fmt: skip
    assert objective.hiding_weights(early=False) == late
    assert objective.hiding_weights(early=True) == late | {"oh/modality": 0.04, "oh/spatial": 0.05}
    mental = {f"ps/mental_{name}": 0.11 for name in ("policy", "success", "claim")}
    assert objective.perspective_weights() == {"ps/outcome": 0.09, "ps/ranking": 0.1, **mental}
    assert HidingObjective().gamma == 0.8, "the paper's"


def test_seeker_poses_on_the_hiders_map_by_hand():
    """The map's first cell is two steps left and three ahead of the start."""
    place = torch.tensor([[[0, 0, 0, 1], [-2, 3, 3, 0], [1, -1, 2, 1]]], dtype=torch.int16)
    nothing = torch.zeros(1, 3, dtype=torch.int64)
    seeking = SeekingEpisodes(
        place, torch.zeros(1, 3, 58), nothing, nothing > 0, nothing > 0, nothing[:, 0], nothing[:, 0] > 0
    )
    on_map = seeker_map_poses(seeking, torch.tensor([[-2, 3]]))
    assert on_map.tolist() == [[[3, 2, 0, 1], [0, 0, 3, 0], [4, 3, 2, 1]]]


def test_every_loss_is_finite_and_has_gradients_in_its_own_part(played):
    agent, *_, games = played
    learner = HidingLearner(agent, HidingObjective())
    percentile = learner.percentile(games.perspective, torch.Generator().manual_seed(0))
    (hiding, metrics), imagined = (
        learner.oh_losses(learner.hiding_batch(games, percentile), early=True),
        learner.ps_losses(games.perspective),
    )
    assert set(hiding) == OH_LOSSES | EARLY_LOSSES and set(imagined) == PS_LOSSES
    assert set(learner.oh_losses(learner.hiding_batch(games, percentile), early=False)[0]) == OH_LOSSES
    names = ("approx_kl", "explained_variance", "advantage_std", "open_at_prob", "target_prob")
    assert set(metrics) == {f"oh/{name}" for name in names}
    assert metrics["oh/target_prob"] == games.hiding.hit_probability[games.hiding.manipulated].mean()
    weights = learner.objective.hiding_weights(early=True) | learner.objective.perspective_weights()
    moved = {
        "oh": (
            "encoder.stem.weight",
            "heads.stages.OH.actor.weight",
            "placement_recall.weight",
            "heads.hittable_global.bias",
        ),
        "ps": ("perspective.place_head.weight", "perspective.map_encoder.0.weight"),
        "mental": (
            "perspective.seeker.policy.weight",
            "perspective.propagation.0.weight",
            "perspective.outcome_embedding.weight",
        ),
    }
    for losses, kinds in ((hiding, ("oh",)), (imagined, ("ps", "mental"))):
        assert all(torch.isfinite(loss) and loss.ndim == 0 for loss in losses.values())
        agent.zero_grad()
        total_loss(losses, {name: weights[name] for name in losses}).backward()
        gradients = {
            name: p.grad for name, p in agent.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0
        }
        assert all(torch.isfinite(gradient).all() for gradient in gradients.values())
        assert set(gradients) >= {name for kind in kinds for name in moved[kind]}
        assert {name.startswith("perspective") for name in gradients} == {"oh" not in kinds}
        assert not any(name.startswith(("dynamics", "heads.stages.S", "heads.stages.OM.actor")) for name in gradients)
    agent.zero_grad()


@pytest.mark.parametrize("early", [True, False])
def test_learning_from_hidings_never_looks_at_values(played, early, monkeypatch):
    """A CUDA graph of it can be captured: what the rewards need of the host is computed before."""
    agent, *_, games = played
    objective = HidingObjective(clip_coef=0.2, normalize_advantages=True, bootstrap_time_limits=True)
    batch = HidingLearner(agent, objective).hiding_batch(games, torch.zeros(len(games)))
    learner = HidingLearner(Agent(SMALL).to("meta"), objective)
    losses = partial(learner.oh_losses, early=early)
    check_without_values(learner.agent, losses, objective.hiding_weights(early), batch, monkeypatch)


def test_hidings_are_clipped_against_the_policy_that_learning_starts_from(played):
    """An agent that changed after it hid: ratios begin at 1, and what it would do more rarely now weighs less."""
    agent, *_, games = played
    changed, hid = Agent(SMALL), games.hiding
    changed.load_state_dict(agent.state_dict())
    with torch.no_grad():
        changed.heads[Stage.OH].actor.weight.normal_(0, 0.5, generator=torch.Generator().manual_seed(0))
    learner = HidingLearner(changed, HidingObjective(clip_coef=0.2))
    percentile = torch.linspace(-1, 1, len(games))
    batch = learner.hiding_batch(games, percentile)
    _, metrics = learner.oh_losses(batch, early=False)
    assert metrics["oh/approx_kl"].abs() < 1e-5 and metrics["oh/clipfrac"] == 0
    drift = (batch.log_probs - hid.log_probs)[hid.mask]
    assert metrics["oh/behavior_kl"] == pytest.approx((drift.exp() - 1 - drift).mean().item(), rel=1e-4)
    assert ((drift.exp() - 1).abs() > 0.2).float().mean() > 0.3, "clipped against the old policy, many are out of range"

    def gradient(batch: HidingBatch) -> torch.Tensor:
        loss = learner.oh_losses(batch, early=False)[0]["oh/policy_loss"]
        return torch.autograd.grad(loss, changed.heads[Stage.OH].actor.bias)[0]

    # At the first pass it is the plain policy gradient, with truncated importance weights.
    step = learner._play(batch)
    logs = step.decision.logits.log_softmax(-1).gather(-1, hid.action.T[..., None])[..., 0].T
    values, expected = step.decision.value.T, []
    for n, count in enumerate(hid.steps.tolist()):
        for t in range(count):
            discounted = sum(0.8 ** (k - t) * batch.reward[n, k].item() for k in range(t, count))
            weight = min(1.0, (batch.log_probs[n, t] - hid.log_probs[n, t]).exp().item())
            expected.append(-weight * logs[n, t] * (discounted - values[n, t].item()))
    wanted = torch.autograd.grad(torch.stack(expected).mean(), changed.heads[Stage.OH].actor.bias)[0]
    torch.testing.assert_close(gradient(batch), wanted, atol=1e-5, rtol=1e-3)
    # Without PPO there is nothing to clip, and no second policy.
    plain = HidingLearner(changed, HidingObjective()).hiding_batch(games, percentile)
    assert torch.equal(plain.log_probs, hid.log_probs)


def test_the_newest_games_are_kept_and_drawn_without_repetition(played):
    *_, games = played
    games = tree.index(games.perspective, slice(8))
    recent = RecentGames(5)
    assert len(recent) == 0
    recent.add(tree.index(games, slice(3)))
    assert len(recent) == 3 and len(recent.sample(4)) == 3
    recent.add(tree.index(games, slice(3, 8)))
    assert len(recent) == 5
    drawn = recent.sample(5)
    assert isinstance(drawn, PerspectiveBatch)
    order = torch.tensor(
        [games.seeking.place[3:, :].eq(one).flatten(1).all(1).long().argmax() for one in drawn.seeking.place]
    )
    torch.testing.assert_close(drawn.choice.mean_steps, games.choice.mean_steps[3:][order])
    assert torch.equal(drawn.seeking.place.sum((1, 2)).sort().values, games.seeking.place[3:].sum((1, 2)).sort().values)
    assert not hasattr(drawn, "hiding"), "images are not kept"


def test_training_on_finished_games_lowers_the_losses(played):
    """Repeated updates on the same games lower the losses."""
    agent, *_, games = played
    torch.manual_seed(1)
    other = Agent(SMALL)
    other.load_state_dict(agent.state_dict())
    objective = HidingObjective()
    learner = HidingLearner(other, objective)
    optimizer = torch.optim.Adam(other.parameters(), 3e-3)
    percentile = torch.where(torch.arange(len(games)) % 2 == 0, 1.0, -1.0)
    first = last = {}
    for _ in range(12):
        last = (
            learner.ps_losses(games.perspective)
            | learner.oh_losses(learner.hiding_batch(games, percentile), early=False)[0]
        )
        first = first or last
        optimizer.zero_grad()
        total_loss(last, objective.perspective_weights() | objective.hiding_weights(early=False)).backward()
        optimizer.step()
    for name in (*PS_LOSSES, "oh/value_loss", "oh/recall_tried", "oh/recall_landed"):
        assert last[name] < first[name], name


def test_percentiles_rank_the_seeker_among_mental_seekers(played):
    agent, *_, games = played
    other = Agent(SMALL)
    other.load_state_dict(agent.state_dict())
    learner, seeker = HidingLearner(other, HidingObjective()), other.perspective.seeker

    def percentiles(steps: int, found: bool) -> torch.Tensor:
        seeking = replace(
            games.seeking,
            steps=torch.full_like(games.seeking.steps, steps),
            found=torch.full_like(games.seeking.found, found),
        )
        return learner.percentile(replace(games, seeking=seeking).perspective, torch.Generator().manual_seed(0))

    assert (percentiles(0, True) == -1).all() and (percentiles(8, False) == 1).all()
    assert (percentiles(500, True) == 1).all()
    assert (percentiles(50, True) > -1).all(), "an untrained mental seeker finds the object now and then"
    # One that claims at every other step, with success 1/2, has found the object within k steps with 1 - (3/4)^k.
    with torch.no_grad():
        for layer in (seeker.policy, seeker.success):
            layer.weight.zero_(), layer.bias.zero_()
        seeker.policy.bias[SEEKER_CLAIM] = np.log(len(SEEKER_ACTIONS) - 1)
    for steps, expected in ((1, -0.5), (2, -0.125), (3, 0.15625)):
        between, chance = percentiles(steps, True), (expected + 1) / 2
        deviation = 2 * (chance * (1 - chance) / 100) ** 0.5
        assert (between - expected).abs().max() < 5 * deviation, "of 100 mental seekers in each game"
        assert abs(between.mean() - expected) < 5 * deviation / len(games) ** 0.5


def with_mental_steps(agent: Agent, games: FinishedBatch, monkeypatch, steps: dict[int, tuple[float, int]]) -> None:
    """Lets P give outcomes probabilities at the chosen places, and mental seekers need so many steps after them.

    At all other places the hider is sure to hide nothing, which a mental seeker finds at once.
    """
    perspective = agent.perspective
    table, logits = torch.ones(NOT_HIDDEN + 1, dtype=torch.int64), torch.full((NOT_HIDDEN + 1,), -torch.inf)
    for outcome, (probability, length) in steps.items():
        table[outcome], logits[outcome] = length, np.log(probability)
    nothing = torch.full_like(logits, -torch.inf)
    nothing[NOT_HIDDEN] = 0

    def evaluate_places(encoded, places):
        chosen = (places[..., :3] == games.choice.place[:, None, :3]).all(-1, keepdim=True)
        p = torch.where(chosen, logits, nothing)
        return p, torch.zeros_like(p)

    def imagine(encoded, inside, places, outcomes):
        return outcomes.flatten(1)[:, :, None, None, None].expand(-1, -1, *encoded.shape[1:3], 1)

    def simulate(maps, floor, start, uniforms):
        length, limit = table[maps[:, :, :1, 0, 0].long()], len(uniforms)
        return Rollouts(length.clamp(max=limit), length <= limit, torch.zeros(limit, *length.shape))

    monkeypatch.setattr(perspective, "evaluate_places", evaluate_places)
    monkeypatch.setattr(perspective, "imagine", imagine)
    monkeypatch.setattr(perspective.seeker, "simulate", simulate)


def percentile_of(agent: Agent, games: FinishedBatch, steps: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    seeking = replace(games.seeking, steps=steps, found=found)
    learner = HidingLearner(agent, HidingObjective())
    return learner.percentile(replace(games, seeking=seeking).perspective, torch.Generator().manual_seed(0))


def test_a_better_hiding_at_the_same_place_earns_more(played, monkeypatch):
    """A quarter of all hidings at this place is found after 20 steps, half after 300, a quarter never.

    An object found after 20 steps is then at -1 + 2/4, after 300 at -1 + 2 * 3/4, and one not found at 1.
    """
    agent, *_, games = played
    with_mental_steps(agent, games, monkeypatch, {7: (0.25, 20), 30: (0.5, 300), 200: (0.25, 500)})
    every, none = torch.ones(len(games), dtype=torch.bool), torch.zeros(len(games), dtype=torch.bool)
    deviation = 2 * (0.25 / 100 / len(games)) ** 0.5
    paid = []
    for steps, found, expected in ((20, every, -0.5), (300, every, 0.5), (500, none, 1.0)):
        paid.append(percentile_of(agent, games, torch.full_like(games.seeking.steps, steps), found))
        assert abs(paid[-1].mean() - expected) < 4 * deviation
    assert (paid[0] < paid[1]).all() and (paid[1] < paid[2]).all()
    assert (percentile_of(agent, games, torch.full_like(games.seeking.steps, 19), every) == -1).all()


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_percentiles_rise_with_the_seekers_steps_and_ignore_the_outcome(played, data):
    """Games are independent, and rollouts that end early change nothing."""
    agent, *_, games = played
    count, limit = len(games), 500
    flags = st.lists(st.booleans(), min_size=count, max_size=count)
    lengths = st.lists(st.integers(1, limit), min_size=count, max_size=count)
    one, other = (torch.tensor(data.draw(lengths)) for _ in range(2))
    found, again = (torch.tensor(data.draw(flags)) for _ in range(2))
    outcomes = {
        outcome: (probability, data.draw(st.integers(1, limit)))
        for outcome, probability in zip((3, 77, 146, 200, NOT_HIDDEN), (0.1, 0.2, 0.3, 0.3, 0.1), strict=True)
    }
    with pytest.MonkeyPatch.context() as monkeypatch:
        with_mental_steps(agent, games, monkeypatch, outcomes)
        first, second = percentile_of(agent, games, one, found), percentile_of(agent, games, other, again)
        hiding = replace(games.hiding, success=torch.zeros_like(games.hiding.success))
        assert (hiding.outcome == NOT_HIDDEN).all() and not torch.equal(hiding.outcome, games.hiding.outcome)
        assert torch.equal(percentile_of(agent, replace(games, hiding=hiding), one, found), first)
    taken, later = torch.where(found, one, limit), torch.where(again, other, limit)
    assert (first[taken <= later] <= second[taken <= later]).all()
    assert (first[later <= taken] >= second[later <= taken]).all()
    assert (first[taken == limit] == 1).all() and (first >= -1).all()


def test_rollouts_that_end_with_the_last_real_seeker_change_no_percentile(played, monkeypatch):
    agent, *_, games = played
    simulate, limits = agent.perspective.seeker.simulate, []

    def note(maps, floor, start, uniforms):
        limits.append(len(uniforms))
        return simulate(maps, floor, start, uniforms)

    monkeypatch.setattr(agent.perspective.seeker, "simulate", note)
    games = tree.index(games, slice(2))
    found, steps = torch.tensor([True, True]), torch.tensor([12, 30])
    short = percentile_of(agent, games, steps, found)
    whole = percentile_of(agent, games, torch.tensor([12, 500]), found)
    assert limits == [30, 500] and short[0] == whole[0] and whole[1] == 1
    percentile_of(agent, games, steps, ~found)
    assert limits[-1] == 1, "no real seeker found the object"


def test_invalid_places_are_left_out_of_the_ranking():
    rng = torch.Generator().manual_seed(0)
    values, steps = torch.randn(3, 30, generator=rng), torch.randn(3, 30, generator=rng)
    real = torch.rand(3, 30, generator=rng) < 0.7
    pairs = [
        torch.nn.functional.softplus(-(values[b, i] - values[b, j]) * torch.sign(steps[b, i] - steps[b, j]))
        for b in range(3) for i in range(30) for j in range(i) if real[b, i] and real[b, j]
    ]  # fmt: skip
    torch.testing.assert_close(perspective_losses.ranking(values, steps, real), torch.stack(pairs).mean())
    torch.testing.assert_close(
        perspective_losses.ranking(values, steps, real | True), perspective_losses.ranking(values, steps)
    )


def test_finished_games_are_taken_once_and_in_order(played):
    *_, games = played
    finished_games = FinishedGames()
    finished_games.add(tree.index(games, slice(3)))
    finished_games.add(tree.index(games, slice(3, 7)))
    taken = [finished_games.take(2), finished_games.take(4)]
    assert [len(batch) for batch in taken] == [2, 4] and len(finished_games) == 1
    joined = tree.cat([*taken, finished_games.take(1)])
    assert torch.equal(joined.hiding.action, games.hiding.action[:7])
    assert torch.equal(joined.hiding.observation.image, games.hiding.observation.image[:7])
    with pytest.raises(ValueError, match="count"):
        finished_games.take(1)


def test_games_without_ps_are_left_out(chest):
    agent = eager_agent()
    with World([chest], copies=2, size=SMALL.image_size) as world:
        game = CacheGame(world, RandomEpisodes(1, first=Stage.OH), SHORT)
        collector = Collector(agent, [game], 1, hiding=True)
        collector.collect(40)
        assert game.episode.sum() > 2 and not len(collector.finished_games)


def test_a_game_takes_the_documented_amount_of_memory(chest):
    agent = Agent(SMALL)
    with World([chest], copies=2, size=SMALL.image_size) as world:
        game = CacheGame(world, RandomEpisodes(), LIMITS)
        buffer = HidingBuffer(agent, game)
        buffer.active[:], game.stage[:] = True, Stage.OH
        seen = observe(game)
        output = agent.act(agent.initial_state(2), seen, torch.ones(2, dtype=torch.bool))
        buffer.record_decision(seen, output.decision, torch.full((2,), action_index("Stand")))
        size = sum(bytes_of(value) for value in vars(buffer).values()) / 2
    assert 0.65e6 < size < 0.75e6, "as the module's docstring says, for the small networks"


def bytes_of(thing) -> int:
    """Bytes of all tensors in a tree of dataclasses."""
    if isinstance(thing, torch.Tensor):
        return thing.nbytes
    return sum(bytes_of(getattr(thing, f.name)) for f in fields(thing)) if is_dataclass(thing) else 0


TINY = TrainConfig.preset(
    "demo", task="cache", scenes=("FloorPlan401",), copies=3, unroll_length=8, minibatch_games=3, updates=8,
    checkpoint_interval=4, replay_size=64,
    stage_limits=(6, 1, 2, 3, 4), hiding_minibatch=2, manipulation_minibatch=2, agent=SMALL,
)  # fmt: skip


@pytest.mark.parametrize(
    ("splits", "clip", "sizes", "replays"), [(1, 0.0, [4], 0), (2, 0.0, [2, 2], 3), (3, 0.2, [2, 2, 2, 2], 1)]
)
def test_games_make_steps_of_perspective_simulation_and_of_hiding(splits, clip, sizes, replays, monkeypatch):
    config = replace(
        TINY, hiding_minibatch=4, hiding_splits=splits, hiding=HidingObjective(clip_coef=clip),
        mental_replays=replays,
    )  # fmt: skip
    with contextlib.closing(Trainer(config)) as trainer:
        collector, _ = trainer.start_segment()
        while len(collector.finished_games) < 4:
            collector.collect(8)
        steps = []
        step = trainer._optimizer_step

        def recorded(name, losses, weights, batch):
            steps.append((name, len(batch), "ps/outcome" in losses))
            return step(name, losses, weights, batch)

        monkeypatch.setattr(trainer, "_optimizer_step", recorded)
        metrics = trainer.train_hiding(collector)
    once = sizes[:splits] if splits < 3 else [2, 2]
    assert steps == [
        *(("perspective", size, True) for size in once),
        *(("perspective", once[0], False) for _ in range(replays)),
        *(("play", size, False) for size in sizes),
    ]
    assert metrics.keys() >= {"ps/outcome", "oh/policy_loss", "oh/grad_norm", "perspective/grad_norm"}


def test_whole_games_are_trained_and_a_resumed_run_is_exact(tmp_path):
    config = replace(
        TINY, agent=replace(SMALL, mental_offsets=True), hiding=HidingObjective(clip_coef=0.2), mental_replays=2,
        mental_games=5,
    )  # fmt: skip
    run = Run.begin(tmp_path / "whole", config)
    train(run)
    run.close()
    rows = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    logged = set().union(*(row["losses"] for row in rows))
    assert logged >= OH_LOSSES | EARLY_LOSSES | PS_LOSSES | {
        "em/policy_loss",
        "om/policy_loss",
        "s/policy_loss",
        "s/imitation",
    }
    for stage in ("em", "s"):
        occurred = [row["reward"][stage] is not None for row in rows]
        assert occurred == [f"{stage}/policy_loss" in row["losses"] for row in rows] and any(occurred)
    play = set().union(*(row["play"] for row in rows))
    assert play >= {"placed", "percentile", "found", "seeker_steps"}
    assert rows[-1]["games"] > 1
    shutil.copytree(tmp_path / "whole", tmp_path / "interrupted")
    shutil.rmtree(checkpoints(tmp_path / "interrupted")[-1])
    run = Run.open(tmp_path / "interrupted")
    train(run)
    run.close()
    one, other = (
        {file.name: file.read_bytes() for file in checkpoints(tmp_path / name)[-1].glob("*.safetensors")}
        for name in ("whole", "interrupted")
    )
    assert len(one) == 3 and one == other, "weights, optimizers and replay"


@pytest.mark.parametrize(
    "change",
    [
        {"stage_limits": (6, 2, 2, 3, 4)}, {"stage_limits": (6, 1)}, {"hiding_minibatch": 0},
        {"perspective_learning_rate": 0.0}, {"agent": PAPER, "hiding_minibatch": 10_000},
    ],
)  # fmt: skip
def test_invalid_values_are_refused(change):
    with pytest.raises(ValueError, match=next(reversed(change))):
        TrainConfig.preset("cache", **change)


@pytest.mark.parametrize(("field", "value"), [("gamma", 1.5), ("early", -1), ("mental", -0.1), ("typo", 1.0)])
def test_impossible_weights_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        HidingObjective(**{field: value})


def test_finished_games_consist_of_tensors_only(played):
    """So that a batch whose loss is not finite can be saved."""
    *_, games = played

    def only_tensors(thing) -> bool:
        return isinstance(thing, torch.Tensor) or all(only_tensors(getattr(thing, f.name)) for f in fields(thing))

    assert isinstance(games, FinishedBatch) and only_tensors(games)
