"""Trained agents on the server: they play the same game as elsewhere, and what they thought is told with the record."""

import time
from functools import partial

import numpy as np
import pytest
import torch
from web.test_server import ROOM, SIZE, asked, new_game, playing, settings

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.observation import observe
from scrubjay.players.by_name import HIDERS, SEEKERS
from scrubjay.sim.world import World
from scrubjay.training.agent_player import AgentPlayer, resized
from scrubjay.web.opponents import Opponents
from scrubjay.web.server import running
from scrubjay.web.thinking import ThinkingPlayer

EXPLORING = 4
NAMES = ["value", "expected steps", "most expected steps"]


@pytest.fixture(scope="module")
def agent():
    torch.manual_seed(0)
    return Agent(SMALL).eval()


def test_an_agent_that_says_what_it_thinks_plays_the_same_game(agent):
    limits = np.array([EXPLORING, 1, 3, 3, 3])
    games = []
    for kind in (AgentPlayer, ThinkingPlayer):
        with World([ROOM], size=SIZE) as world:
            game, player, taken = CacheGame(world, RandomEpisodes(3, ("Bread",)), limits), kind(agent, seed=5), []
            for _ in range(EXPLORING + 2):
                if kind is ThinkingPlayer and not taken:
                    # The value of the first step, worked out apart.
                    seen = observe(game, resized(game.look().rgb, agent.config.image_size))
                    with torch.no_grad():
                        first = agent.act(agent.initial_state(1), seen, torch.tensor([True])).decision.value[0].item()
                choosing = game.stage[0] == Stage.PS
                action, place = player(game, np.ones(1, bool))
                taken.append((action.tolist(), place.tolist()))
                if kind is ThinkingPlayer:
                    assert list(player.thought) == (NAMES if choosing else NAMES[:1])
                    assert player.thought["value"] == first or len(taken) > 1
                    assert not agent.heads._forward_hooks
                if choosing and kind is ThinkingPlayer:
                    choice = player.choice
                    assert player.thought["expected steps"] == choice.expected_steps[0, choice.chosen[0]].item()
                    assert player.thought["expected steps"] <= player.thought["most expected steps"]
                game.step(action, place)
            games.append(taken)
    assert games[0] == games[1]


def told(url: str, record: str) -> dict:
    """A record, when it is replayed."""
    until = time.monotonic() + 60
    while "progress" in (answer := asked(url, f"/api/records/{record}")[1]) and time.monotonic() < until:
        time.sleep(0.05)
    assert answer["ready"], answer
    return answer


def test_what_an_agent_thought_is_told_with_the_games_that_it_played(tmp_path, agent):
    thinking = partial(ThinkingPlayer, agent)
    opponents = Opponents({**HIDERS, "trained": thinking}, {**SEEKERS, "trained": thinking})
    with running(settings(tmp_path, opponents=opponents)) as (server, url):
        # A person hides, the agent seeks.
        with playing(url, new_game(url, "hide", "trained")) as one:
            for do in ("HideHere", "DropObject", "ReadyForSeeker"):
                state = one.act(do)
            one.say(type="act", id=99, do="Skip")
            while state["phase"] != "done":
                state = one.hear()
        sought = told(url, state["result"]["record"])
        value = sought["internals"]["value"]
        assert list(sought["internals"]) == ["value"] and len(value) == len(sought["steps"])
        seeking = [step["stage"] == "S" for step in sought["steps"]]
        assert [number is not None for number in value] == seeking and any(seeking)
        # Kept with the record, and told again once it is no longer in memory.
        server.worker.call(server.replays._told.clear).result()
        assert told(url, state["result"]["record"])["internals"] == sought["internals"]
        # Scripted players say nothing.
        with playing(url, new_game(url)) as one:
            record = one.act("GiveUp")["result"]["record"]
        assert told(url, record)["internals"] is None
