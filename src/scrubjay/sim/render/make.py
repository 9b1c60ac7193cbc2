"""Chooses a renderer for a device, and checks that the device can render."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from scrubjay.errors import RendererError
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.render.base import Renderer
from scrubjay.sim.render.opengl import OpenGLRenderer, check_fork

NAMES = ("auto", "opengl", "warp")
BYTES_PER_PIXEL = 3 + 4 + 2 + 12
BYTES_PER_HIT = 4 + 2 + 4 + 8
BYTES_PER_ROOM = 16 << 20
"""Upper bound of a room's triangles, BVHs and floor texture."""


def make_renderer(
    name: str,
    rooms: Sequence[CompiledRoom],
    copies: int,
    size: int,
    device: str = "cpu",
    shadows: bool = False,
    cull_backfaces: bool = False,
) -> Renderer:
    """A renderer by name: 'opengl', 'warp', or 'auto', the fastest that works on the device.

    `cull_backfaces` lets one look into a room from outside. There is no fallback to another device: one that cannot
    render is an error, raised before anything is allocated. Only Warp renders `shadows`, which the first lamp casts.
    """
    check_request(name, device, len(rooms), copies, size)
    if shadows and name == "opengl":
        raise RendererError("only the renderer 'warp' renders shadows")
    if name != "warp" and not shadows and device == "cpu":
        check_fork()  # Not a reason to take another renderer: images would differ from the parent's.
        try:
            return OpenGLRenderer(rooms, copies, size, cull_backfaces)
        except RendererError:
            if name == "opengl":
                raise
    from scrubjay.sim.render.warp import WarpRenderer  # Imported late: Warp enumerates devices on import.

    return WarpRenderer(rooms, copies, size, device, shadows, cull_backfaces)


def check_request(name: str, device: str, rooms: int, copies: int, size: int) -> None:
    """Raises RendererError if the renderer is not available, ValueError if it is unknown. Allocates nothing."""
    if name not in NAMES:
        raise ValueError(f"unknown renderer {name!r}; choose one of {', '.join(NAMES)}")
    check_device(device)
    if device.startswith("cuda"):
        if name == "opengl":
            raise RendererError("OpenGL renders to the CPU; for a CUDA device use the renderer 'warp' or 'auto'")
        check_memory(device, rooms, copies, size)


def check_device(device: str) -> None:
    """Raises RendererError if the device is not available."""
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdigit()):
        raise RendererError(f"unknown device {device!r}; use 'cpu', 'cuda' or 'cuda:N'")
    if kind == "cpu":
        return
    if not torch.backends.cuda.is_built():
        raise RendererError("this PyTorch was built without CUDA; install a CUDA build, or use the device 'cpu'")
    if not torch.cuda.is_available():
        raise RendererError(
            "no CUDA device found: check with `nvidia-smi` that there is an NVIDIA GPU with a driver for CUDA "
            f"{torch.version.cuda}, or use the device 'cpu'"
        )
    count = torch.cuda.device_count()
    if int(number or 0) >= count:
        raise RendererError(f"there is no {device}: this machine has cuda:0 to cuda:{count - 1}")
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    wp.init()
    if (device if number else "cuda:0") not in {cuda.alias for cuda in wp.get_cuda_devices()}:
        raise RendererError(f"Warp cannot use {device}: update the NVIDIA driver")


def check_memory(device: str, rooms: int, copies: int, size: int) -> None:
    """Raises RendererError if the worlds do not fit into the GPU's free memory."""
    free, _ = torch.cuda.mem_get_info(device)
    pixels = size * size * rooms * copies
    needed = pixels * BYTES_PER_PIXEL + min(pixels, 512 * size * size) * BYTES_PER_HIT + rooms * BYTES_PER_ROOM
    if needed > free:
        max_copies = int((free - rooms * BYTES_PER_ROOM) / (size * size * (BYTES_PER_PIXEL + BYTES_PER_HIT)) / rooms)
        raise RendererError(
            f"{rooms} rooms x {copies} copies at {size} x {size} need about {needed / 2**30:.1f} GiB, but {device} has "
            f"{free / 2**30:.1f} GiB free; use at most about {max(max_copies, 0)} copies, fewer rooms or smaller images"
        )
