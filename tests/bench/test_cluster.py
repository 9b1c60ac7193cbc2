"""What the benchmark predicts from one GPU's figures, and the script that starts such a training."""

import subprocess
from pathlib import Path

import torch
from rich.console import Console
from torch import nn

from scrubjay.agent.normalization import RunningNorm
from scrubjay.bench.cluster import CLUSTER, Cluster, CountingGroup, _table, predict_cluster

ROOT = Path(__file__).parents[2]


def test_one_gpu_is_as_fast_as_it_was_measured():
    rows = predict_cluster(Cluster(steps_per_game=1000, games=1e6, price=1))
    alone = {row["overlap"]: row for row in rows if row["processes"] == 1}
    assert 7_800 < alone[True]["steps_per_s"] < 8_000 and 3_700 < alone[False]["steps_per_s"] < 3_900
    assert alone[True]["games_a_day"] == round(30_600 / 3.86 / 1000 * 86_400)
    assert len(rows) == 2 * 2 * len(CLUSTER)
    by_speed = [row["steps_per_s"] for row in rows if row["overlap"] and row["rule"] == "process"]
    assert by_speed == sorted(by_speed)
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(_table(rows))
    assert "small shares" in console.export_text()


def test_messages_are_counted_with_their_bytes():
    group, norm = CountingGroup(), RunningNorm(5)
    group.average_gradients([nn.Parameter(torch.zeros(10)), nn.Parameter(torch.zeros(2, 3))])
    group.average_norms([norm])
    assert group.max(3, "cpu") == group.sum(3, "cpu") == 3
    assert (group.optimizer_steps, group.messages, group.bytes) == (1, 5, 4 * (16 + 5 + 5 + 1 + 1))


def test_the_slurm_script_is_bash():
    script = ROOT / "examples" / "slurm_train.sh"
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    refused = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "usage: sbatch" in refused.stderr
