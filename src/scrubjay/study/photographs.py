"""Depth in photographs, by decoders that a static study has trained on rendered rooms: does what they learned transfer?

Photographs are those that installed packages carry, read from their files without importing them or asking the
network, or a folder of your own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from scipy.stats import spearmanr

from scrubjay.errors import DataError, EncoderError
from scrubjay.study.encoders import IMAGE_SIZE, StudyEncoder
from scrubjay.study.features import BATCH, Skips, to_device
from scrubjay.study.pictures import BROKEN, list_pictures, read_picture, resize_labels, resize_picture
from scrubjay.study.probe import Examples, predict
from scrubjay.study.probe_files import load_probe
from scrubjay.study.static import DECODERS, PLAIN, WITH_SKIPS, read_probes

MOST = 48
"""Photographs of a folder that are read; a page of more would be large."""
FOCAL_LENGTH, BASELINE, OFFSET = 994.978, 0.193001, 31.086
"""Of scikit-image's motorcycle: pixels, meters, and pixels between the cameras' principal points, as its documentation
has them from Middlebury."""
OPENCV_DOC = Path("/usr/share/doc/opencv-doc/examples/data")
"""Where Debian's package puts OpenCV's pictures."""
TYPICAL = 3.0
"""Median, in meters, of true depths that are known only up to scale."""


@dataclass(frozen=True)
class Photograph:
    """The central square of a photograph."""

    name: str
    image: np.ndarray
    """(224, 224, 3) uint8."""
    licence: str
    depth: np.ndarray | None = None
    """Measured, (224, 224) float32, in meters, 0 where unknown."""
    note: str = ""
    """Where the measured depth is from."""


SKIMAGE = {
    "coffee": ("coffee.png", "CC0, Rachel Michetti"),
    "chelsea": ("chelsea.png", "CC0, Stéfan van der Walt"),
    "astronaut": ("astronaut.png", "public domain, NASA"),
}
"""Files and licences of scikit-image's photographs."""
OPENCV = {"box in scene": ("box_in_scene.png", "Apache-2.0, OpenCV")}


def packaged_photographs(opencv: Path = OPENCV_DOC) -> list[Photograph]:
    """Photographs of scikit-image and of Debian's opencv-doc, as far as they are installed; DataError if none is."""
    found, folder = list[Photograph](), _skimage_data()
    if folder is not None:
        found += [_motorcycle(folder)] if (folder / "motorcycle_disp.npz").is_file() else []
        found += _pictures(folder, SKIMAGE)
    if (opencv / "aloeGT.png").is_file():
        found.append(_aloe(opencv))
    found += _pictures(opencv, OPENCV)
    if not found:
        raise DataError(
            "photographs: none are installed; pip install scrubjay[natural] (scikit-image carries some), or give a "
            "folder of pictures"
        )
    return found


def own_photographs(folder: Path) -> list[Photograph]:
    """The first pictures of a folder, at most MOST; DataError if one is broken or there is none."""
    return [
        Photograph(path.name, center_picture(read_picture(path, upright=True)), "yours")
        for path in list_pictures(Path(folder))[:MOST]
    ]


def depth_decoders(results: Path, encoders: Sequence[StudyEncoder]) -> dict[str, dict[str, Path]]:
    """Files of the depth decoders of a study, by decoder kind and encoder; every encoder has the plain one.

    DataError or EncoderError if the study has none of an encoder, or is of other weights of that name.
    """
    kinds = {kind: read_probes(results, "depth", kind) for kind in (PLAIN, WITH_SKIPS)}
    keys = _encoder_keys(results)
    for encoder in encoders:
        name = encoder.description.name
        if DECODERS not in kinds[PLAIN].get(name, {}):
            there = ", ".join(sorted(each for each, files in kinds[PLAIN].items() if DECODERS in files)) or "none"
            raise DataError(
                f"{results}: no depth decoder of {name}, but of {there}; run `scrubjay study static` with {name} first"
            )
        if keys.get(name) != encoder.description.key:
            raise EncoderError(f"{results}: {name} has other weights now than when its decoder was trained")
    names = [encoder.description.name for encoder in encoders]
    return {
        kind: {name: files[name][DECODERS] for name in names if DECODERS in files.get(name, {})}
        for kind, files in kinds.items()
    }


def predict_depth(
    decoder: Path, encoder: StudyEncoder, photographs: Sequence[Photograph], device: str = "cpu"
) -> np.ndarray:
    """Depth that a decoder's file reads out of an encoder's features, (n, H, W) float32, in meters.

    Meters of the rendered rooms' camera, whose images are 90 degrees wide: a narrower lens makes things seem nearer.
    """
    images = np.stack([photograph.image for photograph in photographs])
    probe, encoder = load_probe(decoder), encoder.to(device)
    parts = [encoder(to_device(images[at : at + BATCH], device)).sir for at in range(0, len(images), BATCH)]
    skips = None
    if probe.with_skips:
        skips = Skips(encoder, lambda rows: images[rows], np.arange(len(images)), device)
    # The decoder's size is no larger than the pictures'; labels only have to have a shape.
    labels = {"target": np.zeros((len(images), IMAGE_SIZE, IMAGE_SIZE), np.float32)}
    sir = torch.cat(parts).to(torch.bfloat16)
    return predict(probe, Examples(sir, labels, skips), device)


def rank_correlation(predicted: np.ndarray, depth: np.ndarray) -> float:
    """Spearman's correlation of a prediction (h, w) with measured depth (H, W), where that is known."""
    depth = resize_labels(depth, len(predicted))
    known = depth > 0
    if known.sum() < 2 or np.ptp(predicted[known]) == 0:
        return float("nan")
    return float(spearmanr(predicted[known], depth[known]).statistic)


def center_picture(picture: np.ndarray) -> np.ndarray:
    """The central square of a picture (H, W, 3), at 224 pixels."""
    return resize_picture(np.ascontiguousarray(center(picture)), IMAGE_SIZE)


def center(values: np.ndarray) -> np.ndarray:
    """The central square of (H, W, ...)."""
    side = min(values.shape[:2])
    top, left = (values.shape[0] - side) // 2, (values.shape[1] - side) // 2
    return values[top : top + side, left : left + side]


def _skimage_data() -> Path | None:
    spec = find_spec("skimage")
    return Path(spec.origin).parent / "data" if spec is not None and spec.origin else None


def _pictures(folder: Path, files: dict[str, tuple[str, str]]) -> list[Photograph]:
    return [
        Photograph(name, center_picture(read_picture(folder / file)), licence)
        for name, (file, licence) in files.items()
        if (folder / file).is_file()
    ]


def _motorcycle(folder: Path) -> Photograph:
    """The left of scikit-image's stereo pair; its disparities and calibration give meters."""
    try:
        with np.load(folder / "motorcycle_disp.npz", allow_pickle=False) as file:
            disparity = file["arr_0"]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{folder / 'motorcycle_disp.npz'}: damaged; install scikit-image again") from error
    known = np.isfinite(disparity)
    depth = np.where(known, FOCAL_LENGTH * BASELINE / (np.where(known, disparity, 0) + OFFSET), 0)
    return Photograph(
        "motorcycle",
        center_picture(read_picture(folder / "motorcycle_left.png")),
        "Middlebury 2014 stereo, Scharstein et al. (GCPR 2014), as scikit-image distributes it",
        resize_labels(center(depth), IMAGE_SIZE).astype(np.float32),
        "measured by structured light: meters by Middlebury's calibration",
    )


def _aloe(folder: Path) -> Photograph:
    """The left of OpenCV's stereo pair; without a calibration, depth is the inverse of disparity."""
    try:
        with Image.open(folder / "aloeGT.png") as file:
            disparity = np.asarray(file.convert("L"), np.float32)
    except BROKEN as error:
        raise DataError(f"{folder / 'aloeGT.png'}: not a picture, or a broken one") from error
    depth = np.where(disparity > 0, 1 / np.maximum(disparity, 1), 0)
    depth *= TYPICAL / np.median(depth[depth > 0])
    return Photograph(
        "aloe",
        center_picture(read_picture(folder / "aloeL.jpg")),
        "Apache-2.0, OpenCV; from Middlebury 2006 stereo",
        resize_labels(center(depth), IMAGE_SIZE).astype(np.float32),
        f"inverse disparity: the scale is unknown, and drawn with a median of {TYPICAL:.0f} m",
    )


def _encoder_keys(results: Path) -> dict[str, str]:
    path = results / "encoders.json"
    try:
        return {each["name"]: each["key"] for each in json.loads(path.read_text())}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a list of encoders: {error}") from error
