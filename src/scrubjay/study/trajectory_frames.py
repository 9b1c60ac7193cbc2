"""Images and labels of trajectories: what agents see while their hands move an object."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.world import NOTHING, World
from scrubjay.study.foyer_scripts import Trajectories
from scrubjay.study.foyer_tracking import cell_counts
from scrubjay.study.sequences import SIZE, Clip

BATCH, GPU_BATCH = 32, 256
"""Images rendered at once on a CPU or a GPU; their number changes no image."""
TRACKING_EXTRAS = {"cells": ("uint16", (7, 7)), "visible": ("int32", ())}
"""The object's pixels in each cell with all else invisible, and its visible pixels in the whole image."""


def clip_of(trajectories: Trajectories, world: int, images: np.ndarray, columns: dict, extras: dict) -> Clip:
    """A world's trajectory with its images (T, 224, 224, 3): agents stay where they are."""
    length = len(images)
    actions = np.concatenate([[NOTHING], trajectories.actions[world, : length - 1]])
    place = np.tile([0, 0, 0, int(trajectories.standing[world])], (length, 1))
    return Clip(images, actions, actions != NOTHING, place, GOALS[trajectories.goal[world]], columns, extras)


class FrameRenderer:
    """Renders the frames of trajectories in one room, each distinct one once."""

    def __init__(self, room: CompiledRoom, trajectories: Trajectories, renderer: str, device: str) -> None:
        batch = GPU_BATCH if device.startswith("cuda") else BATCH
        self.trajectories, self.world = trajectories, World([room], batch, renderer, SIZE, device, threads=1)

    def __enter__(self) -> FrameRenderer:
        return self

    def __exit__(self, *_: object) -> None:
        self.world.close()

    def images(self, worlds: np.ndarray) -> list[np.ndarray]:
        """Images (T, 224, 224, 3) of worlds (n,) of the trajectories."""
        if not len(worlds):
            return []
        (images,) = self._each(worlds, lambda mask: [self.world.view(("rgb",), worlds=mask).rgb.cpu().numpy()])
        return images

    def labels(self, worlds: np.ndarray) -> list[dict[str, np.ndarray]]:
        """TRACKING_EXTRAS of worlds (n,)."""

        def count(mask: np.ndarray) -> list[np.ndarray]:
            seen, alone = self.world.goal_pixels(mask)
            return [cell_counts(alone), seen.flatten(1).sum(1).cpu().numpy()]

        if not len(worlds):
            return []
        cells, visible = self._each(worlds, count)
        return [{"cells": c, "visible": v} for c, v in zip(cells, visible, strict=True)]

    def _each(self, worlds: np.ndarray, render: Callable[[np.ndarray], list[np.ndarray]]) -> list[list[np.ndarray]]:
        """What `render` says of the frames of worlds, at least one, split by world."""
        t, state, lengths = self.trajectories, self.world.state, self.trajectories.lengths
        of = np.repeat(worlds, lengths[worlds])
        step = np.concatenate([np.arange(lengths[world]) for world in worlds])
        frames = np.column_stack([t.position[of], t.rotation[of], t.standing[of], t.goal[of], t.poses[of, step]])
        distinct, which = np.unique(frames, axis=0, return_inverse=True)
        parts: list[list[np.ndarray]] = []
        for first in range(0, len(distinct), len(self.world)):
            some = distinct[first : first + len(self.world)]
            here = slice(0, len(some))
            state.position[here], state.rotation[here] = some[:, :2], some[:, 2]
            state.standing[here], state.goal[here], state.pose[here] = some[:, 3] == 1, some[:, 4], some[:, 5:]
            parts.append(render(np.arange(len(self.world)) < len(some)))
        frames_of = np.split(which.ravel(), np.cumsum(lengths[worlds])[:-1])

        def one_world(kind: int, own: np.ndarray) -> np.ndarray:
            # Frame by frame: joining all images first would copy them twice, into fresh memory.
            return np.stack([parts[number // len(self.world)][kind][number % len(self.world)] for number in own])

        return [[one_world(kind, own) for own in frames_of] for kind in range(len(parts[0]))]
