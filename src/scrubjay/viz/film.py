"""A game that is filmed while it is played, for worlds whose records do not replay."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.record import Record
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.viz.episode import PICTURE_SIZE, Episode, EpisodeStep
from scrubjay.viz.picture import shrink_picture


@dataclass(frozen=True)
class Frame:
    """What there was before a step."""

    stage: Stage
    agent_pose: AgentPose
    object_pose: np.ndarray
    picture: np.ndarray


@dataclass
class Film:
    """The frames of one game. Call `watch` before each of its steps."""

    frames: list[Frame] = field(default_factory=list)
    container: int = NOTHING

    def watch(self, game: CacheGame) -> None:
        world, stage = game.world, Stage(game.stage[0])
        picture = game.look().rgb[0].cpu().numpy()
        picture = shrink_picture(picture, PICTURE_SIZE) if world.size > PICTURE_SIZE else picture.copy()
        if not self.frames or self.frames[-1].stage != stage:
            self.container = int(world.contained()[0])
        self.frames.append(Frame(stage, world.agent_pose(0), world.state.pose[0].copy(), picture))

    def episode(self, record: Record, compiled: CompiledRoom) -> Episode:
        """The game with its record; `compiled` is our own room of its name, for plans."""
        hits = iter(record.hits)
        steps = []
        for number, stage in enumerate(record.stages()):
            # What a step led to is what there was before the next; a game's last step, a claim, changes nothing.
            after = self.frames[min(number + 1, len(self.frames) - 1)]
            ends = stage == Stage.OM and (number + 1 == len(self.frames) or after.stage != Stage.OM)
            opened = record.opened[number]
            steps.append(EpisodeStep(
                number, stage, record.actions[number], record.success[number], bool(ends and next(hits)[0]),
                after.agent_pose, after.object_pose, () if opened == NOTHING else (opened,), after.picture,
            ))  # fmt: skip
        return Episode(record, compiled, steps, self.container, record.renderer)
