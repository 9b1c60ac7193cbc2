"""Shapes, which the catalog's functions draw.

A shape fills a box of (width, depth, height). Its origin is the center of the box's bottom face; x runs to the right as
seen from behind, y to the front, z up. A type's function draws surfaces (visual meshes), solids (invisible collision
geometry), spaces (volumes that contain things), supports (where other things may stand) and moving parts, all in these
coordinates; moving parts are drawn closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from scrubjay.rooms.catalog import mesh
from scrubjay.rooms.catalog.mesh import Mesh

IDENTITY = np.eye(3)


@dataclass(frozen=True)
class Solid:
    """A collision box (half sizes), capsule (radius, half length of its straight part; upright if not rotated) or hull.

    A hull is the convex hull of points in its frame; its size is that of their box about its position.
    """

    kind: str
    position: np.ndarray
    size: tuple[float, ...]
    rotation: np.ndarray
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))


@dataclass(frozen=True)
class Space:
    """A box that contains things: its center, half sizes and axes."""

    position: np.ndarray
    half: np.ndarray
    rotation: np.ndarray = field(default_factory=lambda: IDENTITY)


@dataclass(frozen=True)
class Support:
    """A level area on which things can stand: its center, its (width, depth), and the headroom above it."""

    position: np.ndarray
    size: tuple[float, float]
    headroom: float


@dataclass
class Drawn:
    """Geometry of one rigid part, in the shape's coordinates."""

    size: tuple[float, float, float]
    style: dict[str, str]
    surfaces: dict[str, list[Mesh]] = field(default_factory=dict)
    solids: list[Solid] = field(default_factory=list)
    spaces: list[Space] = field(default_factory=list)
    supports: list[Support] = field(default_factory=list)

    def material(self, role: str, default: str) -> str:
        """The style's material for a role, or a default."""
        return self.style.get(role, default)

    def surface(self, material: str, shape: Mesh, at=(0, 0, 0), turn: np.ndarray = IDENTITY) -> None:
        """Adds a mesh, rotated about its origin and then translated. Each material is one geom, so share materials."""
        self.surfaces.setdefault(material, []).append(shape.rotate(turn).translate(at))

    def box(self, material, at, size, turn=IDENTITY, solid=True, without=(), fitted=False) -> None:
        """A box about `at`. `without` omits faces that nobody sees; `fitted` stretches the texture over each face."""
        self.surface(material, mesh.box(size, without, fitted), at, turn)
        if solid:
            self.solid_box(at, size, turn)

    def solid_box(self, at, size, turn=IDENTITY) -> None:
        self.solids.append(Solid("box", np.asarray(at, float), tuple(np.asarray(size, float) / 2), np.asarray(turn)))

    def solid_capsule(self, start, end, radius: float) -> None:
        """A capsule whose ends' outermost points are `start` and `end`."""
        start, end = np.asarray(start, float), np.asarray(end, float)
        length = float(np.linalg.norm(end - start))
        axis = (end - start) / length
        other = np.array([1.0, 0, 0]) if abs(axis[0]) < 0.9 else np.array([0, 1.0, 0])
        x = np.cross(other, axis)
        x /= np.linalg.norm(x)
        turn = np.column_stack([x, np.cross(axis, x), axis])
        half = max(length / 2 - radius, 1e-3)
        self.solids.append(Solid("capsule", (start + end) / 2, (radius, half), turn))

    def lathe(self, material, profile, at=(0, 0, 0), turn=IDENTITY, segments=16, scale=(1.0, 1.0), smooth=50.0) -> None:
        """A revolved profile of (radius, height) points; see `mesh.lathe`. Adds no solid."""
        self.surface(material, mesh.lathe(profile, segments, scale, smooth), at, turn)

    def cylinder(self, material, at, radius, height, turn=IDENTITY, segments=16) -> None:
        """A cylinder standing on `at` (before rotation). Adds no solid."""
        self.lathe(material, [(0, 0), (radius, 0), (radius, height), (0, height)], at, turn, segments)

    def prism(self, material, outline, height, at=(0, 0, 0), turn=IDENTITY) -> None:
        """A convex (x, y) outline, counter-clockwise, extruded upwards (before rotation). Adds no solid."""
        self.surface(material, mesh.prism(outline, height), at, turn)

    def ellipsoid(self, material, at, radii, turn=IDENTITY, segments=16, rings=8, power=1.0) -> None:
        """A ball, or with `power` under 1 a soft box: 0.3 for cushions. Adds no solid."""
        self.surface(material, mesh.ellipsoid(radii, segments, rings, power), at, turn)

    def tube(self, material, path, radius, segments=8) -> None:
        """A round bar along points. Adds no solid."""
        self.surface(material, mesh.tube(path, radius, segments))

    def space(self, at, size) -> None:
        """A volume that contains things; it moves with this part."""
        self.spaces.append(Space(np.asarray(at, float), np.asarray(size, float) / 2))

    def support(self, at, size, headroom: float = 0.5) -> None:
        """A level area for things to stand on (a table's top, a shelf, a drawer's bottom)."""
        self.supports.append(Support(np.asarray(at, float), tuple(size), headroom))


@dataclass
class Moving(Drawn):
    """A part on a joint. Closed at 0, open at `travel` (meters or radians)."""

    joint: str = "hinge"
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    anchor: np.ndarray = field(default_factory=lambda: np.zeros(3))
    travel: float = 0.0


@dataclass
class Shape(Drawn):
    """A thing's geometry: its fixed part, and moving parts, which all open together."""

    options: dict[str, float] = field(default_factory=dict)
    moving: list[Moving] = field(default_factory=list)

    def hinge(self, axis, anchor, degrees: float) -> Moving:
        """A part that rotates by `degrees`, right-handed about `axis` through `anchor`."""
        axis = np.asarray(axis, float)
        part = Moving(self.size, self.style, joint="hinge", axis=axis / np.linalg.norm(axis),
                      anchor=np.asarray(anchor, float), travel=float(np.radians(degrees)))  # fmt: skip
        self.moving.append(part)
        return part

    def slide(self, axis, distance: float) -> Moving:
        """A part that slides by `distance` along `axis`."""
        axis = np.asarray(axis, float)
        part = Moving(self.size, self.style, joint="slide", axis=axis / np.linalg.norm(axis), travel=float(distance))
        self.moving.append(part)
        return part

    @property
    def openable(self) -> bool:
        return bool(self.moving)


@dataclass(frozen=True)
class ObjectType:
    """An object type of the catalog, and what the generator needs to know of it."""

    draw: Callable[[Shape, np.random.Generator], None]
    """Draws into an empty shape."""
    opens: bool = False
    """It has moving parts."""
    roles: tuple[str, ...] = ()
    """Materials taken from the room's palette; the type chooses all others itself."""
    round: bool = False
    """It looks the same from all sides, so it may stand at any yaw."""
    size: tuple[float, float, float] | None = None
    """Typical width, depth and height; needed where the priors lack the type."""
