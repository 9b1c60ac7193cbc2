"""The page of a tournament of milestones: who finds what over training, where hiders hide, and one game of each."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from scrubjay.evaluation.journal import load_searches
from scrubjay.evaluation.matches import Match
from scrubjay.evaluation.tournament import TournamentPlan
from scrubjay.evaluation.trials import Hiding, search_after
from scrubjay.files import write_atomically
from scrubjay.rooms.generate import type_of
from scrubjay.sim.build import build_room
from scrubjay.sim.compile import CompiledRoom
from scrubjay.spots.spots import DIFFICULTIES
from scrubjay.training.milestones import Milestone, label_milestones, own_seed
from scrubjay.training.named_agents import NamedAgent
from scrubjay.viz.agent_charts import PIXEL_RATIO
from scrubjay.viz.agent_trace import trace_agent
from scrubjay.viz.hiding_maps import hiding_maps
from scrubjay.viz.milestone_charts import (
    found_by_visibility_chart,
    kinds_chart,
    over_training_chart,
    player_colors,
    visibility_chart,
)
from scrubjay.viz.milestone_games import (
    LEGEND,
    MilestoneGame,
    as_game,
    beliefs_chart,
    games_figure,
    hider_plan,
    missing_search,
    placing_charts,
    seeker_plan,
)
from scrubjay.viz.milestone_tables import METERS, SHOWN_METRICS, Row, format_markdown, write_tables
from scrubjay.viz.page import Figure, load_template
from scrubjay.viz.picture import write_picture
from scrubjay.viz.plan_results import SPLITS
from scrubjay.viz.tournament import draw_bars, format_summary, to_json

Progress = Callable[[int, int], None]
TRACED = 8
"""Milestones whose games are drawn side by side, at most: the first ones and the last."""


@dataclass(frozen=True)
class ShownRoom:
    """Pictures of one room."""

    scene: str
    title: str
    maps: list[Figure]
    """Where hiders hide."""
    goal: str = ""
    """The object of the game below."""
    hiders: list[Figure] = field(default_factory=list)
    seekers: list[Figure] = field(default_factory=list)
    same: list[Figure] = field(default_factory=list)
    """Seekers that search for the same object."""
    beliefs: Figure | None = None
    placing: list[Figure] = field(default_factory=list)
    figure: Figure | None = None
    """The games in one figure, to print."""


def shown_scenes(scenes: Sequence[str], wanted: Sequence[str] = ()) -> tuple[str, ...]:
    """The rooms to draw: those wanted, or the first one of each type; ValueError if nobody plays there."""
    if unknown := [scene for scene in wanted if scene not in scenes]:
        raise ValueError(f"shown: nobody plays in {', '.join(unknown)}; choose from {', '.join(scenes)}")
    return tuple(wanted) or tuple({type_of(scene): scene for scene in reversed(scenes)}.values())[::-1]


def write_milestones(
    plan: TournamentPlan,
    milestones: Sequence[Milestone],
    agents: Mapping[str, NamedAgent],
    hidings: Sequence[Hiding],
    folder: Path,
    shown: Sequence[str],
    notes: Sequence[str] = (),
    progress: Progress = lambda done, total: None,
) -> None:
    """Writes table.md, CSV tables, results.json, charts as PNG and index.html; `folder` is the tournament's.

    Args:
        plan: What was played.
        milestones: The agents to compare, in the order of their training.
        agents: The same, loaded; they play the games that are drawn.
        hidings: The results.
        folder: Of the tournament's journal.
        shown: Rooms to draw.
        notes: Sentences for the page.
        progress: Called after each game that is played for a drawing.
    """
    labels = {name: f"{label} games" for name, label in label_milestones(milestones).items()}
    labels |= {m.name: m.name for m in milestones if m.games is None}
    colors = player_colors(milestones, (*plan.hiders, *plan.seekers))
    tables = write_tables(hidings, folder)
    results, text = [], list[str]()
    for split in dict.fromkeys(row["split"] for row in tables["matrix"]):
        rows = {name: [row for row in table if row["split"] == split] for name, table in tables.items()}
        charts = {
            "training": over_training_chart(rows["matrix"], milestones, labels, colors),
            "kinds": kinds_chart(rows["hidings"], labels),
            "visible_from": visibility_chart(rows["visible_from"], labels),
            "found_by_visibility": found_by_visibility_chart(rows["found_by_visibility"], labels, colors),
        }
        for name, figure in charts.items():
            write_picture(folder / "charts" / f"{name}-{split}.png", figure.picture)
        bars = draw_bars(_found(rows["matrix"], labels), "found (%)", "seeker", colors=_bar_colors(plan, colors))
        write_atomically(folder / "charts" / f"found-{split}.png", bars)
        sentences = summary_sentences(rows, milestones, labels)
        text += [f"## {SPLITS[split]}", "", *(f"{sentence}\n" for sentence in sentences), format_markdown(rows, labels)]
        results.append(
            {
                "split": split,
                "title": SPLITS[split],
                "sentences": sentences,
                "charts": charts,
                "bars": base64.b64encode(bars).decode(),
                "matrix": _matrix(rows["matrix"]),
                "hidings": rows["hidings"],
                "difficulty": _by_seeker(rows["difficulty"]),
            }
        )
    write_atomically(folder / "table.md", "\n".join(text))
    rooms = _show_rooms(plan, milestones, agents, hidings, folder, shown, labels, progress)
    about = [
        {
            "name": milestone.name, "label": labels[milestone.name], "folder": str(agents[milestone.name].folder),
            "games": milestone.games, "digest": agents[milestone.name].digest,
        }
        for milestone in milestones
    ]  # fmt: skip
    data = {
        "agents": about, "hiders": plan.hiders, "seekers": plan.seekers, "scenes": plan.scenes, "games": plan.games,
        "seed": plan.seed, "size": plan.size, "tables": {name: _json_rows(rows) for name, rows in tables.items()},
    }  # fmt: skip
    write_atomically(folder / "results.json", json.dumps(data, indent=1) + "\n")
    page = load_template("milestones_page.html").render(
        title="Do they play?",
        facts=_describe(plan, milestones, hidings),
        notes=notes, results=results, rooms=rooms, agents=about, labels=labels, scale=PIXEL_RATIO, legend=LEGEND,
        metrics=SHOWN_METRICS, meters=METERS, seekers=plan.seekers, cell=format_summary, shade=_shade,
    )  # fmt: skip
    write_atomically(folder / "index.html", page)


def summary_sentences(
    rows: Mapping[str, Sequence[Row]], milestones: Sequence[Milestone], labels: Mapping[str, str]
) -> list[str]:
    """What changed between the first milestone and the last, in numbers."""
    found = {(row["hider"], row["seeker"]): row["found"] for row in rows["matrix"]}
    steps = {(row["hider"], row["seeker"]): row["steps"] for row in rows["matrix"]}
    hiding = {row["hider"]: row for row in rows["hidings"]}
    hiders = [milestone.name for milestone in milestones if milestone.name in hiding]
    first, last = milestones[0].name, last_player(milestones, hiding)
    sentences = []
    for early, late in [(hiders[0], hiders[-1])] if hiders else []:
        sentences.append(
            f"The seeker of {labels[last]} finds {format_summary(found[early, last], 100)} % of what the hider of "
            f"{labels[early]} hid ({format_summary(steps[early, last])} steps), and "
            f"{format_summary(found[late, last], 100)} % of what the hider of {labels[late]} hid "
            f"({format_summary(steps[late, last])} steps)."
        )
        places, visible, meters = (
            [format_summary(hiding[name][key], scale) for name in (early, late)]
            for key, scale in (("placed", 100), ("visible_from", 100), (METERS, 1))
        )
        sentences.append(
            f"The hider of {labels[early]} places {places[0]} % of its objects, visible from {visible[0]} % of the "
            f"poses, {meters[0]} m from the start; that of {labels[late]} {places[1]} %, {visible[1]} % and "
            f"{meters[1]} m."
        )
    spots = [name for name in DIFFICULTIES if (name, last) in found]
    if spots:
        early, late = (
            join_words([f"{format_summary(found[name, seeker], 100)} %" for name in spots]) for seeker in (first, last)
        )
        sentences.append(
            f"Of {join_words(spots)} spots the seeker of {labels[first]} finds {early}; that of {labels[last]} {late}."
        )
    return [*sentences, "Brackets are 95 % intervals."]


def last_player(milestones: Sequence[Milestone], hiders: Collection[str]) -> str:
    """The last milestone that plays whole games; the last of all if none does."""
    return [milestones[-1].name, *(m.name for m in milestones if m.name in hiders)][-1]


def join_words(words: Sequence[str]) -> str:
    """A list in prose."""
    return ", ".join(words[:-1]) + " and " * (len(words) > 1) + words[-1]


def _describe(plan: TournamentPlan, milestones: Sequence[Milestone], hidings: Sequence[Hiding]) -> str:
    searches = sum(len(hiding.results) for hiding in hidings)
    rooms = len(plan.scenes)
    return (
        f"{len(milestones)} milestone{'s' * (len(milestones) > 1)} against each other, scripted players"
        f"{' and spots' * bool(set(plan.hiders) & set(DIFFICULTIES))}: "
        f"{len(hidings):,} hidings and {searches:,} searches in {rooms} room{'s' * (rooms > 1)}. All hiders have the "
        "same starts, and all seekers search for the same objects."
    )


def _found(rows: Sequence[Row], labels: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        hider, seeker = (labels.get(row[role], row[role]) for role in ("hider", "seeker"))
        found.setdefault(hider, {})[seeker] = row["found"]
    return found


def _bar_colors(plan: TournamentPlan, colors: Mapping[str, str]) -> list[str]:
    return [colors[seeker] for seeker in plan.seekers]


def _matrix(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Rows by hider and seeker."""
    matrix: dict[str, dict[str, Row]] = {}
    for row in rows:
        matrix.setdefault(row["hider"], {})[row["seeker"]] = row
    return matrix


def _by_seeker(rows: Sequence[Row]) -> dict[str, list[Row]]:
    by_seeker: dict[str, list[Row]] = {}
    for row in rows:
        by_seeker.setdefault(row["seeker"], []).append(row)
    return by_seeker


def _shade(share: float) -> str:
    """A cell's background: bluer where more was found."""
    return f"rgba(47, 105, 168, {0.05 + 0.5 * share:.2f})"


def _json_rows(rows: Sequence[Row]) -> list[Any]:
    return [to_json(row) for row in rows]


def _show_rooms(
    plan: TournamentPlan,
    milestones: Sequence[Milestone],
    agents: Mapping[str, NamedAgent],
    hidings: Sequence[Hiding],
    folder: Path,
    shown: Sequence[str],
    labels: Mapping[str, str],
    progress: Progress,
) -> list[ShownRoom]:
    traced = [milestone.name for milestone in milestones if milestone.name in plan.hiders]
    traced = [*traced[: TRACED - 1], traced[-1]] if len(traced) > TRACED else traced
    total, done, rooms = len(shown) * len(traced), 0, []
    progress(0, total)
    for scene in shown:
        compiled = build_room(scene)
        here: dict[str, list[Hiding]] = {}
        for hiding in hidings:
            if hiding.scene == scene and hiding.record:
                here.setdefault(hiding.hider, []).append(hiding)
        maps = hiding_maps(compiled, here, last_player(milestones, plan.hiders), labels) if here else []
        games: list[MilestoneGame] = []
        for name in traced:
            record = here[name][0].record
            assert record is not None
            agent = agents[name].agent
            seed = own_seed(agents[name], plan.seed)
            trace = trace_agent(agent, scene, record.goal, seed, plan.renderer, np.array(plan.limits), record.start)
            games.append(as_game(labels[name], trace, compiled))
            done += 1
            progress(done, total)
        rooms.append(_show_room(scene, compiled, maps, games, here, milestones, folder, labels))
        _write_pictures(rooms[-1], folder / "charts")
    return rooms


def _write_pictures(room: ShownRoom, folder: Path) -> None:
    pictures = {f"hiding-{room.scene}-{number}": figure for number, figure in enumerate(room.maps)}
    pictures |= {f"placing-{room.scene}-{number}": figure for number, figure in enumerate(room.placing)}
    single = {"beliefs": room.beliefs, "games": room.figure}
    pictures |= {f"{name}-{room.scene}": figure for name, figure in single.items() if figure}
    for name, figure in pictures.items():
        write_picture(folder / f"{name}.png", figure.picture)


def _show_room(
    scene: str,
    compiled: CompiledRoom,
    maps: list[Figure],
    games: Sequence[MilestoneGame],
    here: Mapping[str, Sequence[Hiding]],
    milestones: Sequence[Milestone],
    folder: Path,
    labels: Mapping[str, str],
) -> ShownRoom:
    title = f"{scene}, a {type_of(scene).replace('_', ' ')}"
    if not games:
        return ShownRoom(scene, title, maps)
    grid = games[0].episode.grid
    # What the last hider hid in the tournament, as every seeker searched for it.
    late = next(here[m.name][0] for m in reversed(milestones) if m.name in here)
    assert late.record is not None
    search = Match(scene, late.hider, "", search_after(late.record))
    wanted = {milestone.name: replace(search, seeker=milestone.name) for milestone in milestones}
    found = load_searches(folder, set(wanted.values()))
    same = {
        labels[name]: seeker_plan(labels[name], found[match], compiled, grid)
        if match in found
        else missing_search(labels[name], late.record.start, compiled, grid)
        for name, match in wanted.items()
    }
    hiders = [hider_plan(game.label, game.trace.record, compiled, grid) for game in games]
    seekers = [seeker_plan(game.label, game.trace.record, compiled, grid) for game in games]
    return ShownRoom(
        scene,
        title,
        maps,
        late.goal,
        hiders,
        seekers,
        list(same.values()),
        beliefs_chart(games),
        placing_charts(games),
        games_figure(games, hiders, seekers, [same[game.label] for game in games]),
    )
