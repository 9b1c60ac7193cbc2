"""The ray caster's kernels that leave out things: compiled on first use, so that nobody else waits for them."""

from __future__ import annotations

import warp as wp

from scrubjay.sim.render.raycast import NEAREST, make_kernels

wp.set_module_options({"enable_backward": False, "fast_math": True})


@wp.func_native(
    "#undef LEFT_OUT\n"
    "#define LEFT_OUT(i) (thing.data[i] >= 0 && left_out.data[size_t(world) * left_out.shape[1] + thing.data[i]])\n"
    + NEAREST
)
def nearest_of_the_rest(
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
    """As `raycast.nearest`, without the triangles of things that are left out of the world."""
    ...


WITHOUT_THINGS = make_kernels(nearest_of_the_rest, wp.get_module(__name__), "first_hit_of_the_rest")
