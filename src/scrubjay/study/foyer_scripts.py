"""Scripts that carry an object into a receptacle or behind it, in a batch of worlds, and check where it would fall.

All worlds of a batch follow their scripts in lockstep; both of a pair start alike and part only where one carries the
object on beyond the receptacle. A hand moves in steps of 0.1 m, so places are drawn where a step ends near the
receptacle's middle.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from scrubjay.game.actions import NUMBERS
from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.floor import axis_rotation
from scrubjay.rooms.generate.foyer import RECEPTACLES, support_of, table_of
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import GOAL_BOXES, SOLID, CompiledRoom
from scrubjay.sim.physics import HAND_AHEAD, HAND_BELOW, HAND_STEP
from scrubjay.sim.pose import CAMERA_STANDING
from scrubjay.sim.quaternion import matrix_from_quat
from scrubjay.sim.world import HAND_MOVES, HAND_TURNS, NOTHING, World

MAX_MOVEMENTS = 40
RIM_GAP = 0.05
"""Meters by which an object is carried over the receptacle's rim."""
BEHIND_GAP = 0.03
"""Meters that an object's near side is at least beyond the receptacle's far side."""
SLACK = 0.02
"""Meters by which a receptacle's middle is off the hand's steps at most, ahead and aside."""
STEPS_AHEAD, STEPS_ASIDE = tuple(range(1, 10)), (-2, -1, 0, 1, 2)
"""Of the hand, to the receptacle's middle: it is 0.46 to 1.3 m away, and up to 0.22 m aside. Behind is two to four
steps further than into. If distances differed by less than that, counting steps would tell the two apart: with 4 to 6
steps in 96 % of pairs, with 1 to 9 in 68 %."""
UPRIGHT = ("Bread", "Knife")
"""Objects too long for a bowl, which are turned upright first."""
TURN = HAND_TURNS.index("-X")
TURNS = 3
"""Of 30 degrees."""
ON_TABLE = 0.03
"""Meters between the table's top and the lowest face of an object's box that rests on it; a loaf's ends are round."""
SIZES = np.array([GOAL_BOXES[goal][:3] for goal in GOALS])
"""(5, 3): width, depth and height of the goal objects."""
HELD_SIZES = np.array([size[[0, 2, 1]] if goal in UPRIGHT else size for goal, size in zip(GOALS, SIZES, strict=True)])
"""(5, 3): of the objects as scripts carry them."""
AHEAD, LEFT, RIGHT, _, UP, DOWN = range(len(HAND_MOVES))
ACTIONS = np.array([
    *(NUMBERS[f"MoveHand{name.capitalize()}"] for name in HAND_MOVES),
    *(NUMBERS[f"RotateHand|{name}"] for name in HAND_TURNS),
])  # fmt: skip
"""The game's actions of HAND_MOVES and, after them, HAND_TURNS."""


@dataclass(frozen=True)
class Trajectories:
    """What hands did in B worlds in up to T movements, all of which succeeded; nothing else changes."""

    position: np.ndarray
    """The agents', (B, 2)."""
    rotation: np.ndarray
    """(B,)."""
    standing: np.ndarray
    """(B,) bool."""
    goal: np.ndarray
    """(B,): indices of GOALS."""
    poses: np.ndarray
    """(B, T + 1, 7): the object's pose at each frame; the last one is repeated after the end."""
    actions: np.ndarray
    """(B, T): the game's actions; NOTHING after the end."""

    @property
    def lengths(self) -> np.ndarray:
        """Numbers of frames, (B,)."""
        return (self.actions != NOTHING).sum(1) + 1

    def forward_steps(self) -> np.ndarray:
        """Numbers of MoveHandAhead, (B,)."""
        return (self.actions == ACTIONS[AHEAD]).sum(1)


@dataclass(frozen=True)
class Target:
    """A receptacle on a table, as somebody in front of it sees it. Lengths in meters."""

    thing: int
    middle: np.ndarray
    """(2,): of the receptacle."""
    half_depth: float
    rim: float
    """Height over the floor."""
    top: float
    """The table's height."""
    rotation: float
    """In which one faces the table."""
    table: np.ndarray
    """(2, 2): low and high corner of the table's top."""


def target_of(room: CompiledRoom) -> Target:
    """The receptacle of a compiled foyer."""
    table = table_of(room.room)
    thing = next(i for i, t in enumerate(room.room.things) if t.type in RECEPTACLES and t.inside == table.name)
    rotation = (table.yaw + 180) % 360
    ahead = np.append(facing_vector(rotation), 0.0)
    low, high = extent_along(room, [thing], ahead)
    receptacle = room.room.things[thing]
    middle = np.asarray(receptacle.position[:2])
    center = float(middle @ ahead[:2])
    top = support_of(table)
    half = np.abs(axis_rotation(np.array([0, 0, 1.0]), -np.radians(table.yaw))[:2, :2]) @ np.asarray(top.size[:2]) / 2
    at = np.asarray(table.position[:2])
    return Target(
        thing, middle, max(high - center, center - low), receptacle.position[2] + receptacle.size[2],
        table.position[2] + float(top.position[2]), rotation, np.stack([at - half, at + half]),
    )  # fmt: skip


def extent_along(room: CompiledRoom, things: list[int], direction: np.ndarray) -> tuple[float, float]:
    """The lowest and highest coordinate of things' solids along a unit vector (3,), everything closed."""
    model, data = room.model, mujoco.MjData(room.model)
    mujoco.mj_kinematics(model, data)
    geoms = np.flatnonzero(np.isin(room.geom_thing, things) & (model.geom_group == SOLID))
    middle = data.geom_xpos[geoms] @ direction
    along = np.abs(np.einsum("nij,i->nj", data.geom_xmat[geoms].reshape(-1, 3, 3), direction))
    half = (along * model.geom_size[geoms]).sum(1)  # Of boxes; a capsule's third size is 0.
    return float((middle - half).min()), float((middle + half).max())


def draw_offsets(count: int, rng: np.random.Generator) -> np.ndarray:
    """Places of a receptacle's middle ahead and to the right of an agent, (count, 2)."""
    steps = np.stack([rng.choice(STEPS_AHEAD, count), rng.choice(STEPS_ASIDE, count)], 1)
    return [HAND_AHEAD, 0.0] + HAND_STEP * steps + rng.uniform(-SLACK, SLACK, (count, 2))


def carry_pairs(
    world: World, targets: list[Target], offsets: np.ndarray, goal: np.ndarray
) -> tuple[Trajectories, np.ndarray]:
    """Carries objects (B,) into the receptacles in even worlds, behind them in odd ones; says which pairs are valid.

    `targets` are the rooms', `offsets` (B, 2) as drawn; both of a pair (2 k, 2 k + 1) have the same object and offset.
    Returns the trajectories and (B,) bool, equal for both of a pair. The world is left as after the last movement.
    """
    behind = np.arange(len(world)) % 2 == 1
    mine = [targets[number] for number in world.room_of]
    _stand(world, mine, offsets)
    held = world.hold(goal) & world.can_stand()
    schedule = _schedule(mine, offsets, goal, behind)
    held &= world.state.pose[:, 2] == CAMERA_STANDING - HAND_BELOW
    trajectories, done = follow(world, schedule, held, lower=True)
    valid = done & _ends_well(world, mine, behind)
    return trajectories, np.repeat(valid.reshape(-1, 2).all(1), 2)


def follow(world: World, schedule: np.ndarray, alive: np.ndarray, lower: bool) -> tuple[Trajectories, np.ndarray]:
    """Moves hands by schedules (B, T) of numbers of HAND_MOVES, len(HAND_MOVES) and more for HAND_TURNS, -1 at the end.

    Where `lower`, hands go down then until something stops them. Worlds that are not `alive` (B,) do nothing; returns
    in which all movements succeeded, and where one ended low, (B,) bool.
    """
    state, count = world.state, len(world)
    going, stopped = alive.copy(), np.zeros(count, bool)
    length = (schedule >= 0).sum(1)
    poses, actions = [state.pose.copy()], []
    for step in range(MAX_MOVEMENTS):
        planned = step < length
        move = np.full(count, NOTHING)
        if step < schedule.shape[1]:
            move = np.where(planned, schedule[:, step], NOTHING)
        if lower:
            move = np.where(planned | stopped, move, DOWN)
        move = np.where(going, move, NOTHING)
        if (move == NOTHING).all():
            break
        turn = np.where(move >= len(HAND_MOVES), move - len(HAND_MOVES), NOTHING)
        before = state.pose[:, 2].copy()
        done = world.move_hand(np.where(turn == NOTHING, move, NOTHING)) | world.rotate_hand(turn)
        descending = ~planned & (move == DOWN)
        stopped |= descending & (~done | (before - state.pose[:, 2] < HAND_STEP - 0.001))
        going &= done | descending | (move == NOTHING)
        actions.append(np.where(done, ACTIONS[move], NOTHING))
        poses.append(state.pose.copy())
    s = state
    kept = Trajectories(
        s.position.copy(), s.rotation.copy(), s.standing.copy(), s.goal.copy(), np.stack(poses, 1), np.stack(actions, 1)
    )
    return kept, alive & going & (stopped | (not lower))


def lowest_points(state_pose: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """The lowest of the six face centers of objects' boxes, (B, 3)."""
    axes = matrix_from_quat(state_pose[:, 3:])
    faces = np.concatenate([axes, -axes], 2).transpose(0, 2, 1) * np.tile(SIZES[goal] / 2, 2)[:, :, None]
    lowest = faces[:, :, 2].argmin(1)
    return state_pose[:, :3] + faces[np.arange(len(goal)), lowest]


def _stand(world: World, targets: list[Target], offsets: np.ndarray) -> None:
    """Puts agents where receptacles are at these offsets ahead and to the right."""
    rotation = np.array([one.rotation for one in targets])
    middle = np.stack([one.middle for one in targets])
    state = world.state
    state.position[:] = middle - offsets[:, :1] * facing_vector(rotation) - offsets[:, 1:] * right_vector(rotation)
    state.rotation[:], state.standing[:] = rotation, True


def _schedule(targets: list[Target], offsets: np.ndarray, goal: np.ndarray, behind: np.ndarray) -> np.ndarray:
    """Turns, up, aside, ahead: what `follow` takes before it goes down, (B, T)."""
    half = HELD_SIZES[goal] / 2
    rim, depth = np.array([one.rim for one in targets]), np.array([one.half_depth for one in targets])
    up = np.maximum(np.ceil((rim + RIM_GAP + half[:, 2] - (CAMERA_STANDING - HAND_BELOW)) / HAND_STEP), 0).astype(int)
    aside = np.rint(offsets[:, 1] / HAND_STEP).astype(int)
    distance = offsets[:, 0] - HAND_AHEAD
    beyond = np.ceil((distance + depth + BEHIND_GAP + half[:, 1]) / HAND_STEP)
    ahead = np.where(behind, beyond, np.rint(distance / HAND_STEP)).astype(int)
    turns = np.where(np.isin(goal, [GOALS.index(name) for name in UPRIGHT]), TURNS, 0)
    phases = [(len(HAND_MOVES) + TURN, turns), (UP, up), (LEFT, np.maximum(-aside, 0)), (RIGHT, np.maximum(aside, 0)),
              (AHEAD, ahead)]  # fmt: skip
    schedule = np.full((len(goal), int(sum(count for _, count in phases).max())), NOTHING)
    step = np.arange(schedule.shape[1])
    first = np.zeros(len(goal), int)
    for move, count in phases:
        schedule[(step >= first[:, None]) & (step < (first + count)[:, None])] = move
        first = first + count
    return schedule


def _ends_well(world: World, targets: list[Target], behind: np.ndarray) -> np.ndarray:
    """Whether objects, dropped in a copy of the worlds, end inside the receptacles or on the table behind them."""
    before = world.state.copy()
    world.drop(world.state.held)
    state = world.state
    thing, top = np.array([one.thing for one in targets]), np.array([one.top for one in targets])
    low = lowest_points(state.pose, state.goal)
    # A plunger stands in a bowl although its middle is above the rim: its foot counts, too.
    inside = (world.contained() == thing) | (world.contained(points=low + [0, 0, 0.01]) == thing)
    table = np.stack([one.table for one in targets])
    over = ((state.pose[:, :2] > table[:, 0]) & (state.pose[:, :2] < table[:, 1])).all(1)
    on_table = over & (np.abs(low[:, 2] - top) < ON_TABLE)
    away = np.stack([state.pose[i, :2] - one.middle for i, one in enumerate(targets)])
    ahead = (away * facing_vector(state.rotation)).sum(1)
    farther = ahead > np.array([one.half_depth for one in targets])
    good = ~state.held & np.where(behind, ~inside & on_table & farther, inside)
    for name, values in vars(before).items():
        setattr(state, name, values)
    return good
