"""Learning curves: reading logs, running means against a plain loop, and pictures."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image
from PIL import Image

from scrubjay.cli.main import main
from scrubjay.errors import RunError
from scrubjay.viz.curves import SMOOTHING, logged_metrics, read_log, smoothed_curve, write_curves


def rows_of(count: int, seed: int = 0) -> list[dict]:
    """A log as training writes it: coverage only where games ended, and a reward without a value yet."""
    rng = np.random.default_rng(seed)
    return [
        {
            "update": k + 1, "steps": 32 * (k + 1), "reward": {"em": rng.normal(), "s": None},
            "play": {"coverage": rng.random()} if k % 3 == 0 else {}, "loss": {"em_value": 1 / (k + 1)},
        }
        for k in range(count)
    ]  # fmt: skip


def write_log(folder: Path, rows: list[dict]) -> Path:
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_log_is_read_as_it_was_written(tmp_path):
    rows = rows_of(5)
    assert read_log(write_log(tmp_path / "run", rows)) == rows


def test_missing_empty_and_invalid_logs_get_a_clear_error(tmp_path):
    with pytest.raises(RunError, match="nowhere has no log to draw"):
        read_log(tmp_path / "nowhere")
    with pytest.raises(RunError, match="is empty"):
        read_log(write_log(tmp_path / "empty", []))
    (write_log(tmp_path / "odd", []) / "metrics.jsonl").write_text("update 1: fine\n")
    with pytest.raises(RunError, match="odd has no log to draw"):
        read_log(tmp_path / "odd")


@pytest.mark.parametrize(("count", "width"), [(1, 1), (9, 1), (35, 3), (250, SMOOTHING), (1000, SMOOTHING)])
def test_curves_are_running_means_over_a_tenth_of_the_run_at_most(count, width):
    rows = rows_of(count)
    steps, values = smoothed_curve(rows, "loss", "em_value")
    assert len(steps) == len(values) == count - width + 1
    for k in range(len(values)):
        window = rows[k : k + width]
        assert values[k] == pytest.approx(np.mean([row["loss"]["em_value"] for row in window]))
        assert steps[k] == pytest.approx(np.mean([row["steps"] for row in window]))


def test_rows_without_a_metric_are_left_out_of_its_curve():
    rows = rows_of(12)
    steps, values = smoothed_curve(rows, "play", "coverage")
    assert steps.tolist() == [32 * k for k in (1, 4, 7, 10)]
    assert values.tolist() == [rows[k]["play"]["coverage"] for k in (0, 3, 6, 9)]
    for name in ("s", "oh"):
        assert [len(part) for part in smoothed_curve(rows, "reward", name)] == [0, 0]
    assert logged_metrics(rows) == [("reward", "em"), ("play", "coverage"), ("loss", "em_value")]


def test_pictures_have_a_panel_for_each_metric(tmp_path):
    folder = write_log(tmp_path / "run", rows_of(40))
    write_curves([folder], tmp_path / "out" / "all.png")
    write_curves([folder], tmp_path / "one.png", only=["loss/em_value"])
    every, one = (Image.open(path) for path in (tmp_path / "out" / "all.png", tmp_path / "one.png"))
    assert every.format == "PNG" and every.height == one.height and every.width == pytest.approx(3 * one.width, abs=2)
    ink = image.imread(tmp_path / "one.png")[..., :3]
    assert (np.ptp(ink.reshape(-1, 3), 0) > 0.5).all(), "something is drawn"


def test_a_picture_holds_all_runs(tmp_path):
    """A second run adds a curve to the picture."""
    first, second = write_log(tmp_path / "first", rows_of(40)), write_log(tmp_path / "second", rows_of(70, 1))
    pictures = []
    for number, runs in enumerate(([first], [second], [first, second])):
        write_curves(runs, tmp_path / f"{number}.png", only=["reward/em"])
        pictures.append((tmp_path / f"{number}.png").read_bytes())
    assert len(set(pictures)) == 3
    write_curves([first, second], tmp_path / "again.png", only=["reward/em"])
    assert (tmp_path / "again.png").read_bytes() == pictures[2], "the same logs draw the same picture"


def test_unknown_metrics_list_the_choices(tmp_path):
    folder = write_log(tmp_path / "run", rows_of(4))
    with pytest.raises(ValueError, match="choose from reward/em, play/coverage, loss/em_value"):
        write_curves([folder], tmp_path / "none.png", only=["play/beauty"])
    assert not (tmp_path / "none.png").exists()


def test_the_command_draws_and_prints_the_path(tmp_path, capsys, monkeypatch):
    folder, out = write_log(tmp_path / "run", rows_of(4)), tmp_path / "curves.png"
    monkeypatch.setattr("sys.argv", ["scrubjay", "curves", str(folder), "--only", "loss/em_value", "--out", str(out)])
    main()
    assert capsys.readouterr().out.replace("\n", "") == str(out) and out.stat().st_size > 1000
    monkeypatch.setattr("sys.argv", ["scrubjay", "curves", str(tmp_path / "nowhere"), "--out", str(out)])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "has no log to draw" in capsys.readouterr().err


def test_runs_of_the_same_name_are_both_drawn(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, second = write_log(tmp_path / "a" / "run", rows_of(40)), write_log(tmp_path / "b" / "run", rows_of(40, 1))
    write_curves([first, second], tmp_path / "both.png", only=["reward/em"])
    write_curves([second], tmp_path / "second.png", only=["reward/em"])
    assert (tmp_path / "both.png").read_bytes() != (tmp_path / "second.png").read_bytes()
