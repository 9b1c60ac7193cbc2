"""Training runs: resuming is exact, and unusable folders get a clear error."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from scrubjay.agent import memory
from scrubjay.agent.agent import Agent, load_agent
from scrubjay.agent.config import PAPER, SMALL
from scrubjay.agent.normalization import running_norms
from scrubjay.bench.learning import benchmark_config, measure
from scrubjay.errors import RunError, TrainingError, WeightsError
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.sim.world import World
from scrubjay.training.agent_player import load_player
from scrubjay.training.config import FEW_STEPS, PRESETS, TrainConfig, from_json, to_json
from scrubjay.training.hogwild import Worker, check_asynchronous, train_asynchronously
from scrubjay.training.learner import Objective
from scrubjay.training.optimizers import adapt_rate, cooled, make_optimizers, set_learning_rates
from scrubjay.training.run import Progress, Run, checkpoints, load_checkpoint, newest
from scrubjay.training.train import train
from scrubjay.training.trainer import Trainer

TINY = TrainConfig.preset(
    "demo", scenes=("FloorPlan401",), copies=2, unroll_length=4, minibatch_games=2, updates=4,
    checkpoint_interval=2, replay_size=64, agent=SMALL,
)  # fmt: skip


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("runs") / "uninterrupted"
    run = Run.begin(folder, TINY)
    train(run)
    run.close()
    return folder


def files_of(path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != "progress.json"}


def test_a_run_writes_its_folder(uninterrupted):
    rows = [json.loads(line) for line in (uninterrupted / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows] == [1, 2, 3, 4] and rows[-1]["steps"] == 4 * 4 * 2
    assert {"em/policy_loss", "em/value_loss", "em/entropy", "self_prediction", "change"} <= set(rows[0]["losses"])
    assert all(50 < row["memory_mib"]["host"] < 100_000 and row["memory_mib"]["gpu"] == 0 for row in rows)
    assert [path.name for path in checkpoints(uninterrupted)] == ["00000002", "00000004"]
    about = json.loads((uninterrupted / "run.json").read_text())
    assert from_json(json.dumps(about["config"])) == TINY


def test_a_resumed_run_equals_an_uninterrupted_one(uninterrupted, tmp_path):
    """Killed after its first checkpoint, with later lines in its log."""
    folder = tmp_path / "interrupted"
    shutil.copytree(uninterrupted, folder)
    shutil.rmtree(checkpoints(folder)[-1])
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join(lines[:3]) + '\n{"update": 4, "cut of')
    run = Run.open(folder)
    train(run)
    run.close()
    assert files_of(checkpoints(folder)[-1]) == files_of(checkpoints(uninterrupted)[-1])
    again = [json.loads(line)["losses"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert again == [json.loads(line)["losses"] for line in lines]


def test_stopping_writes_a_checkpoint_and_does_not_wait_for_a_validation(tmp_path):
    run = Run.begin(tmp_path / "run", replace(TINY, validation_games=1))
    seen = []
    train(run, report=seen.append, stop=lambda: len(seen) >= 1)
    run.close()
    assert len(seen) == 1 and [path.name for path in checkpoints(tmp_path / "run")] == ["00000001"]
    assert not (tmp_path / "run" / "validation.jsonl").exists()


SHORT_GAMES = replace(TINY, stage_limits=(3, 1, 2, 3, 4), updates=40, milestones=(0, 3, 6, 10_000), max_games=12)


@pytest.mark.parametrize("workers", [0, 1])
def test_milestones_are_kept_and_max_games_ends_a_run(workers, tmp_path):
    run = Run.begin(tmp_path / "run", SHORT_GAMES)
    progress = train_asynchronously(run, workers) if workers else train(run)
    run.close()
    assert 12 <= progress.games < 20 and progress.update < SHORT_GAMES.updates
    assert SHORT_GAMES.is_done(progress.update, progress.games)
    kept = sorted((tmp_path / "run" / "milestones").iterdir())
    assert [path.name for path in kept] == ["000000000000", "000000000003", "000000000006"]
    progresses = [json.loads((path / "progress.json").read_text()) for path in kept]
    assert [about["update"] > 0 for about in progresses] == [False, True, True]
    assert all(number <= about["games"] < 12 for number, about in zip((0, 3, 6), progresses, strict=True))
    torch.manual_seed(SHORT_GAMES.seed)
    new, first, last = Agent(SMALL).state_dict(), load_agent(kept[0]).state_dict(), load_agent(kept[2]).state_dict()
    assert all(torch.equal(new[name], first[name]) for name in new)
    assert any(not torch.equal(first[name], last[name]) for name in new)
    assert load_player(kept[1]).agent.config == SMALL


def test_a_milestone_is_written_once(tmp_path):
    """A killed run that passes it again keeps the first agent, and half a milestone is written anew."""
    folder = tmp_path / "run"
    run = Run.begin(folder, replace(SHORT_GAMES, checkpoint_interval=3, milestones=(0, 6), max_games=0, updates=6))
    train(run)
    run.close()
    passed, half = folder / "milestones" / "000000000006", folder / "milestones" / ".000000000006"
    before = files_of(passed)
    shutil.rmtree(checkpoints(folder)[-1])
    run = Run.open(folder)
    assert run.save_milestones(Agent(SMALL), Progress(9, 9, 9), games_before=5) == []
    train(run)
    assert files_of(passed) == before
    shutil.rmtree(passed)
    half.mkdir()
    (half / "config.json").write_text("{")
    assert run.save_milestones(Agent(SMALL), Progress(9, 9, 9), games_before=5) == [passed]
    assert load_agent(passed).config == SMALL and not half.exists()
    run.close()


def test_an_agent_is_loaded_from_its_run_and_plays(uninterrupted):
    player = load_player(uninterrupted, seed=1)
    with World(["FloorPlan401"], size=224) as world:
        game = CacheGame(world, RandomEpisodes(3))  # Images are resized to the agent's size.
        for _ in range(3):
            game.step(*player(game, game.episode > 0))
    assert game.time[0, 0] == 3


def test_unusable_folders_get_a_clear_error(uninterrupted, tmp_path):
    with pytest.raises(RunError, match="is a run already"):
        Run.begin(uninterrupted, TINY)
    with pytest.raises(RunError, match="is not a run"):
        Run.open(tmp_path)
    run = Run.open(uninterrupted)
    with pytest.raises(RunError, match="in use by another process"):
        Run.open(uninterrupted)
    run.close()
    folder = tmp_path / "damaged"
    shutil.copytree(uninterrupted, folder)
    (folder / "run.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(RunError, match="version"):
        Run.open(folder)


def test_a_damaged_checkpoint_is_refused_and_the_previous_one_works(uninterrupted, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(uninterrupted, folder)
    last = checkpoints(folder)[-1]
    data = bytearray((last / "optimizers.safetensors").read_bytes())
    data[-1] ^= 1
    (last / "optimizers.safetensors").write_bytes(data)
    run = Run.open(folder)
    trainer = Trainer(TINY)
    with pytest.raises(RunError, match="Delete this folder"):
        run.restore(trainer.agent, trainer.optimizers)
    shutil.rmtree(last)
    assert run.restore(trainer.agent, trainer.optimizers).update == 2
    trainer.close()
    run.close()


@pytest.mark.parametrize("text", ["[1, 2]", "{", '{"version": 3}', "null"])
def test_checkpoints_with_invalid_progress_are_refused(uninterrupted, tmp_path, text):
    shutil.copytree(uninterrupted, tmp_path / "damaged")
    path = checkpoints(tmp_path / "damaged")[-1]
    (path / "progress.json").write_text(text)
    with pytest.raises(RunError, match="Delete this folder"):
        load_checkpoint(path, Agent(SMALL), {})


@pytest.mark.parametrize(
    ("name", "value"),
    [("copies", 1.5), ("augment", "no"), ("updates", float("nan")), ("spots", 7), ("scenes", "FloorPlan1"),
     ("scenes", [1]), ("objective", {"gamma": "high"}), ("hiding", None), ("learning_rate", True), ("task", 3)],
)  # fmt: skip
def test_a_config_with_wrong_types_is_refused(name, value):
    data = json.loads(to_json(TINY))
    assert from_json(json.dumps(data)) == TINY
    with pytest.raises(ValueError, match=f"^{name}"):
        from_json(json.dumps({**data, name: value}))
    del data["hiding"]["early"]
    with pytest.raises(ValueError, match=r"hiding\.early: missing"):
        from_json(json.dumps(data))


def test_a_full_disk_leaves_no_partial_checkpoint(uninterrupted, tmp_path, monkeypatch):
    shutil.copytree(uninterrupted, tmp_path / "run")
    (tmp_path / "run" / "checkpoints" / ".00000012").mkdir()
    run, before = Run.open(tmp_path / "run"), checkpoints(tmp_path / "run")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scrubjay.training.run.write_atomically", full)
    with pytest.raises(RunError, match=r"No space left on device.*the checkpoints before it are intact"):
        run.save(Agent(SMALL), {}, Progress(9))
    run.close()
    assert checkpoints(tmp_path / "run") == before == sorted((tmp_path / "run" / "checkpoints").iterdir())


def test_a_loss_that_is_not_finite_stops_the_run_and_saves_its_batch(tmp_path, monkeypatch):
    run = Run.begin(tmp_path / "run", TINY)
    from scrubjay.training import learner

    monkeypatch.setattr(learner.losses, "self_prediction", lambda *_: torch.tensor(float("nan"), requires_grad=True))
    with pytest.raises(TrainingError, match="self_prediction; the batch is in"):
        train(run)
    run.close()
    (saved,) = (tmp_path / "run").glob("not_finite-*.safetensors")
    assert saved.stat().st_size > 10_000


def begin_from(folder, start, **changes) -> Run:
    """A new run, with another seed, that starts from another run's agent."""
    return Run.begin(folder, replace(TINY, seed=5, **changes), start)


def same_weights(first: Agent, second: Agent) -> bool:
    mine, other = first.state_dict(), second.state_dict()
    return mine.keys() == other.keys() and all(torch.equal(mine[name], other[name]) for name in mine)


def test_a_run_starts_from_another_runs_agent_with_fresh_optimizers(uninterrupted, tmp_path):
    run = begin_from(tmp_path / "run", uninterrupted)
    (first,) = checkpoints(tmp_path / "run")
    trainer = Trainer(run.config)
    assert not same_weights(trainer.agent, load_agent(checkpoints(uninterrupted)[-1]))
    assert run.restore(trainer.agent, trainer.optimizers) == Progress() and first.name == "00000000"
    assert same_weights(trainer.agent, load_agent(checkpoints(uninterrupted)[-1])), "the newest checkpoint's"
    assert not any(optimizer.state for optimizer in trainer.optimizers.values())
    trainer.close()
    run.close()
    weights = begin_from(tmp_path / "weights", checkpoints(uninterrupted)[0])
    assert same_weights(load_agent(checkpoints(tmp_path / "weights")[0]), load_agent(checkpoints(uninterrupted)[0])), (
        "or the given checkpoint's"
    )
    weights.close()


def test_a_run_can_start_with_a_seeker_that_acts_like_the_explorer(uninterrupted, tmp_path):
    begin_from(tmp_path / "run", uninterrupted, seek_like_explore=True).close()
    before, after = load_agent(checkpoints(uninterrupted)[-1]), load_agent(checkpoints(tmp_path / "run")[0])
    before.heads[Stage.S].copy_policy(before.heads[Stage.EM])
    assert same_weights(before, after)
    with pytest.raises(RunError, match="seek_like_explore: an agent that explores is needed"):
        Run.begin(tmp_path / "none", replace(TINY, seek_like_explore=True))
    assert not (tmp_path / "none").exists()


def test_a_run_started_from_another_runs_agent_resumes_exactly(uninterrupted, tmp_path):
    run = begin_from(tmp_path / "uninterrupted", uninterrupted)
    train(run)
    run.close()
    expected = checkpoints(tmp_path / "uninterrupted")
    assert [path.name for path in expected] == ["00000000", "00000002", "00000004"]
    assert files_of(expected[-1]) != files_of(checkpoints(uninterrupted)[-1])
    for kept in (1, 2):
        folder = tmp_path / f"interrupted after {kept}"
        shutil.copytree(tmp_path / "uninterrupted", folder)
        for later in checkpoints(folder)[kept:]:
            shutil.rmtree(later)
        run = Run.open(folder)
        train(run)
        run.close()
        assert files_of(checkpoints(folder)[-1]) == files_of(expected[-1])


def test_parts_that_the_starting_agent_lacks_begin_untrained(uninterrupted, tmp_path):
    config = replace(
        SMALL, separate_openable_head=True, openable_hidden=8, open_at_prior=True, hand_head=True, hiding_priors=True
    )
    run = begin_from(tmp_path / "run", uninterrupted, agent=config)
    run.close()
    before, after = load_agent(newest(uninterrupted)).state_dict(), load_agent(run.folder).state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert set(run.untrained) == after.keys() - before.keys() and run.untrained[0] == "heads.hand.bias"
    # The other way round something that was learned would be lost.
    with pytest.raises(RunError, match="separate_openable_head"):
        begin_from(tmp_path / "other", run.folder)


def test_other_imagined_maps_begin_untrained(uninterrupted, tmp_path):
    run = begin_from(tmp_path / "run", uninterrupted, agent=replace(SMALL, mental_offsets=True))
    run.close()
    before, after = load_agent(newest(uninterrupted)).state_dict(), load_agent(run.folder).state_dict()
    kept = {name for name in before if not name.startswith("perspective.")}
    assert all(torch.equal(after[name], before[name]) for name in kept)
    assert set(run.untrained) == after.keys() - kept and all(name.startswith("perspective.") for name in run.untrained)
    shared = "perspective.map_encoder.0.weight"
    assert not torch.equal(before[shared], after[shared]), "what was learned about other maps does not hold"


def test_an_unusable_start_gets_a_clear_error_and_leaves_no_folder(uninterrupted, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(RunError, match=r"its networks differ from the run's in image_size"):
        begin_from(out, uninterrupted, agent=PAPER)
    with pytest.raises(WeightsError, match="nowhere"):
        begin_from(out, tmp_path / "nowhere")
    run = Run.begin(tmp_path / "new", TINY)
    run.close()
    with pytest.raises(RunError, match="new has no checkpoint yet"):
        begin_from(out, tmp_path / "new")
    shutil.copytree(checkpoints(uninterrupted)[-1], tmp_path / "damaged")
    (weights,) = (tmp_path / "damaged").glob("weights-*")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(WeightsError, match="damaged"):
        begin_from(out, tmp_path / "damaged")
    assert not out.exists()


def test_a_folder_whose_first_checkpoint_failed_is_not_a_run(uninterrupted, tmp_path):
    """Otherwise it would silently resume from an untrained agent."""
    out = tmp_path / "run"
    out.mkdir()
    (out / "checkpoints").write_text("in the way")
    with pytest.raises(RunError, match="checkpoints"):
        begin_from(out, uninterrupted)
    assert not (out / "run.json").exists()


@pytest.mark.slow
def test_asynchronous_workers_start_from_another_runs_agent_too(uninterrupted, tmp_path):
    """With learning rates so small that the agent does not change."""
    still = {"learning_rate": 1e-12, "dynamics_learning_rate": 1e-12, "perspective_learning_rate": 1e-12}
    run = begin_from(tmp_path / "run", uninterrupted, scenes=("FloorPlan401", "FloorPlan402"), **still)
    progress = train_asynchronously(run, 2)
    run.close()
    assert progress.update == 4
    ended, began = load_agent(checkpoints(tmp_path / "run")[-1]), load_agent(checkpoints(uninterrupted)[-1])
    for (name, mine), its in zip(ended.named_parameters(), began.parameters(), strict=True):
        torch.testing.assert_close(mine, its, atol=1e-9, rtol=0, msg=name)


@pytest.fixture(scope="module")
def worker_after_update():
    """One of two workers after an update, its row of metrics, and the shared agent before and after."""
    torch.manual_seed(3)
    shared = Agent(SMALL)
    before = Agent(SMALL)
    before.load_state_dict(shared.state_dict())
    worker = Worker(TINY, 0, 2, shared, make_optimizers(shared, TINY))
    row = worker.update(*worker.start_segment())
    worker.close()
    return worker, row, before, shared


def test_a_workers_updates_and_running_statistics_are_shared(worker_after_update):
    worker, _, before, shared = worker_after_update
    assert same_weights(worker.agent, shared)
    changed_parts = [n for n, p in shared.named_parameters() if not torch.equal(p, before.get_parameter(n))]
    assert {"encoder.stem.weight", "heads.stages.EM.actor.weight"} <= set(changed_parts)
    for mine, its, old in zip(*map(running_norms, (worker.agent, shared, before)), strict=True):
        assert mine.mean is its.mean and mine.variance is its.variance and mine.batches is its.batches
        assert (mine.batches > old.batches) == (not torch.equal(mine.mean, old.mean))
    assert any(part.batches > 0 for part in running_norms(shared))


def test_a_worker_counts_its_own_steps(worker_after_update):
    assert worker_after_update[1]["steps"] == TINY.unroll_length * TINY.copies


def test_each_epoch_passes_over_the_whole_rollout():
    """Four games in minibatches of two: two optimizer steps per epoch."""
    for epochs, steps in ((1, 2), (2, 4)):
        trainer = Trainer(replace(TINY, copies=4, minibatch_games=2, epochs=epochs, objective=Objective(clip_coef=0.2)))
        trainer.update(*trainer.start_segment())
        trainer.close()
        assert {int(state["step"]) for state in trainer.optimizers["play"].state.values()} == {steps}


def test_every_parameter_has_its_optimizer():
    agent = Agent(SMALL)
    names = {id(parameter): name for name, parameter in agent.named_parameters()}
    optimizers = make_optimizers(agent, replace(TINY, head_lr_scale=3.0))
    every = {
        key: [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        for key, optimizer in optimizers.items()
    }
    for key, parameters in every.items():
        assert len(parameters) == len(set(parameters)), f"{key} has a parameter twice"
    play, perspective, dynamics = (set(every[key]) for key in ("play", "perspective", "dynamics"))
    assert play | perspective | dynamics == set(names.values())
    assert not perspective & (play | dynamics) and perspective == {n for n in names.values() if "perspective." in n}
    assert play & dynamics == {n for n in names.values() if n.startswith("encoder.")}
    last = {names[id(p)] for p in optimizers["play"].param_groups[1]["params"]}
    assert last == {
        f"heads.stages.{stage}.{part}.{what}"
        for stage in ("EM", "OH", "OM", "S") for part in ("actor", "critic") for what in ("weight", "bias")
    } | {
        *(f"heads.stages.{stage}.cell_filters.weight" for stage in ("EM", "OH", "OM", "S")),
        "heads.stages.OM.target_embedding.weight", "heads.stages.S.goal_filters.weight",
    }  # fmt: skip


@pytest.mark.parametrize("task", ["explore", "manipulate", "cache"])
def test_a_run_learns_with_all_stability_switches_on(task, tmp_path):
    config = replace(
        TINY, task=task, updates=2, unroll_length=24, stage_limits=(6, 1, 2, 3, 4), hiding_minibatch=2,
        manipulation_minibatch=2, learning_rate_schedule="linear", explore_reward_rotations=False,
        agent=replace(SMALL, separate_openable_head=True, critic_sees_time=True),
        objective=replace(TINY.objective, bootstrap_time_limits=True, gae_lambda=0.95),
        hiding=replace(TINY.hiding, bootstrap_time_limits=True),
    )  # fmt: skip
    run = Run.begin(tmp_path / "run", config)
    train(run)
    run.close()
    torch.manual_seed(config.seed)
    trained, first = load_agent(tmp_path / "run"), Agent(config.agent)
    assert trained.config == config.agent == Run.open(tmp_path / "run").config.agent
    stage = {"explore": "EM", "manipulate": "OM", "cache": "EM"}[task]
    for part in ("openable_filter.weight", "critic_hidden.weight", "time_embedding.weight", "critic.weight"):
        name = f"heads.stages.{stage}.{part}"
        assert not torch.equal(trained.get_parameter(name), first.get_parameter(name)), name
    assert all(torch.isfinite(parameter).all() for parameter in trained.parameters())
    assert [row["charts"]["learning_rate"] for row in run.rows()] == [config.learning_rate, config.learning_rate / 2]


def test_gradients_and_moments_lie_in_memory_as_their_parameters_do(tmp_path, monkeypatch):
    """Fused Adam refuses others. Grids are padded as on a GPU, where their convolutions' weights are channels-last."""
    monkeypatch.setitem(memory.ALIGNMENT, "cpu", 8)
    config = replace(
        TINY, task="cache", unroll_length=24, stage_limits=(6, 1, 2, 3, 4), hiding_minibatch=2, hiding_splits=1,
        manipulation_minibatch=2, agent=replace(SMALL, mental_offsets=True),
    )  # fmt: skip
    run, trainer = Run.begin(tmp_path / "run", config), Trainer(config)
    segment = trainer.start_segment()
    while not trainer.optimizers["perspective"].state:
        trainer.update(*segment)

    def differ(name: str, values: dict[str, torch.Tensor], parameter: torch.Tensor) -> list[str]:
        # The stride of a dimension of size 1 says nothing.
        strides = [
            [st for st, n in zip(t.stride(), t.shape, strict=True) if n > 1] for t in (parameter, *values.values())
        ]
        return [f"{name} {what}" for what, each in zip(values, strides[1:], strict=True) if each != strides[0]]

    def check(optimizers: dict[str, torch.optim.Adam]) -> int:
        checked, wrong = 0, []
        for name, optimizer in optimizers.items():
            for parameter, state in optimizer.state.items():
                values = {what: value for what, value in state.items() if value.shape == parameter.shape}
                values |= {"gradient": parameter.grad} if parameter.grad is not None else {}
                wrong += differ(f"{name} {tuple(parameter.shape)}", values, parameter)
                checked += len(values)
        assert not wrong
        return checked

    assert check(trainer.optimizers) > 400
    run.save(trainer.agent, trainer.optimizers, trainer.progress)
    trainer.close()
    agent = Agent(config.agent)
    optimizers = make_optimizers(agent, config)
    run.restore(agent, optimizers)
    run.close()
    assert check(optimizers) > 400


def test_learning_rates_fall_linearly_or_not_at_all():
    """Of four updates the third runs at half the rates."""
    agent = Agent(SMALL)
    for schedule, factors in (("constant", [1, 1, 1, 1]), ("linear", [1, 0.75, 0.5, 0.25])):
        config = replace(TINY, learning_rate_schedule=schedule, learning_rate=1e-3, head_lr_scale=3.0)
        optimizers = make_optimizers(agent, config)
        groups = [group for optimizer in optimizers.values() for group in optimizer.param_groups]
        first = [group["lr"] for group in groups]
        for update, factor in enumerate(factors):
            set_learning_rates(optimizers, config, Progress(update))
            assert [group["lr"] for group in groups] == pytest.approx([factor * rate for rate in first])
    set_learning_rates(optimizers, config, Progress(7))
    assert [group["lr"] for group in groups] == [0.0] * len(groups), "workers may be late"


def test_at_the_end_all_learning_rates_cool_down_and_adaptive_ones_no_longer_rise(tmp_path):
    """Of eight updates the last four run at 1, 3/4, 1/2 and 1/4 of the rates, whatever the divergence is."""
    agent = Agent(SMALL)
    for schedule, factor in (("constant", 1.0), ("adaptive", 0.5)):
        config = replace(TINY, learning_rate_schedule=schedule, cooldown=0.5, updates=8)
        optimizers = make_optimizers(agent, config)
        for update, cooling in enumerate([1, 1, 1, 1, 1, 0.75, 0.5, 0.25]):
            set_learning_rates(optimizers, config, Progress(update, rate=0.5))
            rates = {name: optimizer.param_groups[0]["lr"] for name, optimizer in optimizers.items()}
            assert rates["play"] == pytest.approx(config.learning_rate * factor * cooling)
            assert rates["perspective"] == pytest.approx(config.perspective_learning_rate * cooling)
    config = replace(TINY, learning_rate_schedule="adaptive", target_kl=9.0, cooldown=0.5, updates=4)
    run = Run.begin(tmp_path / "run", config)
    train(run)
    run.close()
    rates = [row["charts"]["learning_rate"] / config.learning_rate for row in run.rows()]
    assert rates == pytest.approx([0.1, 0.12, 0.144, 0.1728 / 2]), "every update stays far below its target"


def test_a_run_with_a_schedule_resumes_exactly_and_logs_its_rates(tmp_path):
    config = replace(TINY, learning_rate_schedule="linear", checkpoint_interval=1, updates=2)
    run = Run.begin(tmp_path / "whole", config)
    train(run)
    run.close()
    assert [row["charts"]["learning_rate"] for row in run.rows()] == [config.learning_rate, config.learning_rate / 2]
    shutil.copytree(tmp_path / "whole", tmp_path / "broken")
    shutil.rmtree(checkpoints(tmp_path / "broken")[-1])
    again = Run.open(tmp_path / "broken")
    train(again)
    again.close()
    assert [row["charts"]["learning_rate"] for row in again.rows()] == [config.learning_rate, config.learning_rate / 2]
    assert files_of(checkpoints(tmp_path / "broken")[-1]) == files_of(checkpoints(tmp_path / "whole")[-1])


def test_a_run_limited_by_games_cools_down_by_its_games():
    """Of 8 games the last half cools, whatever the update; of 4 updates the last two, whatever the games."""
    by_games = replace(TINY, updates=1000, max_games=8, cooldown=0.5)
    factors = [cooled(by_games, Progress(update=7, games=games)) for games in (0, 4, 6, 8, 9)]
    assert factors == [1, 1, 0.5, 0, 0] and not by_games.is_done(7, 7) and by_games.is_done(7, 8)
    by_updates = replace(by_games, updates=4, max_games=1000)
    assert [cooled(by_updates, Progress(update=update)) for update in (2, 3, 4)] == [1, 0.5, 0]


def test_a_run_of_whole_games_reaches_the_papers_milestones():
    config = PRESETS["cache"]
    assert config.max_games == max(config.milestones) == 4_500_000
    # Games early in training take 700 to 1,000 steps (results/learning.md).
    assert config.updates * config.games * config.unroll_length > 1_000 * config.max_games


def test_adaptive_rates_keep_the_divergence_near_its_target():
    """Within 1.5 times of the target they stay; beyond, they change by 1.2, between 0.01 and 1."""
    for kl, expected in ((0.019, 0.5), (0.031, 0.5 / 1.2), (0.013, 0.6), (0.0299, 0.5), (0.0134, 0.5)):
        assert adapt_rate(0.5, kl, target=0.02) == pytest.approx(expected), kl
    assert adapt_rate(0.011, 1.0, 0.02) == 0.01 and adapt_rate(0.9, 0.0, 0.02) == 1.0


def test_a_run_with_adaptive_rates_begins_low_follows_its_divergence_and_resumes_exactly(tmp_path):
    config = replace(TINY, learning_rate_schedule="adaptive", target_kl=1e-6, checkpoint_interval=2, updates=4)
    run = Run.begin(tmp_path / "whole", config)
    train(run)
    run.close()
    rates = [row["charts"]["learning_rate"] / config.learning_rate for row in run.rows()]
    assert rates == pytest.approx([0.1, 0.1 / 1.2, 0.1 / 1.2**2, 0.1 / 1.2**3]), "such a target is always missed"
    shutil.copytree(tmp_path / "whole", tmp_path / "broken")
    shutil.rmtree(checkpoints(tmp_path / "broken")[-1])
    again = Run.open(tmp_path / "broken")
    train(again)
    again.close()
    assert files_of(checkpoints(tmp_path / "broken")[-1]) == files_of(checkpoints(tmp_path / "whole")[-1])
    with pytest.raises(ValueError, match="HOGWILD! workers have no adaptive learning rates"):
        check_asynchronous(config)


def test_workers_share_one_schedule():
    config = replace(TINY, learning_rate_schedule="linear", learning_rate=1e-3, updates=10)
    shared = Agent(SMALL)
    optimizers = make_optimizers(shared, config)
    worker = Worker(config, 0, 1, shared, optimizers)
    worker.total_updates = 5  # Those of all workers; it has none yet.
    worker._schedule_learning_rates()
    worker.close()
    assert optimizers["play"].param_groups[0]["lr"] == pytest.approx(5e-4)
    assert worker.optimizers["play"].param_groups[0]["lr"] == pytest.approx(5e-4)


def test_output_layers_have_the_scaled_learning_rate():
    """Adam's first step equals the learning rate, whatever the gradient."""
    agent = Agent(SMALL).double()
    training = replace(TINY, learning_rate=1e-3, head_lr_scale=3.0, betas=(0.9, 0.95), perspective_learning_rate=1e-4)
    optimizers = make_optimizers(agent, training)
    before = {name: parameter.detach().clone() for name, parameter in agent.named_parameters()}
    for parameter in agent.parameters():
        parameter.grad = torch.full_like(parameter, 0.7)
    optimizers["play"].step()
    optimizers["perspective"].step()
    for name, parameter in agent.named_parameters():
        last = (".actor.", ".cell_filters.", ".goal_filters.", "OM.target_embedding.", ".critic.")
        rate = 1e-3 * (3 if any(part in name for part in last) else 1)
        rate = 1e-4 if name.startswith("perspective.") else 0.0 if name.startswith("dynamics.") else rate
        moved = before[name] - parameter.detach()
        torch.testing.assert_close(moved, torch.full_like(moved, rate), atol=1e-8, rtol=1e-4, msg=name)
    assert all(group["betas"] == (0.9, 0.95) for o in optimizers.values() for group in o.param_groups)


@pytest.mark.parametrize("name", ["explore", "manipulate", "seek", "cache"])
def test_benchmarks_use_the_presets_hyperparameters_or_the_papers(name):
    preset = benchmark_config(name, "preset", updates=7)
    assert (
        preset == replace(PRESETS[name], updates=7)
        and preset.epochs == FEW_STEPS["epochs"] > 1
        and preset.validation_games
    )
    paper = benchmark_config(name, "paper", updates=7)
    # Rollouts of 64 steps are twice as long: half as many go into one minibatch.
    length = preset.unroll_length
    rooms = {"scenes": preset.scenes, "copies": preset.copies}
    assert paper == TrainConfig(name, unroll_length=length, minibatch_games=320 * 32 // length, updates=7, **rooms)
    assert (paper.epochs, paper.learning_rate, paper.head_lr_scale, paper.objective) == (1, 1e-4, 1, Objective())


@pytest.mark.parametrize("task", ["explore", "cache"])
def test_benchmarks_measure_an_update_and_its_parts(task):
    result = measure(replace(TINY, task=task), "cpu", 1, Console(quiet=True))
    parts = {"collect", "learn", "replay", "render", "act", "game"} | (
        {"manipulation", "hiding"} if task == "cache" else set()
    )
    assert {name.removesuffix("_ms") for name in result if name.endswith("_ms")} == {"update", *parts}
    assert all(result[f"{name}_ms"] > 0 for name in ("update", "collect", "learn", "render", "act", "game"))
    assert result["steps_per_s"] == pytest.approx(1000 * 2 * 4 / result["update_ms"], rel=0.02)
    assert (result["task"], result["games"], result["unroll_length"], result["epochs"]) == (task, 2, 4, TINY.epochs)


def test_benchmarks_let_a_given_agent_learn():
    other = Agent(replace(SMALL, sir_channels=16))
    with pytest.raises(RuntimeError, match="size mismatch"):
        measure(TINY, "cpu", 1, Console(quiet=True), agent=other)
    agent, before = Agent(SMALL), []

    class Noted(Trainer):
        def start_segment(self):
            before.append({name: tensor.clone() for name, tensor in self.agent.state_dict().items()})
            return super().start_segment()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scrubjay.bench.learning.Trainer", Noted)
        measure(TINY, "cpu", 1, Console(quiet=True), agent=agent)
    assert all(torch.equal(before[0][name], tensor) for name, tensor in agent.state_dict().items())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "cook"}, "task"), ({"agent": "huge"}, "agent"), ({"scenes": ()}, "scenes"), ({"copies": 0}, "copies"),
        ({"unroll_length": 1}, "unroll_length"),
        ({"agent": PAPER, "minibatch_games": 1000}, "minibatch_games"), ({"learning_rate": 0.0}, "learning_rate"),
        ({"seed": -1}, "seed"), ({"epochs": 0}, "epochs: input should be greater than 0"),
        ({"epochs": 2, "objective": Objective()}, "epochs: 2 passes need PPO's clipping"),
        ({"difficulties": ("simple",)}, "difficulties.0: input should be 'easy', 'medium' or 'hard', not 'simple'"),
        ({"difficulties": ()}, "difficulties: tuple should have at least 1 item after validation, not 0"),
        ({"betas": (0.9,)}, "betas"), ({"betas": (0.9, 1.0)}, "betas"), ({"betas": (-0.1, 0.9)}, "betas"),
        ({"betas": (0.9, float("nan"))}, "betas"), ({"head_lr_scale": 0.0}, "head_lr_scale"),
        ({"head_lr_scale": float("inf")}, "head_lr_scale"), ({"validation_games": -1}, "validation_games"),
        ({"milestones": (0, -1)}, "milestones.1"), ({"max_games": -1}, "max_games"),
        ({"validation_scenes": ()}, "validation_scenes"), ({"validation_scenes": ("train:attic",)}, "unknown scene"),
        ({"replay_size": 10}, "replay_size: at least one batch"), ({"replay_group_share": 0.0}, "replay_group_share"),
        ({"replay_max_age": 0}, "replay_max_age"), ({"replay_batch_size": 0}, "replay_batch_size"),
    ],
)  # fmt: skip
def test_invalid_values_are_refused(change, message):
    with pytest.raises(ValueError) as caught:
        TrainConfig.preset("demo", **change)
    assert str(caught.value).startswith(message)


def test_splits_are_expanded_when_a_config_is_made():
    config = TrainConfig.preset("demo", scenes=("train:kitchen", "FloorPlan25"), validation_scenes=("test:bathroom",))
    assert config.scenes == (*(f"FloorPlan{n}" for n in range(1, 21)), "FloorPlan25")
    assert config.validation_scenes == tuple(f"FloorPlan{n}" for n in range(426, 431))
    assert from_json(to_json(config)) == config and "train:kitchen" not in to_json(config)
    rooms = {*range(1, 21), *range(201, 221)}
    assert {int(scene.removeprefix("FloorPlan")) for scene in PRESETS["cache"].scenes} == rooms
    rooms = {*range(21, 26), *range(221, 226)}
    assert {int(scene.removeprefix("FloorPlan")) for scene in PRESETS["cache"].validation_scenes} == rooms
    assert len(PRESETS["explore"].scenes) == 80 and len(PRESETS["explore"].validation_scenes) == 20
    assert PRESETS["cache"].games == PRESETS["explore"].games == 960


def test_configs_round_trip_through_json():
    for training in PRESETS.values():
        assert from_json(to_json(training)) == training
    with pytest.raises(ValueError, match="extra"):
        from_json(json.dumps({**json.loads(to_json(TrainConfig())), "extra": 1}))
    with pytest.raises(ValueError, match="unknown preset"):
        TrainConfig.preset("nothing")


@pytest.mark.slow
def test_workers_do_not_run_a_plain_script_again(tmp_path):
    """Spawned processes would import the main script; one without a `__main__` guard would start workers itself."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from scrubjay.training.config import TrainConfig\n"
        "from scrubjay.training.hogwild import train_asynchronously\n"
        "from scrubjay.training.run import Run\n"
        "print('once', flush=True)\n"
        "config = TrainConfig.preset('demo', scenes=('FloorPlan401',), copies=2, unroll_length=4, minibatch_games=2,\n"
        "                            updates=2, checkpoint_interval=2, replay_size=64)\n"
        "print(train_asynchronously(Run.begin(sys.argv[1], config), 1).update)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "run")], capture_output=True, text=True, timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["once", "2"]
