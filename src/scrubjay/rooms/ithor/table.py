"""The table of the objects in AI2-THOR's 120 iTHOR rooms, and their records as AI2-THOR's metadata has them.

The facts are from the Apache-2.0 `procthor` package; `scripts/ithor_table.py` writes the table. A record is what
`event.metadata["objects"]` lists at the start of an episode, less what depends on an agent.
"""

from __future__ import annotations

import json
import re
import zipfile
from importlib.resources import files
from typing import Any

import numpy as np

from scrubjay.errors import RoomError
from scrubjay.rooms.room import ITHOR

ROOM_TYPES = {0: "kitchen", 2: "living_room", 3: "bedroom", 4: "bathroom"}
"""Room types by the hundreds of a floor plan's number."""
FLOOR_PLANS: tuple[str, ...] = tuple(
    f"FloorPlan{100 * hundreds + number}" for hundreds in ROOM_TYPES for number in range(1, 31)
)
"""AI2-THOR's names of the rooms."""
ITHOR_SCENES: tuple[str, ...] = tuple(ITHOR + name for name in FLOOR_PLANS)
"""Our names of the rooms."""
FLAGS = (
    "breakable", "canBeUsedUp", "canFillWithLiquid", "cookable", "dirtyable", "isBroken", "isColdSource", "isCooked",
    "isDirty", "isFilledWithLiquid", "isHeatSource", "isOpen", "isSliced", "isToggled", "isUsedUp", "moveable",
    "openable", "pickupable", "receptacle", "sliceable", "toggleable",
)  # fmt: skip
LINKS = ("parentReceptacles", "receptacleObjectIds", "controlledObjects")
"""Fields that name other objects; the table has their numbers."""
CORNERS = np.array([[x, y, z] for x in (1, -1) for y in (1, -1) for z in (1, -1)])
"""An axis-aligned box's corners in AI2-THOR's order, in half sizes from its center."""
EDGES = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))
"""An oriented box's corners in AI2-THOR's order, in edges from the first one."""

Record = dict[str, Any]


def floor_plan(scene: str) -> str:
    """AI2-THOR's name of a room, from that name or ours; RoomError if it is neither."""
    name = scene.removeprefix(ITHOR)
    if name not in FLOOR_PLANS:
        raise RoomError(
            f"unknown scene {scene!r}; iTHOR's rooms are {ITHOR}FloorPlan1 to 30, 201 to 230, 301 to 330 and 401 to 430"
        )
    return name


def room_type(scene: str) -> str:
    """The type of a room: FloorPlan28 is a kitchen, FloorPlan228 a living room."""
    return ROOM_TYPES[int(re.sub(r"\D", "", floor_plan(scene))) // 100]


def objects(scene: str) -> tuple[Record, ...]:
    """The records of a room's objects, in AI2-THOR's order. Positions are Unity's: x east, y up, z north."""
    entry = f"{floor_plan(scene)}.json"
    with (files(__package__) / "objects.zip").open("rb") as file, zipfile.ZipFile(file) as table:
        rows = json.loads(table.read(entry))
    return tuple(_record(row, rows) for row in rows)


def _record(row: Record, rows: list[Record]) -> Record:
    record = {key: row[key] for key in ("name", "objectId", "objectType", "assetId")}
    record |= {key: _vector(row[key]) for key in ("position", "rotation")}
    record |= {flag: flag in row["true"] for flag in FLAGS}
    record |= {key: row[key] for key in ("openness", "fillLiquid", "temperature", "salientMaterials")}
    record["mass"] = _float32(row["mass"])
    record |= {key: row[key] and [rows[number]["objectId"] for number in row[key]] for key in LINKS}
    center, size = (np.array(row[key], np.float32) for key in ("center", "size"))
    corners = (center + CORNERS * size / 2).astype(np.float32).astype(float).tolist()
    record["axisAlignedBoundingBox"] = {
        "center": _vector(row["center"]), "size": _vector(row["size"]), "cornerPoints": corners
    }  # fmt: skip
    record["objectOrientedBoundingBox"] = _oriented(row["corners"]) if "corners" in row else None
    return record


def _oriented(corners: list[list[float]]) -> dict[str, list[list[float]]]:
    """An oriented box from one corner and the three beside it."""
    given = np.array(corners, np.float32)
    points = given[0] + np.array(EDGES) @ (given[1:] - given[0])
    return {"cornerPoints": points.astype(np.float32).astype(float).tolist()}


def _vector(values: list[float]) -> dict[str, float]:
    return {axis: _float32(value) for axis, value in zip("xyz", values, strict=True)}


def _float32(value: float) -> float:
    """The 32-bit float whose shortest decimal the table has, as AI2-THOR's client returns it."""
    return float(np.float32(value))
