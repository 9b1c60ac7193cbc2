"""The ray caster's second half: shades what rays hit."""

from __future__ import annotations

import warp as wp

from scrubjay.sim.render.raycast import GOAL_PART, LAMPS, Hits, Scene, aim_of, pixel_of

RGB, DEPTH, IDS, NORMALS = 1, 2, 4, 8
"""Bits of the wanted images."""

wp.set_module_options({"enable_backward": False, "fast_math": True})


@wp.struct
class Material:
    tint: wp.vec3
    glow: wp.float32
    texture: wp.int32
    repeat: wp.vec2


@wp.struct
class Surfaces:
    """Appearance of faces, one row each, and of their corners, three rows each."""

    material: wp.array[int]
    thing: wp.array[int]
    detail: wp.array[float]
    normal: wp.array[wp.vec3]
    uv: wp.array[wp.vec2]
    materials: wp.array[Material]


@wp.struct
class Images:
    """Outputs, (B, size, size, ...) each; empty where not wanted."""

    rgb: wp.array4d[wp.uint8]
    depth: wp.array3d[float]
    ids: wp.array3d[wp.int16]
    normals: wp.array4d[float]


@wp.kernel
def shade(
    size: int,
    edge: float,
    first_world: int,
    wanted: int,
    casts_shadows: bool,
    ambient: wp.vec3,
    headlight: wp.vec3,
    scene: Scene,
    surfaces: Surfaces,
    textures: wp.array[wp.Texture2D],
    hits: Hits,
    images: Images,
):
    """Writes the wanted images of what was hit."""
    thread = wp.tid()
    world = first_world + thread // (size * size)
    pixel = pixel_of(thread % (size * size), size)
    x = pixel[0]
    y = pixel[1]
    face = hits.face[thread]
    if face < 0:
        if wanted & RGB:
            for c in range(3):
                images.rgb[world, y, x, c] = wp.uint8(0)
        if wanted & DEPTH:
            images.depth[world, y, x] = 0.0
        if wanted & IDS:
            images.ids[world, y, x] = wp.int16(-1)
        if wanted & NORMALS:
            for c in range(3):
                images.normals[world, y, x, c] = 0.0
        return

    room = scene.rooms[scene.room_of[world]]
    camera = scene.turns[world]
    aim = aim_of(pixel, size, edge)
    ray = wp.normalize(camera * aim)
    far = hits.far[thread]
    part = int(hits.owner[thread])
    turn = wp.identity(n=3, dtype=wp.float32)
    if part == GOAL_PART:
        turn = scene.goal_turn[world]
    elif part >= 0 and scene.is_open[world, scene.parts[room.first_part + part].openable] != wp.uint8(0):
        turn = scene.parts[room.first_part + part].turn
    if wanted & DEPTH:
        images.depth[world, y, x] = far / wp.length(aim)
    if wanted & IDS:
        thing = surfaces.thing[face]
        if part == GOAL_PART:
            thing = room.things + scene.goal[world]
        images.ids[world, y, x] = wp.int16(thing)
    if wanted & NORMALS:
        t = 12 * face
        along = wp.vec3(scene.triangles[t + 4], scene.triangles[t + 5], scene.triangles[t + 6])
        flat = wp.normalize(
            turn * wp.cross(along, wp.vec3(scene.triangles[t + 8], scene.triangles[t + 9], scene.triangles[t + 10]))
        )
        if wp.dot(flat, ray) > 0.0:
            flat = -flat
        for c in range(3):
            images.normals[world, y, x, c] = flat[c]
    if wanted & RGB:
        corner = 3 * face
        u = hits.uv[thread][0]
        v = hits.uv[thread][1]
        w = 1.0 - u - v
        normal = turn * (
            surfaces.normal[corner] * u + surfaces.normal[corner + 1] * v + surfaces.normal[corner + 2] * w
        )
        normal = wp.normalize(normal)
        slant = wp.dot(normal, ray)
        if slant > 0.0:
            normal = -normal
        material = surfaces.materials[surfaces.material[face]]
        color = material.tint
        if material.texture >= 0:
            at = wp.cw_mul(
                surfaces.uv[corner] * u + surfaces.uv[corner + 1] * v + surfaces.uv[corner + 2] * w, material.repeat
            )
            # The mip level at which a texel is as large as the pixel's footprint on the slanted surface.
            footprint = surfaces.detail[face] * far * 2.0 * edge / float(size) / wp.max(wp.abs(slant), 0.05)
            level = wp.log2(wp.max(footprint, 1.0))
            texel = wp.texture_sample(textures[material.texture], at, dtype=wp.vec4, lod=level)
            color = wp.cw_mul(color, wp.vec3(texel[0], texel[1], texel[2]))
        light = ambient + wp.vec3(material.glow, material.glow, material.glow)
        light += headlight * wp.max(wp.dot(normal, wp.vec3(camera[0, 2], camera[1, 2], camera[2, 2])), 0.0)
        for lamp in range(LAMPS):
            lit = float(1.0)
            if lamp == 0 and casts_shadows:
                lit = hits.lit[thread]
            light += lit * room.lamp_color[lamp] * wp.max(-wp.dot(normal, room.lamp_direction[lamp]), 0.0)
        for c in range(3):
            images.rgb[world, y, x, c] = wp.uint8(wp.min(color[c] * light[c], 1.0) * 255.0)
