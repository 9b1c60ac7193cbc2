"""Tournaments with toy players: the games played, their statistics, and resuming."""

import itertools
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from scrubjay.errors import RecordError, RoomError, SpotError
from scrubjay.evaluation.journal import AGENTS_FILE, GAMES_FILE, HIDINGS_FILE, Journal, SearchResult
from scrubjay.evaluation.matches import Match, play_matches
from scrubjay.evaluation.scores import Score
from scrubjay.evaluation.tournament import TournamentPlan, play_tournament
from scrubjay.evaluation.trials import Hiding, hiding_specs
from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import load_records
from scrubjay.game.stages import SEEKER_STEPS
from scrubjay.players import by_name
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.spots import Spot, Spots, save_spots, spots_path
from scrubjay.viz.episode import replay_lines
from scrubjay.viz.tournament import format_tables, summarize_hidings, to_json, write_results
from scrubjay.workers.pool import ProcessWorkers

SCENES = ("FloorPlan501", "FloorPlan502")
HIDING = {Stage.EM: "RotateRight", Stage.OH: "PlaceAt|0,4,4", Stage.OM: "DropObject"}


def dropper(seed):
    """Turns while exploring, stays in place, and drops the object in front of itself until time is up."""

    def player(game, games):
        names = [HIDING.get(Stage(stage), "") for stage in game.stage]
        action = np.array(
            [action_index(name) if name and acts else NOTHING for name, acts in zip(names, games, strict=True)]
        )
        return action, np.tile([0, 0, 0, 1], (len(game), 1))

    return player


def always(name):
    """A player of one action."""
    return lambda seed: (
        lambda game, games: (np.where(games, action_index(name), NOTHING), np.zeros((len(game), 4), int))
    )


HIDERS = {"dropper": dropper}
SEEKERS = {"claimer": always("ClaimVisible"), "idler": always("Stand")}


def plan(**changes) -> TournamentPlan:
    return replace(TournamentPlan(("dropper",), ("claimer", "idler"), SCENES, games=2, size=56, at_once=2), **changes)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tournament")
    progress = []
    hidings = play_tournament(plan(), HIDERS, SEEKERS, folder, lambda done, total: progress.append((done, total)))
    return folder, hidings, progress


@pytest.fixture(scope="module")
def spots(played, tmp_path_factory):
    """Easy spots are where the dropper left things, hard ones are under the floor, and there are no medium ones."""
    folder = tmp_path_factory.mktemp("spots")
    for record in load_records(played[0] / GAMES_FILE):
        if record.spec.last == Stage.OH:
            pose = tuple(record.hidden["pose"])
            lying = Spot(record.goal, pose, (), "floor", "", 0.5)
            below = replace(lying, pose=(*pose[:2], -3.0, *pose[3:]), share=0.0)
            spots = {"easy": (lying,), "medium": (), "hard": (below,)}
            save_spots(Spots(record.scene, record.goal, 2, spots), spots_path(folder, record.scene, record.goal))
    return folder


def test_every_seeker_searches_for_every_hidden_object(played):
    folder, hidings, progress = played
    assert [(h.scene, h.goal) for h in hidings] == list(itertools.product(SCENES, GOALS[:2]))
    for hiding in hidings:
        assert hiding.can_be_seen and hiding.results["idler"] == SearchResult(False, SEEKER_STEPS, 0)
        claimer = hiding.results["claimer"]
        assert claimer == (
            SearchResult(True, 1, 0) if claimer.found else SearchResult(False, SEEKER_STEPS, SEEKER_STEPS)
        )
    assert any(hiding.results["claimer"].found for hiding in hidings), "it lies in front of the seeker, mostly in reach"
    assert progress[0] == (0, 12) and progress[-1] == (12, 12) and progress == sorted(progress)
    records = load_records(folder / GAMES_FILE)
    assert Counter(record.players.get("seeker", "") for record in records) == {"": 4, "claimer": 4, "idler": 4}


def test_searches_start_as_the_hidings_ended(played):
    records = load_records(played[0] / GAMES_FILE)
    hidden = {(r.scene, r.goal): r for r in records if "seeker" not in r.players}
    for record in records:
        if "seeker" in record.players:
            hiding = hidden[record.scene, record.goal]
            assert list(record.spec.pose) == hiding.pose == hiding.hidden["pose"]
            assert record.start == hiding.start and record.stages()[0] == Stage.S
    assert len(list(replay_lines(hidden[SCENES[0], GOALS[0]]))) > 201
    assert len(list(replay_lines(records[-1]))) == len(records[-1].actions)


def test_open_parts_are_in_the_hiders_record(chest):
    """It tries OpenAt in all 49 cells in front of a drawer, until time is up."""
    opens = itertools.cycle(action_index(f"OpenAt|{row},{column}") for row in range(1, 8) for column in range(1, 8))

    def opener(game, games):
        return np.full(1, next(opens)), np.zeros((1, 4), int)

    start = AgentPose(0.0, 0.5, 0.0, True)
    with World([chest], size=56) as world:
        match = Match("hut", "opener", "", EpisodeSpec("Cup", start, Stage.OH, Stage.OH))
        ((_, record),) = play_matches(world, [match], opener, np.array([200, 1, 49, 50, 500]))
    assert record.hidden["pose"] == record.pose
    assert record.hidden["open"] == sorted(set(record.opened) - {NOTHING}) != []


def test_spots_are_searched_unless_they_are_invisible(played, spots, tmp_path):
    hidings = play_tournament(plan(hiders=("easy", "medium", "hard"), spots=spots), {}, SEEKERS, tmp_path)
    assert Counter(hiding.hider for hiding in hidings) == {"easy": 4, "hard": 4}, "there are no medium ones"
    dropped = {(h.scene, h.goal): h for h in played[1]}
    for hiding in hidings:
        if hiding.hider == "easy":
            before = dropped[hiding.scene, hiding.goal]
            assert hiding.results == before.results
            assert hiding.score.visible_from == before.score.visible_from and np.isnan(hiding.score.coverage)
        else:
            assert not hiding.can_be_seen and set(hiding.results.values()) == {SearchResult(False, SEEKER_STEPS, 0)}
    assert {record.players["hider"] for record in load_records(tmp_path / GAMES_FILE)} == {"easy"}


def test_an_interrupted_tournament_resumes(played, tmp_path):
    def stop(done, total):
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_tournament(plan(), HIDERS, SEEKERS, tmp_path, stop)
    before = (tmp_path / GAMES_FILE).read_text()
    assert 4 <= len(before.splitlines()) < 12
    # As if the power had failed while the last line was written.
    (tmp_path / GAMES_FILE).write_text(before[:-20])
    hidings = play_tournament(plan(), HIDERS, SEEKERS, tmp_path)
    assert [hiding.results for hiding in hidings] == [hiding.results for hiding in played[1]]
    lines = (tmp_path / GAMES_FILE).read_text().splitlines()
    assert lines[: len(before.splitlines()) - 1] == before.splitlines()[:-1]
    assert len(lines) == len(set(lines)) == 12


def test_workers_play_the_same_games_and_resume_what_others_began(tmp_path):
    short = replace(plan(), hiders=("random",), seekers=("random", "possible"), at_once=1, games=1, size=28)
    short = replace(short, limits=tuple(min(4, limit) for limit in short.limits))
    here = play_tournament(short, by_name.HIDERS, by_name.SEEKERS, tmp_path / "here")
    play_tournament(replace(short, scenes=SCENES[:1]), by_name.HIDERS, by_name.SEEKERS, tmp_path / "there")
    progress = []
    with ProcessWorkers(2) as workers:
        there = play_tournament(
            short,
            by_name.HIDERS,
            by_name.SEEKERS,
            tmp_path / "there",
            lambda *now: progress.append(now),
            workers=workers,
        )
    assert repr(there) == repr(here) and progress == [(0, 6), (3, 6), (6, 6), (6, 6)]
    for name in (GAMES_FILE, HIDINGS_FILE):
        mine, theirs = ((tmp_path / where / name).read_bytes() for where in ("here", "there"))
        assert mine == theirs and mine, "the first room's games were there, so that the order is the same"


def test_a_finished_tournament_plays_only_what_is_new(played, tmp_path):
    folder, hidings, _ = played
    files = (GAMES_FILE, HIDINGS_FILE)
    for name in files:
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    same = play_tournament(plan(), HIDERS, SEEKERS, tmp_path)
    assert repr(same) == repr(hidings)
    assert [(tmp_path / name).read_text() for name in files] == [(folder / name).read_text() for name in files]
    play_tournament(plan(games=3, seekers=("claimer",), scenes=SCENES[:1], at_once=1), HIDERS, SEEKERS, tmp_path)
    before, after = ((where / GAMES_FILE).read_text().splitlines() for where in (folder, tmp_path))
    assert after[:-2] == before, "one more hiding, and one search for it"


def test_a_broken_journal_is_refused_and_left_alone(played, tmp_path):
    lines = (played[0] / GAMES_FILE).read_text().splitlines(keepends=True)
    (tmp_path / GAMES_FILE).write_text("".join([lines[0], lines[1][:50] + "\n", lines[2]]))
    with pytest.raises(RecordError, match="line 2"):
        Journal(tmp_path, 56)
    with pytest.raises(RecordError, match="images of 56 pixels, not 224"):
        play_tournament(plan(size=224), HIDERS, SEEKERS, played[0])
    (tmp_path / GAMES_FILE).write_text(lines[0])
    (tmp_path / HIDINGS_FILE).write_text('{"record": {}, "score": {}}\n')
    with pytest.raises(RecordError, match="line 1"):
        Journal(tmp_path, 56)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (dict(hiders=("dropper", "ghost")), ValueError, "unknown hider ghost; choose from dropper, easy, medium, hard"),
        (dict(seekers=()), ValueError, "unknown seeker none; choose from claimer, idler"),
        (dict(seekers=("idler", "idler")), ValueError, "name every seeker once"),
        (dict(games=0), ValueError, "games: 1 or more, not 0"),
        (dict(games=10**4), ValueError, "too few for 10000 games"),
        (dict(scenes=("FloorPlan501", "FloorPlan31")), RoomError, "FloorPlan31"),
        (dict(hiders=("easy",)), SpotError, "no spots of a Bread in FloorPlan501"),
    ],
)
def test_a_plan_with_mistakes_is_refused_before_anything_is_written(tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        play_tournament(plan(**changes), HIDERS, SEEKERS, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_starts_and_objects_take_turns():
    room = build_room("FloorPlan501")
    specs = list(hiding_specs(room, 0))
    assert len(specs) == 4 * len(room.floor.reachable()) == len({spec.start for spec in specs})
    assert [spec.goal for spec in specs[:6]] == [*GOALS, GOALS[0]]
    assert (
        specs[:5]
        == list(itertools.islice(hiding_specs(room, 0), 5))
        != list(itertools.islice(hiding_specs(room, 1), 5))
    )


def test_more_games_than_worlds_and_rooms_without_games():
    """Five games in the first of two rooms, none in the second: all five are played, in any order, and no other."""
    with World(SCENES, size=56) as world:
        specs = [replace(spec, last=Stage.EM) for spec in itertools.islice(hiding_specs(world.rooms[0], 0), 5)]
        matches = [Match(SCENES[0], "turner", "", spec) for spec in specs]
        done = list(play_matches(world, matches, always("RotateLeft")(0), np.array([3, 1, 15, 50, 500])))
    assert [match for match, _ in done] == matches
    for match, record in done:
        assert record.spec == match.spec and record.actions == ["RotateLeft"] * 3
        assert record.players == {"hider": "turner"}


NO_METRICS = Score(*[np.nan] * 11)


def hiding(hider: str, seen: bool, share: float, **searches: SearchResult) -> Hiding:
    score = replace(NO_METRICS, visible_from=share, bfs_found=float(seen), placed=1.0)
    return Hiding("FloorPlan501", hider, "Cup", score, searches)


def test_results_by_hand(tmp_path):
    not_found = SearchResult(False, 500, 0)
    hidings = [
        hiding("easy", True, 0.5, good=SearchResult(True, 10, 0), bad=SearchResult(False, 500, 8)),
        hiding("easy", True, 0.3, good=SearchResult(True, 20, 1), bad=SearchResult(True, 100, 2)),
        hiding("hard", True, 0.0, good=SearchResult(True, 300, 0), bad=SearchResult(False, 500, 4)),
        hiding("hard", False, 0.0, good=not_found, bad=not_found),
    ]
    results = summarize_hidings(hidings)
    assert results["hidings"]["easy"]["visible_from"].mean == pytest.approx(0.4)
    assert results["hidings"]["hard"]["bfs_found"][::3] == (0.5, 2)
    easy, hard = results["searches"]["easy"], results["searches"]["hard"]
    assert easy["good"]["found"][::3] == (1.0, 2) and easy["bad"]["found"].mean == 0.5
    assert easy["good"]["steps"].mean == 15 and easy["bad"]["false_claims"].mean == 5
    assert hard["good"]["found"].mean == 0.5 and hard["good"]["steps"].mean == 400
    assert hard["bad"]["false_claims"][::3] == (4, 1), "unplayed games have no claims"
    # Student's t with one degree of freedom: 12.706 times 5, the mean's standard error.
    assert easy["good"]["steps"].high == pytest.approx(15 + 12.706 * 5, abs=0.01)

    text, data = write_results(hidings, tmp_path)
    assert (tmp_path / "table.md").read_text() == text == format_tables(results)
    assert json.loads((tmp_path / "results.json").read_text()) == data == to_json(results)
    assert data["searches"]["hard"]["bad"]["false_claims"] == {"mean": 4.0, "low": None, "high": None, "games": 1}
    assert "NaN" not in json.dumps(data)
    row = next(line for line in text.splitlines() if line.startswith("| easy  | good"))
    assert [cell.strip() for cell in row.split("|")[3:7]] == [
        "2",
        "100.0 [34.2, 100.0]",
        "15.0 [-48.5, 78.5]",
        "0.5 [-5.9, 6.9]",
    ]
    with Image.open(tmp_path / "plot.png") as plot:
        assert plot.format == "PNG" and plot.width > 400
        colors = {color for _, color in plot.convert("RGB").getcolors(1 << 20)}
        assert {(0xB9, 0xB3, 0xA6), (0xDF, 0xA0, 0x4F)} <= colors, "a bar for each seeker"


def test_games_of_other_agents_under_the_same_name_are_refused(played, tmp_path):
    one = dict(hiders=("dropper",), seekers=("claimer",), scenes=SCENES[:1], games=1)
    play_tournament(plan(**one), HIDERS, SEEKERS, tmp_path, agents={"dropper": "weights-1"})
    before = (tmp_path / GAMES_FILE).read_text()
    with pytest.raises(RecordError, match="games of another agent named dropper: choose another folder"):
        play_tournament(plan(**one), HIDERS, SEEKERS, tmp_path, agents={"claimer": "weights-3", "dropper": "weights-2"})
    agents = {"dropper": "weights-1", "idler": "weights-3"}
    play_tournament(plan(**one | {"seekers": ("claimer", "idler")}), HIDERS, SEEKERS, tmp_path, agents=agents)
    assert (tmp_path / GAMES_FILE).read_text().startswith(before)
    assert json.loads((tmp_path / AGENTS_FILE).read_text()) == agents
    (tmp_path / AGENTS_FILE).write_text("[1]")
    with pytest.raises(RecordError, match=r"agents\.json: not a list of agents"):
        Journal(tmp_path, 56)
