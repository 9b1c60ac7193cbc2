"""The teacher's actions along a rollout, computed when it is complete.

The teacher's action depends only on the seeker's place and on what its hider did. So nothing is computed while games
run: at the end of a rollout all games whose search began in it are taught together, and every step's action is looked
up. A call of the networks takes as long for one game as for dozens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent.agent import explored_maps
from scrubjay.agent.fuse import varying_shapes
from scrubjay.agent.perspective import PerspectiveSimulation
from scrubjay.game.actions import NOTHING
from scrubjay.game.cache import StepResult
from scrubjay.training.hiding_buffer import HidingBuffer
from scrubjay.training.path_teacher import PathTeacher, teach

GAMES_AT_ONCE = 64
"""Games taught at once: it limits the memory of the imagined maps."""


class Lessons:
    """What the seekers in the games of several worlds are taught, step by step."""

    def __init__(self, perspective: PerspectiveSimulation, buffers: Sequence[HidingBuffer]) -> None:
        """Each world has a hiding buffer."""
        self.perspective = perspective
        self._worlds = [_World(buffer) for buffer in buffers]

    def record_step(self, number: int, place: torch.Tensor) -> None:
        """Adds a step of world `number`, with the players at places (B, 4)."""
        self._worlds[number].record_step(place)

    def update(self, number: int, result: StepResult) -> None:
        """Ends the lessons of finished games and begins those of the buffer's new seekers."""
        self._worlds[number].update(result)

    def keep(self, number: int, games: np.ndarray) -> None:
        """Call before games (n,), given by index, are recorded anew: computes what needs their last records."""
        if self._worlds[number].pending[games].any():
            self._teach()

    def take(self) -> list[torch.Tensor]:
        """The teacher's actions (T, B) int64 at all steps since the last call, by world; -1 without a teacher."""
        self._teach()
        return [world.take() for world in self._worlds]

    def _teach(self) -> None:
        """Computes the actions of all steps recorded so far."""
        before = [world.look_up() for world in self._worlds]
        self._start_teachers([np.flatnonzero(world.pending) for world in self._worlds])
        for world, actions in zip(self._worlds, before, strict=True):
            world.fill(actions)

    def _start_teachers(self, begun: list[np.ndarray]) -> None:
        """Computes the tables of the games (n,), given by index, of each world."""
        counts = [len(games) for games in begun]
        if not sum(counts):
            return
        parts = [world.buffer.hidden(games) for world, games in zip(self._worlds, begun, strict=True)]
        maps, place, outcome = (tree.cat(part) for part in zip(*parts, strict=True))
        number = np.repeat(np.arange(len(counts)), counts)
        game = np.concatenate(begun)
        for first in range(0, len(game), GAMES_AT_ONCE):
            some = slice(first, first + GAMES_AT_ONCE)
            explored, origin = explored_maps(tree.index(maps, some).entries)
            with varying_shapes():
                actions = teach(self.perspective, explored, place[some], outcome[some])
            for world in np.unique(number[some]).tolist():
                rows = np.flatnonzero(number[some] == world)
                self._worlds[world].teacher.set(
                    torch.from_numpy(game[some][rows]).to(actions.device), actions[rows], origin[rows]
                )


class _World:
    """One world's lessons: who is taught at which step, and by which table."""

    def __init__(self, buffer: HidingBuffer) -> None:
        games, device = len(buffer.game), buffer.device
        self.buffer, self.teacher = buffer, PathTeacher(games, device)
        self.taught = np.zeros(games, bool)
        """(B,): games whose seeker has a teacher."""
        self.pending = np.zeros(games, bool)
        """(B,): games whose search began after the last tables were computed, finished or not."""
        self._places: list[torch.Tensor] = []
        self._by_last: list[np.ndarray] = []
        self._by_next: list[np.ndarray] = []
        """(B,) bool each: taught at that step, by the tables of the last computation and of the next."""
        self._filled = [torch.zeros(0, games, dtype=torch.int64, device=device)]

    def record_step(self, place: torch.Tensor) -> None:
        self._places.append(place)
        self._by_last.append(self.taught & ~self.pending)
        self._by_next.append(self.taught & self.pending)

    def update(self, result: StepResult) -> None:
        begun = self.buffer.seeking_begun
        self.taught &= ~result.finished
        self.taught[begun] = self.pending[begun] = True

    def look_up(self) -> torch.Tensor | None:
        """The actions (T, B) of steps not yet filled, by the tables as they are."""
        if not self._places:
            return None
        return self._masked(self.teacher.action(torch.stack(self._places)), self._by_last)

    def fill(self, by_last: torch.Tensor | None) -> None:
        """Completes the actions of `look_up` with those of the tables computed since."""
        if by_last is not None:
            by_next = self._masked(self.teacher.action(torch.stack(self._places)), self._by_next)
            self._filled.append(torch.maximum(by_last, by_next))
        self._places, self._by_last, self._by_next = [], [], []
        self.pending[:] = False

    def take(self) -> torch.Tensor:
        filled, self._filled = torch.cat(self._filled), self._filled[:1]
        return filled

    @staticmethod
    def _masked(actions: torch.Tensor, mask: list[np.ndarray]) -> torch.Tensor:
        """Actions (T, B), -1 outside the mask."""
        return torch.where(torch.from_numpy(np.stack(mask)).to(actions.device), actions, NOTHING)
