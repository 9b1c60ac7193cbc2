"""Trained agents as opponents: they play as elsewhere, and their internals are stored with the record."""

from functools import partial

import numpy as np
import pytest
import torch
from web_helpers import ROOM, SIZE, make_settings, new_game, playing, wait_for_replay

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.observation import observe
from scrubjay.players.by_name import HIDERS, SEEKERS
from scrubjay.sim.world import World
from scrubjay.training.agent_player import AgentPlayer, resize
from scrubjay.web.opponents import Opponents
from scrubjay.web.server import running
from scrubjay.web.thinking import ThinkingPlayer

EXPLORING = 4
NAMES = ["value", "attended"]
IN_PS = ["value", "expected steps", "most expected steps", "attended"]


@pytest.fixture(scope="module")
def agent():
    torch.manual_seed(0)
    return Agent(SMALL).eval()


def check_attended(attended: list[list[float]], been: set[tuple[float, float]]) -> None:
    """Positions that the agent was at, each once, most attention first; the rest of it is on the null entry."""
    shares = [share for _, _, share in attended]
    assert shares == sorted(shares, reverse=True) and all(share >= 0 for share in shares) and sum(shares) <= 1.01
    positions = [(x, y) for x, y, _ in attended]
    assert len(set(positions)) == len(positions) <= 12
    for x, y in positions:
        assert min(np.hypot(x - a, y - b) for a, b in been) < 0.02
    assert bool(attended) == bool(been)


def test_an_agent_that_reports_its_internals_plays_the_same_game(agent):
    limits = np.array([EXPLORING, 1, 3, 3, 3])
    games = []
    for kind in (AgentPlayer, ThinkingPlayer):
        with World([ROOM], size=SIZE) as world:
            game, player, taken = CacheGame(world, RandomEpisodes(3, ("Bread",)), limits), kind(agent, seed=5), []
            been: set[tuple[float, float]] = set()
            for _ in range(EXPLORING + 2):
                if kind is ThinkingPlayer and not taken:
                    # The value of the first step, computed separately.
                    observation = observe(game, resize(game.look().rgb, agent.config.image_size))
                    with torch.no_grad():
                        first = (
                            agent.act(agent.initial_state(1), observation, torch.tensor([True]))
                            .decision.value[0]
                            .item()
                        )
                choosing = game.stage[0] == Stage.PS
                action, place = player(game, np.ones(1, bool))
                taken.append((action.tolist(), place.tolist()))
                if kind is ThinkingPlayer:
                    assert list(player.internals) == (IN_PS if choosing else NAMES)
                    check_attended(player.internals["attended"], been)
                    been.add(tuple(game.world.state.position[0].round(2).tolist()))
                    assert player.internals["value"] == first or len(taken) > 1
                    assert not agent.heads._forward_hooks
                if choosing and kind is ThinkingPlayer:
                    choice = player.choice
                    assert player.internals["expected steps"] == choice.expected_steps[0, choice.chosen[0]].item()
                    assert player.internals["expected steps"] <= player.internals["most expected steps"]
                game.step(action, place)
            games.append(taken)
    assert games[0] == games[1]


def test_an_agents_internals_are_shown_with_the_games_that_it_played(tmp_path, agent):
    thinking = partial(ThinkingPlayer, agent)
    opponents = Opponents({**HIDERS, "trained": thinking}, {**SEEKERS, "trained": thinking})
    with running(make_settings(tmp_path, opponents=opponents)) as (server, url):
        # A person hides, the agent seeks.
        with playing(url, new_game(url, "hide", "trained")) as one:
            for do in ("HideHere", "DropObject", "ReadyForSeeker"):
                one.act(do)
            record = one.skip_to_end()["result"]["record"]
        answer = wait_for_replay(url, record)
        value = answer["internals"]["value"]
        assert list(answer["internals"]) == NAMES and len(value) == len(answer["steps"])
        seeking = [step["stage"] == "S" for step in answer["steps"]]
        assert [number is not None for number in value] == seeking and any(seeking)
        attended = answer["internals"]["attended"]
        first = seeking.index(True)
        assert attended[:first] == [None] * first and attended[first] == [], "a seeker starts with an empty map"
        been = {tuple(step["place"][:2]) for step in answer["steps"][first - 1 :]}
        for places in attended[first + 1 :]:
            check_attended(places, been)
        # Stored with the record, and sent again when it is no longer cached.
        server.worker.call(server.replays._cache.clear).result()
        assert wait_for_replay(url, record)["internals"] == answer["internals"]
        # Scripted players report nothing.
        with playing(url, new_game(url)) as one:
            record = one.act("GiveUp")["result"]["record"]
        assert wait_for_replay(url, record)["internals"] is None
