"""A recorded game, replayed with what the players saw at each step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scrubjay.evaluation.scores import reachable_grid
from scrubjay.game.actions import Stage
from scrubjay.game.record import Record, renderer_of, replay
from scrubjay.rooms.floor import Grid
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.viz.palette import BLUE, GREEN, ORANGE, RED, VIOLET
from scrubjay.viz.picture import shrink_picture

PICTURE_SIZE = 224
"""Edge in pixels to which larger frames are shrunk."""


class StageStyle(NamedTuple):
    """How pages present a stage."""

    title: str
    color: str
    text: str


STAGES = {
    Stage.EM: StageStyle("Exploration and mapping", GREEN, "The hider explores the room."),
    Stage.PS: StageStyle(
        "Perspective simulation",
        VIOLET,
        "The hider chooses a place in the room from which to hide the object.",
    ),
    Stage.OH: StageStyle(
        "Object hiding", ORANGE, "The hider opens and closes things and picks a target for the object."
    ),
    Stage.OM: StageStyle("Object manipulation", RED, "The hider moves the object in its hand, and lets go."),
    Stage.S: StageStyle("Seeking", BLUE, "The seeker starts where the hider started."),
}
ROUTINE_ACTIONS = ("Move", "Rotate", "Stand", "Crouch")


@dataclass(frozen=True)
class EpisodeStep:
    """An action, its result, and what was seen afterwards."""

    number: int
    """From 0."""
    stage: Stage
    action: str
    success: bool
    hit: bool
    agent_pose: AgentPose
    """Afterwards."""
    object_pose: np.ndarray
    """(7,): afterwards."""
    opened: tuple[int, ...]
    """Openables that this step opened."""
    picture: np.ndarray
    """(H, W, 3) uint8."""

    @property
    def result(self) -> str:
        return ("succeeded" if self.success else "failed") + (", target hit" if self.hit else "")

    @property
    def eventful(self) -> bool:
        """A successful action other than walking, turning or moving the hand."""
        return self.success and not self.action.startswith(ROUTINE_ACTIONS)


@dataclass(frozen=True)
class Episode:
    """A replayed game."""

    record: Record
    compiled: CompiledRoom
    steps: list[EpisodeStep]
    container: int
    """Id of the thing that contained the object when the hider was done, or -1."""
    renderer: str

    def steps_in(self, *stages: Stage) -> list[EpisodeStep]:
        return [step for step in self.steps if step.stage in stages]

    @property
    def start(self) -> AgentPose:
        return self.record.start

    @property
    def grid(self) -> Grid:
        """The reachable grid with everything closed."""
        return reachable_grid(self.record, self.compiled)

    @property
    def contained_in(self) -> str:
        return self.compiled.things[self.container] if self.container >= 0 else "nothing"


def replay_episode(record: Record, renderer: str = "auto", picture_size: int = PICTURE_SIZE) -> Episode:
    """Replays a record and keeps a frame of every step; RecordError if it does not replay."""
    steps: list[EpisodeStep] = []
    container = -1
    spec = record.spec
    renderer_of(record)
    with World([record.scene], renderer=renderer, size=record.size) as world:
        agent_pose, is_open = spec.place or spec.start, np.isin(np.arange(world.state.open.shape[1]), spec.open)
        for number, (game, result) in enumerate(replay(record, world)):
            stage = Stage(result.stage[0])
            opened: tuple[int, ...] = ()
            if result.finished[0] and steps:
                # The next game has already started. A claim changes nothing, so the last frame still holds.
                picture = steps[-1].picture
            else:
                picture = game.look().rgb[0].cpu().numpy()
                picture = shrink_picture(picture, picture_size) if record.size > picture_size else picture.copy()
                agent_pose = world.agent_pose(0)
                opened = tuple(np.flatnonzero(world.state.open[0] & ~is_open).tolist())
                is_open = world.state.open[0].copy()
            if number == 0 or (game.stage[0] != stage and not result.finished[0]):
                container = int(world.contained()[0])
            success = bool(result.success[0])
            steps.append(EpisodeStep(number, stage, record.actions[number], success, bool(result.hit[0]), agent_pose,
                                     result.pose[0].copy(), opened, picture))  # fmt: skip
        return Episode(record, world.rooms[0], steps, container, world.renderer.name)


def replay_lines(record: Record) -> Iterator[str]:
    """Replays a record with its own renderer and yields a line per step; RecordError at the first difference."""
    with World([record.scene], renderer=renderer_of(record), size=record.size) as world:
        for number, (_, result) in enumerate(replay(record, world)):
            name, stage = record.actions[number] or "nothing", Stage(result.stage[0])
            yield f"{number + 1:4} {stage.name:2} {name:18} {'succeeded' if result.success[0] else 'failed'}"


def select_steps(steps: list[EpisodeStep], count: int) -> list[EpisodeStep]:
    """At most `count` steps in order, always the last: up to half of them eventful ones, the others evenly spaced."""
    if len(steps) <= count:
        return steps
    events = [i for i, step in enumerate(steps[:-1]) if step.eventful]
    kept = {len(steps) - 1, *(events[i] for i in spaced_indices(len(events), (count - 1) // 2))}
    others = [i for i in range(len(steps)) if i not in kept]
    kept |= {others[i] for i in spaced_indices(len(others), count - len(kept))}
    return [steps[i] for i in sorted(kept)]


def key_steps(steps: list[EpisodeStep], count: int) -> list[EpisodeStep]:
    """At most `count` steps that tell the story, always the last: of each span the most detailed eventful one."""
    if len(steps) <= count:
        return steps
    bounds = np.linspace(0, len(steps) - 1, count).round().astype(int).tolist()
    spans = [steps[a:b] for a, b in itertools.pairwise(bounds)]
    return [*(most_detailed([step for step in span if step.eventful] or span) for span in spans), steps[-1]]


def most_detailed(steps: Sequence[EpisodeStep]) -> EpisodeStep:
    """The step whose frame has the strongest edges: not the one in front of a wall."""
    return max(steps, key=lambda step: np.abs(np.diff(step.picture.astype(float), axis=1)).mean())


def spaced_indices(length: int, count: int) -> list[int]:
    """At most `count` evenly spaced indices of a list, with both ends."""
    return list(range(length)) if length <= count else np.linspace(0, length - 1, count).round().astype(int).tolist()
