"""The scripted hand and hider: they put things where they meant to, and what can be shut is shut."""

import numpy as np
import pytest
from helpers import hut

from scrubjay.game.actions import NAMES, NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.visibility import visible_from
from scrubjay.players.hiders import HeuristicHider
from scrubjay.players.manipulator import Manipulator, drops, rest_height
from scrubjay.players.perception import sights
from scrubjay.rooms.room import GOALS, Thing
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose, reach
from scrubjay.sim.world import World

LIMITS = np.array([60, 1, 15, 50, 500])


def manipulated(world: World, deal: EpisodeSpec) -> tuple[bool, list[str]]:
    game, player, names = CacheGame(world, lambda *_: deal), Manipulator(), []
    while True:
        action, place = player(game, np.ones(1, bool))
        outcome = game.step(action, place)
        names.append(NAMES[action[0]])
        if outcome.finished[0]:
            return bool(outcome.hit[0]), names


@pytest.fixture(scope="module")
def table_room():
    table = Thing("DiningTable_0", "DiningTable", (0.0, 1.2, 0.0), 0, (1.4, 0.9, 0.75))
    return compile_room(hut(table))


def test_drops_rest_on_level_surfaces_in_their_cells_and_in_reach(table_room):
    with World([table_room], size=224) as world:
        deal = EpisodeSpec("Cup", AgentPose(0.0, 0.25, 0.0, True), last=Stage.EM)
        game = CacheGame(world, lambda *_: deal)
        (sight,) = sights(game, np.array([0]))
        found = drops(sight, GOALS.index("Cup"))
        top = found.rest[:, 2] - rest_height(GOALS.index("Cup"))
        assert len(found.row) >= 6
        assert (np.abs(top - 0.75) < 0.03).any() and ((np.abs(top - 0.75) < 0.03) | (np.abs(top) < 0.03)).all()
        assert (reach(sight.eye[:2], found.rest) <= 1.4).all()
        assert len(set(zip(found.row.tolist(), found.column.tolist(), strict=True))) == len(found.row)


def test_the_hand_hits_cells_that_can_be_hit(table_room):
    with World([table_room], size=224) as world:
        start = AgentPose(0.0, 0.25, 0.0, True)
        game = CacheGame(world, lambda *_: EpisodeSpec("Tomato", start, last=Stage.EM))
        (sight,) = sights(game, np.array([0]))
        found = drops(sight, GOALS.index("Tomato"))
        targets = [(0, int(row), int(column)) for row, column in zip(found.row, found.column, strict=True)]
        hit = [
            manipulated(world, EpisodeSpec("Tomato", start, Stage.OM, Stage.OM, target=target))[0] for target in targets
        ]
        assert np.mean(hit) > 0.7


def test_the_hand_opens_what_it_should_put_something_into(chest):
    with World([chest], size=224) as world:
        start = AgentPose(0.0, 0.5, 0.0, True)
        game = CacheGame(world, lambda *_: EpisodeSpec("Tomato", start, last=Stage.EM))
        (sight,) = sights(game, np.array([0]))
        row, column = np.argwhere(sight.at_cells == 0)[0].tolist()
        _, names = manipulated(world, EpisodeSpec("Tomato", start, Stage.OM, Stage.OM, target=(1, row, column)))
        assert names[0].startswith("OpenAt") and names[-1] == "DropObject"


@pytest.mark.parametrize("first", [Stage.PS, Stage.OH, Stage.OM])
def test_the_hider_can_begin_at_any_stage(chest, first):
    target = (0, 5, 3) if first == Stage.OM else None
    deal = EpisodeSpec("Cup", AgentPose(-1.0, -1.0, 0.0, True), first, Stage.OM if target else Stage.S, target=target)
    with World([chest], size=224) as world:
        game, hider, stages, placed = CacheGame(world, lambda *_: deal), HeuristicHider(), set(), False
        while game.episode[0] == 1 and game.stage[0] != Stage.S:
            outcome = game.step(*hider(game, np.ones(1, bool)))
            stages.add(int(outcome.stage[0]))
            placed |= bool(outcome.placed[0])
        assert placed and first in stages and Stage.OM in stages


def test_a_hider_that_moves_to_other_games_starts_afresh(chest):
    hider = HeuristicHider()
    with World([chest], size=56) as world:
        for goal in ("Cup", "Plunger"):
            game = CacheGame(world, lambda *_, goal=goal: EpisodeSpec(goal, AgentPose(-1.0, -1.0, 0.0, True)))
            hider(game, np.ones(1, bool))
            mind = hider._minds.of(game, 0)
            assert mind.goal == GOALS.index(goal) and len(mind.looks) == 1


@pytest.mark.parametrize("goal", GOALS)
def test_the_hider_always_places_the_object(chest, goal):
    with World([chest], copies=2, size=224) as world:
        starts = [AgentPose(-1.0, -1.0, 0.0, True), AgentPose(1.25, -0.5, 30.0, True)]
        game = CacheGame(world, lambda _, number: EpisodeSpec(goal, starts[number]), LIMITS)
        hider = HeuristicHider(3)
        while (game.stage != Stage.S).any():
            playing = game.stage != Stage.S
            action, place = hider(game, playing)
            assert (action[~playing] == NOTHING).all()
            action[~playing] = 0
            game.step(action, place)
        assert game.placed.all()
        if goal == "Tomato":
            # It fits into the drawer and into the cabinet, and both can be shut.
            assert (world.contained() != NOTHING).any()
            shares = []
            for b in range(2):
                start = game.start[b]
                grid = chest.floor.grid(start[:2], start[2] % 90)
                shares.append(visible_from(chest, world.state.open[b], goal, world.state.pose[b], grid).mean())
            assert min(shares) == 0
