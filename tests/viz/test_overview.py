"""The demo's first page says what the run measured, and nothing that it did not."""

import json
from dataclasses import replace

import pytest

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.training.config import PRESETS
from scrubjay.training.run import Progress, Run
from scrubjay.viz.overview import read_learned, read_study
from scrubjay.viz.page import load_template


@pytest.fixture
def demo(tmp_path):
    """A demo's folder with a run of 10,240 steps and its evaluation."""
    run = Run.begin(tmp_path / "run", replace(PRESETS["demo"], agent=SMALL))
    run.save(Agent(SMALL), {}, Progress(80, 10_240, 21, 130.0))
    run.close()
    rows = [
        {"player": "agent", "coverage": [0.13, 0.08, 0.17, 8], "opened": [0.05, 0.01, 0.08, 8]},
        {"player": "random", "coverage": [0.028, 0.017, 0.038, 8], "opened": [0.13, -0.02, 0.24, 8]},
    ]
    (tmp_path / "evaluation.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_what_was_learned_is_what_was_measured(demo):
    learned = read_learned(demo)
    assert learned.sentence == "Your agent covers 13 % of rooms it has never seen, random play 3 %."
    assert (learned.rooms, learned.trained_rooms, learned.steps) == (8, 2, 10_240)
    assert [bar.mean for bar in learned.bars["opened"]] == [5, 13]
    page = load_template("overview_page.html").render(
        title="", facts="", learned=learned, measures={"coverage": "visited"}, widest=17, links={}
    )
    assert learned.sentence in page and "width:49.7%" in page, "65 * 13 / 17"


def test_what_was_not_measured_is_left_out(demo):
    (demo / "evaluation.jsonl").unlink()
    assert read_learned(demo) is None and read_study(demo) == ""


def test_the_studys_sentence_counts_tasks(tmp_path):
    losses = {"depth": (0.2, 0.4), "class": (0.3, 0.2), "normals": (0.1, 0.3)}
    rows = [f"{name},{task},{loss}" for task, pair in losses.items()
            for name, loss in zip(("ours@out/run", "random"), pair, strict=True)]  # fmt: skip
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "static.csv").write_text("\n".join(["encoder,task,loss", *rows]))
    assert "solve 2 of 3 better" in read_study(tmp_path)
