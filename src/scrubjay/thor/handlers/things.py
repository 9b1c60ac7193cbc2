"""Actions on objects without a hand: states, poses, what is there and what is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scrubjay.thor.arguments import ROTATION, VECTOR
from scrubjay.thor.coordinates import Vector, numbers, to_room
from scrubjay.thor.scene import ActionFailed
from scrubjay.thor.session import Session

MAX_DISTANCE = 1000.0
"""Meters from the origin at which objects can be placed."""


# States, which change metadata only.


def toggler(on: bool) -> Callable[..., None]:
    """A handler that turns something on or off."""

    def toggle(
        session: Session, agent: int, object_id: str | None, x: float | None, y: float | None, force_action: bool,
        force_visible: bool,
    ) -> None:  # fmt: skip
        thing = session.target(agent, object_id, x, y, force_action or force_visible)
        session.objects.states.toggle(thing, on, bool(session.objects.row(thing)["isOpen"]))

    return toggle


def changer(able: str, state: str, to: bool) -> Callable[..., None]:
    """A handler that sets a flag of what can have it."""

    def change(
        session: Session, agent: int, object_id: str | None, x: float | None, y: float | None, force_action: bool
    ) -> None:
        thing = session.target(agent, object_id, x, y, force_action)
        session.objects.states.change(thing, able, state, to)

    return change


def fill(
    session: Session, agent: int, object_id: str | None, x: float | None, y: float | None, fill_liquid: str,
    force_action: bool,
) -> None:  # fmt: skip
    """Fills something."""
    session.objects.states.fill(session.target(agent, object_id, x, y, force_action), fill_liquid)


def empty(
    session: Session, agent: int, object_id: str | None, x: float | None, y: float | None, force_action: bool
) -> None:
    """Pours something out."""
    session.objects.states.empty(session.target(agent, object_id, x, y, force_action))


# Poses.


def teleport_object(
    session: Session,
    agent: int,
    object_id: str,
    position: Vector | None,
    x: float | None,
    y: float | None,
    z: float | None,
    rotation: Vector | None,
    force_action: bool,
    allow_teleport_out_of_hand: bool,
    force_kinematic: bool,
    make_unbreakable: bool,
) -> None:
    """Moves an object; it falls from there unless forceKinematic."""
    thing = session.thing(object_id)
    row = session.objects.row(thing)
    given = {axis: value for axis, value in zip("xyz", (x, y, z), strict=True) if value is not None} | (position or {})
    if any(body.held == thing for body in session.scene.agents) and not allow_teleport_out_of_hand:
        raise ActionFailed(f"{object_id} is in a hand")
    pose = session.objects.pose_for(
        thing, numbers(row["position"] | given), numbers(row["rotation"] | (rotation or {}))
    )
    _place(session, thing, pose, settle=not force_kinematic, force=force_action)


def place_at_point(
    session: Session, agent: int, object_id: str, position: Vector, rotation: Vector | None, force_kinematic: bool
) -> None:
    """Puts an object so that its box stands on a point."""
    thing = session.thing(object_id)
    row = session.objects.row(thing)
    degrees = numbers(row["rotation"] | (rotation or {}))
    pose = session.objects.pose_for(thing, numbers(row["position"]), degrees)
    corners = session.scene.corners(thing)
    point = to_room(numbers(position), session.objects.floor)
    pose[:3] = point + [0.0, 0.0, float(np.mean(corners[:, 2]) - corners[:, 2].min())]
    _place(session, thing, pose, settle=not force_kinematic, force=False)


def set_object_poses(session: Session, agent: int, object_poses: list[dict[str, Any]], place_stationary: bool) -> None:
    """Puts objects where a list says; loose objects that are not in it are taken out of the scene."""
    wanted = [_read_pose(session, entry) for entry in object_poses]
    named = {thing for thing, _ in wanted}
    for thing, record in session.objects.records.items():
        if record["pickupable"] and thing not in session.scene.absent and thing not in named:
            session.scene.remove(thing)
    for thing, pose in wanted:
        if thing in session.scene.absent:
            session.scene.restore(thing)
        if session.objects.records[thing]["pickupable"]:
            _place(session, thing, pose, settle=False, force=True)


def _read_pose(session: Session, entry: Mapping[str, Any]) -> tuple[int, np.ndarray]:
    name = str(entry.get("objectName", ""))
    thing = session.objects.named.get(name, session.objects.named.get(name.removesuffix("(Clone)")))
    if thing is None:
        raise ActionFailed(f"no object is named {name!r}")
    try:
        position, rotation = VECTOR.read(entry.get("position")), ROTATION.read(entry.get("rotation", {}))
    except (ValueError, TypeError) as error:
        raise ActionFailed(f"the pose of {name} needs a position, and a rotation, of numbers x, y and z") from error
    row = session.objects.row(thing)
    return thing, session.objects.pose_for(thing, numbers(position), numbers(row["rotation"] | rotation))


def _place(session: Session, thing: int, pose: np.ndarray, settle: bool, force: bool) -> None:
    if np.abs(pose[:3]).max() > MAX_DISTANCE:
        raise ActionFailed(f"objects are placed within {MAX_DISTANCE:g} m of the origin")
    session.scene.place(thing, pose, settle, force)


# What is there, and what is drawn.


def remove(session: Session, agent: int, object_id: str | None, object_ids: list[str] | None) -> None:
    """Takes objects out of the scene."""
    names = [*(object_ids or ()), *([object_id] if object_id is not None else ())]
    if not names:
        raise ActionFailed("objectId or objectIds must name an object")
    for thing in [session.thing(name) for name in names]:
        session.scene.remove(thing)


def enable(session: Session, agent: int, object_id: str) -> None:
    """Brings back what was taken out; succeeds if it is there."""
    thing = session.objects.thing_of.get(object_id)
    if thing is None:
        raise ActionFailed(f"there is no object {object_id!r} in {session.scene_name}")
    if thing in session.scene.absent:
        session.scene.restore(thing)


def hide(session: Session, agent: int, object_id: str, hide_contained: bool) -> None:
    """Leaves an object out of pictures."""
    thing = session.thing(object_id)
    session.scene.hidden.update({thing, *(_inside(session, thing) if hide_contained else ())})


def unhide(session: Session, agent: int, object_id: str, unhide_contained: bool) -> None:
    """Draws an object again."""
    thing = session.thing(object_id)
    session.scene.hidden.difference_update({thing, *(_inside(session, thing) if unhide_contained else ())})


def hide_all(session: Session, agent: int) -> None:
    """Draws nothing."""
    session.scene.hidden.update(range(len(session.scene.things)))


def hide_all_except(session: Session, agent: int, object_id: str | None, object_ids: list[str] | None) -> None:
    """Draws only these objects."""
    shown = {session.thing(name) for name in (*(object_ids or ()), *([object_id] if object_id is not None else ()))}
    session.scene.hidden.clear()
    session.scene.hidden.update(set(range(len(session.scene.things))) - shown)


def unhide_all(session: Session, agent: int) -> None:
    """Draws everything, in its own colors."""
    session.scene.hidden.clear()
    session.painted.clear()


def emphasize(session: Session, agent: int, object_id: str) -> None:
    """Draws one object only, in magenta."""
    hide_all_except(session, agent, object_id, None)
    session.painted = {session.thing(object_id)}


def mask(session: Session, agent: int, object_id: str) -> None:
    """Draws an object in magenta."""
    session.painted.add(session.thing(object_id))


def unmask(session: Session, agent: int, object_id: str) -> None:
    """Draws an object in its own colors."""
    session.painted.discard(session.thing(object_id))


def set_filter(session: Session, agent: int, object_ids: list[str]) -> None:
    """Lists only these objects in metadata; unknown ids list nothing."""
    session.only = {session.objects.thing_of[name] for name in object_ids if name in session.objects.thing_of}


def reset_filter(session: Session, agent: int) -> None:
    """Lists all objects."""
    session.only = None


def _inside(session: Session, thing: int) -> list[int]:
    return [child for child, parents in session.objects.parents.items() if thing in parents]
