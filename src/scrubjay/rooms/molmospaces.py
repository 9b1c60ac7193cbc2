"""Names of MolmoSpaces rooms: `molmospaces:` and the path of a scene's MJCF file.

Their files are a physics engine's, so that they are loaded in `sim/molmospaces`.
"""

from __future__ import annotations

import re
from pathlib import Path

from scrubjay.errors import RoomError

PREFIX = "molmospaces:"
TYPES = {0: "kitchen", 2: "living_room", 3: "bedroom", 4: "bathroom"}
"""Room types by the hundreds of iTHOR's numbers."""


def scene_path(scene: str) -> Path:
    """The MJCF file that a name ends with; RoomError if there is none."""
    path = Path(scene.removeprefix(PREFIX))
    if not path.is_file():
        raise RoomError(f"{scene}: there is no such file; write {PREFIX} and the path of a scene's .xml")
    return path


def room_type(scene: str) -> str:
    """The type of an iTHOR room by its number, as in `FloorPlan301_physics.xml`; any other counts as a living room."""
    number = re.match(r"FloorPlan(\d{1,3})_", Path(scene.removeprefix(PREFIX)).name)
    return TYPES.get(int(number[1]) // 100, "living_room") if number else "living_room"
