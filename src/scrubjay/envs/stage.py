"""Each learned stage as a Gymnasium environment: `scrubjay/Explore-v0`, `Hide-v0`, `Manipulate-v0`, `Seek-v0`.

`gymnasium.make` gives one game, `gymnasium.make_vec` many in one world. Actions are plain numbers, observations small
spaces that any library takes. Games end as the rules say, which is termination; nothing is truncated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from scrubjay.envs.cache import SCENE, Scene, steps_across, vector_info
from scrubjay.envs.stage_games import ACTIONS, StageGames
from scrubjay.envs.tasks import TASKS, Task, WholeGame
from scrubjay.game import actions
from scrubjay.game.actions import MODALITIES, Stage
from scrubjay.rooms.room import GOALS, Room
from scrubjay.sim.cells import CELLS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.world import World

STAGE_TASKS = {task.__name__: task for task in TASKS.values() if task is not WholeGame}


def observation_space(world: World, stage: Stage) -> spaces.Dict:
    """What a learner of a stage sees of one game."""
    across = steps_across(world)
    low, high = np.array([-across, -across, 0, 0], np.float32), np.array([across, across, 3, 1], np.float32)
    seen: dict[str, spaces.Space] = {
        "image": spaces.Box(0, 255, (world.size, world.size, 3), np.uint8),
        "last_action": spaces.Discrete(len(ACTIONS[stage]) + 1),
        "last_success": spaces.Discrete(2),
        "standing": spaces.Discrete(2),
        "goal": spaces.Discrete(len(GOALS)),
        "place": spaces.Box(low, high, dtype=np.float32),
    }
    if stage == Stage.OH:
        seen["landed"] = spaces.Discrete(len(actions.PLACE_ACTIONS) + 1)
    if stage == Stage.OM:
        seen["target"] = spaces.MultiDiscrete([len(MODALITIES), CELLS, CELLS])
    return spaces.Dict(seen)


class StageEnv(gymnasium.Env):
    """One game, of which the learner plays one stage; others play the rest within `reset` and `step`.

    Action k is the k-th of the stage's actions, `ACTIONS`. The last action is one more than there are where there was
    none. The place is in steps to the right and ahead of the game's start, quarter turns, standing.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's own declaration)

    def __init__(
        self,
        task: str,
        scene: Scene = SCENE,
        size: int = 224,
        renderer: str = "auto",
        device: str = "cpu",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        """`options` are the fields of the task's class in `stage_tasks`, such as goals."""
        self.task, self.world = made(task, [scene], 1, size, renderer, device, options)
        self.render_mode = render_mode
        self.observation_space = observation_space(self.world, self.task.stage)
        self.action_space = spaces.Discrete(len(ACTIONS[self.task.stage]))
        self.games: StageGames | None = None
        self._over = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """A new game, the same one for the same seed; there are no options."""
        super().reset(seed=seed)
        if self.games is None or seed is not None:
            self.games = StageGames(self.world, self.task, self.np_random, last_looks=True, tensors=False)
        elif not self._over:  # One that is over has been followed by the next already.
            self.games.reset(np.ones(1, bool))
        self.games.await_turn()
        self._over = False
        self.seen = self.games.seen_in(0)
        return dict(self.seen), {}

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        if self.games is None or self._over:
            raise gymnasium.error.ResetNeeded("the game is over, or none has begun: reset the environment")
        played = self.games.act(np.asarray(action)[None])
        self._over = bool(played.finished[0])
        self.seen = self.games.seen_in(0)
        info = {name: values[0].item() for name, values in played.told().items()}
        return dict(self.seen), float(played.reward[0]), self._over, False, info

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The picture last seen."""
        return self.seen["image"].copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self.world.close()


class StageVectorEnv(gymnasium.vector.VectorEnv):
    """Many games like those of `StageEnv` in one world, the same number in each room.

    A game that ends is terminated and the next one begins in the same step: `final_obs` and `final_info` in the info
    hold what was seen last. Where others play within a step, all games wait for the longest.
    """

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        scene: Scene | Sequence[Scene] = SCENE,
        size: int = 224,
        renderer: str = "auto",
        device: str = "cpu",
        tensors: bool = False,
        last_looks: bool = True,
        **options: Any,
    ) -> None:
        """`tensors` leaves images on the renderer's device; without `last_looks` there is no `final_obs`.

        `options` are the fields of the task's class in `stage_tasks`, such as goals.
        """
        scenes = [scene] if isinstance(scene, str | Room | CompiledRoom) else list(scene)
        self.task, self.world = made(task, scenes, num_envs, size, renderer, device, options)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.num_envs, self.tensors, self.last_looks = num_envs, tensors, last_looks
        self.single_observation_space = observation_space(self.world, self.task.stage)
        self.single_action_space = spaces.Discrete(len(ACTIONS[self.task.stage]))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.games: StageGames | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """New games everywhere, the same ones for the same seed; there are no options."""
        super().reset(seed=seed)
        self.games = StageGames(self.world, self.task, self.np_random, self.last_looks, self.tensors)
        self.games.await_turn()
        return self.games.observe(), {}

    def step(self, actions: np.ndarray) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        if self.games is None:
            raise gymnasium.error.ResetNeeded("no game has begun: reset the environment")
        played = self.games.act(actions)
        info = vector_info(played.told(), played.finished, self.games.last_look)
        self.games.await_turn()
        return self.games.observe(), played.reward, played.finished, np.zeros(self.num_envs, bool), info

    def close_extras(self, **kwargs: Any) -> None:
        self.world.close()


def made(
    task: str, scenes: Sequence[Scene], games: int, size: int, renderer: str, device: str, options: dict[str, Any]
) -> tuple[Task, World]:
    """A task by its name, and the world for as many of its games; what is wrong is said before rooms are made."""
    if task not in STAGE_TASKS:
        raise ValueError(f"unknown task {task!r}; choose from {', '.join(STAGE_TASKS)}")
    if not scenes or games < 1 or games % len(scenes):
        raise ValueError(f"{games} games cannot be shared out evenly among {len(scenes)} rooms")
    chosen = STAGE_TASKS[task](**options)
    world = World(scenes, games // len(scenes), renderer, size, device)
    try:
        return chosen.loaded([room.room.scene for room in world.rooms]), world
    except Exception:
        world.close()
        raise
