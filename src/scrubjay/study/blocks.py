"""Data sets block by block: who prepares a block, who renders it, and who writes it.

A block is prepared without a renderer (rooms, physics), then finished with one. Workers do both, and send it back;
without them, child processes prepare blocks while this process, which may have a GPU, renders. Nobody else writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from scrubjay.sim.build import MIN_ROOMS, build_room
from scrubjay.sim.compile import CompiledRoom
from scrubjay.study.sequences import SequenceWriter
from scrubjay.workers.base import HERE, Workers
from scrubjay.workers.pool import ProcessWorkers

Block = TypeVar("Block")


def make_blocks(
    prepare: Callable[..., Any],
    finish: Callable[..., Block],
    items: Sequence[tuple],
    workers: Workers | None = None,
    device: str = "cpu",
) -> Iterator[tuple[int, Block]]:
    """Yields `finish(prepare(*item), *item)` with the item's index, as blocks are finished."""
    if workers is not None:
        yield from workers.map(partial(_make, prepare, finish), items, gpu=device.startswith("cuda"))
        return
    cores = max(1, (os.cpu_count() or 1) - 1)
    with HERE if len(items) < MIN_ROOMS else ProcessWorkers(cores) as preparing:
        for index, prepared in preparing.map(prepare, items):
            yield index, finish(prepared, *items[index])


def write_blocks(
    writer: SequenceWriter,
    prepare: Callable[..., Any],
    finish: Callable[..., dict],
    items: Mapping[str, tuple],
    progress: Callable[[int, int], None],
    workers: Workers | None = None,
    device: str = "cpu",
) -> None:
    """Writes the blocks that a data set lacks and completes it. Items are by block; `finish` returns packed clips."""
    missing = writer.missing()
    done = len(items) - len(missing)
    progress(done, len(items))
    for index, block in make_blocks(prepare, finish, [items[name] for name in missing], workers, device):
        writer.save(missing[index], block)
        progress(done := done + 1, len(items))
    writer.finish()


def room_of(scene: str, *_: object) -> CompiledRoom:
    """Prepares a block that is one room."""
    return build_room(scene)


def _make(prepare: Callable[..., Any], finish: Callable[..., Block], *item: Any) -> Block:
    return finish(prepare(*item), *item)
