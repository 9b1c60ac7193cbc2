"""Each learned stage as a Gymnasium environment: `scrubjay/Explore-v0`, `Hide-v0`, `Manipulate-v0`, `Seek-v0`.

`gymnasium.make` makes one game, `gymnasium.make_vec` many in one world. Action and observation spaces are plain enough
for any library. Games terminate by the rules, and are truncated where the learner's stage runs out of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from scrubjay.envs import tasks
from scrubjay.envs.base import (
    DEFAULT_SCENE,
    Scene,
    SingleEnv,
    VectorEnv,
    check_begun,
    check_open,
    place_bound,
    vector_info,
)
from scrubjay.envs.registration import TASKS as TASK_NAMES
from scrubjay.envs.stage_games import ACTIONS, StageGames
from scrubjay.envs.tasks import Task
from scrubjay.game import actions
from scrubjay.game.actions import MODALITIES, Stage
from scrubjay.rooms.room import GOALS, Room
from scrubjay.sim.cells import CELLS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.world import World

TASKS: dict[str, type[Task]] = {name: getattr(tasks, name) for name in TASK_NAMES}
"""The registered tasks, by the name of their class."""


def observation_space(world: World, stage: Stage) -> spaces.Dict:
    """The observation space of one game's learner."""
    most = place_bound(world)
    low, high = np.array([-most, -most, 0, 0], np.float32), np.array([most, most, 3, 1], np.float32)
    space: dict[str, spaces.Space] = {
        "image": spaces.Box(0, 255, (world.size, world.size, 3), np.uint8),
        "last_action": spaces.Discrete(len(ACTIONS[stage]) + 1),
        "last_success": spaces.Discrete(2),
        "standing": spaces.Discrete(2),
        "goal": spaces.Discrete(len(GOALS)),
        "place": spaces.Box(low, high, dtype=np.float32),
    }
    if stage == Stage.OH:
        space["landed"] = spaces.Discrete(len(actions.PLACE_ACTIONS) + 1)
    if stage == Stage.OM:
        space["target"] = spaces.MultiDiscrete([len(MODALITIES), CELLS, CELLS])
    return spaces.Dict(space)


class StageEnv(SingleEnv):
    """One game, of which the learner plays one stage; other players play the rest within `reset` and `step`.

    Action k is the k-th of the stage's actions, `ACTIONS`. `last_action` is one more than the last action where there
    was none. `place` is in steps right and ahead of the game's start, quarter turns, standing.
    """

    def __init__(
        self,
        task: str,
        scene: Scene = DEFAULT_SCENE,
        size: int = 224,
        renderer: str = "auto",
        device: str = "cpu",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        """`options` are the fields of the task's class in `tasks.py`, such as goals."""
        self.task, self.world = make_task(task, [scene], 1, size, renderer, device, options)
        self.render_mode = render_mode
        self.observation_space = observation_space(self.world, self.task.stage)
        self.action_space = spaces.Discrete(len(ACTIONS[self.task.stage]))
        self.games: StageGames | None = None
        self._finished = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts a new game; the same seed gives the same game. There are no options."""
        check_open(self.world)
        super().reset(seed=seed)
        if self.games is None or seed is not None:
            self.games = StageGames(self.world, self.task, self.np_random, keep_final_obs=True, tensors=False)
        elif not self._finished:  # A finished game has been followed by the next already.
            self.games.reset(np.ones(1, bool))
        self.games.await_turn()
        self._finished = False
        self._obs = self.games.observation(0)
        return dict(self._obs), {}

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        check_begun(self)
        assert self.games is not None
        if self._finished:
            raise gymnasium.error.ResetNeeded("the game has ended: reset the environment")
        step = self.games.act(np.asarray(action)[None])
        self._finished = bool(step.finished[0])
        self._obs = self.games.observation(0)
        info = {name: values[0].item() for name, values in step.info().items()}
        return dict(self._obs), float(step.reward[0]), bool(step.terminated[0]), bool(step.truncated[0]), info


class StageVectorEnv(VectorEnv):
    """Many games like those of `StageEnv` in one world, equally many in each room.

    When a game ends, the next one begins in the same step; `final_obs` and `final_info` in the info are of its last
    step. Where other players play within a step, all games wait for the longest.
    """

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        scene: Scene | Sequence[Scene] = DEFAULT_SCENE,
        size: int = 224,
        renderer: str = "auto",
        device: str = "cpu",
        tensors: bool = False,
        final_obs: bool = True,
        **options: Any,
    ) -> None:
        """`tensors` leaves images on the renderer's device; `final_obs=False` saves rendering final observations.

        `options` are the fields of the task's class in `tasks.py`, such as goals.
        """
        scenes = [scene] if isinstance(scene, str | Room | CompiledRoom) else list(scene)
        self.task, world = make_task(task, scenes, num_envs, size, renderer, device, options)
        stage = self.task.stage
        super().__init__(world, observation_space(world, stage), spaces.Discrete(len(ACTIONS[stage])))
        self.tensors, self.final_obs = tensors, final_obs
        self.games: StageGames | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Resets all games; the same seed gives the same games. There are no options."""
        check_open(self.world)
        super().reset(seed=seed)
        self.games = StageGames(self.world, self.task, self.np_random, self.final_obs, self.tensors)
        self.games.await_turn()
        return self.games.observe(), {}

    def step(self, actions: np.ndarray) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        check_begun(self)
        assert self.games is not None
        step = self.games.act(actions)
        info = vector_info(step.info(), step.finished, self.games.final_obs)
        self.games.await_turn()
        return self.games.observe(), step.reward, step.terminated, step.truncated, info


def make_task(
    name: str, scenes: Sequence[Scene], games: int, size: int, renderer: str, device: str, options: dict[str, Any]
) -> tuple[Task, World]:
    """A task by name and a world for its games; wrong arguments raise ValueError before rooms are made."""
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}; there are {', '.join(TASKS)}")
    if not scenes or games < 1 or games % len(scenes):
        raise ValueError(f"{games} games cannot be shared out evenly among {len(scenes)} rooms")
    task = TASKS[name](**options)
    world = World(scenes, games // len(scenes), renderer, size, device)
    try:
        return task.load([room.room.scene for room in world.rooms]), world
    except Exception:
        world.close()
        raise
