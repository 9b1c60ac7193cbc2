"""Mental seekers on a GPU: ten steps of all trajectories are one CUDA graph.

A step is about forty small kernels, and launching them takes several times as long as running them. A graph's tensors
are static, and so is its batch size: trajectories are padded to one of a few sizes. Maps are indexed through one flat
buffer, so their number and window are data, not shapes. As trajectories end, the rest moves to smaller graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from scrubjay import tree

if TYPE_CHECKING:
    from scrubjay.agent.mental_seeker import MentalSeeker, SeekerBatch

CHUNK = 10
"""Steps of a graph."""
SMALLEST, COARSEST = 2**9, 2**14
"""Batch sizes are powers of two between these, and then multiples of the larger."""
WARMUPS = 2
"""Runs before a graph is captured: kernels are loaded and chosen meanwhile."""
CAPTURE_MODE = "thread_local"
"""What other threads do on the GPU while a graph is captured is not part of it, and must not spoil it."""


def padded_size(count: int, smallest: int = SMALLEST, coarsest: int = COARSEST) -> int:
    """The batch size of the graph for `count` trajectories."""
    if count > coarsest:
        return -(-count // coarsest) * coarsest
    return max(smallest, 1 << (count - 1).bit_length())


class SeekerGraphs:
    """The graphs of one mental seeker, captured when first needed, with the buffers that they share.

    They read the seeker's weights in place. Copies, and what is unpickled, begin without graphs.
    """

    def __init__(self) -> None:
        self._signature: tuple = ()
        self._chunks: dict[int, _Chunk] = {}
        self._maps, self._free, self._strides = torch.empty(0), torch.empty(0), torch.empty(0)
        self._stream: torch.cuda.Stream | None = None
        self._pool: Any = None
        """Memory that all graphs use in turn: what they compute stays in buffers outside."""

    def __reduce__(self) -> tuple:
        return SeekerGraphs, ()

    def simulate(
        self,
        seeker: MentalSeeker,
        batch: SeekerBatch,
        maps: torch.Tensor,
        free: torch.Tensor,
        strides: torch.Tensor,
        uniforms: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Which of R trajectories find the object (R,) bool, and their positions (limit, R) int32, -1 after the end.

        `batch` are all of them at their starts; maps, free directions and strides are as in `MentalSeeker`, uniforms
        are (limit, R, 2).
        """
        limit, count, _ = uniforms.shape
        self._load(seeker, maps, free, strides, uniforms.dtype)
        found = torch.zeros_like(batch.found)
        paths = torch.full((limit, count), -1, dtype=torch.int32, device=maps.device)
        chunk = self._chunk(seeker, batch, uniforms.dtype)
        for first in range(0, limit, CHUNK):
            now = slice(first, min(first + CHUNK, limit))
            steps, index = now.stop - now.start, chunk.batch.index[: chunk.count]
            chunk.uniforms[:steps, : chunk.count] = uniforms[now, index]
            chunk.run()
            paths[now, index] = chunk.paths[:steps, : chunk.count]
            found[index] = chunk.found[steps - 1, : chunk.count]
            # The only synchronization with the device.
            running = (~chunk.batch.found[: chunk.count]).nonzero()[:, 0]
            if not len(running):
                break
            if padded_size(len(running)) < chunk.size:
                chunk = self._chunk(seeker, tree.index(chunk.batch, running), uniforms.dtype)
        return found, paths

    def _load(
        self, seeker: MentalSeeker, maps: torch.Tensor, free: torch.Tensor, strides: torch.Tensor, dtype: torch.dtype
    ) -> None:
        """Copies the maps into the buffers. Starts anew if they do not fit, or if anything else static has changed."""
        kind = maps.device.type
        autocast = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
        weights = tuple(tensor.data_ptr() for tensor in (*seeker.parameters(), *seeker.buffers()))
        signature = (maps.device, maps.dtype, dtype, autocast, weights)
        fits = signature == self._signature and maps.numel() <= len(self._maps) and free.numel() <= len(self._free)
        if not fits:
            self._chunks, self._pool = {}, None
            self._maps, self._free = (
                torch.zeros(1 << (tensor.numel() - 1).bit_length(), dtype=tensor.dtype, device=tensor.device)
                for tensor in (maps, free)
            )
            self._strides, self._signature = strides.clone(), signature
        self._maps[: maps.numel()] = maps.flatten()
        self._free[: free.numel()] = free.flatten()
        self._strides.copy_(strides)

    def _chunk(self, seeker: MentalSeeker, batch: SeekerBatch, dtype: torch.dtype) -> _Chunk:
        """The chunk for a batch of trajectories, with these in it."""
        size = padded_size(len(batch.index))
        if size not in self._chunks:
            chunk = self._chunks[size] = _Chunk(size, batch, dtype)

            def run() -> None:
                chunk.steps(lambda now, draws: seeker.step(now, self._maps, self._free, self._strides, draws))

            chunk.run = self._captured(run) if batch.index.is_cuda else run
        self._chunks[size].load(batch)
        return self._chunks[size]

    def _captured(self, run: Callable[[], None]) -> Callable[[], None]:
        """A function captured as a CUDA graph."""
        # One stream for all: each stream on which matrices are multiplied has a large workspace.
        stream = self._stream = self._stream or torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARMUPS):
                run()
        torch.cuda.current_stream().wait_stream(stream)
        # The graph must convert weights itself: neither may it use what autocast has converted before, nor may
        # anything after it use what it has.
        torch.clear_autocast_cache()
        graph = torch.cuda.CUDAGraph()
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, self._pool, stream, CAPTURE_MODE):
            run()
        torch.clear_autocast_cache()
        return graph.replay


class _Chunk:
    """CHUNK steps of a batch of static size, of which the first `count` rows are in use."""

    run: Callable[[], None]

    def __init__(self, size: int, like: SeekerBatch, dtype: torch.dtype) -> None:
        self.size, self.count = size, 0
        self.batch = tree.map(lambda rows: rows.new_zeros(size, *rows.shape[1:]), like)
        # Padding is at the first map's first position, and has found its object.
        self.batch.found.fill_(True)
        self.uniforms = torch.zeros(CHUNK, size, 2, dtype=dtype, device=like.index.device)
        self.paths = torch.zeros(CHUNK, size, dtype=torch.int32, device=like.index.device)
        self.found = torch.zeros(CHUNK, size, dtype=torch.bool, device=like.index.device)

    def load(self, batch: SeekerBatch) -> None:
        """Takes in trajectories, up to `size`."""
        self.count = len(batch.index)
        for mine, rows in zip(tree.leaves(self.batch), tree.leaves(batch), strict=True):
            mine[: self.count] = rows
            mine[self.count :] = 0
        self.batch.found[self.count :] = True

    def steps(self, step: Callable[[SeekerBatch, torch.Tensor], SeekerBatch]) -> None:
        """Takes CHUNK steps in place, and notes positions before and successes after each."""
        batch = self.batch
        for number in range(CHUNK):
            self.paths[number] = torch.where(batch.found, -1, batch.position)
            batch = step(batch, self.uniforms[number])
            self.found[number] = batch.found
        tree.copy_(self.batch, batch)
