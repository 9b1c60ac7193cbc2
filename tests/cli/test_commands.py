"""The commands, as a user types them."""

import json
import re
import signal
import subprocess
import sys
import time
from inspect import getdoc, signature
from types import SimpleNamespace

import pytest
from helpers import run_command
from PIL import Image

from scrubjay import __version__
from scrubjay.cli import leaderboard, study, study_dynamic, study_natural, study_train
from scrubjay.cli.main import COMMANDS, MEASURES, main
from scrubjay.players.by_name import HIDERS, SEEKERS
from scrubjay.rooms.room import GOALS
from scrubjay.study.static_generate import SCALES

ALL_COMMANDS = [
    *COMMANDS, *MEASURES, study.static_data, study.contained_data, study.tracking_data, study.static, study.merge,
    study.report, study_dynamic.space_data, study_dynamic.rotation_data, study_dynamic.dynamic, study_natural.natural,
    study_natural.photographs, study_train.auto_encoder, study_train.classes, leaderboard.add, leaderboard.show,
]  # fmt: skip


def scrubjay(*args: str, cwd) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "scrubjay", *args], cwd=cwd, capture_output=True, text=True)


def test_rooms_as_json(tmp_path):
    done = scrubjay("rooms", "FloorPlan1", "bathroom-7", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kitchen, bathroom = map(json.loads, done.stdout.splitlines())
    assert list(kitchen) == ["scene", "type", "objects", "object_types", "openables", "openables_reachable", "geoms",
                             "positions", "build_s"]  # fmt: skip
    assert kitchen["scene"] == "FloorPlan1" and kitchen["type"] == "kitchen" and kitchen["openables"] >= 12
    assert bathroom["scene"] == "bathroom-7" and bathroom["type"] == "bathroom"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["rooms", "FloorPlan1", "FloorPlan0"], "unknown scene 'FloorPlan0'"),
        (["rooms", "FloorPlan1", "--size", "-1"], "--size: 1 or more, not -1"),
        (["rooms", "FloorPlan1", "--columns", "0"], "--columns: 1 or more, not 0"),
        (["games", "FloorPlan1", "--count", "-1"], "--count: 1 or more, not -1"),
        (["games", "FloorPlan1", "--count", "many"], "--count: 1 or more, not many"),
        (["story", "games.jsonl", "--number", "0"], "--number: 1 or more, not 0"),
        (["spots", "FloorPlan501", "--seed", "-1"], "--seed: 0 or more, not -1"),
        (["spots", "FloorPlan501", "--candidates", "0"], "--candidates: 1 or more, not 0"),
        (["placements", "FloorPlan501", "--workers", "0"], "--workers: a number of processes from 1, ray, ray:auto, "),
        (["spots", "FloorPlan501", "--workers", "banana"], "ray:HOST:PORT or ray://HOST:PORT, not banana"),
        (["tournament", "--size", "-224"], "--size: a multiple of 7, the cells of a side, not -224"),
        (["tournament", "--seed", "-1"], "--seed: 0 or more, not -1"),
        (["tournament", "--games", "0"], "--games: 1 or more, not 0"),
        (["milestones", "run", "--size", "0"], "--size: a multiple of 7, the cells of a side, not 0"),
        (["evaluate", "nowhere", "--games", "0"], "--games: 1 or more, not 0"),
        (["evaluate", "nowhere", "--task", "explore"], "nowhere: there is no such folder of a run or of weights"),
        (["evaluate", "nowhere"], "nowhere is not a run: no such folder"),
        (["watch", "nowhere", "--seed", "-3"], "--seed: 0 or more, not -3"),
        (["curves", "nowhere"], "nowhere has no log to draw: no such file or directory"),
        (["bench", "world", "--seconds", "0"], "--seconds: a number above 0, not 0"),
        (["bench", "world", "--seconds", "nan"], "--seconds: a number above 0, not nan"),
        (["bench", "world", "--rooms", "-3"], "--rooms: 1 or more, not -3"),
        (["bench", "scaling", "--device", "cpu", "--seconds", "0"], "--seconds: a number above 0, not 0"),
        (["bench", "endurance", "--interval", "-1"], "--interval: a number above 0, not -1"),
        (["participants", "--count", "0"], "--count: 1 or more, not 0"),
        (["bench", "server", "--pause", "-1"], "--pause: a number above 0, not -1"),
        (["bench", "game", "--steps", "0"], "--steps: 1 or more, not 0"),
        (["bench", "game", "--games", "7"], "games: one or more in each of the 8 rooms, not 7 in all"),
        (["bench", "agent", "--games", "0"], "--games: 1 or more, not 0"),
        (["bench", "cluster", "--gigabits", "0"], "--gigabits: a number above 0, not 0"),
        (["bench", "cluster", "--updates", "1"], "updates: 2 or more, to see how much they vary, not 1"),
        (["bench", "learning", "--rooms", "0"], "--rooms: 1 or more, not 0"),
        (["bench", "learning", "--updates", "0"], "--updates: 1 or more, not 0"),
        (["bench", "learning", "--preset", "seek", "--spots", "no"], "not a file of hiding spots: no such file"),
        (["room", "nowhere.json"], "nowhere.json: not a room file: no such file or directory"),
        (["rooms", "FloorPlan501", "--size", "64", "--out", "."], ".: is a folder, not a file to write"),
        (["human", "--study", "nothing", "--data", "."], ".: no such file"),
        (["study", "static", "--encoders", "--scale", "mini"], "encoders: at least one, each once, not none"),
        (["study", "static", "--encoders", "random", "--tasks", "taste"], "tasks: unknown taste; choose from depth"),
        (["study", "report", "--studies"], "studies: name at least one folder of results"),
        (["study", "merge", "--studies", "no"], "no/study.json: not the record of a study: no such file"),
        (["study", "train", "auto-encoder", "--batch-size", "0"], "--batch-size: 1 or more, not 0"),
        (["play", "--seed", "-1"], "--seed: 0 or more, not -1"),
        (["study", "data", "static", "--seed", "-1"], "seed: 0 or more, not -1"),
        (["study", "data", "static", "--device", "gpu"], "unknown device 'gpu'"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_leave_nothing(args, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, _, errors = run_command(monkeypatch, capsys, *args)
    assert code == 2 and message in errors and not list(tmp_path.iterdir())


def test_numbers_of_every_command_have_bounds():
    """A plain int or float accepts what no command can use; `scrubjay.cli.arguments` has types with bounds."""
    plain = [
        f"{command.__name__} --{parameter.name}"
        for command in ALL_COMMANDS
        for parameter in signature(command).parameters.values()
        if re.search(r"\b(int|float)\b", str(parameter.annotation))
    ]
    # A list of numbers is checked where the data's size is known.
    assert plain == ["static --sizes"]


def test_help_names_the_goal_objects_and_the_players():
    for command in ALL_COMMANDS:
        text, parameters = getdoc(command), signature(command).parameters
        needed = [
            *(GOALS if "goal" in parameters else ()),
            *(HIDERS if {"hider", "hiders"} & set(parameters) else ()),
            *(SEEKERS if {"seeker", "seekers"} & set(parameters) else ()),
        ]
        assert not [name for name in needed if name not in text], command.__name__


def test_the_version_is_printed(monkeypatch, capsys):
    assert run_command(monkeypatch, capsys, "--version") == (0, f"scrubjay {__version__}\n", "")


def test_ctrl_c_is_one_sentence_that_says_how_to_go_on(tmp_path):
    words = ("spots", "FloorPlan501", "--candidates", "100000", "--out", "spots")
    process = subprocess.Popen(
        [sys.executable, "-m", "scrubjay", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    begun = process.stderr.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    errors = process.stderr.read()
    assert begun.startswith("Spots: 0/5")
    assert errors == "scrubjay: interrupted; the same command continues where it stopped\n"
    assert process.wait(60) == 130


def test_a_reader_that_has_read_enough_ends_a_command_quietly(tmp_path):
    words = [sys.executable, "-m", "scrubjay", "rooms", "FloorPlan501", "FloorPlan502", "--json"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    assert json.loads(process.stdout.readline())["scene"] == "FloorPlan501"
    process.stdout.close()
    assert (process.stderr.read(), process.wait(60)) == ("", 141)


def test_missing_spots_name_all_that_is_to_be_done(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ("tournament", "--hiders", "easy", "--rooms", "FloorPlan501", "FloorPlan502", "--games", "1")
    _, _, errors = run_command(monkeypatch, capsys, *words)
    assert "no spots of a Bread in FloorPlan501 and 1 more files without a folder of spots" in errors
    assert "`scrubjay spots FloorPlan501 FloorPlan502 --out out/spots`" in errors
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "FloorPlan9-Bread.json").write_text("{}")
    _, _, errors = run_command(monkeypatch, capsys, *words, "--spots", "made")
    assert "or play where they are, with --rooms FloorPlan9" in errors


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


def test_the_demo_plays_a_game_and_hides_an_object(tmp_path):
    done = scrubjay("demo", "--out", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rooms = (tmp_path / "demo" / "rooms.html").read_text()
    assert "contained in Drawer" in rooms
    assert "Closed: 0 of its" in rooms
    assert "A game of Cache" in (tmp_path / "demo" / "game.html").read_text()
    first = (tmp_path / "demo" / "index.html").read_text()
    assert "Cache is hide and seek with an object" in first and "FloorPlan201, a living room" in first
    assert set(re.findall(r'href="(.*?)"', first)) == {"game.html", "game.mp4", "rooms.html"}, "only what is there"
    assert "What was learned" not in first, "nothing was trained"
    assert "demo/index.html" in done.stdout


@pytest.mark.parametrize(
    ("args", "output"),
    [
        (("room", "FloorPlan31"), "unknown scene 'FloorPlan31'"),
        (("rooms", "castle-3", "--json"), "unknown scene 'castle-3'"),
        (("room", "nowhere.json"), "not a room file"),
        (
            ("play", "--hider", "nobody", "--out", "new"),
            "unknown hider 'nobody'; choose from random, possible, heuristic, easy",
        ),
        (("play", "--goal", "Car", "--out", "new"), "unknown goal objects ['Car']"),
        (("replay", "nowhere.json"), "nowhere.json: no such file"),
        (("tournament", "--seekers", "nobody", "--out", "new"), "unknown seeker nobody; choose from random"),
        (("tournament", "--hiders", "easy", "--rooms", "FloorPlan26", "--out", "new"), "no spots of a Bread"),
    ],
)
def test_mistakes_get_a_one_line_error(tmp_path, args, output):
    done = scrubjay(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert output in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The folder of a short game."""
    folder = tmp_path_factory.mktemp("play")
    args = ("--hider", "heuristic", "--seeker", "oracle", "--scene", "FloorPlan501", "--goal", "Cup", "--seed", "3")
    done = scrubjay("play", *args, "--out", "game", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_a_game_is_played_and_summarized(played):
    folder, output = played
    record = json.loads((folder / "game" / "record.json").read_text())
    assert record["scene"] == "FloorPlan501" and record["spec"]["goal"] == "Cup"
    assert record["players"] == {"hider": "heuristic", "seeker": "oracle"}
    page = (folder / "game" / "index.html").read_text()
    assert "Cup in FloorPlan501" in page and 'href="game.mp4"' in page
    assert (folder / "game" / "game.mp4").read_bytes()[4:8] == b"ftyp"
    ending = "found it" if record["found"] else "did not find it"
    assert f"the seeker (oracle) {ending}" in output and "visible from" in output
    assert output.splitlines()[-1] == "game/index.html"


def test_a_replay_reports_the_first_difference(played):
    folder, _ = played
    line = (folder / "game" / "record.json").read_text()
    done = scrubjay("replay", "game/record.json", "--check", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(line)["hash"] in done.stdout
    record = json.loads(line)
    record["places"][5][0] += 1
    (folder / "changed.json").write_text(json.dumps(record) + "\n" + line)
    done = scrubjay("replay", "changed.json", "--check", cwd=folder)
    assert done.returncode == 1
    assert "1: Cup in FloorPlan501, not the same: step 6 of" in " ".join(done.stderr.split())
    assert done.stdout.startswith("2: Cup in FloorPlan501"), "the second is the same"
    (folder / "cut.json").write_text(line[:-30])
    done = scrubjay("replay", "cut.json", "--check", cwd=folder)
    assert done.returncode == 2 and "cut.json, line 1: not JSON" in " ".join(done.stderr.split())


def test_bad_records_do_not_keep_others_from_being_checked(played):
    folder, _ = played
    line = (folder / "game" / "record.json").read_text()
    bad = [
        json.loads(line) | change for change in ({"size": "large"}, {"scene": "FloorPlan999"}, {"renderer": "Pencil"})
    ]
    (folder / "some.jsonl").write_text("".join(json.dumps(record) + "\n" for record in bad) + line + line[:-30])
    done = scrubjay("replay", "some.jsonl", "--check", cwd=folder)
    errors = done.stderr.splitlines()
    assert done.returncode == 1 and done.stdout.startswith("4: Cup in FloorPlan501") and "the same" in done.stdout
    for number, words in enumerate(("size: input should be", "unknown scene", "unknown renderer"), 1):
        assert any(error.startswith(f"{number}: ") and words in error for error in errors)
    assert "5: some.jsonl, line 5: not JSON, perhaps truncated" in done.stderr and "Traceback" not in done.stderr
    done = scrubjay("story", "game/game.mp4", cwd=folder)
    assert done.returncode == 2 and "game/game.mp4, line 1: not JSON" in " ".join(done.stderr.split())


def test_games_are_played_and_recorded(tmp_path):
    args = ("--hider", "heuristic", "--seeker", "oracle", "--seed", "2")
    done = scrubjay("games", "FloorPlan501", *args, "--out", "games.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = (tmp_path / "games.jsonl").read_text().splitlines()
    record, printed = json.loads(line), json.loads(done.stdout)
    assert printed["scene"] == record["scene"] == "FloorPlan501"
    assert printed["steps"] == len(record["actions"]) >= 202 and printed["found"] == record["found"]
    done = scrubjay("story", "games.jsonl", "--out", "story.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "FloorPlan501" in (tmp_path / "story.html").read_text()
    missing = scrubjay("story", "games.jsonl", "--number", "2", cwd=tmp_path)
    assert missing.returncode == 2 and "there is no number 2" in " ".join(missing.stderr.split())


def test_a_tournament_of_two_seekers(tmp_path):
    args = ("--hiders", "random", "--seekers", "random", "oracle", "--rooms", "FloorPlan501", "--games", "1")
    done = scrubjay("tournament", *args, "--size", "56", "--out", "cup", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert results == json.loads((tmp_path / "cup" / "results.json").read_text())
    assert list(results["searches"]["random"]) == ["random", "oracle"]
    assert results["searches"]["random"]["oracle"]["found"]["games"] == 1
    assert (tmp_path / "cup" / "table.md").read_text() in done.stdout
    assert len((tmp_path / "cup" / "games.jsonl").read_text().splitlines()) == 3
    assert Image.open(tmp_path / "cup" / "plot.png").format == "PNG"


def test_spots_are_made_and_kept(tmp_path):
    args = ("spots", "FloorPlan501", "--goal", "Cup", "--candidates", "12", "--workers", "1", "--out", "spots")
    done = scrubjay(*args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "spots").rglob("*.json")
    before = file.stat().st_mtime_ns
    assert json.loads(file.read_text())["candidates"] == 12
    assert scrubjay(*args, cwd=tmp_path).returncode == 0
    assert file.stat().st_mtime_ns == before, "existing files are kept"
    one = scrubjay("spots", "FloorPlan501", "--goal", "Cup", "--candidates", "12", "--out", "cup.json", cwd=tmp_path)
    assert one.returncode == 0 and (tmp_path / "cup.json").read_text() == file.read_text()
    refused = scrubjay("spots", "FloorPlan501", "--out", "all.json", cwd=tmp_path)
    assert refused.returncode == 2 and "name both" in refused.stderr and not (tmp_path / "all.json").exists()


@pytest.fixture(scope="module")
def placements(tmp_path_factory):
    """A folder with the placements of a cup in foyer-1, and what the command printed."""
    folder = tmp_path_factory.mktemp("placements")
    done = scrubjay("placements", *PLACEMENTS, "--page", "page.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


PLACEMENTS = ("foyer-1", "--goal", "Cup", "--count", "3", "--workers", "1", "--out", "made")


def test_placements_are_made_kept_and_drawn(placements, monkeypatch, capsys):
    folder, printed = placements
    (file,) = (folder / "made").iterdir()
    assert printed.splitlines() == ["made", "page.html"] and file.name == "foyer-1-Cup.json"
    data, before = json.loads(file.read_text()), file.stat().st_mtime_ns
    assert (data["scene"], data["goal"]) == ("foyer-1", "Cup") and 1 <= len(data["placements"]) <= 3
    page = (folder / "page.html").read_text()
    assert "Cup in foyer-1" in page and page.count("<img") == len(data["placements"])
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["scrubjay", "placements", *PLACEMENTS])
    main()
    assert capsys.readouterr().out == "made\n" and file.stat().st_mtime_ns == before, "existing files are kept"


def _without_the_first(text: str) -> str:
    data = json.loads(text)
    return json.dumps({**data, "placements": data["placements"][1:]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "not a file of placements"),
        (lambda text: text.replace('"version": 2', '"version": 9'), "not a file of placements of version 2; make"),
        (_without_the_first, "placements that were edited; make the file again"),
        (None, "placements of a Cup in foyer-1, not of a Cup in foyer-2"),
    ],
    ids=["cut off", "another version", "edited", "another room"],
)
def test_bad_placements_are_refused_and_left_alone(placements, change, message, tmp_path, monkeypatch, capsys):
    good = (placements[0] / "made" / "foyer-1-Cup.json").read_text()
    file = tmp_path / "made" / f"foyer-{1 if change else 2}-Cup.json"
    file.parent.mkdir()
    file.write_text(change(good) if change else good)
    before = file.read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["scrubjay", "placements", "foyer-2", *PLACEMENTS])
    with pytest.raises(SystemExit) as exit:
        main()
    errors = " ".join(capsys.readouterr().err.split())
    assert exit.value.code == 2 and message in errors and file.name in errors
    assert list(tmp_path.rglob("*.*")) == [file] and file.read_text() == before


@pytest.mark.slow
def test_bench_world_prints_one_object_last(tmp_path):
    done = scrubjay("bench", "world", "--rooms", "2", "--seconds", "0.3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    for name in ("rgb_fps", "build_s", "hand_actions_per_s", "settle_s", "rss_mib"):
        assert figures[name] > 0


def test_data_of_the_static_experiments(tmp_path, monkeypatch, capsys):
    """Two images of a bathroom in place of the miniature's 120."""
    tiny = SimpleNamespace(counts=lambda: {"FloorPlan401": 2, "FloorPlan421": 1, "FloorPlan426": 1})
    monkeypatch.setitem(SCALES, "mini", tiny)
    monkeypatch.setattr("sys.argv", ["scrubjay", "study", "data", "static", "--scale", "mini", "--out", str(tmp_path)])
    main()
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "samples.html")
    assert (tmp_path / "index.csv").read_text().count("\n") == 5
    before = (tmp_path / "FloorPlan401" / "rgb.npy").stat().st_mtime_ns
    main()
    assert (tmp_path / "FloorPlan401" / "rgb.npy").stat().st_mtime_ns == before
