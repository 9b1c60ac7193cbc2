"""What the environments share: games that give observations, and base classes of single and vector environments."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.episode import EpisodeSampler
from scrubjay.game.observation import NO_ACTION
from scrubjay.rooms.floor import GRID
from scrubjay.rooms.room import Room
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.compile import CompiledRoom

Reward = Callable[[CacheGame, StepResult], np.ndarray]
"""Rewards (B,) of a step. Finished games have been reset already; the StepResult says how they ended."""
Scene = str | Room | CompiledRoom
"""A room by name, as data, or compiled."""
DEFAULT_SCENE = "FloorPlan1"
PLACE_BOUND = 40
"""The most steps right and ahead in observations: no generated room has more from corner to corner. It is the same for
all of them, so that one model plays in all."""


def found(game: CacheGame, result: StepResult) -> np.ndarray:
    """The seeker's reward: 1 when it finds the object, 0 at all other times."""
    return result.found.astype(float)


def place_bound(world: BaseWorld) -> int:
    """The most steps right and ahead in observations: `PLACE_BOUND`, or more for a larger room of one's own."""
    corners = np.array([room.room.bounds for room in world.rooms])
    across = np.linalg.norm(corners[:, 2:] - corners[:, :2], axis=1).max() / GRID
    return max(PLACE_BOUND, int(np.ceil(across)))


class Remade:
    """Pickles and copies as what an environment was made from: the copy has a world of its own, and no game yet."""

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        self._arguments = args, kwargs
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), *self._arguments)

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # Two environments in one world would disturb each other.


def _remake(kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return kind(*args, **kwargs)


def check_open(world: BaseWorld) -> None:
    """ClosedEnvironmentError if an environment's world is closed."""
    if world.closed:
        raise gymnasium.error.ClosedEnvironmentError("the environment is closed: make a new one")


def check_begun(env: Any) -> None:
    """An error if an environment is closed or was never reset."""
    check_open(env.world)
    if getattr(env, "games", None) is None:
        raise gymnasium.error.ResetNeeded("no game has begun: reset the environment")


class EnvGame(CacheGame):
    """A `CacheGame` that gives observations, and keeps the final ones of finished games."""

    def __init__(
        self, world: BaseWorld, sampler: EpisodeSampler, tensors: bool, keep_final_obs: bool, forgiving: bool
    ) -> None:
        """`tensors` leaves images on the renderer's device; without `keep_final_obs` no final image is rendered."""
        self.tensors, self.keep_final_obs = tensors, keep_final_obs
        self.final_obs: dict[int, dict[str, Any]] = {}
        """Final observations of the games that the last step finished, by world."""
        super().__init__(world, sampler, forgiving=forgiving)

    def observe(self) -> dict[str, Any]:
        """Observations of all games, in the batched observation space."""
        return {
            "image": self.image(),
            "last_action": np.where(self.last_action == NOTHING, NO_ACTION, self.last_action),
            "last_success": self.last_success.astype(int),
            "standing": self.world.state.standing.astype(int),
            "goal": self.goal.copy(),
            "stage": self.stage.copy(),
            "place": self.relative_place(),
            "landed": np.where(self.landed == NOTHING, NO_ACTION, self.landed),
            "target": np.where((self.stage == Stage.OM)[:, None], self.target, 0),
            "action_mask": np.concatenate([self.allowed, (self.stage == Stage.PS)[:, None]], 1).astype(np.int8),
        }

    def image(self) -> Any:
        """Images (B, size, size, 3), as a tensor or an array."""
        image = self.look().rgb
        return image if self.tensors else image.cpu().numpy()

    def observation(self, b: int) -> dict[str, Any]:
        """One game's observation; the final one if the last step finished it."""
        return self.final_obs.get(b) or unbatch(self.observe(), b)

    def step_env(self, actions: dict[str, Any]) -> StepResult:
        """A step with actions of the batched action space."""
        action = np.asarray(actions["action"])
        self.final_obs = {}
        return self.step(np.where(action == NO_ACTION, NOTHING, action), np.asarray(actions["place"]))

    def before_reset(self, result: StepResult) -> None:
        if self.keep_final_obs and result.finished.any():
            observation = self.observe()
            self.final_obs |= {b: unbatch(observation, b) for b in np.flatnonzero(result.finished).tolist()}


def unbatch(batch: dict[str, Any], b: int) -> dict[str, Any]:
    """Game b's part of a batched observation."""
    return {name: values[b] for name, values in batch.items()}


def step_info(result: StepResult) -> dict[str, np.ndarray]:
    """The info of a step, (B,) each."""
    return {name: getattr(result, name).copy() for name in ("stage", "success", "hit", "finished", "found")}


def how_finished(result: StepResult) -> tuple[np.ndarray, np.ndarray]:
    """Games that a step terminated and games that it truncated, (B,) bool each."""
    return result.finished & ~result.truncated, result.finished & result.truncated


class SingleEnv(Remade, gymnasium.Env):
    """One game in a world of its own, which the environment closes."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's own declaration)
    world: BaseWorld
    _obs: dict[str, Any]
    """The last observation."""

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The last image observed."""
        check_begun(self)
        return self._obs["image"].copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self.world.close()


class VectorEnv(Remade, gymnasium.vector.VectorEnv):
    """B games of one world, which the environment closes; a finished game is reset in the same step."""

    def __init__(self, world: BaseWorld, observation_space: spaces.Space, action_space: spaces.Space) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.world, self.num_envs = world, len(world)
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.observation_space = batch_space(observation_space, self.num_envs)
        self.action_space = batch_space(action_space, self.num_envs)

    def close_extras(self, **kwargs: Any) -> None:
        self.world.close()


def vector_info(info: dict[str, np.ndarray], finished: np.ndarray, final_obs: dict[int, Any]) -> dict[str, Any]:
    """A vector environment's info: a step's, and `final_info` and `final_obs` of the games (B,) that it finished."""
    result: dict[str, Any] = dict(info)
    if finished.any():
        result["final_info"] = {name: values.copy() for name, values in info.items()}
        result["_final_info"] = finished.copy()
    if final_obs:
        observations = np.full(len(finished), None, object)
        for b, observation in final_obs.items():
            observations[b] = observation
        result |= {"final_obs": observations, "_final_obs": finished.copy()}
    return result
