"""A scripted explorer: walks to the nearest place it has not been to, by what its own steps have told it.

It knows where it is relative to its start and whether its last action succeeded, and nothing else: cells count as free
until a step into them fails. As a seeker it also opens what is in front of it and claims now and then, since it cannot
see; it is a floor for learned agents, not a good player.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from scrubjay.game.actions import NOTHING, Stage, number_of
from scrubjay.game.cache import Cache

Cell = tuple[int, int]
STEPS: tuple[Cell, ...] = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""One lattice step ahead, to the right, back and to the left, as seen at the start."""
MOVES = {0: number_of("MoveAhead"), 1: number_of("MoveRight"), 3: number_of("MoveLeft")}
TURN = number_of("RotateRight")
OPENINGS = tuple(number_of(f"OpenAt|{row},{column}") for row in (4, 3, 5) for column in (4, 3, 5))
"""What it tries to open where it is blocked: the middle of the image and around it."""
CLAIM = number_of("ClaimVisible")


@dataclass
class _Memory:
    """What one game has told the explorer."""

    visited: set[Cell] = field(default_factory=set)
    blocked: set[tuple[Cell, Cell]] = field(default_factory=set)
    tried: Cell | None = None
    """Where the last action should have led."""
    plan: list[int] = field(default_factory=list)
    """Actions to be taken before anything else."""


class Explorer:
    """Plays exploring and seeking; in other stages it leaves the choice to another player."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self._memories: dict[tuple[int, int, int], _Memory] = {}

    def __call__(self, cache: Cache, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        walking = games & np.isin(cache.stage, (Stage.EM, Stage.S))
        action = np.full(len(cache), NOTHING)
        places = cache.relative_place()
        for b in np.flatnonzero(walking).tolist():
            key = (b, int(cache.games[b]), int(cache.stage[b]))
            if key not in self._memories:
                # What was learned in a game's earlier stages or in earlier games is of no use any more.
                self._memories = {known: memory for known, memory in self._memories.items() if known[0] != b}
                self._memories[key] = _Memory()
            x, z, quarter, _ = places[b].tolist()
            success = bool(cache.last_success[b])
            action[b] = self._next(self._memories[key], (x, z), quarter, success, cache.stage[b] == Stage.S)
        return action, np.zeros((len(cache), 4), int)

    def _next(self, memory: _Memory, here: Cell, quarter: int, success: bool, seeking: bool) -> int:
        if memory.tried is not None and not success:
            memory.blocked.add((here, memory.tried))
            memory.plan = list(self.rng.permutation(OPENINGS)[:3])
        if here not in memory.visited and seeking:
            memory.plan.append(CLAIM)
        memory.visited.add(here)
        memory.tried = None
        if memory.plan:
            return int(memory.plan.pop())
        toward = self._towards_new(memory, here)
        if toward is None:
            memory.blocked.clear()
            return TURN
        side = (toward - quarter) % 4
        if side not in MOVES:
            return TURN
        dx, dz = STEPS[toward]
        memory.tried = (here[0] + dx, here[1] + dz)
        return MOVES[side]

    def _towards_new(self, memory: _Memory, here: Cell) -> int | None:
        """The first direction of a shortest way, through visited cells, to one that is not; None if there is none."""
        queue: deque[tuple[Cell, int | None]] = deque([(here, None)])
        seen = {here}
        while queue:
            cell, first = queue.popleft()
            for direction in self.rng.permutation(4).tolist():
                dx, dz = STEPS[direction]
                there = (cell[0] + dx, cell[1] + dz)
                if there in seen or (cell, there) in memory.blocked:
                    continue
                begun = direction if first is None else first
                if there not in memory.visited:
                    return begun
                seen.add(there)
                queue.append((there, begun))
        return None
