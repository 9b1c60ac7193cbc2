"""Actors and critics: each stage has its own, and one pass serves a batch of games at different stages."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from scrubjay.agent.config import AgentConfig
from scrubjay.agent.memory import DynamicRepresentation
from scrubjay.agent.normalization import RunningNorm
from scrubjay.game.actions import ALLOWED, MODALITIES, NAMES, NOTHING, OPEN_CELL, PLACE_ACTIONS, Stage, action_index
from scrubjay.game.observation import Observation
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS

ACTING_STAGES = (Stage.EM, Stage.OH, Stage.OM, Stage.S)
"""The stages that have actions among the 219. PS is one decision over places."""
OPEN_AT = np.flatnonzero(OPEN_CELL[:-1] != NOTHING)
"""The numbers of OpenAt, by row and column."""
CLAIM = action_index("ClaimVisible")
FEW = -4.0
"""The logit of what succeeds one time in fifty, as OpenAt does anywhere."""


@dataclass(frozen=True)
class Decision:
    """What the heads say; leading axes (B,) or (T, B)."""

    logits: torch.Tensor
    """(..., 219): of the actions, -inf for those the stage does not have; in PS, which has none, all 0."""
    value: torch.Tensor
    """(...,): the critic's; 0 in PS."""
    hittable: torch.Tensor
    """(..., 3, 7, 7): logits that a manipulation with this target, from here, would succeed. Trained in OM, made in
    every stage: OH learns from it where placing is worth a try."""
    openable: torch.Tensor
    """(..., 7, 7): logits that OpenAt would succeed at the cells, in the words of the stage's own head; 0 in PS."""


def check_stage(stage: torch.Tensor) -> None:
    """ValueError if a stage is not one of the five. On a GPU this waits for the device: before a step, not within."""
    wrong = (stage < 0) | (stage >= len(Stage))
    if stage.is_floating_point() or bool(wrong.any()):
        found = sorted(set(stage[wrong].tolist())) or [stage.dtype]
        raise ValueError(f"stage: {found[0]} is none of {', '.join(f'{s.name} {int(s)}' for s in Stage)}")


class StageHead(nn.Module):
    """One stage's MLP, actor and critic.

    What may be done at one of the image's cells is judged by that cell too, with the same weights for all of them: what
    can be opened looks the same wherever it is seen. What speaks for OpenAt are the odds that it would succeed. Whether
    the goal object is in view is judged by every cell, with weights for each object, and the most certain cells count:
    it is small, and in a mean of 49 its own is not heard. OM's head is told the target once more, which the DIR holds
    only as a pattern in the cells.
    """

    numbers: torch.Tensor
    """The numbers of the stage's actions."""
    at_cells: torch.Tensor
    """The numbers of those at a cell: OpenAt by row and column, and in OH PlaceAt by modality, row and column."""
    claim: torch.Tensor
    """(1,): the number of ClaimVisible."""
    first: torch.Tensor
    """(3,): the first numbers of modalities, rows and columns in the embedding of targets."""

    def __init__(self, config: AgentConfig, stage: Stage) -> None:
        super().__init__()
        length, at_cells = config.lstm, OPEN_AT if stage != Stage.OH else np.concatenate([OPEN_AT, PLACE_ACTIONS])
        self.register_buffer("numbers", torch.from_numpy(ALLOWED[stage]).nonzero()[:, 0], persistent=False)
        self.register_buffer("at_cells", torch.from_numpy(at_cells), persistent=False)
        self.register_buffer("claim", torch.tensor([CLAIM]), persistent=False)
        first = torch.tensor([0, len(MODALITIES), len(MODALITIES) + CELLS])
        self.register_buffer("first", first, persistent=False)
        channels = config.sir_channels + config.gru_channels
        self.cell_filters = nn.Conv2d(channels, len(at_cells) // CELLS**2, 1, bias=False)
        self.open_logit = nn.Parameter(torch.tensor(FEW))
        """The logit that OpenAt succeeds at a cell of which nothing is known."""
        self.goal_filters = nn.Conv2d(channels, len(GOALS), 1, bias=False) if stage == Stage.S else None
        self.target_embedding = nn.Embedding(len(MODALITIES) + 2 * CELLS, length) if stage == Stage.OM else None
        """Of OM's target: modalities, rows and columns."""
        self.mlp = nn.Sequential(nn.Linear(length, length), nn.ReLU())
        self.actor, self.critic = nn.Linear(length, len(self.numbers)), nn.Linear(length, 1)
        self.return_norm = RunningNorm(1)
        """The critic speaks in deviations from the usual return."""
        # The first policy is nearly uniform, and the first values are nearly 0.
        for part in (self.cell_filters, self.goal_filters, self.target_embedding):
            if part is not None:
                nn.init.zeros_(part.weight)
        for last in (self.actor, self.critic):
            nn.init.orthogonal_(last.weight, 0.01)
            nn.init.zeros_(last.bias)

    @property
    def last_layers(self) -> list[nn.Module]:
        """Those that decide without anything after them, or nearly so."""
        parts = (self.actor, self.cell_filters, self.goal_filters, self.target_embedding, self.critic)
        return [part for part in parts if part is not None]

    def forward(
        self, flat: torch.Tensor, cells: torch.Tensor, observation: Observation
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Logits (..., 219), values (...,) and where OpenAt would succeed, (..., 7, 7), of flat DIRs (..., L).

        `cells` (..., C + G, 7, 7) is what is seen and remembered at each.
        """
        known = self.mlp(
            flat if self.target_embedding is None else flat + self._wanted(observation.target).to(flat.dtype)
        )
        outside = flat.new_full((*flat.shape[:-1], len(NAMES)), -torch.inf)
        logits = outside.index_copy(-1, self.numbers, self.actor(known).to(flat.dtype))
        here = self._judged(self.cell_filters, cells, flat)
        logits = logits.index_add(-1, self.at_cells, here.flatten(-2))
        if self.goal_filters is not None:
            judged = self._judged(self.goal_filters, cells, flat)
            goal = observation.goal[..., None, None].expand(*flat.shape[:-1], 1, CELLS**2)
            logits = logits.index_add(-1, self.claim, judged.gather(-2, goal).logsumexp(-1) - math.log(CELLS**2))
        openable = (here[..., 0, :] + self.open_logit.to(flat.dtype)).unflatten(-1, (CELLS, CELLS))
        return logits, self.return_norm.denormalize(self.critic(known).to(flat.dtype))[..., 0], openable

    def _wanted(self, target: torch.Tensor) -> torch.Tensor:
        """Targets (..., 3) of modality, row and column as vectors (..., L)."""
        assert self.target_embedding is not None
        return self.target_embedding(target + self.first).sum(-2)

    def _judged(self, judge: nn.Conv2d, cells: torch.Tensor, flat: torch.Tensor) -> torch.Tensor:
        """What filters say of cells, (..., filters, 49)."""
        return judge(cells.flatten(0, -4)).to(flat.dtype).flatten(2).unflatten(0, cells.shape[:-3])


class Heads(nn.Module):
    """All stages' heads, and the prediction of what a manipulation would reach."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.stages = nn.ModuleDict({stage.name: StageHead(config, stage) for stage in ACTING_STAGES})
        self.hittable_cells = nn.Conv2d(config.gru_channels, len(MODALITIES), 1)
        self.hittable_global = nn.Linear(config.lstm, len(MODALITIES) * CELLS**2)

    def __getitem__(self, stage: Stage) -> StageHead:
        """One stage's actor and critic."""
        head = self.stages[stage.name]
        assert isinstance(head, StageHead)
        return head

    def forward(self, dirs: DynamicRepresentation, seen: torch.Tensor, observation: Observation) -> Decision:
        """Decisions for DIRs with leading axes (B,) or (T, B), and observations of the same.

        `seen` (..., C, 7, 7) are the SIRs, in terms of what is usual.

        Unknown stages are an error on the CPU. On a GPU, or compiled, they count as PS: looking would wait for the
        device, so `check_stage` is called before a step.
        """
        stage = observation.stage
        if dirs.flat.shape[:-1] != stage.shape:
            raise ValueError(f"stage: {tuple(dirs.flat.shape[:-1])} is needed, not {tuple(stage.shape)}")
        if stage.device.type == "cpu" and not torch.compiler.is_compiling():
            check_stage(stage)
        cells = torch.cat([seen.to(dirs.grid.dtype), dirs.grid], -3)
        logits = dirs.flat.new_zeros(*stage.shape, len(NAMES))
        value, hittable = dirs.flat.new_zeros(stage.shape), self._hittable_cells(dirs.grid)
        openable = dirs.flat.new_zeros(*stage.shape, CELLS, CELLS)
        # All heads answer for all games: that is cheaper than sorting games by stage.
        for which in ACTING_STAGES:
            its_logits, its_value, its_openable = self[which](dirs.flat, cells, observation)
            # A plain number: torch.compile takes a comparison of a tensor with an enumeration's member for false.
            here = stage == int(which)
            logits, value = torch.where(here[..., None], its_logits, logits), torch.where(here, its_value, value)
            openable = torch.where(here[..., None, None], its_openable, openable)
            if which == Stage.OM:
                # Whatever the target is: OH, which has none, asks too.
                known = self[which].mlp(dirs.flat)
                hittable = hittable + self.hittable_global(known).to(hittable.dtype).unflatten(-1, hittable.shape[-3:])
        return Decision(logits, value, hittable, openable)

    def _hittable_cells(self, grid: torch.Tensor) -> torch.Tensor:
        """What the cells (..., G, 7, 7) say for themselves: (..., 3, 7, 7)."""
        return self.hittable_cells(grid.flatten(0, -4)).unflatten(0, grid.shape[:-3]).to(grid.dtype)
