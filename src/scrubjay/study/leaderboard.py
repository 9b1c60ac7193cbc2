"""The leaderboard: what submissions measured, side by side; only what was measured on the same data is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_lowercase
from typing import Any

from scrubjay.study.dynamic_experiments import EXPERIMENTS, PRINTED_LOG_ODDS, SHUFFLED
from scrubjay.study.printed import RESULTS, encoder_note
from scrubjay.study.report import Row, largest
from scrubjay.study.static import PLAIN, WITH_SKIPS
from scrubjay.study.static_data import TASKS
from scrubjay.study.submissions import Submission, shuffled_accuracies, source_of

MINI = "mini"
"""The scale of trials."""
ODDS = "odds"
ODDS_STEP = "1"
"""Both of a pair have the same image then, and differ in memory alone."""
TITLES = {
    "depth": "Depth", "normals": "Normals", "class": "Classes", "openability": "Openability",
    "traversable": "Traversable", "object_depth": "Depth without an object",
    "object_normals": "Normals without an object",
    **{name: one.title for name, one in EXPERIMENTS.items()}, ODDS: "Turning back, log-odds",
}  # fmt: skip


@dataclass(frozen=True)
class Basis:
    """What must be equal for two numbers to be compared."""

    scale: str
    data: str
    """The data's digest."""
    size: int = 0
    """Training examples of a dynamic probe, at the largest size."""
    repetitions: str = ""
    images: int = 0
    """Of the static study's data."""

    def __str__(self) -> str:
        words = [f"data {self.data}"]
        if self.images:
            words.append(f"{self.images:,} images")
        if self.size:
            words.append(f"{self.size:,} training examples")
        if self.repetitions:
            words.append(f"{self.repetitions} repetitions")
        return ", ".join([*words, *(["a trial: numbers mean nothing"] if self.scale == MINI else [])])


@dataclass(frozen=True)
class Cell:
    """A measurement with its 95 % interval."""

    value: float
    low: float
    high: float
    basis: Basis
    is_best: bool = False
    """Among at least two on the same basis."""
    is_close: bool = False
    """Its interval overlaps the best's."""


@dataclass(frozen=True)
class Column:
    """A task or an experiment."""

    name: str
    title: str
    is_share: bool = False
    """Printed in percent."""
    lower_is_better: bool = False
    printed: str = ""
    """What the paper prints of its agent."""
    printed_others: str = ""
    data: str = ""
    """What it is measured on: columns that share data share letters."""

    def number(self, value: float) -> str:
        return f"{100 * value:.1f}" if self.is_share else f"{value:.3f}"

    def interval(self, cell: Cell) -> str:
        return f"{self.number(cell.low)} to {self.number(cell.high)}"


@dataclass(frozen=True)
class Entry:
    """A representation that a submission measured."""

    name: str
    submission: str
    source: str
    """As the study's table has it."""
    identity: tuple[str, str, str]
    """Equal for the same weights, read in the same way."""
    cells: dict[str, Cell]
    """By column; not all need be there."""
    about: dict[str, Any] | None = None
    """Of the weights: name, network, parameters, sha256, licence; None where there are none."""
    note: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)
    again: tuple[str, ...] = ()
    """Other submissions that measured the same, and how much they differ."""
    chance: dict[str, float] = field(default_factory=dict)
    """Accuracies with shuffled labels, by experiment."""


@dataclass(frozen=True)
class Table:
    """One of the board's tables."""

    key: str
    title: str
    about: str
    columns: list[Column]
    entries: list[Entry]
    bases: dict[str, list[Basis]]
    """By the columns' data: on what cells were measured, in order of their letters."""
    paper: str = ""
    """What the paper prints of all columns together."""

    def letter(self, column: Column, cell: Cell) -> str:
        """Which basis a cell is on; empty where there is but one."""
        bases = self.bases[column.data]
        return _letter(bases.index(cell.basis)) if len(bases) > 1 else ""

    @property
    def legend(self) -> list[str]:
        """What the letters stand for, or on what all was measured."""
        lines = []
        for data, bases in self.bases.items():
            titles = ", ".join(column.title for column in self.columns if column.data == data)
            which = f"{titles}, " if len(self.bases) > 1 else ""
            for number, basis in enumerate(bases):
                lines.append(f"{which}{f'{_letter(number)}: ' if len(bases) > 1 else ''}{basis}")
        return lines

    @property
    def has_trials(self) -> bool:
        return any(basis.scale == MINI for bases in self.bases.values() for basis in bases)

    @property
    def is_mixed(self) -> bool:
        """Whether some of it must not be compared."""
        return any(len(bases) > 1 for bases in self.bases.values())


def make_tables(submissions: Sequence[Submission]) -> list[Table]:
    """The board's tables that have entries."""
    static = [each for each in submissions if each.kind == "static"]
    dynamic = [each for each in submissions if each.kind == "dynamic"]
    words = next(one for one in RESULTS if one.table == "static")
    paper = f"The paper of its agent: {words.cache}; {words.others}."
    loss = "Test loss of probes, lower is better."
    tables = [
        _table("static", "Static tasks: from 7 x 7 features alone", loss, _static(static, PLAIN), paper),
        _table("static-skips", "Static tasks: with skip connections", loss, _static(static, WITH_SKIPS)),
        _table(
            "dynamic", "Dynamic experiments", "Accuracy of probes in percent, higher is better.",
            _dynamic(dynamic, lambda name: name != "rotation"),
        ),
        _table(
            "rotation", "Rotation: what was seen before turning away",
            "Accuracy of probes in percent at the fifth step, and by how much the log-odds of rotating back rise if "
            "the object was there; higher is better. The first agent of each study made its sequences.",
            _rotation(dynamic),
        ),
    ]  # fmt: skip
    return [table for table in tables if table.entries]


def _static(submissions: Sequence[Submission], decoder: str) -> Iterator[Entry]:
    for each in submissions:
        basis = Basis(each.scale, each.data(), images=each.record["facts"].get("images", 0))
        rows = [row for row in each.results.tables["static"] if row["decoder"] == decoder]
        for name in dict.fromkeys(row["encoder"] for row in rows):
            about = each.about(name)
            cells = {row["task"]: _cell(row, "loss", basis) for row in rows if row["encoder"] == name}
            identity = _identity("", about)
            yield Entry(each.label(name), each.name, name, identity, cells, about, encoder_note(name), each.record)


def _dynamic(submissions: Sequence[Submission], wanted: Callable[[str], bool]) -> Iterator[Entry]:
    for each in submissions:
        rows = [row for row in each.results.tables["dynamic"] if wanted(row["experiment"])]
        for source in dict.fromkeys(row["source"] for row in rows if row["source"] != SHUFFLED):
            cells = {row["experiment"]: _accuracy(row, each) for row in _headline(rows) if row["source"] == source}
            chance = {name: value for name, value in shuffled_accuracies(each.results).items() if name in cells}
            yield replace(_source(each, source, cells), chance=chance)


def _rotation(submissions: Sequence[Submission]) -> Iterator[Entry]:
    for each in submissions:
        odds = {
            f"DIR ({row['source']})": row
            for row in each.results.tables.get("odds", [])
            if (row["step"], row["split"]) == (ODDS_STEP, "all")
        }
        for entry in _dynamic([each], lambda name: name == "rotation"):
            cells = dict(entry.cells)
            if entry.source in odds and "rotation" in cells:
                cells[ODDS] = _cell(odds[entry.source], "difference", cells["rotation"].basis)
            yield replace(entry, cells=cells)


def _source(submission: Submission, source: str, cells: dict[str, Cell]) -> Entry:
    """The entry of a source of the dynamic study."""
    named = source_of(source)
    if named is None:
        return Entry(source, submission.name, source, (source, "", ""), cells, record=submission.record)
    name, of_agent = named
    about = submission.about(name, of_agent)
    kind = source.removesuffix(f"{name})")
    label, note = f"{kind}{submission.label(name)})", encoder_note(name)
    return Entry(label, submission.name, source, _identity(kind, about), cells, about, note, submission.record)


def _identity(kind: str, about: Mapping[str, Any]) -> tuple[str, str, str]:
    """Of how weights are read, the weights, and how images are prepared for them."""
    return kind, str(about["sha256"]), str(about.get("key", ""))


def _headline(rows: Sequence[Row]) -> list[Row]:
    """The rows at the largest size, and at the step that an experiment is about."""
    steps = {name: one.headline_step for name, one in EXPERIMENTS.items()}
    return [
        row
        for row in largest(rows)
        if row["source"] != SHUFFLED and row.get("step", "") == str(steps[row["experiment"]] or "")
    ]


def _accuracy(row: Row, submission: Submission) -> Cell:
    digest = submission.data(EXPERIMENTS[row["experiment"]].data)
    basis = Basis(submission.scale, digest, int(row["size"]), str(row.get("repetitions", "")))
    return _cell(row, "accuracy", basis)


def _cell(row: Row, value: str, basis: Basis) -> Cell:
    return Cell(row[value], row["low"], row["high"], basis)


def _columns(names: Sequence[str]) -> list[Column]:
    """In the order of TITLES."""
    columns = []
    for name in TITLES:
        if name not in names:
            continue
        one = next((one for one in RESULTS if one.table == "dynamic" and one.experiment == name), None)
        printed, others = (one.cache, one.others) if one else ("", "")
        if name == ODDS:
            printed, others = PRINTED_LOG_ODDS, "0 by construction"
        data = "" if name in TASKS else "rotation" if name == ODDS else EXPERIMENTS[name].data
        columns.append(Column(name, TITLES[name], name in EXPERIMENTS, name in TASKS, printed, others, data))
    return columns


def _table(key: str, title: str, about: str, entries: Iterator[Entry], paper: str = "") -> Table:
    merged = _merge([entry for entry in entries if entry.cells])
    columns = _columns([name for entry in merged for name in entry.cells])
    bases: dict[str, list[Basis]] = {}
    for entry in merged:
        for column in columns:
            known = bases.setdefault(column.data, [])
            if column.name in entry.cells and entry.cells[column.name].basis not in known:
                known.append(entry.cells[column.name].basis)
    return Table(key, title, about, columns, _ordered(_mark(merged, columns), columns, bases), bases, paper)


def _merge(entries: Sequence[Entry]) -> list[Entry]:
    """Entries without those of other submissions' weights that measure nothing new; the first says so."""
    kept: list[Entry] = []
    for entry in entries:
        for number, other in enumerate(kept):
            if _repeats(entry, other):
                gap = max(abs(cell.value - other.cells[name].value) for name, cell in entry.cells.items())
                words = "the same values" if gap == 0 else f"values that differ by {gap:.2g} at most"
                kept[number] = replace(other, again=(*other.again, f"{entry.submission}: {words}"))
                break
        else:
            kept.append(entry)
    return kept


def _repeats(entry: Entry, other: Entry) -> bool:
    bases = {name: cell.basis for name, cell in other.cells.items()}
    same = entry.identity == other.identity and entry.submission != other.submission
    return same and all(bases.get(name) == cell.basis for name, cell in entry.cells.items())


def _mark(entries: Sequence[Entry], columns: Sequence[Column]) -> list[Entry]:
    """Entries with the best of each column and basis marked, and those whose intervals overlap its."""
    cells = [dict(entry.cells) for entry in entries]
    for column in columns:
        for basis in {entry.cells[column.name].basis for entry in entries if column.name in entry.cells}:
            mine = [each for each in cells if column.name in each and each[column.name].basis == basis]
            if len(mine) < 2:
                continue
            choose = min if column.lower_is_better else max
            best = choose((each[column.name] for each in mine), key=lambda cell: cell.value)
            for each in mine:
                cell = each[column.name]
                if cell.value == best.value:
                    each[column.name] = replace(cell, is_best=True)
                elif cell.low <= best.high and cell.high >= best.low:
                    each[column.name] = replace(cell, is_close=True)
    return [replace(entry, cells=each) for entry, each in zip(entries, cells, strict=True)]


def _ordered(entries: Sequence[Entry], columns: Sequence[Column], bases: Mapping[str, list[Basis]]) -> list[Entry]:
    """By letters, then by their mean rank among entries on the same basis; those that lack columns last."""

    def key(entry: Entry) -> tuple[int, int, float]:
        ranks, letters = [], 0
        for column in columns:
            if column.name not in entry.cells:
                continue
            cell = entry.cells[column.name]
            letters = max(letters, bases[column.data].index(cell.basis))
            others = [other.cells[column.name] for other in entries if column.name in other.cells]
            values = [other.value for other in others if other.basis == cell.basis]
            if len(values) > 1:
                ahead = [value < cell.value if column.lower_is_better else value > cell.value for value in values]
                ranks.append(sum(ahead))
        return letters, -len(ranks), sum(ranks) / len(ranks) if ranks else 0.0

    return sorted(entries, key=key)


def _letter(number: int) -> str:
    return ascii_lowercase[number] if number < len(ascii_lowercase) else str(number + 1)
