"""Where a hand can carry the object in steps of 0.1 m, and where the object would come to rest if dropped there.

Positions are nodes of a lattice through the hand, along its six directions. A node is free if the object collides with
nothing there; edges are not swept, since the world decides in the end what a movement does.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import mujoco
import numpy as np
from scipy.ndimage import binary_dilation

from scrubjay.sim.compile import FIXED, GOAL_BOXES, MOVING, SOLID
from scrubjay.sim.containment import Containment
from scrubjay.sim.physics import HAND_STEP, Physics, PhysicsState, within_hands_reach
from scrubjay.sim.pose import hand_directions, in_view
from scrubjay.sim.world import HAND_MOVES

LOW, HIGH = np.array([-4, -14, -15]), np.array([12, 14, 8])
"""Lattice steps ahead, to the right and up from the hand within which nodes are searched."""
STEPS = np.array([[1, 0, 0], [0, -1, 0], [0, 1, 0], [-1, 0, 0], [0, 0, 1], [0, 0, -1]])
"""The lattice steps of the hand's movements, in the order of HAND_MOVES."""
OCCLUDED_SHARE = 0.5
"""The share of an object's corners and center that must be occluded for it to count as behind something."""
CORNERS = np.array([(0, 0, 0), *np.ndindex(2, 2, 2)]) * 2.0 - 1
CORNERS[0] = 0


@dataclass(frozen=True)
class DropPoints:
    """The n lowest nodes that a hand reaches above each surface."""

    node: np.ndarray
    """(n, 3): lattice indices, from LOW."""
    rest: np.ndarray
    """(n, 3): estimates of the resting object's center."""
    contained: np.ndarray
    """(n,) bool: something contains it there."""
    occluded: np.ndarray
    """(n,) bool: most of it is behind something."""


class HandPaths:
    """The nodes that a hand reaches from its position within a number of movements."""

    def __init__(self, physics: Physics, now: PhysicsState, movements: int) -> None:
        self.physics, self.now = physics, now
        ahead, _, right, _, up, _ = hand_directions(np.asarray(now.rotation))
        self.index = np.stack(np.meshgrid(*map(np.arange, LOW, HIGH + 1), indexing="ij"), -1)
        self.points = now.pose[:3] + HAND_STEP * self.index @ np.stack([ahead, right, up])
        """(i, j, k, 3): the nodes' positions."""
        self.distance = self._search(movements)
        """(i, j, k): movements from the hand, -1 where it does not get."""

    def _search(self, movements: int) -> np.ndarray:
        """Breadth-first, testing for collisions only the nodes next to those reached."""
        within = within_hands_reach(self.now, self.now.camera, self.points) & (self.points[..., 2] > 0)
        goal = self.physics.load(self.now)
        assert goal is not None
        distance = np.full(within.shape, -1)
        front = np.zeros(within.shape, bool)
        front[tuple(-LOW)] = True
        distance[front] = 0
        for moved in range(1, movements + 1):
            within &= ~front
            front = binary_dilation(front) & within
            for node in zip(*np.nonzero(front), strict=True):
                pose = np.concatenate([self.points[node], self.now.pose[3:]])
                if self.physics.collides(goal, pose):
                    front[node] = within[node] = False
            if not front.any():
                break
            distance[front] = moved
        return distance

    def path(self, node: np.ndarray) -> list[int]:
        """Movements, as indices of HAND_MOVES, from the hand to a node: of the shortest ways, one that turns least.

        Agents learn by imitation, and every turn is something to get right. The last movements go down, if they can.
        """

        @functools.cache
        def turns(here: tuple[int, ...], move: int) -> int:
            """Turns on the way to a node whose last movement this is."""
            before = self._before(here, move)
            options = [turns(before, last) + (last != move) for last in self._last_moves(before)]
            return min(options, default=0)

        moves: list[int] = []
        here = tuple(np.asarray(node).tolist())
        while last_moves := self._last_moves(here):
            cost = [turns(here, move) + bool(moves and move != moves[-1]) for move in last_moves]
            moves.append(last_moves[int(np.argmin(cost))])
            here = self._before(here, moves[-1])
        return moves[::-1]

    def _last_moves(self, here: tuple[int, ...]) -> list[int]:
        """Movements with which a shortest way to a node may end, those down first; none at the hand itself."""
        distance = self.distance[here]
        return [
            move for move in reversed(range(len(HAND_MOVES)))
            if 0 < distance == self._distance(self._before(here, move)) + 1
        ]  # fmt: skip

    def _before(self, here: tuple[int, ...], move: int) -> tuple[int, ...]:
        """The node that a movement to this one comes from."""
        return tuple((np.asarray(here) - STEPS[move]).tolist())

    def _distance(self, node: tuple[int, ...]) -> int:
        """Movements from the hand; -1 where it does not get, and outside the lattice."""
        inside = all(0 <= index < size for index, size in zip(node, self.distance.shape, strict=True))
        return int(self.distance[node]) if inside else -1

    def drop_points(self, containment: Containment) -> DropPoints:
        """Where drops end, as far as rays can tell, for all that end in view."""
        reached = self.distance >= 0
        below = np.pad(reached, ((0, 0), (0, 0), (1, 0)))[..., :-1]
        node = np.argwhere(reached & ~below)
        point = self.points[tuple(node.T)]
        half = self._half_height()
        surface = point[:, 2] - self._distances(point, np.tile([0.0, 0, -1], (len(point), 1)), SOLID)
        rest = np.concatenate([point[:, :2], np.minimum(surface + half, point[:, 2])[:, None]], 1)
        seen = np.isfinite(rest).all(1) & in_view(*self.now.camera, rest)
        node, rest = node[seen], rest[seen]
        is_open = np.tile([*self.now.open, False], (len(rest), 1))  # Never empty.
        contained = containment.containing(np.zeros(len(rest), int), is_open, rest) >= 0
        return DropPoints(node, rest, contained, self._occluded(rest, half))

    def _half_height(self) -> float:
        """Half the object's height as it is held."""
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, self.now.pose[3:])
        return float(np.abs(matrix.reshape(3, 3)[2]) @ np.array(GOAL_BOXES[self.now.goal][:3]) / 2)

    def _occluded(self, rest: np.ndarray, half: float) -> np.ndarray:
        eye, _ = self.now.camera
        width = min(GOAL_BOXES[self.now.goal][:2]) / 2
        points = rest[:, None] + CORNERS * [0.7 * width, 0.7 * width, 0.7 * half]
        away = points - eye
        far = np.linalg.norm(away, axis=-1)
        rays = (away / far[..., None]).reshape(-1, 3)
        hit = self._distances(np.tile(eye, (len(rays), 1)), rays, FIXED, MOVING).reshape(far.shape)
        return (hit < far).mean(1) >= OCCLUDED_SHARE

    def _distances(self, start: np.ndarray, rays: np.ndarray, *groups: int) -> np.ndarray:
        """Lengths (n,) of rays from starts (n, 3) along unit vectors (n, 3) to geoms of these groups; inf for none."""
        physics, now = self.physics, self.now
        goal = physics.load(now)
        assert goal is not None
        mujoco.mj_kinematics(physics.model, physics.data)
        shown = np.array([group in groups for group in range(6)], np.uint8)
        geom = np.zeros(1, np.int32)
        lengths = np.array(
            [
                mujoco.mj_ray(physics.model, physics.data, a, b, shown, True, goal.body, geom)
                for a, b in zip(start, rays, strict=True)
            ]
        )
        return np.where(lengths < 0, np.inf, lengths)
