"""Players: they play by the rules, and randomness is what it claims to be."""

import numpy as np
import pytest
from helpers import hut

from scrubjay.game import actions
from scrubjay.game.actions import ALLOWED, NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.game.record import Recorder, replay
from scrubjay.players.base import HiderAndSeeker, RandomPlayer, possible_actions
from scrubjay.players.by_name import HIDERS, SEEKERS, make_hider, make_seeker
from scrubjay.players.explorer import Explorer
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World


@pytest.fixture
def game():
    with World([compile_room(hut())], copies=4, size=28) as world:
        yield CacheGame(world, RandomEpisodes(seed=1))


def test_whole_games_are_played_by_the_rules(game):
    players = HiderAndSeeker(RandomPlayer(1), RandomPlayer(2))
    game.time[:, Stage.EM] = 180
    while game.episode.min() < 2:
        game.step(*players(game, np.ones(len(game), bool)))
        game.time[:, Stage.S] = np.maximum(game.time[:, Stage.S], 470) * (game.stage == Stage.S)
    assert game.episode.min() == 2


def test_a_player_acts_only_where_it_plays(game):
    games = np.array([True, False, True, False])
    action, place = RandomPlayer()(game, games)
    assert (action[~games] == NOTHING).all() and (place[~games] == 0).all()
    assert ALLOWED[Stage.EM, action[games]].all()


def test_each_allowed_action_is_taken_equally_often(game):
    player = RandomPlayer(7)
    drawn = np.concatenate([player(game, np.ones(4, bool))[0] for _ in range(5000)])
    counts = np.bincount(drawn, minlength=219)
    assert (counts[~ALLOWED[Stage.EM]] == 0).all()
    expected = len(drawn) / 57
    assert np.abs(counts[ALLOWED[Stage.EM]] - expected).max() < 5 * np.sqrt(expected)


def test_the_same_seed_plays_the_same(game):
    everyone = np.ones(4, bool)
    one, other = (RandomPlayer(3)(game, everyone) for _ in range(2))
    assert (one[0] == other[0]).all() and (one[1] == other[1]).all()


def coverage_of(player, seed: int) -> float:
    """The fraction of a kitchen's positions that a player visited in E&M."""
    with World(["FloorPlan3"], size=28) as world:
        game = CacheGame(world, RandomEpisodes(seed=seed))
        visited = {tuple(world.state.position[0].round(3))}
        while game.stage[0] == Stage.EM:
            game.step(*player(game, np.ones(1, bool)))
            visited.add(tuple(world.state.position[0].round(3)))
        return len(visited) / len(world.reachable[0])


@pytest.mark.slow
def test_the_explorer_covers_more_than_a_random_walk():
    explored = np.mean([coverage_of(Explorer(seed), seed) for seed in range(3)])
    random_walk = np.mean([coverage_of(RandomPlayer(seed), seed) for seed in range(3)])
    assert explored > 2 * random_walk and explored > 0.3


def test_the_explorer_explores_and_leaves_the_other_stages_alone(game):
    explorer, rest = Explorer(), RandomPlayer(5)
    game.time[:, Stage.EM] = 150
    stages = set()
    for _ in range(140):
        exploring = game.stage == Stage.EM
        action, _ = explorer(game, np.ones(4, bool))
        assert ((action == NOTHING) == ~exploring).all()
        other, place = rest(game, ~exploring)
        result = game.step(np.where(exploring, action, other), place)
        stages |= set(result.stage.tolist())
    assert stages >= {Stage.EM, Stage.PS, Stage.OH}


def test_possible_actions_are_those_that_succeed(chest):
    """Every action of E&M, taken at once in copies of one room, in front of openables and away from them."""
    numbers = np.flatnonzero(ALLOWED[Stage.EM])
    opening = actions.OPEN_CELL[numbers] != NOTHING
    with World([chest], copies=len(numbers), size=56) as world:
        for x, y, rotation, standing, is_open in (
            (0.0, 0.75, 0.0, True, ()), (0.0, 0.75, 0.0, False, (0,)), (-1.7, -1.7, 180.0, True, (1,)),
        ):  # fmt: skip
            spec = EpisodeSpec("Cup", AgentPose(x, y, rotation, standing), last=Stage.EM, open=is_open)
            game = CacheGame(world, lambda *_, spec=spec: spec)
            before = world.state.copy()
            possible = possible_actions(game, np.ones(len(game), bool))
            assert (possible == possible[0]).all() and not possible[0, ~ALLOWED[Stage.EM]].any()
            assert all(
                (getattr(world.state, name) == getattr(before, name)).all() for name in ("position", "open", "standing")
            )
            success = game.step(numbers).success
            assert (possible[0, numbers][~opening] == success[~opening]).all()
            assert not (success & ~possible[0, numbers]).any()
            assert not opening[possible[0, numbers]].any() or success[opening].any()


def test_possible_players_choose_reachable_poses(chest):
    with World([chest], size=28) as world:
        game = CacheGame(world, RandomEpisodes(seed=4, turned=True), np.array([1, 1, 15, 50, 500]))
        player, chosen = RandomPlayer(1, possible=True), 0
        while chosen < 20:
            game.stage[:] = Stage.PS
            action, place = player(game, np.ones(1, bool))
            assert action[0] == NOTHING and game.step(action, place).success[0]
            chosen += 1


@pytest.mark.parametrize("hider", HIDERS)
@pytest.mark.parametrize("seeker", SEEKERS)
def test_all_scripted_players_play_whole_games_that_replay(chest, hider, seeker):
    limits = np.array([25, 1, 6, 20, 25])
    with World([chest], copies=2, size=56) as world:
        game = CacheGame(world, RandomEpisodes(seed=3, turned=True), limits)
        players = HiderAndSeeker(make_hider(hider, 1), make_seeker(seeker, 2))
        recorder, records = Recorder(game), []
        while len(records) < 2:
            action, place = players(game, np.ones(len(game), bool))
            records += recorder.note(game.step(action, place), place)
    with World([chest], size=56) as world:
        *_, (_, last) = replay(records[0], world)
        assert last.finished[0]


def test_unknown_names_list_the_choices():
    with pytest.raises(ValueError, match="unknown hider 'oracle'; choose from random, possible, heuristic"):
        make_hider("oracle")
    with pytest.raises(ValueError, match="frontier, bfs, oracle"):
        make_seeker("hider")
