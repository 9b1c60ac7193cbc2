"""The ray caster's second half: the pictures of what rays hit."""

from __future__ import annotations

import warp as wp

from scrubjay.sim.render.raycast import GOAL_PART, LAMPS, Part, Room, aim_of, pixel_of

RGB, DEPTH, IDS, NORMALS = 1, 2, 4, 8
"""Bits of what is wanted."""

wp.set_module_options({"enable_backward": False, "fast_math": True})


@wp.struct
class Material:
    tint: wp.vec3
    glow: wp.float32
    texture: wp.int32
    repeat: wp.vec2


@wp.kernel
def shade(
    size: int,
    edge: float,
    first_world: int,
    wanted: int,
    casts_shadows: bool,
    ambient: wp.vec3,
    headlight: wp.vec3,
    room_of: wp.array[int],
    turns: wp.array[wp.mat33],
    is_open: wp.array2d[wp.uint8],
    goal: wp.array[int],
    goal_turn: wp.array[wp.mat33],
    rooms: wp.array[Room],
    parts: wp.array[Part],
    triangles: wp.array[float],
    face_material: wp.array[int],
    face_thing: wp.array[int],
    face_detail: wp.array[float],
    corner_normal: wp.array[wp.vec3],
    corner_uv: wp.array[wp.vec2],
    materials: wp.array[Material],
    textures: wp.array[wp.Texture2D],
    hit_face: wp.array[int],
    hit_part: wp.array[wp.int16],
    hit_far: wp.array[float],
    hit_uv: wp.array[wp.vec2],
    hit_lit: wp.array[float],
    rgb: wp.array4d[wp.uint8],
    depth: wp.array3d[float],
    ids: wp.array3d[wp.int16],
    normals: wp.array4d[float],
):
    """The pictures of what was hit: color, depth, ids, normals, as far as they are wanted."""
    thread = wp.tid()
    world = first_world + thread // (size * size)
    pixel = pixel_of(thread % (size * size), size)
    x = pixel[0]
    y = pixel[1]
    face = hit_face[thread]
    if face < 0:
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

    room = rooms[room_of[world]]
    camera = turns[world]
    aim = aim_of(pixel, size, edge)
    ray = wp.normalize(camera * aim)
    far = hit_far[thread]
    part = int(hit_part[thread])
    turn = wp.identity(n=3, dtype=wp.float32)
    if part == GOAL_PART:
        turn = goal_turn[world]
    elif part >= 0 and is_open[world, parts[room.first_part + part].openable] != wp.uint8(0):
        turn = parts[room.first_part + part].turn
    if wanted & DEPTH:
        depth[world, y, x] = far / wp.length(aim)
    if wanted & IDS:
        thing = face_thing[face]
        if part == GOAL_PART:
            thing = room.things + goal[world]
        ids[world, y, x] = wp.int16(thing)
    if wanted & NORMALS:
        t = 12 * face
        along = wp.vec3(triangles[t + 4], triangles[t + 5], triangles[t + 6])
        flat = wp.normalize(turn * wp.cross(along, wp.vec3(triangles[t + 8], triangles[t + 9], triangles[t + 10])))
        if wp.dot(flat, ray) > 0.0:
            flat = -flat
        for c in range(3):
            normals[world, y, x, c] = flat[c]
    if wanted & RGB:
        corner = 3 * face
        u = hit_uv[thread][0]
        v = hit_uv[thread][1]
        w = 1.0 - u - v
        normal = turn * (corner_normal[corner] * u + corner_normal[corner + 1] * v + corner_normal[corner + 2] * w)
        normal = wp.normalize(normal)
        slant = wp.dot(normal, ray)
        if slant > 0.0:
            normal = -normal
        material = materials[face_material[face]]
        color = material.tint
        if material.texture >= 0:
            at = wp.cw_mul(
                corner_uv[corner] * u + corner_uv[corner + 1] * v + corner_uv[corner + 2] * w, material.repeat
            )
            # The level at which a texel is as large as the pixel's footprint on the surface, seen at its slant.
            footprint = face_detail[face] * far * 2.0 * edge / float(size) / wp.max(wp.abs(slant), 0.05)
            level = wp.log2(wp.max(footprint, 1.0))
            texel = wp.texture_sample(textures[material.texture], at, dtype=wp.vec4, lod=level)
            color = wp.cw_mul(color, wp.vec3(texel[0], texel[1], texel[2]))
        light = ambient + wp.vec3(material.glow, material.glow, material.glow)
        light += headlight * wp.max(wp.dot(normal, wp.vec3(camera[0, 2], camera[1, 2], camera[2, 2])), 0.0)
        for lamp in range(LAMPS):
            lit = float(1.0)
            if lamp == 0 and casts_shadows:
                lit = hit_lit[thread]
            light += lit * room.lamp_color[lamp] * wp.max(-wp.dot(normal, room.lamp_direction[lamp]), 0.0)
        for c in range(3):
            rgb[world, y, x, c] = wp.uint8(wp.min(color[c] * light[c], 1.0) * 255.0)
