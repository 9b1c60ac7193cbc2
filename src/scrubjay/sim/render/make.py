"""Which renderer draws, and on which device."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from scrubjay.errors import RendererError
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.render.base import Renderer
from scrubjay.sim.render.opengl import OpenGLRenderer

NAMES = ("auto", "opengl", "warp")
BYTES_PER_PIXEL = 3 + 4 + 2 + 12
BYTES_PER_HIT = 4 + 2 + 4 + 8
BYTES_PER_ROOM = 16 << 20
"""A room's triangles, tree and floor, at most."""


def make_renderer(
    name: str,
    rooms: Sequence[CompiledRoom],
    copies: int,
    size: int,
    device: str = "cpu",
    shadows: bool = False,
    culled: bool = False,
) -> Renderer:
    """A renderer by name: 'opengl', 'warp', or 'auto', the fastest that works on the device.

    `culled` enables back-face culling, to look into a room from outside. There is no fallback to another device: a
    device that cannot render is an error, raised before anything is allocated. Only Warp renders `shadows`, which the
    first lamp casts.
    """
    check_request(name, device, len(rooms), copies, size)
    if shadows and name == "opengl":
        raise RendererError("shadows are drawn by the renderer 'warp' only")
    if name != "warp" and not shadows and device == "cpu":
        try:
            return OpenGLRenderer(rooms, copies, size, culled)
        except RendererError:
            if name == "opengl":
                raise
    from scrubjay.sim.render.warp import WarpRenderer  # Imported late: Warp looks for devices when it starts.

    return WarpRenderer(rooms, copies, size, device, shadows, culled)


def check_request(name: str, device: str, rooms: int, copies: int, size: int) -> None:
    """Raises an error that says what to do if the renderer is not available, before anything is allocated."""
    if name not in NAMES:
        raise ValueError(f"unknown renderer {name!r}; there are {', '.join(NAMES)}")
    check_device(device)
    if device.startswith("cuda"):
        if name == "opengl":
            raise RendererError("OpenGL draws on the CPU's side; on a CUDA device use the renderer 'warp' or 'auto'")
        check_memory(device, rooms, copies, size)


def check_device(device: str) -> None:
    """Raises RendererError if the device is not available."""
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdigit()):
        raise RendererError(f"unknown device {device!r}; it is 'cpu', 'cuda' or 'cuda:N'")
    if kind == "cpu":
        return
    if not torch.backends.cuda.is_built():
        raise RendererError("this PyTorch was built without CUDA; install one with it, or use the device 'cpu'")
    if not torch.cuda.is_available():
        raise RendererError(
            "no CUDA device is found: is there an NVIDIA GPU, and is its driver new enough for CUDA "
            f"{torch.version.cuda}? `nvidia-smi` tells both. Or use the device 'cpu'"
        )
    count = torch.cuda.device_count()
    if int(number or 0) >= count:
        raise RendererError(f"there is no {device}: this machine has cuda:0 to cuda:{count - 1}")
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    wp.init()
    if (device if number else "cuda:0") not in {found.alias for found in wp.get_cuda_devices()}:
        raise RendererError(f"Warp cannot use {device}: its driver is too old; update NVIDIA's driver")


def check_memory(device: str, rooms: int, copies: int, size: int) -> None:
    """Raises RendererError if the worlds do not fit into the GPU's free memory."""
    free, _ = torch.cuda.mem_get_info(device)
    pixels = size * size * rooms * copies
    needed = pixels * BYTES_PER_PIXEL + min(pixels, 512 * size * size) * BYTES_PER_HIT + rooms * BYTES_PER_ROOM
    if needed > free:
        fitting = int((free - rooms * BYTES_PER_ROOM) / (size * size * (BYTES_PER_PIXEL + BYTES_PER_HIT)) / rooms)
        raise RendererError(
            f"{rooms} rooms x {copies} copies at {size} x {size} need about {needed / 2**30:.1f} GiB, and {device} has "
            f"{free / 2**30:.1f} GiB free; take at most about {max(fitting, 0)} copies, fewer rooms or smaller images"
        )
