"""Training from the command line: in one process, interrupted and resumed, and in two processes."""

import ast
import filecmp
import inspect
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
import tyro
from helpers import run_command

from scrubjay.agent import weights
from scrubjay.agent.agent import Agent, load_agent
from scrubjay.agent.config import SMALL as SMALL_AGENT
from scrubjay.agent.config import AgentConfig
from scrubjay.cli.train import Command, defaults
from scrubjay.study.encoders import load_encoder
from scrubjay.training.actor_critic import ActorCriticObjective
from scrubjay.training.config import PRESETS, TrainConfig
from scrubjay.training.hiding_learner import HidingObjective
from scrubjay.training.learner import Objective
from scrubjay.training.run import Run, checkpoints
from scrubjay.training.train import train

SMALL = ["--scenes", "FloorPlan401", "--copies", "2", "--minibatch-games", "2", "--checkpoint-interval", "2"]


def command(*args: str, **more) -> list[str]:
    return [sys.executable, "-m", "scrubjay", *args]


def run(*args: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(*args), capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )


def test_a_run_is_trained_resumed_and_refused(tmp_path, monkeypatch, capsys):
    out = tmp_path / "run"
    done = run("train", "demo", "--out", str(out), "--updates", "2", *SMALL)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout.splitlines()[-1])
    assert output["update"] == 2 and output["steps"] == 2 * 2 * 16
    assert list((out / "tensorboard").iterdir())
    again = run("train", "demo", "--out", str(out), *SMALL)
    assert again.returncode == 2 and "is a run already" in again.stderr and "Traceback" not in again.stderr
    other = ["train", "demo", "--out", str(tmp_path / "other"), "--copies", "0"]
    code, _, errors = run_command(monkeypatch, capsys, *other)
    assert code == 2 and "copies: input should be greater than 0" in errors and not (tmp_path / "other").exists()
    code, printed, _ = run_command(monkeypatch, capsys, "train", "--resume", str(out))
    assert code == 0 and json.loads(printed)["update"] == 2


def test_an_interrupted_run_writes_a_checkpoint(tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        command("train", "demo", "--out", str(out), "--updates", "500", "--scenes", "FloorPlan401", "--copies", "2"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    log = out / "metrics.jsonl"
    until = time.monotonic() + 200
    while not (log.exists() and log.read_text().count("\n") >= 2) and time.monotonic() < until:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    output = json.loads(stdout.splitlines()[-1])
    assert output["update"] >= 2 and checkpoints(out)[-1].name == f"{output['update']:08d}"
    assert "continue with" in stderr


def test_a_new_run_starts_from_another_runs_agent(tmp_path, monkeypatch, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    code, _, output = run_command(monkeypatch, capsys, "train", "demo", "--out", str(first), "--updates", "1", *SMALL)
    assert code == 0, output
    begin = ["train", "demo", "--out", str(second), "--start", str(first), "--updates", "2", *SMALL]
    code, printed, output = run_command(monkeypatch, capsys, *begin)
    assert code == 0 and json.loads(printed)["update"] == 2, output
    assert [path.name for path in checkpoints(second)] == ["00000000", "00000002"]
    assert filecmp.cmp(checkpoints(first)[-1] / "config.json", checkpoints(second)[0] / "config.json", shallow=False)
    code, _, output = run_command(monkeypatch, capsys, "train", "--resume", str(second), "--start", str(first))
    assert code == 2 and "--start: for a new run" in output
    other = str(tmp_path / "other")
    code, _, output = run_command(monkeypatch, capsys, "train", "explore", "--out", other, "--start", str(first))
    assert (
        code == 2
        and "its networks differ from the run's in image_size (112, not 224)" in output
        and not (tmp_path / "other").exists()
    )
    code, _, output = run_command(
        monkeypatch, capsys, "train", "demo", "--out", other, "--start", str(tmp_path / "nowhere")
    )
    assert code == 2 and "nowhere" in output and not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("args", "output"),
    [
        (("--scenes", "FloorPlan999"), "unknown scene 'FloorPlan999'"), (("--scenes", "kitchen-abc"), "unknown scene"),
        (("--asynchronous", "-1"), "asynchronous: 0 or more"), (("--seed", str(2**64)), "seed: input should be less"),
        (("--copies", "100000000"), "copies: at most 65,536 games"), (("--minutes", "0"), "minutes: a number above 0"),
        (("--objective.entropy", "-1"), "objective: entropy: input should be greater than or equal to 0, not -1.0"),
        (("--objective.gamma", "2"), "objective: gamma: input should be less than or equal to 1, not 2.0"),
        (("--hiding.early", "-1"), "hiding: early: input should be greater than or equal to 0, not -1"),
        (("--minutes", "nan"), "minutes: a number above 0"), (("--device", "tpu"), "unknown device 'tpu'"),
        (("--resume", "somewhere", "--updates", "3"), "--updates: for a new run"),
        (("--resume", "somewhere", "--start", "elsewhere"), "--start: for a new run"),
        (("--resume", "somewhere", "--numbers", "paper"), "--numbers: for a new run"),
        (("--numbers", "paper", "--objective.openable", "1"), "objective.openable: heads that do not read cells"),
    ],
)  # fmt: skip
def test_invalid_flags_leave_no_run_behind(args, output, tmp_path, monkeypatch, capsys):
    code, _, errors = run_command(monkeypatch, capsys, "train", "demo", "--out", str(tmp_path / "run"), *args)
    errors = " ".join(errors.replace("│", " ").split())
    assert code == 2 and output in errors and "Traceback" not in errors and not (tmp_path / "run").exists()


def parse(*words: str) -> TrainConfig:
    """The config of `scrubjay train` with these words."""
    return tyro.cli(Command, args=words, default=defaults(words)).config


@pytest.mark.parametrize("name", PRESETS)
def test_the_papers_numbers_are_a_flag(name):
    assert parse(name) == parse(name, "--numbers", "ours") == PRESETS[name]
    assert parse(name, "--numbers", "paper") == TrainConfig.preset(name, numbers="paper")
    for words in (("--numbers", "paper", "--agent", "small"), ("--agent", "small", "--numbers=paper")):
        small = replace(SMALL_AGENT, memory=PRESETS[name].agent.memory)  # Sizes do not change the kind of agent.
        assert parse(name, *words) == TrainConfig.preset(name, numbers="paper", agent=small)


def test_flags_win_over_the_papers_numbers_wherever_they_stand():
    flags = [
        "--learning-rate", "3e-4", "--objective.entropy", "0.05", "--hiding.gamma", "0.9", "--agent.running-norms",
        "--no-augment", "--agent.lstm", "96",
    ]  # fmt: skip
    paper = TrainConfig.preset("explore", numbers="paper", agent=SMALL_AGENT)
    wanted = replace(
        paper, learning_rate=3e-4, objective=replace(paper.objective, entropy=0.05), augment=False,
        hiding=replace(paper.hiding, gamma=0.9), agent=replace(paper.agent, running_norms=True, lstm=96),
    )  # fmt: skip
    switch = ["--numbers", "paper", "--agent", "small"]
    assert parse("explore", *switch, *flags) == parse("explore", *flags, *switch) == wanted


@pytest.mark.parametrize("config", [TrainConfig, AgentConfig, ActorCriticObjective, Objective, HidingObjective])
def test_every_flag_has_a_help_text(config):
    """tyro takes it from the docstring under the field."""
    (definition,) = ast.parse(inspect.getsource(config)).body
    for field, after in itertools.pairwise(definition.body):
        if isinstance(field, ast.AnnAssign):
            assert isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant), ast.unparse(field)


def test_hogwild_workers_are_refused_on_a_gpu(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("scrubjay.cli.train.check_device", lambda device: None)
    words = ["train", "demo", "--out", str(tmp_path / "run"), "--asynchronous", "2", "--device", "cuda"]
    code, _, errors = run_command(monkeypatch, capsys, *words)
    assert code == 2 and "HOGWILD! workers train on the CPU, not on cuda" in errors and not (tmp_path / "run").exists()


def test_workers_and_torchrun_exclude_each_other(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RANK", "0")
    args = ["train", "demo", "--out", str(tmp_path / "run"), "--asynchronous", "2"]
    code, _, errors = run_command(monkeypatch, capsys, *args)
    assert code == 2 and "under torchrun" in errors and not (tmp_path / "run").exists()


def test_invalid_evaluations_fail_before_rooms_are_built(tmp_path, monkeypatch, capsys):
    Run.begin(tmp_path / "run", TrainConfig.preset("demo")).close()
    for args, output in (
        ((), "has no checkpoint yet"),
        (("--device", "tpu"), "unknown device"),
        (("--games", "0"), "games: 1 or more"),
        (("--seed", "-1"), "seed: 0 or more"),
    ):
        code, _, errors = run_command(monkeypatch, capsys, "evaluate", str(tmp_path / "run"), *args)
        assert code == 2 and output in errors


def test_missing_hiding_spots_leave_no_run_behind(tmp_path, monkeypatch, capsys):
    args = ["train", "seek", "--out", str(tmp_path / "run"), "--spots", str(tmp_path / "nowhere"), *SMALL]
    code, _, output = run_command(monkeypatch, capsys, *args)
    assert code == 2 and "nowhere" in output
    assert not (tmp_path / "run").exists()


def test_placements_that_are_missing_leave_no_run_behind(tmp_path, monkeypatch, capsys):
    words = ["train", "manipulate", "--out", str(tmp_path / "run"), "--placements", str(tmp_path / "nowhere"), *SMALL]
    code, _, output = run_command(monkeypatch, capsys, *words)
    assert code == 2 and "nowhere" in output
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_runs_agent_is_evaluated_beside_scripted_players(tmp_path):
    out = tmp_path / "run"
    started = Run.begin(
        out,
        TrainConfig.preset("demo", task="manipulate", scenes=("FloorPlan401",), copies=2, updates=1, unroll_length=4),
    )
    train(started)
    started.close()
    done = run("evaluate", str(out), "--against", "random", "scripted", "--games", "1")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["player"] for row in rows] == ["agent", "random", "scripted"]
    assert all(row["hit_target"][3] == 20 for row in rows)
    refused = run("evaluate", str(out), "--against", "frontier")
    assert refused.returncode == 2 and "there are random, possible, scripted" in refused.stderr


@pytest.mark.slow
def test_an_agent_and_its_encoder_are_exported(tmp_path, monkeypatch, capsys):
    agent = Agent(SMALL_AGENT)
    weights.save(agent, SMALL_AGENT, tmp_path / "weights")
    for part in ("agent", "encoder"):
        args = ["export", str(tmp_path / "weights"), "--part", part, "--out", str(tmp_path / part)]
        assert run_command(monkeypatch, capsys, *args) == (0, f"{tmp_path / part}\n", "")
        code, _, message = run_command(monkeypatch, capsys, *args)
        assert code == 2 and "not empty" in message
    image = torch.zeros(1, 112, 112, 3, dtype=torch.uint8)
    seen = load_agent(tmp_path / "agent").encoder(image).sir
    assert torch.equal(load_encoder(f"ours@{tmp_path / 'encoder'}").network(image).sir, seen)


def test_two_processes_train_together(tmp_path):
    out = tmp_path / "run"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*torchrun, "-m", "scrubjay", "train", "demo", "--out", str(out), "--updates", "2", "--copies", "2",
         "--minibatch-games", "2", "--checkpoint-interval", "1", "--scenes", "FloorPlan401", "FloorPlan402"],
        capture_output=True, text=True, timeout=400, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows] == [1, 2] and rows[-1]["steps"] == 2 * 2 * 16 * 2, "both play"


@pytest.mark.slow
def test_asynchronous_workers_train(tmp_path):
    out = tmp_path / "run"
    done = run(
        "train", "demo", "--out", str(out), "--updates", "4", "--copies", "2", "--minibatch-games", "2",
        "--checkpoint-interval", "2", "--scenes", "FloorPlan401", "FloorPlan402", "--asynchronous", "2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows] == [1, 2, 3, 4] and {row["worker"] for row in rows} == {0, 1}
    assert checkpoints(out)[-1].name == "00000004"


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_run(how, tmp_path):
    """Ctrl-C, which reaches all of them, writes a checkpoint; no worker survives a killed run."""
    out = tmp_path / "run"
    args = [
        "--updates",
        "500",
        "--scenes",
        "FloorPlan401",
        "--copies",
        "2",
        "--checkpoint-interval",
        "100",
        "--asynchronous",
        "2",
    ]
    process = subprocess.Popen(
        command("train", "demo", "--out", str(out), *args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"}, start_new_session=True,
    )  # fmt: skip
    log = out / "metrics.jsonl"
    until = time.monotonic() + 200
    while not (log.exists() and log.read_text().count("\n") >= 2) and time.monotonic() < until:
        time.sleep(0.2)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)
        stdout, stderr = process.communicate(timeout=120)
        assert process.returncode == 0 and "Traceback" not in stderr, stderr
        output = json.loads(stdout.splitlines()[-1])
        assert output["update"] >= 2 and checkpoints(out)[-1].name == f"{output['update']:08d}"
        assert "--asynchronous 2" in stderr
    else:
        process.kill()
    until = time.monotonic() + 60
    while _alive(process.pid) and time.monotonic() < until:
        process.poll()
        time.sleep(0.2)
    assert not _alive(process.pid)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_training_that_is_logged_writes_lines_of_progress(tmp_path, monkeypatch, capsys):
    small = [*SMALL, "--validation-games", "0", "--updates", "2", "--out", str(tmp_path / "run")]
    code, _, errors = run_command(monkeypatch, capsys, "train", "demo", *small)
    assert code == 0
    assert errors.startswith("Training: 0/2, 0:00:0")
    assert re.search(r"Training: 2/2, 0:\d\d:\d\d elapsed$", errors)
