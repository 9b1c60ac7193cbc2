"""Rooms that are ready to be played in: a world each, the last used ones kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from scrubjay.sim.build import build_room
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.world import World

T = TypeVar("T")
MOST = 60
"""Worlds that are kept: about 30 MB each."""


class WorldPool:
    """Worlds by scene. Rooms are built in another thread; worlds are made and used in the caller's."""

    def __init__(
        self,
        size: int = 224,
        renderer: str = "auto",
        build: Callable[[str], CompiledRoom] = build_room,
        most: int = MOST,
    ) -> None:
        self.size, self.renderer, self.most, self._build = size, renderer, most, build
        self._worlds: OrderedDict[tuple[str, int], World] = OrderedDict()
        self._building: dict[str, Future[CompiledRoom]] = {}
        self._builder = ThreadPoolExecutor(1, thread_name_prefix="rooms")

    def ready(self, scene: str, size: int | None = None) -> bool:
        """Is a world there, or could it be made at once? If not, its room begins to be built."""
        if (scene, size or self.size) in self._worlds:
            return True
        if scene not in self._building:
            self._building[scene] = self._builder.submit(self._build, scene)
        return self._building[scene].done()

    def world(self, scene: str, size: int | None = None) -> World:
        """The world of a room, with the state that its last user left; what building it raised is raised here."""
        key = (scene, size or self.size)
        if key not in self._worlds:
            self.ready(*key)
            compiled = self._building.pop(scene).result()
            while len(self._worlds) >= self.most:
                self._worlds.popitem(last=False)[1].close()
            # One thread of physics: a person's action is one simulation.
            self._worlds[key] = World([compiled], renderer=self.renderer, size=key[1], threads=1)
        self._worlds.move_to_end(key)
        return self._worlds[key]

    def later(self, function: Callable[..., T], *values: Any) -> Future[T]:
        """Has something worked out in the thread that builds rooms."""
        return self._builder.submit(function, *values)

    def close(self) -> None:
        self._builder.shutdown(cancel_futures=True)
        for world in self._worlds.values():
            world.close()
        self._worlds.clear()
