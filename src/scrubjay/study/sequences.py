"""Sequences of the dynamic experiments: what an agent saw and did, step by step, and an index of the sequences.

A folder has one folder per block of sequences, `index.csv` with a row per sequence, and `data.json`, which says how it
was made. Blocks are written whole, so a run that was killed continues; `data.json` gets their counts at the end.

Images are stored losslessly as differences from a sequence's first one, or from those of another sequence, where most
pixels stay: hand movements take about 5 kB a frame, turns about 80 kB.

>>> columns, extras = {"scene": "U24"}, {"label": ("int8", ())}
>>> writer = SequenceWriter("out/space", "space", Stage.EM, 0, ["FloorPlan1"], columns, extras)
>>> for block in writer.missing():
...     writer.write(block, clips_of(block))
>>> writer.finish()
>>> data = SequenceData("out/space", "space")
>>> frames = data.frames_of(3)
>>> images, actions = data.images(frames), data.read("last_action", frames)
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scrubjay.errors import DataError
from scrubjay.files import write_atomically
from scrubjay.game.actions import NAMES, NOTHING, Stage
from scrubjay.game.cache import relative_place
from scrubjay.rooms.room import GOALS
from scrubjay.sim.world import World
from scrubjay.study.data_files import index_text, open_array, read_index, read_json, write_folder

VERSION = 1
SIZE = 224
FIELDS: dict[str, tuple[str, tuple[int, ...]]] = {
    "last_action": ("int16", ()),
    "last_success": ("bool", ()),
    "place": ("int16", (4,)),
}
"""Arrays with a row per frame, by name. The last action is NOTHING (-1) at the first frame; places are as
`CacheGame.relative_place` gives them: steps right and ahead of the start, quarter turns, standing."""
STORED: dict[str, tuple[str, tuple[int, ...]]] = {"image_end": ("int64", ()), "image_base": ("int64", ())}
"""Where a frame's compressed image ends in `images.npy`, and the frame of the block that it is a difference from, or
-1."""
OWN_COLUMNS = {"first": "i8", "length": "i8", "goal": "U16"}
"""Columns of every index: the first frame among all frames, their number, and the goal object's name."""
SAME_SHARE = 0.3
"""Differences are stored where at least this share of the bytes is that of the sequence's first image."""
THREADS = min(16, os.cpu_count() or 1)


@dataclass(frozen=True)
class Clip:
    """One sequence of T frames."""

    images: np.ndarray
    """(T, 224, 224, 3) uint8."""
    last_action: np.ndarray
    """(T,): the action before each frame; NOTHING before the first."""
    last_success: np.ndarray
    """(T,) bool."""
    place: np.ndarray
    """(T, 4), see `FIELDS`."""
    goal: str
    columns: Mapping[str, object] = field(default_factory=dict)
    """Its row of the index, without OWN_COLUMNS."""
    extras: Mapping[str, np.ndarray] = field(default_factory=dict)
    """More arrays (T, ...), by name."""
    like: Clip | None = None
    """The clip before it in its block, if its images are nearly the same: then few of them take any space."""


class SequenceWriter:
    """Writes a data set block by block; DataError if the folder was made otherwise."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        experiment: str,
        stage: Stage,
        seed: int,
        blocks: Sequence[str],
        columns: Mapping[str, str],
        extras: Mapping[str, tuple[str, tuple[int, ...]]] | None = None,
        facts: Mapping[str, object] | None = None,
    ) -> None:
        """`columns` of the index and `extras` per frame have NumPy's dtypes ("U24", "i4", "?"); `facts` are anything
        else that the data depends on, as JSON."""
        self.folder = Path(folder)
        if len(set(blocks)) < len(blocks) or not blocks:
            raise ValueError("blocks: names that differ, at least one")
        if taken := set(columns) & set(OWN_COLUMNS) | set(extras or {}) & {*FIELDS, *STORED, "images", "index"}:
            raise ValueError(f"{min(taken)}: a name that every data set has")
        plan = {
            "version": VERSION,
            "experiment": experiment,
            "stage": Stage(stage).name,
            "seed": seed,
            "columns": dict(columns),
            "extras": {name: [kind, list(shape)] for name, (kind, shape) in (extras or {}).items()},
            "facts": json.loads(json.dumps(facts or {})),
            "blocks": list(blocks),
        }
        if (self.folder / "data.json").exists():
            found = read_json(self.folder, VERSION, f"scrubjay study data {experiment}")
            if {name: value for name, value in found.items() if name != "counts"} != plan:
                raise DataError(f"{folder}: made of other scenes, sizes or seeds; choose another folder")
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise DataError(f"{folder}: neither empty nor a folder of data; choose another folder")
        else:
            write_atomically(self.folder / "data.json", json.dumps(plan, indent=1) + "\n")
        self.plan, self._columns, self._fields = plan, OWN_COLUMNS | dict(columns), FIELDS | dict(extras or {})

    def missing(self) -> list[str]:
        """Blocks that are not written yet, in order."""
        return [block for block in self.plan["blocks"] if not (self.folder / block).exists()]

    def write(self, block: str, clips: Iterable[Clip]) -> None:
        """Writes a block's sequences, none or more; a block that is there already is an error."""
        self._check_missing(block)
        self.save(block, self.pack(clips))

    def pack(self, clips: Iterable[Clip]) -> dict[str, np.ndarray | str]:
        """The files of a block with these sequences, as `save` takes them."""
        parts: dict[str, list[np.ndarray]] = {name: [] for name in self._fields}
        images: list[bytes] = []
        bases: list[int] = []
        rows: list[tuple] = []
        with ThreadPoolExecutor(THREADS) as pool:
            for clip in clips:
                self._check(clip)
                first, length = len(images), len(clip.images)
                # The frames that differences are from: a sequence's first one, or the same step of another sequence.
                base = [first] * length
                others: Sequence[np.ndarray] = [clip.images[0]] * length
                if clip.like is not None:
                    if not rows or len(clip.like.images) != rows[-1][1]:
                        raise ValueError("like: the clip before it in its block")
                    steps = np.minimum(np.arange(length), rows[-1][1] - 1)
                    base, others = (rows[-1][0] + steps).tolist(), clip.like.images[steps]
                for number, (data, is_difference) in enumerate(pool.map(_compress, clip.images, others)):
                    images.append(data)
                    bases.append(base[number] if is_difference and base[number] != first + number else -1)
                rows.append((first, length, clip.goal, *(clip.columns[name] for name in self.plan["columns"])))
                for name, (kind, _) in self._fields.items():
                    values = clip.extras[name] if name in clip.extras else getattr(clip, name)
                    parts[name].append(np.asarray(values).astype(kind))
        arrays: dict[str, np.ndarray] = {
            name: np.concatenate(parts[name]) if rows else np.empty((0, *shape), kind)
            for name, (kind, shape) in self._fields.items()
        }
        arrays["image_end"] = np.cumsum([len(data) for data in images], dtype=np.int64)
        arrays["image_base"] = np.array(bases, np.int64)
        arrays["images"] = np.frombuffer(b"".join(images), np.uint8)
        arrays["index"] = np.array(rows, list(self._columns.items()))
        about = {"sequences": len(rows), "frames": len(images), "sha256": _digest(arrays)}
        return {**arrays, "block.json": json.dumps(about) + "\n"}

    def save(self, block: str, files: Mapping[str, np.ndarray | str]) -> None:
        """Writes what `pack` returned, here or elsewhere."""
        self._check_missing(block)
        write_folder(self.folder / block, files)

    def _check_missing(self, block: str) -> None:
        if block not in self.missing():
            raise ValueError(f"{block}: not a block that is missing")

    def finish(self) -> None:
        """Completes the data: the index of all sequences and the blocks' counts. Some block may still be missing: an
        error."""
        if missing := self.missing():
            raise ValueError(f"{len(missing)} blocks are missing: {missing[0]}")
        indexes, counts, first = [], {}, 0
        for block in self.plan["blocks"]:
            index = read_index(self.folder / block / "index.csv", self._columns)
            index["first"] += first
            counts[block] = json.loads((self.folder / block / "block.json").read_text())
            first += counts[block]["frames"]
            indexes.append(index)
        write_atomically(self.folder / "index.csv", index_text(np.concatenate(indexes)))
        write_atomically(self.folder / "data.json", json.dumps(self.plan | {"counts": counts}, indent=1) + "\n")

    def _check(self, clip: Clip) -> None:
        length = len(clip.images)
        if clip.images.shape != (length, SIZE, SIZE, 3) or clip.images.dtype != np.uint8 or not length:
            raise ValueError(f"images: (T, {SIZE}, {SIZE}, 3) uint8, not {clip.images.dtype} {clip.images.shape}")
        for name, (_, shape) in self._fields.items():
            values = np.asarray(clip.extras[name] if name in clip.extras else getattr(clip, name))
            if values.shape != (length, *shape):
                raise ValueError(f"{name}: shape {(length, *shape)}, not {values.shape}")
        actions = np.asarray(clip.last_action)
        if actions[0] != NOTHING or (actions < NOTHING).any() or (actions >= len(NAMES)).any():
            raise ValueError("last_action: NOTHING at the first frame, then numbers of actions")
        if clip.goal not in GOALS:
            raise ValueError(f"unknown goal object {clip.goal!r}; there are {', '.join(GOALS)}")
        if set(clip.columns) != set(self.plan["columns"]):
            raise ValueError(f"columns: {', '.join(self.plan['columns'])}, not {', '.join(clip.columns)}")


class SequenceData:
    """Sequences of a finished folder. Frames count those of all sequences, one after the other.

    A folder may lack its images (`images.npy` of the blocks), nearly all of its size, as where probes are fitted to
    features that were computed elsewhere.
    """

    def __init__(self, folder: str | os.PathLike[str], experiment: str) -> None:
        """Checks experiment, version, counts and shapes; raises DataError with one sentence."""
        self.folder = Path(folder)
        command = f"scrubjay study data {experiment}"
        self.facts = facts = read_json(self.folder, VERSION, command)
        if facts.get("experiment") != experiment:
            raise DataError(f"{folder}: data of the experiment {facts.get('experiment')}, not {experiment}")
        if "counts" not in facts or not (self.folder / "index.csv").exists():
            raise DataError(f"{folder}: the data is incomplete; run `{command}` again to continue")
        self.experiment, self.stage = experiment, Stage[facts["stage"]]
        self.index = read_index(self.folder / "index.csv", OWN_COLUMNS | facts["columns"])
        """Structured array, a row per sequence: OWN_COLUMNS and the experiment's."""
        self.fields = FIELDS | {name: (kind, tuple(shape)) for name, (kind, shape) in facts["extras"].items()}
        frames = [count["frames"] for count in facts["counts"].values()]
        self._starts = np.cumsum([0, *frames])
        self._blocks = [self._open(self.folder / block, n) for block, n in zip(facts["counts"], frames, strict=True)]
        expected = np.cumsum([0, *self.index["length"]])
        if expected[-1] != self.frames or not np.array_equal(expected[:-1], self.index["first"]):
            raise DataError(f"{folder}: index.csv does not have the {self.frames} frames that data.json lists")
        self._fields: dict[str, np.ndarray] = {}
        """Read so far; all but images are small."""
        self._firsts = frozenset(self.index["first"].tolist())
        digests = [count["sha256"] for count in facts["counts"].values()]
        parts = [VERSION, experiment, facts["stage"], facts["columns"], facts["extras"], digests]
        self.digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
        """Of everything in the data set: equal digests, equal sequences."""

    def __reduce__(self) -> tuple:
        """Other processes open the folder themselves."""
        return SequenceData, (self.folder.resolve(), self.experiment)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def frames(self) -> int:
        """The number of frames in all sequences."""
        return int(self._starts[-1])

    @property
    def has_images(self) -> bool:
        """Whether the images are here, too."""
        return all("images" in block for block in self._blocks)

    def frames_of(self, sequence: int) -> np.ndarray:
        """The frames of a sequence, (T,)."""
        row = self.index[sequence]
        return np.arange(row["first"], row["first"] + row["length"])

    def sequence_of(self, frames: np.ndarray) -> np.ndarray:
        """The sequences that frames (n,) belong to."""
        return np.searchsorted(self.index["first"], self._checked(frames), side="right") - 1

    def read(self, name: str, frames: np.ndarray) -> np.ndarray:
        """Values of a field (FIELDS, or the experiment's own) at frames (n,)."""
        if name not in self._fields:
            self._fields[name] = np.concatenate([block[name] for block in self._blocks])
        return self._fields[name][self._checked(frames)]

    def images(self, frames: np.ndarray, bases: dict[int, np.ndarray] | None = None) -> np.ndarray:
        """Images (n, 224, 224, 3) uint8; DataError if the folder lacks them.

        `bases` keeps the first images of sequences, which others are differences from, for the next call: with it,
        going through sequences step by step unpacks half as much.
        """
        frames = self._checked(frames)
        images = np.empty((len(frames), SIZE * SIZE * 3), np.uint8)
        kept: dict[int, np.ndarray] = {} if bases is None else bases

        def decode(block: dict[str, np.ndarray], start: int, place: int, frame: int) -> None:
            images[place] = _decompress(block, frame)
            while (frame := int(block["image_base"][frame])) >= 0:
                if (base := kept.get(start + frame)) is not None:
                    images[place] ^= base
                    return
                part = _decompress(block, frame)
                if start + frame in self._firsts and block["image_base"][frame] < 0:
                    kept[start + frame] = part
                images[place] ^= part

        todo: list[tuple[dict[str, np.ndarray], int, int, int]] = []
        for block, mine, own in self._by_block(frames):
            if "images" not in block:
                raise DataError(f"{self.folder}: the images are not here: copy images.npy of its blocks, too")
            start = int(frames[mine[0]] - own[0])
            todo += [(block, start, *where) for where in zip(mine.tolist(), own.tolist(), strict=True)]
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda one: decode(*one), todo))
        return images.reshape(-1, SIZE, SIZE, 3)

    def _by_block(self, frames: np.ndarray) -> Iterable[tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]]:
        """Blocks, the places (n,) among `frames` that are in each, and their numbers in the block."""
        number = np.searchsorted(self._starts, frames, side="right") - 1
        for block in np.unique(number):
            mine = np.flatnonzero(number == block)
            yield self._blocks[block], mine, frames[mine] - self._starts[block]

    def _open(self, folder: Path, frames: int) -> dict[str, np.ndarray]:
        arrays = {
            name: open_array(folder / f"{name}.npy", np.dtype(kind), (frames, *shape))
            for name, (kind, shape) in (self.fields | STORED).items()
        }
        end = arrays["image_end"]
        if (np.diff(end, prepend=0) < 0).any() or (arrays["image_base"] >= np.arange(frames)).any():
            raise DataError(f"{folder}: images must not overlap, nor be differences from later ones")
        if not (folder / "images.npy").exists():
            return arrays
        size = int(end[-1]) if frames else 0
        return arrays | {"images": open_array(folder / "images.npy", np.dtype("uint8"), (size,))}

    def _checked(self, frames: np.ndarray) -> np.ndarray:
        frames = np.asarray(frames, np.int64)
        if frames.ndim != 1 or (len(frames) and (frames.min() < 0 or frames.max() >= self.frames)):
            raise ValueError(f"frames are numbers from 0 to {self.frames - 1}, one axis")
        return frames


class ClipRecorder:
    """Records what happens in the worlds of a `World`, beginning with their present state.

    >>> recorder = ClipRecorder(world)
    >>> success = world.rotate(direction)
    >>> recorder.add(action, success)
    >>> clip = recorder.clip(0, "Cup", {"scene": "FloorPlan1"})
    """

    def __init__(self, world: World, **extras: np.ndarray) -> None:
        """`extras` are values (B, ...) of the first frame."""
        state, count = world.state, len(world)
        self.world = world
        self.start = np.column_stack([state.position, state.rotation, state.standing]).astype(float)
        """(B, 4), see `relative_place`."""
        self._frames: list[dict[str, np.ndarray]] = []
        self._own: list[list[int]] = [[] for _ in range(count)]
        self.add(np.full(count, NOTHING), np.zeros(count, bool), **extras)

    def add(
        self, last_action: np.ndarray, last_success: np.ndarray, worlds: np.ndarray | None = None, **extras: np.ndarray
    ) -> None:
        """Adds a frame after actions (B,), in `worlds` (B,) bool or in all."""
        worlds = np.ones(len(self.world), bool) if worlds is None else worlds
        images = np.zeros((len(self.world), SIZE, SIZE, 3), np.uint8)
        if worlds.any():
            images[worlds] = self.world.view(("rgb",), worlds=worlds).rgb.cpu().numpy()
        place = relative_place(self.world.state, self.start)
        frame = {"images": images, "last_action": last_action, "last_success": last_success, "place": place, **extras}
        self._frames.append({name: np.array(values) for name, values in frame.items()})
        for world in np.flatnonzero(worlds):
            self._own[world].append(len(self._frames) - 1)

    def clip(self, world: int, goal: str, columns: Mapping[str, object], frames: int | None = None) -> Clip:
        """The sequence of a world, or its first `frames` frames."""
        own = [self._frames[number] for number in self._own[world][:frames]]
        arrays = {name: np.stack([frame[name][world] for frame in own]) for name in own[0]}
        images, action, success, place = (arrays.pop(name) for name in ("images", *FIELDS))
        return Clip(images, action, success, place, goal, columns, arrays)


def _compress(image: np.ndarray, first: np.ndarray) -> tuple[bytes, bool]:
    """An image compressed, and whether as the difference from the first one."""
    if not np.shares_memory(image, first) and np.mean(image == first) >= SAME_SHARE:
        return zlib.compress(np.bitwise_xor(image, first).tobytes(), 1), True
    return zlib.compress(np.ascontiguousarray(image).tobytes(), 1), False


def _decompress(block: Mapping[str, np.ndarray], frame: int) -> np.ndarray:
    """A stored image (224 * 224 * 3,), or its difference."""
    end = block["image_end"]
    data = block["images"][end[frame - 1] if frame else 0 : end[frame]]
    try:
        image = np.frombuffer(zlib.decompress(data.tobytes()), np.uint8)
    except zlib.error as error:
        raise DataError(f"a stored image is damaged: {error}; make the data again") from error
    if image.size != SIZE * SIZE * 3:
        raise DataError("a stored image has another size; make the data again")
    return image


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(index_text(arrays[name]).encode() if name == "index" else arrays[name].tobytes())
    return digest.hexdigest()
