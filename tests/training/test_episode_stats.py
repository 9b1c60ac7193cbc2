"""Episode statistics during training: only whole games count, and games start at staggered ages."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from scrubjay.envs.tasks import Explore
from scrubjay.game.actions import Stage, action_index
from scrubjay.game.stages import LIMITS
from scrubjay.sim.world import World
from scrubjay.training.config import TrainConfig
from scrubjay.training.episode_stats import EpisodeStats, EpisodicReturns, TrackedGame
from scrubjay.training.trainer import Trainer

GAMES = 6
STAND = action_index("Stand")


@pytest.fixture
def world(empty):
    with World([empty], GAMES, size=28) as world:
        yield world


def stand(game: TrackedGame, steps: int) -> np.ndarray:
    """Plays without moving; (steps, B) bool: which games ended when."""
    return np.array([game.step(np.full(len(game), STAND)).finished for _ in range(steps)])


def test_a_whole_game_of_standing_covers_one_place(world):
    stats = EpisodeStats()
    game = TrackedGame(world, Explore().sampler(0), stats)
    finished = stand(game, LIMITS[Stage.EM])
    assert finished[-1].all() and not finished[:-1].any() and stats.games == GAMES
    assert stats.pop_means()["coverage"] == pytest.approx(1 / (2 * len(world.reachable[0])))


def test_staggered_games_end_at_different_times_and_their_first_episodes_do_not_count(world):
    stats, limit = EpisodeStats(), LIMITS[Stage.EM]
    game = TrackedGame(world, Explore().sampler(0), stats)
    game.stagger(np.random.default_rng(0))
    ages = game.time[:, Stage.EM].copy()
    assert len(set(ages.tolist())) > 1 and ages.min() >= 0 and ages.max() < limit
    finished = stand(game, limit)
    assert (finished.argmax(0) + 1 == limit - ages).all() and (finished.sum(0) == 1).all()
    assert stats.games == 0 and set(stats.pop_means()) == {"success", "em/success"}
    stand(game, limit)
    assert stats.games == GAMES
    assert stats.pop_means()["coverage"] == pytest.approx(1 / (2 * len(world.reachable[0])))


def test_the_success_of_open_at_counts_open_at_alone(world):
    stats = EpisodeStats()
    game = TrackedGame(world, Explore().sampler(0), stats)
    game.step(np.full(len(game), STAND))
    assert "em/open_at_success" not in stats.pop_means()
    cells = np.resize([action_index(f"OpenAt|{row},{column}") for row in range(1, 8) for column in range(1, 8)], GAMES)
    success = [game.step(np.roll(cells, turn)).success for turn in range(8)] + [
        game.step(np.full(GAMES, STAND)).success
    ]
    assert stats.pop_means()["em/open_at_success"] == pytest.approx(np.mean(success[:-1]))


def test_training_starts_with_staggered_games_reproducibly():
    trainer = Trainer(TrainConfig.preset("demo", scenes=("FloorPlan401",), copies=8, replay_batches=0))
    ages = [trainer.start_segment()[0].games[0].time[:, Stage.EM] for _ in range(2)]
    trainer.close()
    assert len(set(ages[0].tolist())) > 4
    assert (ages[0] == ages[1]).all()


def test_episodic_returns_by_hand():
    """One game: the end of a staggered exploration, a whole one, and a manipulation that the next rollout ends."""
    em, om = int(Stage.EM), int(Stage.OM)
    returns, stats = EpisodicReturns(1), EpisodeStats()
    for stage, dones in (
        ([em, em, em, om], [True, False, True, False]),
        ([om, em, em, em], [True, False, False, False]),
    ):
        rollout = SimpleNamespace(
            reward=torch.tensor([[1.0], [2.0], [4.0], [8.0]]), dones=torch.tensor(dones)[:, None],
            observation=SimpleNamespace(stage=torch.tensor(stage)[:, None]),
        )  # fmt: skip
        returns.add(rollout, (Stage.EM, Stage.OM), stats)
    assert stats.pop_means() == {
        "em/episodic_return": 6, "em/episodic_length": 2, "om/episodic_return": 9, "om/episodic_length": 2,
    }  # fmt: skip
