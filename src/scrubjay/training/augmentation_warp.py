"""Image augmentation on a GPU, in NVIDIA Warp: the same as `augmentation.py`, from bytes to bytes.

Contrast needs the image's mean before any pixel is known, so there are two kernels: one sums, one applies colors. Both
sample the image, which is cheaper than storing the samples. A block handles a band of an image and writes one row of
integer sums: the result does not depend on the order of blocks, and nothing has to be zeroed first.
"""

from __future__ import annotations

import torch
import warp as wp

BLOCK = 256
"""Threads per block."""
BAND = 14 * BLOCK
"""Consecutive pixels per block: 16 rows of an image of 224. Their sums fit into 32 bits."""
FIXED_POINT = 256.0
"""Sums are integers in units of 1/256 of a gray level."""

wp.config.log_level = wp.LOG_ERROR  # As in the ray caster: either may be the first to load Warp.
# No fused multiply-add, like torch: the mask of black pixels is then bit-identical.
wp.set_module_options({"enable_backward": False, "fuse_fp": False})

Frame = wp.types.vector(length=6, dtype=wp.float32)
"""Cosine and sine of the rotation, left margin and kept width, top margin and kept height."""


@wp.func
def along(offset: float, first: float, share: float, size: int) -> float:
    """From a pixel offset from the center to a pixel of the uncropped image, clamped to the kept ones."""
    edge = float(size)
    at = share * offset + (first + 0.5 * share) * edge - 0.5
    return wp.min(wp.max(at, first * edge), (first + share) * edge - 1.0)


@wp.func
def lerp(a: wp.vec3ub, b: wp.vec3ub, share: float) -> wp.vec3:
    """Linear interpolation between two pixels."""
    first = wp.vec3(float(a[0]), float(a[1]), float(a[2]))
    return first + share * (wp.vec3(float(b[0]), float(b[1]), float(b[2])) - first)


@wp.func
def sample(images: wp.array3d[wp.vec3ub], image: int, pixel: int, frame: Frame) -> wp.vec4:
    """A pixel's color before color jitter, and 1; zeros outside the rotated image."""
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
    above = lerp(images[image, top, left], images[image, top, right], share)
    below = lerp(images[image, bottom, left], images[image, bottom, right], share)
    color = above + (down - float(top)) * (below - above)
    return wp.vec4(color[0], color[1], color[2], 1.0)


@wp.func
def to_level(value: float) -> float:
    """Rounded and clamped to 0..255."""
    return wp.rint(wp.clamp(value, 0.0, 255.0))


@wp.kernel
def sum_colors(images: wp.array3d[wp.vec3ub], frames: wp.array[Frame], sums: wp.array[wp.vec4i]):
    """Each band's sums of red, green and blue, and its number of pixels inside the image."""
    image, band, thread = wp.tid()
    pixels = images.shape[1] * images.shape[2]
    frame = frames[image]
    mine = wp.vec4i(0, 0, 0, 0)
    for pixel in range(band * BAND + thread, wp.min((band + 1) * BAND, pixels), wp.block_dim()):
        pixel_color = sample(images, image, pixel, frame)
        mine += wp.vec4i(
            int(wp.rint(pixel_color[0] * FIXED_POINT)),
            int(wp.rint(pixel_color[1] * FIXED_POINT)),
            int(wp.rint(pixel_color[2] * FIXED_POINT)),
            int(pixel_color[3]),
        )
    total = wp.tile_sum(wp.tile(mine, preserve_type=True))
    wp.tile_store(sums, total, offset=image * ((pixels + BAND - 1) // BAND) + band)


@wp.kernel
def apply_colors(
    images: wp.array3d[wp.vec3ub],
    frames: wp.array[Frame],
    matrices: wp.array[wp.mat33],
    grays: wp.array[wp.vec3],
    sums: wp.array[wp.vec4i],
    augmented: wp.array3d[wp.vec3ub],
):
    """Each pixel times its image's matrix, plus contrast's share of the mean gray; black outside the image."""
    image, band, thread = wp.tid()
    pixels = images.shape[1] * images.shape[2]
    width = images.shape[2]
    bands = (pixels + BAND - 1) // BAND
    total = wp.vec4(0.0, 0.0, 0.0, 0.0)
    for k in range(bands):
        band_sum = sums[image * bands + k]
        total += wp.vec4(float(band_sum[0]), float(band_sum[1]), float(band_sum[2]), float(band_sum[3]))
    added = wp.dot(wp.vec3(total[0], total[1], total[2]), grays[image]) / (FIXED_POINT * total[3])
    frame = frames[image]
    matrix = matrices[image]
    for pixel in range(band * BAND + thread, wp.min((band + 1) * BAND, pixels), wp.block_dim()):
        pixel_color = sample(images, image, pixel, frame)
        new = wp.vec3(added, added, added) + matrix * wp.vec3(pixel_color[0], pixel_color[1], pixel_color[2])
        new = pixel_color[3] * wp.vec3(to_level(new[0]), to_level(new[1]), to_level(new[2]))
        levels = wp.vec3ub(wp.uint8(new[0]), wp.uint8(new[1]), wp.uint8(new[2]))
        augmented[image, pixel // width, pixel % width] = levels


def load(device: torch.device) -> None:
    """Compiles the kernels, or loads them from the cache; must not happen during a CUDA graph capture."""
    wp.init()
    wp.load_module(__name__, device=wp.device_from_torch(device), block_dim=BLOCK)


def augment(images: torch.Tensor, geometry: torch.Tensor, matrices: torch.Tensor, grays: torch.Tensor) -> torch.Tensor:
    """Augmented copies of images (B, height, width, 3) uint8, by coefficients (B, 6), (B, 3, 3) and (B, 3) float32.

    Everything is on one device. Memory and stream are torch's, so that a CUDA graph can capture the call.
    """
    wp.init()
    count, height, width, _ = images.shape
    bands = -(-height * width // BAND)
    images = images.contiguous()
    augmented = torch.empty_like(images)
    sums = torch.empty((count * bands, 4), dtype=torch.int32, device=images.device)
    stream = wp.stream_from_torch(torch.cuda.current_stream(images.device)) if images.is_cuda else None
    launch = dict(dim=(count, bands), block_dim=BLOCK, device=wp.device_from_torch(images.device), stream=stream)
    inputs = [wp.from_torch(images, wp.vec3ub), wp.from_torch(geometry, Frame)]
    totals = wp.from_torch(sums, wp.vec4i)
    wp.launch_tiled(sum_colors, inputs=inputs, outputs=[totals], **launch)
    colors = [wp.from_torch(matrices, wp.mat33), wp.from_torch(grays, wp.vec3)]
    wp.launch_tiled(
        apply_colors, inputs=[*inputs, *colors, totals], outputs=[wp.from_torch(augmented, wp.vec3ub)], **launch
    )
    return augmented
