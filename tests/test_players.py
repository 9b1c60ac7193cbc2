"""Players: they play by the rules, and randomness is what it claims to be."""

import numpy as np
import pytest
from conftest import hut

from scrubjay.game.actions import ALLOWED, NOTHING, Stage
from scrubjay.game.cache import Cache
from scrubjay.game.deal import Dealer
from scrubjay.game.explorer import Explorer
from scrubjay.game.players import RandomPlayer, play
from scrubjay.world.mjcf import compile_room
from scrubjay.world.world import World


@pytest.fixture
def cache():
    with World([compile_room(hut())], copies=4, size=28) as world:
        yield Cache(world, Dealer(seed=1))


def test_whole_games_are_played_by_the_rules(cache):
    hider, seeker = RandomPlayer(1), RandomPlayer(2)
    cache.time[:, Stage.EM] = 180
    while cache.games.min() < 2:
        action, place = play(cache, hider, seeker)
        cache.step(action, place)
        cache.time[:, Stage.S] = np.maximum(cache.time[:, Stage.S], 470) * (cache.stage == Stage.S)
    assert cache.games.min() == 2


def test_a_player_acts_only_where_it_plays(cache):
    games = np.array([True, False, True, False])
    action, place = RandomPlayer()(cache, games)
    assert (action[~games] == NOTHING).all() and (place[~games] == 0).all()
    assert ALLOWED[Stage.EM, action[games]].all()


def test_each_allowed_action_is_taken_equally_often(cache):
    player = RandomPlayer(7)
    drawn = np.concatenate([player(cache, np.ones(4, bool))[0] for _ in range(5000)])
    counts = np.bincount(drawn, minlength=219)
    assert (counts[~ALLOWED[Stage.EM]] == 0).all()
    expected = len(drawn) / 57
    assert np.abs(counts[ALLOWED[Stage.EM]] - expected).max() < 5 * np.sqrt(expected)


def test_the_same_seed_plays_the_same(cache):
    everyone = np.ones(4, bool)
    one, other = (RandomPlayer(3)(cache, everyone) for _ in range(2))
    assert (one[0] == other[0]).all() and (one[1] == other[1]).all()


def coverage_of(player, seed: int) -> float:
    """The share of a kitchen's positions that a player has been to after exploring."""
    with World(["FloorPlan3"], size=28) as world:
        cache = Cache(world, Dealer(seed=seed))
        visited = {tuple(world.state.position[0].round(3))}
        while cache.stage[0] == Stage.EM:
            cache.step(*player(cache, np.ones(1, bool)))
            visited.add(tuple(world.state.position[0].round(3)))
        return len(visited) / len(world.reachable[0])


def test_the_explorer_gets_about_more_than_chance():
    explored = np.mean([coverage_of(Explorer(seed), seed) for seed in range(3)])
    drifted = np.mean([coverage_of(RandomPlayer(seed), seed) for seed in range(3)])
    assert explored > 2 * drifted and explored > 0.3


def test_the_explorer_plays_whole_stages_and_leaves_the_others_alone(cache):
    explorer, rest = Explorer(), RandomPlayer(5)
    cache.time[:, Stage.EM] = 150
    stages = set()
    for _ in range(140):
        walking = np.isin(cache.stage, (Stage.EM, Stage.S))
        action, _ = explorer(cache, np.ones(4, bool))
        assert ((action == NOTHING) == ~walking).all()
        other, place = rest(cache, ~walking)
        outcome = cache.step(np.where(walking, action, other), place)
        stages |= set(outcome.stage.tolist())
    assert stages >= {Stage.EM, Stage.PS, Stage.OH}
