"""Whole games of Cache: a Gymnasium vector environment, a Gymnasium environment and a PettingZoo AEC environment.

All take a `World`, which they close, and share observation and action space; `cache_env` makes the world itself. An
action is a number from 0 to 218, or 219 for none, which is what games in PS take. Those take a `place` instead: steps
right and ahead of where the hider is, quarter turns from the start's heading, standing. `action_mask` marks the actions
of the current stage. Environments of a single stage are in `stage.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import turn_based_aec_to_parallel

from scrubjay.envs.base import (
    DEFAULT_SCENE,
    EnvGame,
    Remade,
    Reward,
    Scene,
    SingleEnv,
    VectorEnv,
    check_begun,
    check_open,
    found,
    how_finished,
    place_bound,
    step_info,
    vector_info,
)
from scrubjay.game.actions import MODALITIES, Stage
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.observation import NO_ACTION
from scrubjay.rooms.room import GOALS
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.cells import CELLS
from scrubjay.sim.world import World

HIDER, SEEKER = "hider", "seeker"


def place_space(world: BaseWorld) -> spaces.MultiDiscrete:
    """Relative places: steps right and ahead, quarter turns, standing."""
    most = place_bound(world)
    return spaces.MultiDiscrete([2 * most + 1, 2 * most + 1, 4, 2], start=[-most, -most, 0, 0])


def action_space(world: BaseWorld) -> spaces.Dict:
    """The action space of one game."""
    return spaces.Dict({"action": spaces.Discrete(NO_ACTION + 1), "place": place_space(world)})


def observation_space(world: BaseWorld) -> spaces.Dict:
    """The observation space of one game."""
    return spaces.Dict(
        {
            "image": spaces.Box(0, 255, (world.size, world.size, 3), np.uint8),
            "last_action": spaces.Discrete(NO_ACTION + 1),
            "last_success": spaces.Discrete(2),
            "standing": spaces.Discrete(2),
            "goal": spaces.Discrete(len(GOALS)),
            "stage": spaces.Discrete(len(Stage)),
            "place": place_space(world),
            "landed": spaces.Discrete(NO_ACTION + 1),
            "target": spaces.MultiDiscrete([len(MODALITIES), CELLS, CELLS]),
            "action_mask": spaces.MultiBinary(NO_ACTION + 1),
        }
    )


class CacheVectorEnv(VectorEnv):
    """B games in lockstep, each played by one agent, first as hider, then as seeker.

    A game is terminated when the seeker finds the object and truncated when it runs out of steps; the next one begins
    in the same step. `final_obs` and `final_info` in the info are of its last step. Actions outside `action_mask` raise
    ValueError before anything changes.
    """

    def __init__(
        self,
        world: BaseWorld,
        reward: Reward = found,
        goals: tuple[str, ...] = GOALS,
        turned: bool = False,
        tensors: bool = False,
        final_obs: bool = True,
    ) -> None:
        """`tensors` leaves images on the renderer's device; `final_obs=False` saves rendering final observations."""
        super().__init__(world, observation_space(world), action_space(world))
        self.reward, self.tensors, self.final_obs = reward, tensors, final_obs
        self.sampler = RandomEpisodes(goals=goals, turned=turned)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Resets all games; the same seed gives the same games. There are no options."""
        check_open(self.world)
        super().reset(seed=seed)
        self.sampler.rng = self.np_random
        self.games = EnvGame(self.world, self.sampler, self.tensors, self.final_obs, forgiving=False)
        return self.games.observe(), {"stage": self.games.stage.copy()}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        check_begun(self)
        result = self.games.step_env(actions)
        info = vector_info(step_info(result), result.finished, self.games.final_obs)
        terminated, truncated = how_finished(result)
        return self.games.observe(), self.reward(self.games, result), terminated, truncated, info


class CacheEnv(SingleEnv):
    """One game is one episode, played by one agent, first as hider, then as seeker.

    It is terminated when the seeker finds the object and truncated when it runs out of steps.
    An action that the stage does not have fails: it takes a step and changes nothing.
    """

    def __init__(
        self,
        world: BaseWorld,
        reward: Reward = found,
        render_mode: str | None = None,
        goals: tuple[str, ...] = GOALS,
        turned: bool = False,
    ) -> None:
        check_single(world)
        self.world, self.reward, self.render_mode = world, reward, render_mode
        self.sampler = RandomEpisodes(goals=goals, turned=turned)
        self.observation_space, self.action_space = observation_space(world), action_space(world)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts a new game; the same seed gives the same game. There are no options."""
        check_open(self.world)
        super().reset(seed=seed)
        self.sampler.rng = self.np_random
        self.games = EnvGame(self.world, self.sampler, tensors=False, keep_final_obs=True, forgiving=True)
        self._obs = self.games.observation(0)
        return dict(self._obs), {"stage": int(self.games.stage[0])}

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        check_begun(self)
        result = self.games.step_env(_batch_of_one(action))
        self._obs = self.games.observation(0)
        reward = float(self.reward(self.games, result)[0])
        terminated, truncated = (bool(flags[0]) for flags in how_finished(result))
        return dict(self._obs), reward, terminated, truncated, _unbatched_info(step_info(result))


class CacheAEC(Remade, AECEnv):
    """One game of two agents, "hider" and "seeker"; the stage decides whose turn it is.

    The other agent observes zeros and may only take no action. At the end one agent gets 1 and the other -1: also when
    the seeker runs out of steps, which is a win of the hider and terminates the game. Masks are for
    `action_space(agent).sample(mask)`; actions outside them raise ValueError before anything changes.
    """

    metadata = {"name": "cache_v0", "render_modes": ["rgb_array"], "is_parallelizable": True}  # noqa: RUF012

    def __init__(
        self, world: BaseWorld, goals: tuple[str, ...] = GOALS, turned: bool = False, render_mode: str | None = None
    ) -> None:
        check_single(world)
        self.world, self.render_mode = world, render_mode
        self.sampler = RandomEpisodes(goals=goals, turned=turned)
        self.possible_agents = [HIDER, SEEKER]
        observation = {name: space for name, space in observation_space(world).items() if name != "action_mask"}
        place = place_space(world)
        masks = {
            "action": spaces.MultiBinary(NO_ACTION + 1),
            "place": spaces.Tuple([spaces.MultiBinary(int(count)) for count in place.nvec]),
        }
        self._any_place = tuple(np.ones(int(count), np.int8) for count in place.nvec)
        space: dict[str, spaces.Space] = {"observation": spaces.Dict(observation), "action_mask": spaces.Dict(masks)}
        self.observation_spaces = {agent: spaces.Dict(space) for agent in self.possible_agents}
        self.action_spaces = {agent: action_space(world) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts a new game; the same seed gives the same game. There are no options."""
        check_open(self.world)
        if seed is not None or not hasattr(self, "games"):
            self.sampler.rng, _ = seeding.np_random(seed)
        self.games = EnvGame(self.world, self.sampler, tensors=False, keep_final_obs=True, forgiving=False)
        self.agents, self.agent_selection = self.possible_agents.copy(), HIDER
        self.rewards, self._cumulative_rewards = dict.fromkeys(self.agents, 0.0), dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None
        self._obs = self.games.observation(0)

    def step(self, action: dict[str, Any] | None) -> None:
        check_begun(self)
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        if action is None:
            raise ValueError(f"the {agent} is still playing: it needs an action")
        result = self.games.step_env(_batch_of_one(action))
        self._obs = self.games.observation(0)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        if result.finished[0]:
            won = 1.0 if result.found[0] else -1.0
            self.rewards = {HIDER: -won, SEEKER: won}
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.agent_selection = _agent_of(self.games.stage[0])
        self._accumulate_rewards()
        self.infos = {name: {} for name in self.agents}
        self.infos[agent] = _unbatched_info(step_info(result))

    def observe(self, agent: str) -> dict[str, Any]:
        observation = dict(self._obs)
        mask = observation.pop("action_mask").copy()
        if agent != _agent_of(observation["stage"]):
            observation = {name: np.zeros_like(value)[()] for name, value in observation.items()}
            observation["last_action"] = observation["landed"] = np.int64(NO_ACTION)
            mask[:] = np.arange(len(mask)) == NO_ACTION
        any_place = tuple(ones.copy() for ones in self._any_place)
        return {"observation": observation, "action_mask": {"action": mask, "place": any_place}}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The last image that the agent whose turn it was observed."""
        check_begun(self)
        return self._obs["image"].copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self.world.close()


def cache_env(
    scene: Scene = DEFAULT_SCENE,
    goals: tuple[str, ...] = GOALS,
    turned: bool = False,
    size: int = 224,
    renderer: str = "auto",
    device: str = "cpu",
    render_mode: str | None = None,
) -> CacheAEC:
    """`CacheAEC` in a room of its own."""
    RandomEpisodes(goals=goals)  # Checks the goals before the room is made.
    return CacheAEC(World([scene], 1, renderer, size, device), goals, turned, render_mode)


def parallel_env(world: BaseWorld, goals: tuple[str, ...] = GOALS, turned: bool = False) -> ParallelEnv:
    """`CacheAEC` with both agents in every step; the action of the agent whose turn it is not is ignored."""
    return turn_based_aec_to_parallel(CacheAEC(world, goals, turned))


def check_single(world: BaseWorld) -> None:
    """ValueError unless the world is one room's, once."""
    if len(world) != 1:
        raise ValueError(f"one game needs a world of one room in one copy, not of {len(world)}")


def _agent_of(stage: int) -> str:
    """Whose turn it is."""
    return SEEKER if stage == Stage.S else HIDER


def _batch_of_one(action: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value)[None] for name, value in action.items()}


def _unbatched_info(info: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: values[0].item() for name, values in info.items()}
