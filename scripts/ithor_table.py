"""Writes the table of iTHOR's objects: `python scripts/ithor_table.py procthor-0.0.1.dev2-py3-none-any.whl`.

The wheel (`pip download --no-deps procthor`, Apache-2.0) lists what AI2-THOR reports about every object of its 120
iTHOR rooms. The table keeps the facts about the objects and leaves out what depends on an agent (distance, visibility).
Numbers are 32-bit floats in the wheel and keep every bit; boxes are kept without the corners that follow from others.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).parent.parent / "src/scrubjay/rooms/ithor/objects.zip"
SOURCE = "procthor/databases/ai2thor-object-metadata.json"
FIRST = {"kitchens": 1, "living_rooms": 201, "bedrooms": 301, "bathrooms": 401}
"""The number of the first floor plan in each of the wheel's lists."""
TEXTS = ("name", "objectId", "objectType", "assetId")
VALUES = ("mass", "openness", "temperature", "fillLiquid", "salientMaterials")
LINKS = ("parentReceptacles", "receptacleObjectIds", "controlledObjects")
OF_AN_AGENT = ("distance", "visible", "isInteractable", "isMoving", "isPickedUp")
INDEPENDENT_CORNERS = (0, 1, 3, 4)
"""The corner of an oriented box from which the other three lead along its edges."""


def shortest(value: float) -> float:
    """The decimal with the fewest digits that is the same 32-bit float."""
    return float(str(np.float32(value)))


def vector(value: dict[str, float]) -> list[float]:
    return [shortest(value[axis]) for axis in "xyz"]


def row(record: dict, numbers: dict[str, int]) -> dict:
    """A record of the wheel in the table's form; it names other objects of the room by their number."""
    box, oriented = record["axisAlignedBoundingBox"], record["objectOrientedBoundingBox"]
    flags = [key for key, value in sorted(record.items()) if isinstance(value, bool) and key not in OF_AN_AGENT]
    compact = {key: record[key] for key in TEXTS}
    compact |= {key: vector(record[key]) for key in ("position", "rotation")}
    compact |= {"center": vector(box["center"]), "size": vector(box["size"])}
    if oriented is not None:
        compact["corners"] = [[shortest(v) for v in oriented["cornerPoints"][k]] for k in INDEPENDENT_CORNERS]
    compact["true"] = [key for key in flags if record[key]]
    compact |= {key: shortest(v) if isinstance(v := record[key], float) else v for key in VALUES}
    return compact | {key: record[key] and [numbers[name] for name in record[key]] for key in LINKS}


def main(wheel: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        groups = json.loads(archive.read(SOURCE))
    with zipfile.ZipFile(OUTPUT, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as table:
        for group, first in FIRST.items():
            for number, records in enumerate(groups[group], first):
                numbers = {record["objectId"]: k for k, record in enumerate(records)}
                text = json.dumps([row(record, numbers) for record in records], separators=(",", ":"))
                entry = zipfile.ZipInfo(f"FloorPlan{number}.json")  # Dated 1980, so that the file is reproducible.
                table.writestr(entry, text, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main(sys.argv[1])
