"""A small room in the form of MolmoSpaces' files, written to a folder: MJCF, metadata, OBJ meshes and a PNG texture.

The floor is 4 m by 3 m about the origin. In meters, x east, y north:

- a table, 0.6 to 1.4 by 0.23 to 0.83, its top at 0.75, with a mug, a laptop and a tomato on it,
- a fridge in the north-west, -1.95 to -1.25 by 0.8 to 1.45, 1.6 high; its door, 5 cm before it, is hung in the west,
- a drawer at the north wall, -0.03 to 0.47 by 1.05 to 1.45, 0.6 to 0.8 high, with a spoon in it; it slides by 0.4.

Like MolmoSpaces' meshes, those here have y up and z mirrored, which `scale` and `quat` undo.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

SCENE = "FloorPlan1_physics"
DOOR_ANGLE, DRAWER_TRAVEL, LID_ANGLE = 1.5708, 0.4, 1.5708
TABLE, FRIDGE, DOOR, DRAWER = (
    (0.6, 0.23, 1.4, 0.83), (-1.95, 0.8, -1.25, 1.45), (-1.95, 0.75, -1.25, 0.8), (-0.03, 1.05, 0.47, 1.45)
)  # fmt: skip
"""West, south, east and north ends."""

DEFAULTS = """
  <default>
    <default class="/">
      <default class="__VISUAL_MJT__"><geom contype="0" conaffinity="0" group="0" mass="1e-08"/></default>
      <default class="__STRUCTURAL_MJT__"><geom contype="8" conaffinity="15" group="4"/></default>
      <default class="__STRUCTURAL_WALL_MJT__"><geom contype="8" conaffinity="15" group="3"/></default>
      <default class="__DYNAMIC_MJT__"><geom conaffinity="15" group="4"/></default>
      <default class="__ARTICULABLE_DYNAMIC_MJT__"><geom contype="0" conaffinity="7" group="4"/></default>
    </default>
  </default>"""
VISUAL, STRUCTURAL, WALL, DYNAMIC, ARTICULABLE = (
    f"__{name}_MJT__" for name in ("VISUAL", "STRUCTURAL", "STRUCTURAL_WALL", "DYNAMIC", "ARTICULABLE_DYNAMIC")
)
UPRIGHT = 'quat="0.70710678 0.70710678 0 0"'
"""Turns a mesh with y up so that z is."""


class Miniature:
    """Collects a scene's assets and bodies, and writes them."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.scene = folder / "scenes" / "ithor" / f"{SCENE}.xml"
        self.assets: list[str] = []
        self.world: list[str] = ['<geom name="floor" class="__STRUCTURAL_MJT__" type="plane" size="0 0 0.01"/>']
        self.objects: dict[str, dict] = {}

    def material(self, name: str, color: str, texture: str = "") -> None:
        if texture:
            self.assets.append(
                f'<texture name="{texture}" type="2d" file="../../objects/thor/Textures/{texture}.png"/>'
            )
        self.assets.append(
            f'<material name="{name}" rgba="{color} 1"' + (f' texture="{texture}"/>' if texture else "/>")
        )

    def mesh(self, name: str, *boxes: tuple[float, ...], own: bool = False) -> None:
        """A mesh of boxes (west, south, bottom, east, north, top), in the scene's own folder or among the objects."""
        place = Path(SCENE) if own else Path("../../objects/thor")
        path = self.scene.parent / place / f"{name}.obj"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(obj_of(boxes))
        self.assets.append(f'<mesh name="{name}" file="{place / name}.obj" scale="1 1 -1"/>')

    def add(self, name: str, category: str, body: str, parent: str = "") -> None:
        """A root body, and what the metadata says about it."""
        self.world.append(body)
        self.objects[name] = {
            "hash_name": name, "asset_id": name, "object_id": name, "category": category, "object_enum": "thor_obj",
            "is_static": "freejoint" not in body, "room_id": 0, "parent": parent, "children": [],
            "name_map": {"bodies": {}, "joints": {}, "sites": {}},
        }  # fmt: skip

    def write(self, extra: str = "") -> Path:
        """Writes the scene and its metadata; returns the MJCF's path."""
        self.scene.parent.mkdir(parents=True, exist_ok=True)
        textures = self.root / "objects/thor/Textures"
        textures.mkdir(parents=True, exist_ok=True)
        stripes = np.zeros((16, 16, 3), np.uint8)
        stripes[:8], stripes[8:] = (220, 60, 40), (40, 90, 220)  # Red above, blue below.
        Image.fromarray(stripes).save(textures / "stripes.png")
        self.scene.write_text(self.mjcf(extra))
        beside = self.scene.with_name(f"{SCENE}_metadata.json")
        beside.write_text(json.dumps({"objects": self.objects}))
        return self.scene

    def mjcf(self, extra: str = "") -> str:
        world, assets = "\n    ".join(self.world), "\n    ".join(self.assets)
        return f"""<mujoco model="{SCENE}">
  <compiler angle="radian" autolimits="true"/>
  <option integrator="implicitfast" cone="elliptic" impratio="10" timestep="0.002"><flag multiccd="enable"/></option>
{DEFAULTS}
  <asset>
    {assets}
  </asset>
  <worldbody>
    <light pos="1 -1 1.5" dir="-0.57735 0.57735 -0.57735" type="directional" diffuse="0.5 0.5 0.5"/>
    {world}
  </worldbody>{extra}
</mujoco>
"""


def obj_of(boxes: tuple[tuple[float, ...], ...]) -> str:
    """Boxes as an OBJ file with y up, texture coordinates from 0 to 1 on each face, and outward normals."""
    lines, count = [], 0
    for west, south, bottom, east, north, top in boxes:
        low, high = np.array([west, south, bottom]), np.array([east, north, top])
        for axis in range(3):
            for sign in (-1, 1):
                normal = np.eye(3)[axis] * sign
                up = np.array([0.0, 0, 1]) if axis != 2 else np.array([0.0, 1, 0])
                right = np.cross(up, normal)
                for u, v in ((0, 0), (1, 0), (1, 1), (0, 1)):
                    corner = (low + high) / 2 + (normal + (2 * u - 1) * right + (2 * v - 1) * up) * (high - low) / 2
                    lines += [f"v {corner[0]:.6f} {corner[2]:.6f} {corner[1]:.6f}", f"vt {u} {v}"]
                    lines += [f"vn {normal[0]} {normal[2]} {normal[1]}"]
                # Swapping two axes mirrors, so that the corners are named clockwise.
                a, b, c, d = (f"{count + k}/{count + k}/{count + k}" for k in (1, 4, 3, 2))
                lines += [f"f {a} {b} {c}", f"f {a} {c} {d}"]
                count += 4
    return "\n".join(lines) + "\n"


def visual(mesh: str, material: str) -> str:
    return f'<geom class="{VISUAL}" type="mesh" mesh="{mesh}" material="{material}" {UPRIGHT}/>'


def collider(kind: str, west, south, bottom, east, north, top) -> str:
    middle = f"{(west + east) / 2:g} {(south + north) / 2:g} {(bottom + top) / 2:g}"
    half = f"{(east - west) / 2:g} {(north - south) / 2:g} {(top - bottom) / 2:g}"
    return f'<geom class="{kind}" type="box" pos="{middle}" size="{half}"/>'


def site(name: str, west, south, bottom, east, north, top) -> str:
    """A receptacle's box. Its first axis points up, as those of boxes from Unity may."""
    middle = f"{(west + east) / 2:g} {(south + north) / 2:g} {(bottom + top) / 2:g}"
    half = f"{(top - bottom) / 2:g} {(north - south) / 2:g} {(east - west) / 2:g}"
    return f'<site name="{name}" type="box" pos="{middle}" size="{half}" xyaxes="0 0 1 0 1 0" group="5"/>'


def write_miniature(folder: Path, extra: str = "") -> Path:
    """Writes the room; returns the path of its MJCF, to which `extra` sections are added."""
    return miniature(folder).write(extra)


def miniature(folder: Path) -> Miniature:
    room = Miniature(folder)
    for name, color in (("Tiles", "0.8 0.75 0.6"), ("White", "0.9 0.9 0.9"), ("Steel", "0.5 0.6 0.7")):
        room.material(name, color)
    room.material("Stripes", "1 1 1", "stripes")
    _shell(room)
    _table(room)
    _fridge(room)
    _drawer(room)
    return room


def _shell(room: Miniature) -> None:
    room.mesh("room_0", (-2, -1.5, -0.005, 2, 1.5, 0), own=True)
    room.world.append(f'<body name="room_0">{visual("room_0", "Tiles")}</body>')
    walls = [(-2, 1.5, 2, 1.6), (2, -1.5, 2.1, 1.5), (-2, -1.6, 2, -1.5), (-2.1, -1.5, -2, 1.5)]
    for number, (west, south, east, north) in enumerate(walls):
        name = f"wall_0_{number}"
        room.mesh(name, (west, south, 0, east, north, 2.4), own=True)
        solid = f'<geom class="{WALL}" type="mesh" mesh="{name}" {UPRIGHT}/>'
        room.world.append(f'<body name="{name}">{visual(name, "White")}{solid}</body>')


def _table(room: Miniature) -> None:
    """A table about its own origin, turned by a quarter; on it a mug, a laptop, and a tomato, a goal object's type."""
    legs = [(x, y, 0, x + 0.05, y + 0.05, 0.71) for x in (-0.3, 0.25) for y in (-0.4, 0.35)]
    top = (-0.3, -0.4, 0.71, 0.3, 0.4, 0.75)
    room.mesh("table_top", top)
    room.mesh("table_legs", *legs)
    solids = "".join(collider(DYNAMIC, *box) for box in (top, *legs))
    room.add("table_ab_1_0_0", "DiningTable", f"""<body name="table_ab_1_0_0" pos="1 0.53 0" euler="0 0 1.570796327">
      <freejoint/>{visual("table_top", "Stripes")}{visual("table_legs", "Steel")}{solids}
      {site("table_site", -0.3, -0.4, 0.75, 0.3, 0.4, 0.95)}</body>""")  # fmt: skip
    room.mesh("mug", (-0.04, -0.04, 0, 0.04, 0.04, 0.1))
    room.add("mug_cd_1_0_0", "Mug", f"""<body name="mug_cd_1_0_0" pos="0.75 0.3 0.75"><freejoint/>
      {visual("mug", "Steel")}<geom class="{DYNAMIC}" type="cylinder" pos="0 0 0.05" size="0.04 0.05"/></body>""",
      "table_ab_1_0_0")  # fmt: skip
    room.add("tomato_ef_1_0_0", "Tomato", f"""<body name="tomato_ef_1_0_0" pos="1.3 0.3 0.8"><freejoint/>
      <geom class="{DYNAMIC}" type="sphere" size="0.05"/></body>""", "table_ab_1_0_0")  # fmt: skip
    room.mesh("laptop_base", (-0.15, -0.1, 0, 0.15, 0.1, 0.02))
    room.mesh("laptop_lid", (-0.15, 0, 0, 0.15, 0.01, 0.2))
    room.add("laptop_gh_1_0_0", "Laptop", f"""<body name="laptop_gh_1_0_0" pos="1.1 0.6 0.75"><freejoint/>
      {visual("laptop_base", "White")}{collider(DYNAMIC, -0.15, -0.1, 0, 0.15, 0.1, 0.02)}
      <body name="laptop_gh_1_1_0" pos="0 0.1 0.02">
        <joint name="lid" type="hinge" axis="1 0 0" range="0 {LID_ANGLE}"/>
        {visual("laptop_lid", "Steel")}{collider(DYNAMIC, -0.15, 0, 0, 0.15, 0.01, 0.2)}</body></body>""",
      "table_ab_1_0_0")  # fmt: skip


def _fridge(room: Miniature) -> None:
    west, south, east, north = FRIDGE
    boards = [
        (west, north - 0.05, 0, east, north, 1.6), (west, south, 0, west + 0.05, north - 0.05, 1.6),
        (east - 0.05, south, 0, east, north - 0.05, 1.6), (west + 0.05, south, 0, east - 0.05, north - 0.05, 0.1),
        (west + 0.05, south, 1.5, east - 0.05, north - 0.05, 1.6),
    ]  # fmt: skip
    room.mesh("fridge", *boards)
    leaf = (0, -0.05, 0.05, 0.7, 0, 1.55)
    room.mesh("fridge_door", leaf)
    room.add("fridge_ij_1_0_0", "Fridge", f"""<body name="fridge_ij_1_0_0">{visual("fridge", "White")}
      {"".join(collider(ARTICULABLE, *board) for board in boards)}
      {site("fridge_site", west + 0.05, south, 0.1, east - 0.05, north - 0.05, 1.5)}
      <body name="fridge_ij_1_1_0" pos="{west} {south} 0">
        <joint name="door" type="hinge" axis="0 0 -1" range="0 {DOOR_ANGLE}" damping="10"/>
        {visual("fridge_door", "Steel")}{collider(ARTICULABLE, *leaf)}</body></body>""")  # fmt: skip


def _drawer(room: Miniature) -> None:
    """A drawer whose range is negative, so that it opens to the south along an axis to the north."""
    width, depth, height = 0.5, 0.4, 0.2
    boards = [
        (0, 0, 0, width, depth, 0.02), (0, 0, 0.02, width, 0.02, height), (0, depth - 0.02, 0.02, width, depth, height),
        (0, 0.02, 0.02, 0.02, depth - 0.02, height), (width - 0.02, 0.02, 0.02, width, depth - 0.02, height),
    ]  # fmt: skip
    room.mesh("drawer", *boards)
    west, south, _, _ = DRAWER
    room.add("drawer_kl_1_0_0", "Drawer", f"""<body name="drawer_kl_1_0_0" pos="{west} {south} 0.6">
      <body name="drawer_kl_1_1_0"><joint name="runner" type="slide" axis="0 1 0" range="-{DRAWER_TRAVEL} 0"/>
        {visual("drawer", "Stripes")}{"".join(collider(ARTICULABLE, *board) for board in boards)}
        {site("drawer_site", 0.02, 0.02, 0.02, width - 0.02, depth - 0.02, height)}</body></body>""")  # fmt: skip
    room.mesh("spoon", (-0.08, -0.01, 0, 0.08, 0.01, 0.01))
    place = f"{west + 0.12} {south + 0.3} 0.62"
    room.add("spoon_mn_1_0_0", "Spoon", f"""<body name="spoon_mn_1_0_0" pos="{place}"><freejoint/>
      {visual("spoon", "Steel")}{collider(DYNAMIC, -0.08, -0.01, 0, 0.08, 0.01, 0.01)}</body>""",
      "drawer_kl_1_0_0")  # fmt: skip
