"""Perspective simulation: chooses a hiding place by simulating seekers in the hider's own map.

Every visited place gets a fast score from P (logits of hiding outcomes) and V (their values). Ten candidates are then
simulated: three sampled outcomes each, an imagined map M^e per outcome, and fifty mental seekers per map. The hider
prefers places where they take long.

The maps of B games share a window of h x w positions, north up. Outside a game's own bounding box of visited positions
everything stays 0, so that results do not depend on the window's size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.config import AgentConfig
from scrubjay.agent.hiding_hint import HidingHint
from scrubjay.agent.hiding_outcomes import NUM_OUTCOMES, OUTCOME_SAMPLES, sample_outcomes, unbiased_weights
from scrubjay.agent.mental_seeker import MentalSeeker, Rollouts
from scrubjay.agent.sampling import gumbel
from scrubjay.rooms.directions import QUARTERS
from scrubjay.rooms.floor import GRID

BEST_CANDIDATES, RANDOM_CANDIDATES = 5, 5
"""Places that are simulated: those with the highest scores, and random ones."""
CANDIDATES = BEST_CANDIDATES + RANDOM_CANDIDATES
SEEKERS_PER_OUTCOME = 50
"""Simulated trajectories for each outcome."""
MAX_SEEKER_STEPS = 100
"""Step limit of a mental seeker."""
INVERSE_TEMPERATURE = 0.04
"""A place is chosen by softmax(INVERSE_TEMPERATURE * expected steps)."""
DILATIONS = (1, 2, 4, 8)
"""Dilations of the convolutions that compute M^e: their receptive field reaches 15 positions (3.75 m)."""


@dataclass(frozen=True)
class ExploredMaps:
    """The maps of B games as dense tensors in a common window of h x w positions, north up."""

    values: torch.Tensor
    """(B, 4, 2, C, h, w): map values by heading, crouching and standing; 0 where not visited."""
    visited: torch.Tensor
    """(B, 4, 2, h, w) bool."""
    start: torch.Tensor
    """(B, 4) int64: the game's and the seeker's start: row, column, quarter, standing."""

    def __post_init__(self) -> None:
        games, height, width = len(self.values), *self.values.shape[-2:]
        for name, shape in (("visited", (games, QUARTERS, 2, height, width)), ("start", (games, 4))):
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name}: expected shape {shape}, got {tuple(getattr(self, name).shape)}")

    @property
    def places(self) -> torch.Tensor:
        """(B, 4, h, w) bool: visited crouching or standing."""
        return self.visited.any(2)

    @property
    def floor(self) -> torch.Tensor:
        """(B, h, w) bool: positions visited at any heading, crouching or standing."""
        return self.visited.flatten(1, 2).any(1)

    @property
    def inside(self) -> torch.Tensor:
        """(B, h, w) bool: the bounding box of visited positions."""
        rows, columns = (_between(self.floor.any(axis)) for axis in (2, 1))
        return rows[:, :, None] & columns[:, None, :]

    @property
    def distances(self) -> torch.Tensor:
        """(B, h, w): Euclidean distance from the start, in meters."""
        rows, columns = (torch.arange(size, device=self.start.device) for size in self.visited.shape[-2:])
        down, right = rows - self.start[:, :1], columns - self.start[:, 1:2]
        return GRID * torch.hypot(down[:, :, None].float(), right[:, None, :].float())


@dataclass(frozen=True)
class Uniforms:
    """All random numbers of one decision in B games, uniform in [0, 1)."""

    places: torch.Tensor
    """(B, 4, h, w): select the random candidates."""
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
    """The hiding places chosen in B games, and the simulation behind the choice."""

    place: torch.Tensor
    """(B, 4) int64: row, column, quarter, standing of the chosen place, which was visited."""
    chosen: torch.Tensor
    """(B,): the index of the chosen candidate."""
    log_probability: torch.Tensor
    """(B, 10): of choosing each candidate; -inf where not valid."""
    places: torch.Tensor
    """(B, 10, 3) int64: row, column, quarter of the candidates, best score first."""
    valid: torch.Tensor
    """(B, 10) bool: False for padding, copies of the best candidate where fewer than ten places were visited."""
    outcomes: torch.Tensor
    """(B, 10, 3) int64: the outcomes sampled for each."""
    weights: torch.Tensor
    """(B, 10, 3): the unbiased weights of these outcomes."""
    mean_steps: torch.Tensor
    """(B, 10, 3): mu_ij, the mental seekers' mean steps."""
    expected_steps: torch.Tensor
    """(B, 10): mu_i, their weighted mean over outcomes."""
    scores: torch.Tensor
    """(B, 4, h, w): fast scores of all places; -inf where not visited."""
    rollouts: Rollouts
    """The trajectories in 30 maps per game, ordered by place, then outcome."""


class PerspectiveSimulation(nn.Module):
    """Map encoder (M^1), P and V of every place, imagined maps (M^e) and the mental seeker."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        channels = config.mental_channels
        self.map_encoder = nn.Sequential(
            # Linear layers over the last axis: 1 x 1 convolutions.
            nn.Linear(QUARTERS * 2 * config.map_value + 1, 2 * channels),
            nn.ReLU(),
            nn.Linear(2 * channels, channels),
            nn.ReLU(),
            nn.Linear(channels, channels),
        )
        self.place_head = nn.Linear(channels, QUARTERS * 2 * NUM_OUTCOMES)
        self.hint = HidingHint(channels) if config.mental_offsets else None
        if not config.mental_offsets:
            self.outcome_embedding = nn.Embedding(NUM_OUTCOMES, channels)
            self.heading_embedding = nn.Embedding(QUARTERS, channels)
            self.hiding_mlp = nn.Sequential(nn.ReLU(), nn.Linear(channels, channels))
        self.propagation = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=reach, dilation=reach) for reach in DILATIONS
        )
        self.seeker = MentalSeeker(config)

    def encode_maps(self, explored: ExploredMaps) -> torch.Tensor:
        """M^1 (B, h, w, C), 0 outside each game's bounding box."""
        values = explored.values.flatten(1, 3).permute(0, 2, 3, 1)
        distances = explored.distances[..., None].to(values.dtype)
        return self.map_encoder(torch.cat([values, distances], -1)) * explored.inside[..., None]

    def evaluate_places(self, encoded: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """P and V, each (B, n, 295), of places (B, n, 3): row, column, quarter."""
        row, column, quarter = places.unbind(-1)
        games = torch.arange(len(encoded), device=encoded.device)[:, None]
        both = self._predict_outcomes(encoded[games, row, column])
        p, v = both[games, torch.arange(places.shape[1], device=encoded.device), quarter].unbind(-2)
        return p, v

    def place_scores(self, encoded: torch.Tensor, visited: torch.Tensor) -> torch.Tensor:
        """Fast scores (B, 4, h, w): E[V] under softmax(P); -inf where not `visited` (B, 4, h, w)."""
        p, v = self._predict_outcomes(encoded).unbind(-2)
        score = (p.softmax(-1, dtype=torch.promote_types(p.dtype, torch.float32)) * v).sum(-1)
        return score.permute(0, 3, 1, 2).masked_fill(~visited, -torch.inf)

    def imagine(
        self, encoded: torch.Tensor, inside: torch.Tensor, places: torch.Tensor, outcomes: torch.Tensor
    ) -> torch.Tensor:
        """M^e (B, n * k, h, w, C): one imagined map per place (B, n, 3) and outcome (B, n, k)."""
        games, height, width, channels = encoded.shape
        copies = outcomes[0].numel()
        place, outcome = places[:, :, None].expand(*outcomes.shape, 3).reshape(-1, 3), outcomes.flatten()
        inside = inside.repeat_interleave(copies, 0)[..., None]
        # Maps grow with every layer, a thousandfold within a hundred optimizer steps, unless they are normalized.
        normalize = _normalize if self.hint else nn.Identity()
        maps = normalize(encoded).repeat_interleave(copies, 0)
        maps = maps + self._hint(place, outcome, height, width).to(maps.dtype) * inside
        for convolution in self.propagation:
            maps = maps + convolution(normalize(maps).relu().permute(0, 3, 1, 2)).permute(0, 2, 3, 1) * inside
        return normalize(maps).view(games, copies, height, width, channels)

    def _hint(self, place: torch.Tensor, outcome: torch.Tensor, height: int, width: int) -> torch.Tensor:
        """What maps (N, h, w, C) tell of hidings with outcomes (N,), from places (N, 3): at these, or everywhere."""
        if self.hint:
            return self.hint(place, outcome, height, width)
        row, column, quarter = place.unbind(-1)
        hiding = self.hiding_mlp(self.outcome_embedding(outcome) + self.heading_embedding(quarter))
        empty = hiding.new_zeros(len(place), height, width, hiding.shape[-1])
        return empty.index_put((torch.arange(len(place), device=place.device), row, column), hiding)

    @torch.no_grad()
    def choose_place(self, explored: ExploredMaps, uniforms: Uniforms) -> PlaceChoice:
        """Chooses each hider's place: the whole of perspective simulation for B games."""
        start_row, start_column = explored.start[:, 0], explored.start[:, 1]
        games = torch.arange(len(start_row), device=start_row.device)
        if not explored.floor[games, start_row, start_column].all():
            raise ValueError("start: must be a visited position in every game")
        encoded = self.encode_maps(explored)
        scores = self.place_scores(encoded, explored.places)
        places, valid = select_candidates(scores, uniforms.places)
        p, _ = self.evaluate_places(encoded, places)
        outcomes = sample_outcomes(p, uniforms.outcomes)
        maps = self.imagine(encoded, explored.inside, places, outcomes)
        rollouts = self.seeker.simulate(maps, explored.floor, explored.start, uniforms.seekers)

        mean_steps = rollouts.steps.float().mean(-1).view(outcomes.shape)
        weights = unbiased_weights(p, outcomes)
        expected = (weights * mean_steps).sum(-1)
        log_probability = (INVERSE_TEMPERATURE * expected).masked_fill(~valid, -torch.inf).log_softmax(-1)
        chosen = (log_probability + gumbel(uniforms.choice)).argmax(-1)
        row, column, quarter = places[games, chosen].unbind(-1)
        # As when the place was visited; standing if both.
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

    def _predict_outcomes(self, encoded: torch.Tensor) -> torch.Tensor:
        """M^1 (..., C) to P and V for every heading: (..., 4, 2, 295)."""
        return self.place_head(encoded).unflatten(-1, (QUARTERS, 2, NUM_OUTCOMES))


def select_candidates(scores: torch.Tensor, uniforms: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Candidates (B, 10, 3) and whether they are valid (B, 10), from scores (B, 4, h, w), -inf where not visited.

    The five best and five random others, all distinct; copies of the best pad games with fewer than ten places.
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


def _normalize(maps: torch.Tensor) -> torch.Tensor:
    """Maps (..., C), standardized over their channels at each position; 0 stays 0."""
    return F.layer_norm(maps, maps.shape[-1:], eps=1e-3).to(maps.dtype)  # Autocast gives float32, twice the memory.


def _between(flags: torch.Tensor) -> torch.Tensor:
    """(B, n) bool: True from the first True to the last."""
    flags = flags.int()
    return (flags.cummax(1).values & flags.flip(1).cummax(1).values.flip(1)).bool()
