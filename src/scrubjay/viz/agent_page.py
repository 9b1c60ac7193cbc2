"""The page of a watched game: the paper's qualitative figure of one agent, in one file that needs no other."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from scrubjay.agent.hiding_outcomes import NONE, SPOTS
from scrubjay.files import write_atomically
from scrubjay.game.actions import MODALITIES, NAMES, Stage, target_of
from scrubjay.training.config import TrainConfig
from scrubjay.training.run import Progress
from scrubjay.viz.agent_charts import (
    SHARP,
    attention_chart,
    by_position,
    course_chart,
    glance_chart,
    hittable_chart,
    manipulation_chart,
    rollouts_chart,
)
from scrubjay.viz.agent_trace import AgentTrace, Moment, Reasons
from scrubjay.viz.episode import STAGES, Episode, select_steps
from scrubjay.viz.episode_page import describe_metrics, plan_percent, summarize
from scrubjay.viz.floorplan import draw_floorplan
from scrubjay.viz.page import Figure, color_bands, encode_frame, load_template
from scrubjay.viz.paths import PLAN_SIZE, hand_chart, path_plan

FRAMES = 360
"""At most, of the scrubber."""
LIKELY = 5
"""Actions whose probabilities are shown."""
ATTENDED = 40
"""Positions of the map, at most, whose attention the scrubber shows."""
ALONE = {"explore": Stage.EM, "manipulate": Stage.OM, "seek": Stage.S}
"""The stage that a run learns which learns but one."""


def write_agent_page(
    watched: AgentTrace, episode: Episode, training: TrainConfig, progress: Progress, path: str | os.PathLike[str]
) -> None:
    """Writes the page; `episode` is the game's record, told."""
    shown = [step.number for step in select_steps(episode.steps, FRAMES)]
    write_atomically(path, load_template("agent_page.html").render(
        title=f"What the agent does: {episode.record.goal} in {episode.record.scene}",
        facts=summarize(episode),
        training=trained(training, progress),
        metrics=describe_metrics(episode),
        sharp=SHARP,
        frames=[_frame(episode, watched.moments[number], number) for number in shown],
        total=len(watched.moments),
        bands=color_bands(STAGES[watched.moments[number].stage].color for number in shown),
        map=Figure(draw_floorplan(episode.compiled, episode.grid, size=PLAN_SIZE), "the agent on the floor plan"),
        course=course_chart(watched),
        legend=[(STAGES[stage][0], STAGES[stage][1]) for stage in Stage if watched.of(stage)],
        ways=[path_plan(episode, seeker) for seeker in (False, True)],
        attention=attention_chart(episode, telling_moments(watched)),
        glance=glance_chart(episode, watched.reasons),
        places=considered_places(watched.reasons),
        rollouts=rollouts_chart(episode, watched.reasons),
        hittable=hittable_chart(watched),
        manipulation=manipulation_chart(watched),
        hand=hand_chart(episode),
    ))  # fmt: skip


def trained(training: TrainConfig, progress: Progress) -> str:
    """How far the run was, and what it cannot have learned."""
    rooms = len(training.scenes)
    said = (
        f"The run ({training.task}, {training.agent} networks, {rooms} room{'s' if rooms > 1 else ''}) was at update "
        f"{progress.update:,} of {training.updates:,}: {progress.steps:,} steps and {progress.games:,} finished games "
        f"in {progress.seconds / 60:.1f} minutes."
    )
    if training.task in ALONE:
        said += (
            f" It learns {STAGES[ALONE[training.task]][0].lower()} alone; in the other stages the agent does what "
            "untrained networks do."
        )
    return said


def telling_moments(watched: AgentTrace) -> list[Moment]:
    """Moments at which attention is shown: while and after exploring, hiding, while seeking and at its end."""
    exploring, seeking = watched.of(Stage.EM), watched.of(Stage.S)
    return [exploring[len(exploring) // 2], exploring[-1], *watched.of(Stage.OH)[:1], *seeking[len(seeking) // 2 :][:1]]


def considered_places(reasons: Reasons) -> list[dict[str, Any]]:
    """The places that were thought through, as rows of a table, those that mental seekers find latest first."""
    choice, rows = reasons.choice, []
    for number, (row, column, quarter) in enumerate(choice.places[0].tolist()):
        if not choice.real[0, number]:
            continue
        imagined = zip(
            choice.outcomes[0, number].tolist(),
            choice.weights[0, number].tolist(),
            choice.mean_steps[0, number].tolist(),
            strict=True,
        )
        rows.append(
            dict(
                number=number + 1,
                score=f"{reasons.scores[quarter, row, column]:.3g}",
                steps=f"{float(choice.expected_steps[0, number]):.1f}",
                chance=f"{100 * float(choice.log_probability[0, number].exp()):.0f} %",
                outcomes=[f"{outcome_name(o)}, weight {w:.2f}: {s:.0f} steps" for o, w, s in imagined],
                chosen=number == int(choice.chosen[0]),
            )
        )
    return sorted(rows, key=lambda row: -float(row["steps"]))


def outcome_name(outcome: int) -> str:
    """An outcome of hiding in words; cells count from 1, as in the names of actions."""
    if outcome == NONE:
        return "only dropped"
    standing, spot = divmod(outcome, SPOTS)
    modality, row, column = target_of(spot)
    how = "standing" if standing else "crouching"
    return f"{MODALITIES[modality]} {row + 1},{column + 1} {how}"


def _frame(episode: Episode, moment: Moment, number: int) -> dict[str, Any]:
    """A frame of the scrubber: what was seen, what was done with which probability, what was attended to."""
    title, color, _ = STAGES[moment.stage]
    positions, weights = by_position(moment)
    most = np.argsort(-weights)[:ATTENDED]
    likely = np.argsort(-moment.probabilities)[: LIKELY if moment.stage != Stage.PS else 0]
    return dict(
        image=encode_frame(moment.picture),
        step=number + 1, stage=title, color=color, action=moment.action, failed=not moment.success,
        chance=_rounded(100 * moment.chance, 1), value=_rounded(moment.value, 3), entropy=_rounded(moment.entropy, 3),
        likely=[[NAMES[i], round(100 * float(moment.probabilities[i]), 1)] for i in likely],
        player=plan_percent(episode, *moment.place[:2]), turn=round(moment.place.rotation, 1),
        attended=[[*plan_percent(episode, *positions[i]), round(float(weights[i] / weights.max()), 2)] for i in most],
        nothing=round(100 * float(1 - weights.sum())),
    )  # fmt: skip


def _rounded(value: float, digits: int) -> float | None:
    """None for what is not there: JSON has no NaN."""
    return round(value, digits) if np.isfinite(value) else None
