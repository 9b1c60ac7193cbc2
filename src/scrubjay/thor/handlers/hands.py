"""Actions of an agent's hand: opening, picking up, moving, turning, putting down."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scrubjay.rooms.directions import facing_vector
from scrubjay.sim.quaternion import quat_from_axis_angle, quat_mul
from scrubjay.thor.coordinates import Vector, quat_from_euler
from scrubjay.thor.scene import ActionFailed
from scrubjay.thor.session import Session
from scrubjay.thor.states import CLOSED_WHEN_ON

MAX_REACH = 2.0
"""Meters of one movement of the hand, which is swept."""
MAX_FORCE = 1000.0
"""Newtons."""
SAME = 1e-3
"""Openness that makes no difference."""
DIRECTIONS = {
    "Ahead": (1, 0, 0), "Back": (-1, 0, 0), "Right": (0, 1, 0), "Left": (0, -1, 0), "Up": (0, 0, 1), "Down": (0, 0, -1),
}  # fmt: skip
"""Ahead, right and up of the agent."""


def open_object(
    session: Session,
    agent: int,
    object_id: str | None,
    x: float | None,
    y: float | None,
    openness: float | None,
    force_action: bool,
    force_visible: bool,
    move_magnitude: float | None,
    simplify_physics: bool,
) -> None:
    """Opens something; moveMagnitude is the old name of openness, in which 0 means 1."""
    if openness is None:
        openness = move_magnitude or 1.0
    if not 0 <= openness <= 1:
        raise ActionFailed(f"openness is from 0 to 1, not {openness:g}")
    _set_openness(session, agent, object_id, x, y, openness, force_action or force_visible)


def close_object(
    session: Session,
    agent: int,
    object_id: str | None,
    x: float | None,
    y: float | None,
    force_action: bool,
    force_visible: bool,
    simplify_physics: bool,
) -> None:
    """Closes something."""
    _set_openness(session, agent, object_id, x, y, 0.0, force_action or force_visible)


def _set_openness(
    session: Session, agent: int, object_id: str | None, x: float | None, y: float | None, openness: float, force: bool
) -> None:
    thing = session.target(agent, object_id, x, y, force)
    record, states, name = session.objects.records[thing], session.objects.states, session.object_id(thing)
    now = session.scene.openness(thing)
    if now is None and not record["openable"]:
        raise ActionFailed(f"{name} does not open")
    if record["objectType"] in CLOSED_WHEN_ON and states.get(thing, "isToggled") and openness > 0:
        raise ActionFailed(f"{name} must be off to be opened")
    if abs((states.get(thing, "openness") if now is None else now) - openness) < SAME:
        raise ActionFailed(f"{name} is already {'open by ' + format(openness, 'g') if openness else 'closed'}")
    if now is None:  # What we draw without moving parts (books, blinds) opens in metadata only.
        states.set(thing, openness=openness, isOpen=openness > 0)
    else:
        session.scene.set_openness(agent, thing, openness, force)


def pick_up(
    session: Session,
    agent: int,
    object_id: str | None,
    x: float | None,
    y: float | None,
    force_action: bool,
    manual_interact: bool,
) -> None:
    """Takes something into the hand."""
    thing = session.target(agent, object_id, x, y, force_action)
    if not session.objects.records[thing]["pickupable"]:
        raise ActionFailed(f"{session.object_id(thing)} cannot be picked up")
    if session.agent(agent).held is not None:
        raise ActionFailed(f"agent {agent} already holds {session.object_id(session.held(agent))}")
    session.scene.pick_up(agent, thing, force_action)
    if not manual_interact:
        session.objects.align(thing)


def drop(session: Session, agent: int, force_action: bool, auto_simulation: bool) -> None:
    """Lets go of what is held."""
    session.held(agent)
    session.scene.drop(agent, force_action)


def throw(session: Session, agent: int, move_magnitude: float, force_action: bool, auto_simulation: bool) -> None:
    """Throws what is held."""
    session.held(agent)
    if not 0 <= move_magnitude <= MAX_FORCE:
        raise ActionFailed(f"moveMagnitude is from 0 to {MAX_FORCE:g} newtons, not {move_magnitude:g}")
    session.scene.throw(agent, move_magnitude)


def put(
    session: Session,
    agent: int,
    object_id: str | None,
    x: float | None,
    y: float | None,
    receptacle_object_id: str | None,
    force_action: bool,
    place_stationary: bool,
    random_seed: int,
    put_near_xy: bool,
) -> None:
    """Puts what is held into or onto something; before AI2-THOR 2.5 objectId was what is held."""
    held = session.held(agent)
    receptacle = session.target(agent, receptacle_object_id or object_id, x, y, force_action)
    if receptacle == held:
        raise ActionFailed(f"{session.object_id(held)} cannot be put into itself")
    if not session.objects.records[receptacle]["receptacle"]:
        raise ActionFailed(f"{session.object_id(receptacle)} is no receptacle")
    session.scene.put(agent, receptacle, force_action, place_stationary)


def move_held(session: Session, agent: int, ahead: float, right: float, up: float, force_visible: bool) -> None:
    """Moves what is held."""
    _move_held(session, agent, np.array([ahead, right, up]))


def move_hand_force(session: Session, agent: int, x: float, y: float, z: float) -> None:
    """Moves what is held to the right, up and ahead, as far as it can."""
    _move_held(session, agent, np.array([z, x, y]), force=True)


def hand_mover(direction: str) -> Callable[..., None]:
    """A handler that moves what is held in one direction."""

    def move(session: Session, agent: int, move_magnitude: float | None, force_visible: bool) -> None:
        meters = session.settings.grid_size if move_magnitude is None else move_magnitude
        _move_held(session, agent, meters * np.array(DIRECTIONS[direction], float))

    return move


def rotate_held(session: Session, agent: int, pitch: float, yaw: float, roll: float, rotation: Vector | None) -> None:
    """Turns what is held by angles, or to a rotation in the agent's frame; positive roll is clockwise from behind."""
    if rotation is None:
        _turn_held(session, agent, np.array([pitch, yaw, -roll]))
    else:
        _turn_held_to(session, agent, rotation)


def rotate_hand_relative(session: Session, agent: int, x: float, y: float, z: float) -> None:
    """Turns what is held by Euler angles in the agent's frame."""
    _turn_held(session, agent, np.array([x, y, z]))


def rotate_hand(session: Session, agent: int, x: float, y: float, z: float) -> None:
    """Turns what is held to Euler angles in the agent's frame."""
    _turn_held_to(session, agent, {"x": x, "y": y, "z": z})


def _move_held(session: Session, agent: int, offset: np.ndarray, force: bool = False) -> None:
    session.held(agent)
    if np.linalg.norm(offset) > MAX_REACH:
        raise ActionFailed(f"a hand moves by at most {MAX_REACH:g} m at once")
    session.scene.move_held(agent, offset, force)


def _turn_held(session: Session, agent: int, degrees: np.ndarray) -> None:
    session.held(agent)
    if np.count_nonzero(degrees) == 1:  # About one axis, with a world's very numbers.
        ahead = np.array([*facing_vector(session.agent(agent).rotation), 0.0])
        up = np.array([0.0, 0.0, 1.0])
        which = int(np.flatnonzero(degrees)[0])
        axis = (np.cross(ahead, up), up, ahead)[which]
        session.scene.turn_held(agent, quat_from_axis_angle(axis, -degrees[which]))
        return
    facing = _facing(session, agent)
    turn = quat_mul(quat_mul(facing, quat_from_euler(degrees)), facing * [1, -1, -1, -1])
    session.scene.turn_held(agent, turn)


def _turn_held_to(session: Session, agent: int, rotation: Vector) -> None:
    held = session.held(agent)
    wanted = quat_mul(_facing(session, agent), quat_from_euler(np.array([rotation.get(axis, 0.0) for axis in "xyz"])))
    now = np.array(session.scene.pose(held)[3:], float)
    session.scene.turn_held(agent, quat_mul(wanted, now * [1, -1, -1, -1]))


def _facing(session: Session, agent: int) -> np.ndarray:
    return quat_from_euler(np.array([0.0, session.agent(agent).rotation, 0.0]))
