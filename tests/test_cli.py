"""The commands, as a user types them."""

import json
import subprocess
import sys

import pytest
from PIL import Image


def scrubjay(*words: str, cwd) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "scrubjay.cli", *words], cwd=cwd, capture_output=True, text=True)


def test_rooms_as_json(tmp_path):
    done = scrubjay("rooms", "FloorPlan1", "bathroom-7", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kitchen, bathroom = map(json.loads, done.stdout.splitlines())
    assert list(kitchen) == ["scene", "type", "objects", "object_types", "openables", "openables_reachable", "geoms",
                             "positions", "build_s"]  # fmt: skip
    assert kitchen["scene"] == "FloorPlan1" and kitchen["type"] == "kitchen" and kitchen["openables"] >= 12
    assert bathroom["scene"] == "bathroom-7" and bathroom["type"] == "bathroom"


def test_a_contact_sheet(tmp_path):
    done = scrubjay("rooms", "FloorPlan501", "FloorPlan502", "--out", "sheet.png", "--size", "64", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "sheet.png"
    assert Image.open(tmp_path / "sheet.png").size == (2 * 64 + 12, 84 + 8)


def test_a_rooms_page_and_file(tmp_path):
    done = scrubjay("room", "FloorPlan401", "--out", "page.html", "--save", "room.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    for word in ("FloorPlan401", "standing, north", "crouching, west", "normals", "Openables", "data:image/png;base64"):
        assert word in page
    again = scrubjay("room", "room.json", "--out", "again.html", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.html").read_text().count("<img") == page.count("<img")


def test_the_demo_hides_an_object(tmp_path):
    done = scrubjay("demo", "--out", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "demo" / "index.html").read_text()
    assert "contained in Drawer" in page
    assert "Closed: 0 of its" in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("room", "FloorPlan31"), "unknown scene 'FloorPlan31'"),
        (("rooms", "castle-3", "--json"), "unknown scene 'castle-3'"),
        (("room", "nowhere.json"), "not a room file"),
    ],
)
def test_mistakes_are_said_in_a_line(tmp_path, words, said):
    done = scrubjay(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_games_are_played_and_recorded(tmp_path):
    done = scrubjay("games", "FloorPlan501", "--out", "games.jsonl", "--seed", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = (tmp_path / "games.jsonl").read_text().splitlines()
    record, told = json.loads(line), json.loads(done.stdout)
    assert told["scene"] == record["scene"] == "FloorPlan501"
    assert told["steps"] == len(record["actions"]) >= 202 and told["found"] == record["found"]
    done = scrubjay("story", "games.jsonl", "--out", "story.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "FloorPlan501" in (tmp_path / "story.html").read_text()
    missing = scrubjay("story", "games.jsonl", "--number", "2", cwd=tmp_path)
    assert missing.returncode == 2 and "there is no number 2" in " ".join(missing.stderr.split())


def test_spots_are_made_and_kept(tmp_path):
    words = ("spots", "FloorPlan501", "--goals", "Cup", "--candidates", "12", "--processes", "1", "--out", "spots")
    done = scrubjay(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "spots").rglob("*.json")
    before = file.stat().st_mtime_ns
    assert json.loads(file.read_text())["candidates"] == 12
    assert scrubjay(*words, cwd=tmp_path).returncode == 0
    assert file.stat().st_mtime_ns == before, "what is there is kept"


def test_bench_world_prints_one_object_last(tmp_path):
    done = scrubjay("bench", "world", "--rooms", "2", "--seconds", "0.3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    for name in ("rgb_fps", "build_s", "hand_actions_per_s", "settle_s", "rss_mib"):
        assert figures[name] > 0
