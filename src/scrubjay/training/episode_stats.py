"""Statistics of the episodes that end during training, cheap enough for every step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from scrubjay.game import actions
from scrubjay.game.actions import MODALITIES, NOTHING, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.episode import EpisodeSampler
from scrubjay.game.stages import LIMITS
from scrubjay.placements.episodes import Demonstration
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.pose import HEIGHTS
from scrubjay.sim.render.base import View
from scrubjay.sim.world import World
from scrubjay.training.displaced_hands import DisplacedHands
from scrubjay.training.hidden_hands import HiddenHands
from scrubjay.training.metrics import merge_means
from scrubjay.training.rollout import Rollout


class EpisodeStats:
    """Means by name since the last `pop_means`."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = defaultdict(float)
        self._counts: dict[str, int] = defaultdict(int)
        self.games = 0
        """Games that ended since the last `pop_games`."""

    def add(self, name: str, values: np.ndarray) -> None:
        if len(values):
            self._sums[name] += float(np.sum(values))
            self._counts[name] += len(values)

    def pop_means(self) -> dict[str, float]:
        """Returns the means and resets them."""
        return merge_means([self.pop_sums()])

    def pop_sums(self) -> dict[str, tuple[float, int]]:
        """Returns the sums and the numbers of values, and resets them."""
        sums = {name: (self._sums[name], count) for name, count in sorted(self._counts.items())}
        self._sums.clear()
        self._counts.clear()
        return sums

    def pop_games(self) -> int:
        """Returns the number of games that ended and resets it."""
        games, self.games = self.games, 0
        return games


class EpisodicReturns:
    """Undiscounted returns and lengths of stage episodes in B games, summed over rollouts."""

    def __init__(self, games: int) -> None:
        # By stage, because manipulations interrupt OH's episodes.
        self._returns, self._lengths = np.zeros((len(Stage), games)), np.zeros((len(Stage), games), int)
        self._whole = np.zeros(games, bool)
        """False until a game's first, staggered episode has ended."""

    def add(self, rollout: Rollout, stages: Sequence[Stage], stats: EpisodeStats) -> None:
        """Adds `em/episodic_return` and `em/episodic_length` of the episodes that end in a rollout."""
        rewards, dones, stage = (x.cpu().numpy() for x in (rollout.reward, rollout.dones, rollout.observation.stage))
        games = np.arange(len(self._whole))
        for t in range(len(rewards)):
            self._returns[stage[t], games] += rewards[t]
            self._lengths[stage[t], games] += 1
            if not dones[t].any():
                continue
            for each in stages:
                done = dones[t] & (stage[t] == each)
                whole, name = done & self._whole, each.name.lower()
                stats.add(f"{name}/episodic_return", self._returns[each, whole])
                stats.add(f"{name}/episodic_length", self._lengths[each, whole])
                self._returns[each, done], self._lengths[each, done] = 0, 0
            self._whole |= dones[t]


class TrackedGame(CacheGame):
    """A CacheGame as training plays it: it adds its finished episodes to statistics, and may hide what hands hold, or
    begin with it elsewhere."""

    def __init__(
        self,
        world: BaseWorld,
        sampler: EpisodeSampler,
        stats: EpisodeStats,
        limits: np.ndarray = LIMITS,
        count_rotations: bool = True,
        span: tuple[Stage, Stage] | None = None,
        hidden_hands: HiddenHands | None = None,
        displaced_hands: DisplacedHands | None = None,
    ) -> None:
        """`span`: the task's first and last stage. Other episodes are practice: apart in statistics, and no games.

        `hidden_hands`: which objects players do not see. `displaced_hands`: where manipulations alone begin, but
        demonstrations, which know the way from the default position only.
        """
        self.hidden_hands, self.displaced_hands = hidden_hands, displaced_hands
        self.stats, self._span = stats, span
        self._steps = np.array([len(grid) for grid in world.reachable])[world.room_of]
        self._openables = np.maximum(world.openable_count[world.room_of], 1)
        super().__init__(world, sampler, limits, count_rotations=count_rotations)
        self._whole = np.ones(len(self), bool)

    def hidden(self) -> np.ndarray | None:
        return self.hidden_hands(self) if self.hidden_hands else None

    def _render(self, kinds: Sequence[str]) -> View:
        if self.hidden_hands is None:
            return super()._render(kinds)
        assert isinstance(self.world, World), "other worlds draw everything"
        return self.world.view(kinds, hidden=self.hidden())

    def _begin_manipulation(self, games: np.ndarray, place_at: np.ndarray) -> None:
        super()._begin_manipulation(games, place_at)
        if self.displaced_hands is None:
            return
        assert isinstance(self.world, World), "other worlds' hands cannot be put elsewhere"
        alone = games.copy()
        for b in np.flatnonzero(games).tolist():
            alone[b] = self.specs[b].first == Stage.OM and not isinstance(self.specs[b], Demonstration)
        self.displaced_hands(self.world, alone)

    def stagger(self, rng: np.random.Generator) -> None:
        """Sets new games to random ages, so that rollouts hold steps of all times and ends are spread out.

        Staggered episodes are left out of the statistics.
        """
        self.time[np.arange(len(self)), self.stage] = rng.integers(self.limits[self.stage])
        self._whole[:] = False

    def before_reset(self, result: StepResult) -> None:
        add, ended, practiced = self.stats.add, result.ended & self._whole, np.zeros(len(self), bool)
        if self._span:
            for b in np.flatnonzero(result.ended).tolist():
                practiced[b] = (self.specs[b].first, self.specs[b].last) != self._span
        for prefix, its in (("", ended & ~practiced), ("practice/", ended & practiced)):
            self._add_episodes(prefix, its, result)
        claims = actions.CLAIM[result.action] != NOTHING
        add("claim_right", result.success[claims])
        add("success", result.success[result.stage != Stage.PS])
        open_at = actions.OPEN_CELL[result.action] != NOTHING
        for stage in np.unique(result.stage).tolist():
            if stage != Stage.PS:
                its, name = result.stage == stage, Stage(stage).name.lower()
                add(f"{name}/success", result.success[its])
                add(f"{name}/open_at_success", result.success[its & open_at])
        self.stats.games += int((result.finished & self._whole & ~practiced).sum())
        self._whole |= result.finished

    def _add_episodes(self, prefix: str, ended: np.ndarray, result: StepResult) -> None:
        """Adds the stage episodes that ended in some games (B,) bool."""

        def add(name: str, values: np.ndarray) -> None:
            self.stats.add(prefix + name, values)

        explored = ended & (result.stage == Stage.EM)
        if explored.any():
            places = self.novelty_tracker.visited[explored].sum((1, 2, 3))
            add("coverage", places / (HEIGHTS * self._steps[explored]))
            add("opened", self.novelty_tracker.opened[explored, Stage.EM].sum(1) / self._openables[explored])
        manipulated = ended & (result.stage == Stage.OM)
        for b in np.flatnonzero(manipulated).tolist():
            manipulated[b] = not isinstance(self.specs[b], Demonstration)
        if manipulated.any():
            add("hit", result.hit[manipulated])
            for number, name in enumerate(MODALITIES):
                add(f"hit_{name.replace(' ', '_')}", result.hit[manipulated & (result.target[:, 0] == number)])
        hidden = ended & np.isin(result.stage, (Stage.OH, Stage.OM)) & (self.stage == Stage.S)
        add("placed", self.placed[hidden])
        sought = ended & (result.stage == Stage.S)
        add("found", result.found[sought])
        add("seeker_steps", np.where(result.found, self.time[:, Stage.S], self.limits[Stage.S])[sought])
