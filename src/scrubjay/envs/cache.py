"""Cache for the ecosystem: a Gymnasium vector environment, a Gymnasium environment and a PettingZoo one.

All take a `World`, which they close, and share what is seen and done; `cache_env` makes the world itself. An action is
a number from 0 to 218, or 219 for none, which is what games in PS take; those go to `place` instead: steps right and
ahead of where the hider is, quarter turns from the start's heading, standing. `action_mask` says which numbers the
stage has now. Environments of one stage alone are in `stage_envs.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import turn_based_aec_to_parallel

from scrubjay.game import actions
from scrubjay.game.actions import MODALITIES, NOTHING, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.episode import EpisodeSampler, RandomEpisodes
from scrubjay.rooms.floor import GRID
from scrubjay.rooms.room import GOALS, Room
from scrubjay.sim.cells import CELLS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.world import World

NONE = len(actions.NAMES)
"""The action of games in PS, the last action where there was none, and the PlaceAt where nothing has landed."""
Reward = Callable[[CacheGame, StepResult], np.ndarray]
"""Rewards (B,) of a step. Games that finished with it have begun anew in the Cache; the Outcome says how they ended."""
Scene = str | Room | CompiledRoom
"""A room by its name, as data or compiled."""
SCENE = "FloorPlan1"
HIDER, SEEKER = "hider", "seeker"


def found(game: CacheGame, outcome: StepResult) -> np.ndarray:
    """The game's outcome as its seeker sees it: 1 when it finds the object, 0 at all other times."""
    return outcome.found.astype(float)


def steps_across(world: World) -> int:
    """How many steps the largest room is across, from corner to corner."""
    corners = np.array([room.room.bounds for room in world.rooms])
    return int(np.ceil(np.linalg.norm(corners[:, 2:] - corners[:, :2], axis=1).max() / GRID))


def place_space(world: World) -> spaces.MultiDiscrete:
    """Places relative to another, as far as the largest room is across: right, ahead, quarter turns, standing."""
    across = steps_across(world)
    return spaces.MultiDiscrete([2 * across + 1, 2 * across + 1, 4, 2], start=[-across, -across, 0, 0])


def action_space(world: World) -> spaces.Dict:
    """What one game takes."""
    return spaces.Dict({"action": spaces.Discrete(NONE + 1), "place": place_space(world)})


def observation_space(world: World) -> spaces.Dict:
    """What is seen of one game."""
    return spaces.Dict(
        {
            "image": spaces.Box(0, 255, (world.size, world.size, 3), np.uint8),
            "last_action": spaces.Discrete(NONE + 1),
            "last_success": spaces.Discrete(2),
            "standing": spaces.Discrete(2),
            "goal": spaces.Discrete(len(GOALS)),
            "stage": spaces.Discrete(len(Stage)),
            "place": place_space(world),
            "landed": spaces.Discrete(NONE + 1),
            "target": spaces.MultiDiscrete([len(MODALITIES), CELLS, CELLS]),
            "action_mask": spaces.MultiBinary(NONE + 1),
        }
    )


class Games(CacheGame):
    """A Cache that keeps what was seen at the ends of games, which the next games would hide."""

    def __init__(self, world: World, sampler: EpisodeSampler, tensors: bool, last_looks: bool, forgiving: bool) -> None:
        """`tensors` leaves images on the renderer's device; without `last_looks` no picture is taken of ends."""
        self.tensors, self.last_looks = tensors, last_looks
        self.last_look: dict[int, dict[str, Any]] = {}
        """What was seen last in the games that ended with the last step, by number."""
        super().__init__(world, sampler, forgiving=forgiving)

    def observe(self) -> dict[str, Any]:
        """What the players of all games see now, in the batched observation space."""
        return {
            "image": self.image(),
            "last_action": np.where(self.last_action == NOTHING, NONE, self.last_action),
            "last_success": self.last_success.astype(int),
            "standing": self.world.state.standing.astype(int),
            "goal": self.goal.copy(),
            "stage": self.stage.copy(),
            "place": self.relative_place(),
            "landed": np.where(self.landed == NOTHING, NONE, self.landed),
            "target": np.where((self.stage == Stage.OM)[:, None], self.target, 0),
            "action_mask": np.concatenate([self.allowed, (self.stage == Stage.PS)[:, None]], 1).astype(np.int8),
        }

    def image(self) -> Any:
        """What is seen now, (B, size, size, 3), as a tensor or an array."""
        image = self.look().rgb
        return image if self.tensors else image.cpu().numpy()

    def seen_in(self, number: int) -> dict[str, Any]:
        """What is seen of one game, or was at the end of it if the last step was its last."""
        return self.last_look.get(number) or one_of(self.observe(), number)

    def take(self, taken: dict[str, Any]) -> StepResult:
        """One step with an action of the batched action space."""
        action = np.asarray(taken["action"])
        self.last_look = {}
        return self.step(np.where(action == NONE, NOTHING, action), np.asarray(taken["place"]))

    def before_reset(self, outcome: StepResult) -> None:
        if self.last_looks and outcome.finished.any():
            seen = self.observe()
            self.last_look |= {b: one_of(seen, b) for b in np.flatnonzero(outcome.finished).tolist()}


def one_of(batch: dict[str, Any], number: int) -> dict[str, Any]:
    """One game's share of a batched observation."""
    return {name: values[number] for name, values in batch.items()}


def told(outcome: StepResult) -> dict[str, np.ndarray]:
    """What a step's info says, (B,) each."""
    return {name: getattr(outcome, name).copy() for name in ("stage", "success", "hit", "finished", "found")}


def vector_info(about: dict[str, np.ndarray], finished: np.ndarray, last_look: dict[int, Any]) -> dict[str, Any]:
    """A vector environment's info: what is told of a step, again for the games (B,) that it ended, and their ends."""
    info: dict[str, Any] = dict(about)
    if finished.any():
        info |= {"final_info": {name: values.copy() for name, values in about.items()}, "_final_info": finished.copy()}
    if last_look:
        looks = np.full(len(finished), None, object)
        for b, seen in last_look.items():
            looks[b] = seen
        info |= {"final_obs": looks, "_final_obs": finished.copy()}
    return info


class CacheVectorEnv(gymnasium.vector.VectorEnv):
    """B games in lockstep, each played by one agent, first as hider, then as seeker.

    A game that ends is terminated and the next one begins in the same step: `final_obs` and `final_info` in the info
    hold what was seen last. Actions must be those of `action_mask`; others are a ValueError, and nothing has changed.
    """

    def __init__(
        self,
        world: World,
        reward: Reward = found,
        goals: tuple[str, ...] = GOALS,
        turned: bool = False,
        tensors: bool = False,
        last_looks: bool = True,
    ) -> None:
        """`tensors` leaves images on the renderer's device; without `last_looks` there is no `final_obs`."""
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.world, self.reward, self.num_envs = world, reward, len(world)
        self.sampler, self.tensors, self.last_looks = RandomEpisodes(goals=goals, turned=turned), tensors, last_looks
        self.single_observation_space, self.single_action_space = observation_space(world), action_space(world)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """New games everywhere, the same ones for the same seed; there are no options."""
        super().reset(seed=seed)
        self.sampler.rng = self.np_random
        self.games = Games(self.world, self.sampler, self.tensors, self.last_looks, forgiving=False)
        return self.games.observe(), {"stage": self.games.stage.copy()}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        outcome = self.games.take(actions)
        info = vector_info(told(outcome), outcome.finished, self.games.last_look)
        truncated = np.zeros(self.num_envs, bool)
        return self.games.observe(), self.reward(self.games, outcome), outcome.finished.copy(), truncated, info

    def close_extras(self, **kwargs: Any) -> None:
        self.world.close()


class CacheEnv(gymnasium.Env):
    """One game is one episode, played by one agent, first as hider, then as seeker.

    An action that the stage does not have is a failed one: it takes its time and changes nothing.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's own declaration)

    def __init__(
        self,
        world: World,
        reward: Reward = found,
        goals: tuple[str, ...] = GOALS,
        turned: bool = False,
        render_mode: str | None = None,
    ) -> None:
        check_single(world)
        self.world, self.reward, self.render_mode = world, reward, render_mode
        self.sampler = RandomEpisodes(goals=goals, turned=turned)
        self.observation_space, self.action_space = observation_space(world), action_space(world)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """A new game, the same one for the same seed; there are no options."""
        super().reset(seed=seed)
        self.sampler.rng = self.np_random
        self.games = Games(self.world, self.sampler, tensors=False, last_looks=True, forgiving=True)
        self.seen = self.games.seen_in(0)
        return dict(self.seen), {"stage": int(self.games.stage[0])}

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        outcome = self.games.take({name: np.asarray(value)[None] for name, value in action.items()})
        self.seen = self.games.seen_in(0)
        reward = float(self.reward(self.games, outcome)[0])
        info = {name: values[0].item() for name, values in told(outcome).items()}
        return dict(self.seen), reward, bool(outcome.finished[0]), False, info

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The picture last seen."""
        return self.seen["image"].copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self.world.close()


class CacheAEC(AECEnv):
    """One game of two players, "hider" and "seeker"; the stage says whose turn it is.

    A player whose turn it is not sees nothing and may do nothing. At the end one wins 1 and the other loses 1. Masks
    are for `action_space(agent).sample(mask)`; actions outside them are a ValueError, and nothing has changed.
    """

    metadata = {"name": "cache_v0", "render_modes": ["rgb_array"], "is_parallelizable": True}  # noqa: RUF012

    def __init__(
        self,
        world: World,
        goals: tuple[str, ...] = GOALS,
        turned: bool = False,
        render_mode: str | None = None,
    ) -> None:
        check_single(world)
        self.world, self.render_mode = world, render_mode
        self.sampler = RandomEpisodes(goals=goals, turned=turned)
        self.possible_agents = [HIDER, SEEKER]
        within = {name: space for name, space in observation_space(world).items() if name != "action_mask"}
        place = place_space(world)
        masks = {
            "action": spaces.MultiBinary(NONE + 1),
            "place": spaces.Tuple([spaces.MultiBinary(int(count)) for count in place.nvec]),
        }
        self._any_place = tuple(np.ones(int(count), np.int8) for count in place.nvec)
        seen: dict[str, spaces.Space] = {"observation": spaces.Dict(within), "action_mask": spaces.Dict(masks)}
        self.observation_spaces = {agent: spaces.Dict(seen) for agent in self.possible_agents}
        self.action_spaces = {agent: action_space(world) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """A new game, the same one for the same seed; there are no options."""
        if seed is not None or not hasattr(self, "games"):
            self.sampler.rng, _ = seeding.np_random(seed)
        self.games = Games(self.world, self.sampler, tensors=False, last_looks=True, forgiving=False)
        self.agents, self.agent_selection = self.possible_agents.copy(), HIDER
        self.rewards, self._cumulative_rewards = dict.fromkeys(self.agents, 0.0), dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None
        self._seen = self.games.seen_in(0)

    def step(self, action: dict[str, Any] | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        if action is None:
            raise ValueError(f"the {agent} is still playing: it needs an action")
        outcome = self.games.take({name: np.asarray(value)[None] for name, value in action.items()})
        self._seen = self.games.seen_in(0)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        if outcome.finished[0]:
            won = 1.0 if outcome.found[0] else -1.0
            self.rewards = {HIDER: -won, SEEKER: won}
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.agent_selection = SEEKER if self.games.stage[0] == Stage.S else HIDER
        self._accumulate_rewards()
        self.infos = {name: {} for name in self.agents}
        self.infos[agent] = {name: values[0].item() for name, values in told(outcome).items()}

    def observe(self, agent: str) -> dict[str, Any]:
        seen = dict(self._seen)
        mask = seen.pop("action_mask").copy()
        if agent != (SEEKER if seen["stage"] == Stage.S else HIDER):
            seen = {name: np.zeros_like(value)[()] for name, value in seen.items()}
            seen["last_action"] = seen["landed"] = np.int64(NONE)
            mask[:] = np.arange(len(mask)) == NONE
        any_place = tuple(ones.copy() for ones in self._any_place)
        return {"observation": seen, "action_mask": {"action": mask, "place": any_place}}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The picture last seen by whoever's turn it was."""
        return self._seen["image"].copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self.world.close()


def cache_env(
    scene: Scene = SCENE,
    goals: tuple[str, ...] = GOALS,
    turned: bool = False,
    size: int = 224,
    renderer: str = "auto",
    device: str = "cpu",
    render_mode: str | None = None,
) -> CacheAEC:
    """The game of two in a room of its own."""
    RandomEpisodes(goals=goals)  # Says what is wrong with the goals before the room is made.
    return CacheAEC(World([scene], 1, renderer, size, device), goals, turned, render_mode)


def parallel(world: World, goals: tuple[str, ...] = GOALS, turned: bool = False) -> ParallelEnv:
    """`CacheAEC` with both players in every step; what the one does whose turn it is not counts for nothing."""
    return turn_based_aec_to_parallel(CacheAEC(world, goals, turned))


def check_single(world: World) -> None:
    """ValueError unless the world is one room's, once."""
    if len(world) != 1:
        raise ValueError(f"one game needs a world of one room in one copy, not of {len(world)}")
