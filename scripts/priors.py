"""Computes the generator's priors from the table of objects: `python scripts/priors.py ithor_objects.csv`.

The table lists the objects of AI2-THOR's 120 rooms (type, pose, box, what is inside what): facts taken from the
Apache-2.0 `procthor` package. The priors hold, for each room type and object type, the share of rooms that have it, the
quantiles of its count and of its size in its own frame, and what it stands on.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).parent.parent / "src/scrubjay/rooms/generate/priors.json"
SOURCE = "Facts of the objects in AI2-THOR's 120 rooms, taken from the Apache-2.0 procthor package."
ROOM_TYPES = {0: "kitchen", 2: "living_room", 3: "bedroom", 4: "bathroom"}
QUANTILES = (0.1, 0.5, 0.9)
SHELL = ("Floor",)


def room_type(scene: str) -> str:
    """FloorPlan12 is a kitchen, FloorPlan212 a living room."""
    return ROOM_TYPES[int(scene.removeprefix("FloorPlan")) // 100]


def own_size(record: dict[str, str]) -> tuple[float, float, float] | None:
    """Width, depth and height at yaw 0; None for records at an oblique yaw, whose box is not the object's."""
    yaw = float(record["yaw"]) % 90
    if min(yaw, 90 - yaw) > 10:
        return None
    width, depth, height = (float(record[key]) for key in ("size_x", "size_z", "size_y"))
    return (depth, width, height) if 45 < float(record["yaw"]) % 180 < 135 else (width, depth, height)


def sizes_of(records: list[dict[str, str]], everywhere: list[dict[str, str]]) -> list[tuple[float, float, float]]:
    """A type's sizes in the rooms of one type; if all are oblique, in all rooms, else from its boxes."""
    for candidates in (records, everywhere):
        if straight := [size for record in candidates if (size := own_size(record))]:
            return straight
    boxes = [tuple(float(record[key]) for key in ("size_x", "size_z", "size_y")) for record in everywhere]
    return [(0.8 * width, 0.8 * depth, height) for width, depth, height in boxes]


def prior(records: list, everywhere: list, types: dict[tuple[str, str], str], rooms: int) -> dict:
    """Statistics of one object type in the rooms of one type."""
    per_room = Counter(record["scene"] for record in records)
    sizes = sizes_of(records, everywhere)
    parents = Counter(
        types[record["scene"], record["inside"].split()[0]] if record["inside"] else "Wall" for record in records
    )
    return {
        "share": round(len(per_room) / rooms, 3),
        "count": [int(q) for q in np.quantile(list(per_room.values()), QUANTILES)],
        "size": np.maximum(np.quantile(sizes, QUANTILES, axis=0), 0.004).round(3).tolist(),
        "on": {parent: round(n / len(records), 2) for parent, n in sorted(parents.items()) if n / len(records) > 0.05},
    }


def main(table: str) -> None:
    with open(table, newline="") as file:
        records = list(csv.DictReader(file))
    types = {(record["scene"], record["index"]): record["type"] for record in records}
    groups: dict[str, dict[str, list]] = defaultdict(lambda: defaultdict(list))
    scenes: dict[str, set[str]] = defaultdict(set)
    for record in records:
        kind = room_type(record["scene"])
        scenes[kind].add(record["scene"])
        if record["type"] not in SHELL:
            groups[kind][record["type"]].append(record)
    rooms = {
        kind: {
            name: prior(members, [r for r in records if r["type"] == name], types, len(scenes[kind]))
            for name, members in sorted(by_type.items())
        }
        for kind, by_type in groups.items()
    }
    lines = ",\n".join(
        f' "{kind}": {{\n' + ",\n".join(f'  "{n}": {json.dumps(p)}' for n, p in by_type.items()) + "\n }"
        for kind, by_type in rooms.items()
    )
    OUTPUT.write_text(f'{{\n "source": {json.dumps(SOURCE)},\n{lines}\n}}\n')


if __name__ == "__main__":
    main(sys.argv[1])
