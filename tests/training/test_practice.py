"""Stages that are practiced among whole games: episodes of their own, learned from as the stages of whole games are."""

import contextlib
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from scrubjay.agent.config import SMALL
from scrubjay.envs.tasks import Explore, Manipulate, Seek
from scrubjay.game.actions import Stage
from scrubjay.game.episode import MixedEpisodes
from scrubjay.placements.episodes import Demonstration
from scrubjay.placements.generate import make_placements
from scrubjay.spots.spots import DIFFICULTIES, Spots
from scrubjay.training.config import TrainConfig
from scrubjay.training.hogwild import check_asynchronous
from scrubjay.training.run import Progress, Run, checkpoints
from scrubjay.training.train import train
from scrubjay.training.trainer import Trainer

TINY = TrainConfig.preset(
    "cache", scenes=("FloorPlan401",), copies=6, unroll_length=12, minibatch_games=6, manipulation_minibatch=2,
    hiding_minibatch=2, replay_batches=0, stage_limits=(6, 1, 2, 50, 12), agent=SMALL, augment=False,
)  # fmt: skip


@pytest.fixture(scope="module")
def trainer():
    """Of games that practice E&M, OM with demonstrations, and S, and are never whole."""
    with contextlib.closing(Trainer(TINY)) as trainer:
        placements = [make_placements(trainer.rooms[0], "Cup", 6)]
        trainer.config = replace(
            TINY, practice=(0.2, 0.7, 0.1), demonstration_share=0.5, placements="in memory", checkpoint_interval=99
        )
        trainer.practice = [
            (Explore(), 0.2),
            (Manipulate(placements=placements, goals=("Cup",), turned=True), 0.7),
            (Seek(goals=("Cup",)), 0.1),
        ]
        yield trainer


def test_episodes_have_their_shares(trainer):
    sampler = trainer._sampler(3)
    assert isinstance(sampler, MixedEpisodes)
    specs = [sampler(trainer.worlds[0], 0) for _ in range(60)]
    kinds = Counter((spec.first, spec.last) for spec in specs)
    # 12, 42 and 6 are expected, with standard deviations of 3.1, 3.5 and 2.3.
    assert kinds.keys() == {(Stage.EM, Stage.EM), (Stage.OM, Stage.OM), (Stage.S, Stage.S)}
    assert 3 <= kinds[Stage.EM, Stage.EM] <= 22 and 31 <= kinds[Stage.OM, Stage.OM] <= 53
    shown = [isinstance(spec, Demonstration) for spec in specs if spec.first == Stage.OM]
    assert 0.2 < np.mean(shown) < 0.8


def test_all_stages_are_learned_and_demonstrations_are_imitated(trainer):
    collector, replay = trainer.start_segment()
    seen, losses = Counter(), {}
    batches = []
    keep = trainer.manipulations.minibatches

    def kept(*args):
        for batch in keep(*args):
            batches.append(batch.rollout)
            yield batch

    trainer.manipulations.minibatches = kept
    played = {}
    for _ in range(5):
        row = trainer.update(collector, replay)
        losses |= row["losses"]
        played |= row["play"]
        seen.update(np.concatenate([game.stage for game in collector.games]).tolist())
    assert set(seen) == {Stage.EM, Stage.OM, Stage.S} and not len(collector.finished_games)
    # None of these is a game, and their statistics are not those of games.
    assert trainer.progress.games == 0 and not played.keys() & {"coverage", "hit", "found"}
    assert played.keys() >= {"practice/coverage", "practice/hit", "practice/found"}
    for name in ("em/value_loss", "s/value_loss", "om/value_loss", "om/demonstration", "s/claiming"):
        assert np.isfinite(losses[name]), name
    assert not any(name.startswith(("oh/", "mental")) for name in losses)
    assert all(torch.isfinite(parameter).all() for parameter in trainer.agent.parameters())
    # A manipulation is demonstrated from its first step to its last, and then hits its target.
    kinds = set()
    for rollout in batches:
        steps = rollout.observation.stage == Stage.OM
        every, none = ((shown | ~steps).all(0) for shown in (rollout.demonstrated, ~rollout.demonstrated))
        assert (every ^ none).all() and rollout.hit.any(0)[every].all()
        kinds |= set(every.tolist())
    assert kinds == {True, False}


def test_a_manipulation_that_was_practiced_begins_without_a_map(trainer):
    collector, _ = trainer.start_segment()
    rollout = collector.collect(60)
    trainer.manipulations.add(rollout)
    short, _ = trainer.manipulations.ready(1)
    (batch,) = trainer.manipulations.minibatches([1, 0] if short else [0, 1], 1, 1)
    with torch.no_grad():
        kept = trainer.manipulation.agent.evaluate(
            batch.rollout.state, batch.rollout.observation, batch.rollout.is_first, batch.rollout.stages
        )
        played = trainer.agent.evaluate(rollout.state, rollout.observation, rollout.is_first, rollout.stages)
    # The same step as it was played, found by its image.
    image = batch.rollout.observation.image[0, 0]
    same = (rollout.observation.image == image).flatten(2).all(2) & rollout.is_first
    t, b = same.nonzero()[0].tolist()
    torch.testing.assert_close(kept.decision.logits[0, 0], played.decision.logits[t, b], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("task", "practice"), [("explore", (0.5, 0, 0)), ("cache", (0.5, 0.4, 0.2)), ("cache", (-0.1, 0, 0))]
)
def test_shares_that_do_not_fit_are_refused(task, practice):
    with pytest.raises(ValueError, match="practice"):
        TrainConfig.preset(task, practice=practice)


def test_practice_makes_demonstrations_possible():
    assert TrainConfig.preset("pretrain", placements="folder", demonstration_share=0.3).practice[1] > 0.5
    with pytest.raises(ValueError, match="demonstration_share"):
        TrainConfig.preset("cache", placements="folder", demonstration_share=0.3)


def test_only_searches_of_spots_begin_near():
    assert (
        TrainConfig.preset("pretrain", near_share=0.5).near_share
        == TrainConfig.preset("seek", near_share=0.5).near_share
    )
    with pytest.raises(ValueError, match="near_share"):
        TrainConfig.preset("explore", near_share=0.5)


def test_searches_begin_near_in_training_alone(trainer):
    before = trainer.config
    try:
        trainer.config = replace(before, near_share=0.4)
        seeking = Seek(goals=("Cup",), spots=[Spots("FloorPlan401", "Cup", 9, dict.fromkeys(DIFFICULTIES, ()))])
        assert trainer._eased(seeking.sampler(0)).in_given_spots.near == 0.4
        assert seeking.sampler(0).in_given_spots.near == 0
    finally:
        trainer.config = before


def test_whole_games_join_after_pretraining(trainer):
    before, practice = trainer.config, trainer.practice
    try:
        trainer.config = replace(before, practice=(0.1, 0.35, 0.05), pretraining_updates=3, checkpoint_interval=2)
        trainer.practice = [(task, share / 2) for task, share in practice]
        for update, whole in ((0, False), (2, False), (3, True)):
            trainer.progress = Progress(update)
            sampler = trainer._sampler(3)
            kinds = Counter((spec.first, spec.last) for spec in (sampler(trainer.worlds[0], 0) for _ in range(40)))
            assert ((Stage.EM, Stage.S) in kinds) == whole and (Stage.OM, Stage.OM) in kinds
        # Games restart where pretraining ends, and every two updates.
        assert [trainer.config.next_checkpoint(update) for update in range(6)] == [2, 2, 3, 4, 6, 6]
    finally:
        trainer.config, trainer.practice, trainer.progress = before, practice, Progress()


def test_the_milestone_of_no_games_is_the_pretrained_agent(tmp_path):
    config = replace(
        TINY, copies=2, minibatch_games=2, stage_limits=(3, 1, 2, 2, 3), practice=(0.5, 0.0, 0.0), updates=3,
        pretraining_updates=2, checkpoint_interval=10, milestones=(0,), validation_games=0,
    )  # fmt: skip
    run = Run.begin(tmp_path / "run", config)
    train(run)
    (milestone,) = (run.folder / "milestones").iterdir()
    assert json.loads((milestone / "progress.json").read_text())["update"] == 2
    assert [path.name for path in checkpoints(run.folder)] == ["00000002", "00000003"]
    with pytest.raises(ValueError, match="pretraining_updates"):
        replace(config, practice=(0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match="pretraining_updates"):
        check_asynchronous(replace(config, learning_rate_schedule="constant"))
