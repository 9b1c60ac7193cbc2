"""Writes where agents start in iTHOR's rooms: `python scripts/ithor_starts.py procthor-0.0.1.dev2-py3-none-any.whl`.

The wheel (`pip download --no-deps procthor`, Apache-2.0) has no agents, but how far each object is from the agent at
the start, and whether it is visible. The distances give the position to a millimeter. The rotation is the one of four
from which our room shows most nearly the same objects. Cameras start level or look down by 30 degrees: only then they
see the floor within 1.5 m.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import numpy as np

from scrubjay.files import write_atomically
from scrubjay.rooms import ithor
from scrubjay.thor.scene import Scene

OUTPUT = Path(__file__).parent.parent / "src/scrubjay/thor/starts.json"
SOURCE = "procthor/databases/ai2thor-object-metadata.json"
FIRST = {"kitchens": 1, "living_rooms": 201, "bedrooms": 301, "bathrooms": 401}
"""The number of the first floor plan in each of the wheel's lists."""
ROTATIONS, DOWN = (0, 90, 180, 270), 30
VISIBILITY = 1.5
"""Meters within which AI2-THOR counts objects as visible."""


def position(records: list[dict]) -> np.ndarray:
    """The point (x, y, z) that has the objects' distances, by least squares."""
    points = np.array([[record["position"][axis] for axis in "xyz"] for record in records])
    distances = np.array([record["distance"] for record in records])
    here = points.mean(0)
    for _ in range(50):
        away = here - points
        length = np.linalg.norm(away, axis=1)
        here = here - np.linalg.lstsq(away / length[:, None], length - distances, rcond=None)[0]
    if (worst := np.abs(length - distances).max()) > 1e-3:
        raise SystemExit(f"the distances agree to {worst:.3f} m only")
    return here


def likeness(scene: Scene, names: dict[str, str], seen: set[str], horizon: int) -> list[float]:
    """How nearly the objects that an agent sees are those of the wheel, by rotation: intersection over union."""
    body, shares = scene.agents[0], []
    for rotation in ROTATIONS:
        scene.teleport(0, body.position, rotation, horizon, True, force=True)
        ours = {names[scene.things[thing]] for thing in scene.visible(0, VISIBILITY) if scene.things[thing] in names}
        shares.append(len(ours & seen) / max(len(ours | seen), 1))
    return shares


def start(name: str, records: list[dict]) -> list[float]:
    """x, z, rotation and horizon of a room's agent."""
    x, _, z = position(records).round(3) + 0.0
    names = {record["name"]: record["objectId"] for record in records}
    seen = {record["objectId"] for record in records if record["visible"]}
    horizon = DOWN if any(one.startswith("Floor|") for one in seen) else 0
    scene = Scene(ithor.ithor_room(name, goals=True))
    scene.agents[0].position = np.array([x, z])
    shares = np.array(likeness(scene, names, seen, horizon))
    best = shares == shares.max()
    if best.sum() > 1:
        print(f"{name}: {best.sum()} rotations are as likely, with {len(seen)} objects visible")
    return [float(x), float(z), ROTATIONS[int(best.argmax())], horizon]


def main(wheel: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        groups = json.loads(archive.read(SOURCE))
    starts = {
        f"FloorPlan{number}": start(f"FloorPlan{number}", records)
        for group, first in FIRST.items()
        for number, records in enumerate(groups[group], first)
    }
    lines = ",\n".join(f'"{name}": {json.dumps(values)}' for name, values in starts.items())
    write_atomically(OUTPUT, f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1])
