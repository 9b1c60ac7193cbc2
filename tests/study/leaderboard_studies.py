"""Folders of studies with made-up numbers, as the studies write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from scrubjay.files import write_atomically
from scrubjay.study import dynamic, static
from scrubjay.study.record import StudyRecord
from scrubjay.study.result_table import table_text
from scrubjay.study.rotation_odds import OddsRow, odds_text

DIGESTS = {
    "random": "0" * 64,
    "efficientnet-lite0": "1" * 64,
    "ours@out/run": "2" * 64,
    "run": "3" * 64,
    "Rand.": "4" * 64,
}
EXPERIMENTS = ("contained", "tracking", "space")


def describe(name: str, digest: str = "") -> dict[str, object]:
    licence = "yours" if "run" in name else "none"
    return {
        "name": name, "network": "Encoder", "parameters": 1234567, "channels": 128, "image_size": 224,
        "licence": licence, "sha256": digest or DIGESTS[name], "key": (digest or DIGESTS[name])[:16],
    }  # fmt: skip


def write_static(
    folder: Path,
    losses: Mapping[str, Mapping[str, float]],
    data: str = "d" * 16,
    scale: str = "paper",
    digests: Mapping[str, str] | None = None,
) -> Path:
    """A static study: losses by encoder and task, with intervals of 0.1 on both sides; random also has skips."""
    rows: list[static.Row] = []
    for decoder in (static.PLAIN, static.WITH_SKIPS):
        for name, its in losses.items():
            for task, loss in its.items():
                if decoder == static.PLAIN or name == "random":
                    row = {"encoder": name, "decoder": decoder, "task": task, "loss": loss}
                    rows.append({**row, "low": loss - 0.1, "high": loss + 0.1})
    write_atomically(folder / "static.csv", table_text(rows, static.FIELDS))
    listed = [describe(name, (digests or {}).get(name, "")) for name in losses]
    write_atomically(folder / "encoders.json", json.dumps(listed))
    record = StudyRecord(folder, "static", scale=scale)
    record.content["facts"] |= {"images": 38055, "data": data}
    record.write()
    return folder


def write_dynamic(folder: Path, accuracy: float = 0.7, odds: float = 0.1, rotation: str = "r" * 16) -> Path:
    """A dynamic study of the agent `run`: its accuracy, those of others are less; odds of turning back."""
    rows: list[dynamic.Row] = []
    names = {"DIR (run)": accuracy, "DIR (Rand.)": accuracy - 0.05, "SIR (run)": accuracy - 0.2}
    names |= {"SIR (efficientnet-lite0)": accuracy - 0.25, "DIR (4CNN-efficientnet-lite0)": accuracy - 0.01}
    for experiment in (*EXPERIMENTS, "rotation"):
        step = 5 if experiment == "rotation" else ""
        for name, value in [*names.items(), *([("Forward Steps", 0.5)] if experiment == "contained" else [])]:
            for size, share in ((50, value - 0.1), (3200, value)):
                row = {"experiment": experiment, "source": name, "size": size, "step": step, "repetitions": 50}
                rows.append({**row, "accuracy": share, "low": share - 0.02, "high": share + 0.02})
        row = {"experiment": experiment, "source": dynamic.SHUFFLED, "size": 3200, "step": "", "repetitions": 50}
        rows.append({**row, "accuracy": 0.5, "low": 0.49, "high": 0.51})
    write_atomically(folder / "dynamic.csv", table_text(rows, dynamic.FIELDS))
    found = [
        OddsRow("run", step, "all", 90, 20, odds * step, odds * step - 0.05, odds * step + 0.05, 0, 0)
        for step in (1, 2)
    ]
    write_atomically(folder / "odds.csv", odds_text(found))
    write_atomically(folder / "agents.json", json.dumps([describe("run"), describe("Rand.")]))
    write_atomically(folder / "encoders.json", json.dumps([describe("run"), describe("efficientnet-lite0")]))
    record = StudyRecord(folder, "dynamic", scale="paper", agents="run")
    record.content["facts"]["data"] = {**{name: name[0] * 16 for name in EXPERIMENTS}, "rotation": rotation}
    record.write()
    return folder


STATIC = {
    "random": {"depth": 0.9, "normals": 0.8},
    "efficientnet-lite0": {"depth": 0.5, "normals": 0.4},
    "ours@out/run": {"depth": 0.6, "normals": 0.35},
}
"""By hand: lite0 is best at depth and ours overlaps it (0.5 to 0.7 and 0.4 to 0.6); ours is best at normals, lite0
overlaps; random overlaps neither."""
