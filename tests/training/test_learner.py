"""Rollouts against the games they come from, and the losses computed from them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import check_without_values

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.agent.normalization import commit_norms
from scrubjay.game.actions import Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.training.actor_critic import compute_gae, total_loss
from scrubjay.training.learner import (
    Learner,
    Objective,
    at_episode_end,
    episode_ends,
    episode_ids,
    opened_before,
    relabel_targets,
)  # fmt: skip
from scrubjay.training.rollout import Collector

LIMITS = np.array([8, 1, 3, 4, 6])


def column(*values) -> torch.Tensor:
    return torch.tensor(values)[:, None]


def test_episodes_by_hand():
    """Exploring, a choice, hiding, two steps of manipulation, hiding; then a new game in the same stage."""
    stage = column(0, 0, 1, 2, 3, 3, 2, 0, 0)
    is_first = column(False, False, False, False, False, False, False, True, False)
    assert episode_ids(stage, is_first).flatten().tolist() == [0, 0, 1, 2, 3, 3, 4, 5, 5]
    begun_within = episode_ids(stage, is_first) > 0
    assert begun_within.flatten().tolist() == [False, False, *[True] * 7]
    assert episode_ids(stage, is_first, torch.tensor([0])).flatten().tolist() == [0, 0, 1, 2, 3, 3, 4, 5, 5]
    assert episode_ids(stage, is_first, torch.tensor([4])).flatten().tolist() == [1, 1, 2, 3, 4, 4, 5, 6, 6]
    manipulating = stage == 3
    ended = column(False, True, True, False, False, True, False, False, False)
    assert episode_ends(manipulating, ended).flatten().tolist() == [-1, -1, -1, -1, 5, 5, -1, -1, -1]
    assert at_episode_end(stage * 10, episode_ends(manipulating, ended))[4].item() == 30
    assert episode_ends(stage == 0, ended).flatten().tolist() == [1, 1, -1, -1, -1, -1, -1, -1, -1], (
        "the last one does not end"
    )
    opened = column(False, True, False, False, False, True, False, False, True)
    assert opened_before(opened, episode_ids(stage, is_first)).flatten().tolist() == [*[False] * 9]
    assert opened_before(opened, torch.zeros(9, 1, dtype=torch.long)).flatten().tolist() == [False, False, *[True] * 7]


def test_targets_are_relabeled_to_where_the_object_landed():
    observation = collect_rollouts(Stage.OM)[1].observation
    other = relabel_targets(observation.target, torch.where(observation.stage == Stage.OM, 49 + 2 * 7 + 3, -1))
    assert (other == torch.tensor([1, 2, 3])).all()
    assert torch.equal(relabel_targets(observation.target, torch.full_like(observation.stage, -1)), observation.target)


def test_hindsight_imitates_the_actions_with_the_target_where_the_object_landed():
    """Against two passes: the second game misses at its sixth step, the first one hits, and a later one has no end."""
    agent, rollout, *_ = collect_rollouts(Stage.OM)
    step, is_first = torch.arange(12)[:, None], torch.zeros(12, 2, dtype=torch.bool)
    is_first[[0, 6]] = True
    ended = ((step == 5) & torch.tensor([True, True])) | ((step == 11) & torch.tensor([True, False]))
    landed = torch.where(ended, torch.tensor([4 * 7 + 2, 49 + 2 * 7 + 3]), -1)
    observation = replace(rollout.observation, stage=torch.full_like(rollout.action, int(Stage.OM)))
    rollout = replace(
        rollout, observation=observation, is_first=is_first, dones=ended, landed=landed,
        hit=ended & torch.tensor([True, False]), stages=frozenset({int(Stage.OM)}),
    )  # fmt: skip
    losses, _ = Learner(agent, Objective(hindsight=2.0))(rollout)
    missed = (step < 6) & torch.tensor([False, True])
    target = torch.where(missed[..., None], torch.tensor([1, 2, 3]), observation.target)
    with torch.no_grad():
        again = agent.evaluate(rollout.state, replace(observation, target=target), is_first).decision.logits
    logs = again.log_softmax(-1).gather(-1, rollout.action[..., None])[..., 0]
    assert losses["om/hindsight"].item() == pytest.approx(-logs[missed].mean().item(), rel=1e-4)
    plain, _ = Learner(agent, Objective(hindsight=0.0))(rollout)
    assert plain.keys() == losses.keys() and plain.pop("om/hindsight") == 0, "not computed if its weight is 0"
    for name, loss in plain.items():
        assert losses[name].item() == pytest.approx(loss.item(), rel=1e-4, abs=1e-6), name


_CACHE: dict = {}


def collect_rollouts(first: Stage, chest=None, worlds: int = 1):
    """An agent, two rollouts of games that start with a stage, and the step results; cached."""
    if (first, worlds) not in _CACHE:
        torch.manual_seed(0)
        agent = Agent(SMALL)
        all_worlds = [World([_CACHE["chest"]], copies=2, size=SMALL.image_size) for _ in range(worlds)]
        last = first if first == Stage.OM else Stage.S
        games = [
            CacheGame(world, RandomEpisodes(3 + k, first=first, last=last), LIMITS)
            for k, world in enumerate(all_worlds)
        ]
        results = []
        collector = Collector(
            agent, games, seed=1, on_step=lambda number, game, result: results.append((number, result))
        )
        rollouts = [collector.collect(12), collector.collect(12)]
        for world in all_worlds:
            world.close()
        _CACHE[first, worlds] = agent, rollouts, results
    agent, rollouts, results = _CACHE[first, worlds]
    return agent, rollouts[0], rollouts[1], results


@pytest.fixture(autouse=True)
def _room(chest):
    _CACHE["chest"] = chest


def test_a_rollout_equals_the_step_results():
    _, first, second, results = collect_rollouts(Stage.EM)
    for t in range(24):
        rollout, result = (first if t < 12 else second), results[t][1]
        step = t % 12
        assert (rollout.observation.stage[step].numpy() == result.stage).all()
        assert (rollout.success[step].numpy() == result.success).all()
        assert (rollout.dones[step].numpy() == result.ended).all()
        assert (rollout.truncated[step].numpy() == result.truncated).all()
        assert (rollout.terminated[step].numpy() == result.terminated).all()
        acted = result.stage != Stage.PS
        assert (rollout.action[step].numpy() == result.action)[acted].all()
        if t:
            assert (rollout.is_first[step].numpy() == results[t - 1][1].finished).all()
    assert {int(s) for s in torch.cat([first.observation.stage, second.observation.stage]).flatten()} >= {0, 1, 2}
    assert torch.equal(first.last.place, second.observation.place[0]), "the next rollout continues where this one ends"
    assert torch.equal(first.last.image, second.observation.image[0])


def test_evaluating_a_rollout_gives_the_probabilities_its_actions_were_sampled_with():
    agent, first, second, _ = collect_rollouts(Stage.EM)
    for rollout in (first, second):
        with torch.no_grad():
            output = agent.evaluate(rollout.state, rollout.observation, rollout.is_first)
        logs = output.decision.logits.log_softmax(-1).gather(-1, rollout.action[..., None])[..., 0]
        acted = rollout.observation.stage != Stage.PS
        torch.testing.assert_close(logs[acted], rollout.log_probs[acted], atol=1e-4, rtol=1e-3)


def test_the_games_of_two_worlds_are_concatenated():
    _, rollout, _, results = collect_rollouts(Stage.EM, worlds=2)
    assert rollout.action.shape == (12, 4) and rollout.state.stage.shape == (4,)
    assert [number for number, _ in results[:4]] == [0, 1, 0, 1]
    assert (rollout.success[0, 2:].numpy() == results[1][1].success).all()
    part = rollout.games(slice(2, 4))
    assert torch.equal(part.observation.image, rollout.observation.image[:, 2:]) and part.bootstrap_value.shape == (2,)
    mixed = rollout.games(torch.tensor([3, 0]))
    assert torch.equal(mixed.observation.image, rollout.observation.image[:, [3, 0]])
    assert (
        torch.equal(mixed.state.recurrent.grid, rollout.state.recurrent.grid[[3, 0]]) and mixed.stages == rollout.stages
    )


@pytest.mark.parametrize("first", [Stage.EM, Stage.OM])
def test_every_loss_is_finite_and_has_a_gradient(first):
    agent, rollout, _, _ = collect_rollouts(first)
    learner = Learner(agent, Objective())
    losses, metrics = learner(rollout)
    named = {"self_prediction", "change"} | (
        {"om/opening", "om/attainable", "om/hindsight"} if first == Stage.OM else set()
    )
    played = {"om"} if first == Stage.OM else {"em"}
    assert rollout.stages == set(rollout.observation.stage.flatten().tolist())
    assert set(losses) >= named | {
        f"{s}/{k}" for s in played for k in ("policy_loss", "value_loss", "entropy", "openable")
    }
    assert not any(name.startswith("om") for name in losses) or Stage.OM in rollout.stages
    assert set(metrics) >= {f"{s}/{k}" for s in played for k in ("approx_kl", "explained_variance")}
    for name, loss in (losses | metrics).items():
        assert torch.isfinite(loss) and loss.ndim == 0, name
    assert not any(value.requires_grad for value in metrics.values())
    agent.zero_grad()
    total_loss(losses, learner.objective.weights(rollout.stages)).backward()
    for part in ("encoder", "memory", "heads"):
        for name, parameter in getattr(agent, part).named_parameters():
            assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name
    stem = agent.encoder.stem.weight.grad
    assert stem is not None and stem.abs().sum() > 0
    agent.zero_grad()


def test_declared_stages_without_steps_add_no_loss_and_no_gradient():
    """So that all minibatches of whole games have the same losses."""
    agent, rollout, _, _ = collect_rollouts(Stage.EM)
    assert Stage.OM not in rollout.stages or Stage.S not in rollout.stages
    learner, gradients, losses = Learner(agent, Objective(exploring=0.5)), [], []
    for given in (rollout, replace(rollout, stages=frozenset(Stage))):
        agent.zero_grad()
        losses.append(learner(given)[0])
        total_loss(losses[-1], learner.weights(given)).backward()
        gradients.append({name: p.grad.clone() for name, p in agent.named_parameters() if p.grad is not None})
    agent.zero_grad()
    plain, declared = losses
    assert declared.keys() > plain.keys()
    for name, loss in declared.items():
        torch.testing.assert_close(loss, plain.get(name, torch.zeros(())), rtol=1e-4, atol=1e-6, msg=name)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[1].items():
        torch.testing.assert_close(gradient, gradients[0][name], rtol=1e-3, atol=1e-5, msg=name)


def test_a_seeker_imitates_the_explorer_until_something_could_be_claimed_and_the_explorer_does_not_change():
    agent, _, rollout, _ = collect_rollouts(Stage.OH)
    seeking = rollout.observation.stage == Stage.S
    assert seeking.any()
    learner = Learner(agent, Objective(exploring=0.5))
    some = replace(rollout, sighted=torch.zeros_like(rollout.sighted))
    loss = learner(some)[0]["s/exploring"]
    agent.zero_grad()
    loss.backward()
    heads = agent.heads.stages
    assert loss > 0 and heads["S"].actor.weight.grad.any() and not heads["EM"].actor.weight.grad.any()
    agent.zero_grad()
    assert learner(replace(rollout, sighted=seeking))[0]["s/exploring"] == 0
    assert not {"s/exploring", "s/visible"} & Learner(agent, Objective())(rollout)[0].keys()


def test_an_object_that_could_be_claimed_stays_sighted_until_its_search_ends(chest):
    """Searches of eight steps for a loaf in front of the agent or at its side, which acts at random; two rollouts."""
    torch.manual_seed(0)
    results = []

    def search(world: World, number: int) -> EpisodeSpec:
        start = AgentPose(0.0, -0.5, 90.0 * (number % 2), True)
        return EpisodeSpec("Bread", start, Stage.S, Stage.S, pose=(0.0, 0.4, 0.1, 1.0, 0.0, 0.0, 0.0))

    with World([chest], copies=16, size=SMALL.image_size) as world:
        game = CacheGame(world, search, np.array([1, 1, 1, 1, 8]))
        collector = Collector(Agent(SMALL), [game], 1, on_step=lambda number, game, result: results.append(result))
        rollouts = [collector.collect(12) for _ in range(2)]
    claimable, sighted = (
        torch.cat([getattr(each, name) for each in rollouts]).numpy() for name in ("claimable", "sighted")
    )
    expected, seen = np.zeros_like(sighted), np.zeros(16, bool)
    for t, result in enumerate(results):
        expected[t] = seen | claimable[t]
        seen = expected[t] & ~result.finished
    np.testing.assert_array_equal(sighted, expected)
    assert (sighted & ~claimable).any() and (sighted & ~claimable)[12].any(), "it turned away, also between rollouts"
    assert (sighted[:-1] & ~sighted[1:]).any(), "the next search begins without"


def test_seeing_trains_the_filters_of_the_goal_object():
    agent, _, rollout, _ = collect_rollouts(Stage.OH)
    seeking = rollout.observation.stage == Stage.S
    learner = Learner(agent, Objective(visible=0.5))
    assert learner.weights(rollout)["s/visible"] == 0.5
    agent.zero_grad(set_to_none=True)
    some = replace(rollout, claimable=seeking & (torch.arange(seeking.shape[1]) % 2 == 0))
    learner(some)[0]["s/visible"].backward()
    head = agent.heads[Stage.S]
    assert head.goal_filters.weight.grad.any() and head.actor.weight.grad is None
    agent.zero_grad()


def test_knowing_where_the_hand_is_trains_the_memory_and_no_actor():
    _, _, rollout, _ = collect_rollouts(Stage.OM)
    agent = Agent(replace(SMALL, hand_head=True))
    learner = Learner(agent, Objective(hand=0.3))
    held_cell = torch.full((*rollout.action.shape, 2), 2.5)
    rollout = replace(rollout, held_cell=held_cell)
    assert learner.weights(rollout)["om/hand"] == 0.3
    losses, _ = learner(rollout)
    assert losses.keys() == learner.weights(rollout).keys()
    losses["om/hand"].backward()
    assert agent.heads.hand.weight.grad.any() and agent.memory.grid_conv.weight.grad.any()
    assert agent.heads[Stage.OM].actor.weight.grad is None
    assert "om/hand" not in learner.weights(replace(rollout, held_cell=None))


def test_a_learner_of_some_stages_has_their_losses_alone():
    agent, rollout, _, _ = collect_rollouts(Stage.EM)
    rollout = replace(rollout, stages=frozenset(Stage))
    every, _ = Learner(agent, Objective())(rollout)
    some = Learner(agent, Objective(), {Stage.EM, Stage.S})
    parts, metrics = some(rollout)
    assert parts.keys() == some.weights(rollout).keys() == {n for n in every if not n.startswith("om/")}
    assert all(torch.allclose(loss, every[name], rtol=1e-4, atol=1e-6) for name, loss in parts.items())
    assert {name.split("/")[0] for name in metrics} == {"em", "s"}
    alone = Learner(agent, Objective(), {Stage.OM}, shared=False)
    assert alone(rollout)[0].keys() == alone.weights(rollout).keys() == {n for n in every if n.startswith("om/")}


@pytest.mark.parametrize("first", [Stage.EM, Stage.OM])
def test_learning_never_looks_at_values(first, monkeypatch):
    """A CUDA graph of it can be captured."""
    rollout = replace(collect_rollouts(first)[1], stages=frozenset(Stage))
    learner = Learner(Agent(SMALL).to("meta"), Objective(clip_coef=0.2, normalize_advantages=True))
    check_without_values(learner.agent, learner, learner.weights(rollout), rollout, monkeypatch)


def test_shared_losses_weigh_every_stage_alike_however_many_steps_it_has():
    """Self-prediction and change localization against a loop over steps."""
    agent, rollout, _, _ = collect_rollouts(Stage.EM)
    stage, (length, games) = rollout.observation.stage, rollout.action.shape
    episode = episode_ids(stage, rollout.is_first)
    with torch.no_grad():
        mixed, _ = Learner(agent, Objective())(rollout)
        step = agent.evaluate(rollout.state, rollout.observation, rollout.is_first, rollout.stages)
        seen = agent.project_sir(step.encoded.sir).unflatten(0, (length, games))
        expected = agent.predict_sir(step.dirs.flat[:-1], rollout.action[:-1])
        features, change = step.encoded.skips[0].unflatten(0, (length, games)), step.dirs.change.flatten(-2).softmax(-1)
    of_stage: dict[int, list[float]] = {}
    changes: dict[int, list[float]] = {}
    for game in range(games):
        for t in range(length - 1):
            if episode[t + 1, game] == episode[t, game]:
                same = (episode[:, game] == episode[t, game]).nonzero()[:, 0].tolist()
                logits = {i: float(expected[t, game] @ seen[i, game]) / seen.shape[-1] ** 0.5 for i in same}
                loss = np.log(sum(np.exp(value) for value in logits.values())) - logits[t + 1]
                of_stage.setdefault(int(stage[t, game]), []).append(loss)
                differ = (features[t + 1, game] - features[t, game]).norm(dim=0) > 1e-3
                side = differ.shape[-1] // 7
                cells = [
                    differ[y * side : (y + 1) * side, x * side : (x + 1) * side] for y in range(7) for x in range(7)
                ]
                mass = [
                    p for p, cell in zip(change[t + 1, game].tolist(), cells, strict=True) if cell.float().mean() >= 0.1
                ]
                if mass:
                    changes.setdefault(int(stage[t, game]), []).append(-np.log(sum(mass)))
    assert len(of_stage) >= 2 and Stage.PS not in of_stage and len({len(steps) for steps in of_stage.values()}) > 1
    sum_of_means = sum(np.mean(steps) for steps in of_stage.values())
    assert mixed["self_prediction"].item() == pytest.approx(sum_of_means, rel=1e-4)
    assert mixed["change"].item() == pytest.approx(sum(np.mean(steps) for steps in changes.values()), rel=1e-4) != 0


def test_every_loss_has_the_objectives_weight():
    objective = Objective(
        entropy=0.02, vf_coef=0.03, self_prediction=0.04, change=0.05, openable=0.06, open_closed=0.07, hindsight=0.08,
        opening=0.09, attainable=0.1, demonstration=0.11, claiming=0.12, imitation=0.13,
    )  # fmt: skip
    shared = {"self_prediction": 0.04, "change": 0.05}
    acting = {"policy_loss": 1.0, "value_loss": 0.03, "entropy": -0.02, "openable": 0.06}
    em = {f"em/{name}": weight for name, weight in acting.items()} | {"em/open_closed": 0.07}
    om = {f"om/{name}": weight for name, weight in acting.items()}
    om |= {"om/hindsight": 0.08, "om/opening": 0.09, "om/attainable": 0.1}
    s = {f"s/{name}": weight for name, weight in acting.items()}
    s |= {"s/open_closed": 0.07, "s/claiming": 0.12, "s/imitation": 0.13}
    assert objective.weights(set(Stage)) == shared | em | om | s
    assert objective.weights({Stage.EM}) == shared | em and objective.weights({Stage.OM}, shared=False) == om
    assert replace(objective, openable=0.0, open_closed=0.0).weights({Stage.S}) == shared | {
        name: weight for name, weight in s.items() if "open" not in name
    }
    _, rollout, _, _ = collect_rollouts(Stage.OM)
    learner = Learner(Agent(SMALL), objective)
    never = torch.zeros_like(rollout.success)
    demonstrated = replace(rollout, demonstrated=never, imitated=never)
    assert learner.weights(demonstrated) == shared | om | {"om/demonstration": 0.11}
    total = total_loss({"a": torch.tensor(2.0), "b": torch.tensor(5.0)}, {"a": 0.5, "b": -1.0})
    assert total.item() == -4.0


def test_each_stages_returns_update_its_norm_and_scale_its_value_loss():
    agent, rollout, _, _ = collect_rollouts(Stage.EM)
    other = Agent(SMALL)
    other.load_state_dict(agent.state_dict())
    other.heads[Stage.EM].return_norm.variance.fill_(4)
    losses, _ = Learner(other, Objective(normalize_advantages=True))(rollout)
    with torch.no_grad():
        output = other.evaluate(rollout.state, rollout.observation, rollout.is_first).decision
    ahead = compute_gae(rollout.reward, output.value, rollout.bootstrap_value, rollout.dones)
    stage, target = rollout.observation.stage, (ahead + output.value).numpy()
    exploring = (stage == Stage.EM).numpy()
    error, gain = (target - output.value.numpy())[exploring] / 2, ahead.numpy()[exploring]
    logs = output.logits.log_softmax(-1).gather(-1, rollout.action[..., None])[..., 0].numpy()[exploring]
    assert losses["em/value_loss"].item() == pytest.approx(0.5 * (error**2).mean(), rel=1e-3)
    expected = -((gain - gain.mean()) / gain.std() * logs).mean()
    assert losses["em/policy_loss"].item() == pytest.approx(expected, rel=1e-3, abs=1e-4)
    commit_norms(other)
    for which in (Stage.EM, Stage.OH, Stage.OM, Stage.S):
        updated = which in rollout.stages and which != Stage.OH
        returns, its = other.heads[which].return_norm, target[(stage == which).numpy()]
        assert returns.batches == updated, "OH is trained later"
        if updated:
            assert returns.mean.item() == pytest.approx(its.mean(), rel=1e-3, abs=1e-4)
            assert returns.variance.item() == pytest.approx(its.var(), rel=1e-3, abs=1e-5)
    assert other.heads[Stage.EM].return_norm.batches == 1


def test_the_learner_bootstraps_at_time_limits_if_configured():
    agent, rollout, _, _ = collect_rollouts(Stage.OM)
    # The first game's manipulations are cut by their limit, the second one's end by the rules.
    rollout = replace(rollout, truncated=rollout.dones & torch.tensor([True, False]))
    assert rollout.truncated.any() and rollout.terminated.any()
    means = {}
    for bootstrap in (False, True):
        other = Agent(SMALL)
        other.load_state_dict(agent.state_dict())
        other.heads[Stage.OM].return_norm.mean.fill_(3)
        with torch.no_grad():
            values = other.evaluate(rollout.state, rollout.observation, rollout.is_first).decision.value
        Learner(other, Objective(gamma=0.9, bootstrap_time_limits=bootstrap))(rollout)
        commit_norms(other)
        means[bootstrap] = other.heads[Stage.OM].return_norm.mean.item()
    returns = torch.zeros_like(rollout.reward)
    for bootstrap in (False, True):
        following = rollout.bootstrap_value
        for t in reversed(range(len(rollout))):
            limit = values[t] if bootstrap else torch.zeros(2)
            following = torch.where(rollout.terminated[t], 0, torch.where(rollout.truncated[t], limit, following))
            returns[t] = following = rollout.reward[t] + 0.9 * following
        mine = rollout.observation.stage == Stage.OM
        assert means[bootstrap] == pytest.approx(returns[mine].mean().item(), rel=1e-3, abs=1e-5)
    assert means[True] > means[False] + 0.5


def test_an_agent_learns_the_rewarded_action():
    """Turning right is rewarded, everything else costs: a few updates make it likely."""
    torch.manual_seed(1)
    agent = Agent(SMALL)
    right = action_index("RotateRight")
    learner, optimizer = Learner(agent, Objective(hindsight=0)), torch.optim.Adam(agent.parameters(), 3e-3)
    with World([_CACHE["chest"]], copies=4, size=SMALL.image_size) as world:
        collector = Collector(agent, [CacheGame(world, RandomEpisodes(last=Stage.EM))], seed=2)
        shares = []
        for _ in range(14):
            rollout = collector.collect(8)
            paid = torch.where(rollout.action == right, 1.0, -0.1)
            losses, _ = learner(type(rollout)(**{**vars(rollout), "reward": paid}))
            optimizer.zero_grad()
            total_loss(losses, learner.objective.weights(rollout.stages)).backward()
            optimizer.step()
            shares.append(rollout.log_probs.exp()[rollout.action == right].mean().item())
    assert shares[0] < 0.03 and shares[-1] > 0.15, shares


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gamma", 1.5), ("gae_lambda", 1.01), ("gamma", float("nan")), ("entropy", -1), ("claiming", float("inf")),
        ("vf_coef", "1"), ("normalize_advantages", 2), ("typo", 0.1),
    ],
)  # fmt: skip
def test_invalid_hyperparameters_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        Objective(**{field: value})
