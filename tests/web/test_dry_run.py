"""A dry run: simulated participants go through a whole study, and its export can be analysed."""

import csv
import json

import pytest
from helpers import run_command
from study_helpers import QUESTIONS, STUDY, write
from web_helpers import ROOM, SIZE

from scrubjay.errors import StudyError
from scrubjay.game.record import load_records
from scrubjay.web import export
from scrubjay.web.dry_run import dry_run


def test_a_dry_run_leaves_an_export_of_people_who_finish_leave_and_decline(folder):
    study = write(folder, 'platform = "prolific"', QUESTIONS + '[bonus]\nfound = 0.1\ncurrency = "GBP"\n')
    out, done = folder / "out", []
    options = dict(size=SIZE, build=lambda scene: ROOM)
    summary = dry_run(study, out, 10, speed=30, progress=lambda *counts: done.append(counts), **options)
    assert summary["participants"] == 10 and (summary["finished"], summary["declined"], summary["under_way"]) == (
        8,
        1,
        1,
    )
    assert done == [(k, 10) for k in range(1, 11)]
    assert sorted(path.name for path in out.glob("*.*") if "play.db" not in path.name) == sorted(export.FILES)
    people = list(csv.DictReader((out / "participants.csv").open()))
    assert len({row["PROLIFIC_PID"] for row in people}) == 10
    assert all(row["code"] and row["consented"] for row in people if row["status"] == "done")
    trials = list(csv.DictReader((out / "trials.csv").open()))
    found = [row["found"] == "True" for row in trials if row["ended"]]
    assert len(found) == summary["trials_done"] == 17 and any(found)
    assert json.loads((out / "table.json").read_text())[0]["trials"] == 17
    assert {row["question"] for row in csv.DictReader((out / "answers.csv").open())} == {"age", "games", "hard"}
    assert all(row["client_time"] for row in csv.DictReader((out / "actions.csv").open()))
    with pytest.raises(StudyError, match="choose another folder"):
        dry_run(study, out, 1, **options)


def test_the_command_builds_real_rooms_and_its_data_are_read_by_the_next_command(tmp_path, monkeypatch, capsys):
    text = STUDY.replace('"seek"', '"hide"').replace("repeats = 9", 'scenes = ["foyer-7"]\ngoals = ["Bread"]')
    (tmp_path / "study.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    code, printed, _ = run_command(
        monkeypatch, capsys, "dry-run", "--study", "study.toml", "--participants", "1", "--size", "112"
    )
    assert code == 0 and json.loads(printed)["finished"] == 1
    arguments = ("human", "--study", "find", "--data", "out/dry-run/play.db", "--out", "data")
    assert run_command(monkeypatch, capsys, *arguments)[0] == 0
    for name in export.FILES:
        assert (tmp_path / "data" / name).read_bytes() == (tmp_path / "out" / "dry-run" / name).read_bytes()


def test_simulated_people_hide_things_too(folder):
    text = STUDY.replace('"seek"', '"hide"').replace("repeats = 9", 'scenes = ["foyer-7"]\ngoals = ["Bread"]')
    (folder / "study.toml").write_text(text.replace("trials = 2", "trials = 1"))
    summary = dry_run(folder / "study.toml", folder / "out", 1, size=SIZE, build=lambda scene: ROOM)
    assert summary["finished"] == summary["trials_done"] == 1
    (record,) = load_records(folder / "out" / "records.jsonl")
    assert record.hidden is not None
