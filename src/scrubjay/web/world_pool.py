"""A pool of single-room worlds by scene, least recently used closed first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from scrubjay.sim.build import build_room
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.world import World

T = TypeVar("T")
MAX_WORLDS = 60
"""About 30 MB each."""


class WorldPool:
    """Worlds by scene and image size. A background thread builds rooms; worlds are made and used in the caller's."""

    def __init__(
        self,
        size: int = 224,
        renderer: str = "auto",
        build: Callable[[str], CompiledRoom] = build_room,
        max_worlds: int = MAX_WORLDS,
    ) -> None:
        self.size, self.renderer, self.max_worlds, self._build = size, renderer, max_worlds, build
        self._worlds: OrderedDict[tuple[str, int], World] = OrderedDict()
        self._building: dict[str, Future[CompiledRoom]] = {}
        self._builder = ThreadPoolExecutor(1, thread_name_prefix="rooms")

    def ready(self, scene: str, size: int | None = None) -> bool:
        """Whether `world` would return without waiting; if not, starts building the room."""
        if (scene, size or self.size) in self._worlds:
            return True
        if scene not in self._building:
            self._building[scene] = self._builder.submit(self._build, scene)
        return self._building[scene].done()

    def world(self, scene: str, size: int | None = None) -> World:
        """The scene's world, in the state its last user left. Raises what building the room raised."""
        key = (scene, size or self.size)
        if key not in self._worlds:
            self.ready(*key)
            compiled = self._building.pop(scene).result()
            while len(self._worlds) >= self.max_worlds:
                self._worlds.popitem(last=False)[1].close()
            # One physics thread: a person's action is one simulation.
            self._worlds[key] = World([compiled], renderer=self.renderer, size=key[1], threads=1)
        self._worlds.move_to_end(key)
        return self._worlds[key]

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Runs a function in the background thread that builds rooms."""
        return self._builder.submit(function, *args)

    def close(self) -> None:
        self._builder.shutdown(cancel_futures=True)
        for world in self._worlds.values():
            world.close()
        self._worlds.clear()
