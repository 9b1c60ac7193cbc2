"""The dynamic study: its tables and page, resuming, and what it refuses."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from scrubjay.agent.agent import save_agent
from scrubjay.agent.config import SMALL
from scrubjay.cli.main import main
from scrubjay.errors import DataError, ProbeError
from scrubjay.game.actions import NUMBERS, Stage
from scrubjay.study.dynamic import FIELDS, SHUFFLED, DynamicScale, DynamicStudy, headline
from scrubjay.study.dynamic_experiments import EXPERIMENTS
from scrubjay.study.encoders import load_encoder
from scrubjay.study.leaderboard import make_tables
from scrubjay.study.sequences import Clip, SequenceData, SequenceWriter
from scrubjay.study.sources import untrained
from scrubjay.study.submissions import add_submission, read_submissions
from scrubjay.study.weight_files import sha256_of
from scrubjay.viz.dynamic_study import verdict, write_dynamic_page
from scrubjay.workers.pool import ProcessWorkers

TINY = DynamicScale((6, 8), 2)
AHEAD = NUMBERS["MoveHandAhead"]
SCENES = ("FloorPlan501", "FloorPlan502")


def images(length: int, rng: np.random.Generator, bright: bool) -> np.ndarray:
    """Noise, the same in every frame; the last frame of some is bright."""
    frames = np.repeat(rng.integers(0, 120, (1, 224, 224, 3), np.uint8), length, 0)
    frames[-1] += 120 * np.uint8(bright)
    return frames


def told(length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.r_[-1, [AHEAD] * (length - 1)], np.ones(length, bool), np.tile([0, 0, 0, 1], (length, 1))


def write_contained(folder: Path) -> SequenceData:
    """Sequences whose label shows in their last image, and not in the number of forward steps."""
    columns = {"scene": "U24", "receptacle": "U16", "table": "U16", "label": "i1"}
    writer = SequenceWriter(folder, "contained", Stage.OM, 0, ["all"], columns)
    rng, clips = np.random.default_rng(0), []
    for scene, goal, kind, table in itertools.product(SCENES, ("Cup", "Knife"), ("Bowl", "Box"), ("Desk", "Shelf")):
        for label in (1, 0, 1, 0, 1, 0):
            values = {"scene": scene, "receptacle": kind, "table": table, "label": label}
            clips.append(Clip(images(2, rng, label == 1), *told(2), goal, values))
    writer.write("all", clips)
    writer.finish()
    return SequenceData(folder, "contained")


def write_tracking(folder: Path) -> SequenceData:
    extras = {"cells": ("uint16", (7, 7)), "visible": ("int32", ())}
    columns = {"scene": "U24", "table": "U16"}
    writer = SequenceWriter(folder, "tracking", Stage.OM, 0, ["all"], columns, extras)
    rng, clips = np.random.default_rng(1), []
    for scene, goal, table in itertools.product(SCENES, ("Cup", "Knife"), ("Desk", "Shelf")):
        cells = np.zeros((4, 7, 7), int)
        cells[np.arange(4), 3, np.arange(4)] = 50
        values = {"cells": cells, "visible": np.array([50, 0, 0, 0])}
        clips += [Clip(images(4, rng, False), *told(4), goal, {"scene": scene, "table": table}, values)] * 2
    writer.write("all", clips)
    writer.finish()
    return SequenceData(folder, "tracking")


def write_rotation(folder: Path, scenes=(("a", "train"), ("b", "train"), ("c", "test"), ("d", "test"))) -> SequenceData:
    columns = {"scene": "U24", "split": "U10", "pair": "i8", "treatment": "?", "turn": "U5", "found": "i4"}
    writer = SequenceWriter(folder, "rotation", Stage.S, 0, ["all"], columns, {"step": ("int8", ())})
    rng, clips = np.random.default_rng(2), []
    for pair, ((scene, split), goal) in enumerate(itertools.product(scenes, ("Cup", "Knife"))):
        for treatment in (True, False):
            frames = images(6, rng, False)
            frames[0] += 100 * np.uint8(treatment)
            values = {"scene": scene, "split": split, "pair": pair, "treatment": treatment, "turn": "left", "found": 0}
            clips.append(Clip(frames, *told(6), goal, values, {"step": np.arange(6)}))
    writer.write("all", clips)
    writer.finish()
    return SequenceData(folder, "rotation")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> dict[str, SequenceData]:
    folder = tmp_path_factory.mktemp("dynamic") / "data"
    return {
        "contained": write_contained(folder / "contained"),
        "tracking": write_tracking(folder / "tracking"),
        "rotation": write_rotation(folder / "rotation"),
    }


@pytest.fixture(scope="module")
def agents():
    return {"agent": untrained(SMALL)}


def read(folder):
    with open(folder / "dynamic.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_every_source_has_a_row_for_each_size_and_the_page_shows_them(data, agents, tmp_path):
    study = DynamicStudy(data, agents, [load_encoder("random")], tmp_path, TINY)
    result = study.run()
    rows = read(tmp_path)
    assert tuple(rows[0]) == FIELDS
    names = ["DIR (agent)", "DIR (Rand.)", "SIR (agent)", "SIR (random)", "DIR (4CNN-agent)", "DIR (4CNN-random)"]
    for name, extra in (("contained", ["Forward Steps"]), ("tracking", []), ("rotation", [])):
        mine = [row for row in rows if row["experiment"] == name]
        assert list(dict.fromkeys(row["source"] for row in mine)) == [*names, *extra, SHUFFLED]
        for row in mine:
            assert 0 <= float(row["accuracy"]) <= 1
            if row["source"] not in ("DIR (agent)", SHUFFLED):
                first = next(one for one in mine if (one["size"], one["step"]) == (row["size"], row["step"]))
                difference = float(row["accuracy"]) - float(first["accuracy"])
                assert float(row["difference"]) == pytest.approx(difference, abs=1e-5)
    largest = {row["source"]: float(row["accuracy"]) for row in headline(result.rows, EXPERIMENTS["contained"])}
    assert largest["SIR (random)"] > 0.95, "the last image tells"
    assert largest["Forward Steps"] == 0.5, "the number of steps does not"
    steps = {row["step"] for row in rows if row["experiment"] == "rotation" and row["source"] != SHUFFLED}
    assert steps == {"1", "2", "3", "4", "5"}
    assert {row["step"] for row in rows if row["experiment"] == "tracking"} == {"", "1", "2", "3"}
    with open(tmp_path / "odds.csv", newline="") as file:
        assert {row["split"] for row in csv.DictReader(file)} == {"all", "train", "test"}

    write_dynamic_page(tmp_path / "index.html", result, data, "A trial.")
    page = (tmp_path / "index.html").read_text()
    for words in ("71.5 %", "63.4 %", "59.6 %", "0.08 ± 0.02", "A trial.", "Labels shuffled", "was right in"):
        assert words in page
    assert 'figcaption class="answer"' in page and "is left out" not in page
    charts = {path.name for path in tmp_path.glob("dynamic-*.png")}
    assert {f"dynamic-rotation-{name}.png" for name in ("sizes", "steps", "odds")} < charts


@pytest.mark.parametrize("part", ["tracking, 6 sources", pytest.param("tracking, DIR (Rand.)", marks=pytest.mark.slow)])
def test_an_interrupted_study_continues_and_equals_an_unbroken_one(part, data, agents, tmp_path):
    some = {"contained": data["contained"], "tracking": data["tracking"]}
    scale = DynamicScale((8,), 2)
    with ProcessWorkers(2) as workers:
        DynamicStudy(some, agents, [], tmp_path / "whole", scale).run(workers=workers)

    def interrupt(done: int, total: int, what: str) -> None:
        if what == part:
            raise KeyboardInterrupt

    cut = DynamicStudy(some, agents, [], tmp_path / "cut", scale)
    with pytest.raises(KeyboardInterrupt):
        cut.run(interrupt)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cut").rglob("*.npy")}
    assert before and not (tmp_path / "cut" / "dynamic.csv").exists()
    cut.run()
    assert (tmp_path / "cut/dynamic.csv").read_bytes() == (tmp_path / "whole/dynamic.csv").read_bytes()
    assert {path: path.stat().st_mtime_ns for path in before} == before, "what was there is not computed again"


@pytest.mark.parametrize("scenes", [(), (("a", "train"), ("b", "train"))])
def test_a_seeker_that_found_too_little_leaves_out_one_experiment(scenes, data, agents, tmp_path):
    few = write_rotation(tmp_path / "rotation", scenes)
    study = DynamicStudy({"contained": data["contained"], "rotation": few}, agents, [], tmp_path / "out", TINY)
    result = study.run()
    assert {row["experiment"] for row in read(tmp_path / "out")} == {"contained"} and set(result.left_out) == {
        "rotation"
    }
    write_dynamic_page(tmp_path / "index.html", result, study.data, "A trial.")
    assert f"Turned away is left out: {result.left_out['rotation']}." in (tmp_path / "index.html").read_text()
    with pytest.raises(ProbeError, match=f"rotation: {result.left_out['rotation']}"):
        DynamicStudy({"rotation": few}, agents, [], tmp_path / "alone", TINY).run()


def test_features_travel_without_images(data, agents, tmp_path):
    some = {name: data[name] for name in ("tracking", "rotation")}
    here = DynamicStudy(some, agents, [], tmp_path / "here", TINY)
    said: list[str] = []
    paths = here.compute_features(lambda done, total, what: said.append(f"{what}: {done}/{total}"))
    assert not (tmp_path / "here" / "probes").exists() and not (tmp_path / "here" / "dynamic.csv").exists()
    assert said[0] == "tracking, 6 sources: 0/32" and said[-1] == "rotation, 7 sources: 32/32"
    assert any(np.load(path).dtype == np.float16 for path in paths)

    for name, each in some.items():
        shutil.copytree(each.folder, tmp_path / "data" / name, ignore=shutil.ignore_patterns("images.npy"))
    shutil.copytree(tmp_path / "here" / "features", tmp_path / "there" / "features")
    carried = {name: SequenceData(tmp_path / "data" / name, name) for name in some}
    there = DynamicStudy(carried, agents, [], tmp_path / "there", TINY)
    result = there.run()
    here.fit()
    for name in ("dynamic.csv", "odds.csv", "agents.json", "encoders.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    write_dynamic_page(tmp_path / "there" / "index.html", result, carried, "A trial.")
    assert "was right in" not in (tmp_path / "there" / "index.html").read_text(), "no clips without images"

    assert not carried["tracking"].has_images and data["tracking"].has_images
    with pytest.raises(DataError, match=r"the images are not here: copy images.npy of its blocks, too"):
        carried["tracking"].images(np.array([0]))
    other = DynamicStudy(carried, {"other": untrained(SMALL, 7)}, [], tmp_path / "there", TINY)
    with pytest.raises(DataError, match="neither images nor features of other, other"):
        other.run()


def test_predictions_travel_without_features(data, agents, tmp_path):
    some = {name: data[name] for name in ("tracking", "rotation")}
    DynamicStudy(some, agents, [], tmp_path / "here", TINY).run()
    for name, each in some.items():
        shutil.copytree(each.folder, tmp_path / "data" / name, ignore=shutil.ignore_patterns("images.npy"))

    def only_digests(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name.endswith(".npy") and "odds" not in name and folder.endswith("features")}

    shutil.copytree(tmp_path / "here", tmp_path / "there", ignore=only_digests)
    (tmp_path / "there" / "dynamic.csv").unlink()
    carried = {name: SequenceData(tmp_path / "data" / name, name) for name in some}
    there = DynamicStudy(carried, agents, [], tmp_path / "there", TINY)
    there.run()
    for name in ("dynamic.csv", "odds.csv"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    # One prediction less, and the features it needs are missed.
    next((tmp_path / "there" / "probes").iterdir()).unlink()
    with pytest.raises(DataError, match="neither images nor features"):
        there.run()
    with pytest.raises(DataError, match="no such file; compute features first"):
        there.fit()


def test_the_verdict_says_where_an_agent_is_not_better():
    rows = [
        {"source": "DIR (a)", "accuracy": 0.7},
        {"source": "SIR (b)", "accuracy": 0.6, "difference": -0.1, "difference_low": -0.15, "difference_high": -0.05},
    ]
    assert verdict(rows).startswith(
        "Better than all baselines: DIR (a) 70.0 %, next SIR (b) 60.0 %, a difference of +10"
    )
    rows[1] |= {"difference_low": -0.3, "difference_high": 0.1}
    assert verdict(rows).startswith("Not distinguishable")
    rows[1] |= {"accuracy": 0.9, "difference": 0.2, "difference_low": 0.1, "difference_high": 0.3}
    assert verdict(rows).startswith("Not better than its baselines")


def test_the_command_measures_agents_in_data_that_is_there(data, agents, tmp_path, monkeypatch, capsys):
    save_agent(agents["agent"], tmp_path / "weights")
    folder = str(data["contained"].folder.parent)
    words = ["--agents", str(tmp_path / "weights"), "random", "--experiments", "contained", "--data", folder]
    out = tmp_path / "out"
    command = ["scrubjay", "study", "dynamic", *words, "--scale", "mini", "--out", str(out), "--workers", "1"]
    monkeypatch.setattr(sys, "argv", command)
    main()
    assert capsys.readouterr().out.strip() == str(out / "index.html")
    assert {"DIR (weights)", "DIR (random)", "DIR (Rand.)"} < {row["source"] for row in read(out)}
    facts = json.loads((out / "study.json").read_text())["facts"]
    assert facts["data"] == {"contained": data["contained"].digest} and facts["scale"] == "mini"
    listed = {each["name"]: each["sha256"] for each in json.loads((out / "agents.json").read_text())}
    assert set(listed) == {"weights", "random", "Rand."} and listed["weights"] != listed["Rand."]
    assert listed["weights"] == sha256_of(agents["agent"].state_dict())
    assert [each["name"] for each in json.loads((out / "encoders.json").read_text())] == ["weights", "random"]
    add_submission(out, tmp_path / "tables", "trial", allow_mini=True)
    (table,) = make_tables(read_submissions(tmp_path / "tables"))
    assert {entry.name for entry in table.entries} == {row["source"] for row in read(out)} - {SHUFFLED}
    assert {entry.about["sha256"] for entry in table.entries if entry.name == "DIR (weights)"} == {listed["weights"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agents", "random", "--experiments", "taste"], "experiments: unknown taste"),
        (["--agents", "random", "random"], "agents: each once"),
        (["--agents", "nowhere"], "nowhere"),
        (["--agents", "random", "--data", "nowhere", "--experiments", "space"], "no data here; make it with"),
        (["--agents", "random", "--data", "nowhere"], "no data of contained, tracking, rotation, space"),
    ],
)
def test_wrong_requests_are_one_sentence(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["scrubjay", "study", "dynamic", *words, "--scale", "mini", "--out", "out"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_a_study_needs_agents_and_data(data, agents, tmp_path):
    with pytest.raises(DataError, match="at least one agent"):
        DynamicStudy(data, {}, [], tmp_path)
    with pytest.raises(DataError, match="unknown data taste"):
        DynamicStudy({"taste": data["contained"]}, agents, [], tmp_path)
