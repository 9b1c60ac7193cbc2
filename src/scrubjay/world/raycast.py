"""The ray caster: one Warp kernel that draws every world of every room in one launch.

A room with everything closed is one tree of triangles, shared by all copies of the room. Where a ray hits a part that is
open in its world, it goes on; open parts and goal objects have trees of their own, in which the ray is followed in the
part's own frame. An openable is open or closed, so what changes from step to step is a bit for each of them, a goal
object's pose and a camera. Nothing is rebuilt or refitted.
"""

from __future__ import annotations

import warp as wp

RGB, DEPTH, IDS, NORMALS = 1, 2, 4, 8
"""Bits of what is wanted."""
TILE_WIDTH, TILE_HEIGHT = 8, 4
"""Neighbouring threads draw neighbouring pixels: a warp of 32 is a tile, so that its rays stay together."""
LAMPS = 3
FAR = 1.0e3
PASSES = 16
"""Surfaces that a ray may go through: both sides of open doors and drawers, and what is culled."""


@wp.struct
class Tree:
    """Triangles to be hit, the first of their faces in the face arrays, and the box around them."""

    mesh: wp.uint64
    face: wp.int32
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

    tree: Tree
    first_part: wp.int32
    parts: wp.int32
    things: wp.int32
    """How many: the goal objects' ids follow."""
    lamp_direction: wp.mat33
    """One lamp a row."""
    lamp_colour: wp.mat33


@wp.struct
class Material:
    tint: wp.vec3
    glow: wp.float32
    texture: wp.int32
    repeat: wp.vec2


@wp.struct
class Hit:
    """The nearest face on a ray so far; `part` is the open part that it belongs to, -1 for the room or the goal object."""

    far: wp.float32
    face: wp.int32
    u: wp.float32
    v: wp.float32
    part: wp.int32
    goal: wp.bool


@wp.func
def crosses(low: wp.vec3, high: wp.vec3, origin: wp.vec3, inverse: wp.vec3, far: float) -> bool:
    """Does a ray meet a box nearer than `far`?"""
    a = wp.cw_mul(low - origin, inverse)
    b = wp.cw_mul(high - origin, inverse)
    near = wp.max(wp.min(a[0], b[0]), wp.max(wp.min(a[1], b[1]), wp.min(a[2], b[2])))
    end = wp.min(wp.max(a[0], b[0]), wp.min(wp.max(a[1], b[1]), wp.max(a[2], b[2])))
    return near <= end and end > 0.0 and near < far


@wp.func
def follow(
    tree: Tree,
    origin: wp.vec3,
    ray: wp.vec3,
    culled: bool,
    hides_moving: bool,
    world: int,
    is_open: wp.array2d[wp.uint8],
    face_openable: wp.array[int],
    hit: Hit,
) -> Hit:
    """The hit, or a nearer one in a tree, in whose frame origin and ray are; open parts in the tree are passed through."""
    start = float(0.0)
    for _ in range(PASSES):
        found = wp.mesh_query_ray(tree.mesh, origin + start * ray, ray, hit.far - start)
        if not found.result:
            break
        face = tree.face + found.face
        openable = face_openable[face]
        passed = culled and wp.dot(found.normal, ray) > 0.0
        if openable >= 0:
            passed = passed or hides_moving or is_open[world, openable] != wp.uint8(0)
        if not passed:
            hit.far = start + found.t
            hit.face = face
            hit.u = found.u
            hit.v = found.v
            break
        start += found.t + 1.0e-4
    return hit


@wp.func
def inverted(ray: wp.vec3) -> wp.vec3:
    return wp.vec3(1.0 / ray[0], 1.0 / ray[1], 1.0 / ray[2])


@wp.func
def trace(
    origin: wp.vec3,
    ray: wp.vec3,
    world: int,
    shows_room: bool,
    shows_moving: bool,
    shows_goal: bool,
    culled: bool,
    room: Room,
    is_open: wp.array2d[wp.uint8],
    goal: wp.array[int],
    goal_position: wp.array[wp.vec3],
    goal_turn: wp.array[wp.mat33],
    parts: wp.array[Part],
    goals: wp.array[Tree],
    face_openable: wp.array[int],
) -> Hit:
    """What a ray meets first."""
    hit = Hit()
    hit.far = FAR
    hit.face = -1
    hit.part = -1
    if shows_room:
        hit = follow(room.tree, origin, ray, culled, not shows_moving, world, is_open, face_openable, hit)
        if shows_moving:
            for i in range(room.first_part, room.first_part + room.parts):
                if is_open[world, parts[i].openable] != wp.uint8(0):
                    turn = parts[i].turn
                    start = (origin - parts[i].shift) * turn
                    way = ray * turn
                    if crosses(parts[i].tree.low, parts[i].tree.high, start, inverted(way), hit.far):
                        before = hit.far
                        hit = follow(parts[i].tree, start, way, culled, False, world, is_open, face_openable, hit)
                        if hit.far < before:
                            hit.part = i
    if shows_goal and goal[world] >= 0:
        held = goals[goal[world]]
        start = (origin - goal_position[world]) * goal_turn[world]
        way = ray * goal_turn[world]
        if crosses(held.low, held.high, start, inverted(way), hit.far):
            before = hit.far
            hit = follow(held, start, way, culled, False, world, is_open, face_openable, hit)
            hit.goal = hit.far < before
    return hit


@wp.func
def pixel_of(k: int, size: int) -> wp.vec2i:
    """Column and row of a world's k-th thread."""
    if size % TILE_WIDTH != 0:
        return wp.vec2i(k % size, k // size)
    tile = k // (TILE_WIDTH * TILE_HEIGHT)
    within = k % (TILE_WIDTH * TILE_HEIGHT)
    across = size // TILE_WIDTH
    return wp.vec2i(
        (tile % across) * TILE_WIDTH + within % TILE_WIDTH, (tile // across) * TILE_HEIGHT + within // TILE_WIDTH
    )


@wp.kernel(enable_backward=False)
def cast(
    size: int,
    edge: float,
    wanted: int,
    shows_room: bool,
    shows_moving: bool,
    shows_goal: bool,
    culled: bool,
    ambient: wp.vec3,
    headlight: wp.vec3,
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
    face_openable: wp.array[int],
    face_material: wp.array[int],
    face_thing: wp.array[int],
    face_detail: wp.array[float],
    corner_normal: wp.array[wp.vec3],
    corner_uv: wp.array[wp.vec2],
    materials: wp.array[Material],
    textures: wp.array[wp.Texture2D],
    rgb: wp.array4d[wp.uint8],
    depth: wp.array3d[float],
    ids: wp.array3d[wp.int16],
    normals: wp.array4d[float],
):
    """One pixel of one world a thread."""
    thread = wp.tid()
    world = thread // (size * size)
    pixel = pixel_of(thread % (size * size), size)
    x = pixel[0]
    y = pixel[1]
    camera = turns[world]
    step = 2.0 * edge / float(size)
    aim = wp.vec3((float(x) + 0.5) * step - edge, edge - (float(y) + 0.5) * step, -1.0)
    ray = wp.normalize(camera * aim)
    room = rooms[room_of[world]]
    hit = trace(
        eyes[world], ray, world, shows_room, shows_moving, shows_goal, culled, room, is_open, goal, goal_position,
        goal_turn, parts, goals, face_openable,
    )  # fmt: skip

    if hit.face < 0:
        if wanted & RGB:
            for c in range(3):
                rgb[world, y, x, c] = wp.uint8(0)
        if wanted & DEPTH:
            depth[world, y, x] = 0.0
        if wanted & IDS:
            ids[world, y, x] = wp.int16(-1)
        if wanted & NORMALS:
            for c in range(3):
                normals[world, y, x, c] = 0.0
        return

    if wanted & DEPTH:
        depth[world, y, x] = hit.far / wp.length(aim)
    if wanted & IDS:
        thing = face_thing[hit.face]
        if hit.goal:
            thing = room.things + goal[world]
        ids[world, y, x] = wp.int16(thing)
    turn = wp.identity(n=3, dtype=wp.float32)
    tree = room.tree
    if hit.goal:
        turn = goal_turn[world]
        tree = goals[goal[world]]
    elif hit.part >= 0:
        turn = parts[hit.part].turn
        tree = parts[hit.part].tree
    if wanted & NORMALS:
        flat = turn * wp.mesh_eval_face_normal(tree.mesh, hit.face - tree.face)
        if wp.dot(flat, ray) > 0.0:
            flat = -flat
        for c in range(3):
            normals[world, y, x, c] = flat[c]
    if wanted & RGB:
        corner = 3 * hit.face
        w = 1.0 - hit.u - hit.v
        normal = corner_normal[corner] * hit.u + corner_normal[corner + 1] * hit.v + corner_normal[corner + 2] * w
        normal = wp.normalize(turn * normal)
        slant = wp.dot(normal, ray)
        if slant > 0.0:
            normal = -normal
        material = materials[face_material[hit.face]]
        colour = material.tint
        if material.texture >= 0:
            uv = corner_uv[corner] * hit.u + corner_uv[corner + 1] * hit.v + corner_uv[corner + 2] * w
            # The level at which a texel is as large as the pixel's footprint on the surface, seen at its slant.
            footprint = face_detail[hit.face] * hit.far * step / wp.max(wp.abs(slant), 0.05)
            level = wp.log2(wp.max(footprint, 1.0))
            at = wp.cw_mul(uv, material.repeat)
            texel = wp.texture_sample(textures[material.texture], at, dtype=wp.vec4, lod=level)
            colour = wp.cw_mul(colour, wp.vec3(texel[0], texel[1], texel[2]))
        light = ambient + wp.vec3(material.glow, material.glow, material.glow)
        light += headlight * wp.max(wp.dot(normal, wp.vec3(camera[0, 2], camera[1, 2], camera[2, 2])), 0.0)
        for lamp in range(LAMPS):
            light += room.lamp_colour[lamp] * wp.max(-wp.dot(normal, room.lamp_direction[lamp]), 0.0)
        for c in range(3):
            rgb[world, y, x, c] = wp.uint8(wp.min(colour[c] * light[c], 1.0) * 255.0)
