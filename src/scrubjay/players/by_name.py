"""Scripted players by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from scrubjay.players.base import Player, RandomPlayer
from scrubjay.players.hiders import HeuristicHider
from scrubjay.players.seekers import breadth_first_seeker, frontier_seeker, oracle_seeker

HIDERS: dict[str, Callable[[int], Player]] = {
    "random": RandomPlayer,
    "possible": partial(RandomPlayer, possible=True),
    "heuristic": HeuristicHider,
}
"""Factories that take a seed. Hiders play all stages but S."""
SEEKERS: dict[str, Callable[[int], Player]] = {
    "random": RandomPlayer,
    "possible": partial(RandomPlayer, possible=True),
    "frontier": frontier_seeker,
    "bfs": breadth_first_seeker,
    "oracle": oracle_seeker,
}
"""Factories that take a seed. The last two have privileged information."""


def make_hider(name: str, seed: int = 0) -> Player:
    """A hider by name; ValueError lists the choices."""
    return _lookup(HIDERS, "hider", name)(seed)


def make_seeker(name: str, seed: int = 0) -> Player:
    """A seeker by name; ValueError lists the choices."""
    return _lookup(SEEKERS, "seeker", name)(seed)


def _lookup(players: dict[str, Callable[[int], Player]], role: str, name: str) -> Callable[[int], Player]:
    if name not in players:
        raise ValueError(f"unknown {role} {name!r}; choose from {', '.join(players)}")
    return players[name]
