"""The player protocol, and random players.

A player maps a `CacheGame` and a mask of games to actions, and to poses for games in PS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from scrubjay.game.actions import NAMES, NOTHING, PLACE_ACTIONS, Stage, action_index
from scrubjay.game.cache import CLAIM_PIXELS, CacheGame
from scrubjay.players.perception import perceive
from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.floor import GRID
from scrubjay.sim.cells import CELLS
from scrubjay.sim.physics import SWEEP_STEP
from scrubjay.sim.pose import REACH, cameras, hand_directions, in_view, reach

MAX_RANDOM_STEPS = 8
"""Lattice steps to each side within which a random hider chooses its pose in PS."""


class Player(Protocol):
    """Chooses actions for a subset of B games."""

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Actions (B,) and poses (B, 4) for the games (B,) bool to act in; -1 and zeros elsewhere.

        A pose matters in PS only: lattice steps right and ahead of the agent, quarter turns from the start's heading,
        standing.
        """
        ...


class RandomPlayer:
    """Uniform over the actions of the stage, or, if `possible`, over those that can succeed."""

    def __init__(self, seed: int = 0, possible: bool = False) -> None:
        self.rng, self.possible = np.random.default_rng(seed), possible

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        allowed = (possible_actions(game, games) if self.possible else game.allowed) & games[:, None]
        # The argmax of independent uniform draws is uniform over the allowed actions.
        draws = np.where(allowed, self.rng.random(allowed.shape), -1)
        action = np.where(allowed.any(1), draws.argmax(1), NOTHING)
        place = self._random_poses(len(game))
        if self.possible:
            for b in np.flatnonzero(games & (game.stage == Stage.PS)).tolist():
                place[b, :2] = self._reachable_steps(game, b)
        return action, place * games[:, None]

    def _random_poses(self, count: int) -> np.ndarray:
        """(count, 4): right, ahead, quarter turns, standing."""
        steps = self.rng.integers(-MAX_RANDOM_STEPS, MAX_RANDOM_STEPS + 1, (count, 2))
        return np.concatenate([steps, self.rng.integers(4, size=(count, 1)), self.rng.integers(2, size=(count, 1))], 1)

    def _reachable_steps(self, game: CacheGame, b: int) -> np.ndarray:
        """The steps (2,) right and ahead from the hider to a random reachable position."""
        start = game.start[b]
        grid = game.world.rooms[game.world.room_of[b]].floor.grid(start[:2], start[2] % 90)
        offset = (grid.positions[self.rng.integers(len(grid))] - game.world.state.position[b]) / GRID
        return np.round([offset @ right_vector(start[2]), offset @ facing_vector(start[2])]).astype(int)


def possible_actions(game: CacheGame, games: np.ndarray) -> np.ndarray:
    """Which actions (B, 219) can succeed in games (B,) bool; all False elsewhere.

    Steps and CloseObjects are tried on a copy of the state, which agents cannot do. OpenAt needs something closed in
    reach, and hand movements must stay in reach and in view; collisions of either are not predicted.
    """
    world, state = game.world, game.world.state
    possible = game.allowed & games[:, None]

    def restrict(names: Sequence[str], able: np.ndarray) -> None:
        possible[:, [action_index(name) for name in names]] &= able.reshape(len(game), -1)

    def try_out(act: Callable[[np.ndarray], np.ndarray], number: int) -> np.ndarray:
        world.state = state.copy()
        success = act(np.where(games & ~state.held, number, NOTHING))
        world.state = state
        return success

    for number, name in enumerate(("MoveAhead", "MoveLeft", "MoveRight")):
        restrict([name], try_out(world.move, number))
    restrict(["Crouch"], state.standing)
    restrict(["Stand"], ~state.standing)
    closing = possible[:, action_index("CloseObjects")]
    world.state = state.copy()
    restrict(["CloseObjects"], world.close_near(closing))
    world.state = state

    acting = np.flatnonzero(possible.any(1))
    at_cells, visible = np.full((len(game), CELLS**2), NOTHING), np.zeros(len(game), bool)
    for b, percept in zip(acting.tolist(), perceive(game, acting), strict=True):
        at_cells[b] = percept.at_cells.ravel()
        visible[b] = percept.goal_pixels >= CLAIM_PIXELS
    restrict([name for name in NAMES if name.startswith("OpenAt")], at_cells != NOTHING)
    restrict(["ClaimVisible"], visible & (reach(state.position, state.pose[:, :3]) <= REACH))
    restrict(
        [name for name in NAMES if name.startswith("PlaceAt")], ~game.placed[:, None].repeat(len(PLACE_ACTIONS), 1)
    )
    restrict(["ReadyForSeeker"], game.placed)

    eye, matrix = cameras(state.position, state.rotation, state.standing)
    points = state.pose[:, :3] + SWEEP_STEP * hand_directions(state.rotation)
    able = (reach(state.position, points) <= REACH) & in_view(eye, matrix, points)
    restrict([name for name in NAMES if name.startswith("MoveHand")], able.T)
    restrict(["DropObject"], state.held)
    # A player with no possible action takes any that is allowed.
    stuck = games & ~possible.any(1)
    possible[stuck] = game.allowed[stuck]
    return possible


class HiderAndSeeker:
    """A hider and a seeker as one player: the seeker acts in S, the hider in all other stages.

    Without a hider only searches can be played.
    """

    def __init__(self, hider: Player | None, seeker: Player) -> None:
        self.hider, self.seeker = hider, seeker

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seeking = games & (game.stage == Stage.S)
        action, place = self.seeker(game, seeking)
        if self.hider is not None:
            hiding = games & ~seeking
            hider_action, place = self.hider(game, hiding)
            action = np.where(hiding, hider_action, action)
        return action, place
