"""The guide "add a loss", followed in a copy of the package."""

import json

import pytest
from guides import follow, run_in

pytestmark = pytest.mark.slow

TINY = (
    "--scenes", "FloorPlan401", "--copies", "2", "--unroll-length", "4", "--minibatch-games", "2", "--updates", "1",
    "--checkpoint-interval", "1", "--replay-size", "64", "--objective.repeated-failure", "0.05",
)  # fmt: skip


def test_the_guide_to_a_loss_does_what_it_says(tmp_path):
    assert len(follow("add_a_loss.md", tmp_path)) == 2, "files that a loss touches"
    run_in(tmp_path, "-m", "scrubjay", "train", "demo", "--out", "run", *TINY)
    (line,) = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["losses"]["em/repeated_failure"] > 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["config"]["objective"]["repeated_failure"] == 0.05


def test_a_forgotten_weight_fails_at_the_first_update(tmp_path):
    follow("add_a_loss.md", tmp_path)
    learner = tmp_path / "src" / "scrubjay" / "training" / "learner.py"
    text = learner.read_text()
    learner.write_text(
        text.replace('            table["em/repeated_failure"] = self.repeated_failure\n', "            pass\n")
    )
    try:
        run_in(tmp_path, "-m", "scrubjay", "train", "demo", "--out", "run", *TINY)
    except AssertionError as error:
        assert "losses without a weight: ['em/repeated_failure']" in str(error).replace("\n", "")
    else:
        raise AssertionError("training went on without the weight")
