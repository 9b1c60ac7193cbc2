"""Whole games between all players in many rooms: they end in time, counters are right, and every record replays."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay.evaluation.scores import score
from scrubjay.game.actions import ALLOWED, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.record import Recorder, replay
from scrubjay.game.stages import LIMITS
from scrubjay.players.base import HiderAndSeeker
from scrubjay.players.by_name import HIDERS, SEEKERS, make_hider, make_seeker
from scrubjay.rooms.generate import SCENES
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.world import World

SHORT = np.array([25, 1, 5, 20, 40])
"""Stage limits for games of seconds; the slow test plays with the paper's."""
games = given(
    hider=st.sampled_from(sorted(HIDERS)),
    seeker=st.sampled_from(sorted(SEEKERS)),
    scene=st.sampled_from(SCENES[:120]),
    goal=st.sampled_from(GOALS),
    turned=st.booleans(),
    seed=st.integers(0, 10**6),
)


def check(
    hider: str, seeker: str, scene: str, goal: str, turned: bool, seed: int, limits: np.ndarray, size: int
) -> None:
    room = build_room(scene)
    with World([room], size=size) as world:
        game = CacheGame(world, RandomEpisodes(seed, (goal,), turned), limits)
        players, recorder = HiderAndSeeker(make_hider(hider, seed), make_seeker(seeker, seed)), Recorder(game)
        steps = np.zeros(len(Stage), int)
        most = int(limits[[0, 1, 4]].sum() + limits[2] * (1 + limits[3]))
        for _ in range(most):
            stage, time = int(game.stage[0]), game.time[0].copy()
            action, place = players(game, np.ones(1, bool))
            assert stage == Stage.PS or ALLOWED[stage, action[0]]
            result = game.step(action, place)
            steps[stage] += 1
            if not result.finished[0]:
                again = stage == Stage.OH and game.stage[0] == Stage.OM
                assert game.time[0, stage] == time[stage] + 1 and (again or (game.time[0] >= time).all())
                assert (game.time[0] <= limits).all()
            if done := recorder.note(result, place):
                break
        else:
            raise AssertionError("the game does not end")
        assert steps[Stage.EM] == limits[Stage.EM] and steps[Stage.PS] == 1 and steps[Stage.OH] <= limits[Stage.OH]
        assert result.found[0] or steps[Stage.S] == limits[Stage.S]
    with World([room], size=size) as world:
        assert len(list(replay(done[0], world))) == steps.sum()
    measures = score(done[0], room, visibility=False)
    assert 0 < measures.coverage <= 1 and measures.found == result.found[0]


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@games
def test_short_games_end_in_time_and_replay(hider, seeker, scene, goal, turned, seed):
    check(hider, seeker, scene, goal, turned, seed, SHORT, 112)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@games
def test_whole_games_end_in_time_and_replay(hider, seeker, scene, goal, turned, seed):
    check(hider, seeker, scene, goal, turned, seed, LIMITS, 224)
