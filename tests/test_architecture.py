"""Imports point one way: each folder knows only those above it in the list."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import scrubjay

ROOT = Path(scrubjay.__file__).parent
ORDER = [
    "errors", "files", "tree", "workers", "rooms", "sim", "game", "agent", "players", "spots", "placements", "envs",
    "evaluation", "training", "api", "study", "viz", "web", "thor", "bench", "cli", "__main__", "__init__",
]  # fmt: skip
"""Folders and files at the package's top, in the order in which data flows."""
ENGINES = {"mujoco", "mujoco_warp", "warp", "torch"}
FILES = sorted(ROOT.rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "scrubjay")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_up_the_list_only(path):
    mine = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for name in imported(path):
        if name.startswith("scrubjay."):
            assert ORDER.index(name.split(".")[1]) <= ORDER.index(mine), f"{mine} imports {name}"


def test_rooms_know_no_engine():
    for path in ROOT.glob("rooms/**/*.py"):
        for name in imported(path):
            assert name.split(".")[0] not in ENGINES, f"{path.relative_to(ROOT)} imports {name}"
