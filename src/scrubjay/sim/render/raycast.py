"""The ray caster's first half: traces the rays of all worlds of all rooms in one launch.

A room with everything closed is one tree of triangles (BVH), shared by its copies, and most rays need no other. Open
parts and goal objects have trees of their own, traversed in the part's frame. A ray that hits a part which is open in
its world is traced again: through what never moves, then through each part. An openable is either open or closed, so a
step changes one bit per openable, a goal object's pose and a camera; no tree is rebuilt or refitted.

Things that are left out are skipped triangle by triangle, in kernels of their own (`raycast_without.py`), so that
drawing everything costs no more.

Tracing and shading (`shading.py`) are separate kernels: tracing alone needs few registers, which raises occupancy.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import warp as wp

TILE_WIDTH, TILE_HEIGHT = 4, 8
"""A warp of 32 threads renders a tile of pixels, so that its rays stay coherent."""
BLOCK = 64
"""Threads per block."""
LAMPS = 3
MAX_DISTANCE = 1.0e3
"""The length of camera rays, in meters."""
SHADOW_REACH, SHADOW_START, SHADOW_LIGHT = 1.5, 0.004, 0.25
"""Length of shadow rays, their offset from the surface, and the light that is left in shadow."""

wp.config.log_level = wp.LOG_ERROR  # Before Warp starts: it logs to standard output.
wp.set_module_options({"enable_backward": False, "fast_math": True})


@wp.struct
class Tree:
    """A tree's root node and bounding box."""

    root: wp.int32
    low: wp.vec3
    high: wp.vec3


@wp.struct
class Part:
    """A moving part: its tree when closed, and its frame when open."""

    tree: Tree
    openable: wp.int32
    turn: wp.mat33
    shift: wp.vec3


@wp.struct
class Room:
    """A room, shared by its copies."""

    whole: Tree
    """Everything, with all parts closed."""
    fixed: Tree
    """What never moves."""
    first_part: wp.int32
    parts: wp.int32
    things: wp.int32
    """Their number; the goal objects' ids follow."""
    lamp_direction: wp.mat33
    """One lamp per row."""
    lamp_color: wp.mat33


GOAL_PART = 30000
"""The owner of a hit on the goal object."""


@wp.func
def crosses(low: wp.vec3, high: wp.vec3, origin: wp.vec3, inverse: wp.vec3, far: float) -> bool:
    """Whether a ray hits a box nearer than `far`."""
    a = wp.cw_mul(low - origin, inverse)
    b = wp.cw_mul(high - origin, inverse)
    near = wp.max(wp.min(a[0], b[0]), wp.max(wp.min(a[1], b[1]), wp.min(a[2], b[2])))
    end = wp.min(wp.max(a[0], b[0]), wp.min(wp.max(a[1], b[1]), wp.max(a[2], b[2])))
    return near <= end and end > 0.0 and near < far


NEAREST = files("scrubjay.sim.render").joinpath("nearest.cu").read_text()


@wp.func_native("#undef LEFT_OUT\n#define LEFT_OUT(i) false\n" + NEAREST)
def nearest(
    nodes: wp.array[float],
    triangles: wp.array[float],
    thing: wp.array[int],
    left_out: wp.array2d[wp.uint8],
    world: int,
    root: int,
    origin: wp.vec3,
    ray: wp.vec3,
    far: float,
    cull_backfaces: bool,
) -> wp.vec4:
    """The nearest hit of a ray in a tree, nearer than `far`: distance, two barycentric weights, face or -1.

    Nodes are 16 floats and triangles 12: a corner and the two edges from it, each padded to four. Nothing is left out.
    """
    ...


@wp.func
def inverted(ray: wp.vec3) -> wp.vec3:
    return wp.vec3(1.0 / ray[0], 1.0 / ray[1], 1.0 / ray[2])


@wp.func
def pixel_of(k: int, size: int) -> wp.vec2i:
    """Column and row of a world's k-th thread."""
    if size % TILE_HEIGHT != 0:
        return wp.vec2i(k % size, k // size)
    tile = k // (TILE_WIDTH * TILE_HEIGHT)
    within = k % (TILE_WIDTH * TILE_HEIGHT)
    across = size // TILE_WIDTH
    return wp.vec2i(
        (tile % across) * TILE_WIDTH + within % TILE_WIDTH, (tile // across) * TILE_HEIGHT + within // TILE_WIDTH
    )


@wp.func
def aim_of(pixel: wp.vec2i, size: int, edge: float) -> wp.vec3:
    """A pixel's direction in the camera's frame, of length 1 along the optical axis."""
    step = 2.0 * edge / float(size)
    return wp.vec3((float(pixel[0]) + 0.5) * step - edge, edge - (float(pixel[1]) + 0.5) * step, -1.0)


@wp.struct
class Scene:
    """The state of all worlds, one row each, and the trees of all that is loaded."""

    room_of: wp.array[int]
    eyes: wp.array[wp.vec3]
    turns: wp.array[wp.mat33]
    is_open: wp.array2d[wp.uint8]
    goal: wp.array[int]
    goal_position: wp.array[wp.vec3]
    goal_turn: wp.array[wp.mat33]
    rooms: wp.array[Room]
    parts: wp.array[Part]
    goals: wp.array[Tree]
    nodes: wp.array[float]
    triangles: wp.array[float]
    face_openable: wp.array[int]
    face_thing: wp.array[int]
    left_out: wp.array2d[wp.uint8]
    """(worlds, things); empty if nothing is left out."""


@wp.struct
class Hits:
    """What the pixels' rays hit, one row per thread; see `Hit`."""

    face: wp.array[int]
    owner: wp.array[wp.int16]
    far: wp.array[float]
    uv: wp.array[wp.vec2]
    lit: wp.array[float]
    """The share of the first lamp's light that arrives, with shadows."""


@wp.struct
class Hit:
    """What a ray hit: distance, face (-1 for nothing), barycentric weights of two corners, and the tree's owner."""

    far: wp.float32
    face: wp.int32
    uv: wp.vec2
    owner: wp.int32


@wp.func
def ray_of(scene: Scene, world: int, pixel: wp.vec2i, size: int, edge: float) -> wp.vec3:
    """The unit vector of a pixel's ray."""
    return wp.normalize(scene.turns[world] * aim_of(pixel, size, edge))


class Kernels(NamedTuple):
    """Both kernels take the same arguments, whatever is left out."""

    trace: wp.Kernel
    shadow: wp.Kernel


def make_kernels(nearest: wp.Function, module: wp.Module, name: str) -> Kernels:
    """Compiles the kernels around a function that finds the nearest hit; `name` is unique among the first hits."""

    @wp.func(name=name, module=module)
    def first_hit(
        scene: Scene,
        world: int,
        eye: wp.vec3,
        look: wp.vec3,
        far: float,
        shows_room: bool,
        shows_moving: bool,
        shows_goal: bool,
        cull_backfaces: bool,
    ) -> Hit:
        """The first hit of a ray. Tries the whole room (-2), what never moves (-1), each part, and the goal object."""
        number = scene.room_of[world]
        first_part = scene.rooms[number].first_part
        last = scene.rooms[number].parts
        first = int(-2)
        if not shows_room:
            first = last
        each_part = not shows_moving
        hit = Hit()
        hit.far = far
        hit.face = -1
        hit.owner = -1
        for i in range(first, last + 1):
            origin = eye
            ray = look
            tree = scene.rooms[number].whole
            visible = bool(True)
            if i == -2:
                visible = shows_moving
            elif i == -1:
                visible = each_part
                tree = scene.rooms[number].fixed
            else:
                if i < last:
                    visible = shows_moving
                    if scene.is_open[world, scene.parts[first_part + i].openable] != wp.uint8(0):
                        origin = (eye - scene.parts[first_part + i].shift) * scene.parts[first_part + i].turn
                        ray = look * scene.parts[first_part + i].turn
                    else:
                        visible = visible and each_part
                    tree = scene.parts[first_part + i].tree
                else:
                    visible = shows_goal and scene.goal[world] >= 0
                    if visible:
                        tree = scene.goals[scene.goal[world]]
                        origin = (eye - scene.goal_position[world]) * scene.goal_turn[world]
                        ray = look * scene.goal_turn[world]
                if visible:
                    visible = crosses(tree.low, tree.high, origin, inverted(ray), hit.far)
            if visible:
                found = nearest(
                    scene.nodes, scene.triangles, scene.face_thing, scene.left_out, world, tree.root, origin, ray,
                    hit.far, cull_backfaces,
                )  # fmt: skip
                if found[3] >= 0.0:
                    if i == -2:
                        openable = scene.face_openable[int(found[3])]
                        if openable >= 0:
                            each_part = scene.is_open[world, openable] != wp.uint8(0)
                    if i > -2 or not each_part:
                        hit.far = found[0]
                        hit.face = int(found[3])
                        hit.owner = i
                        hit.uv = wp.vec2(found[1], found[2])
        if hit.face >= 0 and hit.owner == last:
            hit.owner = GOAL_PART
        return hit

    @wp.kernel(launch_bounds=(BLOCK, 8), module=module)
    def trace(
        size: int,
        edge: float,
        first_world: int,
        shows_room: bool,
        shows_moving: bool,
        shows_goal: bool,
        cull_backfaces: bool,
        scene: Scene,
        hits: Hits,
    ):
        """The first hit of each pixel's ray."""
        thread = wp.tid()
        world = first_world + thread // (size * size)
        look = ray_of(scene, world, pixel_of(thread % (size * size), size), size, edge)
        hit = first_hit(
            scene, world, scene.eyes[world], look, MAX_DISTANCE, shows_room, shows_moving, shows_goal, cull_backfaces
        )
        hits.face[thread] = hit.face
        hits.owner[thread] = wp.int16(hit.owner)
        hits.far[thread] = hit.far
        hits.uv[thread] = hit.uv

    @wp.kernel(launch_bounds=(BLOCK, 8), module=module)
    def shadow(size: int, edge: float, first_world: int, scene: Scene, hits: Hits):
        """The share of the first lamp's light that reaches what was hit: all, or little behind something near.

        Rays to the lamp end below the ceiling, through which a room's lamps shine.
        """
        thread = wp.tid()
        hits.lit[thread] = 1.0
        if hits.face[thread] < 0:
            return
        world = first_world + thread // (size * size)
        look = ray_of(scene, world, pixel_of(thread % (size * size), size), size, edge)
        number = scene.room_of[world]
        to_lamp = -scene.rooms[number].lamp_direction[0]
        point = scene.eyes[world] + look * (hits.far[thread] - SHADOW_START) + to_lamp * SHADOW_START
        far = wp.min(SHADOW_REACH, (scene.rooms[number].whole.high[2] - 0.01 - point[2]) / wp.max(to_lamp[2], 0.01))
        hit = first_hit(scene, world, point, to_lamp, far, True, True, True, False)
        if hit.face >= 0:
            hits.lit[thread] = SHADOW_LIGHT

    return Kernels(trace, shadow)


EVERYTHING = make_kernels(nearest, wp.get_module(__name__), "first_hit")
"""Kernels that leave out nothing."""
