"""Every catalog type fills its box, is visible and solid, varies with its seed, and opens about its joints."""

from functools import cache

import numpy as np
import pytest

from scrubjay.errors import RoomError
from scrubjay.rooms import catalog
from scrubjay.rooms.catalog import TYPES, mesh
from scrubjay.rooms.floor import part_frame
from scrubjay.rooms.generate import priors
from scrubjay.rooms.materials import materials
from scrubjay.rooms.room import GOALS, ROOM_TYPES
from scrubjay.sim.compile import GOAL_BOXES

OPENABLE = sorted(name for name, kind in TYPES.items() if kind.opens)
CONTAINERS = ("Drawer", "Cabinet", "Fridge", "Microwave", "Safe", "Box", "LaundryHamper", "GarbageCan")
SOFT = ("Rug",)
"""Types without solids, which bodies walk over."""


OWN_SIZES = {
    "Blinds": (0.9, 0.08, 1.3),
    "CeilingLamp": (0.4, 0.4, 0.5),
    "Curtains": (1.6, 0.15, 2.2),
    "Dishwasher": (0.6, 0.6, 0.82),
    "Doorway": (0.95, 0.12, 2.1),
    "Mirror": (0.6, 0.05, 0.85),
    "Oven": (0.6, 0.6, 0.85),
    "Rug": (2.0, 1.4, 0.01),
    "ShowerCurtain": (1.6, 0.12, 1.9),
}
"""For types that the table of real rooms lacks, or has only rolled up or rotated."""


@cache
def size_of(kind: str) -> tuple[float, float, float]:
    """The median size in the room type that holds it most often."""
    room = max(ROOM_TYPES, key=lambda room: priors.share(room, kind))
    return OWN_SIZES.get(kind) or tuple(np.maximum(priors.of(room, kind).size[1], 0.004))


def draw(kind: str, seed: int = 0, scale: float = 1.0):
    size = tuple(scale * side for side in size_of(kind))
    return catalog.draw(kind, size, np.random.default_rng(seed), {}, {})


def parts(shape):
    return [shape, *shape.moving]


def meshes(shape):
    return [m for part in parts(shape) for surface in part.surfaces.values() for m in surface]


def test_the_catalog_is_large_enough():
    assert len(TYPES) >= 110
    assert set(GOALS) <= set(TYPES)


@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize("scale", [0.7, 1.0, 1.4])
def test_a_shape_fills_its_box_and_stays_in_it(kind, scale):
    shape = draw(kind, seed=1, scale=scale)
    vertices = np.concatenate([m.vertices for m in meshes(shape)])
    width, depth, height = shape.size
    low, high = np.array([-width / 2, -depth / 2, 0]), np.array([width / 2, depth / 2, height])
    assert (vertices >= low - 0.005).all() and (vertices <= high + 0.005).all()
    filled = (vertices.max(0) - vertices.min(0)) / (high - low)
    assert filled.max() > 0.8, "it uses little of its box"
    for part in parts(shape):
        for solid in part.solids:
            assert (solid.position >= low - 0.03).all() and (solid.position <= high + 0.03).all()


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_a_shape_is_well_formed(kind):
    shape = draw(kind)
    assert any(part.solids for part in parts(shape)) or kind in SOFT
    for part in parts(shape):
        for material in part.surfaces:
            materials.parse(material)
        for solid in part.solids:
            assert np.allclose(solid.rotation @ solid.rotation.T, np.eye(3), atol=1e-6)
            assert min(solid.size) > 0
    for m in meshes(shape):
        assert np.isfinite(m.vertices).all() and np.isfinite(m.uv).all()
        assert m.faces.min() >= 0 and m.faces.max() < len(m.vertices)
        assert np.allclose(np.linalg.norm(m.normals, axis=1), 1, atol=1e-3)
        a, b, c = (m.vertices[m.faces[:, i]] for i in range(3))
        facing = np.cross(b - a, c - a)
        area = np.linalg.norm(facing, axis=1)
        agree = (facing * m.normals[m.faces].mean(1)).sum(1) >= 0
        assert (agree | (area < 1e-7)).all(), "a face is wound against its normals"


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_no_two_are_the_same_but_one_seed_always_is(kind):
    def fingerprint(shape):
        surfaces = [item for part in parts(shape) for item in part.surfaces.items()]
        return [(material, [m.vertices.tobytes() for m in surface]) for material, surface in surfaces]

    assert fingerprint(draw(kind, 3)) == fingerprint(draw(kind, 3))
    assert any(fingerprint(draw(kind, 3)) != fingerprint(draw(kind, seed)) for seed in range(4, 10))


def test_those_that_open_are_marked():
    assert len(OPENABLE) >= 16
    assert [kind for kind in sorted(TYPES) if draw(kind).openable] == OPENABLE


@pytest.mark.parametrize("kind", OPENABLE)
def test_openables_have_moving_parts_that_move(kind):
    shape = draw(kind)
    assert shape.openable
    for part in shape.moving:
        assert part.surfaces and part.solids and part.travel != 0
        closed, opening = (part_frame(part, fraction, np.zeros(3), np.eye(3)) for fraction in (0.0, 1.0))
        assert np.allclose(closed[0], 0) and np.allclose(closed[1], np.eye(3))
        points = np.concatenate([m.vertices for surface in part.surfaces.values() for m in surface])
        opened = points @ opening[1].T + opening[0]
        assert np.linalg.norm(opened - points, axis=1).max() > 0.4 * min(shape.size)


@pytest.mark.parametrize("kind", ["Drawer", "Cabinet", "Fridge", "Microwave", "Oven", "Dishwasher", "Safe"])
def test_doors_and_drawers_open_to_the_front(kind):
    shape = draw(kind)
    for part in shape.moving:
        position, turn = part_frame(part, 1.0, np.zeros(3), np.eye(3))
        points = np.concatenate([m.vertices for surface in part.surfaces.values() for m in surface])
        assert (points @ turn.T + position)[:, 1].max() > shape.size[1] / 2 + 0.1


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers_contain(kind):
    """There is a space, and most of it is free of solids."""
    shape = draw(kind)
    spaces = [space for part in parts(shape) for space in part.spaces]
    assert spaces
    for space in spaces:
        points = space.position + np.random.default_rng(0).uniform(-1, 1, (400, 3)) * space.half
        solid_points = np.zeros(len(points), bool)
        for part in parts(shape):
            for solid in part.solids:
                if solid.kind == "box":
                    solid_points |= (np.abs((points - solid.position) @ solid.rotation) < solid.size).all(1)
        assert solid_points.mean() < 0.15


@pytest.mark.parametrize("kind", GOALS)
def test_goal_objects_are_solid_enough_to_rest(kind):
    width, depth, height, mass = GOAL_BOXES[kind]
    shape = catalog.draw(kind, (width, depth, height), np.random.default_rng(0), {}, {})
    assert 1 <= len(shape.solids) <= 6 and 0.05 < mass < 2
    for solid in shape.solids:
        assert min(solid.size) >= 0.004


def test_an_unknown_type_is_refused():
    with pytest.raises(RoomError, match="unknown object type 'Spaceship'; the catalog has AlarmClock"):
        catalog.draw("Spaceship", (1, 1, 1), np.random.default_rng(0), {}, {})


def test_a_lathed_profile_by_hand():
    """A cylinder of radius 1 and height 2 from a lathe with many segments has nearly its volume and area."""
    cylinder = mesh.lathe([(0, 0), (1, 0), (1, 2), (0, 2)], segments=64)
    a, b, c = (cylinder.vertices[cylinder.faces[:, i]] for i in range(3))
    volume = (a * np.cross(b, c)).sum() / 6
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2
    assert volume == pytest.approx(2 * np.pi, rel=0.01)
    assert area == pytest.approx(6 * np.pi, rel=0.01)


@pytest.mark.parametrize(
    ("solid", "volume"),
    [
        (mesh.box((1, 2, 3)), 6.0),
        (mesh.prism([(0, 0), (2, 0), (0, 2)], 1.5), 3.0),
        (mesh.ellipsoid((1, 2, 3), segments=48, rings=24), 8 * np.pi),
        (mesh.tube([(0, 0, 0), (0, 0, 1)], 1.0, segments=64), np.pi),
    ],
)
def test_closed_meshes_have_their_volume(solid, volume):
    """By the divergence theorem, which holds only if every face is wound outwards."""
    a, b, c = (solid.vertices[solid.faces[:, i]] for i in range(3))
    assert (a * np.cross(b, c)).sum() / 6 == pytest.approx(volume, rel=0.02)


def test_rotation_is_right_handed():
    assert np.allclose(mesh.rotation("z", 90) @ [1, 0, 0], [0, 1, 0])
    assert np.allclose(mesh.rotation("x", 90) @ [0, 1, 0], [0, 0, 1])
    assert np.allclose(mesh.rotation("y", 90) @ [0, 0, 1], [1, 0, 0])
