"""Evaluation plans with toy agents: files, trials by hand, resuming, the part of people, and the results."""

import csv
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scrubjay.errors import PlanError, SpotError
from scrubjay.evaluation.journal import GAMES_FILE, SearchResult
from scrubjay.evaluation.plan_file import READY, Printed, load_plan, plan_path
from scrubjay.evaluation.plan_trials import PeopleRow, PlannedTrials, play_plan, prepare
from scrubjay.evaluation.scores import Score
from scrubjay.evaluation.trials import Hiding, hiding_specs
from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import load_records, save_records
from scrubjay.rooms.generate import expand_scenes
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.spots import DIFFICULTIES, Spot, Spots, save_spots, spots_path
from scrubjay.viz.plan_results import summarize_plan, write_plan_results
from scrubjay.web.trial import HIDE, HIDE_HERE, Trial

HIDING = {Stage.EM: "RotateRight", Stage.OH: "PlaceAt|0,4,4", Stage.OM: "DropObject"}
TOY = """
version = 1
title = "Toys"
size = 56
seekers = ["toy"]
agents = { toy = { folder = "nowhere" } }
[[hidings]]
hiders = ["toy"]
rooms = ["FloorPlan502"]
[[hidings]]
hiders = ["people"]
starts = "people"
[[hidings]]
hiders = ["toy"]
starts = "people"
count = 2
"""


def toy(seed):
    """Drops the object in front of itself; claims that it sees it in every step of a search."""

    def player(game, games):
        names = [HIDING.get(Stage(stage), "ClaimVisible") for stage in game.stage]
        action = np.array([action_index(name) for name in names])
        action[~games | (game.stage == Stage.PS)] = NOTHING
        return action, np.tile([0, 0, 0, 1], (len(game), 1))

    return player


def write(folder: Path, text: str = TOY) -> Path:
    path = folder / "toys.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A file of two hidings in FloorPlan501, as people's browsers make them: both drop the object where they start."""
    path = tmp_path_factory.mktemp("people") / "records.jsonl"
    records = []
    specs = hiding_specs(build_room("FloorPlan501"), 3)
    with World(["FloorPlan501"], size=112) as world:
        for _, spec in zip(range(2), specs, strict=False):
            trial = Trial(world, replace(spec, anywhere=True), HIDE, {"hider": "person"})
            trial.bind(world)
            for name in ("RotateLeft", HIDE_HERE, "DropObject", "ReadyForSeeker"):
                for step in trial.steps_for(name):
                    trial.step(step)
            records.append(trial.record)
    save_records(records, path)
    return path


@pytest.fixture(scope="module")
def played(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trials")
    planned = prepare(load_plan(write(folder)), people=people)
    progress = []
    hidings, records = play_plan(planned, {"toy": toy}, folder, lambda *done: progress.append(done), at_once=2)
    return folder, planned, hidings, records, progress


def test_the_papers_plans_have_its_numbers_of_trials(people):
    hiding, seeking = (load_plan(READY[name]) for name in ("paper-hiding", "paper-seeking"))
    games = PlannedTrials(hiding).games()
    assert sum(games.values()) == 3 * 4000 and set(games.values()) == {3 * 50, 3 * 200}
    assert set(games) == set(expand_scenes([f"{split}:{room}" for split in ("train", "test")
                                            for room in ("kitchen", "living_room")]))  # fmt: skip
    # Three seekers search for 4,000 hidings of three agents and 5,000 spots of three difficulties.
    assert sum(PlannedTrials(seeking).games().values()) == 12_000 + 3 * (12_000 + 15_000)
    # People's two hidings, and three hidings of an agent from each of their starts, which are played first.
    with_people = prepare(hiding, people=people)
    assert sum(with_people.games().values()) == 12_000 + 2 * 3 and with_people.games()["FloorPlan501"] == 6
    assert seeking.agents == hiding.agents and [agent.milestone for agent in seeking.agents.values()] == [
        0, 1_000_000, 4_500_000,
    ]  # fmt: skip


def test_agents_hide_from_the_starts_of_people(played, people):
    folder, _, hidings, records, progress = played
    assert Counter(hiding.hider for hiding in hidings) == {"toy": 5, "people": 2, "toy-matched": 4}
    assert [hiding.goal for hiding in hidings if hiding.hider == "toy"] == list(GOALS)
    start = [(record.scene, record.goal, record.start) for record in load_records(people)]
    assert [(record.scene, record.goal, record.start) for record in records["toy-matched"]] == [
        start[0], start[0], start[1], start[1],
    ]  # fmt: skip
    assert list(records) == ["toy-matched"]
    names = Counter(record.players["hider"] for record in load_records(folder / GAMES_FILE) if record.spec.last != 4)
    assert names == {"toy": 5, "toy-matched": 2, "toy-matched#2": 2}, "a second game from a start is another game"
    assert progress[-1] == (20, 20) and progress == sorted(progress)


def test_searches_for_what_people_hid_begin_at_their_starts(played, people):
    folder, _, hidings, _, _ = played
    searches = [record for record in load_records(folder / GAMES_FILE) if record.players["hider"] == "people"]
    by_person = {record.goal: record for record in load_records(people)}
    assert len(searches) == 2
    for record in searches:
        person = by_person[record.goal]
        assert record.start == person.start and list(record.spec.pose) == person.pose and not record.spec.anywhere
        assert record.players == {"hider": "people", "seeker": "toy"}
    assert all(np.isnan(h.score.placed) == (h.hider == "people") for h in hidings)


def test_a_finished_plan_plays_nothing_and_another_shares_its_games(played, people):
    folder, planned, hidings, records, _ = played
    before = (folder / GAMES_FILE).read_text()
    again = play_plan(planned, {"toy": toy}, folder, at_once=2)
    assert repr(again[0]) == repr(hidings) and again[1] == records and (folder / GAMES_FILE).read_text() == before
    hiding_only = replace(planned, plan=planned.plan.model_copy(update={"seekers": ()}))
    shorter, _ = play_plan(hiding_only, {"toy": toy}, folder, at_once=2)
    assert repr(shorter) == repr([replace(hiding, results={}) for hiding in hidings])
    assert (folder / GAMES_FILE).read_text() == before


def test_an_interrupted_plan_resumes(played, tmp_path):
    folder, planned, hidings, _, _ = played
    lines = (folder / GAMES_FILE).read_text().splitlines(keepends=True)
    # As if the power had failed while the 18th game was written.
    (tmp_path / GAMES_FILE).write_text("".join([*lines[:17], lines[17][:100]]))
    progress = []
    again, _ = play_plan(planned, {"toy": toy}, tmp_path, lambda *done: progress.append(done), at_once=2)
    assert repr(again) == repr(hidings) and progress[-1] == (20, 20)
    after = (tmp_path / GAMES_FILE).read_text().splitlines(keepends=True)
    assert after[:17] == lines[:17] and len(after) == len(set(after)) == 20


def test_without_people_their_part_is_left_out(tmp_path):
    planned = prepare(load_plan(write(tmp_path)))
    assert planned.skipped == (
        "People's hidings, and hidings from their starts, are left out: there are no records of people.",
    )
    assert planned.games() == {"FloorPlan502": 10} and planned.hiders == ("toy",)
    only = TOY.replace('[[hidings]]\nhiders = ["toy"]\nrooms = ["FloorPlan502"]\n', "")
    with pytest.raises(PlanError, match="nothing of the plan is left to play: it needs records of people"):
        prepare(load_plan(write(tmp_path, only)))


def test_each_spot_is_searched_once(tmp_path):
    spot = Spot("Cup", (1.0, 1.0, 0.1, 1.0, 0.0, 0.0, 0.0), (), "floor", "", 0.5)
    for goal in GOALS:
        some = tuple(replace(spot, goal=goal, pose=(1.0 + k, *spot.pose[1:])) for k in range(2))
        spots = Spots("FloorPlan502", goal, 9, {"easy": some, "medium": some[:1], "hard": ()})
        save_spots(spots, spots_path(tmp_path, "FloorPlan502", goal))
    text = TOY.replace('["toy"]\nrooms', '["easy", "medium", "hard"]\ncount = 4\nrooms', 1)
    planned = prepare(load_plan(write(tmp_path, text)), spots=tmp_path)
    trials = planned.trials_in(build_room("FloorPlan502"))
    assert Counter(trial.hider for trial in trials) == {"easy": 10, "medium": 5} and set(DIFFICULTIES) > {"easy"}
    assert len({trial.match.spec.pose + (trial.match.spec.goal,) for trial in trials if trial.hider == "easy"}) == 10
    assert all(not trial.player and trial.match.spec.first == Stage.S for trial in trials)
    with pytest.raises(SpotError, match="no spots of a Bread in FloorPlan502 without a folder of spots"):
        prepare(planned.plan)


BAD = {
    "not TOML": ("version = [", "not a plan"),
    "no version": (TOY.replace("version = 1", ""), "a plan of version None; this program plays version 1"),
    "another version": (TOY.replace("version = 1", "version = 2"), "a plan of version 2"),
    "no hidings": ('version = 1\ntitle = "Nothing"', "hidings: field required"),
    "an unknown field": (TOY.replace("size = 56", "sizes = 56"), "sizes: extra inputs"),
    "a size": (TOY.replace("56", "50"), "size: input should be a multiple of 28"),
    "an unknown room": (TOY.replace("FloorPlan502", "FloorPlan999"), "unknown scene 'FloorPlan999'"),
    "a room twice": (TOY.replace('["FloorPlan502"]', '["FloorPlan502", "FloorPlan502"]'), "name every room once"),
    "an unknown split": (TOY.replace("FloorPlan502", "testing:kitchen"), "unknown scene 'testing:kitchen'"),
    "no room": (TOY.replace('rooms = ["FloorPlan502"]', ""), "rooms: name at least one"),
    "an unknown hider": (TOY.replace('hiders = ["toy"]', 'hiders = ["tory"]', 1), "unknown tory; choose from toy"),
    "an unknown seeker": (TOY.replace('seekers = ["toy"]', 'seekers = ["heuristic"]'), "seekers: unknown heuristic"),
    "a seeker twice": (TOY.replace('seekers = ["toy"]', 'seekers = ["toy", "toy"]'), "seekers: name everybody once"),
    "a script's name": (TOY.replace("{ toy =", "{ random ="), "random is the name of somebody else"),
    "a name with a space": (TOY.replace("{ toy =", '{ "a b" ='), "agents.a b"),
    "no source": (TOY.replace('folder = "nowhere"', ""), "a milestone, a checkpoint or a folder"),
    "two sources": (TOY.replace('"nowhere"', '"nowhere", milestone = 3'), "a milestone, a checkpoint or a folder"),
    "a negative milestone": (TOY.replace('folder = "nowhere"', "milestone = -1"), "milestone"),
    "no games": (TOY.replace("count = 2", "count = 0"), "count: input should be greater than or equal to 1"),
    "people at random": (
        TOY.replace('["people"]\nstarts = "people"', '["people"]\nrooms = ["test"]'),
        "people hid once",
    ),
    "spots at people's starts": (TOY.replace('["people"]', '["hard"]'), r"spots \(hard\) have random starts"),
    "printed of nobody": (TOY.replace("size", 'paper = [{ split = "all", hider = "easy" }]\nsize'), "easy  is nobody"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_bad_plans_are_refused_in_one_sentence(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(PlanError, match=message) as caught:
        load_plan(path)
    assert str(path) in str(caught.value)


def test_unknown_plans_are_refused():
    with pytest.raises(PlanError, match="no plan 'paper-hidden': choose paper-hiding, paper-seeking, small, or a file"):
        plan_path("paper-hidden")
    assert plan_path("small").name == "small.toml"


def test_bad_records_of_people_are_refused(people, tmp_path):
    good = people.read_text().splitlines()
    data = json.loads(good[0])
    search = EpisodeSpec("Cup", AgentPose(0.0, 0.0, 0.0, True), Stage.S, Stage.S, pose=tuple(data["pose"]))
    outside = {**data, "spec": {**data["spec"], "start": [99.0, 99.0, 0.0, True]}}
    for line, message in (
        (good[1][:60], "line 2: not JSON, perhaps truncated"),
        (json.dumps({**data, "version": 9}), "line 2: not a record of version"),
        (json.dumps({**data, "scene": "FloorPlan999"}), "line 2: unknown scene 'FloorPlan999'"),
        (json.dumps({**data, "spec": search.to_dict()}), "line 2: nobody hid anything in this game"),
        (json.dumps({**data, "hidden": None}), "line 2: nobody hid anything in this game"),
        (
            json.dumps({**data, "hidden": {**data["hidden"], "open": [999]}}),
            "line 2: hidden.open: .* openables, the record number 999",
        ),
        (json.dumps(outside), "line 2: spec.start: no body can stand"),
    ):
        (tmp_path / "people.jsonl").write_text(good[0] + "\n" + line + "\n")
        with pytest.raises(PlanError, match=message):
            prepare(load_plan(write(tmp_path)), people=tmp_path / "people.jsonl")
    with pytest.raises(PlanError, match="No such file"):
        prepare(load_plan(write(tmp_path)), people=tmp_path / "nobody.jsonl")
    for text in ("[{}]", "{", '[{"source": 1}]'):
        (tmp_path / "table.json").write_text(text)
        with pytest.raises(PlanError, match=r"table\.json: not a study's table"):
            prepare(load_plan(write(tmp_path)), searches=tmp_path / "table.json")


NO_METRICS = Score(*[math.nan] * 11)


def hidden(scene: str, hider: str, seen: bool, result: SearchResult) -> Hiding:
    return Hiding(scene, hider, "Cup", replace(NO_METRICS, visible_from=0.25, bfs_found=float(seen)), {"toy": result})


def test_results_by_hand(tmp_path):
    plan = load_plan(write(tmp_path)).model_copy(update={"paper": (
        Printed(split="train", hider="toy", hidings=2000),
        Printed(split="test", hider="people", seeker="people", found=0.8),
    )})  # fmt: skip
    row = PeopleRow(source="people", split="test", trials=4, found=0.75, found_low=0.3, found_high=0.95, steps=99.5,
                    steps_low=None, steps_high=None)  # fmt: skip
    planned = PlannedTrials(plan, searches=(row,), skipped=("People's hidings are left out.",))
    hidings = [
        hidden("FloorPlan1", "toy", True, SearchResult(True, 10, 0)),
        hidden("FloorPlan2", "toy", False, SearchResult(False, 500, 0)),
        hidden("FloorPlan26", "toy", True, SearchResult(True, 30, 2)),
    ]
    train, test, everything = summarize_plan(planned, hidings)
    assert [result.split for result in (train, test, everything)] == ["train", "test", "all"]
    assert [(row.hider, row.seeker, row.found.mean, row.steps.mean) for row in train.searches] == [
        ("toy", "toy", 0.5, 255.0)
    ]
    assert [(row.hider, row.seeker, row.found.mean, row.paper_found) for row in test.searches] == [
        ("toy", "toy", 1.0, None),
        ("people", "people", 0.75, 0.8),
    ]
    assert [(row.hidings, row.paper_hidings) for row in (*train.hidings, *test.hidings, *everything.hidings)] == [
        (2, 2000), (1, None), (3, None),
    ]  # fmt: skip
    # Wilson's interval of one success in two trials.
    assert train.searches[0].found[1:3] == pytest.approx((0.0945, 0.9055), abs=1e-4)

    text, data = write_plan_results(planned, hidings, tmp_path, ["toy is a toy."])
    assert json.loads((tmp_path / "results.json").read_text()) == data and "NaN" not in json.dumps(data)
    assert (tmp_path / "table.md").read_text() == text and "## Test rooms" in text
    cells = [line.split("|") for line in text.splitlines() if line.startswith("| people")]
    assert [cell.strip() for cell in cells[0][2:8]] == ["people", "4", "75.0 [30.0, 95.0]", "80", "99.5", "-"]
    with (tmp_path / "searches.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["split"], row["trials"], row["found"], row["paper_found"]) for row in rows] == [
        ("train", "2", "0.5", ""), ("test", "1", "1.0", ""), ("test", "4", "0.75", "0.8"), ("all", "3", "0.666667", ""),
    ]  # fmt: skip
    with (tmp_path / "hidings.csv").open() as file:
        assert [row["paper_hidings"] for row in csv.DictReader(file)] == ["2000", "", ""]
    page = (tmp_path / "index.html").read_text()
    assert text.count("paper, %") == 1 and text.count("in the paper") == 1, "only where the paper prints something"
    for words in ("Toys", "toy is a toy.", "People&#39;s hidings are left out.", "Train rooms", "2,000", "All rooms"):
        assert words in page
    assert page.count("data:image/png;base64") == 3 and (tmp_path / "plot-train.png").stat().st_size > 1000


def test_a_plan_without_seekers_has_results(played, tmp_path):
    _, planned, hidings, _, _ = played
    only = replace(planned, plan=planned.plan.model_copy(update={"seekers": ()}))
    text, data = write_plan_results(only, [replace(hiding, results={}) for hiding in hidings], tmp_path)
    assert "seeker" not in text and (tmp_path / "searches.csv").read_text() == ""
    assert [row["hider"] for row in data["splits"]["dynamic"]["hidings"]] == ["toy", "people", "toy-matched"]
    assert (tmp_path / "plot-dynamic.png").exists()
