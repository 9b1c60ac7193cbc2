"""What is kept of games from the choice of a place until the seeker has finished: only then OH's last reward is known.

OH's steps and the seeker's way are written down while the games go on, with the map that the hider chose its place by.
For each game under way that is about 2.6 MB with the networks of the paper (2.3 MB of them the images of OH's 15 steps,
0.3 MB the map, 0.06 MB the seeker's 500 steps) and 0.7 MB with the small ones, all but a few KB on the agent's device;
and as much again for each finished game that waits to be learned from.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent, explored_maps
from scrubjay.agent.heads import Decision
from scrubjay.agent.hiding_outcomes import OUTCOME_SAMPLES, outcome_index
from scrubjay.agent.mental_seeker import SEEKER_ACTIONS, SEEKER_INDEX
from scrubjay.agent.metric_map import MapState
from scrubjay.agent.perspective import CANDIDATES, ExploredMaps, PlaceChoice
from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.observation import Observation

SPOT = torch.from_numpy(actions.PLACE_AT[:-1])
"""(219,): the target index of each PlaceAt; -1 for other actions."""


@dataclass(frozen=True)
class Thought:
    """What n hiders thought when they chose their places: see `PlaceChoice`."""

    places: torch.Tensor
    """(n, 10, 3) int64."""
    valid: torch.Tensor
    """(n, 10) bool."""
    outcomes: torch.Tensor
    """(n, 10, 3) int64."""
    mean_steps: torch.Tensor
    """(n, 10, 3)."""
    chosen: torch.Tensor
    """(n,) int64: which of the ten."""

    @property
    def place(self) -> torch.Tensor:
        """(n, 3): row, column and quarter of the place that was chosen."""
        return self.places[torch.arange(len(self.chosen), device=self.chosen.device), self.chosen]


@dataclass(frozen=True)
class Hiding:
    """OH's steps in n games, without the manipulations in between, filled up to the T that there can be."""

    observation: Observation
    """(n, T); after a game's last step of no meaning."""
    log_probability: torch.Tensor
    """(n, T): of the actions when they were drawn."""
    probability: torch.Tensor
    """(n, T): for a PlaceAt, the manipulator's that it succeeds."""
    action: torch.Tensor
    """(n, T) int64."""
    success: torch.Tensor
    """(n, T) bool; a PlaceAt's is what came of its manipulation. False after the last step."""
    opened: torch.Tensor
    """(n, T) bool: the step opened something that the episode had not opened before."""
    steps: torch.Tensor
    """(n,) int64: how many there are."""

    @property
    def within(self) -> torch.Tensor:
        """(n, T) bool: the steps that there are."""
        return _within(self.action, self.steps)

    @property
    def spot(self) -> torch.Tensor:
        """(n, T): the spots of the PlaceAt that were tried, -1 for other steps."""
        return torch.where(self.within, SPOT.to(self.action.device)[self.action], NOTHING)

    @property
    def outcome(self) -> torch.Tensor:
        """(n,): what hiding came to, as perspective simulation numbers it."""
        return came_to(self.spot, self.success, self.observation.standing)


@dataclass(frozen=True)
class Seeking:
    """The ways of the seekers in n games, filled up to the T steps that there can be."""

    place: torch.Tensor
    """(n, T, 4) int16: before each step, as observed."""
    policy: torch.Tensor
    """(n, T, 58) float16: the probabilities of the seeker's actions."""
    action: torch.Tensor
    """(n, T) int64, among all 219."""
    success: torch.Tensor
    """(n, T) bool."""
    claimable: torch.Tensor
    """(n, T) bool: a claim would have succeeded."""
    steps: torch.Tensor
    """(n,) int64: how many there are."""
    found: torch.Tensor
    """(n,) bool."""

    @property
    def within(self) -> torch.Tensor:
        """(n, T) bool: the steps that there are."""
        return _within(self.action, self.steps)


@dataclass(frozen=True)
class Finished:
    """All that is learned from n games once they are over."""

    thought: Thought
    metric_map: MapState
    """As the hider chose by it, and as it had it when OH began."""
    hiding: Hiding
    seeking: Seeking

    def __len__(self) -> int:
        return len(self.hiding.steps)


class FinishedGames:
    """Finished games that wait to be learned from, each once."""

    def __init__(self) -> None:
        self._waiting: list[Finished] = []

    def __len__(self) -> int:
        return sum(len(some) for some in self._waiting)

    def add(self, some: Finished) -> None:
        self._waiting.append(some)

    def take(self, count: int) -> Finished:
        """The oldest ones, as many as asked for; they are gone from here."""
        if not 0 < count <= len(self):
            raise ValueError(f"count: from 1 to the {len(self)} games that wait, not {count}")
        every = tree.cat(self._waiting)
        self._waiting = [tree.index(every, slice(count, None))] if count < len(every) else []
        return tree.index(every, slice(count))


class _Track:
    """What players did in B games, step by step: flags that the world's side knows, as arrays."""

    def __init__(self, games: int, most: int) -> None:
        self.action = np.zeros((games, most), np.int16)
        self.success, self.noted = np.zeros((games, most), bool), np.zeros((games, most), bool)
        self.count = np.zeros(games, int)

    def add(self, games: np.ndarray, action: np.ndarray, success: np.ndarray, noted: np.ndarray) -> None:
        """One more step of some games (n,), by number; the other arguments are (B,)."""
        at = games, self.count[games]
        self.action[at], self.success[at], self.noted[at] = action[games], success[games], noted[games]
        self.count[games] += 1

    def of(
        self, games: np.ndarray, device: torch.device
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, successes and what was noted (n, T) of some games, and their numbers of steps (n,)."""
        count = self.count[games]
        within = np.arange(self.action.shape[1]) < count[:, None]
        found = (np.where(within, kept[games], 0) for kept in (self.action, self.success, self.noted))
        action, success, noted = (torch.from_numpy(values).to(device) for values in found)
        return action.long(), success.bool(), noted.bool(), torch.from_numpy(count).to(device)


class HidingBuffer:
    """Writes down the B games of a cache that come by PS. A game that does not, or whose choice fails, is left out."""

    def __init__(self, agent: Agent, game: CacheGame) -> None:
        self.game, self.device = game, next(agent.parameters()).device
        games, hide, seek = len(game), int(game.limits[Stage.OH]), int(game.limits[Stage.S])

        def zeros(*shape: int, kind: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.zeros(games, *shape, dtype=kind, device=self.device)

        self.open = np.zeros(games, bool)
        """(B,): games that are written down."""
        self.begun = np.zeros(0, int)
        """(n,): games, by number, whose seeker began with the last step."""
        self.metric_map = agent.memory.metric_map.initial_state(games)
        self.thought = Thought(
            zeros(CANDIDATES, 3), zeros(CANDIDATES, kind=torch.bool), zeros(CANDIDATES, OUTCOME_SAMPLES),
            zeros(CANDIDATES, OUTCOME_SAMPLES, kind=torch.float32), zeros(),
        )  # fmt: skip
        self._hider, self._seeker = _Track(games, hide), _Track(games, seek)
        self._seen: Observation | None = None
        self._log_probability = zeros(hide, kind=torch.float32)
        self._probability = zeros(hide, kind=torch.float32)
        self._place = zeros(seek, 4, kind=torch.int16)
        self._policy = zeros(seek, len(SEEKER_ACTIONS), kind=torch.float16)

    def chosen(self, games: torch.Tensor, metric_map: MapState, choice: PlaceChoice) -> None:
        """Begins with games (n,), by number, in PS: what was thought, (n, ...), and by which of all maps, (B, ...)."""
        for field in fields(Thought):
            getattr(self.thought, field.name)[games] = getattr(choice, field.name)
        tree.index_put_(self.metric_map, games, tree.index(metric_map, games))
        numbers = games.cpu().numpy()
        self.open[numbers] = True
        self._hider.count[numbers] = self._seeker.count[numbers] = 0

    def decided(self, observation: Observation, decision: Decision, action: torch.Tensor) -> None:
        """Notes what players (B,) see and are about to do, in OH and in S."""
        logits = decision.logits.float()
        hiding = np.flatnonzero(self.open & (self.game.stage == Stage.OH))
        if len(hiding):
            games, step = self._indices(hiding, self._hider)
            if self._seen is None:
                shape = self._log_probability.shape
                self._seen = tree.map(lambda tensor: tensor.new_zeros(*shape, *tensor.shape[1:]), observation)
            tree.index_put_(self._seen, (games, step), tree.index(observation, games))
            act = action[games, None]
            self._log_probability[games, step] = logits[games].log_softmax(-1).gather(-1, act)[:, 0]
            spot = SPOT.to(self.device)[act].clamp(min=0)
            hittable = decision.hittable[games].float().flatten(1)
            self._probability[games, step] = hittable.gather(-1, spot)[:, 0].sigmoid()
        seeking = np.flatnonzero(self.open & (self.game.stage == Stage.S))
        if len(seeking):
            games, step = self._indices(seeking, self._seeker)
            self._place[games, step] = observation.place[games].to(self._place.dtype)
            among = logits[games][:, list(SEEKER_ACTIONS)].softmax(-1)
            self._policy[games, step] = among.to(self._policy.dtype)

    def note(self, outcome: StepResult, claimable: np.ndarray) -> Finished | None:
        """Notes what a step did, and in S whose claim (B,) would have succeeded; returns the games that it finished."""
        stage = outcome.stage
        self.open &= (stage != Stage.PS) | outcome.success
        hiding = self.open & (stage == Stage.OH)
        # Whether a PlaceAt succeeds is known when its manipulation ends.
        done = outcome.success & (actions.PLACE_AT[outcome.action] == NOTHING)
        self._hider.add(np.flatnonzero(hiding), outcome.action, done, outcome.novelty.opened)
        over = np.flatnonzero(self.open & (stage == Stage.OM) & outcome.ended)
        self._hider.success[over, self._hider.count[over] - 1] = outcome.placed[over]
        seeking = self.open & (stage == Stage.S)
        self._seeker.add(np.flatnonzero(seeking), outcome.action, outcome.success, claimable)
        finished = np.flatnonzero(self.open & outcome.finished)
        found = self._taken(finished, outcome.found) if len(finished) else None
        self.open &= ~outcome.finished
        self.begun = np.flatnonzero(self.open & (stage != Stage.S) & (self.game.stage == Stage.S))
        return found

    def hidden(self, games: np.ndarray) -> tuple[ExploredMaps, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Of games (n,), by number, whose OH is over: maps, steps right and ahead of their first cells (n, 2), where
        the hiders stood (n, 3), row, column and quarter, and what hiding came to (n,)."""
        numbers = torch.from_numpy(games).to(self.device)
        assert self._seen is not None
        explored, origin = explored_maps(tree.index(self.metric_map, numbers).entries)
        action, success, _, _ = self._hider.of(games, self.device)
        outcome = came_to(SPOT.to(self.device)[action], success, self._seen.standing[numbers])
        return explored, origin, self.thought.place[numbers], outcome

    def _indices(self, games: np.ndarray, track: _Track) -> tuple[torch.Tensor, torch.Tensor]:
        """Where the next step of some games is written."""
        at = torch.from_numpy(np.stack([games, track.count[games]])).to(self.device)
        return at[0], at[1]

    def _taken(self, games: np.ndarray, found: np.ndarray) -> Finished:
        """A copy of what was written about some games."""
        assert self._seen is not None
        numbers = torch.from_numpy(games).to(self.device)
        sought = (*self._seeker.of(games, self.device), torch.from_numpy(found[games]).to(self.device))
        return Finished(
            tree.index(self.thought, numbers),
            tree.index(self.metric_map, numbers),
            Hiding(
                tree.index(self._seen, numbers),
                self._log_probability[numbers],
                self._probability[numbers],
                *self._hider.of(games, self.device),
            ),
            Seeking(self._place[numbers], self._policy[numbers], *sought),
        )


def came_to(spot: torch.Tensor, success: torch.Tensor, standing: torch.Tensor) -> torch.Tensor:
    """What hiding came to (n,): spots tried, -1 where none was, successes and standing are those of OH's (n, T)."""
    placed, games = success & (spot >= 0), torch.arange(len(spot), device=spot.device)
    step = placed.int().argmax(1)
    # After a PlaceAt that succeeds no other does.
    return outcome_index(standing[games, step], torch.where(placed.any(1), spot[games, step], NOTHING))


def seeker_numbers(action: torch.Tensor) -> torch.Tensor:
    """The numbers among the seeker's 58 of actions among the 219."""
    return SEEKER_INDEX.to(action.device)[action]


def _within(action: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    return torch.arange(action.shape[1], device=action.device) < steps[:, None]
