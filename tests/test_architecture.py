"""Imports point one way: each folder knows only those before it."""

import ast
from pathlib import Path

import pytest

import scrubjay

ROOT = Path(scrubjay.__file__).parent
ORDER = ["world", "game", "show", "agent", "learning", "play", "bench", "commands", "cli"]
"""Folders and files of the package, in the order that data flows."""
FILES = sorted(ROOT.rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_up_the_list_only(path):
    mine = layer(path)
    if mine == "__init__":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
        for name in names:
            if name.startswith("scrubjay."):
                assert ORDER.index(name.split(".")[1]) <= ORDER.index(mine), f"{mine} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_short(path):
    assert len(path.read_text().splitlines()) <= 400


def test_rooms_know_nothing_of_engines():
    """Rooms, shapes and floors are data: no MuJoCo, no Warp, no torch."""
    plain = [*ROOT.glob("world/catalog/*.py"), *ROOT.glob("world/generate/*.py")]
    plain += [ROOT / "world" / name for name in ("room.py", "floor.py", "walking.py", "materials.py", "place.py")]
    for path in plain:
        text = path.read_text()
        for engine in ("import mujoco", "import warp", "import torch", "from mujoco"):
            assert engine not in text, f"{path.name} has `{engine}`"
