"""Placements: each is hit by its own actions, by the game's judgement; files are whole or refused."""

import hashlib
import itertools
import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest

from scrubjay.errors import PlacementError
from scrubjay.game import placement
from scrubjay.game.actions import NAMES, NOTHING, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.stages import LIMITS
from scrubjay.placements import generate
from scrubjay.placements.generate import CONTAINED, LEG, LEGS, MOVE_ACTIONS, make_placement_files, make_placements
from scrubjay.placements.hand_paths import STEPS, HandPaths
from scrubjay.placements.placements import (
    Placement,
    Placements,
    load_placement_files,
    load_placements,
    placements_path,
    save_placements,
)
from scrubjay.rooms.floor import BODY_RADIUS, GRID
from scrubjay.rooms.room import GOALS
from scrubjay.sim.physics import Physics
from scrubjay.sim.physics_pool import physics_state
from scrubjay.sim.pose import REACH, AgentPose, reach
from scrubjay.sim.world import World
from scrubjay.workers.pool import ProcessWorkers

DROP, DOWN = action_index("DropObject"), action_index("MoveHandDown")
HERE = AgentPose(0.0, 0.0, 90.0, True)
OPEN = action_index("OpenAt|4,4")
EXAMPLE = Placement(HERE, HERE, (1, 3, 4), (0,), (0.5, 0.1, 0.2, 1.0, 0.0, 0.0, 0.0), (OPEN, DROP))


@pytest.fixture(scope="module")
def made(chest) -> list[Placements]:
    return [make_placements(chest, goal, 9) for goal in ("Cup", "Tomato")]


def some_placements(**changes) -> Placements:
    return replace(Placements("foyer-1", "Cup", 40, (EXAMPLE, replace(EXAMPLE, target=(0, 3, 4), open=()))), **changes)


def play(room, placements: Placements, is_open: bool = False):
    """Plays the actions of all placements side by side; the last results by game."""
    given = placements.placements
    with World([room], len(given)) as world:
        game = CacheGame(world, lambda _, b: given[b].episode(placements.goal, is_open), forgiving=True)
        ends = {}
        for step in range(int(LIMITS.max())):
            action = [p.actions[step] if step < len(p.actions) else NOTHING for p in given]
            result = game.step(np.array(action))
            ends |= {b: (result.hit[b], result.pose[b], result.open[b]) for b in np.flatnonzero(result.finished)
                     if b not in ends}  # fmt: skip
            if len(ends) == len(given):
                return [ends[b] for b in range(len(given))]
    raise AssertionError("a game did not end")


def test_playing_the_actions_hits_the_target(chest, made):
    """From a closed room, bit by bit: the object rests where the file says, and what is open is open."""
    for placements in made:
        for given, (hit, pose, is_open) in zip(placements.placements, play(chest, placements), strict=True):
            assert hit, given
            assert tuple(pose.tolist()) == given.pose and tuple(np.flatnonzero(is_open).tolist()) == given.open


def test_files_name_the_room_that_they_were_made_in(chest, made):
    assert {placements.room for placements in made} == {chest.room.digest}


def test_an_object_at_its_resting_pose_hits_the_target(chest, made):
    for placements in made:
        given = placements.placements
        with World([chest], len(given)) as world:
            for b, one in enumerate(given):
                world.state.open[b, list(one.open)] = True
                world.set_agent_pose(b, one.place)
                world.state.pose[b] = one.pose
            world.state.goal[:] = GOALS.index(placements.goal)
            counts = placement.dropped_counts(world, np.ones(len(given), bool))
            assert placement.hits(counts, np.array([one.target for one in given])).all()
            contained = world.contained() != NOTHING
            assert contained[[one.target[0] == 1 for one in given]].all()
            world.state.held[:] = True
            world.drop(np.ones(len(given), bool))
            assert np.linalg.norm(world.state.pose[:, :3] - [one.pose[:3] for one in given], axis=1).max() < 0.005


def test_what_is_behind_is_hardly_seen(chest, made):
    (cups, _) = made
    behind = cups.by_modality()[2]
    with World([chest], len(behind)) as world:
        for b, one in enumerate(behind):
            world.state.open[b, list(one.open)] = True
            world.set_agent_pose(b, one.place)
            world.state.pose[b] = one.pose
        world.state.goal[:] = GOALS.index("Cup")
        counts = placement.dropped_counts(world, np.ones(len(behind), bool))
    assert (counts[:, 2].max((1, 2)) >= 0.95 * counts[:, 0].max((1, 2))).all()


def test_agents_stand_where_they_can_and_reach_the_object(chest, made):
    for one in (one for placements in made for one in placements.placements):
        position = np.array(one.place[:2])
        assert chest.floor.clearance(position) >= BODY_RADIUS
        reachable = chest.floor.positions(one.start[:2], one.start.rotation % 90)
        assert np.abs(reachable - position).max(1).min() < 1e-6, "on the grid of its start"
        assert np.abs(chest.floor.reachable().positions - one.start[:2]).max(1).min() < GRID / 1e6
        assert (one.place.rotation - one.start.rotation) % 90 == 0
        assert reach(position, np.array(one.pose[:3])) <= REACH


def test_the_modalities_are_balanced(made):
    for placements in made:
        assert [len(some) for some in placements.by_modality()] == [3, 3, 3]
        assert placements.drops >= 9
        assert len({one.place for one in placements.placements}) >= 4, "from many places"
    turned = [one.place.rotation % 90 != 0 for placements in made for one in placements.placements]
    assert any(turned) and not all(turned)
    opened = [NAMES[one.actions[0]].startswith("OpenAt") for placements in made for one in placements.placements]
    assert any(opened) and opened == [bool(one.open) for placements in made for one in placements.placements]


def test_an_empty_room_has_placements_on_top_alone(empty, monkeypatch):
    monkeypatch.setattr(generate, "PATIENCE", 16)
    found = make_placements(empty, "Tomato", 6)
    assert [len(some) for some in found.by_modality()] == [2, 0, 0]


def test_a_seed_makes_the_same_placements(chest):
    first, again, other = (make_placements(chest, "Cup", 1, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_paths_lead_to_their_nodes_and_avoid_things(chest):
    with World([chest]) as world:
        world.set_agent_pose(0, AgentPose(0.0, 0.75, 0.0, True))
        world.hold(np.array([GOALS.index("Cup")]))
        now, physics = physics_state(world.state, 0, 2), Physics(chest)
        paths = HandPaths(physics, now, 12)
    assert paths.distance.max() == 12
    goal = physics.load(now)
    for node in np.argwhere(paths.distance >= 0)[::50]:
        here = np.argwhere(paths.distance == 0)[0]
        path = paths.path(node)
        assert len(path) == paths.distance[tuple(node)]
        for move in path:
            here = here + STEPS[move]
            pose = np.array([*paths.points[tuple(here)], *now.pose[3:]])
            assert not physics.collides(goal, pose) and reach(now.position, pose[:3]) <= REACH
        assert (here == node).all()


def test_bad_arguments(chest):
    with pytest.raises(PlacementError, match="unknown goal object 'Spoon'"):
        make_placements(chest, "Spoon", 1)
    with pytest.raises(PlacementError, match="at least one placement"):
        make_placements(chest, "Cup", 0)


def test_files_round_trip(tmp_path, made):
    path = tmp_path / "deep" / "placements.json"
    save_placements(made[0], path)
    assert load_placements(path) == load_placements(path, "hut", "Cup") == made[0]
    with pytest.raises(PlacementError, match="placements of a Cup in hut, not of a Cup in FloorPlan8"):
        load_placements(path, "FloorPlan8")
    with pytest.raises(PlacementError, match="not of a Knife in hut"):
        load_placements(path, "hut", "Knife")
    save_placements(made[0], placements_path(tmp_path, "hut", "Cup"))
    assert load_placement_files(tmp_path, ["hut"], ["Cup"]) == [made[0]]
    with pytest.raises(PlacementError, match="hut-Knife"):
        load_placement_files(tmp_path, ["hut"], ["Cup", "Knife"])


def _first(data: dict, **values) -> dict:
    data["placements"][0].update(values)
    return data


BROKEN = {
    "version 99": (lambda data: {**data, "version": 99}, "version 2"),
    "no version": (lambda data: {key: data[key] for key in data if key != "version"}, "version 2"),
    "a list": (lambda data: [data], "version 2"),
    "no digest": (lambda data: {key: data[key] for key in data if key != "sha256"}, "edited"),
    "an edited target": (lambda data: _first(data, target=[1, 3, 5]), "edited"),
    "an edited scene": (lambda data: {**data, "scene": "FloorPlan1"}, "edited"),
    "one placement fewer": (lambda data: {**data, "placements": data["placements"][1:]}, "edited"),
    "an unknown field": (lambda data: {**data, "color": 1}, "color"),
    "a missing field": (lambda data: {key: data[key] for key in data if key != "drops"}, "drops"),
    "an unknown goal": (lambda data: {**data, "goal": "Spoon"}, "Spoon"),
    "a target beyond the cells": (lambda data: _first(data, target=[1, 7, 0]), "target"),
    "a fourth modality": (lambda data: _first(data, target=[3, 0, 0]), "target"),
    "a short pose": (lambda data: _first(data, pose=[1, 2, 3]), "pose"),
    "an infinite place": (lambda data: _first(data, place=[float("inf"), 0, 0, True]), "place"),
    "a negative openable": (lambda data: _first(data, open=[-1]), "open"),
    "no drop": (lambda data: _first(data, actions=[DROP - 1]), "DropObject"),
    "an action of another stage": (lambda data: _first(data, actions=[0, DROP]), "actions of OM"),
    "too many actions": (lambda data: _first(data, actions=[DROP - 1] * 50 + [DROP]), "actions"),
    "a detour that never ends": (lambda data: _first(data, detour=[0, 99]), "detour"),
    "a detour backwards": (lambda data: _first(data, detour=[1, 0]), "detour"),
    "a placement's unknown field": (lambda data: _first(data, color="red"), "color"),
}


@pytest.mark.parametrize(("change", "what"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_files_are_refused(tmp_path, change, what):
    path = tmp_path / "placements.json"
    save_placements(some_placements(), path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(PlacementError, match=what) as caught:
        load_placements(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", None])
def test_no_files_are_refused(tmp_path, content):
    path = tmp_path / "placements.json"
    save_placements(some_placements(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(PlacementError, match="not a file of placements"):
        load_placements(path)
    with pytest.raises(PlacementError, match="not a file of placements"):
        load_placements(tmp_path / "missing.json")


def test_existing_files_are_kept(tmp_path):
    reported: list[tuple[int, int]] = []
    save_placements(some_placements(), placements_path(tmp_path, "foyer-1", "Cup"))
    make_placement_files(["foyer-1"], ["Cup", "Knife"], tmp_path, lambda *done: reported.append(done), 1)
    assert reported == [(1, 2), (2, 2)]
    assert load_placements(placements_path(tmp_path, "foyer-1", "Cup")) == some_placements()
    knife = placements_path(tmp_path, "foyer-1", "Knife")
    assert load_placements(knife, "foyer-1", "Knife") == make_placements("foyer-1", "Knife", 1)
    knife.write_text("{")
    with pytest.raises(PlacementError, match="Knife"):
        make_placement_files(["foyer-1"], ["Bread", "Knife"], tmp_path, count=1)
    assert not placements_path(tmp_path, "foyer-1", "Bread").exists()


@pytest.mark.parametrize(
    ("scenes", "goals", "numbers", "what"),
    [
        (["foyer-1", "FloorPlan999"], ["Cup"], {}, "unknown scene 'FloorPlan999'"),
        (["foyer-1"], ["Cup", "Spoon"], {}, "unknown goal object 'Spoon'"),
        (["foyer-1"], ["Cup"], {"count": 0}, "at least one placement"),
    ],
)
def test_arguments_are_checked_before_anything_is_made(tmp_path, scenes, goals, numbers, what):
    with pytest.raises(ValueError, match=what):
        make_placement_files(scenes, goals, tmp_path, **numbers)
    assert not list(tmp_path.iterdir())


def test_a_killed_run_resumes(tmp_path):
    """Its files are whole and kept, its processes end with it, and the result is that of an uninterrupted run."""
    goals = ["Cup", "Knife", "Tomato"]
    paths = [placements_path(tmp_path, "foyer-1", goal) for goal in goals]
    arguments = (["foyer-1"], goals, tmp_path, print, 1, 0, ProcessWorkers(2))
    run = multiprocessing.get_context("spawn").Process(target=make_placement_files, args=arguments)
    run.start()
    assert _soon(lambda: any(path.exists() for path in paths))
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    run.kill()
    run.join()
    assert children and _soon(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    before = {path: path.stat().st_mtime_ns for path in paths if path.exists()}
    assert 0 < len(before) < len(paths)
    make_placement_files(["foyer-1"], goals, tmp_path, count=1)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert load_placements(paths[0]) == make_placements("foyer-1", goals[0], 1)
    assert all(load_placements(path, "foyer-1", goal) for path, goal in zip(paths, goals, strict=True))


def _soon(happens: Callable[[], bool]) -> bool:
    """Does something happen within a minute?"""
    end = time.monotonic() + 60
    while not happens() and time.monotonic() < end:
        time.sleep(0.005)
    return happens()


def test_shortest_paths_turn_as_little_as_possible(chest):
    with World([chest]) as world:
        world.set_agent_pose(0, AgentPose(0.0, 0.75, 0.0, True))
        world.hold(np.array([GOALS.index("Cup")]))
        paths = HandPaths(Physics(chest), physics_state(world.state, 0, 2), 5)

    def turns(moves) -> int:
        return sum(a != b for a, b in pairwise(moves))

    def stays_on_nodes(moves) -> bool:
        nodes = np.cumsum([np.argwhere(paths.distance == 0)[0], *(STEPS[move] for move in moves)], 0)
        return all((node >= 0).all() and paths.distance[tuple(node)] >= 0 for node in nodes)

    # Against all orders of the movements.
    for node in np.argwhere(paths.distance == 5)[::12]:
        path = paths.path(node)
        assert turns(path) == min(turns(order) for order in set(permutations(path)) if stays_on_nodes(order))


def test_many_ways_have_a_detour_of_straight_legs(made):
    every = [one for placements in made for one in placements.placements]
    assert 0.2 < np.mean([one.detour[1] > one.detour[0] for one in every]) < 0.95
    for one in every:
        before, astray = one.actions[: one.detour[0]], one.actions[slice(*one.detour)]
        legs = [move for move, _ in itertools.groupby(astray)]
        assert len(legs) <= LEGS and len(astray) <= LEGS * LEG and set(legs) <= set(MOVE_ACTIONS)
        assert all(NAMES[action].startswith("OpenAt") for action in before)


def test_a_file_without_detours_has_none(tmp_path):
    path = tmp_path / "placements.json"
    save_placements(some_placements(), path)
    data = json.loads(path.read_text())
    for one in data["placements"]:
        del one["detour"]
    del data["sha256"], data["version"]
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({"version": 2, "sha256": digest, **data}))
    assert load_placements(path) == some_placements()


def test_objects_are_lowered_until_they_rest_and_things_opened_for_containers_alone(chest, made):
    for placements in made:
        given = placements.placements
        with World([chest], len(given)) as world:
            game = CacheGame(world, lambda _, b: given[b].episode(placements.goal), forgiving=True)  # noqa: B023
            before, lowered = world.state.pose[:, 2].copy(), np.zeros(len(given), bool)
            for step in range(max(len(p.actions) for p in given)):
                dropping = np.array([step == len(p.actions) - 1 for p in given])
                lowered |= dropping & (game.last_action == DOWN) & (before - world.state.pose[:, 2] < 0.01)
                before = world.state.pose[:, 2].copy()
                game.step(np.array([p.actions[step] if step < len(p.actions) else NOTHING for p in given]))
        # Some slide on for longer than objects are lowered.
        assert lowered.mean() > 0.7, lowered
        assert all(one.target[0] == CONTAINED or not one.open for one in given)
