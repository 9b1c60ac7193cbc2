"""What commands share: the console for messages, JSON output, and common choices."""

from __future__ import annotations

import json
from typing import Literal

from rich.console import Console

Renderer = Literal["auto", "opengl", "warp"]
err = Console(stderr=True)


def print_json(data: dict) -> None:
    """Prints one JSON object on one line."""
    print(json.dumps(data), flush=True)
