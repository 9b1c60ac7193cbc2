"""A recorded game, replayed to be told: its steps, what was seen at each, and a choice of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scrubjay.errors import RecordError
from scrubjay.game.actions import Stage
from scrubjay.game.record import Record, replay
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.viz.picture import shrunk

PICTURE_SIZE = 224
"""Pixels at most that are kept of what was seen, along a side."""
STAGES = {
    Stage.EM: ("Exploration and mapping", "#78aa8c", "The hider gets to know the room."),
    Stage.PS: (
        "Perspective simulation",
        "#8a7fb5",
        "The hider chooses where to hide from: steps right and ahead, quarter turns, standing.",
    ),
    Stage.OH: ("Object hiding", "#dfa04f", "The hider opens, closes, and says where the object should go."),
    Stage.OM: ("Object manipulation", "#c8463c", "The object is in the hand; each attempt begins with a PlaceAt."),
    Stage.S: ("Seeking", "#2f69a8", "The seeker begins where the hider began."),
}
_PLAIN = ("Move", "Rotate", "Stand", "Crouch")


@dataclass(frozen=True)
class Step:
    """What an action did, and what was seen then."""

    number: int
    stage: Stage
    action: str
    success: bool
    hit: bool
    place: AgentPose
    pose: np.ndarray
    opened: tuple[int, ...]
    """Numbers of the openables that it opened."""
    picture: np.ndarray

    @property
    def result(self) -> str:
        return ("succeeded" if self.success else "failed") + (", target hit" if self.hit else "")

    @property
    def eventful(self) -> bool:
        """More than walking, turning and moving the hand, and it worked."""
        return self.success and not self.action.startswith(_PLAIN)


@dataclass(frozen=True)
class Episode:
    """A game as it was replayed."""

    record: Record
    compiled: CompiledRoom
    steps: list[Step]
    container: int
    """The id of the thing that held the object when the hider was done, or -1."""
    drawn_with: str

    def of(self, *stages: Stage) -> list[Step]:
        return [step for step in self.steps if step.stage in stages]

    @property
    def start(self) -> AgentPose:
        return self.record.start

    @property
    def contained_in(self) -> str:
        return self.compiled.things[self.container] if self.container >= 0 else "nothing"


def tell(record: Record, renderer: str = "auto") -> Episode:
    """Replays a record and keeps what is shown of it; RecordError if it does not replay."""
    steps: list[Step] = []
    container = -1
    dealt = record.dealt()
    with World([record.scene], renderer=renderer, size=record.size) as world:
        place, is_open = dealt.place or dealt.start, np.isin(np.arange(world.state.open.shape[1]), dealt.open)
        for number, (game, outcome) in enumerate(replay(record, world)):
            stage = Stage(outcome.stage[0])
            opened: tuple[int, ...] = ()
            if outcome.finished[0] and steps:
                # The next game has begun; a claim changes nothing, so the last picture is still right.
                picture = steps[-1].picture
            else:
                picture = game.look().rgb[0].cpu().numpy()
                picture = shrunk(picture, PICTURE_SIZE) if record.size > PICTURE_SIZE else picture.copy()
                place = world.agent_pose(0)
                opened = tuple(np.flatnonzero(world.state.open[0] & ~is_open).tolist())
                is_open = world.state.open[0].copy()
            if number == 0 or (game.stage[0] != stage and not outcome.finished[0]):
                container = int(world.contained()[0])
            done = bool(outcome.success[0])
            steps.append(Step(number, stage, record.actions[number], done, bool(outcome.hit[0]), place,
                              outcome.pose[0].copy(), opened, picture))  # fmt: skip
        return Episode(record, world.rooms[0], steps, container, world.renderer.name)


def again(record: Record) -> Iterator[str]:
    """Replays a record as it was drawn and says what each step did; RecordError where anything is not as recorded."""
    with World([record.scene], renderer=record.renderer.lower(), size=record.size) as world:
        for number, (_, outcome) in enumerate(replay(record, world)):
            name, stage = record.actions[number] or "nothing", Stage(outcome.stage[0])
            where = f"step {number + 1} of {len(record.actions)}, {name} in {stage.name}"
            place, opened = outcome.place[0].tolist(), int(outcome.opened[0])
            if place != record.places[number]:
                raise RecordError(f"{where}: it led to {place}, and to {record.places[number]} when it was recorded")
            if opened != record.opened[number]:
                raise RecordError(f"{where}: it opened {opened}, and {record.opened[number]} when it was recorded")
            yield f"{number + 1:4} {stage.name:2} {name:18} {'succeeded' if outcome.success[0] else 'failed'}"


def chosen(steps: list[Step], most: int) -> list[Step]:
    """Some of the steps in their order, the last always: eventful ones for up to half, the others evenly spread."""
    if len(steps) <= most:
        return steps
    events = [i for i, step in enumerate(steps[:-1]) if step.eventful]
    kept = {len(steps) - 1, *(events[i] for i in spread(len(events), (most - 1) // 2))}
    others = [i for i in range(len(steps)) if i not in kept]
    kept |= {others[i] for i in spread(len(others), most - len(kept))}
    return [steps[i] for i in sorted(kept)]


def spread(count: int, most: int) -> list[int]:
    return list(range(count)) if count <= most else np.linspace(0, count - 1, most).round().astype(int).tolist()
