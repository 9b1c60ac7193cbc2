"""Searches sampled from hiding spots, in a small room with a drawer and a cabinet."""

import contextlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from scrubjay.errors import SpotError
from scrubjay.game.actions import NAMES, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.room import GOALS
from scrubjay.sim.pose import REACH, AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.episodes import SpotEpisodes, free_positions
from scrubjay.spots.spots import DIFFICULTIES, Spot, Spots, load_spot_files, save_spots, spots_path

ON_FLOOR = Spot("Cup", (1.0, -1.0, 0.06, 1.0, 0.0, 0.0, 0.0), (), "floor", "", 0.5)
BEFORE_DRAWER = replace(ON_FLOOR, pose=(0.5, -1.0, 0.06, 1.0, 0.0, 0.0, 0.0), open=(0, 1))


def sample(compiled, sampler: SpotEpisodes, count: int, copies: int = 2) -> list[list[EpisodeSpec]]:
    """The first games in the worlds of one room, by world."""
    with World([compiled], copies=copies) as world:
        return [[sampler(world, number) for _ in range(count)] for number in range(copies)]


def in_chest(**spots: tuple[Spot, ...]) -> Spots:
    return Spots("hut", "Cup", 9, {name: spots.get(name, ()) for name in DIFFICULTIES})


def test_searches_are_sampled_from_the_spots(chest):
    sampler = SpotEpisodes([in_chest(easy=(ON_FLOOR,), hard=(BEFORE_DRAWER,))])
    games = [spec for specs in sample(chest, sampler, 40) for spec in specs]
    assert all((spec.first, spec.last, spec.goal) == (Stage.S, Stage.S, "Cup") for spec in games)
    assert {(spec.pose, spec.open) for spec in games} == {(s.pose, s.open) for s in (ON_FLOOR, BEFORE_DRAWER)}
    positions = chest.floor.reachable().positions.tolist()
    assert all([spec.start.x, spec.start.y] in positions and spec.start.standing for spec in games)
    assert {spec.start.rotation for spec in games} == {0, 90, 180, 270}
    assert len({spec.start[:2] for spec in games}) > 30


def test_a_worlds_games_depend_only_on_the_seed_and_its_index(chest):
    spots = [in_chest(easy=(ON_FLOOR, BEFORE_DRAWER))]
    first, second = sample(chest, SpotEpisodes(spots), 5)
    assert first != second
    sampler = SpotEpisodes(spots)
    with World([chest], copies=2) as world:
        backwards = [[sampler(world, number) for _ in range(5)] for number in (1, 0)]
    assert backwards == [second, first]
    assert sample(chest, SpotEpisodes(spots, seed=1), 5)[0] != first


def test_searches_that_begin_near_face_the_object_within_reach(chest):
    sampler = SpotEpisodes([in_chest(easy=(ON_FLOOR,))])
    anywhere = sample(chest, sampler, 20)
    near, half = (SpotEpisodes([in_chest(easy=(ON_FLOOR,))]) for _ in range(2))
    near.near, half.near = 1.0, 0.5
    for spec in [spec for specs in sample(chest, near, 20) for spec in specs]:
        away = np.array(spec.pose[:2]) - spec.start[:2]
        assert np.linalg.norm(away) < REACH and spec.start.standing
        # Of four directions the nearest one is off by 45 degrees at most.
        assert facing_vector(np.array(spec.start.rotation)) @ away >= np.cos(np.pi / 4) * np.linalg.norm(away) - 1e-9
    mixed = [spec for specs in sample(chest, half, 20) for spec in specs]
    reached = [np.hypot(spec.pose[0] - spec.start.x, spec.pose[1] - spec.start.y) < REACH for spec in mixed]
    assert 0.5 <= np.mean(reached) < 1
    # Without a share the episodes are those that every seeker has always had.
    assert anywhere == sample(chest, SpotEpisodes([in_chest(easy=(ON_FLOOR,))]), 20)


def test_only_the_given_goals_and_difficulties_are_sampled(chest):
    knife = replace(ON_FLOOR, goal="Knife")
    spots = [in_chest(easy=(ON_FLOOR,), hard=(BEFORE_DRAWER,)), replace(in_chest(hard=(knife,)), goal="Knife")]
    for options, poses in (
        ({"goals": ["Knife"]}, {("Knife", knife.pose)}),
        ({"difficulties": ["easy"]}, {("Cup", ON_FLOOR.pose)}),
    ):
        (games,) = sample(chest, SpotEpisodes(spots, **options), 10, copies=1)
        assert {(spec.goal, spec.pose) for spec in games} == poses


def test_goals_and_difficulties_are_equally_likely(chest):
    """However many spots each has: of 600 games 300 are of the Knife, and half of the Cup's 300 are easy."""
    knives = tuple(replace(ON_FLOOR, goal="Knife", share=k / 20) for k in range(20))
    many = (BEFORE_DRAWER,) * 20
    spots = [in_chest(easy=(ON_FLOOR,), hard=many), replace(in_chest(medium=knives), goal="Knife")]
    (games,) = sample(chest, SpotEpisodes(spots), 600, copies=1)
    counts = Counter((spec.goal, spec.open) for spec in games)
    assert counts["Knife", ()] == pytest.approx(300, abs=50)
    assert counts["Cup", ()] == pytest.approx(150, abs=50) and counts["Cup", (0, 1)] == pytest.approx(150, abs=50)


def test_no_search_starts_inside_an_open_part(chest):
    """The drawer and the door, both open, take positions away; `World.set_agent_pose` accepts all the others."""
    free, everywhere = free_positions(chest, BEFORE_DRAWER), chest.floor.reachable().positions
    assert 0 < len(free) < len(everywhere) == len(free_positions(chest, ON_FLOOR))
    with World([chest]) as world:
        world.state.open[:] = True
        for point in everywhere:
            fits = (free == point).all(1).any()
            with contextlib.nullcontext() if fits else pytest.raises(ValueError, match="no body can stand"):
                world.set_agent_pose(0, AgentPose(*point, 0.0, True))


def test_searches_can_be_played(chest):
    """The object lies where the spot says, what is open is open, and the seeker may claim."""
    with World([chest], size=56) as world:
        game = CacheGame(world, SpotEpisodes([in_chest(hard=(BEFORE_DRAWER,))]))
        assert game.stage[0] == Stage.S and GOALS[game.goal[0]] == "Cup"
        assert tuple(world.state.pose[0]) == BEFORE_DRAWER.pose and world.state.open[0].all()
        result = game.step(np.array([NAMES.index("ClaimVisible")]))
        assert result.stage[0] == Stage.S


def test_rooms_without_spots_are_refused(chest):
    for spots in ([], [in_chest()], [replace(in_chest(easy=(ON_FLOOR,)), scene="hovel")]):
        with pytest.raises(SpotError, match=r"no easy or medium or hard hiding spots of a .* in hut"):
            sample(chest, SpotEpisodes(spots), 1)
    with pytest.raises(SpotError, match="no hard hiding spots of a Cup in hut"):
        sample(chest, SpotEpisodes([in_chest(easy=(ON_FLOOR,))], ["Cup"], ["hard"]), 1)
    other = replace(in_chest(easy=(ON_FLOOR,)), room="0" * 64)
    with pytest.raises(SpotError, match="hiding spots of a Cup in hut were made when that room was another: make the"):
        sample(chest, SpotEpisodes([other]), 1)
    sample(chest, SpotEpisodes([replace(other, room=chest.room.digest)]), 1)
    with pytest.raises(SpotError, match="2 openables, the spot asks for 3"):
        sample(chest, SpotEpisodes([in_chest(easy=(replace(ON_FLOOR, open=(3,)),))]), 1)
    with pytest.raises(SpotError, match=r"unknown difficulties \['absurd'\]"):
        SpotEpisodes([], difficulties=["absurd"])
    with pytest.raises(SpotError, match="unknown goal objects"):
        SpotEpisodes([], goals=[])
    with pytest.raises(SpotError, match="given twice"):
        SpotEpisodes([in_chest(), in_chest()])


def test_folders_of_spots_are_read(tmp_path):
    spots = in_chest(easy=(ON_FLOOR,), hard=(BEFORE_DRAWER,))
    save_spots(spots, spots_path(tmp_path, "hut", "Cup"))
    assert load_spot_files(tmp_path, ["hut"], ["Cup"]) == [spots]
    with pytest.raises(SpotError, match="hut-Knife"):
        load_spot_files(tmp_path, ["hut"], ["Cup", "Knife"])
