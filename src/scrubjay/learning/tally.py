"""What games that end while an agent learns say about how it plays: sums that are cheap enough for every step."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from scrubjay.game import actions
from scrubjay.game.actions import MODALITIES, NOTHING, Stage
from scrubjay.game.cache import Cache, Outcome
from scrubjay.game.deal import Deals
from scrubjay.game.trail import HEIGHTS
from scrubjay.world.world import World


class Tally:
    """Means since they were last asked for, by name."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = defaultdict(float)
        self._counts: dict[str, int] = defaultdict(int)
        self.games = 0
        """That have ended, since the beginning."""

    def add(self, name: str, values: np.ndarray) -> None:
        if len(values):
            self._sums[name] += float(np.sum(values))
            self._counts[name] += len(values)

    def take(self) -> dict[str, float]:
        """The means, and nothing is left of them."""
        means = {name: self._sums[name] / count for name, count in sorted(self._counts.items())}
        self._sums.clear()
        self._counts.clear()
        return means


class TalliedCache(Cache):
    """A Cache whose episodes are counted when they end."""

    def __init__(self, world: World, deal: Deals, tally: Tally) -> None:
        self.tally = tally
        self._steps = np.array([len(grid) for grid in world.reachable])[world.room_of]
        self._openables = np.maximum(world.openable_count[world.room_of], 1)
        super().__init__(world, deal)

    def before_next(self, outcome: Outcome) -> None:
        add = self.tally.add
        explored = outcome.ended & (outcome.stage == Stage.EM)
        if explored.any():
            places = self.trail.visited[explored].sum((1, 2, 3))
            add("coverage", places / (HEIGHTS * self._steps[explored]))
            add("opened", self.trail.opened[explored, Stage.EM].sum(1) / self._openables[explored])
        manipulated = outcome.ended & (outcome.stage == Stage.OM)
        if manipulated.any():
            add("hit", outcome.hit[manipulated])
            for number, name in enumerate(MODALITIES):
                add(f"hit_{name.replace(' ', '_')}", outcome.hit[manipulated & (outcome.target[:, 0] == number)])
        sought = outcome.ended & (outcome.stage == Stage.S)
        add("found", outcome.found[sought])
        add("seeker_steps", np.where(outcome.found, self.time[:, Stage.S], self.limits[Stage.S])[sought])
        claims = actions.CLAIM[outcome.action] != NOTHING
        add("claim_right", outcome.success[claims])
        add("success", outcome.success[outcome.stage != Stage.PS])
        self.tally.games += int(outcome.finished.sum())
