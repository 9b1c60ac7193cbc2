"""Hiding spots: objects at rest, difficulties as in the paper, files complete or refused."""

import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scrubjay.errors import SpotError
from scrubjay.game.visibility import visible_from
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.compile import GOAL_BOXES
from scrubjay.sim.physics import Physics, PhysicsState
from scrubjay.sim.pose import REACH, reach
from scrubjay.spots import spots as module
from scrubjay.spots.areas import areas_of, within
from scrubjay.spots.spots import (
    DIFFICULTIES,
    Spot,
    Spots,
    candidate_spots,
    difficulty,
    load_spots,
    make_spot_files,
    make_spots,
    save_spots,
    spots_path,
)
from scrubjay.workers.pool import ProcessWorkers

SCENE = "FloorPlan7"
COUNT = 8
SPOT = Spot("Cup", (0.0, 0.1, 0.2, 1.0, 0.0, 0.0, 0.0), (0, 3), "in", "Drawer_3", 0.125)


@pytest.fixture(scope="module")
def kitchen():
    return build_room(SCENE)


@pytest.fixture(scope="module")
def spots_in_kitchen(kitchen) -> list[Spot]:
    rng = np.random.default_rng(0)
    return [spot for goal in GOALS for spot in candidate_spots(kitchen, goal, COUNT, rng)]


def situation(compiled, spot: Spot) -> PhysicsState:
    return PhysicsState(np.zeros(2), 0.0, True, spot.is_open(compiled), spot.goal, np.array(spot.pose), False)


def example_spots(**changes) -> Spots:
    easy = (SPOT, replace(SPOT, kind="on", thing="", open=(), share=0.5))
    return replace(Spots("FloorPlan7", "Cup", 40, {"easy": easy, "medium": (), "hard": (SPOT,)}), **changes)


def test_spots_are_at_rest(kitchen, spots_in_kitchen):
    """They stay in place for two seconds, and if dropped again, inside the room."""
    physics = Physics(kitchen)
    for spot in spots_in_kitchen:
        after = physics.drop(situation(kitchen, spot))
        assert physics.rests(situation(kitchen, spot)), spot
        assert np.linalg.norm(after.pose[:3] - spot.pose[:3]) < 0.01, spot
        assert within(kitchen.room.outline, np.array(spot.pose[:2]))
        assert 0 < spot.pose[2] < kitchen.room.height


def test_contained_spots_are_inside_their_container(kitchen, spots_in_kitchen):
    physics = Physics(kitchen)
    for spot in spots_in_kitchen:
        container = physics.contains(situation(kitchen, spot))
        assert (kitchen.things[container] if container >= 0 else "") == spot.thing
        assert (spot.kind == "in") == bool(spot.thing)


def test_spots_are_of_all_kinds(kitchen, spots_in_kitchen):
    kinds = Counter(spot.kind for spot in spots_in_kitchen)
    assert len(spots_in_kitchen) > 0.8 * COUNT * len(GOALS)
    assert min(kinds[kind] for kind in ("on", "in", "floor")) >= 3
    assert len({spot.pose for spot in spots_in_kitchen}) == len(spots_in_kitchen)
    assert any(spot.open for spot in spots_in_kitchen)
    openable = {kitchen.things[part.thing]: number for number, part in enumerate(kitchen.openables)}
    shut = [spot for spot in spots_in_kitchen if spot.thing in openable and openable[spot.thing] not in spot.open]
    assert shut and any(spot.share == 0 for spot in shut)


def test_floor_spots_lie_on_the_floor(spots_in_kitchen):
    """No center is higher than half of the box's longest side; on things it is higher than half of the shortest."""
    for spot in spots_in_kitchen:
        sides = GOAL_BOXES[spot.goal][:3]
        if spot.kind == "floor":
            assert spot.pose[2] <= max(sides) / 2 + 0.01
        if spot.kind == "on":
            assert spot.pose[2] > min(sides) / 2


def test_shares_equal_the_visible_fraction(kitchen, spots_in_kitchen):
    grid = kitchen.floor.reachable()
    for spot in spots_in_kitchen[::5]:
        seen = visible_from(kitchen, spot.is_open(kitchen), spot.goal, np.array(spot.pose), grid)
        assert spot.share == pytest.approx(seen.sum() / (8 * len(grid)))
        through = visible_from(kitchen, spot.is_open(kitchen), spot.goal, np.array(spot.pose), grid, True)
        near = reach(grid.positions, np.array(spot.pose[:3])) <= REACH
        assert (seen | through)[near].any()


def test_areas_of_a_chest(chest):
    """The drawer's bottom is in front of the chest when open; the cabinet's inside asks for its door."""
    areas = areas_of(chest)
    drawers = [area for area in areas["in"] if area.open == (0,)]
    assert drawers and all(area.position[1] < 1.7 - 0.1 for area in drawers)
    assert all(area.position[2] == pytest.approx(0.6, abs=0.1) for area in drawers)
    assert [area for area in areas["in"] if area.open == (1,)]
    (floor,) = areas["floor"]
    assert floor.half.tolist() == [2, 2] and floor.position.tolist() == [0, 0, 0]


def test_areas_in_drawers_move_with_them(kitchen):
    """Areas that must be opened lie inside, or are carried by, their openable once it is open."""
    physics = Physics(kitchen)
    inside = 0
    for area in areas_of(kitchen)["in"]:
        is_open = np.isin(np.arange(len(kitchen.openables)), area.open)
        pose = np.array([*(area.position + [0, 0, 0.03]), 1, 0, 0, 0])
        inside += physics.contains(PhysicsState(np.zeros(2), 0.0, True, is_open, "Knife", pose, False)) >= 0
    assert inside >= 0.9 * len(areas_of(kitchen)["in"])


def test_points_within_an_l_shaped_outline():
    outline = ((0, 0), (4, 0), (4, 2), (2, 2), (2, 4), (0, 4))
    points = [(1, 1), (3, 1), (1, 3), (3, 3), (-1, 1), (5, 1), (1, 4.5)]
    assert [within(outline, np.array(point)) for point in points] == [True, True, True, False, False, False, False]


def test_difficulties_by_percentiles():
    """Of 101 shares 0, 0.01 ... 1 the percentiles are 0.05 and 0.2; medium ends at 0.15."""
    names = difficulty(np.arange(101) / 100)
    assert (names[:6] == "hard").all() and (names[6:16] == "medium").all() and (names[16:] == "easy").all()


@pytest.mark.parametrize(
    ("shares", "kept"),
    [
        (np.arange(400) / 400, (20, 20, 20)),
        (np.r_[np.arange(39) / 300, np.full(361, 0.5)], (19, 19, 19)),
        (np.r_[0.0, np.full(11, 0.5)], (1, 0, 1)),
        (np.zeros(5), (0, 0, 5)),
    ],
)
def test_as_many_easy_medium_and_hard_ones_are_kept(shares, kept, kitchen, monkeypatch):
    """Of 400 shares at even steps 5 % are 20; a room with 39 small ones has 20 hard and 19 medium; others lack some."""
    some = [replace(SPOT, pose=(*SPOT.pose[:2], k, *SPOT.pose[3:]), share=float(s)) for k, s in enumerate(shares)]
    monkeypatch.setattr(module, "candidate_spots", lambda *_: some)
    spots = make_spots(kitchen, "Cup", len(some))
    assert tuple(len(spots.spots[name]) for name in DIFFICULTIES) == kept
    assert spots.candidates == len(some)
    chosen = [spot for name in DIFFICULTIES for spot in spots.spots[name]]
    assert len({spot.pose for spot in chosen}) == len(chosen)


def test_medium_ends_at_the_20th_percentile_of_small_shares():
    names = difficulty(np.arange(101) / 1000)
    assert Counter(names.tolist()) == {"hard": 6, "medium": 15, "easy": 80}


def test_equal_shares_are_equally_hard():
    names = difficulty(np.array([0.0] * 10 + [0.1] * 20 + [0.4] * 70))
    assert Counter(names.tolist()) == {"hard": 10, "medium": 20, "easy": 70}
    assert set(difficulty(np.full(7, 0.3)).tolist()) == {"hard"}


def test_the_same_seed_makes_the_same_spots(kitchen):
    first, second, other = (make_spots(kitchen, "Tomato", 4, seed) for seed in (1, 1, 2))
    assert first == second != other
    assert first.scene == SCENE and first.goal == "Tomato" and 0 < first.candidates <= 4
    assert sum(len(spots) for spots in first.spots.values()) == first.candidates
    shares = [[spot.share for spot in first.spots[name]] for name in ("hard", "easy")]
    assert max(shares[0]) < min(shares[1])


def test_invalid_arguments_are_refused(kitchen):
    with pytest.raises(SpotError, match="unknown goal object 'Spoon'"):
        make_spots(kitchen, "Spoon", 1)
    with pytest.raises(SpotError, match="at least one candidate"):
        make_spots(kitchen, "Cup", 0)
    with pytest.raises(SpotError, match="openables, the spot asks for 99"):
        replace(SPOT, open=(99,)).is_open(kitchen)


def test_files_round_trip(tmp_path):
    path = tmp_path / "deep" / "spots.json"
    save_spots(example_spots(), path)
    assert load_spots(path) == load_spots(path, "FloorPlan7", "Cup") == example_spots()
    with pytest.raises(SpotError, match="spots of a Cup in FloorPlan7, not of a Cup in FloorPlan8"):
        load_spots(path, "FloorPlan8")
    with pytest.raises(SpotError, match="not of a Knife"):
        load_spots(path, "FloorPlan7", "Knife")


def _spot_with(data: dict, **values) -> dict:
    data["spots"]["hard"][0].update(values)
    return data


BROKEN = {
    "version": lambda data: {**data, "version": 99},
    "no version": lambda data: {key: data[key] for key in data if key != "version"},
    "a list": lambda data: [data],
    "an unknown field": lambda data: {**data, "color": 1},
    "a missing field": lambda data: {key: data[key] for key in data if key != "candidates"},
    "a missing difficulty": lambda data: {**data, "spots": {"easy": [], "medium": []}},
    "an unknown difficulty": lambda data: {**data, "spots": {**data["spots"], "absurd": []}},
    "spots that are a list": lambda data: {**data, "spots": []},
    "spots of another goal": lambda data: {**data, "goal": "Knife"},
    "an unknown goal": lambda data: _spot_with({**data, "goal": "Spoon"}, goal="Spoon"),
    "candidates": lambda data: {**data, "candidates": "many"},
    "a short pose": lambda data: _spot_with(data, pose=[1, 2, 3]),
    "an infinite pose": lambda data: _spot_with(data, pose=[float("inf")] * 7),
    "an unknown kind": lambda data: _spot_with(data, kind="under"),
    "a share": lambda data: _spot_with(data, share=1.5),
    "a negative openable": lambda data: _spot_with(data, open=[-1]),
    "a spot's unknown field": lambda data: _spot_with(data, color="red"),
    "a spot that is a number": lambda data: {**data, "spots": {name: [7] for name in DIFFICULTIES}},
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN.keys())
def test_broken_files_are_refused(tmp_path, change):
    path = tmp_path / "spots.json"
    save_spots(example_spots(), path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(SpotError, match=r"spots\.json"):
        load_spots(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", None])
def test_unreadable_and_missing_files_are_refused(tmp_path, content):
    path = tmp_path / "spots.json"
    save_spots(example_spots(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(SpotError, match="not a file of hiding spots"):
        load_spots(path)
    with pytest.raises(SpotError, match="not a file of hiding spots"):
        load_spots(tmp_path / "missing.json")


def test_existing_files_are_not_made_again(tmp_path):
    """Existing files are kept, whatever they hold; the missing ones are made."""
    progress: list[tuple[int, int]] = []
    save_spots(example_spots(scene="foyer-1"), spots_path(tmp_path, "foyer-1", "Cup"))
    make_spot_files(["foyer-1"], ["Cup", "Knife"], tmp_path, lambda *done: progress.append(done), candidates=2)
    assert progress == [(1, 2), (2, 2)]
    assert load_spots(spots_path(tmp_path, "foyer-1", "Cup")) == example_spots(scene="foyer-1")
    knife = spots_path(tmp_path, "foyer-1", "Knife")
    assert load_spots(knife, "foyer-1", "Knife") == make_spots("foyer-1", "Knife", 2)
    before = knife.stat().st_mtime_ns
    make_spot_files(["foyer-1"], ["Cup", "Knife"], tmp_path, candidates=2)
    assert knife.stat().st_mtime_ns == before and len(list(tmp_path.iterdir())) == 2
    knife.write_text("{")
    with pytest.raises(SpotError, match="Knife"):
        make_spot_files(["foyer-1"], ["Bread", "Knife"], tmp_path, candidates=2)
    assert not spots_path(tmp_path, "foyer-1", "Bread").exists()


@pytest.mark.parametrize(
    ("scenes", "goals", "numbers", "what"),
    [
        (["foyer-1", "FloorPlan999"], ["Cup"], {}, "unknown scene 'FloorPlan999'"),
        (["foyer-1"], ["Cup", "Spoon"], {}, "unknown goal object 'Spoon'"),
        (["foyer-1"], ["Cup"], {"candidates": 0}, "at least one candidate"),
    ],
)
def test_invalid_arguments_write_no_file(tmp_path, scenes, goals, numbers, what):
    with pytest.raises(ValueError, match=what):
        make_spot_files(scenes, goals, tmp_path, **numbers)
    assert not list(tmp_path.iterdir())


def test_processes_make_the_same_files(tmp_path):
    progress: list[tuple[int, int]] = []
    make_spot_files(
        ["foyer-1"],
        ["Cup", "Tomato"],
        tmp_path,
        lambda *done: progress.append(done),
        candidates=2,
        workers=ProcessWorkers(2),
    )
    assert progress == [(0, 2), (1, 2), (2, 2)]
    assert load_spots(spots_path(tmp_path, "foyer-1", "Cup")) == make_spots("foyer-1", "Cup", 2)


def test_a_killed_run_continues_where_it_stopped(tmp_path):
    """Its child processes end with it, its complete files are kept, and the result equals an uninterrupted run's."""
    goals = ["Cup", "Knife", "Tomato", "Bread"]
    paths = [spots_path(tmp_path, "foyer-1", goal) for goal in goals]
    arguments = (["foyer-1"], goals, tmp_path, print, 3, 0, ProcessWorkers(2))
    run = multiprocessing.get_context("spawn").Process(target=make_spot_files, args=arguments)
    run.start()
    assert _wait_for(lambda: any(path.exists() for path in paths))
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    run.kill()
    run.join()
    assert children and _wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    before = {path: path.stat().st_mtime_ns for path in paths if path.exists()}
    assert 0 < len(before) < len(paths)
    progress: list[tuple[int, int]] = []
    make_spot_files(["foyer-1"], goals, tmp_path, lambda *done: progress.append(done), candidates=3)
    assert progress == [(done, len(paths)) for done in range(len(before), len(paths) + 1)]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    for path, goal in zip(paths, goals, strict=True):
        assert load_spots(path) == make_spots("foyer-1", goal, 3)


def _wait_for(condition: Callable[[], bool]) -> bool:
    """Waits up to a minute for a condition; whether it holds."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()
