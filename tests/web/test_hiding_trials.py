"""The whole human evaluation over the real WebSocket: people hide, others seek, and the table is exported."""

import csv
import io
import json
from contextlib import contextmanager
from dataclasses import replace

from helpers import drawer_chest, hut
from web_helpers import SCENE, SIZE, Clock, Player, download, make_settings, playing, request

from scrubjay.game.record import Record, replay
from scrubjay.sim.compile import compile_room
from scrubjay.sim.world import World
from scrubjay.web import export
from scrubjay.web.server import running

ROOM = compile_room(replace(hut(*drawer_chest()), scene=SCENE))
HIDING = f"""
name = "hide"
title = "Hide it well"
kind = "hide"
consent = "You may stop at any time."
instructions = "You hold an object."
trials = 2
repeats = 3
scenes = ["{SCENE}"]
goals = ["Bread"]
practice = {{scene = "{SCENE}", goal = "Bread"}}
"""
SEEKING = f"""
name = "seek"
title = "Find it"
kind = "seek"
consent = "You may stop at any time."
instructions = "Look for the object."
trials = 5
code = "F0UND"
practice = {{scene = "{SCENE}", goal = "Bread"}}
[[places]]
source = "people"
records = "people.jsonl"
"""
HEADERS = {
    "trials.csv": "trial,participant,role,scene,goal,source,place,created,started,ended,found,given_up,steps,seconds,"
    "split,worker,focus_losses,unfocused_seconds",
    "actions.csv": "trial,participant,role,number,time,action,success,attempt,client_time",
    "participants.csv": "participant,status,code,bonus,PROLIFIC_PID,STUDY_ID,SESSION_ID,workerId,hitId,assignmentId,"
    "joined,consented,declined,finished,trials,browser,parameters",
    "answers.csv": "participant,part,question,answer,time,client_time",
    "focus.csv": "trial,participant,focused,time,client_time",
    "table.csv": "source,split,trials,found,found_low,found_high,steps,steps_low,steps_high",
}


class Site:
    """A server with one study, as seen by a participant and by the admin."""

    def __init__(self, server, url: str, clock: Clock) -> None:
        self.server, self.url, self.clock = server, url, clock
        (self.study,) = server.studies

    def join(self) -> None:
        parameters = {"PROLIFIC_PID": "=one", "STUDY_ID": "s", "SESSION_ID": "t"}
        self.token = request(self.url, f"/api/studies/{self.study}/join", {"parameters": parameters})[1]["participant"]

    def advance(self, do: str) -> dict:
        """Takes the next step of the study; returns the new status."""
        code, status = request(self.url, "/api/participant", {"do": do}, self.token)
        assert code == 200, status
        return status

    def file(self, name: str) -> str:
        """One of the study's export files."""
        return download(self.url, self.server.admin_token, self.study, name)

    def rows(self, name: str) -> list[dict]:
        return list(csv.DictReader(io.StringIO(self.file(name))))


@contextmanager
def site(folder, text: str):
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(text)
    clock = Clock()
    settings = make_settings(folder, studies=[folder / "study.toml"], build=lambda _: ROOM, clock=clock)
    with running(settings) as (server, url):
        yield Site(server, url, clock)


def test_a_study_without_trials_has_files_with_headers(tmp_path):
    with site(tmp_path, HIDING) as here:
        for name, header in HEADERS.items():
            assert here.file(name) == header + "\r\n"
        assert [here.file(name) for name in ("trials.jsonl", "actions.jsonl", "records.jsonl")] == [""] * 3
        assert here.file("table.json") == "[]"


def hide(one: Player, second_thoughts: bool = False) -> dict:
    """Hides the object a step ahead; returns the trial's last state."""
    assert one.welcome["kind"] == "hide" and one.state["phase"] == "walk" and one.state["give_up_in"] is None
    assert one.act("RotateLeft")["success"]
    assert one.act("HideHere")["phase"] == "hold"
    if second_thoughts:
        assert one.act("DropObject")["phase"] == "placed"
        assert one.act("Walk")["phase"] == "walk"
        assert one.act("RotateLeft")["success"]
        assert one.act("HideHere")["phase"] == "hold"
    for _ in range(5):
        one.act("MoveHandAhead")
    assert one.act("DropObject")["phase"] == "placed"
    over = one.act("ReadyForSeeker")
    assert over["phase"] == "done" and over["result"]["found"] is None
    return over


def seek(one: Player) -> dict:
    """Turns around and claims to see it at every turn; returns the trial's last state."""
    assert one.welcome["kind"] == "seek" and one.state["phase"] == "seek"
    one.act("Crouch")
    for _ in range(4):
        if (state := one.act("ClaimVisible"))["phase"] == "done":
            return state
        one.act("RotateLeft")
    raise AssertionError("the object cannot be seen from where it was hidden")


def action_names(actions: list[dict]) -> list[str]:
    """Without arguments."""
    return [row["action"].split(" ")[0].split("|")[0] for row in actions]


def test_people_hide_and_others_seek_there_until_the_table_is_complete(tmp_path):
    with site(tmp_path / "hiding", HIDING) as here:
        here.join()
        assert here.advance("agree")["status"] == "instructions"
        with playing(here.url, here.advance("practise")["practice"]) as one:
            assert one.welcome["practice"] and hide(one)["result"]["record"]
        assert here.advance("begin")["practice"] is None
        for second_thoughts in (False, True):
            with playing(here.url, here.advance("next")["trial"]) as one:
                assert one.welcome["study"] and not one.welcome["practice"]
                here.clock.now += 7
                hide(one, second_thoughts)
        status = here.advance("next")
        assert status["status"] == "done" and (status["done"], status["of"]) == (2, 2) and len(status["code"]) == 8
        assert request(here.url, "/api/participant", token=here.token)[1] == status

        trials, actions = here.rows("trials.csv"), here.rows("actions.csv")
        assert [row["role"] for row in trials] == ["hide"] * 2 and {row["worker"] for row in trials} == {"'=one"}
        assert [float(row["seconds"]) for row in trials] == [7, 7] and len({row["place"] for row in trials}) == 2
        # Turn, target, five hand moves, drop, ready; the second also has a discarded attempt of turn, target and drop.
        assert [int(row["steps"]) for row in trials] == [9, 12]
        assert [row["found"] for row in trials] == ["", ""]
        first, second = ([row for row in actions if row["trial"] == trial["trial"]] for trial in trials)
        last = [*["MoveHandAhead"] * 5, "DropObject", "ReadyForSeeker"]
        assert action_names(first) == ["RotateLeft", "HideHere", "PS", "PlaceAt", *last]
        assert action_names(second) == [
            "RotateLeft",
            "HideHere",
            "PS",
            "PlaceAt",
            "DropObject",
            "Walk",
            *action_names(first),
        ]
        assert [row["attempt"] for row in second] == ["1"] * 5 + ["2"] * 12
        (progress,) = request(here.url, "/api/admin/progress", token=here.server.admin_token)[1]["studies"]
        assert (progress["finished"], progress["trials_done"], progress["trials_wanted"]) == (1, 2, 3)
        assert here.file("table.csv") == HEADERS["table.csv"] + "\r\n"  # No searches yet.
        people = here.file("records.jsonl")

    records = [Record.from_dict(json.loads(line)) for line in people.splitlines()]
    assert [record.players["hider"] for record in records] == ["participant 1"] * 2
    with World([ROOM], size=SIZE) as world:
        for record in records:
            assert len(list(replay(record, world))) == len(record.actions)

    seeking = tmp_path / "seeking"
    seeking.mkdir()
    (seeking / "people.jsonl").write_text(people)
    with site(seeking, SEEKING) as here:
        here.join()
        here.advance("agree")
        here.advance("begin")
        with playing(here.url, here.advance("next")["trial"]) as one:
            assert seek(one)["result"]["found"]
            steps = one.number
        with playing(here.url, here.advance("next")["trial"]) as one:
            one.act("RotateLeft")
            here.clock.now += 100
            assert one.act("GiveUp")["result"]["found"] is False
        assert here.advance("next")["code"] == "F0UND"
        (everything,) = [row for row in here.rows("table.csv") if row["split"] == "all"]
    assert (everything["source"], everything["trials"], everything["found"]) == ("people", "2", "0.5")
    # The Wilson interval of 1 in 2; a failed search counts as 500 steps.
    assert (everything["found_low"], everything["found_high"]) == ("0.0945", "0.9055")
    assert float(everything["steps"]) == (steps + 500) / 2
    (row,) = [row for row in export.human_table(seeking / "play.db", "seek") if row["split"] == "all"]
    assert {key: str(value) for key, value in row.items()} == everything
