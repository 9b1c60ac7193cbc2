"""The first page of the demo: what Cache is, a game, and what the agent learned, measured by the run."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scrubjay.files import write_atomically
from scrubjay.viz.agent_trace import load_run_agent
from scrubjay.viz.episode import Episode
from scrubjay.viz.episode_page import summarize
from scrubjay.viz.page import Figure, load_template
from scrubjay.viz.palette import BLUE, SERIES
from scrubjay.viz.picture import data_url
from scrubjay.viz.storyboard import draw_storyboard

RUN, EVALUATION, STUDY = "run", "evaluation.jsonl", "study/static.csv"
"""What the page reads if it is there: a run, what `scrubjay evaluate` printed about it, and a study of its encoder."""
MEASURES = {
    "coverage": "Places to stand or crouch that are visited",
    "opened": "Things that open that are opened",
}
"""Measures of exploring, and what they are percentages of."""
PLAYERS = {"agent": ("Your agent", BLUE), "random": ("Random play", SERIES[0])}


@dataclass(frozen=True)
class Bar:
    """A player's mean of a measure, with its interval of 95 %, in percent."""

    player: str
    color: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Learned:
    """What a run's agent learned, beside random play, in rooms that it has never seen."""

    rooms: int
    trained_rooms: int
    steps: int
    minutes: float
    bars: dict[str, list[Bar]]
    """By measure."""

    @property
    def sentence(self) -> str:
        agent, random = (bar.mean for bar in self.bars["coverage"])
        return f"Your agent covers {agent:.0f} % of rooms it has never seen, random play {random:.0f} %."


def read_learned(out: Path) -> Learned | None:
    """What was measured about the demo's run; None if nothing was."""
    if not (out / EVALUATION).exists() or not (out / RUN).exists():
        return None
    rows = {row["player"]: row for row in map(json.loads, (out / EVALUATION).read_text().splitlines())}
    if not set(PLAYERS) <= set(rows):
        return None
    bars = {
        measure: [
            Bar(name, color, *(100 * value for value in rows[player][measure][:3]))
            for player, (name, color) in PLAYERS.items()
        ]
        for measure in MEASURES
    }
    _, config, progress = load_run_agent(out / RUN)
    games = rows["agent"]["coverage"][3]
    return Learned(games, len(config.scenes), progress.steps, progress.seconds / 60, bars)


def read_study(out: Path) -> str:
    """A sentence about the study of the encoder; empty if there is none."""
    if not (out / STUDY).exists():
        return ""
    with (out / STUDY).open(newline="") as file:
        losses = {(row["task"], row["encoder"].split("@")[0]): float(row["loss"]) for row in csv.DictReader(file)}
    tasks = [task for task, encoder in losses if encoder == "ours" and (task, "random") in losses]
    better = sum(losses[task, "ours"] < losses[task, "random"] for task in tasks)
    return (
        f"Of the paper's seven tasks, from depth to naming objects, small probes solve {better} of {len(tasks)} better "
        "with what its encoder sees than with what an untrained one does."
    )


def write_overview(
    out: Path, episode: Episode, rooms: Sequence[Figure], links: Mapping[str, str], renderer: str = "auto"
) -> Path:
    """Writes index.html of the demo's folder; `links` are its other pages, by what is in them."""
    learned = read_learned(out)
    write_atomically(out / "index.html", load_template("overview_page.html").render(
        title="Scrubjay",
        facts="",
        story=data_url(draw_storyboard(episode, renderer), "JPEG"),
        game=summarize(episode),
        learned=learned,
        measures=MEASURES,
        widest=max((bar.high for bars in learned.bars.values() for bar in bars), default=0) if learned else 0,
        study=read_study(out),
        rooms=rooms,
        links=links,
    ))  # fmt: skip
    return out / "index.html"
