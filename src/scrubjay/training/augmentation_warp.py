"""The augmentation of images on a GPU, in NVIDIA Warp: what `augment.py` does in torch, from bytes to bytes.

Contrast needs a picture's mean before any of its pixels is known, so there are two kernels: one sums, one colors. Both
sample the picture; that is cheaper than keeping what the first one sampled. A block has a band of a picture and writes
one row of whole numbers, so that sums do not depend on who comes first, and nothing has to be set to zero before.
"""

from __future__ import annotations

import torch
import warp as wp

BLOCK = 256
"""Threads of a block."""
BAND = 14 * BLOCK
"""Pixels of a block, one after another: 16 rows of an image of 224. Their sums stay within 32 bits."""
PARTS = 256.0
"""Of a grey level: sums are of whole numbers of them."""

wp.config.log_level = wp.LOG_ERROR  # As in the ray caster, whichever of them starts Warp.
# Products and sums are rounded one by one, as torch's are: which pixels are black is then the same to the last bit.
wp.set_module_options({"enable_backward": False, "fuse_fp": False})

Frame = wp.types.vector(length=6, dtype=wp.float32)
"""Cosine and sine of the turn, what is cut from the left and how much is kept, and the same from the top."""


@wp.func
def along(offset: float, first: float, share: float, size: int) -> float:
    """From pixels from the middle to the pixel of the uncropped image, not beyond the outermost that are kept."""
    edge = float(size)
    at = share * offset + (first + 0.5 * share) * edge - 0.5
    return wp.min(wp.max(at, first * edge), (first + share) * edge - 1.0)


@wp.func
def mixed(a: wp.vec3ub, b: wp.vec3ub, share: float) -> wp.vec3:
    """Between two pixels, this far from the first."""
    first = wp.vec3(float(a[0]), float(a[1]), float(a[2]))
    return first + share * (wp.vec3(float(b[0]), float(b[1]), float(b[2])) - first)


@wp.func
def sampled(images: wp.array3d[wp.vec3ub], image: int, pixel: int, frame: Frame) -> wp.vec4:
    """A new pixel's color before the colors change, and 1; zeros if it is from beyond the picture that is rotated."""
    height = images.shape[1]
    width = images.shape[2]
    x = float(pixel % width) - float(width - 1) / 2.0
    y = float(pixel // width) - float(height - 1) / 2.0
    u = frame[0] * x - frame[1] * y
    v = frame[1] * x + frame[0] * y
    if wp.abs(u) > float(width) / 2.0 or wp.abs(v) > float(height) / 2.0:
        return wp.vec4(0.0, 0.0, 0.0, 0.0)
    across = along(u, frame[2], frame[3], width)
    down = along(v, frame[4], frame[5], height)
    left = wp.clamp(int(wp.floor(across)), 0, width - 1)
    top = wp.clamp(int(wp.floor(down)), 0, height - 1)
    right = wp.min(left + 1, width - 1)
    bottom = wp.min(top + 1, height - 1)
    share = across - float(left)
    above = mixed(images[image, top, left], images[image, top, right], share)
    below = mixed(images[image, bottom, left], images[image, bottom, right], share)
    color = above + (down - float(top)) * (below - above)
    return wp.vec4(color[0], color[1], color[2], 1.0)


@wp.func
def level(value: float) -> float:
    """The nearest of 0 to 255."""
    return wp.rint(wp.clamp(value, 0.0, 255.0))


@wp.kernel
def add_up(images: wp.array3d[wp.vec3ub], frames: wp.array[Frame], sums: wp.array[wp.vec4i]):
    """The sums of each band's red, green and blue, and how many pixels they are of."""
    image, band, thread = wp.tid()
    pixels = images.shape[1] * images.shape[2]
    frame = frames[image]
    mine = wp.vec4i(0, 0, 0, 0)
    for pixel in range(band * BAND + thread, wp.min((band + 1) * BAND, pixels), wp.block_dim()):
        seen = sampled(images, image, pixel, frame)
        mine += wp.vec4i(
            int(wp.rint(seen[0] * PARTS)), int(wp.rint(seen[1] * PARTS)), int(wp.rint(seen[2] * PARTS)), int(seen[3])
        )
    total = wp.tile_sum(wp.tile(mine, preserve_type=True))
    wp.tile_store(sums, total, offset=image * ((pixels + BAND - 1) // BAND) + band)


@wp.kernel
def color(
    images: wp.array3d[wp.vec3ub],
    frames: wp.array[Frame],
    matrices: wp.array[wp.mat33],
    greys: wp.array[wp.vec3],
    sums: wp.array[wp.vec4i],
    changed: wp.array3d[wp.vec3ub],
):
    """Each pixel times its image's matrix, plus the contrast's share of the mean; black stays where nothing was."""
    image, band, thread = wp.tid()
    pixels = images.shape[1] * images.shape[2]
    width = images.shape[2]
    bands = (pixels + BAND - 1) // BAND
    total = wp.vec4(0.0, 0.0, 0.0, 0.0)
    for k in range(bands):
        some = sums[image * bands + k]
        total += wp.vec4(float(some[0]), float(some[1]), float(some[2]), float(some[3]))
    added = wp.dot(wp.vec3(total[0], total[1], total[2]), greys[image]) / (PARTS * total[3])
    frame = frames[image]
    matrix = matrices[image]
    for pixel in range(band * BAND + thread, wp.min((band + 1) * BAND, pixels), wp.block_dim()):
        seen = sampled(images, image, pixel, frame)
        new = wp.vec3(added, added, added) + matrix * wp.vec3(seen[0], seen[1], seen[2])
        new = seen[3] * wp.vec3(level(new[0]), level(new[1]), level(new[2]))
        changed[image, pixel // width, pixel % width] = wp.vec3ub(wp.uint8(new[0]), wp.uint8(new[1]), wp.uint8(new[2]))


def load(device: torch.device) -> None:
    """Compiles the kernels, or finds them compiled: not while a CUDA graph is recorded."""
    wp.init()
    wp.load_module(__name__, device=wp.device_from_torch(device), block_dim=BLOCK)


def change(images: torch.Tensor, geometry: torch.Tensor, matrices: torch.Tensor, greys: torch.Tensor) -> torch.Tensor:
    """New images, (B, height, width, 3) uint8, of images changed as (B, 6), (B, 3, 3) and (B, 3) float32 say.

    Everything is on one device. Memory and stream are torch's, so that a CUDA graph can record the call.
    """
    wp.init()
    count, height, width, _ = images.shape
    bands = -(-height * width // BAND)
    images = images.contiguous()
    changed = torch.empty_like(images)
    sums = torch.empty((count * bands, 4), dtype=torch.int32, device=images.device)
    stream = wp.stream_from_torch(torch.cuda.current_stream(images.device)) if images.is_cuda else None
    launch = dict(dim=(count, bands), block_dim=BLOCK, device=wp.device_from_torch(images.device), stream=stream)
    shown = [wp.from_torch(images, wp.vec3ub), wp.from_torch(geometry, Frame)]
    totals = wp.from_torch(sums, wp.vec4i)
    wp.launch_tiled(add_up, inputs=shown, outputs=[totals], **launch)
    colors = [wp.from_torch(matrices, wp.mat33), wp.from_torch(greys, wp.vec3)]
    wp.launch_tiled(color, inputs=[*shown, *colors, totals], outputs=[wp.from_torch(changed, wp.vec3ub)], **launch)
    return changed
