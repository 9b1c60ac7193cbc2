"""How the world's throughput scales with worlds, rooms and geoms: a table and a plot."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import numpy as np
from rich.console import Console

from scrubjay.bench.world import rate, render_rates, spread
from scrubjay.files import write_atomically
from scrubjay.sim.build import build_rooms
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.world import World
from scrubjay.study.record import machine

COLUMNS = ("rgb_ids_fps", "rgb_ids_cells_fps", "goal_alone_fps", "walk_steps_per_s")
WORLDS = (64, 128, 256, 512, 1024, 2048, 4096)
ROOMS = (1, 8, 40, 160)


def measure(device: str, seconds: float, out: Path, console: Console) -> list[dict]:
    """Measures three series and writes them as JSON lines and a plot."""
    console.print(f"building {max(ROOMS)} rooms")
    rooms = build_rooms(spread(max(ROOMS)))
    rows = [_row("worlds", count, rooms[:8], count // 8, device, seconds, console) for count in WORLDS]
    rows += [_row("rooms", count, rooms[:count], max(1, 1280 // count), device, seconds, console) for count in ROOMS]
    by_geoms = sorted(rooms, key=lambda room: room.visual_geoms)
    for share in (0.0, 0.3, 0.6, 0.97):
        sample = by_geoms[int(share * (len(rooms) - 4)) :][:4]
        geoms = round(float(np.mean([room.visual_geoms for room in sample])))
        rows.append(_row("geoms", geoms, sample, 256, device, seconds, console))
    write_atomically(out / "scaling.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    _plot(rows, out / "scaling.png", machine(device))
    return rows


def _row(
    series: str, x: int, rooms: list[CompiledRoom], copies: int, device: str, seconds: float, console: Console
) -> dict:
    rng = np.random.default_rng(0)
    with World(rooms, copies, device=device) as world:
        rates = render_rates(world, rng, seconds, COLUMNS)
        rates["walk_steps_per_s"] = round(
            len(world) * rate(lambda: world.move(rng.integers(3, size=len(world))), seconds, device)
        )
        row = {"series": series, "x": x, "worlds": len(world), "rooms": len(rooms), **{c: rates[c] for c in COLUMNS}}
    console.print(row)
    return row


def _plot(rows: list[dict], path: Path, title: str) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True)
    for axis, series in zip(axes, ("worlds", "rooms", "geoms"), strict=True):
        points = [row for row in rows if row["series"] == series]
        for column in COLUMNS:
            axis.plot([row["x"] for row in points], [row[column] for row in points], marker="o", label=column)
        axis.set(xlabel=series, yscale="log", xscale="linear" if series == "geoms" else "log")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("per second")
    axes[2].legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
