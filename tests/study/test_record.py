"""The record of what made a study's results."""

import json
import re
import sys

import pytest

from scrubjay.errors import DataError
from scrubjay.study.record import StudyRecord, read_record


def test_a_record_has_the_command_the_machine_and_the_seconds_of_each_part(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/scrubjay", "study", "static", "--out", "a folder"])
    record = StudyRecord(tmp_path, "static", scale="mini")
    with record.part("images"):
        pass
    with pytest.raises(KeyboardInterrupt), record.part("probes"):
        raise KeyboardInterrupt
    read = read_record(tmp_path)
    (session,) = read["sessions"]
    assert read["study"] == "static" and read["facts"] == {"scale": "mini"}
    assert session["command"] == "scrubjay study static --out 'a folder'" and "CPU cores" in session["device"]
    assert set(session["seconds"]) == {"images", "probes"} and set(session["versions"]) >= {"scrubjay", "torch"}
    assert re.fullmatch(r"([0-9a-f]{40}( with changes)?)?", session["commit"])


def test_resumed_studies_have_a_session_each(tmp_path):
    for _ in range(2):
        with StudyRecord(tmp_path, "static").part("images"):
            pass
    assert len(read_record(tmp_path)["sessions"]) == 2


def test_records_of_other_studies_and_other_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="not the record of a study"):
        read_record(tmp_path)
    StudyRecord(tmp_path, "static")
    with pytest.raises(DataError, match="of the study static, not dynamic"):
        StudyRecord(tmp_path, "dynamic")
    for text in ("", "[]", '{"version": 2}', '{"version": 1, "study": "static", "sessions": [{}]}'):
        (tmp_path / "study.json").write_text(text)
        with pytest.raises(DataError, match="not the record of a study"):
            read_record(tmp_path)
    assert (tmp_path / "study.json").read_text() == text
    with pytest.raises(DataError):
        StudyRecord(tmp_path, "static")
    assert json.loads((tmp_path / "study.json").read_text())["sessions"] == [{}], "nothing was changed"
