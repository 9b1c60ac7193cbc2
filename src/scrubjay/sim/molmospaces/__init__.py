"""MolmoSpaces' rooms: AI2-THOR's household rooms as MJCF files, from a folder of the user's.

MuJoCo compiles a scene once, and its geoms, with everything closed, become shapes like the catalog's. From there on it
is a room like any other. None of these rooms is part of this package: they are Ai2's, published under CC BY 4.0
(https://github.com/allenai/molmospaces).
"""

from __future__ import annotations

import os
from pathlib import Path

import mujoco

from scrubjay.errors import RoomError
from scrubjay.rooms.molmospaces import PREFIX
from scrubjay.sim.compile import CompiledRoom, compile_shapes
from scrubjay.sim.molmospaces.files import SceneFiles, read_scene
from scrubjay.sim.molmospaces.scene import Scene

MAX_OPENABLES = 256
"""More than a household has; rays pass through each that is open."""


def load_molmospaces(path: str | os.PathLike[str]) -> CompiledRoom:
    """Loads a room from a scene's MJCF file, with its metadata beside it.

    Its name is `molmospaces:` and the path. Raises RoomError for files that are missing or broken, that name others
    outside their collection, or that are no room.
    """
    files = read_scene(Path(path))
    model = _compile(Path(path), files)
    try:
        room, shapes, carriers, looks = Scene(model, files, f"{PREFIX}{os.fspath(path)}").room_and_shapes()
        openables = sum(shape.openable for shape in shapes)
        if openables > MAX_OPENABLES:
            raise RoomError(f"{path}: {openables} of its things open, and a room may have {MAX_OPENABLES} that do")
        compiled = compile_shapes(room, shapes, carriers, looks)
        compiled.floor.reachable()
    except RoomError:
        raise
    except ValueError as error:
        raise RoomError(f"{path}: no room can be made of it: {error}") from error
    return compiled


def _compile(path: Path, files: SceneFiles) -> mujoco.MjModel:
    try:
        return mujoco.MjSpec.from_string(files.mjcf, assets=files.meshes).compile()
    except ValueError as error:
        raise RoomError(f"{path}: MuJoCo cannot compile it: {' '.join(str(error).split())}") from error
