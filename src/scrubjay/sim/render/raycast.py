"""The ray caster's first half: what the rays of every world of every room hit, in one launch.

A room with everything closed is one tree of triangles, shared by all copies of the room, and most rays need no other.
Open parts and goal objects have trees of their own, in which a ray is followed in the part's own frame. A ray that
meets a part which is open in its world is followed anew: through what never moves, and then through each part. An
openable is open or closed, so what changes from step to step is a bit for each of them, a goal object's pose and a
camera. Nothing is rebuilt.

Finding what a ray hits and coloring it (`shading.py`) are apart: the first needs few registers, so that many rays are
under way at once.
"""

from __future__ import annotations

from importlib.resources import files

import warp as wp

TILE_WIDTH, TILE_HEIGHT = 4, 8
"""Neighboring threads draw neighboring pixels: a warp of 32 is a tile, so that its rays stay together."""
BLOCK = 64
"""Threads of a block."""
LAMPS = 3
FAR = 1.0e3
SHADOW_REACH, SHADOW_START, SHADOW_LIGHT = 1.5, 0.004, 0.25
"""How far away things cast shadows, how far from a surface their rays start, and how much light is left in them."""

wp.config.log_level = wp.LOG_ERROR  # Before anything starts Warp: what it says belongs on nobody's standard output.
wp.set_module_options({"enable_backward": False, "fast_math": True})


@wp.struct
class Tree:
    """Where a tree begins, and the box around it."""

    root: wp.int32
    low: wp.vec3
    high: wp.vec3


@wp.struct
class Part:
    """A moving part: its tree as it is when closed, and where its frame is when open."""

    tree: Tree
    openable: wp.int32
    turn: wp.mat33
    shift: wp.vec3


@wp.struct
class Room:
    """What is the same in all copies of a room."""

    whole: Tree
    """Everything, with all parts closed."""
    fixed: Tree
    """What never moves."""
    first_part: wp.int32
    parts: wp.int32
    things: wp.int32
    """How many: the goal objects' ids follow."""
    lamp_direction: wp.mat33
    """One lamp a row."""
    lamp_color: wp.mat33


GOAL_PART = 30000
"""The part number that stands for the goal object."""


@wp.func
def crosses(low: wp.vec3, high: wp.vec3, origin: wp.vec3, inverse: wp.vec3, far: float) -> bool:
    """Does a ray meet a box nearer than `far`?"""
    a = wp.cw_mul(low - origin, inverse)
    b = wp.cw_mul(high - origin, inverse)
    near = wp.max(wp.min(a[0], b[0]), wp.max(wp.min(a[1], b[1]), wp.min(a[2], b[2])))
    end = wp.min(wp.max(a[0], b[0]), wp.min(wp.max(a[1], b[1]), wp.max(a[2], b[2])))
    return near <= end and end > 0.0 and near < far


@wp.func_native(files("scrubjay.sim.render").joinpath("nearest.cu").read_text())
def nearest(
    nodes: wp.array[float],
    triangles: wp.array[float],
    root: int,
    origin: wp.vec3,
    ray: wp.vec3,
    far: float,
    culled: bool,
) -> wp.vec4:
    """The nearest triangle of a tree on a ray, nearer than `far`: distance, two corners' weights, its number or -1.

    Nodes are 16 numbers and triangles 12: a corner and the two edges from it, each with one to spare.
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
    """A pixel's direction in the camera's axes, one long along the camera's own."""
    step = 2.0 * edge / float(size)
    return wp.vec3((float(pixel[0]) + 0.5) * step - edge, edge - (float(pixel[1]) + 0.5) * step, -1.0)


@wp.struct
class Hit:
    """What a ray met: distance, face (-1 for nothing), weights of two of its corners, and which tree it belongs to."""

    far: wp.float32
    face: wp.int32
    uv: wp.vec2
    owner: wp.int32


@wp.func
def first_hit(
    world: int,
    eye: wp.vec3,
    look: wp.vec3,
    far: float,
    shows_room: bool,
    shows_moving: bool,
    shows_goal: bool,
    culled: bool,
    number: int,
    is_open: wp.array2d[wp.uint8],
    goal: wp.array[int],
    goal_position: wp.array[wp.vec3],
    goal_turn: wp.array[wp.mat33],
    rooms: wp.array[Room],
    parts: wp.array[Part],
    goals: wp.array[Tree],
    nodes: wp.array[float],
    triangles: wp.array[float],
    face_openable: wp.array[int],
) -> Hit:
    """What a ray meets first: in the whole room (-2), what never moves (-1), its parts, the goal object."""
    first_part = rooms[number].first_part
    last = rooms[number].parts
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
        tree = rooms[number].whole
        visible = bool(True)
        if i == -2:
            visible = shows_moving
        elif i == -1:
            visible = each_part
            tree = rooms[number].fixed
        else:
            if i < last:
                visible = shows_moving
                if is_open[world, parts[first_part + i].openable] != wp.uint8(0):
                    origin = (eye - parts[first_part + i].shift) * parts[first_part + i].turn
                    ray = look * parts[first_part + i].turn
                else:
                    visible = visible and each_part
                tree = parts[first_part + i].tree
            else:
                visible = shows_goal and goal[world] >= 0
                if visible:
                    tree = goals[goal[world]]
                    origin = (eye - goal_position[world]) * goal_turn[world]
                    ray = look * goal_turn[world]
            if visible:
                visible = crosses(tree.low, tree.high, origin, inverted(ray), hit.far)
        if visible:
            found = nearest(nodes, triangles, tree.root, origin, ray, hit.far, culled)
            if found[3] >= 0.0:
                if i == -2:
                    openable = face_openable[int(found[3])]
                    if openable >= 0:
                        each_part = is_open[world, openable] != wp.uint8(0)
                if i > -2 or not each_part:
                    hit.far = found[0]
                    hit.face = int(found[3])
                    hit.owner = i
                    hit.uv = wp.vec2(found[1], found[2])
    if hit.face >= 0 and hit.owner == last:
        hit.owner = GOAL_PART
    return hit


@wp.kernel(launch_bounds=(BLOCK, 8))
def trace(
    size: int,
    edge: float,
    first_world: int,
    shows_room: bool,
    shows_moving: bool,
    shows_goal: bool,
    culled: bool,
    room_of: wp.array[int],
    eyes: wp.array[wp.vec3],
    turns: wp.array[wp.mat33],
    is_open: wp.array2d[wp.uint8],
    goal: wp.array[int],
    goal_position: wp.array[wp.vec3],
    goal_turn: wp.array[wp.mat33],
    rooms: wp.array[Room],
    parts: wp.array[Part],
    goals: wp.array[Tree],
    nodes: wp.array[float],
    triangles: wp.array[float],
    face_openable: wp.array[int],
    hit_face: wp.array[int],
    hit_part: wp.array[wp.int16],
    hit_far: wp.array[float],
    hit_uv: wp.array[wp.vec2],
):
    """What each pixel's ray meets first."""
    thread = wp.tid()
    world = first_world + thread // (size * size)
    look = wp.normalize(turns[world] * aim_of(pixel_of(thread % (size * size), size), size, edge))
    hit = first_hit(
        world, eyes[world], look, FAR, shows_room, shows_moving, shows_goal, culled, room_of[world], is_open, goal,
        goal_position, goal_turn, rooms, parts, goals, nodes, triangles, face_openable,
    )  # fmt: skip
    hit_face[thread] = hit.face
    hit_part[thread] = wp.int16(hit.owner)
    hit_far[thread] = hit.far
    hit_uv[thread] = hit.uv


@wp.kernel(launch_bounds=(BLOCK, 8))
def shadow(
    size: int,
    edge: float,
    first_world: int,
    room_of: wp.array[int],
    eyes: wp.array[wp.vec3],
    turns: wp.array[wp.mat33],
    is_open: wp.array2d[wp.uint8],
    goal: wp.array[int],
    goal_position: wp.array[wp.vec3],
    goal_turn: wp.array[wp.mat33],
    rooms: wp.array[Room],
    parts: wp.array[Part],
    goals: wp.array[Tree],
    nodes: wp.array[float],
    triangles: wp.array[float],
    face_openable: wp.array[int],
    hit_face: wp.array[int],
    hit_far: wp.array[float],
    hit_lit: wp.array[float],
):
    """How much of the first lamp's light reaches what was hit: all, or little where something near is in the way.

    Rays to the lamp end under the ceiling, through which the lamps of a room shine.
    """
    thread = wp.tid()
    hit_lit[thread] = 1.0
    if hit_face[thread] < 0:
        return
    world = first_world + thread // (size * size)
    look = wp.normalize(turns[world] * aim_of(pixel_of(thread % (size * size), size), size, edge))
    number = room_of[world]
    to_lamp = -rooms[number].lamp_direction[0]
    point = eyes[world] + look * (hit_far[thread] - SHADOW_START) + to_lamp * SHADOW_START
    far = wp.min(SHADOW_REACH, (rooms[number].whole.high[2] - 0.01 - point[2]) / wp.max(to_lamp[2], 0.01))
    hit = first_hit(
        world, point, to_lamp, far, True, True, True, False, number, is_open, goal, goal_position, goal_turn, rooms,
        parts, goals, nodes, triangles, face_openable,
    )  # fmt: skip
    if hit.face >= 0:
        hit_lit[thread] = SHADOW_LIGHT
