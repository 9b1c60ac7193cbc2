"""Games in which other players act between a learner's turns: paused games do not change."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay.envs.stage_games import StageGames
from scrubjay.envs.tasks import Hide
from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.stages import LIMITS
from scrubjay.players.base import RandomPlayer
from scrubjay.sim.world import World


@pytest.fixture(scope="module")
def world(chest):
    with World([chest], copies=3, size=28) as world:
        yield world


def state_of(games: StageGames, b: int) -> dict[str, np.ndarray]:
    """A game's whole state."""
    own = ("stage", "time", "last_action", "last_success", "landed", "target", "placed", "start", "goal", "episode")
    tracker = ("visited", "extrapolated", "size", "opened")
    parts = {name: getattr(games, name) for name in own} | {
        name: getattr(games.novelty_tracker, name) for name in tracker
    }
    return {name: values[b].copy() for name, values in {**parts, **vars(games.world.state)}.items()}


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**31), steps=st.integers(1, 5))
def test_paused_games_do_not_change_while_others_are_played(world, seed, steps):
    games = StageGames(world, Hide(manipulator=RandomPlayer), np.random.default_rng(seed), False, False)
    games.time[:, Stage.OH] = LIMITS[Stage.OH] - 2
    games.step(np.array([action_index("PlaceAt|0,4,4"), action_index("Crouch"), action_index("OpenAt|4,4")]))
    games.landed[1] = action_index("PlaceAt|0,1,1")
    assert games.stage.tolist() == [Stage.OM, Stage.OH, Stage.OH], "the others have one step left"
    before = [state_of(games, b) for b in range(3)]
    for step in range(1, steps + 1):
        result = games._others_step(np.array([True, False, False]))
        assert games.episode[0] > 1 or games.stage[0] == Stage.OH or games.time[0, Stage.OM] == step
        assert not result.ended[1:].any() and not result.finished[1:].any()
        assert result.action[1:].tolist() == [NOTHING, NOTHING]
        if games.stage[0] != Stage.OM:
            break
    for b in (1, 2):
        after = state_of(games, b)
        assert all(np.array_equal(values, after[name]) for name, values in before[b].items())


def test_actions_are_checked_before_anything_changes(world):
    games = StageGames(world, Hide(), np.random.default_rng(0), False, False)
    before = [state_of(games, b) for b in range(3)]
    for wrong in ([0, 1], [0, 1, 200], [0, -1, 0], [0.0, 1.0, 2.0]):
        with pytest.raises(ValueError, match="action"):
            games.act(np.array(wrong))
    after = [state_of(games, b) for b in range(3)]
    assert all(np.array_equal(after[b][name], before[b][name]) for b in range(3) for name in before[b])
