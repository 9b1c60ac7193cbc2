"""Results of an evaluation plan by split, with the paper's numbers beside ours: Markdown, CSV, JSON and a page."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from scrubjay.evaluation.plan_file import PEOPLE
from scrubjay.evaluation.plan_trials import PeopleRow, PlannedTrials
from scrubjay.evaluation.trials import Hiding
from scrubjay.files import write_atomically
from scrubjay.game.metrics import Summary
from scrubjay.rooms.generate import split_of
from scrubjay.viz.page import load_template
from scrubjay.viz.tournament import HIDING_METRICS, draw_bars, format_summary, summarize_hidings, to_json

ALL = "all"
SPLITS = {
    "train": "Train rooms", "validation": "Validation rooms", "test": "Test rooms", "dynamic": "Foyers",
    "other": "Other rooms", ALL: "All rooms",
}  # fmt: skip
"""Sections of the results, with their titles."""
CHARTED = ("placed", "visible_from", "bfs_steps")
"""Metrics of hidings in the chart of a plan without seekers."""
NO_CLAIMS = Summary(math.nan, math.nan, math.nan, 0)


@dataclass(frozen=True)
class SearchRow:
    """How a seeker did against a hider."""

    hider: str
    seeker: str
    found: Summary
    steps: Summary
    false_claims: Summary
    paper_found: float | None
    """What the paper prints."""


@dataclass(frozen=True)
class HidingRow:
    """How a hider did."""

    hider: str
    hidings: int
    metrics: dict[str, Summary]
    paper_hidings: int | None
    """What the paper prints."""


@dataclass(frozen=True)
class SplitResults:
    """Results in the rooms of one split."""

    split: str
    searches: list[SearchRow]
    hidings: list[HidingRow]

    @property
    def title(self) -> str:
        return SPLITS[self.split]

    @property
    def paper_searches(self) -> bool:
        """Whether the paper prints how often something was found."""
        return any(row.paper_found is not None for row in self.searches)

    @property
    def paper_hidings(self) -> bool:
        """Whether the paper prints how often somebody hid."""
        return any(row.paper_hidings is not None for row in self.hidings)

    def chart(self) -> bytes | None:
        """A PNG of how often players found the hiders' objects; without seekers, of what hiders achieved."""
        found: dict[str, dict[str, Summary]] = {}
        for row in self.searches:
            if row.seeker != PEOPLE:
                found.setdefault(row.hider, {})[row.seeker] = row.found
        if found:
            return draw_bars(found, "found (%)", "seeker")
        achieved = {row.hider: {HIDING_METRICS[name]: row.metrics[name] for name in CHARTED} for row in self.hidings}
        return draw_bars(achieved, "share (%)", "of hidings") if achieved else None


def summarize_plan(planned: PlannedTrials, hidings: Sequence[Hiding]) -> list[SplitResults]:
    """Results by split, and over all splits of the hiders that hid in several."""
    groups: dict[str, list[Hiding]] = {split: [] for split in SPLITS}
    splits: dict[str, set[str]] = {}
    for hiding in hidings:
        groups[split_of(hiding.scene)].append(hiding)
        splits.setdefault(hiding.hider, set()).add(split_of(hiding.scene))
    groups[ALL] = [hiding for hiding in hidings if len(splits[hiding.hider]) > 1]
    people = {split: [row for row in planned.searches if row.split == split] for split in SPLITS}
    present = [split for split in SPLITS if groups[split] or people[split]]
    return [_summarize(planned, split, groups[split], people[split]) for split in present]


def _summarize(
    planned: PlannedTrials, split: str, hidings: Sequence[Hiding], people: Sequence[PeopleRow]
) -> SplitResults:
    order = {hider: number for number, hider in enumerate(planned.hiders)}
    results = summarize_hidings(sorted(hidings, key=lambda hiding: order[hiding.hider]))
    printed = {(row.hider, row.seeker): row for row in planned.plan.paper if row.split == split}

    def paper_found(hider: str, seeker: str) -> float | None:
        return printed[hider, seeker].found if (hider, seeker) in printed else None

    searches = [
        SearchRow(
            hider, seeker, row["found"], row["steps"], row["false_claims"], paper_found(hider, seeker)
        )
        for hider, rows in results["searches"].items()
        for seeker, row in rows.items()
    ]  # fmt: skip
    searches += [
        SearchRow(
            row.source, PEOPLE, _summary(row.trials, row.found, row.found_low, row.found_high),
            _summary(row.trials, row.steps, row.steps_low, row.steps_high), NO_CLAIMS, paper_found(row.source, PEOPLE),
        )
        for row in people
    ]  # fmt: skip
    searches.sort(key=lambda row: order.get(row.hider, len(order)))
    rows = [
        HidingRow(
            hider, metrics["bfs_found"].games, metrics,
            printed[hider, ""].hidings if (hider, "") in printed else None,
        )
        for hider, metrics in results["hidings"].items()
    ]  # fmt: skip
    return SplitResults(split, searches, rows)


def _summary(count: int, mean: float, low: float | None, high: float | None) -> Summary:
    return Summary(mean, math.nan if low is None else low, math.nan if high is None else high, count)


def write_plan_results(
    planned: PlannedTrials, hidings: Sequence[Hiding], folder: Path, facts: Sequence[str] = ()
) -> tuple[str, dict[str, Any]]:
    """Writes table.md, searches.csv, hidings.csv, results.json, charts and index.html.

    Returns the tables and the JSON data. `facts` are sentences for the page, such as who the agents are.
    """
    results = summarize_plan(planned, hidings)
    text = format_plan(planned, results)
    data = {
        "title": planned.plan.title,
        "seed": planned.plan.seed,
        "skipped": list(planned.skipped),
        "splits": {
            result.split: {
                "searches": [to_json(vars(row)) for row in result.searches],
                "hidings": [to_json(vars(row)) for row in result.hidings],
            }
            for result in results
        },
    }
    write_atomically(folder / "table.md", text)
    write_atomically(folder / "results.json", json.dumps(data, indent=2) + "\n")
    write_atomically(folder / "searches.csv", _csv([row for result in results for row in _search_columns(result)]))
    write_atomically(folder / "hidings.csv", _csv([row for result in results for row in _hiding_columns(result)]))
    charts = {result.split: chart for result in results if (chart := result.chart())}
    for split, chart in charts.items():
        write_atomically(folder / f"plot-{split}.png", chart)
    page = load_template("plan_page.html").render(
        title=planned.plan.title,
        facts=planned.plan.about,
        notes=[*facts, *planned.skipped],
        results=results,
        charts={split: base64.b64encode(chart).decode() for split, chart in charts.items()},
        metrics=HIDING_METRICS,
        cell=format_summary,
    )
    write_atomically(folder / "index.html", page)
    return text, data


def format_plan(planned: PlannedTrials, results: Sequence[SplitResults]) -> str:
    """Markdown: for each split a table of searches and one of hidings; then what was left out."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=240, color_system=None)
    console.print(f"# {planned.plan.title}\n\nMeans [95 % interval].")
    for result in results:
        console.print(f"\n## {result.title}", highlight=False)
        if result.searches:
            printed = ["paper, %"] if result.paper_searches else []
            rows = [
                [
                    row.hider, row.seeker, f"{row.found.games:,}", format_summary(row.found, 100),
                    *(["" if row.paper_found is None else f"{100 * row.paper_found:.0f}"] * len(printed)),
                    format_summary(row.steps), format_summary(row.false_claims),
                ]
                for row in result.searches
            ]  # fmt: skip
            console.print(_table(["hider", "seeker", "trials", "found, %", *printed, "steps", "false claims"], rows, 2))
        if result.hidings:
            printed = ["in the paper"] if result.paper_hidings else []
            rows = [
                [
                    row.hider, f"{row.hidings:,}",
                    *(["" if row.paper_hidings is None else f"{row.paper_hidings:,}"] * len(printed)),
                    *(format_summary(row.metrics[name], 100) for name in HIDING_METRICS),
                ]
                for row in result.hidings
            ]  # fmt: skip
            titles = [f"{title}, %" for title in HIDING_METRICS.values()]
            console.print(_table(["hider", "hidings", *printed, *titles], rows, 1))
    for sentence in planned.skipped:
        console.print(f"\n{sentence}")
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> Table:
    """A Markdown table whose first columns are names and whose others are numbers."""
    table = Table(box=MARKDOWN)
    for number, title in enumerate(titles):
        table.add_column(title, justify="left" if number < names else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _search_columns(result: SplitResults) -> list[dict[str, Any]]:
    return [
        {
            "split": result.split, "hider": row.hider, "seeker": row.seeker, "trials": row.found.games,
            **_columns("found", row.found), **_columns("steps", row.steps),
            **_columns("false_claims", row.false_claims), "paper_found": row.paper_found,
        }
        for row in result.searches
    ]  # fmt: skip


def _hiding_columns(result: SplitResults) -> list[dict[str, Any]]:
    rows = []
    for row in result.hidings:
        columns = {"split": result.split, "hider": row.hider, "hidings": row.hidings}
        for name in HIDING_METRICS:
            columns |= _columns(name, row.metrics[name])
        rows.append({**columns, "paper_hidings": row.paper_hidings})
    return rows


def _columns(name: str, value: Summary) -> dict[str, float | None]:
    numbers = {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
    return {key: None if math.isnan(number) else round(number, 6) for key, number in numbers.items()}


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return buffer.getvalue()
