"""Static studies of the same data, merged: the same results as one study of all encoders."""

import csv
import json
import sys

import pytest

from scrubjay.cli.main import main
from scrubjay.errors import DataError, StatisticsError
from scrubjay.study.encoders import load_encoder
from scrubjay.study.probe import ProbeConfig
from scrubjay.study.record import StudyRecord, read_record
from scrubjay.study.static import StaticScale, StaticStudy, read_probes
from scrubjay.study.static_data import StaticData
from scrubjay.study.static_generate import make_static_data
from scrubjay.study.static_merge import merge_studies

COUNTS = {"FloorPlan401": 6, "FloorPlan402": 6, "FloorPlan421": 4, "FloorPlan426": 4, "FloorPlan427": 4}
TINY = StaticScale(ProbeConfig(size=14, max_epochs=1, batch_size=4), training_images=8)
TASKS = ("depth", "class")


def study(data, names, folder, scale="mini"):
    """A study as the command makes it."""
    record = StudyRecord(folder, "static", scale=scale)
    one = StaticStudy(data, [load_encoder(name) for name in names], folder, TINY, names[0], TASKS)
    one.run()
    record.content["facts"] |= {"images": len(data), "data": one.digest}
    record.write()
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A study of two encoders, and one of each."""
    folder = tmp_path_factory.mktemp("merge")
    make_static_data(folder / "data", COUNTS)
    data = StaticData(folder / "data")
    both = study(data, ["random", "random:1"], folder / "both")
    return both, study(data, ["random"], folder / "one"), study(data, ["random:1"], folder / "other")


def rows(folder):
    with open(folder / "static.csv", newline="") as file:
        return sorted(csv.DictReader(file), key=lambda row: (row["decoder"], row["task"], row["encoder"]))


def test_merged_studies_equal_one_of_all_encoders(folders, tmp_path):
    both, *parts = folders
    merge_studies(parts, tmp_path / "merged", "random")
    assert rows(tmp_path / "merged") == rows(both)
    assert len(rows(both)) == 6
    for name in ("encoders.json", "probes.json"):
        mine, theirs = (json.loads((folder / name).read_text()) for folder in (tmp_path / "merged", both))
        assert [entry for entry in mine if entry not in theirs] == [] and len(mine) == len(theirs)
    assert len(read_record(tmp_path / "merged")["sessions"]) == 2
    # Merged results are a study's: probes' files are there, and it can be merged again.
    assert set(read_probes(tmp_path / "merged", "depth")) == {"random", "random:1"}
    for files in read_probes(tmp_path / "merged", "depth").values():
        assert set(files) == {"losses", "predictions", "decoders"}


def test_the_command_writes_the_page(folders, tmp_path, monkeypatch, capsys):
    both, *parts = folders
    out = tmp_path / "merged"
    data = str(both.parent / "data")
    options = ["--control", "random", "--data", data, "--labels", "random=untrained", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["scrubjay", "study", "merge", "--studies", *map(str, parts), *options])
    main()
    assert capsys.readouterr().out.strip() == str(out / "index.html")
    page = (out / "index.html").read_text()
    assert "random:1" in page and "untrained" in page and page.count("<img") > 4
    assert {row["encoder"] for row in rows(out)} == {"random", "random:1"}
    assert read_record(out)["sessions"][-1]["seconds"]["statistics"] > 0


def test_what_cannot_be_merged_is_refused_and_nothing_is_written(folders, tmp_path):
    both, one, other = folders
    out = tmp_path / "out"
    for wrong, message in (
        ([one], "at least two"),
        ([one, one], "random is in .*one, too"),
        ([both, other], "random:1 is in .*both, too"),
        ([one, tmp_path], "study.json"),
    ):
        with pytest.raises(DataError, match=message):
            merge_studies(wrong, out, "random")
    with pytest.raises(DataError, match="not empty"):
        merge_studies([one, other], both, "random")
    assert not out.exists()


def test_studies_of_other_data_or_with_changed_tables_are_refused(folders, tmp_path):
    _, one, other = folders
    changed = tmp_path / "changed"
    changed.mkdir()
    for path in other.rglob("*"):
        if path.is_file() and "features" not in path.parts:
            (changed / path.relative_to(other)).parent.mkdir(parents=True, exist_ok=True)
            (changed / path.relative_to(other)).write_bytes(path.read_bytes())
    record = json.loads((changed / "study.json").read_text())
    (changed / "study.json").write_text(json.dumps(record | {"facts": record["facts"] | {"data": "0" * 16}}))
    with pytest.raises(DataError, match="another data than in"):
        merge_studies([one, changed], tmp_path / "out", "random")
    (changed / "study.json").write_text(json.dumps(record))
    (changed / "losses" / "depth-plain.csv.gz").write_bytes(b"encoder,loss")
    with pytest.raises(StatisticsError, match="depth-plain"):
        merge_studies([one, changed], tmp_path / "out", "random")
    assert not (tmp_path / "out").exists()
