"""Loads a synthetic room of many meshes in MolmoSpaces' form, and measures what that and its pictures take.

    python scripts/molmospaces_speed.py --meshes 1000

Each of its chests is four meshes of 300 to 1,200 triangles along a wall; every fifth chest opens.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from molmospaces_miniature import Miniature, collider, miniature, visual

from scrubjay.rooms.catalog.mesh import ellipsoid
from scrubjay.sim.molmospaces import load_molmospaces
from scrubjay.sim.world import World

TEXTURES, TEXELS = 60, 1024
PER_THING = 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--meshes", type=int, default=1000)
    meshes = parser.parse_args().meshes
    with tempfile.TemporaryDirectory() as folder:
        path = synthetic_room(Path(folder), meshes)
        start = time.process_time()
        room = load_molmospaces(path)
        seconds = time.process_time() - start
        geoms, faces = room.visual_geoms, int(room.model.mesh_facenum.sum())
        print(f"{meshes} meshes: loaded in {seconds:.1f} s of CPU time: {geoms} visual geoms, {faces} triangles, "
              f"{len(room.openables)} openables, {len(room.floor.reachable())} positions")  # fmt: skip
        for renderer in ("opengl", "warp"):
            for kinds in (("rgb",), ("rgb", "depth", "ids")):
                print(f"{renderer:7} {'+'.join(kinds):15} {frames_per_second(room, renderer, kinds):6.1f} frames/s")


def frames_per_second(room, renderer: str, kinds: tuple[str, ...], count: int = 60) -> float:
    """By the fastest tenth of pictures of 224 x 224 from random positions, since other programs may be running."""
    with World([room], renderer=renderer) as world:
        rng, positions = np.random.default_rng(0), world.reachable[0].positions
        world.view(kinds)
        seconds = []
        for _ in range(count):
            world.state.position[0] = positions[rng.integers(len(positions))]
            world.state.rotation[0] = 90.0 * rng.integers(4)
            start = time.perf_counter()
            world.view(kinds)
            seconds.append(time.perf_counter() - start)
        return 1 / float(np.quantile(seconds, 0.1))


def synthetic_room(folder: Path, meshes: int) -> Path:
    """Writes a room with so many meshes besides the miniature's."""
    room, rng = miniature(folder), np.random.default_rng(0)
    path = room.write()
    for number in range(TEXTURES):
        pixels = rng.integers(0, 255, (TEXELS // 64, TEXELS // 64, 3), np.uint8).repeat(64, 0).repeat(64, 1)
        Image.fromarray(pixels).save(folder / f"objects/thor/Textures/t{number}.png")
        room.material(f"m{number}", "1 1 1", f"t{number}")
    for thing in range(meshes // PER_THING):
        _add_chest(room, thing, rng)
    room.write()
    return path


def _add_chest(room: Miniature, number: int, rng: np.random.Generator) -> None:
    """Four soft boxes on one another, along the walls and above them."""
    side, along, level = number % 2, rng.uniform(-1.8, 1.8), rng.uniform(0.1, 2.2)
    parts = []
    for k in range(PER_THING):
        name = f"chest{number}_{k}"
        shape = ellipsoid((0.05, 0.04, 0.03), int(rng.integers(16, 32)), int(rng.integers(10, 20)), 0.3)
        place = room.scene.parent / f"../../objects/thor/{name}.obj"
        lines = [f"v {x:.5f} {z:.5f} {y:.5f}" for x, y, z in shape.vertices]
        lines += [f"vt {u:.4f} {v:.4f}" for u, v in shape.uv * 10]
        lines += [f"vn {x:.4f} {z:.4f} {y:.4f}" for x, y, z in shape.normals]
        lines += ["f " + " ".join(f"{i}/{i}/{i}" for i in face[::-1] + 1) for face in shape.faces]
        place.write_text("\n".join(lines))
        room.assets.append(f'<mesh name="{name}" file="../../objects/thor/{name}.obj" scale="1 1 -1"/>')
        solid = collider("__DYNAMIC_MJT__", -0.05, -0.04, -0.03, 0.05, 0.04, 0.03)
        joint = '<joint type="hinge" axis="0 0 1" pos="0.05 0 0" range="0 1.5"/>' if k == 0 and number % 5 == 0 else ""
        material = f"m{int(rng.integers(TEXTURES))}"
        parts.append(f'<body pos="0 0 {0.06 * k}">{joint}{visual(name, material)}{solid}</body>')
    y = -1.4 if side else 1.4
    room.add(
        f"chest_{number}", "Cabinet", f'<body name="chest_{number}" pos="{along} {y} {level}">{"".join(parts)}</body>'
    )


if __name__ == "__main__":
    main()
