"""The scripted hand and hider: they hit their targets, and close what can be closed."""

import numpy as np
import pytest
from helpers import hut

from scrubjay.game.actions import NAMES, NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.visibility import visible_from
from scrubjay.players.hiders import HeuristicHider
from scrubjay.players.manipulator import Manipulator, find_drop_targets, rest_height
from scrubjay.players.perception import perceive
from scrubjay.rooms.room import GOALS, Thing
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose, reach
from scrubjay.sim.world import World

LIMITS = np.array([60, 1, 15, 50, 500])


def play_manipulation(world: World, spec: EpisodeSpec) -> tuple[bool, list[str]]:
    game, player, names = CacheGame(world, lambda *_: spec), Manipulator(), []
    while True:
        action, place = player(game, np.ones(1, bool))
        result = game.step(action, place)
        names.append(NAMES[action[0]])
        if result.finished[0]:
            return bool(result.hit[0]), names


@pytest.fixture(scope="module")
def table_room():
    table = Thing("DiningTable_0", "DiningTable", (0.0, 1.2, 0.0), 0, (1.4, 0.9, 0.75))
    return compile_room(hut(table))


def test_drops_rest_on_level_surfaces_in_their_cells_and_in_reach(table_room):
    with World([table_room], size=224) as world:
        spec = EpisodeSpec("Cup", AgentPose(0.0, 0.25, 0.0, True), last=Stage.EM)
        game = CacheGame(world, lambda *_: spec)
        (percept,) = perceive(game, np.array([0]))
        targets = find_drop_targets(percept, GOALS.index("Cup"))
        top = targets.rest[:, 2] - rest_height(GOALS.index("Cup"))
        assert len(targets.row) >= 6
        assert (np.abs(top - 0.75) < 0.03).any() and ((np.abs(top - 0.75) < 0.03) | (np.abs(top) < 0.03)).all()
        assert (reach(percept.eye[:2], targets.rest) <= 1.4).all()
        assert len(set(zip(targets.row.tolist(), targets.column.tolist(), strict=True))) == len(targets.row)


def test_the_hand_hits_cells_that_can_be_hit(table_room):
    with World([table_room], size=224) as world:
        start = AgentPose(0.0, 0.25, 0.0, True)
        game = CacheGame(world, lambda *_: EpisodeSpec("Tomato", start, last=Stage.EM))
        (percept,) = perceive(game, np.array([0]))
        drops = find_drop_targets(percept, GOALS.index("Tomato"))
        targets = [(0, int(row), int(column)) for row, column in zip(drops.row, drops.column, strict=True)]
        specs = [EpisodeSpec("Tomato", start, Stage.OM, Stage.OM, target=target) for target in targets]
        assert np.mean([play_manipulation(world, spec)[0] for spec in specs]) > 0.7


def test_the_hand_opens_the_container_first(chest):
    with World([chest], size=224) as world:
        start = AgentPose(0.0, 0.5, 0.0, True)
        game = CacheGame(world, lambda *_: EpisodeSpec("Tomato", start, last=Stage.EM))
        (percept,) = perceive(game, np.array([0]))
        row, column = np.argwhere(percept.at_cells == 0)[0].tolist()
        _, names = play_manipulation(world, EpisodeSpec("Tomato", start, Stage.OM, Stage.OM, target=(1, row, column)))
        assert names[0].startswith("OpenAt") and names[-1] == "DropObject"


@pytest.mark.parametrize("first", [Stage.PS, Stage.OH, Stage.OM])
def test_the_hider_can_start_at_any_stage(chest, first):
    target = (0, 5, 3) if first == Stage.OM else None
    spec = EpisodeSpec("Cup", AgentPose(-1.0, -1.0, 0.0, True), first, Stage.OM if target else Stage.S, target=target)
    with World([chest], size=224) as world:
        game, hider, stages, placed = CacheGame(world, lambda *_: spec), HeuristicHider(), set(), False
        while game.episode[0] == 1 and game.stage[0] != Stage.S:
            result = game.step(*hider(game, np.ones(1, bool)))
            stages.add(int(result.stage[0]))
            placed |= bool(result.placed[0])
        assert placed and first in stages and Stage.OM in stages


def test_a_hider_that_moves_to_other_games_starts_afresh(chest):
    hider = HeuristicHider()
    with World([chest], size=56) as world:
        for goal in ("Cup", "Plunger"):
            game = CacheGame(world, lambda *_, goal=goal: EpisodeSpec(goal, AgentPose(-1.0, -1.0, 0.0, True)))
            hider(game, np.ones(1, bool))
            policy = hider.policy(game, 0)
            assert policy.goal == GOALS.index(goal) and len(policy.views) == 1


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
            # It fits into the drawer and into the cabinet, and both can be closed.
            assert (world.contained() != NOTHING).any()
            shares = []
            for b in range(2):
                start = game.start[b]
                grid = chest.floor.grid(start[:2], start[2] % 90)
                shares.append(visible_from(chest, world.state.open[b], goal, world.state.pose[b], grid).mean())
            assert min(shares) == 0
