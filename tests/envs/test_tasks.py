"""The episodes of each task, and who plays the stages that are not learned."""

from dataclasses import replace

import numpy as np
import pytest

from scrubjay.envs.tasks import ByStage, Explore, Hide, Manipulate, Seek
from scrubjay.errors import PlacementError, SpotError
from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.placements.generate import make_placements
from scrubjay.placements.placements import placements_path, save_placements
from scrubjay.players.base import RandomPlayer
from scrubjay.players.manipulator import Manipulator
from scrubjay.sim.world import World
from scrubjay.spots.spots import make_spots, save_spots, spots_path


@pytest.fixture
def world(chest):
    with World([chest], copies=4, size=28) as world:
        yield world


def sample(task, world, seed=0):
    """A game for each world."""
    sampler = task.sampler(seed)
    return [sampler(world, number) for number in range(len(world))]


@pytest.mark.parametrize(
    ("task", "first", "last"),
    [
        (Explore(), Stage.EM, Stage.EM),
        (Manipulate(), Stage.OM, Stage.OM),
        (Hide(), Stage.OH, Stage.OH),
        (Hide(opponent="frontier"), Stage.OH, Stage.S),
        (Seek(), Stage.S, Stage.S),
        (Seek(opponent="heuristic"), Stage.EM, Stage.S),
    ],
)
def test_games_have_the_stages_that_their_learner_and_opponent_need(world, task, first, last):
    for spec in sample(task, world):
        assert (spec.first, spec.last) == (first, last)
    assert sample(task, world, 1) == sample(task, world, 1) != sample(task, world, 2)


def test_goals_and_rotated_grids_follow_the_options(world):
    for task in (Explore, Manipulate, Hide, Seek):
        specs = [spec for seed in range(4) for spec in sample(task(goals="Bread", turned=True), world, seed)]
        assert {spec.goal for spec in specs} == {"Bread"}
        turned = [spec.start.rotation % 90 != 0 for spec in specs]
        assert any(turned) and not all(turned)
        assert not any(spec.start.rotation % 90 for spec in sample(task(), world))


def test_the_object_rests_at_the_specs_pose(world):
    game = CacheGame(world, Seek().sampler(0))
    before = world.state.pose.copy()
    assert (world.state.goal == game.goal).all() and not world.state.held.any()
    world.state.held[:] = True
    world.drop(np.ones(len(world), bool))
    assert np.linalg.norm(world.state.pose[:, :3] - before[:, :3], axis=1).max() < 0.01


def test_spots_are_given_as_objects_or_files(world, chest, tmp_path):
    tomatoes, breads = (make_spots(chest, goal, candidates=4) for goal in ("Tomato", "Bread"))
    for spots in (tomatoes, breads):
        save_spots(spots, spots_path(tmp_path, "hut", spots.goal))
    hard = {spot.pose for spot in tomatoes.spots["hard"]}
    for given in ([tomatoes], spots_path(tmp_path, "hut", "Tomato"), tmp_path, str(tmp_path)):
        task = Seek(spots=given, goals="Tomato", difficulties="hard").load(["hut"])
        assert {spec.pose for spec in sample(task, world)} <= hard
    both = Seek(spots=tmp_path, goals=("Tomato", "Bread")).load(["hut"])
    assert {spec.goal for seed in range(6) for spec in sample(both, world, seed)} == {"Tomato", "Bread"}
    with pytest.raises(SpotError, match="Plunger"):
        Seek(spots=tmp_path, goals="Plunger").load(["hut"])
    with pytest.raises(SpotError, match="hut"):
        sample(Seek(spots=[replace(tomatoes, scene="elsewhere")]), world)


def test_placements_are_given_as_they_are_or_in_files(world, chest, tmp_path):
    made = make_placements(chest, "Tomato", 3)
    save_placements(made, placements_path(tmp_path, "hut", "Tomato"))
    for given in ([made], placements_path(tmp_path, "hut", "Tomato"), tmp_path, str(tmp_path)):
        task = Manipulate(placements=given, goals="Tomato", turned=True).load(["hut"])
        specs = sample(task, world)
        assert {(spec.place, spec.target) for spec in specs} <= {(one.place, one.target) for one in made.placements}
        assert {(spec.first, spec.last, spec.goal) for spec in specs} == {(Stage.OM, Stage.OM, "Tomato")}
    with pytest.raises(PlacementError, match="hut-Bread"):
        Manipulate(placements=tmp_path, goals="Bread").load(["hut"])
    for given in ([replace(made, scene="elsewhere")], tmp_path):
        with pytest.raises(PlacementError, match="no placements of a Tomato in hut"):
            sample(Manipulate(placements=given, goals="Tomato"), world)


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (Seek, {"opponent": RandomPlayer, "spots": "folder"}, "not both"),
        (Seek, {"difficulties": ("impossible",)}, "impossible"),
        (Seek, {"goals": ()}, "goal"),
        (Seek, {"opponent": "frontier"}, "unknown hider 'frontier'"),
        (Hide, {"opponent": "heuristic"}, "unknown seeker 'heuristic'"),
        (Hide, {"goals": ("Cat",)}, "Cat"),
    ],
)
def test_wrong_options_are_clear_errors(task, options, message):
    with pytest.raises(ValueError, match=message):
        task(**options)


def test_hiding_has_a_scripted_manipulator_and_an_optional_seeker():
    assert isinstance(Hide().players(0).players[Stage.OM], Manipulator) and Stage.S not in Hide().players(0).players
    assert set(Hide(opponent="oracle").players(0).players) == {Stage.OM, Stage.S}


def test_players_play_their_stages_only(world):
    def always(name):
        number = action_index(name)
        return lambda game, games: (np.where(games, number, NOTHING), np.full((len(game), 4), number))

    game = CacheGame(world, Explore().sampler(0))
    game.stage[:] = [Stage.EM, Stage.S, Stage.OM, Stage.S]
    both = ByStage({Stage.EM: always("MoveAhead"), Stage.S: always("ClaimVisible")})
    action, place = both(game, np.array([True, True, True, False]))
    assert action.tolist() == [action_index("MoveAhead"), action_index("ClaimVisible"), NOTHING, NOTHING]
    assert place[:, 0].tolist() == [action_index("MoveAhead"), action_index("ClaimVisible"), 0, 0]
