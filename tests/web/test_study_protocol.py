"""Studies: their files, matched places, counterbalanced trials, participants' progress, and exported data."""

import csv
import io
import json
from typing import get_args

import numpy as np
import pytest
from web_helpers import ROOM, SCENE, SIZE, START, Clock, download, hidden_record, make_settings, playing, request, take

from scrubjay.errors import DatabaseError, StudyError
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record, replay, save_records
from scrubjay.rooms.room import GOALS
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.spots import Spot, Spots, save_spots, spots_path
from scrubjay.web import export
from scrubjay.web.database import Database
from scrubjay.web.participants import Participants, PreviewError
from scrubjay.web.schemas import Goal
from scrubjay.web.server import running
from scrubjay.web.study_protocol import Study, can_be_seen, load_study, register_study
from scrubjay.web.trial import HIDE, NotAllowedError, Trial

TEXT = """
name = "find"
title = "Find it"
kind = "seek"
consent = "You may stop at any time."
instructions = "Look for the object."
trials = 4
code = "C0DE"
return_to = "https://example.org/done"
practice = {scene = "foyer-7", goal = "Bread"}
"""
PLACES = """
[[places]]
source = "people"
records = "people.jsonl"
[[places]]
source = "agent"
records = "agent.jsonl"
matched = "people"
"""
ON_FLOOR = [0.0, 1.0, 0.065, 1.0, 0.0, 0.0, 0.0]
UNDER_GROUND = [0.0, 1.0, -3.0, 1.0, 0.0, 0.0, 0.0]
STARTS = [START, AgentPose(0.25, 0.0, 0.0, True), AgentPose(0.0, 0.25, 0.0, True)]


@pytest.fixture
def folder(tmp_path):
    """A study with three places of people, the last of them invisible, and five of an agent."""
    (tmp_path / "study.toml").write_text(TEXT + PLACES)
    poses = [ON_FLOOR, ON_FLOOR, UNDER_GROUND]
    save_records(
        [hidden_record(start, pose) for start, pose in zip(STARTS, poses, strict=True)], tmp_path / "people.jsonl"
    )
    others = [*STARTS[::-1], START, AgentPose(1.0, 1.0, 90.0, True)]
    save_records([hidden_record(start, ON_FLOOR, "a") for start in others], tmp_path / "agent.jsonl")
    return tmp_path


def registered(folder) -> tuple[Database, Study]:
    database = Database(folder / "play.db", writable=True)
    study, locations = load_study(folder / "study.toml")
    register_study(database, study, locations, build=lambda scene: ROOM)
    return database, study


def test_matched_places_have_the_same_rooms_objects_and_starts(folder):
    _, locations = load_study(folder / "study.toml")
    people, agent = ([place for place in locations if place.source == name] for name in ("people", "agent"))
    assert [place.spec.start for place in people] == [place.spec.start for place in agent] == STARTS
    assert all(place.spec.first == place.spec.last == Stage.S for place in locations)


def test_places_that_cannot_be_seen_are_marked(folder):
    database, _ = registered(folder)
    rows = database.all("SELECT source, seeable FROM locations ORDER BY number")
    assert [(row["source"], row["seeable"]) for row in rows] == [
        ("people", 1), ("people", 1), ("people", 0), ("agent", 1), ("agent", 1), ("agent", 1)
    ]  # fmt: skip
    closed = EpisodeSpec("Bread", START, Stage.S, Stage.S, pose=(0.0, 1.7, 0.72, 1, 0, 0, 0))
    assert can_be_seen(ROOM, closed)  # In a closed drawer that can be opened.


def test_matched_spots_take_the_starts_of_their_partners(folder):
    spot = Spot("Bread", tuple(ON_FLOOR), (), "floor", "", 0.2)
    spots = Spots(SCENE, "Bread", 60, {"easy": (), "medium": (), "hard": (spot,) * 3})
    save_spots(spots, spots_path(folder / "spots", SCENE, "Bread"))
    source = '[[places]]\nsource = "hard"\nspots = "spots"\ndifficulty = "hard"\nmatched = "people"\n'
    (folder / "study.toml").write_text(TEXT + PLACES + source)
    _, locations = load_study(folder / "study.toml")
    assert [place.spec.start for place in locations if place.source == "hard"] == STARTS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "not a study file"),
        (TEXT.replace("trials = 4", "trials = 0"), "trials: input should be greater than or equal to 1, not 0$"),
        (TEXT + "color = 1", "color: extra inputs are not permitted$"),
        (TEXT.replace('"find"', '"a/b"'), "name: string should match pattern .*, not 'a/b'$"),
        (TEXT.replace('title = "Find it"\n', ""), "title: field required$"),
        (TEXT.replace('"foyer-7"', '"nowhere"') + PLACES, "unknown scene"),
        (TEXT, "at least one source"),
        (TEXT + PLACES.replace('"agent.jsonl"', '"none.jsonl"'), "none.jsonl"),
        (TEXT + PLACES.replace('matched = "people"', 'matched = "nobody"'), "not a source before it"),
        (TEXT + PLACES.replace('"agent.jsonl"', '"people.jsonl"\nspots = "x"'), "needs either records or spots"),
        (TEXT.replace('"seek"', '"hide"') + PLACES, "a hiding study needs scenes"),
        ('scenes = ["foyer-8"]' + TEXT + PLACES, "no place in the study's rooms"),
    ],
)
def test_an_invalid_study_gets_one_clear_sentence(folder, text, message):
    (folder / "study.toml").write_text(text)
    with pytest.raises(StudyError, match=message):
        load_study(folder / "study.toml")


def test_places_without_a_match_are_counted(folder):
    save_records([hidden_record(START, ON_FLOOR, "a")], folder / "agent.jsonl")
    with pytest.raises(StudyError, match="2 of 3 places of people have no match in agent"):
        load_study(folder / "study.toml")


def test_a_study_that_people_have_joined_does_not_change(folder):
    database, study = registered(folder)
    register_study(database, *load_study(folder / "study.toml"), build=lambda scene: pytest.fail("registered twice"))
    changed = TEXT.replace("trials = 4", "trials = 3") + PLACES
    (folder / "study.toml").write_text(changed)
    register_study(database, *load_study(folder / "study.toml"), build=lambda scene: ROOM)
    Participants(database, {"find": study}, Clock()).join("find", {})
    (folder / "study.toml").write_text(TEXT + PLACES)
    with pytest.raises(StudyError, match="give it another name"):
        register_study(database, *load_study(folder / "study.toml"), build=lambda scene: ROOM)


def test_trials_are_counterbalanced_and_each_place_gets_its_repeats(folder):
    (folder / "study.toml").write_text(TEXT.replace("trials = 4", "trials = 2\nrepeats = 3") + PLACES)
    database, study = registered(folder)
    participants = Participants(database, {"find": study}, Clock())
    seen = []
    for _ in range(8):
        token = participants.join("find", {})["participant"]
        participants.act(token, "agree")
        participants.act(token, "begin")
        mine = []
        while (status := participants.act(token, "next"))["status"] == "trials":
            row = database.one("SELECT * FROM trials WHERE token = ?", status["trial"])
            database.update("trials", row["id"], ended=1.0, found=True, steps=1)
            mine.append(row["opponent"])
            seen.append(row["location"])
        assert status["code"] == "C0DE" and status["return"] == "https://example.org/done"
        if len(seen) <= 12:
            assert sorted(mine) == ["agent", "people"]  # One of each for every participant.
    assert np.bincount(seen)[1:].tolist() == [3, 3, 0, 3, 3, 3]


def test_the_same_platform_parameters_are_the_same_participant(folder):
    database, study = registered(folder)
    participants = Participants(database, {"find": study}, Clock())
    prolific = {"PROLIFIC_PID": "a", "STUDY_ID": "b", "SESSION_ID": "c"}
    first = participants.join("find", prolific)["participant"]
    participants.act(first, "agree")
    assert participants.join("find", prolific) == {"participant": first, "status": "instructions"}
    assert participants.join("find", {"PROLIFIC_PID": "a"})["participant"] != first
    assert participants.join("find", {})["participant"] != participants.join("find", {})["participant"]
    turk = {"workerId": "w", "hitId": "h", "assignmentId": "x"}
    assert participants.join("find", turk)["participant"] == participants.join("find", turk)["participant"]
    with pytest.raises(PreviewError):
        participants.join("find", turk | {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"})


def test_steps_out_of_order_are_refused(folder):
    database, study = registered(folder)
    participants = Participants(database, {"find": study}, Clock())
    token = participants.join("find", {})["participant"]
    for action in ("begin", "next", "practise"):
        with pytest.raises(NotAllowedError):
            participants.act(token, action)
    participants.act(token, "agree")
    assert participants.act(token, "practise")["practice"]
    assert participants.act(token, "begin")["practice"] is None
    trial = participants.act(token, "next")["trial"]
    for action in ("next", "practise", "agree", "decline"):
        with pytest.raises(NotAllowedError):
            participants.act(token, action)
    assert participants.status(token)["trial"] == trial
    other = participants.join("find", {})["participant"]
    assert participants.act(other, "decline")["status"] == "declined"
    with pytest.raises(NotAllowedError):
        participants.act(other, "agree")


def test_a_participant_goes_through_a_whole_study_and_its_data_are_exported(folder):
    clock = Clock()
    with running(make_settings(folder, studies=[folder / "study.toml"], clock=clock)) as (server, url):
        assert request(url, "/api/options")[1]["studies"] == [{"name": "find", "title": "Find it"}]
        turk = {"workerId": "=W1", "hitId": "h", "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}
        assert request(url, "/api/studies/find/join", {"parameters": turk})[1]["error"] == "preview"
        joined = request(url, "/api/studies/find/join", {"parameters": turk | {"assignmentId": "y"}})[1]
        token = joined["participant"]

        def advance(do: str) -> dict:
            code, status = request(url, "/api/participant", {"do": do}, token)
            assert code == 200
            return status

        assert request(url, "/api/participant", token=token)[1]["consent"] == "You may stop at any time."
        advance("agree")
        with playing(url, advance("practise")["practice"]) as one:
            assert one.welcome["practice"] and one.act("GiveUp")["phase"] == "done"
        advance("begin")
        for number in range(4):
            with playing(url, advance("next")["trial"]) as one:
                assert one.welcome["study"] and one.welcome["opponent"] == "" and one.state["give_up_in"] == 100
                clock.now += 2.5
                if number:
                    result = one.act("ClaimVisible")["result"]
                    assert result == {"found": True, "steps": 1, "record": None}
                else:
                    one.act("RotateLeft")
                    clock.now += 100
                    assert one.act("GiveUp")["result"]["found"] is False
        status = advance("next")
        assert status["status"] == "done" and status["code"] == "C0DE" and status["done"] == 4

        admin = server.admin_token
        assert request(url, "/api/admin/progress")[0] == request(url, "/api/admin/progress", token="x" * 43)[0] == 401
        (study,) = request(url, "/api/admin/progress", token=admin)[1]["studies"]
        assert (study["participants"], study["finished"], study["trials_done"], study["trials_wanted"]) == (1, 1, 4, 5)
        assert {row["source"]: row["unseeable"] for row in study["sources"]} == {"people": 1, "agent": 0}

        files = {name: download(url, admin, "find", name) for name in export.FILES}
        rows = list(csv.DictReader(io.StringIO(files["trials.csv"])))
        assert [row["found"] for row in rows] == ["False", "True", "True", "True"]
        assert [float(row["seconds"]) for row in rows] == [102.5, 2.5, 2.5, 2.5]
        assert rows[0]["worker"] == "'=W1"  # Not a formula.
        actions = [json.loads(line) for line in files["actions.jsonl"].splitlines()]
        assert [row["action"] for row in actions] == ["RotateLeft", "GiveUp", *["ClaimVisible"] * 3]
        assert actions[1]["time"] - actions[0]["time"] == 100
        records = [Record.from_dict(json.loads(line)) for line in files["records.jsonl"].splitlines()]
        table = json.loads(files["table.json"])
    assert len(records) == 4 and table == export.human_table(folder / "play.db", "find")
    with World([ROOM], size=SIZE) as world:
        records[0].scene = "hut"
        assert len(list(replay(records[0], world))) == 2


def test_the_table_counts_invisible_places_as_not_found(folder):
    database, _ = registered(folder)
    trials = [("people", True, 40), ("people", True, 900), ("agent", False, 30), ("agent", True, 60)]
    for source, found, steps in trials:
        place = database.one("SELECT id FROM locations WHERE source = ? AND seeable", source)["id"]
        database.new_trial("seek", SCENE, "Bread", source, 0, 0.0, study="find", location=place, started=1.0, ended=2.0,
                        found=found, steps=steps)  # fmt: skip
    rows = {row["source"]: row for row in export.table(database, "find") if row["split"] == "all"}
    # People: found in 40 steps and in more than 500, and one place that cannot be seen. The agent: 1 of 2.
    assert rows["people"]["trials"] == 3 and rows["people"]["found"] == round(2 / 3, 4)
    assert rows["people"]["steps"] == round((40 + 500 + 500) / 3, 4)
    assert rows["agent"]["found"] == 0.5 and rows["agent"]["steps"] == (500 + 60) / 2
    # The Wilson interval of 1 in 2.
    assert (rows["agent"]["found_low"], rows["agent"]["found_high"]) == (0.0945, 0.9055)


def test_a_hiding_studys_records_are_the_places_of_a_seeking_study(tmp_path):
    text = TEXT.replace('"seek"', '"hide"').replace('code = "C0DE"', f'scenes = ["{SCENE}"]\ngoals = ["Bread"]')
    (tmp_path / "study.toml").write_text(text)
    database, study = registered(tmp_path)
    participants = Participants(database, {"find": study}, Clock())
    token = participants.join("find", {})["participant"]
    participants.act(token, "agree")
    participants.act(token, "begin")
    row = database.one("SELECT * FROM trials WHERE token = ?", participants.act(token, "next")["trial"])
    with World([ROOM], size=SIZE) as world:
        trial = Trial(world, EpisodeSpec("Bread", START, Stage.EM, Stage.OH, anywhere=True), HIDE, {})
        take(trial, "HideHere", "DropObject", "ReadyForSeeker")
    trial.record.scene = SCENE
    database.update("trials", row["id"], ended=1.0, record=json.dumps(trial.record.to_dict()), steps=2)
    database.close()
    (tmp_path / "people.jsonl").write_text("".join(export.export_file(tmp_path / "play.db", "find", "records.jsonl")))
    (tmp_path / "seek.toml").write_text(TEXT + '[[places]]\nsource = "people"\nrecords = "people.jsonl"\n')
    _, (place,) = load_study(tmp_path / "seek.toml")
    assert place.spec.start == START and list(place.spec.pose) == trial.record.pose
    assert abs(place.spec.pose[2] - 0.065) < 0.02  # On the floor.


def test_the_schema_lists_all_goal_objects():
    assert get_args(Goal) == GOALS


def test_files_that_are_no_database_are_refused(tmp_path):
    (tmp_path / "a.db").write_bytes(b"no database" * 200)
    for writable in (True, False):
        with pytest.raises(DatabaseError, match="not a Scrubjay database"):
            Database(tmp_path / "a.db", writable=writable)
    first = Database(tmp_path / "c.db", writable=True)
    with pytest.raises(DatabaseError, match="another server"):
        Database(tmp_path / "c.db", writable=True)
    first.close()
    Database(tmp_path / "c.db", writable=True).close()
    with pytest.raises(DatabaseError, match="no such file"):
        Database(tmp_path / "b.db")


def test_the_stored_json_of_studies_and_specs_stays_as_it_was(folder):
    """Databases contain these texts: a study would count as changed, and be refused, if they differed."""
    database, _ = registered(folder)
    spec = (
        '{"goal": "Bread", "start": [0.0, 0.0, 0.0, true], "first": "S", "last": "S", "place": null, "target": null, '
    )
    spec += '"pose": [0.0, 1.0, 0.065, 1.0, 0.0, 0.0, 0.0], "open": [], "anywhere": false}'
    assert database.one("SELECT deal FROM locations WHERE number = 0")["deal"] == spec
    definition = json.loads(database.one("SELECT definition FROM studies")["definition"])
    place = {"source": "people", "scene": SCENE, "deal": spec, "goal": "Bread", "pose": ON_FLOOR, "open": []}
    assert list(definition) == ["study", "locations"]
    assert json.dumps(definition["locations"][0]) == json.dumps(place)
    assert list(definition["study"]) == [
        "name", "title", "kind", "consent", "instructions", "trials", "repeats", "give_up_seconds", "code", "return_to",
        "seed", "scenes", "goals", "practice", "places",
    ]  # fmt: skip
    assert list(definition["study"]["places"][0]) == ["source", "records", "spots", "difficulty", "matched"]
