"""All players without networks, by name."""

from __future__ import annotations

from collections.abc import Callable

from scrubjay.players.base import Player, RandomPlayer
from scrubjay.players.hiders import HeuristicHider
from scrubjay.players.seekers import breadth_first_seeker, frontier_seeker, oracle_seeker

HIDERS: dict[str, Callable[[int], Player]] = {
    "random": RandomPlayer,
    "possible": lambda seed: RandomPlayer(seed, possible=True),
    "heuristic": HeuristicHider,
}
"""From seeds: who takes the actions of all stages but seeking."""
SEEKERS: dict[str, Callable[[int], Player]] = {
    "random": RandomPlayer,
    "possible": lambda seed: RandomPlayer(seed, possible=True),
    "frontier": frontier_seeker,
    "bfs": breadth_first_seeker,
    "oracle": oracle_seeker,
}
"""From seeds: who seeks. The last two know more than an agent can."""


def make_hider(name: str, seed: int = 0) -> Player:
    """A hider by its name; ValueError names the choices."""
    return _chosen(HIDERS, "hider", name)(seed)


def make_seeker(name: str, seed: int = 0) -> Player:
    """A seeker by its name; ValueError names the choices."""
    return _chosen(SEEKERS, "seeker", name)(seed)


def _chosen(players: dict[str, Callable[[int], Player]], role: str, name: str) -> Callable[[int], Player]:
    if name not in players:
        raise ValueError(f"unknown {role} {name!r}; there are {', '.join(players)}")
    return players[name]
