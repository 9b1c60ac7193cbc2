"""BVHs and ray casts against brute force over all triangles, and the ray caster's buffers."""

import numpy as np
import pytest
import warp as wp

from scrubjay.sim.build import build_room
from scrubjay.sim.render import raycast, shading
from scrubjay.sim.render.buffers import Rows, SharedPool
from scrubjay.sim.render.bvh import LEAF_BITS, MAX_LEAF_SIZE, build_bvh
from scrubjay.sim.render.raycast_without import nearest_of_the_rest
from scrubjay.sim.render.warp import WarpRenderer


def soup(rng, count: int) -> np.ndarray:
    """Small random triangles, (count, 3, 3)."""
    return rng.uniform(-1, 1, (count, 1, 3)) + rng.normal(size=(count, 3, 3)) * 0.1


def leaves(bvh, node: int) -> list[int]:
    """Positions in leaf order of all triangles under a node."""
    triangles = []
    for side, reference in enumerate(bvh.nodes[node, :2, 3].copy().view(np.int32)):
        if reference >= 0:
            triangles += leaves(bvh, reference)
        else:
            first, count = ~reference >> LEAF_BITS, ~reference & (1 << LEAF_BITS) - 1
            triangles += list(range(first, first + count))
            assert count <= MAX_LEAF_SIZE or side == 0
    return triangles


@pytest.mark.parametrize("counts", [[1], [2, 1], [500], [300, 1, 40, 7]])
def test_every_triangle_is_in_its_tree_once(counts):
    corners = soup(np.random.default_rng(0), sum(counts))
    bvh = build_bvh(corners, counts)
    assert sorted(bvh.order) == list(range(sum(counts)))
    start = 0
    for root, count in zip(bvh.roots, counts, strict=True):
        positions = leaves(bvh, root)
        assert sorted(bvh.order[positions]) == list(range(start, start + count))
        start += count


def test_triangles_all_in_one_place_are_divided_too():
    bvh = build_bvh(np.tile(soup(np.random.default_rng(1), 1), (64, 1, 1)), [64])
    assert len(leaves(bvh, 0)) == 64


def distances_by_brute_force(corners, origin, ray):
    """Distances (n,) to every triangle, infinite where it is missed."""
    a, e, f = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    h = np.cross(ray, f)
    det = (e * h).sum(1)
    s = origin - a
    u = (s * h).sum(1) / det
    q = np.cross(s, e)
    v = (q @ ray) / det
    far = (f * q).sum(1) / det
    return np.where((u >= 0) & (v >= 0) & (u + v <= 1) & (far > 0), far, np.inf)


@wp.kernel
def probe(nodes: wp.array[float], triangles: wp.array[float], thing: wp.array[int], left_out: wp.array2d[wp.uint8],
          origins: wp.array[wp.vec3], rays: wp.array[wp.vec3], hits: wp.array[wp.vec4]):  # fmt: skip
    i = wp.tid()
    hits[i] = raycast.nearest(nodes, triangles, thing, left_out, 1, 0, origins[i], rays[i], 100.0, False)


@wp.kernel
def probe_the_rest(nodes: wp.array[float], triangles: wp.array[float], thing: wp.array[int],
                   left_out: wp.array2d[wp.uint8], origins: wp.array[wp.vec3], rays: wp.array[wp.vec3],
                   hits: wp.array[wp.vec4]):  # fmt: skip
    i = wp.tid()
    hits[i] = nearest_of_the_rest(nodes, triangles, thing, left_out, 1, 0, origins[i], rays[i], 100.0, False)


@pytest.mark.parametrize("kernel", [probe, probe_the_rest])
def test_rays_find_the_nearest_triangle(kernel):
    """Of all triangles, or without those of thing 1, which is left out of the second of two worlds."""
    rng = np.random.default_rng(2)
    corners = soup(rng, 800)
    bvh = build_bvh(corners, [800])
    ordered = corners[bvh.order]
    rows = np.zeros((800, 3, 4), np.float32)
    rows[:, 0, :3], rows[:, 1, :3], rows[:, 2, :3] = (
        ordered[:, 0], ordered[:, 1] - ordered[:, 0], ordered[:, 2] - ordered[:, 0],
    )  # fmt: skip
    thing = rng.integers(-1, 3, 800).astype(np.int32)
    left_out = np.array([[1, 0, 1], [0, 1, 0]], np.uint8)
    origins = rng.uniform(-3, 3, (300, 3))
    rays = rng.uniform(-1, 1, (300, 3)) - origins
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    hits = wp.zeros(300, dtype=wp.vec4, device="cpu")
    inputs = [bvh.nodes.ravel(), rows.ravel(), thing, left_out]
    vectors = [wp.array(values, dtype=wp.vec3, device="cpu") for values in (origins, rays)]
    wp.launch(kernel, 300, [*(wp.array(values, device="cpu") for values in inputs), *vectors], [hits], device="cpu")
    hit = 0
    for (far, u, v, face), origin, ray in zip(hits.numpy(), origins, rays, strict=True):
        each = distances_by_brute_force(ordered, origin, ray)
        if kernel is probe_the_rest:
            each[thing == 1] = np.inf
        if face < 0:
            assert each.min() == np.inf
            continue
        hit += 1
        assert far == pytest.approx(each.min(), abs=1e-4)
        a, b, c = ordered[int(face)]
        assert u * a + v * b + (1 - u - v) * c == pytest.approx(origin + far * ray, abs=1e-3)
    assert hit > 100


def test_rows_are_allocated_and_freed():
    import torch

    rows = Rows("cpu", numbers=(2, torch.float32))
    first, second, third = rows.allocate(1000), rows.allocate(20000), rows.allocate(5)
    assert len({*first, *second, *third}) == 21005
    rows.write(second, numbers=np.ones((20000, 2)))
    assert rows.columns["numbers"][second.start : second.stop].sum() == 40000
    size = len(rows)
    rows.release(second)
    assert rows.allocate(20000) == second and len(rows) == size


@pytest.mark.slow
def test_swapping_rooms_leaks_nothing():
    """A hundred swaps leave no more textures, materials and rows than the first few."""
    rooms = [build_room(f"foyer-{seed}") for seed in range(4)]
    renderer = WarpRenderer(rooms[:2], 1, 28)
    sizes = []
    for turn in range(100):
        renderer.replace(turn % 2, rooms[turn % 4])
        store = renderer._store
        sizes.append((len(store.textures.items), len(store.materials.items), len(store.faces), len(store.nodes)))
    assert max(sizes[50:]) <= max(sizes[:8])


def test_shared_objects_are_made_once_and_their_indices_reused():
    shared = SharedPool()
    first, second = shared.index(("a",), lambda: "A"), shared.index(("b",), lambda: "B")
    shared.acquire({first, second})
    shared.acquire({first})
    assert shared.index(("a",), lambda: "again") == first and shared.items == ["A", "B"]
    shared.release({first, second})
    assert shared.index(("c",), lambda: "C") == second and shared.items == ["A", "C"]


def test_the_kernels_compile_for_a_gpu(tmp_path):
    """NVIDIA's run-time compiler ships with Warp and needs no GPU, so errors in kernels show on every machine."""
    for module in (raycast, shading):
        wp.compile_aot_module(module, arch=80, module_dir=tmp_path, use_ptx=True)
    assert len(list(tmp_path.glob("*.ptx"))) == 2
