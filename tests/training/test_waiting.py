"""Games that wait in PS and think together, and lessons computed after the fact, against one step at a time."""

import numpy as np
import pytest
import torch
from helpers import Anywhere, eager_agent

from scrubjay import tree
from scrubjay.agent.agent import explored_maps
from scrubjay.agent.config import SMALL
from scrubjay.agent.mental_seeker import SEEKER_CLAIM
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.record import Recorder, replay
from scrubjay.sim.world import World
from scrubjay.training.episode_stats import EpisodeStats, EpisodicReturns
from scrubjay.training.learner import ROLLOUT_STAGES, Learner, Objective
from scrubjay.training.path_teacher import PathTeacher, teach
from scrubjay.training.rollout import Collector, _Unroll

THINK_EVERY = 7
SHORT = np.array([10, 1, 4, 5, 8])
TINY = np.array([3, 1, 2, 2, 3])
"""Games so short that a game that was taught reaches PS again within the same rollout."""


class WatchedCollector(Collector):
    """Notes what teachers need when a search begins, as if they were started then."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.begun, self.now, self.together = [], [0] * len(self.games), []

    def record_hiding(self, number, result, claimable):
        super().record_hiding(number, result, claimable)
        self.now[number] += 1
        games = self.hiding_buffers[number].seeking_begun
        if len(games):
            known = tree.map(torch.clone, self.hiding_buffers[number].hidden(games))
            self.begun.append((number, self.now[number], torch.from_numpy(games).to(self.device), known))

    def _choose_places(self, maps, here):
        self.together.append(len(here))
        return super()._choose_places(maps, here)


GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
CASES = [
    pytest.param((SHORT, "cpu"), id="short"),
    pytest.param((TINY, "cpu"), id="tiny"),
    pytest.param((SHORT, "cuda"), id="short-cuda", marks=GPU),
    pytest.param((TINY, "cuda"), id="tiny-cuda", marks=GPU),
]


@pytest.fixture(scope="module", params=CASES)
def collected(request, chest):
    """A collector of two worlds, its rollouts, and each world's step results and recorded games.

    On a GPU the worlds have streams of their own, and the agent's step is a CUDA graph.
    """
    limits, device = request.param
    agent = eager_agent().to(device)
    with torch.no_grad():
        # Claims are expected to succeed at some places, and at others not at all.
        agent.perspective.seeker.success.weight[SEEKER_CLAIM] *= 100
        agent.perspective.seeker.success.bias[SEEKER_CLAIM] -= 1
    results, records = [[], []], [[], []]
    size = SMALL.image_size
    with World([chest], 2, size=size, device=device) as one, World([chest], size=size, device=device) as other:
        games = [CacheGame(one, Anywhere(3), limits), CacheGame(other, Anywhere(4), limits)]
        recorders, chosen = [Recorder(game) for game in games], {}

        def on_step(number, game, result):
            results[number].append(result)
            records[number] += recorders[number].note(result, chosen[number])

        for number, game in enumerate(games):
            begin_step = game.begin_step

            def noted(action, place, waiting, number=number, begin_step=begin_step):
                chosen[number] = place
                begin_step(action, place, waiting)

            game.begin_step = noted
        collector = WatchedCollector(
            agent, games, 1, on_step=on_step, hiding=True, hiding_value=True, cuda_graph=device == "cuda",
            think_every=THINK_EVERY,
        )  # fmt: skip
        rollouts = [collector.collect(28) for _ in range(2)]
    return collector, rollouts, results, records


def test_waiting_steps_are_steps_of_ps_in_which_nothing_happens(collected):
    collector, rollouts, results, _ = collected
    rollouts = [tree.map(torch.Tensor.cpu, rollout) for rollout in rollouts]
    stage = torch.cat([rollout.observation.stage for rollout in rollouts])
    waited = torch.from_numpy(np.stack([np.concatenate([a.waited, b.waited]) for a, b in zip(*results, strict=True)]))
    assert waited.any() and (stage[waited] == Stage.PS).all()
    flags = ("success", "dones", "truncated", "hit", "opened", "claimable", "sighted", "is_first")
    for name in ("action", "reward", *flags):
        assert not torch.cat([getattr(rollout, name) for rollout in rollouts])[1:][waited[1:]].any(), name
    # A hider waits until the clock says so, or until all wait, and then takes one step.
    for t, b in ((stage == Stage.PS) & ~waited).nonzero().tolist():
        assert t % THINK_EVERY == 0 or (stage[t] == Stage.PS).all()
        assert t + 1 == len(stage) or stage[t + 1, b] == Stage.OH
    for t, b in (waited[:-1]).nonzero().tolist():
        assert t % THINK_EVERY and stage[t + 1, b] == Stage.PS
    assert collector.steps == (~waited).sum()
    assert max(collector.together) > 1, "games of both worlds think together"


def test_waiting_changes_no_loss_and_no_statistics(collected):
    """Rewards and dones of steps in PS are put to nonsense: nothing reads them."""
    collector, rollouts, _, _ = collected
    rollout = rollouts[0]
    choosing = rollout.observation.stage == Stage.PS
    learner = Learner(collector.agent, Objective())
    nonsense = type(rollout)(**{
        **vars(rollout),
        "action": torch.where(choosing, 5, rollout.action), "success": rollout.success | choosing,
        "opened": rollout.opened | choosing, "claimable": rollout.claimable | choosing,
        "reward": torch.where(choosing, 100.0, rollout.reward), "log_probs": rollout.log_probs - 9 * choosing,
    })  # fmt: skip
    with torch.no_grad():
        (losses, metrics), (same_losses, same_metrics) = learner(rollout), learner(nonsense)
    for name, value in (losses | metrics).items():
        torch.testing.assert_close((same_losses | same_metrics)[name], value, msg=name)
    returns = []
    for each in (rollout, nonsense):
        stats = EpisodeStats()
        EpisodicReturns(3).add(each, ROLLOUT_STAGES, stats)
        returns.append(stats.pop_means())
    assert returns[0] == returns[1]


@torch.no_grad()
def test_evaluating_a_rollout_gives_the_probabilities_its_actions_were_sampled_with(collected):
    """From the state before its first step: so snapshots and decisions are those of each step, with a graph too."""
    collector, rollouts, _, _ = collected
    tolerance = 1e-4 if collector.device.type == "cpu" else 2e-2  # Convolutions are in TF32.
    for rollout in rollouts:
        output = collector.agent.evaluate(rollout.state, rollout.observation, rollout.is_first)
        logs = output.decision.logits.float().log_softmax(-1).gather(-1, rollout.action[..., None])[..., 0]
        acting = rollout.observation.stage != Stage.PS
        torch.testing.assert_close(logs[acting], rollout.log_probs[acting], atol=tolerance, rtol=tolerance)


def test_recorded_games_hold_no_waiting_steps_and_replay(collected, chest):
    collector, _, results, records = collected
    assert sum(len(each) for each in records) > 3
    for number in range(2):
        finished = sum(int(result.finished.sum()) for result in results[number])
        assert len(records[number]) == finished
        for record in records[number][:4]:
            assert sum(name.startswith("PS") for name in record.actions) == 1
            with World([chest], size=SMALL.image_size, device=str(collector.device)) as world:
                steps = list(replay(record, world))
            assert len(steps) == len(record.actions)


def test_finished_games_are_those_of_both_worlds(collected):
    collector, _, results, _ = collected
    count = sum(int(result.finished.sum()) for each in results for result in each)
    # A choice that fails is left out; in an empty room none does.
    assert len(collector.finished_games) == count > 3
    games = collector.finished_games.take(count)
    collector.finished_games.add(games)
    # The hider hid at the place that it chose, on the map of its own game.
    _, origins = explored_maps(games.metric_map.entries)
    row, column, quarter = games.choice.place.unbind(-1)
    there = torch.stack([origins[:, 0] + column, origins[:, 1] - row, quarter], -1)
    assert torch.equal(games.hiding.observation.place[:, 0, :3], there)


@torch.no_grad()
def test_lessons_equal_those_of_teachers_started_when_a_search_begins(collected):
    collector, rollouts, _, _ = collected
    sizes = [len(game) for game in collector.games]
    seen = tree.cat([rollout.observation.place for rollout in rollouts])
    is_first = torch.cat([rollout.is_first for rollout in rollouts])
    expected = torch.full(is_first.shape, NOTHING, device=seen.device)
    for number, columns in enumerate(torch.arange(sum(sizes)).split(sizes)):
        teacher = PathTeacher(sizes[number], seen.device)
        active = torch.zeros(sizes[number], dtype=torch.bool, device=seen.device)
        for t in range(len(seen)):
            active &= ~is_first[t, columns]
            for world, time, games, (maps, place, outcome) in collector.begun:
                if (world, time) == (number, t):
                    explored, origin = explored_maps(maps.entries)
                    teacher.set(games, teach(collector.agent.perspective, explored, place, outcome), origin)
                    active[games] = True
            expected[t, columns] = torch.where(active, teacher.action(seen[t, columns]), NOTHING)
    taught = torch.cat([rollout.teacher_action for rollout in rollouts])
    if seen.is_cuda:  # Rounding depends on the batch, and a place where a claim just succeeds may be another.
        assert (taught == expected).float().mean() > 0.9 and torch.equal(taught >= 0, expected >= 0)
    else:
        assert torch.equal(taught, expected)
    assert len(taught[taught >= 0].unique()) > 1 and (taught >= 0).sum() > 10, "the test needs lessons"


def test_the_same_seed_collects_the_same_steps(chest):
    rollouts = []
    for _ in range(2):
        with World([chest], copies=2, size=SMALL.image_size) as world:
            game = CacheGame(world, Anywhere(3), TINY)
            collector = Collector(eager_agent(), [game], 1, hiding=True, hiding_value=True, think_every=4)
            rollouts.append(collector.collect(20))
    for (name, one), (_, other) in zip(*map(tree.leaves_with_path, rollouts), strict=True):
        assert torch.equal(one, other), name


@GPU
def test_deciding_does_not_wait_for_the_device(chest, monkeypatch):
    """So that the CPU steps one world while the GPU renders and acts in the other."""
    decide = _Unroll.decide

    def checked(self, last=False):
        torch.cuda.set_sync_debug_mode("error")
        try:
            decide(self, last)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    with World([chest], 4, size=SMALL.image_size, device="cuda") as world:
        game = CacheGame(world, Anywhere(3), SHORT)
        agent = eager_agent().cuda()
        collector = Collector(agent, [game], 1, hiding=True, hiding_value=True, cuda_graph=True, record_frames=True)
        collector.collect(30)
        monkeypatch.setattr(_Unroll, "decide", checked)
        stages = collector.collect(40).stages
    assert stages >= {Stage.EM, Stage.OH, Stage.OM, Stage.S}
