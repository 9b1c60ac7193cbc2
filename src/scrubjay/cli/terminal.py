"""What commands share: where they say what they do, and the choices that many of them have."""

from __future__ import annotations

import json
from typing import Literal

from rich.console import Console

Renderer = Literal["auto", "opengl", "warp"]
err = Console(stderr=True)


def print_json(data: dict) -> None:
    """One object on a line of its own."""
    print(json.dumps(data), flush=True)
