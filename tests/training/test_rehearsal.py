"""Exploring is rehearsed while manipulating is learned: episodes of E&M among those of OM, in training alone."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from scrubjay.envs.tasks import Explore, Manipulate
from scrubjay.game.actions import Stage
from scrubjay.game.episode import MixedEpisodes
from scrubjay.sim.world import World
from scrubjay.training.config import PRESETS, TrainConfig
from scrubjay.training.run import Run
from scrubjay.training.train import train
from scrubjay.training.trainer import Trainer
from scrubjay.training.validation import Validation

TINY = TrainConfig.preset(
    "demo", task="manipulate", scenes=("FloorPlan401",), copies=4, unroll_length=8, minibatch_games=4, updates=2,
    checkpoint_interval=1, replay_size=64, replay_batch_size=4, stage_limits=(6, 1, 2, 3, 4),
    practice=(0.5, 0.0, 0.0), validation_games=1, validation_scenes=("FloorPlan421",),
)  # fmt: skip


def test_episodes_are_mixed_by_their_share_and_depend_on_the_seed(chest):
    world = World([chest], copies=1, size=28)

    def first_stages(share: float, seed: int, count: int) -> list[Stage]:
        mixed = MixedEpisodes([Manipulate().sampler(1), Explore().sampler(2)], [1 - share, share], seed)
        return [mixed(world, 0).first for _ in range(count)]

    many = first_stages(0.2, 0, 1000)
    # 200 are expected, with a standard deviation of 12.6.
    assert 150 < many.count(Stage.EM) < 250 and set(many) == {Stage.EM, Stage.OM}
    assert first_stages(0.2, 0, 50) == many[:50] != first_stages(0.2, 1, 50)
    assert set(first_stages(0.0, 0, 50)) == {Stage.OM} and set(first_stages(1.0, 0, 50)) == {Stage.EM}
    world.close()


def test_a_manipulation_run_rehearses_exploring_and_validates_manipulating_alone(tmp_path):
    run = Run.begin(tmp_path / "run", TINY)
    train(run)
    rows, scores = run.rows(), run.rows("validation.jsonl")
    run.close()
    for row in rows:
        assert {f"{s}/{loss}" for s in ("em", "om") for loss in ("policy_loss", "value_loss", "entropy")} <= set(
            row["losses"]
        )
        assert {"om/hindsight", "om/attainable", "om/opening"} <= set(row["losses"])
        assert row["reward"]["em"] is not None and row["reward"]["om"] is not None and row["reward"]["s"] is None
    assert {row["update"] for row in scores} == {1, 2}
    assert all("hit_target" in row and "coverage_plus" not in row for row in scores)


def test_both_kinds_sit_in_one_rollout_and_never_change_into_each_other():
    trainer = Trainer(TINY)
    collector, _ = trainer.start_segment()
    rollout = collector.collect(16)
    stage, first = rollout.observation.stage, rollout.is_first
    assert rollout.stages == {Stage.EM, Stage.OM} == set(stage.flatten().tolist())
    for t, (before, after) in enumerate(pairwise(stage)):
        assert ((before == after) | first[t + 1]).all(), "a game of one stage ends before another begins"
    assert trainer.learner.objective.weights(rollout.stages).keys() == trainer.learner(rollout)[0].keys()
    trainer.close()


def test_without_a_share_and_in_other_tasks_episodes_are_the_tasks_own():
    alone = replace(TINY, practice=(0.0, 0.0, 0.0))
    for config in (alone, replace(alone, task="explore"), replace(alone, task="cache")):
        trainer = Trainer(config)
        mine, its = trainer._sampler(3), trainer.task.sampler(3)
        assert [mine(trainer.worlds[0], 0) for _ in range(20)] == [its(trainer.worlds[0], 0) for _ in range(20)]
        trainer.close()
    validation = Validation(TINY, games=1)
    specs = [validation.task.sampler(7)(World(validation.rooms, 1, size=28), 0).first for _ in range(20)]
    assert set(specs) == {Stage.OM}


def test_the_share_is_that_of_the_papers_pretraining():
    assert PRESETS["manipulate"].practice == (pytest.approx(85_000 / (85_000 + 1_800_000), abs=5e-4), 0, 0)
    for practice in ((-0.1, 0, 0), (1.1, 0, 0), (np.nan, 0, 0), (0.1, 0.1, 0), (0.1, 0, 0.1)):
        with pytest.raises(ValueError, match="practice"):
            replace(TINY, practice=practice)
