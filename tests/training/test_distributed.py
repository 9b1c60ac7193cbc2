"""Synchronous training in two processes: all-reduced numbers agree, and both end with the same agent.

Each process runs this file under torchrun.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import torch as safetensors

import scrubjay
from scrubjay.agent.normalization import RunningNorm
from scrubjay.errors import ClusterError, TrainingError
from scrubjay.game.actions import action_index
from scrubjay.training import distributed, rendezvous
from scrubjay.training.actor_critic import over_processes
from scrubjay.training.class_labels import CLASSES
from scrubjay.training.config import TrainConfig, from_json, to_json
from scrubjay.training.distributed import Group, digest, make_group
from scrubjay.training.hiding_learner import HidingObjective
from scrubjay.training.replay import Triplets
from scrubjay.training.run import Run, checkpoints
from scrubjay.training.train import train
from scrubjay.training.trainer import Trainer

SCENES = ("FloorPlan401", "FloorPlan402")
# Three rooms for two processes: one has twice as many games.
EXPLORE = TrainConfig.preset(
    "demo", scenes=(*SCENES, "FloorPlan403"), copies=2, unroll_length=4, minibatch_games=2, updates=3,
    checkpoint_interval=2, replay_size=256,
    replay_batches=3,
)  # fmt: skip
CACHE = TrainConfig.preset(
    "demo", task="cache", scenes=SCENES, copies=3, unroll_length=8, minibatch_games=3, updates=8,
    checkpoint_interval=4, replay_size=256,
    stage_limits=(6, 1, 2, 3, 4), hiding_minibatch=2, manipulation_minibatch=2,
)  # fmt: skip


def run_two_processes(*words: str) -> None:
    """Runs this file as a process group of two."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*torchrun, __file__, *words],
        capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def train_in_two_processes(training: TrainConfig, out: Path) -> list[tuple[dict[str, torch.Tensor], list[dict]]]:
    """Each process's final agent, and its rows of metrics."""
    (out / "training.json").write_text(to_json(training))
    run_two_processes("learn", str(out))
    return [
        (safetensors.load_file(out / f"{rank}.safetensors"), json.loads((out / f"{rank}.json").read_text()))
        for rank in range(2)
    ]


def assert_same_agent(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys()
    # Batch counts differ between processes: not every batch has every stage.
    different = [k for k in first if not torch.equal(first[k], second[k]) and not k.endswith(".batches")]
    assert not different


def test_one_process_agrees_with_itself():
    tensor = torch.tensor([1.0, 2.0])
    Group().average([tensor])
    assert tensor.tolist() == [1, 2]
    norm = RunningNorm(1)
    Group().average_norms([norm])
    assert (norm.mean.item(), norm.variance.item()) == (0, 1)


def test_two_processes_agree_on_means_and_average_gradients(tmp_path):
    run_two_processes("agree", str(tmp_path))
    for rank in range(2):
        result = json.loads((tmp_path / f"{rank}.json").read_text())
        assert result == {
            "agreed": [[0.5, 2.0], 1.5], "gradients": [[1.0], None], "everywhere": [0, 1],
            "most": 3, "total": 5, "gathered": [[0], [10]] if rank == 0 else None,
            # Means 0 and 2, variances 1 and 3: half of each, and 1 between the processes.
            "norm": [1.0, 3.0], "first": [7.0], "unequal": "after update 3 the agents of processes 1 differ",
        }  # fmt: skip


def test_processes_that_cannot_train_together_say_why(tmp_path):
    """One of another version, with another config, and to whom the run's folder is another one."""
    run_two_processes("refuse", str(tmp_path))
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second, "both say the same"
    assert "has scrubjay 0.0.1, and process 0 on" in first["version"]
    assert first["version"].endswith("install the same version on every node")
    assert "has another copies, seed than process 0" in first["config"]
    assert first["folder"].startswith(
        "run is not the same folder on all nodes: processes 1 did not see within 1 seconds"
    )
    assert not list((tmp_path / "run").glob(".shared*"))


def test_processes_are_equal_to_the_bit_after_every_update(tmp_path):
    config = replace(EXPLORE, replay_batches=1, objective=replace(EXPLORE.objective, normalize_advantages=True))
    (tmp_path / "training.json").write_text(to_json(config))
    run_two_processes("compare", str(tmp_path))
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    assert len(set(first["digests"])) == 4, "every update changes the agent, alike in both"
    assert first["difference"] < 1e-5 < first["size"], "half the games each, averaged, are all games"


@pytest.mark.slow
def test_two_processes_in_different_rooms_end_with_the_same_agent(tmp_path):
    (first, rows), (second, others) = train_in_two_processes(replace(EXPLORE, shadow_classifier=True), tmp_path)
    assert_same_agent(first, second)
    assert "shadow.linear.weight" in first and "class_dynamics/loss" in rows[0]["losses"]
    assert [row["update"] for row in rows] == [row["update"] for row in others] == [1, 2, 3]
    assert all(
        mine["losses"]["em/value_loss"] != its["losses"]["em/value_loss"]
        for mine, its in zip(rows, others, strict=True)
    )
    variances = [name for name in first if name.endswith(".variance")]
    assert any((first[name] != 1).any() for name in variances), "running statistics were committed"
    assert all("dynamics/inverse" in row["losses"] for row in (*rows, *others))


@pytest.mark.slow
@pytest.mark.parametrize("early", [5000, 2])
def test_two_processes_that_play_whole_games_end_with_the_same_agent(early, tmp_path):
    """Also when the early losses end with the second game."""
    training = TrainConfig.preset("demo", **{**vars(CACHE), "hiding": HidingObjective(early=early)})
    (first, rows), (second, others) = train_in_two_processes(training, tmp_path)
    assert_same_agent(first, second)
    for each in (rows, others):
        logged = set().union(*(row["losses"] for row in each))
        assert logged >= {
            "em/policy_loss",
            "oh/policy_loss",
            "oh/modality",
            "ps/outcome",
            "ps/mental_policy",
            "s/policy_loss",
        }
    assert [row["games"] for row in rows] == [row["games"] for row in others], "games are summed over processes"
    hid = [row["games"] for row in rows if "oh/policy_loss" in row["losses"] and "oh/modality" not in row["losses"]]
    assert bool(hid) == (early == 2) and all(games >= early for games in hid)


@pytest.mark.slow
def test_every_process_gets_its_own_replay_buffer_back(tmp_path):
    config = replace(EXPLORE, updates=4, augment=True, replay_size=40, replay_batch_size=4, replay_group_share=1.0)
    whole, again = tmp_path / "whole", tmp_path / "again"
    Run.begin(whole, config).close()
    run_two_processes("resume", str(whole))
    shutil.copytree(whole, again)
    shutil.rmtree(checkpoints(again)[-1])
    run_two_processes("resume", str(again))
    for name in ("replay.safetensors", "optimizers.safetensors"):
        assert (checkpoints(whole)[-1] / name).read_bytes() == (checkpoints(again)[-1] / name).read_bytes()
    buffers = safetensors.load_file(checkpoints(whole)[-1] / "replay.safetensors")
    assert {name.split(".")[0] for name in buffers} == {"0", "1"}
    assert (buffers["0.room"] <= 1).all() and (buffers["1.room"] == 0).all(), "two rooms and one"
    assert all("dynamics/inverse" in json.loads(line)["losses"] for line in (again / "metrics.jsonl").open())


class Uneven(Trainer):
    """A trainer whose replay buffer starts with one or two batches, by rank."""

    def start_segment(self):
        collector, replay = super().start_segment()
        names = ("MoveAhead", "Crouch", "DropObject", "MoveHandUp", "RotateLeft", "CloseObjects", "OpenAt|1,1", "Stand")
        action = torch.tensor([action_index(name) for name in names]).repeat(8 * (1 + self.group.rank))
        size = self.agent.config.image_size
        image = torch.zeros(len(action), size, size, 3, dtype=torch.uint8)
        visible = torch.zeros(len(action), 2, len(CLASSES), dtype=torch.bool)
        replay.add(Triplets(image, action, image, action > 0, visible=visible))
        return collector, replay


def agree(group: Group, out: Path) -> None:
    """Averages 0 and 1, 1 and 3, 1 and 2; gradients are averaged only where they are set."""
    vector, scalar = torch.tensor([float(group.rank), 1.0 + 2 * group.rank]), torch.tensor(1.0 + group.rank)
    group.average([vector])
    group.average([scalar])
    with_grad, without = (torch.nn.Parameter(torch.zeros(1)) for _ in range(2))
    with_grad.grad = torch.tensor([2.0 * group.rank])
    group.average_gradients([with_grad, without])
    gathered = group.gather({"rank": torch.tensor([10 * group.rank])})
    norm, first = RunningNorm(1), torch.tensor([7.0 + group.rank])
    norm.mean.fill_(2 * group.rank)
    norm.variance.fill_(1 + 2 * group.rank)
    group.average_norms([norm])
    merged = [norm.mean.item(), norm.variance.item()]
    group.check_equal(norm, "at first")
    group.broadcast([first])
    norm.mean += group.rank
    with pytest.raises(TrainingError) as unequal:
        group.check_equal(norm, "after update 3")
    result = {
        "gathered": [each["rank"].tolist() for each in gathered] if group.rank == 0 else None,
        "agreed": [vector.tolist(), scalar.item()], "gradients": [with_grad.grad.tolist(), without.grad],
        "everywhere": group.gather_everywhere(group.rank), "norm": merged, "first": first.tolist(),
        "unequal": str(unequal.value).split(" from")[0],
        "most": group.max(3 - group.rank, "cpu"), "total": group.sum(3 - group.rank, "cpu"),
    }  # fmt: skip
    (out / f"{group.rank}.json").write_text(json.dumps(result))


def learn(group: Group, out: Path) -> None:
    """Trains to the end and writes this process's agent and metrics."""
    trainer = Uneven(from_json((out / "training.json").read_text()), "cpu", group)
    rows: list[dict] = []
    trainer.run(rows.append, lambda: False, lambda: None)
    trainer.close()
    state = trainer.agent.state_dict() | (trainer.shadow.state_dict(prefix="shadow.") if trainer.shadow else {})
    tensors = {name: tensor.contiguous() for name, tensor in state.items()}
    safetensors.save_file(tensors, out / f"{group.rank}.safetensors")
    (out / f"{group.rank}.json").write_text(json.dumps(rows))


def compare(group: Group, out: Path) -> None:
    """Writes how gradients of both halves of a rollout compare to the whole's, and digests around each update."""
    config = from_json((out / "training.json").read_text())
    alone = Trainer(replace(config, scenes=SCENES), "cpu")
    rollout = alone.start_segment()[0].collect(config.unroll_length)
    weights = alone.learner.weights(rollout)
    gradients = []
    for its, games in ((Group(), torch.arange(4)), (group, torch.arange(2) + 2 * group.rank)):
        alone.group, part = its, rollout.games(games)
        with over_processes(its.total):
            alone.backward("play", alone.learner(part)[0], weights, part)
        gradients.append(torch.cat([p.grad.flatten() for p in alone.agent.parameters() if p.grad is not None]))
    alone.close()
    trainer = Trainer(config, "cpu", group)
    digests = [digest(trainer.agent)]
    trainer.run(lambda row: digests.append(digest(trainer.agent)), lambda: False, lambda: None)
    trainer.close()
    sizes = {"difference": (gradients[0] - gradients[1]).abs().max().item(), "size": gradients[0].abs().max().item()}
    (out / f"{group.rank}.json").write_text(json.dumps({"digests": digests, **sizes}))


def refuse(group: Group, out: Path) -> None:
    """Tries to train with another version, another config, and another folder in the second process."""
    rank, said, version = group.rank, {}, scrubjay.__version__
    scrubjay.__version__ = "0.0.1" if rank else version
    with pytest.raises(ClusterError) as error:
        make_group("cpu")
    said["version"], scrubjay.__version__ = str(error.value), version
    with pytest.raises(ClusterError) as error:
        make_group("cpu", to_json(replace(EXPLORE, seed=rank, copies=2 + rank)))
    said["config"] = str(error.value)
    os.chdir(out if rank == 0 else "/")
    rendezvous.SHARED_SECONDS = distributed.SHARED_SECONDS = 1.0
    with pytest.raises(ClusterError) as error:
        group.open_run(lambda: Run.begin("run", EXPLORE))
    said["folder"] = str(error.value)
    (out / f"{rank}.json").write_text(json.dumps(said))


def resume(group: Group, folder: Path) -> None:
    """Trains a run to its end."""
    run = group.open_run(lambda: Run.open(folder))
    train(run, group=group)
    run.close()


if __name__ == "__main__":
    torch.set_num_threads(1)
    mine, _ = make_group("cpu")
    modes = {"agree": agree, "compare": compare, "learn": learn, "refuse": refuse, "resume": resume}
    modes[sys.argv[1]](mine, Path(sys.argv[2]))
    mine.close()
