"""How operations run on a GPU. Fused, pointwise ones are one kernel instead of a dozen small ones.

Recurrent networks are mostly small operations, and a GPU spends longer starting them than computing. `torch.compile`
fuses them. It needs Triton and a C compiler; without either, and on a CPU, functions run as written. PyTorch's own
TORCH_COMPILE_DISABLE=1 switches it off.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")
_varying, _benchmark, _varying_lock = 0, False, threading.Lock()
"""Threads within `varying_shapes`, and the setting to restore."""
RECOMPILE_LIMIT = 64
"""Shapes that each function is compiled for: acting, learning, hindsight and validation differ in theirs."""


@functools.cache
def can_fuse() -> bool:
    """Is there what `torch.compile` needs on this machine's GPU?"""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    return bool(compiler) and importlib.util.find_spec("triton") is not None


def autocast(device: str) -> torch.autocast:
    """How agents compute where they play: in bfloat16 on a GPU, as when they learn there; as they are on a CPU."""
    return torch.autocast("cuda", torch.bfloat16, enabled=device.startswith("cuda"))


def fuse(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function of tensors: compiled on a GPU, once for each combination of shapes, where gradients are
    computed. Without them an agent acts, and its step is a CUDA graph: compiling would take longer than it saves."""
    return _fuse(function, torch.is_grad_enabled)


def fuse_always(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function or method worth compiling for acting too, or used where autograd itself is off."""
    return _fuse(function, lambda: True)


def _fuse(function: Callable[P, R], wanted: Callable[[], bool]) -> Callable[P, R]:
    @functools.cache
    def compiled() -> Callable[..., Any]:
        import torch._dynamo.config as dynamo

        dynamo.recompile_limit = max(dynamo.recompile_limit, RECOMPILE_LIMIT)
        return torch.compile(function, dynamic=False)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        on_gpu = any(isinstance(value, torch.Tensor) and value.is_cuda for value in args)
        if on_gpu and wanted() and not torch.compiler.is_compiling() and can_fuse():
            return compiled()(*args, **kwargs)
        return function(*args, **kwargs)

    return call


@contextlib.contextmanager
def varying_shapes() -> Iterator[None]:
    """Convolutions whose shapes differ from call to call.

    With `cudnn.benchmark`, which training sets, cuDNN tries all its algorithms on each new shape: far longer than the
    convolution itself takes. The setting is the whole process's: of several threads the last to leave restores it.
    """
    global _varying, _benchmark
    with _varying_lock:
        if not _varying:
            _benchmark, torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark, False
        _varying += 1
    try:
        yield
    finally:
        with _varying_lock:
            _varying -= 1
            if not _varying:
                torch.backends.cudnn.benchmark = _benchmark


def compute_dtype(like: torch.Tensor) -> torch.dtype:
    """The dtype of matrix products: autocast's, or that of a tensor."""
    kind = like.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else like.dtype
