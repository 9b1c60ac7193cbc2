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
from scrubjay.training.rollout import Collector

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
            self.begun.append((number, self.now[number], torch.from_numpy(games), known))

    def _choose_places(self, maps, here):
        self.together.append(len(here))
        return super()._choose_places(maps, here)


@pytest.fixture(scope="module", params=[SHORT, TINY], ids=["short", "tiny"])
def collected(request, chest):
    """A collector of two worlds, its rollouts, and each world's step results and recorded games."""
    agent = eager_agent()
    with torch.no_grad():
        agent.perspective.seeker.success.weight[SEEKER_CLAIM] *= 20
    results, records = [[], []], [[], []]
    with World([chest], copies=2, size=SMALL.image_size) as one, World([chest], size=SMALL.image_size) as other:
        games = [CacheGame(one, Anywhere(3), request.param), CacheGame(other, Anywhere(4), request.param)]
        recorders, chosen = [Recorder(game) for game in games], {}

        def on_step(number, game, result):
            results[number].append(result)
            records[number] += recorders[number].note(result, chosen[number])

        for number, game in enumerate(games):
            step = game.step

            def noted(action, place=None, waiting=None, number=number, step=step):
                chosen[number] = place
                return step(action, place, waiting)

            game.step = noted
        collector = WatchedCollector(agent, games, 1, on_step=on_step, hiding=True, think_every=THINK_EVERY)
        rollouts = [collector.collect(28) for _ in range(2)]
    return collector, rollouts, results, records


def test_waiting_steps_are_steps_of_ps_in_which_nothing_happens(collected):
    collector, rollouts, results, _ = collected
    stage = torch.cat([rollout.observation.stage for rollout in rollouts])
    waited = torch.from_numpy(np.stack([np.concatenate([a.waited, b.waited]) for a, b in zip(*results, strict=True)]))
    assert waited.any() and (stage[waited] == Stage.PS).all()
    for name in ("action", "reward", "success", "dones", "truncated", "hit", "opened", "claimable", "is_first"):
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


def test_recorded_games_hold_no_waiting_steps_and_replay(collected, chest):
    _, _, results, records = collected
    assert sum(len(each) for each in records) > 3
    for number in range(2):
        finished = sum(int(result.finished.sum()) for result in results[number])
        assert len(records[number]) == finished
        for record in records[number][:4]:
            assert sum(name.startswith("PS") for name in record.actions) == 1
            with World([chest], size=SMALL.image_size) as world:
                steps = list(replay(record, world))
            assert len(steps) == len(record.actions)


def test_finished_games_are_those_of_both_worlds(collected):
    collector, _, results, _ = collected
    count = sum(int(result.finished.sum()) for each in results for result in each)
    # A choice that fails is left out; in an empty room none does.
    assert len(collector.finished_games) == count > 3


@torch.no_grad()
def test_lessons_equal_those_of_teachers_started_when_a_search_begins(collected):
    collector, rollouts, _, _ = collected
    sizes = [len(game) for game in collector.games]
    seen = tree.cat([rollout.observation.place for rollout in rollouts])
    is_first = torch.cat([rollout.is_first for rollout in rollouts])
    expected = torch.full(is_first.shape, NOTHING)
    for number, columns in enumerate(torch.arange(sum(sizes)).split(sizes)):
        teacher, active = PathTeacher(sizes[number], seen.device), torch.zeros(sizes[number], dtype=torch.bool)
        for t in range(len(seen)):
            active &= ~is_first[t, columns]
            for world, time, games, (maps, place, outcome) in collector.begun:
                if (world, time) == (number, t):
                    explored, origin = explored_maps(maps.entries)
                    teacher.set(games, teach(collector.agent.perspective, explored, place, outcome), origin)
                    active[games] = True
            expected[t, columns] = torch.where(active, teacher.action(seen[t, columns]), NOTHING)
    taught = torch.cat([rollout.teacher_action for rollout in rollouts])
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
