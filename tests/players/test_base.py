"""Players: they play by the rules, and randomness is what it claims to be."""

import numpy as np
import pytest
from helpers import hut

from scrubjay.game import actions
from scrubjay.game.actions import ALLOWED, NOTHING, Stage
from scrubjay.game.cache import Cache
from scrubjay.game.episode import Deal, Dealer
from scrubjay.game.record import Recorder, replay
from scrubjay.players.base import RandomPlayer, play, possible_actions
from scrubjay.players.by_name import HIDERS, SEEKERS, make_hider, make_seeker
from scrubjay.players.explorer import Explorer
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import Place
from scrubjay.sim.world import World


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


def test_the_explorer_explores_and_leaves_the_other_stages_alone(cache):
    explorer, rest = Explorer(), RandomPlayer(5)
    cache.time[:, Stage.EM] = 150
    stages = set()
    for _ in range(140):
        exploring = cache.stage == Stage.EM
        action, _ = explorer(cache, np.ones(4, bool))
        assert ((action == NOTHING) == ~exploring).all()
        other, place = rest(cache, ~exploring)
        outcome = cache.step(np.where(exploring, action, other), place)
        stages |= set(outcome.stage.tolist())
    assert stages >= {Stage.EM, Stage.PS, Stage.OH}


def test_what_is_possible_is_what_succeeds(chest):
    """Every action of exploring, taken at once in copies of one room, in front of what opens and away from it."""
    numbers = np.flatnonzero(ALLOWED[Stage.EM])
    opening = actions.OPEN_CELL[numbers] != NOTHING
    with World([chest], copies=len(numbers), size=56) as world:
        for x, z, rotation, standing, is_open in (
            (0.0, 0.75, 0.0, True, ()), (0.0, 0.75, 0.0, False, (0,)), (-1.7, -1.7, 180.0, True, (1,)),
        ):  # fmt: skip
            deal = Deal("Cup", Place(x, z, rotation, standing), last=Stage.EM, open=is_open)
            cache = Cache(world, lambda *_, deal=deal: deal)
            before = world.state.copy()
            possible = possible_actions(cache, np.ones(len(cache), bool))
            assert (possible == possible[0]).all() and not possible[0, ~ALLOWED[Stage.EM]].any()
            assert all(
                (getattr(world.state, name) == getattr(before, name)).all() for name in ("position", "open", "standing")
            )
            success = cache.step(numbers).success
            assert (possible[0, numbers][~opening] == success[~opening]).all()
            assert not (success & ~possible[0, numbers]).any()
            assert not opening[possible[0, numbers]].any() or success[opening].any()


def test_possible_players_choose_places_that_exist(chest):
    with World([chest], size=28) as world:
        cache = Cache(world, Dealer(seed=4, turned=True), np.array([1, 1, 15, 50, 500]))
        player, chosen = RandomPlayer(1, possible=True), 0
        while chosen < 20:
            cache.stage[:] = Stage.PS
            action, place = player(cache, np.ones(1, bool))
            assert action[0] == NOTHING and cache.step(action, place).success[0]
            chosen += 1


@pytest.mark.parametrize("hider", HIDERS)
@pytest.mark.parametrize("seeker", SEEKERS)
def test_all_scripts_play_whole_games_that_replay(chest, hider, seeker):
    limits = np.array([25, 1, 6, 20, 25])
    with World([chest], copies=2, size=56) as world:
        cache = Cache(world, Dealer(seed=3, turned=True), limits)
        recorder, players, records = Recorder(cache), (make_hider(hider, 1), make_seeker(seeker, 2)), []
        while len(records) < 2:
            action, place = play(cache, *players)
            records += recorder.note(cache.step(action, place), place)
    with World([chest], size=56) as world:
        *_, (_, last) = replay(records[0], world)
        assert last.finished[0]


def test_unknown_players_are_told_the_choices():
    with pytest.raises(ValueError, match="unknown hider 'oracle'; there are random, possible, heuristic"):
        make_hider("oracle")
    with pytest.raises(ValueError, match="frontier, bfs, oracle"):
        make_seeker("hider")
