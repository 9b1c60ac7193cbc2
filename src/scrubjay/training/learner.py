"""The losses of a rollout: E&M, OM and S, from one pass of the agent over the sequence.

`Learner` is a module whose `forward` returns the losses, so that DistributedDataParallel can average its gradients.
"""

from __future__ import annotations

from collections.abc import Set

import torch
from pydantic import PositiveFloat
from pydantic.dataclasses import dataclass
from torch import nn

from scrubjay.agent.agent import Agent, AgentOutput
from scrubjay.agent.config import CHECKED, explain_errors
from scrubjay.game.actions import Stage, target_of
from scrubjay.training import losses
from scrubjay.training.actor_critic import (
    ActorCriticObjective,
    Losses,
    Metrics,
    Weight,
    Weights,
    compute_gae,
    prefixed,
)
from scrubjay.training.rollout import Rollout

ROLLOUT_STAGES = (Stage.EM, Stage.OM, Stage.S)
"""Stages trained from rollouts. OH is trained when the seeker has finished, and PS takes no actions."""


@explain_errors
@dataclass(frozen=True, config=CHECKED)
class Objective(ActorCriticObjective):
    """Hyperparameters and loss weights of E&M, OM and S. Defaults are the paper's, and ours where it names none."""

    self_prediction: Weight = 0.1
    """Weight of predicting the next image's representation, contrastively."""
    change: Weight = 0.1
    """Weight of localizing what changed between two images."""
    openable: Weight = 1.0
    """Weight of predicting where OpenAt succeeds, which is not in the paper; 0 does not compute it."""
    openable_everywhere: bool = False
    """That loss learns what the engine knows of all cells of every image, not only how tries of OpenAt ended."""
    open_closed: Weight = 0.0
    """E&M and S: weight of opening something wherever something closed is within reach; not in the paper."""
    hindsight: Weight = 0.1
    """OM: weight of imitating missed manipulations, relabeled with where the object landed."""
    opening: Weight = 0.01
    """OM: weight of opening the container that the target is inside."""
    attainable: Weight = 0.1
    """OM: weight of predicting whether the target can be hit."""
    hand: Weight = 0.0
    """OM: weight of knowing in which cell the object in the hand is, seen or not, if there is an `agent.hand_head`. Not
    in the paper."""
    demonstration: Weight = 1.0
    """OM: weight of imitating demonstrations, if there are any; see `demonstration_share`."""
    claiming: Weight = 0.1
    """S: weight of predicting whether ClaimVisible would succeed."""
    claim_odds: PositiveFloat = 1.0
    """S: weight, in that prediction, of steps at which a claim would succeed. With 1 claims become as likely as success
    is; with more they have so many times its odds: a false one costs a twentieth of what a find earns."""
    visible: Weight = 0.0
    """S: weight of seeing the object where it can be claimed, as if that were as likely as not; not in the paper."""
    imitation: Weight = 0.1
    """S: weight of imitating the first action of the shortest path in the mental map."""
    exploring: Weight = 0.0
    """S: weight of acting as E&M would until there was something to claim; not in the paper."""

    @property
    def records_openable(self) -> bool:
        """Do rollouts need to say where something can be opened?"""
        return (self.openable > 0 and self.openable_everywhere) or self.open_closed > 0

    def weights(self, stages: Set[int], shared: bool = True) -> Weights:
        """Loss name -> weight, of these stages' losses and of those that all stages share."""
        table = {"self_prediction": self.self_prediction, "change": self.change} if shared else {}
        for stage in ROLLOUT_STAGES:
            if stage in stages:
                table |= self.actor_critic_weights(stage.name.lower())
                if self.openable:
                    table[f"{stage.name.lower()}/openable"] = self.openable
                if self.open_closed and stage != Stage.OM:
                    table[f"{stage.name.lower()}/open_closed"] = self.open_closed
        if Stage.OM in stages:
            table["om/hindsight"] = self.hindsight
            table["om/opening"] = self.opening
            table["om/attainable"] = self.attainable
        if Stage.S in stages:
            table["s/claiming"] = self.claiming
            table["s/imitation"] = self.imitation
            if self.visible:
                table["s/visible"] = self.visible
            if self.exploring:
                table["s/exploring"] = self.exploring
        return table


class Learner(nn.Module):
    """An agent and its objective."""

    def __init__(
        self, agent: Agent, objective: Objective, stages: Set[int] = frozenset(ROLLOUT_STAGES), shared: bool = True
    ) -> None:
        """`stages`: those that are trained; `shared`: so are the losses that all stages share, on all steps."""
        super().__init__()
        self.agent, self.objective, self.stages, self.shared = agent, objective, frozenset(stages), shared

    def weights(self, rollout: Rollout) -> Weights:
        """Loss name -> weight of a rollout's losses."""
        table = self.objective.weights(self.stages & rollout.stages, self.shared)
        if Stage.OM in self.stages & rollout.stages:
            if rollout.imitated is not None:
                table["om/demonstration"] = self.objective.demonstration
            if rollout.held_cell is not None:
                table["om/hand"] = self.objective.hand
        return table

    def forward(self, rollout: Rollout) -> tuple[Losses, Metrics]:
        """Plain losses, one for each of `weights(rollout)`, and detached diagnostics.

        Those of a stage in `rollout.stages` without steps are 0: declared stages need not occur.
        """
        terms: Losses = {}
        if Stage.OM in self.stages & rollout.stages:
            step, terms = self._manipulation(rollout)
        else:
            step = self.agent.evaluate(rollout.state, rollout.observation, rollout.is_first, rollout.stages)
        acting, metrics = self._actor_critic(rollout, step)
        terms |= acting
        if self.shared:
            terms |= self._shared(rollout, step)
        if Stage.S in self.stages & rollout.stages:
            logits, seeking = step.decision.logits.float(), rollout.observation.stage == Stage.S
            terms["s/claiming"] = losses.claiming(logits, rollout.claimable, seeking, self.objective.claim_odds)
            terms["s/imitation"] = losses.imitation(logits, rollout.teacher_action, seeking)
            if self.objective.visible:
                terms["s/visible"] = losses.visible(step.decision.visible.float(), rollout.claimable, seeking)
            if self.objective.exploring:
                explorer = step.decision.exploring.float()
                terms["s/exploring"] = losses.exploring(logits, explorer, seeking & ~rollout.sighted)
        return terms, metrics

    def _actor_critic(self, rollout: Rollout, step: AgentOutput) -> tuple[Losses, Metrics]:
        """Each stage's actor and critic, and where it expects OpenAt to succeed."""
        o, stages = self.objective, rollout.observation.stage
        logits, values = step.decision.logits.float(), step.decision.value.float()
        truncated = rollout.truncated if o.bootstrap_time_limits else None
        advantages = compute_gae(
            rollout.reward, values.detach(), rollout.bootstrap_value, rollout.dones, o.gamma, o.gae_lambda, truncated
        )
        terms: Losses = {}
        metrics: Metrics = {}
        for stage in ROLLOUT_STAGES:
            if stage not in self.stages & rollout.stages:
                continue
            name, mask = stage.name.lower(), stages == stage
            # What the policy did not do says nothing about its advantages.
            its_own = mask if rollout.demonstrated is None else mask & ~rollout.demonstrated
            its_losses, its_metrics = o.stage_losses(
                self.agent.heads[stage].return_norm,
                logits,
                values,
                rollout.action,
                advantages,
                its_own,
                rollout.log_probs,
            )
            if o.openable:
                its_losses["openable"] = losses.openable(
                    step.decision.openable.float(),
                    rollout.action,
                    rollout.success,
                    mask,
                    rollout.openable if o.openable_everywhere else None,
                )
            if o.open_closed and stage != Stage.OM:
                assert rollout.openable is not None
                its_losses["open_closed"] = losses.open_closed(logits, rollout.openable, mask)
            its_metrics["open_at_prob"] = losses.open_at_probability(logits, mask)
            terms |= prefixed(name, its_losses)
            metrics |= prefixed(name, its_metrics)
        return terms, metrics

    def _shared(self, rollout: Rollout, step: AgentOutput) -> Losses:
        """Self-prediction and change localization: sums over the stages with actions of the means over their steps."""
        shape = rollout.action.shape
        episode = episode_ids(rollout.observation.stage, rollout.is_first)
        masks = [rollout.observation.stage == stage for stage in sorted(rollout.stages - {Stage.PS})]
        recognized = self.agent.project_sir(step.encoded.sir).unflatten(0, shape)
        expected = self.agent.predict_sir(step.dirs.flat[:-1], rollout.action[:-1])
        terms = {"self_prediction": losses.self_prediction(recognized, expected, episode, *(m[:-1] for m in masks))}
        if step.encoded.skips:
            first = step.encoded.skips[0].detach().unflatten(0, shape)
            changed = losses.changed_cells(first[:-1], first[1:])
            follows = episode[1:] == episode[:-1]
            terms["change"] = losses.change_localization(
                step.dirs.change[1:].float(), changed, *(m[1:] & follows for m in masks)
            )
        else:
            terms["change"] = _zero(recognized)  # An encoder without a first block of its own sees no changes.
        return terms

    def _manipulation(self, rollout: Rollout) -> tuple[AgentOutput, Losses]:
        """The agent's step, and OM's own losses: hindsight, opening before placing in, and attainable targets."""
        o, observation, games = self.objective, rollout.observation, rollout.action.shape[1]
        mask = observation.stage == Stage.OM
        ids = episode_ids(observation.stage, rollout.is_first, rollout.state.stage)
        ends = episode_ends(mask, rollout.dones)
        landed, hit = at_episode_end(rollout.landed, ends), at_episode_end(rollout.hit, ends) & (ends >= 0)
        whole = mask & (ends >= 0) & (ids > 0)
        missed = whole & (landed >= 0) & ~hit
        # Hindsight: the same images, with the target where the object landed, evaluated in the same pass as more games.
        other = relabel_targets(observation.target, torch.where(missed, landed, -1)) if o.hindsight else None
        both = self.agent.evaluate(rollout.state, observation, rollout.is_first, rollout.stages, other)
        step, again = both.games(slice(games)), both.decision.logits[:, games:].float()
        logits, hittable = step.decision.logits.float(), step.decision.hittable.float()
        opened = opened_before(rollout.opened, ids)
        its_own = mask if rollout.demonstrated is None else mask & ~rollout.demonstrated
        terms = {
            "om/opening": losses.opening(logits, observation.target, opened, mask),
            "om/attainable": losses.attainable(hittable, observation.target, hit, its_own & (ends >= 0)),
            "om/hindsight": losses.hindsight(again, rollout.action, missed, mask) if o.hindsight else _zero(logits),
        }
        if rollout.held_cell is not None:
            terms["om/hand"] = losses.hand(step.decision.hand.float(), rollout.held_cell, mask)
        if rollout.imitated is not None:
            terms["om/demonstration"] = losses.demonstration(logits, rollout.action, mask & rollout.imitated)
        return step, terms


def _zero(like: torch.Tensor) -> torch.Tensor:
    """A loss that is not computed."""
    return torch.zeros((), device=like.device)


def episode_ids(stage: torch.Tensor, is_first: torch.Tensor, before: torch.Tensor | None = None) -> torch.Tensor:
    """Ids (T, B) of the steps' episodes: a new one where a game or a stage begins.

    0 is the episode that began before the sequence; at its first step a stage begins only if `before` (B,), the stage
    of the step before, is known.
    """
    new = is_first.clone()
    new[1:] |= stage[1:] != stage[:-1]
    if before is not None:
        new[0] |= stage[0] != before
    return new.long().cumsum(0)


def episode_ends(mask: torch.Tensor, dones: torch.Tensor) -> torch.Tensor:
    """For the steps in `mask` (T, B), the last step of their episode; -1 if that is after the sequence."""
    steps = torch.arange(len(dones), device=dones.device)[:, None]
    ends = torch.where(dones & mask, steps, len(dones))
    nearest = ends.flip(0).cummin(0).values.flip(0)
    return torch.where(mask & (nearest < len(dones)), nearest, -1)


def at_episode_end(values: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Values (T, B) at the last steps `ends` (T, B) of the steps' episodes; undefined where ends == -1."""
    return values.gather(0, ends.clamp(min=0))


def opened_before(opened: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Steps (T, B) before which their episode `ids` (T, B) opened something within the sequence."""
    count = opened.long().cumsum(0) - opened.long()
    first = torch.cat([torch.ones_like(opened[:1]), ids[1:] != ids[:-1]])
    before = torch.where(first, count, 0).cummax(0).values
    return count > before


def relabel_targets(target: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Targets (T, B, 3), replaced where target indices (T, B) are not -1."""
    return torch.where((index >= 0)[..., None], placement_targets(index), target)


def placement_targets(index: torch.Tensor) -> torch.Tensor:
    """Modality, row and column (..., 3) of target indices (...,); undefined where an index is -1."""
    return torch.stack(target_of(index), -1)
