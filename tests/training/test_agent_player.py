"""An agent as a player, of all stages or of some."""

import numpy as np
import pytest
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.envs.tasks import ByStage
from scrubjay.game.actions import PLACE_ACTIONS, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.sim.world import World
from scrubjay.training.agent_player import AgentPlayer


@pytest.mark.parametrize("games", [1, 2])
def test_who_plays_manipulations_alone_remembers_nothing_of_the_one_before(games):
    """Three manipulations within one hiding, which somebody else plays."""
    torch.manual_seed(0)
    agent = Agent(SMALL)
    with World(["FloorPlan401"], games, size=112) as world:
        episodes = RandomEpisodes(1, ("Plunger",), False, Stage.OH, Stage.OH)
        game = CacheGame(world, episodes, limits=np.array([1, 1, 4, 3, 1]))
        player, begun = AgentPlayer(agent, 0), 0
        by_stage = ByStage({Stage.OM: player})
        while begun < 3:
            manipulates = game.stage == Stage.OM
            first = manipulates.all() and not game.time[:, Stage.OM].any()
            action, place = by_stage(game, manipulates)
            if first:
                fresh = AgentPlayer(agent, 0)
                fresh(game, manipulates)
                torch.testing.assert_close(player._state.recurrent.hidden, fresh._state.recurrent.hidden)
                begun += 1
            game.step(np.where(manipulates, action, PLACE_ACTIONS[40]), place)
