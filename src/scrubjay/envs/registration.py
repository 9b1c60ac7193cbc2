"""Registers the environments with Gymnasium without importing it.

Gymnasium 1.x loads no plugins, so a package registers its environments when it is imported. To keep `import scrubjay`
fast, an import hook registers them as soon as Gymnasium is imported, if it is not yet.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

TASKS = ("Explore", "Hide", "Manipulate", "Seek")
"""Classes of `envs/tasks.py`, by name: importing them would import PyTorch."""


def register() -> None:
    """Registers `scrubjay/Explore-v0` and the other tasks now, or when Gymnasium is imported."""
    if "gymnasium" in sys.modules:
        _register_all()
    elif not any(isinstance(finder, _GymnasiumHook) for finder in sys.meta_path):
        sys.meta_path.insert(0, _GymnasiumHook())


def _register_all() -> None:
    import gymnasium

    for task in TASKS:
        # Entry points are strings: MuJoCo and PyTorch load with the first environment.
        gymnasium.register(
            f"scrubjay/{task}-v0",
            entry_point="scrubjay.envs.stage:StageEnv",
            vector_entry_point="scrubjay.envs.stage:StageVectorEnv",
            kwargs={"task": task},
        )


class _GymnasiumHook:
    """A meta path finder that runs `_register_all` right after Gymnasium's own import."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_register(module: ModuleType) -> None:
            load(module)
            _register_all()

        spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec
