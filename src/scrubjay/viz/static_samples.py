"""A page of samples of the static experiments' data: images beside the labels of all seven tasks."""

from __future__ import annotations

import os

import numpy as np

from scrubjay.study.static_data import SPLITS, StaticData
from scrubjay.viz.page import Figure, Section, write_page
from scrubjay.viz.picture import depth_colors, normal_colors

SAMPLES = 6
"""Images of each split."""
CLOSED, OPEN, WALKABLE, TAKEN_OUT = (255, 180, 0), (255, 0, 160), (0, 190, 90), (220, 30, 30)


def write_samples_page(data: StaticData, path: str | os.PathLike[str]) -> None:
    """Draws images of each split, evenly spaced, with their labels."""
    sections = []
    for name in SPLITS:
        rows = data.split(name)
        for row in rows[np.linspace(0, len(rows) - 1, min(SAMPLES, len(rows))).astype(int)].tolist():
            sections.append(_section(data, row))
    counts = ", ".join(f"{len(data.split(name)):,} {name}" for name in SPLITS)
    objects = (data.index["object"] >= 0).mean()
    facts = (
        f"Images: {counts}. {objects:.0%} of them have an object to take out. The most frequent of "
        f"{len(data.classes)} classes: {', '.join(data.classes[:12])}."
    )
    write_page(path, "Synthetic images and their labels", facts, sections)


def _section(data: StaticData, row: int) -> Section:
    """An image with all its labels."""
    place, rows = data.index[row], [row]
    image = data.images(rows)[0]
    openability = data.labels("openability", rows)["target"][0]
    figures = [
        Figure(image, "image"),
        Figure(depth_colors(data.labels("depth", rows)["target"][0]), "depth, up to 6 m"),
        Figure(normal_colors(data.labels("normals", rows)["target"][0]), "normals: right, up, backward"),
        Figure(tint(tint(image, openability == 1, CLOSED), openability == 2, OPEN), "openable: closed, open (pink)"),
        Figure(tint(image, data.labels("traversable", rows)["target"][0], WALKABLE), "traversable"),
    ]
    if place["object"] >= 0:
        depth, normals = (data.labels(task, rows) for task in ("object_depth", "object_normals"))
        figures += [
            Figure(tint(image, depth["mask"][0], TAKEN_OUT), f"taken out: {place['object_type']}"),
            Figure(depth_colors(depth["target"][0]), "depth without it"),
            Figure(normal_colors(normals["target"][0]), "normals without it"),
        ]
    shown = [name for name, there in zip(data.classes, data.labels("class", rows)["target"][0], strict=True) if there]
    posture = "standing" if place["standing"] else "crouching"
    text = (
        f"{posture} at ({place['x']:.2f}, {place['y']:.2f}), {place['rotation']} degrees, "
        f"{'some openables open' if place['opened'] else 'everything closed'}. Classes: {', '.join(shown) or 'none'}."
    )
    return Section(f"{row}: {place['scene']}, {place['split']}", text[0].upper() + text[1:], figures)


def tint(image: np.ndarray, mask: np.ndarray, color: tuple[int, int, int]) -> np.ndarray:
    """An image with its pixels in a mask colored, or partly where it is between 0 and 1."""
    share = 0.65 * np.asarray(mask, np.float32)[..., None]
    return (image * (1 - share) + np.array(color) * share).astype(np.uint8)
