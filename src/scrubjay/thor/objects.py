"""The objects of a scene as AI2-THOR's metadata lists them.

A thing that is where the table has it is told in the table's own numbers; one that moved, by how it moved from there.
Rows are kept and made anew only for what changed: 60 to 90 objects with 40 fields each are most of a message.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from scrubjay.rooms import ithor
from scrubjay.rooms.room import GOALS
from scrubjay.sim.quaternion import matrix_from_quat, quat_mul
from scrubjay.thor.coordinates import (
    euler_from_quat,
    numbers,
    object_id,
    quat_from_euler,
    to_room,
    to_unity,
    vector,
)
from scrubjay.thor.scene import Scene
from scrubjay.thor.states import Record, States

STRUCTURE = ("Wall", "Ceiling")
"""Things that are no objects of AI2-THOR's."""
FLAGS = (
    "breakable", "canBeUsedUp", "canFillWithLiquid", "cookable", "dirtyable", "isBroken", "isColdSource", "isCooked",
    "isDirty", "isFilledWithLiquid", "isHeatSource", "isSliced", "isToggled", "isUsedUp", "moveable", "pickupable",
    "sliceable", "toggleable",
)  # fmt: skip
STILL = 1e-6
"""Meters, or units of a quaternion, up to which a thing has not moved."""
CORNERS = np.array([[x, y, z] for x in (1, -1) for y in (1, -1) for z in (1, -1)]) / 2
"""Corners of an axis-aligned box in AI2-THOR's order, in its sizes from its center."""


@dataclass
class Origin:
    """Where a thing was when its record was right, in the room's frame."""

    pose: np.ndarray
    openness: float | None
    position: np.ndarray
    """The record's position, which need not be the box's center."""
    quaternion: np.ndarray
    corners: np.ndarray | None
    """The corners of the record's oriented box."""


class Objects:
    """Records of a scene's things, and how they are now."""

    def __init__(self, scene: Scene, name: str) -> None:
        """Takes a scene as it was made, and its name without `_physics`."""
        self._scene = scene
        table = ithor.objects(name) if name in ithor.FLOOR_PLANS else ()
        self.floor = ithor.floor_height(name) if table else 0.0
        """Unity's height of the floor."""
        self.named = {name: thing for thing, name in enumerate(scene.things) if self._is_object(thing)}
        """Things by their names."""
        if table:
            records = {self.named[record["name"]]: record for record in table if record["name"] in self.named}
        else:
            records = {thing: self._plain_record(thing) for thing in self.named.values()}
        self.records: dict[int, Record] = records
        self.thing_of = {record["objectId"]: thing for thing, record in records.items()}
        self.states = States(self.records)
        self._origins = {thing: self._origin(thing, record) for thing, record in self.records.items()}
        self._geometry: dict[int, Record] = {}
        self._keys: dict[int, tuple[bytes, float | None]] = {}
        self._rows: dict[int, Record] = {}
        self._positions = np.zeros((0, 3))
        self.parents: dict[int, list[int]] = {}
        """Things that each thing is in or on, the nearest first."""
        there = [thing for thing in range(len(scene.things)) if thing not in scene.absent]
        corners = np.concatenate([scene.corners(thing) for thing in there])
        self.bounds = axis_aligned_box(to_unity(corners, self.floor))
        self._read()

    # How things are now.

    def refresh(self) -> None:
        """Takes over what changed in the scene or in the states."""
        self._read()
        self.states.settle(self.parents)
        for thing, row in self._rows.items():
            row.update(self.states.of(thing))

    def align(self, thing: int) -> None:
        """Lets a thing's rotation be its quaternion's from now on: a hand turns things the way the agent faces."""
        origin, now = self._origins[thing], np.array(self._scene.pose(thing)[3:], float)
        turn = quat_mul(now, _inverse(origin.pose[3:]))
        origin.quaternion = quat_mul(_inverse(turn), now)
        self._keys.pop(thing, None)

    def listing(self, position: np.ndarray, visible: Collection[int], only: Collection[int] | None) -> list[Record]:
        """Rows as an agent at Unity's `position` (3,) sees them; `only` these things, if given."""
        distances = np.linalg.norm(self._positions - position, axis=1).tolist()
        absent = self._scene.absent
        return [
            {**row, "visible": thing in visible, "isInteractable": thing in visible, "distance": distance}
            for (thing, row), distance in zip(self._rows.items(), distances, strict=True)
            if thing not in absent and (only is None or thing in only)
        ]

    def row(self, thing: int) -> Record:
        """A thing's fields that do not depend on an agent."""
        return self._rows[thing]

    def pose_for(self, thing: int, position: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        """The room's pose (7,) that gives a thing Unity's position (3,) and Euler angles (3,)."""
        origin = self._origins[thing]
        turn = quat_mul(quat_from_euler(degrees), _inverse(origin.quaternion))
        offset = matrix_from_quat(turn) @ (origin.pose[:3] - origin.position)
        return np.concatenate([to_room(position, self.floor) + offset, quat_mul(turn, origin.pose[3:])])

    # Inside.

    def _read(self) -> None:
        held = {agent.held for agent in self._scene.agents}
        for thing in self.records:
            self._place(thing)
        self.parents = {thing: [] if thing in held else self._containers(thing) for thing in self.records}
        children = self._children()
        names = {thing: record["objectId"] for thing, record in self.records.items()}
        for thing, record in self.records.items():
            parents = [names[parent] for parent in self.parents[thing]]
            self._rows[thing] = {
                **record,
                **self._geometry[thing],
                **self.states.of(thing),
                "parentReceptacles": parents or None,
                "receptacleObjectIds": [names[child] for child in children[thing]] if record["receptacle"] else None,
                "isPickedUp": thing in held,
                "isMoving": False,
            }
        self._positions = np.array([numbers(row["position"]) for row in self._rows.values()]).reshape(-1, 3)

    def _place(self, thing: int) -> None:
        """Tells where a thing is: in the record's own numbers, if it did not move."""
        pose, openness = np.array(self._scene.pose(thing), float), self._scene.openness(thing)
        key = (pose.tobytes(), openness)
        if self._keys.get(thing) == key:
            return
        self._keys[thing] = key
        origin = self._origins[thing]
        geometry: Record = {} if openness is None else {"openness": openness, "isOpen": openness > 0}
        if self._moved(thing) or openness != origin.openness:
            turn = quat_mul(pose[3:], _inverse(origin.pose[3:]))
            matrix = matrix_from_quat(turn)

            def carried(points: np.ndarray) -> np.ndarray:
                return to_unity(pose[:3] + (points - origin.pose[:3]) @ matrix.T, self.floor)

            geometry["position"] = vector(carried(origin.position))
            geometry["rotation"] = vector(euler_from_quat(quat_mul(turn, origin.quaternion)))
            box = to_unity(self._scene.corners(thing), self.floor)
            if origin.corners is not None:
                corners = carried(origin.corners)
                geometry["objectOrientedBoundingBox"] = {"cornerPoints": corners.tolist()}
                box = box if openness != origin.openness else corners
            geometry["axisAlignedBoundingBox"] = axis_aligned_box(box)
        self._geometry[thing] = geometry

    def _moved(self, thing: int) -> bool:
        return bool(np.abs(self._scene.pose(thing) - self._origins[thing].pose).max() > STILL)

    def _containers(self, thing: int) -> list[int]:
        """What a thing is in or on: as the table has it until it moves."""
        if self._moved(thing):
            return [one for one in self._scene.containers(thing) if one in self.records]
        names = self.records[thing]["parentReceptacles"] or ()
        return [self.thing_of[name] for name in names if name in self.thing_of]

    def _children(self) -> Mapping[int, list[int]]:
        """What is in or on each thing, in the table's order as far as it has one."""
        children: dict[int, list[int]] = {thing: [] for thing in self.records}
        for thing, record in self.records.items():
            for name in record["receptacleObjectIds"] or ():
                child = self.thing_of.get(name)
                if child is not None and child not in self._scene.absent and not self._moved(child):
                    children[thing].append(child)
        for child, parents in self.parents.items():
            for parent in parents:
                if child not in children[parent] and child not in self._scene.absent:
                    children[parent].append(child)
        return children

    def _is_object(self, thing: int) -> bool:
        return self._scene.things[thing] not in STRUCTURE and thing not in self._scene.absent

    def _origin(self, thing: int, record: Record) -> Origin:
        box, corners = record["objectOrientedBoundingBox"], None
        if box and record["objectType"] in GOALS:
            corners = self._scene.corners(thing)  # They have the game's shapes, not the table's.
        elif box:
            corners = to_room(np.array(box["cornerPoints"]), self.floor)
        return Origin(
            np.array(self._scene.pose(thing), float),
            self._scene.openness(thing),
            to_room(numbers(record["position"]), self.floor),
            quat_from_euler(numbers(record["rotation"])),
            corners,
        )

    def _plain_record(self, thing: int) -> Record:
        """A record of a thing that AI2-THOR does not have."""
        name, pose = self._scene.things[thing], self._scene.pose(thing)
        kind, position = type_of(name), vector(to_unity(pose[:3]))
        openness = self._scene.openness(thing)
        return {
            "name": name, "objectId": object_id(kind, position), "objectType": kind, "assetId": "",
            "position": position, "rotation": vector(euler_from_quat(pose[3:])), **dict.fromkeys(FLAGS, False),
            "openable": openness is not None, "openness": openness or 0.0, "isOpen": bool(openness),
            "receptacle": openness is not None, "receptacleObjectIds": None, "parentReceptacles": None,
            "controlledObjects": None, "fillLiquid": None, "temperature": "RoomTemp", "salientMaterials": None,
            "mass": 0.0, "axisAlignedBoundingBox": axis_aligned_box(to_unity(self._scene.corners(thing))),
            "objectOrientedBoundingBox": None,
        }  # fmt: skip


def type_of(name: str) -> str:
    """A thing's type from its name: `Drawer_3` is a Drawer."""
    return name.split("_")[0]


def axis_aligned_box(points: np.ndarray) -> Record:
    """The box around points (n, 3) of Unity's, as metadata has it."""
    low, high = points.min(0), points.max(0)
    center, size = (low + high) / 2, high - low
    return {"cornerPoints": (center + CORNERS * size).tolist(), "center": vector(center), "size": vector(size)}


def _inverse(quaternion: np.ndarray) -> np.ndarray:
    return quaternion * [1, -1, -1, -1]
