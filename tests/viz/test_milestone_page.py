"""A tournament of milestones in miniature: its tables agree with the recorded games, and the page shows all of it."""

import csv
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.evaluation.journal import GAMES_FILE
from scrubjay.evaluation.tournament import TournamentPlan, play_tournament
from scrubjay.evaluation.trials import Hiding
from scrubjay.game.record import load_records
from scrubjay.game.stages import SEEKER_STEPS
from scrubjay.players.by_name import HIDERS, SEEKERS
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.pose import AgentPose
from scrubjay.spots.spots import DIFFICULTIES, Spot, Spots, save_spots, spots_path
from scrubjay.training.config import TrainConfig
from scrubjay.training.milestones import Milestone, find_milestones, own_seed, with_own_seeds
from scrubjay.training.named_agents import NamedAgent, load_agents
from scrubjay.training.run import Progress, Run
from scrubjay.viz.hiding_maps import density, poses_in_room
from scrubjay.viz.milestone_charts import player_colors
from scrubjay.viz.milestone_page import join_words, last_player, shown_scenes, write_milestones
from scrubjay.viz.milestone_tables import VISIBILITIES, write_tables
from scrubjay.viz.palette import rgb

SCENE, GAMES = "FloorPlan501", 2


def read_csv(path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def tournament(tmp_path_factory):
    """Two milestones of a tiny run, one scripted player and easy spots; games of a few steps."""
    folder = tmp_path_factory.mktemp("milestones")
    run = Run.begin(folder / "run", TrainConfig.preset("demo", agent=SMALL, milestones=(0, 8)))
    for games, before in ((0, -1), (8, 0)):
        torch.manual_seed(games)
        run.save_milestones(Agent(SMALL), Progress(games, games, games), before)
    run.close()
    room = build_room(SCENE)
    x, y = room.floor.reachable().positions[0].tolist()
    for goal in GOALS[:GAMES]:
        lying = Spot(goal, (x, y, 0.1, 1.0, 0.0, 0.0, 0.0), (), "floor", "", 0.5)
        spots = {"easy": (lying,), "medium": (), "hard": ()}
        save_spots(Spots(SCENE, goal, 2, spots), spots_path(folder / "spots", SCENE, goal))
    found = find_milestones([folder / "run"])
    agents = load_agents({milestone.name: milestone.folder for milestone in found})
    plan = TournamentPlan(
        ("run-0", "run-8", "random", *DIFFICULTIES), ("run-0", "run-8", "random"), (SCENE,), GAMES, 0, folder / "spots",
        SMALL.image_size, at_once=2, limits=(12, 1, 3, 4, 10),
    )  # fmt: skip
    out = folder / "out"

    def play() -> list[Hiding]:
        digests = {name: agent.digest for name, agent in agents.items()}
        players = with_own_seeds(agents)
        return play_tournament(plan, {**HIDERS, **players}, {**SEEKERS, **players}, out, agents=digests)

    write_milestones(plan, found, agents, play(), out, shown_scenes(plan.scenes), ["A note."])
    return out, play


def test_the_matrix_agrees_with_the_recorded_games(tournament):
    out, _ = tournament
    rows = read_csv(out / "matrix.csv")
    players = ("run-0", "run-8", "random")
    assert [(row["hider"], row["seeker"]) for row in rows] == [(h, s) for h in (*players, "easy") for s in players]
    records = load_records(out / GAMES_FILE)
    for row in rows:
        searches = [r for r in records if r.players == {"hider": row["hider"], "seeker": row["seeker"]}]
        unseen = GAMES - len(searches)
        steps = [len(r.actions) if r.found else SEEKER_STEPS for r in searches] + [SEEKER_STEPS] * unseen
        assert float(row["found"]) == pytest.approx(sum(r.found for r in searches) / GAMES)
        assert float(row["steps"]) == pytest.approx(np.mean(steps)) and row["found_games"] == str(GAMES)
        assert float(row["found_low"]) <= float(row["found"]) <= float(row["found_high"])
    easy = [row for row in rows if row["hider"] == "easy"]
    assert [(r["seeker"], r["difficulty"], r["found"]) for r in read_csv(out / "difficulty.csv")] == [
        (row["seeker"], "easy", row["found"]) for row in easy
    ]


def test_shares_of_hidings_sum_to_one(tournament):
    out, _ = tournament
    rows = read_csv(out / "hidings.csv")
    assert [row["hider"] for row in rows] == ["run-0", "run-8", "random", "easy"]
    for row in rows[:3]:
        kinds = [float(row[name]) for name in ("on_top", "contained_in", "behind", "dropped")]
        assert sum(kinds) == pytest.approx(1) and float(row["placed"]) == pytest.approx(1 - kinds[-1])
        assert float(row["meters_from_start"]) >= 0
    assert rows[3]["dropped"] == "" and rows[3]["visible_from"] != "", "nobody hid what is in a spot"
    for name, player in (("visible_from", "hider"), ("found_by_visibility", "seeker")):
        classes = [(float(row["above"]), float(row["up_to"])) for row in read_csv(out / f"{name}.csv")]
        assert classes[: len(VISIBILITIES)] == list(VISIBILITIES) and len(classes) % len(VISIBILITIES) == 0
        assert player in read_csv(out / f"{name}.csv")[0]
    for hider in ("run-0", "easy"):
        shares = [float(row["share"]) for row in read_csv(out / "visible_from.csv") if row["hider"] == hider]
        assert sum(shares) == pytest.approx(1)


def test_the_page_has_all_figures_and_needs_no_other_file(tournament):
    out, _ = tournament
    page = (out / "index.html").read_text()
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    for words in (
        "Hider against seeker over training", "Where hiders hide", "What they believe", "A note.", "Of easy spots",
        "How they search for the same object", "8 games", f'id="{SCENE}"', "000000000008", "weights-",
    ):  # fmt: skip
        assert words in page
    assert page.count("<figure>") >= 5 + 3 + 2 + 1 + 2 + 2
    names = {path.name for path in (out / "charts").iterdir()}
    assert {"training-dynamic.png", "found-dynamic.png", f"beliefs-{SCENE}.png", f"games-{SCENE}.png"} <= names
    assert {f"{what}-{SCENE}-{number}.png" for what in ("hiding", "placing") for number in (0, 1)} <= names


def test_the_tables_in_markdown_are_those_of_the_csv_files(tournament):
    out, _ = tournament
    text = (out / "table.md").read_text()
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    headers = [line for line, rule in itertools.pairwise(lines) if rule[0] == "---"]
    assert headers[0] == ["hider", "0 games", "8 games", "random"] and headers[1] == ["seeker", "easy"]
    assert headers[2] == ["hider", "nowhere", "up to 5 %", "5 to 15 %", "15 to 30 %", "30 to 100 %"]
    matrix = read_csv(out / "matrix.csv")
    for number, hider in enumerate(("0 games", "8 games", "random", "easy")):
        row = lines[2 + number]
        assert row[0] == hider and len(row) == 4
        for cell, searched in zip(row[1:], matrix[3 * number : 3 * number + 3], strict=True):
            assert cell.startswith(f"{100 * float(searched['found']):.1f} [")
            assert cell.endswith(f"; {float(searched['steps']):.0f} steps")
    assert [line[:2] for line in lines[-5:]] == [["---", "---:"]] + [
        [hider, str(GAMES)] for hider in ("0 games", "8 games", "random", "easy")
    ]


def test_untrained_milestones_draw_games_of_their_own():
    one, other = (NamedAgent(Path("x"), digest, Agent(SMALL)) for digest in ("weights-1", "weights-2"))
    assert own_seed(one, 3) != own_seed(other, 3) and own_seed(one, 3) == own_seed(one, 3) != own_seed(one, 4)


def test_a_tournament_continues_where_it_stopped(tournament):
    out, play = tournament
    lines = (out / GAMES_FILE).read_bytes().splitlines(keepends=True)
    (out / GAMES_FILE).write_bytes(b"".join(lines[:-1]) + lines[-1][:50])
    hidings = play()
    again = (out / GAMES_FILE).read_bytes()
    assert again.startswith(b"".join(lines[:-1])) and len(again.splitlines()) == len(lines)
    write_tables(hidings, out / "again")
    for name in ("hidings", "visible_from"):
        assert (out / "again" / f"{name}.csv").read_bytes() == (out / f"{name}.csv").read_bytes()


def test_shown_rooms_are_among_those_played():
    scenes = ("FloorPlan26", "FloorPlan27", "FloorPlan226")
    assert shown_scenes(scenes) == ("FloorPlan26", "FloorPlan226") and shown_scenes(scenes, scenes[1:2]) == scenes[1:2]
    with pytest.raises(ValueError, match="shown: nobody plays in FloorPlan1; choose from FloorPlan26"):
        shown_scenes(scenes, ("FloorPlan1",))


def test_heat_is_where_objects_are():
    room = build_room(SCENE)
    west, south, east, north = room.room.bounds
    heat = density(room, np.array([[west + 0.3, north - 0.3]] * 3 + [[east - 0.3, south + 0.3]]))
    rows, columns = heat.shape
    assert heat[: rows // 2, : columns // 2].sum() == pytest.approx(
        3 * heat[rows // 2 :, columns // 2 :].sum(), rel=0.05
    )
    assert 0.5 < heat.sum() <= 1 + 1e-9 and not density(room, np.zeros((0, 2))).any()


def test_places_of_a_record_are_poses_in_the_room():
    """From (1, 2) facing east: two steps right are south, one ahead is east; a quarter turn faces south."""
    start = AgentPose(1.0, 2.0, 90.0, True)
    (pose,) = poses_in_room(start, np.array([[2, 1, 1, 0]]))
    assert pose == pytest.approx(AgentPose(1.25, 1.5, 180.0, False))


def test_colors_of_a_run_darken_with_training():
    run = Path("cache")
    milestones = [Milestone(f"cache-{games}", run, run, games) for games in (0, 5, 9)]
    colors = player_colors(milestones, ("random", "easy", "cache-0"))
    light = [sum(rgb(colors[milestone.name])) for milestone in milestones]
    assert light == sorted(light, reverse=True) and len(set(colors.values())) == len(colors) == 3 + 3 + 1
    assert last_player(milestones, ("cache-0", "cache-5")) == "cache-5" and last_player(milestones, ()) == "cache-9"
    assert join_words(["a"]) == "a" and join_words(["a", "b", "c"]) == "a, b and c"
