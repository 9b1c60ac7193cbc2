"""Episodes from placements: a fixed sequence for each world, all modalities equally often."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from scrubjay.errors import PlacementError
from scrubjay.game.actions import Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.placements.episodes import PlacementEpisodes
from scrubjay.placements.placements import Placement, Placements
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World

STRAIGHT, TURNED = AgentPose(0.0, 0.0, 90.0, True), AgentPose(0.0, 0.0, 33.0, False)
ACTIONS = (action_index("OpenAt|4,4"), action_index("DropObject"))
POSE = (0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0)


def placed(modality: int, column: int, place: AgentPose = STRAIGHT, **changes) -> Placement:
    return replace(Placement(place, place, (modality, 3, column), (), POSE, ACTIONS), **changes)


ON_TOP = tuple(placed(0, column) for column in range(5))
INSIDE = placed(1, 5, open=(1,))
BEHIND = placed(2, 6, TURNED)
CUPS = Placements("hut", "Cup", 40, (*ON_TOP, INSIDE, BEHIND))


@pytest.fixture
def world(chest):
    with World([chest], copies=2, size=28) as world:
        yield world


def sample(world, sampler: PlacementEpisodes, count: int, number: int = 0):
    return [sampler(world, number) for _ in range(count)]


def test_modalities_are_equally_likely_however_many_placements_they_have(world):
    specs = sample(world, PlacementEpisodes([CUPS], turned=True), 600)
    modalities = Counter(spec.target[0] for spec in specs)
    assert all(160 < modalities[modality] < 240 for modality in range(3))
    assert {spec.target for spec in specs} == {one.target for one in CUPS.placements}
    assert {(spec.first, spec.last, spec.goal) for spec in specs} == {(Stage.OM, Stage.OM, "Cup")}


def test_without_turned_grids_are_straight(world):
    specs = sample(world, PlacementEpisodes([CUPS]), 100)
    assert {spec.target[0] for spec in specs} == {0, 1}
    assert not any(spec.place.rotation % 90 for spec in specs)


def test_containers_are_open_in_half_of_the_episodes(world):
    specs = sample(world, PlacementEpisodes([CUPS], turned=True), 300)
    opened = [spec.open for spec in specs if spec.target[0] == 1]
    assert set(opened) == {(), (1,)} and 0.3 < np.mean([bool(some) for some in opened]) < 0.7
    assert not any(spec.open for spec in specs if spec.target[0] != 1)


def test_a_worlds_sequence_depends_on_its_number_and_the_seed_alone(world):
    first, again, other = (PlacementEpisodes([CUPS], turned=True, seed=seed) for seed in (1, 1, 2))
    alone = sample(world, first, 10)
    mixed = [(again(world, 0), again(world, 1)) for _ in range(10)]
    assert [pair[0] for pair in mixed] == alone != [pair[1] for pair in mixed]
    assert sample(world, other, 10) != alone


def test_games_begin_as_the_placement_says(world):
    game = CacheGame(world, PlacementEpisodes([replace(CUPS, placements=(INSIDE,))]))
    assert (game.stage == Stage.OM).all() and (game.target == INSIDE.target).all()
    assert world.state.held.all() and (world.state.rotation == 90).all()


def test_rooms_without_placements_are_refused(world):
    for given in ([], [replace(CUPS, placements=())], [replace(CUPS, scene="hovel")]):
        with pytest.raises(PlacementError, match=r"no placements of a .* in hut"):
            sample(world, PlacementEpisodes(given), 1)
    with pytest.raises(PlacementError, match="no placements of a Knife in hut"):
        sample(world, PlacementEpisodes([CUPS], ["Knife"]), 1)
    with pytest.raises(
        PlacementError, match="placements of a Cup in hut were made when that room was another: make the"
    ):
        sample(world, PlacementEpisodes([replace(CUPS, room="0" * 64)]), 1)
    sample(world, PlacementEpisodes([replace(CUPS, room=world.rooms[0].room.digest)]), 1)
    with pytest.raises(PlacementError, match="2 openables, the placement asks for 7"):
        sample(world, PlacementEpisodes([replace(CUPS, placements=(replace(INSIDE, open=(7,)),))]), 1)
    with pytest.raises(PlacementError, match="given twice"):
        PlacementEpisodes([CUPS, CUPS])
    with pytest.raises(PlacementError, match=r"unknown goal objects \['Spoon'\]"):
        PlacementEpisodes([], ["Spoon"])
