"""The page of an agent's game: the paper's qualitative figure of one agent, in one file."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from scrubjay.agent import released
from scrubjay.agent.agent import Agent, load_agent
from scrubjay.agent.config import preset_name
from scrubjay.agent.hiding_outcomes import NOT_HIDDEN, NUM_PLACEMENTS
from scrubjay.agent.weights import CONFIG_FILE
from scrubjay.files import write_atomically
from scrubjay.game.actions import MODALITIES, NAMES, Stage, target_of
from scrubjay.game.stages import LIMITS
from scrubjay.training.config import TrainConfig
from scrubjay.training.run import CONFIG, Progress, newest, read_config
from scrubjay.viz.agent_charts import (
    PIXEL_RATIO,
    attention_by_position,
    attention_chart,
    hittable_chart,
    manipulation_chart,
    rollouts_chart,
    score_chart,
    value_chart,
)
from scrubjay.viz.agent_trace import AgentTrace, HidingDecision, TraceStep, load_run_agent
from scrubjay.viz.captions import caption, choice_words
from scrubjay.viz.episode import STAGES, Episode, most_detailed, select_steps
from scrubjay.viz.episode_page import STAGE_METRICS, describe_metrics, plan_percent, summarize
from scrubjay.viz.floorplan import FloorPlan
from scrubjay.viz.page import Figure, color_bands, encode_frame, load_template
from scrubjay.viz.paths import PLAN_SIZE, hand_chart, path_plan

MAX_FRAMES = 360
"""Of the scrubber."""
MOST_LIKELY = 5
"""Actions whose probabilities are shown."""
MAX_ATTENDED = 40
"""Map positions whose attention the scrubber shows."""
TRAINED_STAGE = {"explore": Stage.EM, "manipulate": Stage.OM, "seek": Stage.S}
"""The only stage that runs of these tasks train."""


def write_agent_page(
    trace: AgentTrace,
    episode: Episode,
    training: str,
    path: str | os.PathLike[str],
    stages: Collection[Stage] = tuple(Stage),
) -> None:
    """Writes the page of a trace; `episode` is the replay of its record, `training` says how the agent was trained.

    Only these stages are shown: those that were trained.
    """
    steps = episode.steps_in(*stages) or episode.steps
    shown = [step.number for step in select_steps(steps, MAX_FRAMES)]
    part = replace(trace, steps=trace.steps_in(*stages) or trace.steps)
    write_atomically(path, load_template("agent_page.html").render(
        title=f"Inside the agent: {episode.record.goal} in {episode.record.scene}" if len(stages) > 1 else
              f"Inside the agent: {STAGES[next(iter(stages))].title.lower()} in {episode.record.scene}",
        facts=describe_game(episode, stages),
        training=training,
        stages=[stage.name for stage in stages],
        first=shown.index(most_detailed([episode.steps[number] for number in shown]).number),
        metrics=describe_metrics(episode, [name for stage in stages for name in STAGE_METRICS[stage]]),
        scale=PIXEL_RATIO,
        frames=[_frame(episode, trace.steps[number], number) for number in shown],
        total=len(steps),
        bands=color_bands(STAGES[trace.steps[number].stage].color for number in shown),
        map=Figure(FloorPlan(episode.compiled, episode.grid, PLAN_SIZE, numbered=False).picture, "the floor plan"),
        value_and_entropy=value_chart(part),
        legend=[(STAGES[stage].title, STAGES[stage].color) for stage in Stage if part.steps_in(stage)],
        paths=[path_plan(episode, seeker, set(stages) != {Stage.EM})
               for seeker, stage in ((False, Stage.EM), (True, Stage.S)) if stage in stages],
        attention=attention_chart(episode, attended) if (attended := attention_steps(part)) else None,
        **_hiding_charts(trace, episode) if Stage.PS in stages else {},
        **_manipulation_charts(trace, episode) if Stage.OM in stages else {},
    ))  # fmt: skip


def describe_game(episode: Episode, stages: Collection[Stage] = tuple(Stage)) -> str:
    """A sentence about a game, or about the stages of it that count."""
    if len(stages) > 1:
        return summarize(episode)
    (stage,) = stages
    steps = len(episode.steps_in(stage))
    return f"{STAGES[stage].title} in {episode.record.scene}: {steps} steps, rendered with {episode.renderer}."


def trained_stages(folder: str | os.PathLike[str]) -> tuple[Stage, ...]:
    """The stages that a run trains; all of them for weights without a run, which may know any."""
    config = Path(folder) / CONFIG
    task = read_config(folder).task if config.exists() else ""
    return (TRAINED_STAGE[task],) if task in TRAINED_STAGE else tuple(Stage)


def limits_of(stages: Collection[Stage]) -> np.ndarray:
    """Steps of each stage in a game that shows these: after exploring nothing needs to be played if it is all."""
    exploring_only = set(stages) == {Stage.EM}
    return np.where(np.arange(len(Stage)) > Stage.EM, 1, LIMITS) if exploring_only else LIMITS


def _hiding_charts(trace: AgentTrace, episode: Episode) -> dict[str, Any]:
    return dict(
        scores=score_chart(episode, trace.hiding),
        candidates=candidate_rows(trace.hiding),
        rollouts=rollouts_chart(episode, trace.hiding),
    )


def _manipulation_charts(trace: AgentTrace, episode: Episode) -> dict[str, Any]:
    return dict(hittable=hittable_chart(trace), manipulation=manipulation_chart(trace), hand=hand_chart(episode))


def describe_training(training: TrainConfig, progress: Progress) -> str:
    """How far the run was, and which stages it does not train."""
    rooms = len(training.scenes)
    text = (
        f"The run ({training.task}, {preset_name(training.agent)} networks, {rooms} room{'s' if rooms > 1 else ''}) "
        f"was at update {progress.update:,} of {training.updates:,}: {progress.steps:,} steps and "
        f"{progress.games:,} finished games in {progress.seconds / 60:.1f} minutes."
    )
    if training.task in TRAINED_STAGE:
        text += f" It trains {STAGES[TRAINED_STAGE[training.task]].title.lower()} only."
    return text


def load_described_agent(folder: str | os.PathLike[str], trust_code: bool = False) -> tuple[Agent, str]:
    """The agent of a run, of a folder of weights or of a release, by its name, and how it was trained."""
    where = newest(folder)
    if (Path(folder) / CONFIG).exists() or not (where / CONFIG_FILE).exists():
        agent, config, progress = load_run_agent(folder, trust_code)
        return agent, describe_training(config, progress)
    agent = load_agent(where, trust_code=trust_code).eval()
    if released.is_name(folder):
        card = released.load_card(os.fspath(folder))
        text = f"{card.name}: {card.title}. {card.steps:,} steps in {card.gpu_minutes:,.0f} GPU minutes. {card.about}"
        return agent, f"{text} {card.limits}".strip()
    return agent, f"Weights of {where} ({preset_name(agent.config)} networks), without the run that trained them."


def attention_steps(trace: AgentTrace) -> list[TraceStep]:
    """Steps whose attention is shown: halfway through and at the end of exploring, hiding, halfway through seeking."""
    exploring, hiding, seeking = (trace.steps_in(stage) for stage in (Stage.EM, Stage.OH, Stage.S))
    halfway = [steps[len(steps) // 2 :][:1] for steps in (exploring, seeking)]
    return [*halfway[0], *exploring[-1:], *hiding[:1], *halfway[1]]


def candidate_rows(hiding: HidingDecision) -> list[dict[str, Any]]:
    """Table rows of the poses that had mental rollouts, longest expected search first."""
    choice, rows = hiding.choice, []
    for number, (row, column, quarter) in enumerate(choice.places[0].tolist()):
        if not choice.valid[0, number]:
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
                score=f"{hiding.scores[quarter, row, column]:.3g}",
                steps=f"{float(choice.expected_steps[0, number]):.1f}",
                probability=f"{100 * float(choice.log_probability[0, number].exp()):.0f} %",
                outcomes=[f"{outcome_name(o)}, weight {w:.2f}: {s:.0f} steps" for o, w, s in imagined],
                chosen=number == int(choice.chosen[0]),
            )
        )
    return sorted(rows, key=lambda row: -float(row["steps"]))


def outcome_name(outcome: int) -> str:
    """A hiding outcome in words; cells count from 1, as in action names."""
    if outcome == NOT_HIDDEN:
        return "dropped only"
    standing, placement = divmod(outcome, NUM_PLACEMENTS)
    modality, row, column = target_of(placement)
    how = "standing" if standing else "crouching"
    return f"{MODALITIES[modality]} {row + 1},{column + 1} {how}"


def _frame(episode: Episode, step: TraceStep, number: int) -> dict[str, Any]:
    """A frame of the scrubber: the view, the policy, and the attention over the map."""
    style = STAGES[step.stage]
    positions, weights = attention_by_position(step)
    most = np.argsort(-weights)[:MAX_ATTENDED]
    likely = np.argsort(-step.probabilities)[: MOST_LIKELY if step.stage != Stage.PS else 0]
    return dict(
        image=encode_frame(step.picture),
        step=number + 1, stage=style.title, color=style.color, action=step.action, failed=not step.success,
        words=caption(episode, episode.steps[number]),
        probability=_finite(100 * step.probability, 1), value=_finite(step.value, 3), entropy=_finite(step.entropy, 3),
        likely=[[NAMES[i], round(100 * float(step.probabilities[i]), 1), choice_words(NAMES[i])] for i in likely],
        player=plan_percent(episode, *step.agent_pose[:2]), turn=round(step.agent_pose.rotation, 1),
        attended=[[*plan_percent(episode, *positions[i]), round(float(weights[i] / weights.max()), 2)] for i in most],
        unattended=round(100 * float(1 - weights.sum())),
    )  # fmt: skip


def _finite(value: float, digits: int) -> float | None:
    """The rounded value, or None: JSON has no NaN."""
    return round(value, digits) if np.isfinite(value) else None
