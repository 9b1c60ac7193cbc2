"""Files of tensors, read without running anything in them, and their digests."""

from __future__ import annotations

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors

from scrubjay.errors import WeightsError

NESTED = ("state_dict", "model", "teacher", "model_state_dict")
"""Where training scripts put the weights among other things."""

DAMAGED = (SafetensorError, pickle.UnpicklingError, OSError, RuntimeError, EOFError, ValueError, KeyError, BadZipFile)
"""What the readers raise on files that are cut off, are something else, or would run code."""


def read_tensors(path: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """The tensors by name of a safetensors file or of a state dict that torch.save wrote, on the CPU.

    WeightsError if it is neither, or would run code.
    """
    path = Path(path)
    if not path.is_file():
        raise WeightsError(f"{path}: cannot be read: not a file")
    try:
        if path.suffix == ".safetensors":
            return safetensors.load_file(path)
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except DAMAGED as error:
        raise WeightsError(f"{path}: not a file of tensors alone, or damaged: {_first_sentence(error)}") from error
    for name in NESTED:
        if isinstance(content, dict) and isinstance(content.get(name), dict):
            content = content[name]
    if not isinstance(content, dict) or not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise WeightsError(f"{path}: holds no tensors by name; save a module's state_dict()")
    return {str(name): value for name, value in content.items()}


def sha256_of(tensors: dict[str, torch.Tensor]) -> str:
    """A digest of names, dtypes, shapes and values: the same wherever the tensors are stored."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _first_sentence(error: Exception) -> str:
    return str(error).strip().split("\n")[0].split(". ")[0][:200]
