"""One scene of AI2-THOR behind its client: a controller, what it last said, and its words in ours.

The `ai2thor` package is imported when a scene is made. It starts Unity, or whatever executable it is given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from scrubjay.errors import ThorError
from scrubjay.rooms.floor import GRID, distance
from scrubjay.rooms.ithor import floor_plan
from scrubjay.sim.pose import FIELD_OF_VIEW, PITCH, REACH, AgentPose
from scrubjay.thor.coordinates import euler_from_quat, numbers, quat_from_euler, to_room, to_unity, vector
from scrubjay.thor.remote_room import Record, RemoteRoom, remote_room

QUALITY = "Very Low"
MAX_WAITS = 50
"""Actions for which a dropped object may take to come to rest."""
MAX_POSITIONS = 10_000
SAME_ANGLE = 1e-4
"""Degrees; AI2-THOR's rotations are 32-bit floats."""
NORMAL = 127.5
"""Normals from -1 to 1 are bytes from 0 to 255."""


class RemoteScene:
    """A scene with one agent, in which no goal object is until one is picked up or placed."""

    def __init__(self, scene: str, size: int, normals: bool = False, executable: str | None = None) -> None:
        """`executable` is started in place of AI2-THOR's own build; it needs no display."""
        plan, controller = floor_plan(scene), _controller_class()
        arguments: dict[str, Any] = {"local_executable_path": executable} if executable else {}
        if executable and "DISPLAY" not in os.environ:
            arguments["x_display"] = "0"  # The client insists on one; an engine without windows ignores it.
        try:
            self._controller = controller(
                scene=plan, width=size, height=size, fieldOfView=FIELD_OF_VIEW, gridSize=GRID,
                snapToGrid=False, visibilityDistance=REACH, renderDepthImage=True, renderInstanceSegmentation=True,
                renderNormalsImage=normals, quality=QUALITY, **arguments,
            )  # fmt: skip
        except Exception as error:  # Missing builds, displays and libraries: the client has an exception for each.
            words = str(error).strip().splitlines() or [type(error).__name__]
            raise ThorError(f"AI2-THOR did not start: {words[0]}") from error
        self.size, self.normals = size, normals
        self.room: RemoteRoom = remote_room(
            scene, self.metadata["objects"], self.metadata["sceneBounds"], self._reachable
        )

        for name in self.room.surplus:
            self.do("DisableObject", objectId=name)

        self.teleport(self.pose)

    @property
    def event(self) -> Any:
        """What the client returned last."""
        return self._controller.last_event

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self.event.metadata

    @property
    def error(self) -> str:
        """Why the last action failed."""
        return self.metadata["errorMessage"]

    def attempt(self, action: str, **arguments: Any) -> bool:
        """Takes an action; did it succeed?"""
        try:
            return bool(self._controller.step(action, **arguments).metadata["lastActionSuccess"])
        except (ValueError, RuntimeError, TimeoutError) as error:
            raise ThorError(f"AI2-THOR cannot do {action}: {error}") from error

    def do(self, action: str, **arguments: Any) -> None:
        """Takes an action that must succeed."""
        if not self.attempt(action, **arguments):
            raise ThorError(f"AI2-THOR refused {action} in {self.room.room.scene}: {self.error}")

    def close(self) -> None:
        self._controller.stop()

    # The agent.

    @property
    def pose(self) -> AgentPose:
        """Where the agent is."""
        agent = self.metadata["agent"]
        x, y = float(agent["position"]["x"]), float(agent["position"]["z"])
        rotation = round(float(agent["rotation"]["y"]) / SAME_ANGLE) * SAME_ANGLE % 360
        return AgentPose(x, y, round(rotation, 4), bool(agent["isStanding"]))

    def teleport(self, pose: AgentPose, force: bool = True) -> bool:
        """Puts the agent somewhere, looking down as in our own worlds; with `force` also where it does not fit."""
        height = self.metadata["agent"]["position"]["y"]
        return self.attempt(
            "TeleportFull",
            position={"x": float(pose.x), "y": height, "z": float(pose.y)},
            rotation={"x": 0.0, "y": float(pose.rotation), "z": 0.0},
            horizon=PITCH,
            standing=bool(pose.standing),
            forceAction=force,
        )

    def _reachable(self, start: np.ndarray, angle: float) -> np.ndarray:
        """Positions (n, 2) that can be reached with everything closed; see `remote_room`."""
        here, opened = self.pose, np.flatnonzero(self.is_open()).tolist()
        for number in opened:
            self.set_open(number, False)
        x, y = np.where(np.isnan(start), here[:2], start).tolist()
        there = self.teleport(AgentPose(x, y, angle, True), force=False)
        if there:
            self.do("GetReachablePositions", gridSize=GRID, maxStepCount=MAX_POSITIONS, directionsRelativeAgent=True)
            points = [[position["x"], position["z"]] for position in self.metadata["actionReturn"]]
        self.teleport(here)
        for number in opened:
            self.set_open(number, True)
        if not there:
            raise ValueError(f"no body can stand at ({x:.2f}, {y:.2f})")
        return np.array(points, float).reshape(-1, 2)

    # Objects.

    def record(self, name: str) -> Record:
        """An object's metadata."""
        found = next((record for record in self.metadata["objects"] if record["objectId"] == name), None)
        if found is None:
            raise ThorError(f"{name} is not in {self.room.room.scene} any more")
        return found

    def is_open(self) -> np.ndarray:
        """Which openables are open, (n,) bool."""
        opened = {record["objectId"] for record in self.metadata["objects"] if record["isOpen"]}
        return np.array([name in opened for name in self._openable_names()], bool)

    def open(self, number: int, to_open: bool = True) -> bool:
        """Opens or closes an openable, seen or not."""
        name = self._openable_names()[number]
        return self.attempt("OpenObject" if to_open else "CloseObject", objectId=name, forceAction=True)

    def set_open(self, number: int, to_open: bool) -> None:
        """Opens or closes an openable even if the agent is in its way: it steps aside meanwhile."""
        if self.open(number, to_open):
            return
        here, name = self.pose, self._openable_names()[number]
        x, _, y = numbers(self.record(name)["position"])
        points = self.room.floor.reachable().positions
        aside = points[np.linalg.norm(points - [x, y], axis=1).argmax()]
        self.teleport(here._replace(x=float(aside[0]), y=float(aside[1])))
        done, error = self.open(number, to_open), self.error
        self.teleport(here)
        if not done:
            raise ThorError(f"AI2-THOR refused to {'open' if to_open else 'close'} {name}: {error}")

    def distances(self) -> np.ndarray:
        """Horizontal distances from the agent to the openables' moving parts, (n,)."""
        here = np.array(self.pose[:2])
        return np.array([distance(here, parts).min() for parts in self.room.parts])

    def object_pose(self, kind: str) -> np.ndarray:
        """A goal object's center and quaternion, (7,)."""
        record = self.record(self.room.goal(kind))
        corners = np.array(record["objectOrientedBoundingBox"]["cornerPoints"], float)
        center = to_room(corners.mean(0), self.room.height)
        return np.concatenate([center, quat_from_euler(numbers(record["rotation"]))])

    def pick_up(self, kind: str) -> bool:
        """Puts a goal object into the hand, wherever it is."""
        name = self.room.goal(kind)
        if self.metadata["inventoryObjects"]:
            self.do("DropHeldObject", forceAction=True)
        self.do("EnableObject", objectId=name)
        return self.attempt("PickupObject", objectId=name, forceAction=True, manualInteract=False)

    def place(self, kind: str, pose: np.ndarray) -> None:
        """Puts a goal object to a pose (7,)."""
        name = self.room.goal(kind)
        if self.metadata["inventoryObjects"]:
            self.do("DropHeldObject", forceAction=True)
        self.do("EnableObject", objectId=name)
        # AI2-THOR's position is not the box's center: turn the object first, then move it by what is missing.
        degrees = vector(euler_from_quat(pose[3:]))
        for _ in range(2):
            record, now = self.record(name), self.object_pose(kind)
            position = numbers(record["position"]) + to_unity(pose[:3] - now[:3])
            self.do(
                "TeleportObject", objectId=name, position=vector(position), rotation=degrees, forceAction=True,
                forceKinematic=True,
            )  # fmt: skip

    def drop(self) -> bool:
        """Lets go, and waits until nothing moves."""
        if not self.attempt("DropHeldObject", forceAction=True):
            return False
        for _ in range(MAX_WAITS):
            if self.metadata["isSceneAtRest"]:
                break
            self.do("Pass")
        return True

    def remove(self, kind: str) -> None:
        """Takes a goal object out of the scene."""
        if self.metadata["inventoryObjects"]:
            self.do("DropHeldObject", forceAction=True)
        self.do("DisableObject", objectId=self.room.goal(kind))

    def containing(self, kind: str) -> int:
        """The id of the smallest thing that a goal object lies in, with its center, -1 for none."""
        parents = self.record(self.room.goal(kind))["parentReceptacles"] or ()
        height = self.object_pose(kind)[2]
        inside = [
            record
            for record in self.metadata["objects"]
            if record["objectId"] in parents and height <= self.room.tops.get(record["objectId"], -np.inf)
        ]
        smallest = min(inside, key=lambda one: numbers(one["axisAlignedBoundingBox"]["size"]).prod(), default=None)
        return -1 if smallest is None else int(self.room.id_of([smallest["objectId"]])[0])

    def _openable_names(self) -> list[str]:
        return [self.room.objects[openable.thing] for openable in self.room.openables]

    # Pictures.

    def pictures(self, kinds: tuple[str, ...], matrix: np.ndarray) -> dict[str, np.ndarray]:
        """Images of what the agent sees, as a `View` has them; `matrix` (3, 3) is its camera's."""
        event, images = self.event, {}
        for kind in kinds:
            if kind == "rgb":
                images[kind] = np.ascontiguousarray(event.frame)
            elif kind == "depth":
                images[kind] = np.ascontiguousarray(event.depth_frame, np.float32)
            elif kind == "ids":
                images[kind] = self._ids(event.instance_segmentation_frame, event.color_to_object_id)
            else:
                images[kind] = normals_in_room(event.normals_frame[..., :3], matrix)
        return images

    def only(self, kind: str) -> None:
        """Draws nothing but a goal object, until `everything`."""
        self.do("HideAllObjects")
        self.do("UnhideObject", objectId=self.room.goal(kind))

    def everything(self) -> None:
        """Draws everything again."""
        self.do("UnhideAllObjects")

    def _ids(self, frame: np.ndarray, names: Mapping[tuple[int, ...], str]) -> np.ndarray:
        return ids_of_colors(frame, list(names), self.room.id_of(list(names.values())))


def ids_of_colors(frame: np.ndarray, colors: list[tuple[int, ...]], ids: np.ndarray) -> np.ndarray:
    """Things' ids (height, width) int16 of an image of their colors (height, width, 3); 1, the walls, for others."""
    weights = np.array([1 << 16, 1 << 8, 1])
    known = np.array(colors, int).reshape(-1, 3) @ weights
    order = np.argsort(known)
    packed = frame.astype(int) @ weights
    at = np.minimum(np.searchsorted(known[order], packed), len(known) - 1)
    found = known[order][at] == packed
    return np.where(found, ids[order][at], 1).astype(np.int16)


def normals_in_room(frame: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Unit normals (height, width, 3) float32 in the room's frame.

    `frame` has them in the camera's, right, up and towards it, as bytes; `matrix` is the camera's.
    """
    local = frame.astype(np.float32) / NORMAL - 1
    local /= np.maximum(np.linalg.norm(local, axis=-1, keepdims=True), 1e-6)
    return (local @ matrix.T).astype(np.float32)


def _controller_class() -> Any:
    try:
        from ai2thor.controller import Controller
    except ImportError as error:
        raise ThorError(
            "worlds on AI2-THOR need its client, which is not installed: pip install 'scrubjay[thor-client]'"
        ) from error
    return Controller
