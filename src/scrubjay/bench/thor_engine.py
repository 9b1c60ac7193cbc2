"""The engine behind AI2-THOR's client with a clock on its parts. Imports no more than the engine itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

PARTS = {
    "drawing": ("engine", "", ("render",)),
    "visible": ("scene", "Scene", ("visible",)),
    "packing": ("fifo", "FifoConnection", ("pack",)),
    "form": ("wsgi", "", ("form",)),
}
"""Functions of the engine's that are timed on their own: module, class, names."""


def serve_timed(path: str) -> int:
    """The engine's process with a clock on its parts; each action Done appends their sums to a file."""
    from scrubjay.thor import engine, fifo, scene, serve, wsgi

    spent = dict.fromkeys(("engine", *PARTS), 0.0)

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[part] += time.perf_counter() - start

        return call

    modules = {"engine": engine, "scene": scene, "fifo": fifo, "wsgi": wsgi}
    for part, (module, owner, names) in PARTS.items():
        holder = getattr(modules[module], owner) if owner else modules[module]
        for name in names:
            setattr(holder, name, timed(part, getattr(holder, name)))
    step = timed("engine", engine.Engine.step)

    def step_and_note(self: engine.Engine, action: dict[str, Any]) -> engine.Event:
        event = step(self, action)
        if action["action"] == "Done":
            with open(path, "a") as file:
                print(json.dumps(spent), file=file)
        return event

    engine.Engine.step = step_and_note  # type: ignore[method-assign]
    return serve.main()
