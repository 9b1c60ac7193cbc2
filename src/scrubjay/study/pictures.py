"""Photographs from files: any format that Pillow reads, whatever the name ends in."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from scrubjay.errors import DataError

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff")
"""What counts as a picture when a folder is listed."""
BROKEN = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)
"""What Pillow raises for files that are no pictures, or broken ones."""


def read_picture(path: str | os.PathLike[str], size: int | None = None, upright: bool = False) -> np.ndarray:
    """A picture (H, W, 3) uint8; resized to `size` x `size` if given, whatever its shape (antialiased, bilinear).

    Of animations the first frame. `upright` turns it as the camera says it was held. DataError if it cannot be decoded.
    """
    try:
        with Image.open(path) as file:
            picture = ImageOps.exif_transpose(file) if upright else file
            picture = picture.convert("RGB")
    except BROKEN as error:
        raise DataError(f"{path}: not a picture, or a broken one") from error
    return resize_picture(np.asarray(picture), size) if size else np.asarray(picture)


def resize_picture(picture: np.ndarray, size: int) -> np.ndarray:
    """A picture (H, W, 3) uint8 at size x size, antialiased."""
    return np.asarray(Image.fromarray(picture).resize((size, size), Image.Resampling.BILINEAR))


def resize_labels(labels: np.ndarray, size: int) -> np.ndarray:
    """Labels (H, W) at size x size: those of the nearest pixels, so that no value arises that was not there."""
    rows, columns = ((np.arange(size) + 0.5) * length / size for length in labels.shape)
    return labels[rows.astype(int)[:, None], columns.astype(int)]


def list_pictures(folder: Path) -> list[Path]:
    """The pictures in a folder, by name; DataError if there are none."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise DataError(f"{folder}: no pictures in it")
    return paths


def read_all(
    paths: Sequence[Path],
    into: np.ndarray,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[int]:
    """Reads pictures into `into` (n, S, S, 3), resized, on all cores; returns the places of those that are broken."""
    size = into.shape[1]

    def read(place: int) -> bool:
        try:
            into[place] = read_picture(paths[place], size)
        except DataError:
            return False
        return True

    broken = []
    progress(0, len(paths))
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        for place, whole in enumerate(pool.map(read, range(len(paths)))):
            if not whole:
                broken.append(place)
            progress(place + 1, len(paths))
    finally:  # Ctrl-C does not wait for the rest.
        pool.shutdown(cancel_futures=True)
    return broken
