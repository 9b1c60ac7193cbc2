"""Perspective simulation: where to hide, found out by imagining seekers in the map that the hider made.

Each place is first judged at a glance, from P (what hiding there would come to) and V (how good that would be). Ten
places are then thought through: three outcomes at each, a map M^e as it would be after each, and fifty mental seekers
in each of these maps. Where they take long, the hider goes.

The maps of B games lie in one window of h x w positions, north up. What is outside a game's own part of it, the
rectangle about all positions visited, stays 0 throughout, so that no result depends on the window's size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.config import AgentConfig
from scrubjay.agent.hiding_outcomes import NUM_OUTCOMES, OUTCOME_SAMPLES, sample_outcomes, unbiased_weights
from scrubjay.agent.mental_seeker import MentalSeeker, Rollouts
from scrubjay.agent.sampling import gumbel
from scrubjay.rooms.directions import QUARTERS
from scrubjay.rooms.floor import GRID

BEST_CANDIDATES, RANDOM_CANDIDATES = 5, 5
"""Places thought through: those with the highest scores, and random ones."""
CANDIDATES = BEST_CANDIDATES + RANDOM_CANDIDATES
SEEKERS_PER_OUTCOME = 50
"""Mental trajectories for each outcome."""
MAX_SEEKER_STEPS = 100
"""Steps after which a mental seeker gives up."""
INVERSE_TEMPERATURE = 0.04
"""A place is chosen by softmax(INVERSE_TEMPERATURE * expected steps)."""
DILATIONS = (1, 2, 4, 8)
"""Dilations of the convolutions that make M^e: together they carry the news of a hiding 15 positions (3.75 m) far."""


@dataclass(frozen=True)
class ExploredMaps:
    """The maps of B games as tensors in a common window of h x w positions, north up."""

    values: torch.Tensor
    """(B, 4, 2, C, h, w): what was written at each quarter, crouching and standing; 0 where never visited."""
    visited: torch.Tensor
    """(B, 4, 2, h, w) bool."""
    start: torch.Tensor
    """(B, 4) int64, where the game began and the seeker will: row, column, quarter, standing."""

    def __post_init__(self) -> None:
        games, height, width = len(self.values), *self.values.shape[-2:]
        for name, shape in (("visited", (games, QUARTERS, 2, height, width)), ("start", (games, 4))):
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} must be {shape}, not {tuple(getattr(self, name).shape)}")

    @property
    def places(self) -> torch.Tensor:
        """(B, 4, h, w) bool: visited at either height."""
        return self.visited.any(2)

    @property
    def floor(self) -> torch.Tensor:
        """(B, h, w) bool: positions visited at any heading and height."""
        return self.visited.flatten(1, 2).any(1)

    @property
    def inside(self) -> torch.Tensor:
        """(B, h, w) bool: the rectangle about all positions visited."""
        rows, columns = (_between(self.floor.any(axis)) for axis in (2, 1))
        return rows[:, :, None] & columns[:, None, :]

    @property
    def distances(self) -> torch.Tensor:
        """(B, h, w): meters from the start, as the crow flies."""
        rows, columns = (torch.arange(size, device=self.start.device) for size in self.visited.shape[-2:])
        down, right = rows - self.start[:, :1], columns - self.start[:, 1:2]
        return GRID * torch.hypot(down[:, :, None].float(), right[:, None, :].float())


@dataclass(frozen=True)
class Uniforms:
    """All the random numbers of one decision in B games, uniform in [0, 1)."""

    places: torch.Tensor
    """(B, 4, h, w): which places are select_candidates beside the best."""
    outcomes: torch.Tensor
    """(B, 10, 295)"""
    seekers: torch.Tensor
    """(limit, B, 30, repeats, 2)"""
    choice: torch.Tensor
    """(B, 10)"""

    @classmethod
    def sample(
        cls,
        explored: ExploredMaps,
        generator: torch.Generator | None = None,
        repeats: int = SEEKERS_PER_OUTCOME,
        limit: int = MAX_SEEKER_STEPS,
    ) -> Uniforms:
        games, quarters, height, width = explored.places.shape
        shapes = (
            (games, quarters, height, width),
            (games, CANDIDATES, NUM_OUTCOMES),
            (limit, games, CANDIDATES * OUTCOME_SAMPLES, repeats, 2),
            (games, CANDIDATES),
        )
        return cls(*(torch.rand(shape, generator=generator, device=explored.values.device) for shape in shapes))


@dataclass(frozen=True)
class PlaceChoice:
    """Where B hiders go, and all that they thought about it."""

    place: torch.Tensor
    """(B, 4) int64: row, column, quarter, standing; a place that was visited."""
    chosen: torch.Tensor
    """(B,) which of the ten."""
    log_probability: torch.Tensor
    """(B, 10) of choosing each; -inf for those that are not valid."""
    places: torch.Tensor
    """(B, 10, 3) int64: row, column, quarter of the places thought through, the best first."""
    valid: torch.Tensor
    """(B, 10) bool: False fills up where fewer than ten places were visited, with copies of the best."""
    outcomes: torch.Tensor
    """(B, 10, 3) int64: the outcomes imagined at each."""
    weights: torch.Tensor
    """(B, 10, 3): the unbiased weights of these outcomes."""
    mean_steps: torch.Tensor
    """(B, 10, 3): mu_ij, the mean steps of the mental seekers."""
    expected_steps: torch.Tensor
    """(B, 10): mu_i."""
    scores: torch.Tensor
    """(B, 4, h, w): what was thought at a glance; -inf where never visited."""
    rollouts: Rollouts
    """The trajectories: in each game 30 maps, outcome by outcome, place by place."""


class PerspectiveSimulation(nn.Module):
    """M^1 from the map, P and V for every place, M^e for a hypothetical hiding, and the mental seeker."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        channels = config.mental_channels
        self.map_encoder = nn.Sequential(
            # 1 x 1 convolutions are linear layers on the last axis.
            nn.Linear(QUARTERS * 2 * config.map_value + 1, 2 * channels),
            nn.ReLU(),
            nn.Linear(2 * channels, channels),
            nn.ReLU(),
            nn.Linear(channels, channels),
        )
        self.place_head = nn.Linear(channels, QUARTERS * 2 * NUM_OUTCOMES)
        self.outcome_embedding = nn.Embedding(NUM_OUTCOMES, channels)
        self.heading_embedding = nn.Embedding(QUARTERS, channels)
        self.hiding_mlp = nn.Sequential(nn.ReLU(), nn.Linear(channels, channels))
        self.propagation = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=reach, dilation=reach) for reach in DILATIONS
        )
        self.seeker = MentalSeeker(config)

    def encode_maps(self, explored: ExploredMaps) -> torch.Tensor:
        """M^1 (B, h, w, C), 0 outside each game's own part of the window."""
        values = explored.values.flatten(1, 3).permute(0, 2, 3, 1)
        distances = explored.distances[..., None].to(values.dtype)
        return self.map_encoder(torch.cat([values, distances], -1)) * explored.inside[..., None]

    def evaluate_places(self, survey: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """P and V, each (B, n, 295), of some places (B, n, 3): row, column, quarter."""
        row, column, quarter = places.unbind(-1)
        games = torch.arange(len(survey), device=survey.device)[:, None]
        both = self._glance(survey[games, row, column])
        p, v = both[games, torch.arange(places.shape[1], device=survey.device), quarter].unbind(-2)
        return p, v

    def place_scores(self, survey: torch.Tensor, visited: torch.Tensor) -> torch.Tensor:
        """(B, 4, h, w): the mean of V under softmax(P) of every place; -inf where not visited (B, 4, h, w)."""
        p, v = self._glance(survey).unbind(-2)
        score = (p.softmax(-1, dtype=torch.promote_types(p.dtype, torch.float32)) * v).sum(-1)
        return score.permute(0, 3, 1, 2).masked_fill(~visited, -torch.inf)

    def imagine(
        self, survey: torch.Tensor, inside: torch.Tensor, places: torch.Tensor, outcomes: torch.Tensor
    ) -> torch.Tensor:
        """M^e (B, n * k, h, w, C) after hiding at places (B, n, 3) with outcomes (B, n, k), one map for each."""
        games, height, width, channels = survey.shape
        copies = outcomes[0].numel()
        row, column, quarter = places[:, :, None].expand(*outcomes.shape, 3).reshape(-1, 3).unbind(-1)
        hiding = self.hiding_mlp(self.outcome_embedding(outcomes.flatten()) + self.heading_embedding(quarter)).to(
            survey.dtype
        )
        maps = survey[:, None].expand(games, copies, height, width, channels).reshape(-1, height, width, channels)
        number = torch.arange(games * copies, device=survey.device)
        maps = maps.index_put((number, row, column), hiding, accumulate=True).permute(0, 3, 1, 2)
        inside = inside.repeat_interleave(copies, 0)[:, None]
        for convolution in self.propagation:
            maps = maps + convolution(maps.relu()) * inside
        return maps.permute(0, 2, 3, 1).view(games, copies, height, width, channels)

    @torch.no_grad()
    def choose_place(self, explored: ExploredMaps, draws: Uniforms) -> PlaceChoice:
        """Where each hider goes: the whole of perspective simulation for B games."""
        start_row, start_column = explored.start[:, 0], explored.start[:, 1]
        games = torch.arange(len(start_row), device=start_row.device)
        if not explored.floor[games, start_row, start_column].all():
            raise ValueError("start must be a position that was visited, in every game")
        survey = self.encode_maps(explored)
        scores = self.place_scores(survey, explored.places)
        places, valid = select_candidates(scores, draws.places)
        p, _ = self.evaluate_places(survey, places)
        outcomes = sample_outcomes(p, draws.outcomes)
        maps = self.imagine(survey, explored.inside, places, outcomes)
        rollouts = self.seeker.simulate(maps, explored.floor, explored.start, draws.seekers)

        mean_steps = rollouts.steps.float().mean(-1).view(outcomes.shape)
        weights = unbiased_weights(p, outcomes)
        expected = (weights * mean_steps).sum(-1)
        log_probability = (INVERSE_TEMPERATURE * expected).masked_fill(~valid, -torch.inf).log_softmax(-1)
        chosen = (log_probability + gumbel(draws.choice)).argmax(-1)
        row, column, quarter = places[games, chosen].unbind(-1)
        # As it stood there; where it did both, it stands.
        standing = explored.visited[games, quarter, 1, row, column].long()
        return PlaceChoice(
            place=torch.stack([row, column, quarter, standing], -1),
            chosen=chosen,
            log_probability=log_probability,
            places=places,
            valid=valid,
            outcomes=outcomes,
            weights=weights,
            mean_steps=mean_steps,
            expected_steps=expected,
            scores=scores,
            rollouts=rollouts,
        )

    def _glance(self, survey: torch.Tensor) -> torch.Tensor:
        """(..., C) -> (..., 4, 2, 295): for every quarter P and V."""
        return self.place_head(survey).unflatten(-1, (QUARTERS, 2, NUM_OUTCOMES))


def select_candidates(scores: torch.Tensor, uniforms: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The places to think through, (B, 10, 3), and which of them are valid, (B, 10).

    From scores (B, 4, h, w), -inf where never visited: the five best, and five others at random among the rest, all
    different. Where there are fewer, copies of the best fill up.
    """
    _, quarters, height, width = scores.shape
    missing = max(0, CANDIDATES - quarters * height * width)
    flat = F.pad(scores.flatten(1), (0, missing), value=-torch.inf)
    best = flat.topk(BEST_CANDIDATES, dim=1)
    rest = F.pad(uniforms.flatten(1), (0, missing)).masked_fill(flat.isneginf(), -1).scatter(1, best.indices, -1)
    others = rest.topk(RANDOM_CANDIDATES, dim=1)
    valid = torch.cat([~best.values.isneginf(), others.values >= 0], 1)
    index = torch.where(valid, torch.cat([best.indices, others.indices], 1), best.indices[:, :1])
    place = torch.stack([index // width % height, index % width, index // (height * width)], -1)
    return place, valid


def _between(seen: torch.Tensor) -> torch.Tensor:
    """(B, n) bool: from the first to the last that is True."""
    seen = seen.int()
    return (seen.cummax(1).values & seen.flip(1).cummax(1).values.flip(1)).bool()
