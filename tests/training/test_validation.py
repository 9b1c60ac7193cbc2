"""Validation: the same games for every player, hiding spots made once, and no effect on training."""

import json
import shutil
import tempfile
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from scrubjay.agent.agent import Agent, load_agent
from scrubjay.agent.config import SMALL
from scrubjay.envs.tasks import TASKS
from scrubjay.errors import PlacementError, SpotError
from scrubjay.evaluation.evaluate import play_episodes
from scrubjay.evaluation.scores import Score
from scrubjay.game.actions import Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.metrics import Summary
from scrubjay.placements.placements import Placement, Placements, placements_path, save_placements
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.training.agent_player import AgentPlayer
from scrubjay.training.config import TRAINABLE, TrainConfig
from scrubjay.training.run import Progress, Run, best_checkpoint, checkpoints, newest
from scrubjay.training.tasks import make_seek_task
from scrubjay.training.train import train
from scrubjay.training.trainer import Trainer
from scrubjay.training.validation import Validation, make_scripted_player, validate

SCENE = "FloorPlan421"
TINY = TrainConfig.preset(
    "demo", task="manipulate", scenes=("FloorPlan401",), copies=2, unroll_length=4, minibatch_games=2, updates=4,
    checkpoint_interval=2,
    replay_size=64,
)  # fmt: skip
SEEK = replace(TINY, task="seek", spot_candidates=2, validation_spot_candidates=2)


class RecordingPlayer:
    """A player that records the games it was given."""

    def __init__(self, player) -> None:
        self.player, self.games = player, None

    def __call__(self, game, games):
        if self.games is None:
            self.games = np.c_[game.goal, game.start, game.target].tolist()
        return self.player(game, games)


@pytest.fixture(scope="module")
def validation() -> Validation:
    return Validation(TINY, games=2, scenes=[SCENE])


def test_all_players_play_the_same_games_and_scores_are_reproducible(validation):
    torch.manual_seed(0)
    agent = Agent(SMALL)
    first, other = RecordingPlayer(AgentPlayer(agent, 7)), RecordingPlayer(validation.scripted("scripted"))
    scores, _ = validation.evaluate(first), validation.evaluate(other)
    assert first.games == other.games and len(first.games) == 2
    assert len(set(map(tuple, first.games))) == 2, "the two games differ"
    again = Validation(TINY, games=2, scenes=[SCENE])
    np.testing.assert_equal(again.evaluate(AgentPlayer(agent, 7)), scores)
    recording = RecordingPlayer(validation.scripted("random"))
    Validation(TINY, games=2, seed=8, scenes=[SCENE]).evaluate(recording)
    assert recording.games != first.games, "another seed samples other games"


def test_players_are_asked_for_games_that_have_not_ended_yet_alone(validation):
    asked, scripted = [], validation.scripted("scripted")

    def player(game, games):
        asked.append(games)
        assert (game.watched == games).all()
        return scripted(game, games)

    with World(validation.rooms, 6, size=112) as world:
        records = play_episodes(world, validation.task, player, 3, lambda *_: None)
    lengths = sorted(len(record.actions) for record in records)
    assert sorted(np.sum(asked, 0)) == lengths and len(set(lengths)) > 1
    assert (np.diff(np.array(asked, int), axis=0) <= 0).all(), "a game that has ended does not come back"


def test_unknown_players_are_refused(validation):
    assert set(TRAINABLE) <= set(TASKS)
    with pytest.raises(
        ValueError, match=r"unknown player 'nobody' of manipulate; there are random, possible, scripted"
    ):
        validation.scripted("nobody")


def test_hiding_spots_are_made_once_and_kept(tmp_path):
    task = make_seek_task([SCENE], SEEK, tmp_path / "spots", ["hard"])
    files = sorted((tmp_path / "spots").iterdir())
    assert len(task.spots) == len(files) == 5 and task.difficulties == ("hard",) and task.turned == SEEK.rotate_grid
    when = [file.stat().st_mtime_ns for file in files]
    assert make_seek_task([SCENE], SEEK, tmp_path / "spots").spots == task.spots
    assert [file.stat().st_mtime_ns for file in files] == when
    named = replace(SEEK, spots=str(tmp_path / "spots"))
    assert make_seek_task([SCENE], named, tmp_path / "others").spots == task.spots
    assert not (tmp_path / "others").exists(), "a run that names its spots makes none"
    assert make_seek_task([SCENE], replace(named, difficulties=("medium",))).difficulties == ("medium",)
    easy = Validation(named, scenes=[SCENE], difficulties=["easy"])
    assert easy.task.difficulties == ("easy",) and easy.task.spots == task.spots
    with pytest.raises(SpotError, match="FloorPlan422"):
        make_seek_task([SCENE, "FloorPlan422"], named)


def test_manipulating_is_trained_and_validated_on_placements(tmp_path):
    """In both, all targets are from the files; a room without a file is an error before any game."""
    pose, drop, here = (0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0), (action_index("DropObject"),), {}
    for scene in (*TINY.scenes, SCENE):
        x, y = build_room(scene).floor.reachable().positions[0].tolist()
        here[scene] = AgentPose(x, y, 90.0, True)
        for modality, goal in enumerate(GOALS):
            one = Placement(here[scene], here[scene], (modality % 3, modality, 6), (), pose, drop)
            save_placements(Placements(scene, goal, 1, (one,)), placements_path(tmp_path, scene, goal))
    config = replace(TINY, placements=str(tmp_path))
    trainer = Trainer(config)
    collector, _ = trainer.start_segment()
    for games in collector.games:
        assert (games.target[:, 1] == games.goal).all() and (games.target[:, 2] == 6).all()
        assert (games.start == here[TINY.scenes[0]]).all()
    trainer.close()
    validation = Validation(config, games=2, scenes=[SCENE])
    recording = RecordingPlayer(validation.scripted("random"))
    scores = validation.evaluate(recording)
    assert {tuple(game[1:5]) for game in recording.games} == {tuple(map(float, here[SCENE]))}
    assert all(game[5:] == [game[0] % 3, game[0], 6] for game in recording.games)
    assert {"hit_on_top", "hit_contained_in", "hit_behind"} & set(scores)
    with pytest.raises(PlacementError, match="FloorPlan422-Bread"):
        Validation(config, scenes=["FloorPlan422"])


def test_without_a_folder_no_hiding_spots_are_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert len(make_seek_task([SCENE], SEEK).spots) == 5 and not list(tmp_path.iterdir())


def test_a_resumed_run_drops_validations_later_than_its_checkpoint(tmp_path):
    run = Run.begin(tmp_path / "run", TINY)
    for update in (2, 4, 6):
        run.log({"update": update, "player": "agent"}, "validation.jsonl")
    with open(tmp_path / "run" / "validation.jsonl", "a") as file:
        file.write('{"update": 4, "cut of')
    run.rewind(Progress(update=4))
    run.close()
    assert [row["update"] for row in validation_rows(tmp_path / "run")] == [2, 4]


def test_playing_between_checkpoints_does_not_affect_training(validation):
    """Validation leaves no trace in the agent or the random state when training continues."""

    def train_weights(validated: bool) -> dict[str, torch.Tensor]:
        trainer = Trainer(TINY)

        def save() -> None:
            if validated and trainer.progress.update < TINY.updates:
                validation.evaluate(AgentPlayer(trainer.agent, validation.seed))
                trainer.agent.train()

        trainer.run(lambda row: None, lambda: False, save)
        trainer.close()
        return trainer.agent.state_dict()

    plain, validated = train_weights(False), train_weights(True)
    assert all(torch.equal(plain[name], tensor) for name, tensor in validated.items())


def test_the_checkpoint_with_the_best_score_stays(tmp_path):
    """Scores 0.2, 0.5, 0.5, 0.1, ... : the second checkpoint outlives the three newest; a better one replaces it."""
    run, agent = Run.begin(tmp_path / "run", TINY), Agent(SMALL)
    assert best_checkpoint(run.folder) is None
    kept = []
    for update, score in enumerate([0.2, 0.5, 0.5, 0.1, 0.4, 0.3, 0.6, None, 0.1, 0.2], 1):
        run.save(agent, {}, Progress(update))
        if score is not None:
            run.save_score(Progress(update), "hit_target", score)
        kept.append([int(path.name) for path in checkpoints(run.folder)])
    run.close()
    assert kept == [
        [1], [1, 2], [1, 2, 3], [2, 3, 4], [2, 3, 4, 5], [2, 4, 5, 6], [2, 5, 6, 7], [6, 7, 8], [7, 8, 9],
        [7, 8, 9, 10],
    ]  # fmt: skip
    best = best_checkpoint(run.folder)
    assert best.name == "00000007" and json.loads((best / "score.json").read_text()) == {
        "metric": "hit_target", "value": 0.6,
    }  # fmt: skip
    assert newest(run.folder).name == "00000010", "still the newest"
    (best / "score.json").write_text('{"value": "high')
    assert best_checkpoint(run.folder).name == "00000010", "an unreadable score is none"


def test_validation_scores_its_checkpoint_and_load_agent_takes_the_newest(tmp_path):
    class Falling:
        """Three validations, the first the best."""

        seed, values = 7, iter([0.4, 0.3, 0.2])

        def evaluate(self, player):
            value = next(self.values) if isinstance(player, AgentPlayer) else 0.9
            return {"hit_target": Summary(value, value, value, 20), "placed": Summary(1.0, 1.0, 1.0, 20)}

        def scripted(self, name):
            return make_scripted_player("manipulate", name, 7)

    run, agents = Run.begin(tmp_path / "run", TINY), [Agent(SMALL) for _ in range(3)]
    for number, agent in enumerate(agents, 1):
        run.save(agent, {}, Progress(2 * number))
        validate(run, Falling(), agent, Progress(2 * number))
    run.close()
    assert best_checkpoint(run.folder).name == "00000002"
    loaded, best = load_agent(run.folder), load_agent(best_checkpoint(run.folder))
    for other, agent in ((loaded, agents[2]), (best, agents[0])):
        assert torch.equal(other.encoder.stem.weight, agent.encoder.stem.weight)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_metric_to_validate_by(task):
    assert TASKS[task].validation_metric in {field.name for field in fields(Score)}


def validation_rows(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "validation.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def validated(tmp_path_factory):
    """A run with validations in all validation rooms, and its reported rows."""
    folder, reported = tmp_path_factory.mktemp("runs") / "validated", []
    run = Run.begin(folder, replace(TINY, validation_games=1))
    train(run, report=reported.append)
    run.close()
    return folder, reported


@pytest.mark.slow
def test_the_agent_plays_every_validation_and_the_baselines_the_first(validated):
    folder, reported = validated
    rows = validation_rows(folder)
    assert [(row["update"], row["player"]) for row in rows] == [
        (2, "agent"), (2, "random"), (2, "possible"), (2, "scripted"), (4, "agent"),
    ]  # fmt: skip
    for row in rows:
        mean, low, high, games = row["hit_target"]
        assert games == 20 and low <= mean <= high and row["steps"] == 8 * row["update"]
    reports = [row for row in reported if "validation" in row]
    assert [row["validation"]["hit_target"] for row in reports] == [
        r["hit_target"][0] for r in rows if r["player"] == "agent"
    ]
    assert [row["update"] for row in reported if "validation" not in row] == [1, 2, 3, 4]


@pytest.mark.slow
def test_validations_do_not_affect_training(validated, tmp_path):
    run = Run.begin(tmp_path / "plain", TINY)
    train(run)
    run.close()
    assert not (tmp_path / "plain" / "validation.jsonl").exists()
    for mine, other in zip(checkpoints(tmp_path / "plain"), checkpoints(validated[0]), strict=True):
        for name in ("config.json", "optimizers.safetensors"):  # The first names the weights' digest.
            assert (mine / name).read_bytes() == (other / name).read_bytes(), (mine.name, name)


@pytest.mark.slow
def test_a_resumed_run_has_the_validation_scores_of_an_uninterrupted_one(validated, tmp_path):
    folder = tmp_path / "interrupted"
    shutil.copytree(validated[0], folder)
    shutil.rmtree(checkpoints(folder)[-1])
    run = Run.open(folder)
    train(run)
    run.close()
    assert validation_rows(folder) == validation_rows(validated[0])


@pytest.mark.slow
def test_baselines_play_again_if_a_run_restarts_from_scratch(validated, tmp_path):
    """Its damaged checkpoints were deleted, as the error asks: all logged validations are later than its start."""
    folder = tmp_path / "again"
    shutil.copytree(validated[0], folder)
    shutil.rmtree(folder / "checkpoints")
    seen: list[dict] = []
    run = Run.open(folder)
    train(run, report=seen.append, stop=lambda: any("validation" in row for row in seen))
    run.close()
    assert {row["player"] for row in validation_rows(folder)} == {"agent", *TASKS["manipulate"].baselines}


def test_a_lower_temperature_prefers_likely_actions():
    agent = Agent(SMALL)
    agent.heads[Stage.EM].actor.bias.data[3] = 3.0
    with World(["FloorPlan401"], 40, "warp", 112) as world:
        game = CacheGame(world, RandomEpisodes(1, last=Stage.EM))
        shares = []
        for temperature in (1.0, 0.3):
            player = AgentPlayer(agent, 5, temperature)
            shares.append(np.mean(player(game, np.ones(40, bool))[0] == 3))
    # e^3 among 57 actions is a quarter; e^10 nearly everything.
    assert shares[0] < 0.6 and shares[1] > 0.9
    by_default = AgentPlayer(agent).temperatures
    assert by_default.tolist() == [1, 1, 1, 0.25, 1], "only the hand prefers likely actions"
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="temperature"):
            AgentPlayer(agent, temperature=wrong)
