"""One pass over sequences for many sources of features: each image is read and unpacked once.

Sources say what they want of which frames; watchers, one for each agent and each encoder, look at the images on their
way. Where an agent watches, sequences are lived through from their beginning, many at once; else only wanted frames are
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

import numpy as np
import torch

from scrubjay.agent.fuse import autocast
from scrubjay.errors import DataError
from scrubjay.sim.cells import CELLS
from scrubjay.study.sequences import SequenceData

BATCHES = {"cuda": 1024, "cpu": 16}
"""Sequences, or images, at once. The paper's agent takes about 3 MB a sequence, most of it in the encoder's first
scale, and maps only have room for as many places as there are steps."""
AHEAD = 2
"""Steps whose images are read while the device works on one."""
Progress = Callable[[int, int], None]


class Wanted:
    """Frames, or cells of frames, that features are taken at: each once, whatever the number of examples."""

    def __init__(self, frame: np.ndarray, cell: np.ndarray | None = None) -> None:
        """Of examples: frames (n,), and cells (n, 2) by row and column, or the whole image."""
        code = frame if cell is None else (frame * CELLS + cell[:, 0]) * CELLS + cell[:, 1]
        codes, self.place = np.unique(code, return_inverse=True)
        self.frame = codes if cell is None else codes // CELLS**2
        """(m,), in order."""
        self.cell = None if cell is None else np.stack([codes // CELLS % CELLS, codes % CELLS], 1)
        self._values: np.ndarray | None = None

    def among(self, frames: np.ndarray) -> np.ndarray:
        """Which of frames (B,) are wanted."""
        if not len(self.frame):
            return np.zeros(len(frames), bool)
        return self.frame[np.minimum(np.searchsorted(self.frame, frames), len(self.frame) - 1)] == frames

    def put(self, frames: np.ndarray, values: torch.Tensor) -> None:
        """Takes what is wanted of values (B, D) at frames (B,), or of (B, D, 7, 7) at their cells."""
        first, last = (np.searchsorted(self.frame, frames, side) for side in ("left", "right"))
        row = np.repeat(np.arange(len(frames)), last - first)
        place = np.concatenate([np.arange(*ends) for ends in zip(first, last, strict=True)]).astype(np.int64)
        if not len(row):
            return
        where = torch.from_numpy(row).to(values.device)
        if self.cell is None:
            taken = values[where]
        else:
            across, down = (torch.from_numpy(self.cell[place, axis]).to(values.device) for axis in (0, 1))
            taken = values[where, :, across, down]
        if self._values is None:
            self._values = np.empty((len(self.frame), taken.shape[1]), np.float32)
        self._values[place] = taken.float().cpu().numpy()

    def values(self, name: str) -> np.ndarray:
        """What was taken, (m, D); DataError if it is not finite, with the source's name."""
        assert self._values is not None
        if not np.isfinite(self._values).all():
            raise DataError(f"{name} gives NaN or infinite features")
        return self._values

    def features(self, name: str) -> np.ndarray:
        """Features of the examples, (n, D)."""
        return self.values(name)[self.place]


class Watcher(Protocol):
    """Sees images on their way and takes what is wanted of them."""

    lives: bool
    """Must see every frame of a sequence, from its first."""
    wanted: list[Wanted]

    def begin(self, sequences: int, steps: int) -> None:
        """So many sequences begin, of at most so many steps."""
        ...

    def see(self, frames: np.ndarray, step: int, images: torch.Tensor) -> None:
        """Images (B, 224, 224, 3) at frames (B,), those of the first B sequences."""
        ...


One = TypeVar("One", bound=Watcher)


class FeaturePass:
    """A pass over the images of some examples."""

    def __init__(
        self, data: SequenceData, frame: np.ndarray, cell: np.ndarray | None = None, device: str = "cpu"
    ) -> None:
        """Examples are at frames (n,), and at cells (n, 2) of them."""
        self.data, self.frame, self.cell, self.device = data, frame, cell, device
        self._watchers: dict[str, Watcher] = {}

    def watcher(self, key: str, make: Callable[[], One]) -> One:
        """The watcher of this key, made if there is none."""
        if key not in self._watchers:
            self._watchers[key] = make()
        return self._watchers[key]  # type: ignore[return-value]

    def run(self, progress: Progress = lambda done, total: None) -> None:
        """Shows images to all watchers; `progress` is told of frames."""
        if not self._watchers:
            return
        wanted = [each.frame for one in self._watchers.values() for each in one.wanted]
        frames = np.unique(np.concatenate(wanted))
        lives = any(one.lives for one in self._watchers.values())
        steps = self._steps(frames) if lives else self._chunks(frames)
        total = sum(len(each) for each, _, _ in steps)
        done = 0
        progress(0, total)
        # Batches shrink as sequences end: compiling for each number of them would take far longer than the pass.
        with torch.compiler.set_stance("force_eager"), autocast(self.device):
            for (now, step, longest), images in _read_ahead(self.data, steps, self.device):
                for one in self._watchers.values():
                    if step == 0:
                        one.begin(len(now), longest)
                    one.see(now, step, images)
                progress(done := done + len(now), total)

    def _steps(self, frames: np.ndarray) -> list[tuple[np.ndarray, int, int]]:
        """Frames of sequences step by step, up to the last one that is wanted, and the steps of the longest."""
        sequence = self.data.sequence_of(frames)
        sequences, last = np.unique(sequence), np.searchsorted(sequence, np.unique(sequence), side="right") - 1
        first = self.data.index["first"][sequences]
        length = frames[last] - first + 1
        # Longest first, so that those which have ended are the last of a batch.
        order, size, steps = np.argsort(-length, kind="stable"), BATCHES[torch.device(self.device).type], []
        for start in range(0, len(order), size):
            mine = order[start : start + size]
            longest = int(length[mine[0]])
            steps += [(first[mine][length[mine] > step] + step, step, longest) for step in range(longest)]
        return steps

    def _chunks(self, frames: np.ndarray) -> list[tuple[np.ndarray, int, int]]:
        size = BATCHES[torch.device(self.device).type]
        return [(frames[start : start + size], 0, 1) for start in range(0, len(frames), size)]


def _read_ahead(
    data: SequenceData, steps: Iterable[tuple[np.ndarray, int, int]], device: str
) -> Iterator[tuple[tuple[np.ndarray, int, int], torch.Tensor]]:
    """Steps with their images on the device, read in a thread."""
    bases: dict[int, np.ndarray] = {}

    def read(one: tuple[np.ndarray, int, int]) -> np.ndarray:
        nonlocal bases
        if one[1] == 0:
            bases = {}
        return data.images(one[0], bases)

    waiting = []
    with ThreadPoolExecutor(1) as reader:
        try:
            for one in steps:
                waiting.append((one, reader.submit(read, one)))
                if len(waiting) > AHEAD:
                    now, images = waiting.pop(0)
                    yield now, torch.from_numpy(images.result()).to(device)
            for now, images in waiting:
                yield now, torch.from_numpy(images.result()).to(device)
        finally:
            reader.shutdown(cancel_futures=True)
