"""Actors and critics, one pair per stage; one pass serves a batch of games at different stages."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from scrubjay.agent.config import AgentConfig
from scrubjay.agent.memory import DynamicRepresentation
from scrubjay.agent.normalization import make_norm
from scrubjay.game.actions import ALLOWED, MODALITIES, NAMES, NOTHING, OPEN_CELL, PLACE_ACTIONS, Stage, action_index
from scrubjay.game.observation import Observation
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS

ACTING_STAGES = (Stage.EM, Stage.OH, Stage.OM, Stage.S)
"""Stages with actions among the 219. PS is a single decision over places."""
OPEN_AT_ACTIONS = np.flatnonzero(OPEN_CELL[:-1] != NOTHING)
"""(49,): the indices of OpenAt, by row and column."""
CLAIM = action_index("ClaimVisible")
OPEN_LOGIT = -4.0
"""Initial logit of OpenAt's success: about 1 in 50, its base rate."""


@dataclass(frozen=True)
class Decision:
    """The heads' output; leading axes (B,) or (T, B)."""

    logits: torch.Tensor
    """(..., 219): action logits, -inf for actions of other stages; all 0 in PS, which has no actions."""
    value: torch.Tensor
    """(...,): the critic's value; 0 in PS."""
    hittable: torch.Tensor
    """(..., 3, 7, 7): logits that a manipulation from here with this target would succeed. Trained in OM, predicted in
    every stage: OH uses it to choose where to place."""
    openable: torch.Tensor
    """(..., 7, 7): logits that OpenAt would succeed at each cell, by the stage's own head; 0 in PS, and everywhere if
    heads do not read cells."""
    exploring: torch.Tensor
    """(..., 219): E&M's action logits in every stage, without a gradient: what whoever looks for nothing would do."""
    visible: torch.Tensor
    """(...,): logits that the goal object can be claimed, were that as likely as not, by its filters in S's head; 0 in
    other stages, and everywhere if heads do not read cells."""
    hand: torch.Tensor
    """(..., 7, 7): logits of the cells, softmax over all, that the object in the hand is there; 0 without a
    `hand_head`."""


def check_stage(stage: torch.Tensor) -> None:
    """Raises ValueError on unknown stages. Synchronizes with a GPU: call it before a step, not within."""
    wrong = (stage < 0) | (stage >= len(Stage))
    if stage.is_floating_point() or bool(wrong.any()):
        unknown = sorted(set(stage[wrong].tolist())) or [stage.dtype]
        raise ValueError(f"stage: {unknown[0]} is none of {', '.join(f'{s.name} {int(s)}' for s in Stage)}")


class StageHead(nn.Module):
    """One stage's MLP, actor and critic.

    Actions at a cell also get a logit from that cell's features, by a 1 x 1 convolution shared over cells: what can be
    opened looks the same everywhere. For OpenAt it is the logit of success, unless that has a filter of its own
    (`separate_openable_head`), which the actor only reads; the actor gets it without the base rate, which would all but
    forbid OpenAt at first, or with it (`open_at_prior`). ClaimVisible gets a log-mean-exp over cells
    of a filter per goal object, dominated by the most confident cells: the object is small, and a plain mean over 49
    cells would drown it. OM's head embeds the target once more, which the DIR holds only as a spatial pattern.

    Without `heads_read_cells` there is none of this: MLP, actor and critic read the flat DIR alone, as in the paper.
    """

    actions: torch.Tensor
    """The indices of the stage's actions."""
    cell_actions: torch.Tensor
    """The indices of its actions at cells: OpenAt by row and column, then in OH PlaceAt by modality, row and column."""
    claim: torch.Tensor
    """(1,): the index of ClaimVisible."""
    target_offsets: torch.Tensor
    """(3,): where modalities, rows and columns begin in the target embedding."""

    def __init__(self, config: AgentConfig, stage: Stage) -> None:
        super().__init__()
        length = config.dir_length
        cell_actions = OPEN_AT_ACTIONS if stage != Stage.OH else np.concatenate([OPEN_AT_ACTIONS, PLACE_ACTIONS])
        self.register_buffer("actions", torch.from_numpy(ALLOWED[stage]).nonzero()[:, 0], persistent=False)
        self.register_buffer("cell_actions", torch.from_numpy(cell_actions), persistent=False)
        self.register_buffer("claim", torch.tensor([CLAIM]), persistent=False)
        offsets = torch.tensor([0, len(MODALITIES), len(MODALITIES) + CELLS])
        self.register_buffer("target_offsets", offsets, persistent=False)
        channels = config.sir_channels + config.gru_channels
        cells = config.heads_read_cells
        self.cell_filters = nn.Conv2d(channels, len(cell_actions) // CELLS**2, 1, bias=False) if cells else None
        self.open_logit = nn.Parameter(torch.tensor(OPEN_LOGIT)) if cells else None
        """The prior logit that OpenAt succeeds at a cell."""
        separate = config.separate_openable_head and stage != Stage.OH  # OH has no openable loss.
        self.openable_filter = openable_filter(channels, config.openable_hidden) if separate else None
        self.open_at_prior = config.open_at_prior and stage != Stage.OH
        self.goal_filters = nn.Conv2d(channels, len(GOALS), 1, bias=False) if cells and stage == Stage.S else None
        embeds = cells and stage == Stage.OM
        self.target_embedding = nn.Embedding(len(MODALITIES) + 2 * CELLS, length) if embeds else None
        """OM's target: the sum of its modality's, row's and column's embeddings."""
        self.mlp = nn.Sequential(nn.Linear(length, length), nn.ReLU())
        self.actor, self.critic = nn.Linear(length, len(self.actions)), nn.Linear(length, 1)
        self.return_norm = make_norm(1, config.running_norms)
        """The critic predicts standardized returns."""
        self.critic_hidden = nn.Linear(length, length) if config.critic_sees_time else None
        self.time_embedding = nn.Linear(1, length) if config.critic_sees_time else None
        """A hidden layer of the critic's own: what is left to earn is not linear in the time left."""
        # The initial policy is nearly uniform and initial values are nearly 0.
        for part in (self.cell_filters, self.goal_filters, self.target_embedding):
            if part is not None:
                nn.init.zeros_(part.weight)
        for last in (self.actor, self.critic):
            nn.init.orthogonal_(last.weight, 0.01)
            nn.init.zeros_(last.bias)

    @property
    def output_layers(self) -> list[nn.Module]:
        """The output layers, which may have a learning rate of their own."""
        parts = (
            self.actor, self.cell_filters, self.openable_filter, self.goal_filters, self.target_embedding, self.critic,
        )  # fmt: skip
        return [part for part in parts if part is not None]

    @torch.no_grad()
    def copy_policy(self, other: StageHead) -> None:
        """Acts like another stage's head from now on, with its logits for the actions of both; critics stay apart."""
        self.mlp.load_state_dict(other.mlp.state_dict())
        mine, its = torch.nonzero(self.actions[:, None] == other.actions, as_tuple=True)
        self.actor.weight[mine], self.actor.bias[mine] = other.actor.weight[its], other.actor.bias[its]
        shared = [(self.cell_filters, other.cell_filters), (self.openable_filter, other.openable_filter)]
        for part, its_part in shared:
            if part is not None and its_part is not None:
                part.load_state_dict(its_part.state_dict())
        if self.open_logit is not None and other.open_logit is not None:
            self.open_logit.copy_(other.open_logit)

    def forward(
        self, flat: torch.Tensor, cells: torch.Tensor | None, observation: Observation
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Logits (..., 219), values (...,), logits (..., 7, 7) that OpenAt succeeds, and (...,) that claims do.

        `cells` (..., C + G, 7, 7): the normalized SIR and the DIR grid; None without `heads_read_cells`.
        """
        hidden = self.mlp(flat if self.target_embedding is None else flat + self._embed(observation.target, flat.dtype))
        outside = flat.new_full((*flat.shape[:-1], len(NAMES)), -torch.inf)
        logits = outside.index_copy(-1, self.actions, self.actor(hidden).to(flat.dtype))
        value = self._value(hidden, observation.time_left, flat.dtype)
        visible = torch.zeros_like(value)
        if cells is None:
            return logits, value, flat.new_zeros(*flat.shape[:-1], CELLS, CELLS), visible
        assert self.cell_filters is not None and self.open_logit is not None
        cell_logits = self._filter(self.cell_filters, cells, flat.dtype)
        logits = logits.index_add(-1, self.cell_actions, cell_logits.flatten(-2))
        if self.goal_filters is not None:
            goal_logits = self._filter(self.goal_filters, cells, flat.dtype)
            goal = observation.goal[..., None, None].expand(*flat.shape[:-1], 1, CELLS**2)
            log_mean_exp = goal_logits.gather(-2, goal).logsumexp(-1) - math.log(CELLS**2)
            logits = logits.index_add(-1, self.claim, log_mean_exp)
            visible = log_mean_exp[..., 0]
        if self.openable_filter is None:
            evidence = cell_logits[..., 0, :]
        else:
            evidence = self._filter(self.openable_filter, cells, flat.dtype)[..., 0, :]
            logits = logits.index_add(-1, self.cell_actions[: CELLS**2], evidence.detach())
        prior = self.open_logit.to(flat.dtype)
        if self.open_at_prior:
            cells_prior = prior.detach().expand(*flat.shape[:-1], CELLS**2)
            logits = logits.index_add(-1, self.cell_actions[: CELLS**2], cells_prior)
        return logits, value, (evidence + prior).unflatten(-1, (CELLS, CELLS)), visible

    def _value(self, hidden: torch.Tensor, time_left: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Values (...,) from the MLP's output (..., L) and the shares of steps left (...,)."""
        if self.critic_hidden is not None and self.time_embedding is not None:
            time = self.time_embedding(time_left[..., None].to(dtype))
            hidden = (self.critic_hidden(hidden) + time).relu()
        return self.return_norm.denormalize(self.critic(hidden).to(dtype))[..., 0]

    def _embed(self, target: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Targets (..., 3) of modality, row and column as vectors (..., L)."""
        assert self.target_embedding is not None
        return self.target_embedding(target + self.target_offsets).sum(-2).to(dtype)

    def _filter(self, filters: nn.Module, cells: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """The responses of filters to cells (..., C + G, 7, 7): (..., filters, 49)."""
        return filters(cells.flatten(0, -4)).to(dtype).flatten(2).unflatten(0, cells.shape[:-3])


def openable_filter(channels: int, hidden: int) -> nn.Module:
    """Cells (N, channels, 7, 7) to what they add to the logit that OpenAt succeeds (N, 1, 7, 7); 0 if untrained."""
    last = nn.Conv2d(hidden or channels, 1, 1, bias=False)
    nn.init.zeros_(last.weight)
    return nn.Sequential(nn.Conv2d(channels, hidden, 1), nn.ReLU(), last) if hidden else last


class Heads(nn.Module):
    """The heads of all stages, and the prediction of which manipulations would succeed."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.reads_cells, self.hiding_priors = config.heads_read_cells, config.hiding_priors
        self.stages = nn.ModuleDict({stage.name: StageHead(config, stage) for stage in ACTING_STAGES})
        self.hittable_cells = nn.Conv2d(config.gru_channels, len(MODALITIES), 1)
        self.hittable_global = nn.Linear(config.dir_length, len(MODALITIES) * CELLS**2)
        self.hand = nn.Conv2d(config.gru_channels, 1, 1) if config.hand_head else None

    def __getitem__(self, stage: Stage) -> StageHead:
        """One stage's actor and critic."""
        head = self.stages[stage.name]
        assert isinstance(head, StageHead)
        return head

    def forward(self, dirs: DynamicRepresentation, sir: torch.Tensor, observation: Observation) -> Decision:
        """Decisions for DIRs with leading axes (B,) or (T, B); `sir` (..., C, 7, 7) is normalized.

        Unknown stages raise ValueError on the CPU. On a GPU, or compiled, they count as PS, because checking would
        synchronize with the device: call `check_stage` before a step.
        """
        stage = observation.stage
        if dirs.flat.shape[:-1] != stage.shape:
            raise ValueError(f"stage: expected shape {tuple(dirs.flat.shape[:-1])}, got {tuple(stage.shape)}")
        if stage.device.type == "cpu" and not torch.compiler.is_compiling():
            check_stage(stage)
        cells = torch.cat([sir.to(dirs.grid.dtype), dirs.grid], -3) if self.reads_cells else None
        logits = dirs.flat.new_zeros(*stage.shape, len(NAMES))
        value, hittable = dirs.flat.new_zeros(stage.shape), _by_cells(self.hittable_cells, dirs.grid)
        openable, exploring = dirs.flat.new_zeros(*stage.shape, CELLS, CELLS), logits
        visible = torch.zeros_like(value)
        # All heads run on all games: cheaper than sorting games by stage.
        for which in ACTING_STAGES:
            its_logits, its_value, its_openable, its_visible = self[which](dirs.flat, cells, observation)
            # int: under torch.compile, a tensor compared with an enum member is silently False.
            active = stage == int(which)
            logits, value = torch.where(active[..., None], its_logits, logits), torch.where(active, its_value, value)
            openable = torch.where(active[..., None, None], its_openable, openable)
            visible = torch.where(active, its_visible, visible)
            if which == Stage.EM:
                exploring, opens = its_logits.detach(), its_openable
            if which == Stage.OM:
                # Without the target embedding: OH, which has no target, uses this too.
                hidden = self[which].mlp(dirs.flat)
                logit = self.hittable_global(hidden).to(hittable.dtype)
                hittable = hittable + logit.unflatten(-1, hittable.shape[-3:])
        if self.hiding_priors:
            informed = self._inform_hider(logits, opens.detach(), hittable.detach())
            logits = torch.where((stage == int(Stage.OH))[..., None], informed, logits)
        hand = torch.zeros_like(openable) if self.hand is None else _by_cells(self.hand, dirs.grid)[..., 0, :, :]
        return Decision(logits, value, hittable, openable, exploring, visible, hand)

    def _inform_hider(self, logits: torch.Tensor, opens: torch.Tensor, hittable: torch.Tensor) -> torch.Tensor:
        """OH's logits (..., 219) with those (..., 7, 7) that OpenAt succeeds and those (..., 3, 7, 7) that OM would.

        PlaceAt gets the log of how much likelier a target is to be hit than the mean one, so that all 147 together
        weigh as much as before; OpenAt, like an explorer's, the logit itself.
        """
        chance = nn.functional.logsigmoid(hittable.flatten(-3))
        likelier = chance.log_softmax(-1) + math.log(chance.shape[-1])
        cell_actions = self[Stage.OH].cell_actions
        return logits.index_add(-1, cell_actions, torch.cat([opens.flatten(-2), likelier], -1).to(logits.dtype))


def _by_cells(convolution: nn.Conv2d, grid: torch.Tensor) -> torch.Tensor:
    """DIR grids (..., G, 7, 7) to a convolution's outputs (..., C, 7, 7)."""
    return convolution(grid.flatten(0, -4)).unflatten(0, grid.shape[:-3]).to(grid.dtype)
