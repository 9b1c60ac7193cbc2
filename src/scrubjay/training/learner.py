"""What is learned from a rollout: every loss of E&M, OM and S, by name, on one pass of the agent over the sequence.

It is a module whose `forward` gives the losses, so that gradients can be averaged over processes by PyTorch's own
DistributedDataParallel.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from scrubjay.agent.agent import Agent, Step
from scrubjay.game.actions import Stage, target_of
from scrubjay.training import losses
from scrubjay.training.actor_critic import ActorCritic, Losses, actor_critic, compute_gae
from scrubjay.training.rollout import Rollout

LEARNED = (Stage.EM, Stage.OM, Stage.S)
"""Stages that are learned as sequences; OH's short episodes wait for the seeker, and PS is not one of actions."""


@dataclass(frozen=True)
class Objective(ActorCritic):
    """The numbers of the losses; the defaults are the paper's, and ours where it names none."""

    self_prediction: float = 0.1
    change: float = 0.1
    openable: float = 1.0
    hindsight: float = 0.1
    opening: float = 0.01
    attainable: float = 0.1
    claiming: float = 0.1
    imitation: float = 0.1


class Learner(nn.Module):
    """An agent and what it is to learn."""

    def __init__(self, agent: Agent, objective: Objective) -> None:
        super().__init__()
        self.agent, self.objective = agent, objective

    def forward(self, rollout: Rollout) -> Losses:
        """The losses of a rollout, weighted: their sum is what is made smaller."""
        found: Losses = {}
        if Stage.OM in rollout.stages:
            said, found = self._manipulating(rollout)
        else:
            said = self.agent.evaluate(rollout.state, rollout.observation, rollout.begins, rollout.stages)
        found |= self._acting(rollout, said)
        found |= self._shared(rollout, said)
        if Stage.S in rollout.stages:
            o, logits, searching = self.objective, said.decision.logits.float(), rollout.observation.stage == Stage.S
            found["s_claiming"] = o.claiming * losses.claiming(logits, rollout.claimable, searching)
            found["s_imitation"] = o.imitation * losses.imitation(logits, rollout.toward, searching)
        return found

    def _acting(self, rollout: Rollout, said: Step) -> Losses:
        """Actor and critic of each stage, and what it knows of OpenAt."""
        o, stage = self.objective, rollout.observation.stage
        logits, value = said.decision.logits.float(), said.decision.value.float()
        ahead = compute_gae(rollout.reward, value.detach(), rollout.following, rollout.ended, o.gamma, o.tau)
        target = ahead + value.detach()
        found: Losses = {}
        for which in LEARNED:
            if which not in rollout.stages:
                continue
            chosen, returns = stage == which, self.agent.heads.of(which).returns
            returns.watch(target[..., None], chosen)
            parts = actor_critic(
                logits, value, rollout.action, ahead, target, chosen, o.entropy, rollout.log_probability, o.clip,
                o.normalized, returns.deviation,
            )  # fmt: skip
            parts["openable"] = o.openable * losses.openable(
                said.decision.openable.float(), rollout.action, rollout.success, chosen
            )
            found |= {f"{which.name.lower()}_{name}": loss for name, loss in parts.items()}
        return found

    def _shared(self, rollout: Rollout, said: Step) -> Losses:
        """Self-prediction and the localization of changes."""
        o, lead = self.objective, rollout.action.shape
        episode = episodes(rollout.observation.stage, rollout.begins)
        chosen = rollout.observation.stage != Stage.PS
        recognized = self.agent.recognized(said.encoded.sir).unflatten(0, lead)
        expected = self.agent.expected(said.dirs.flat[:-1], rollout.action[:-1])
        found = {
            "self_prediction": o.self_prediction * losses.self_prediction(recognized, expected, episode, chosen[:-1])
        }
        if said.encoded.skips:
            first = said.encoded.skips[0].detach().unflatten(0, lead)
            changed = losses.changed_cells(first[:-1], first[1:])
            follows = chosen[1:] & (episode[1:] == episode[:-1])
            change = losses.change_localization(said.dirs.change[1:].float(), changed, follows)
            found["change"] = o.change * change
        return found

    def _manipulating(self, rollout: Rollout) -> tuple[Step, Losses]:
        """What the agent said, and OM's own losses: hindsight, opening before placing in, and what is attainable."""
        o, observation, games = self.objective, rollout.observation, rollout.action.shape[1]
        chosen = observation.stage == Stage.OM
        ends = ends_of(chosen, rollout.ended)
        landed, hit = at_end(rollout.landed, ends), at_end(rollout.hit, ends) & (ends >= 0)
        whole = chosen & (ends >= 0) & begun_within(observation.stage, rollout.begins)
        missed = whole & (landed >= 0) & ~hit
        # As if what happened had been asked for: the same images, with another target.
        other = relabeled(observation.target, torch.where(missed, landed, -1)) if o.hindsight else None
        both = self.agent.evaluate(rollout.state, observation, rollout.begins, rollout.stages, other)
        said, again = both.games(slice(games)), both.decision.logits[:, games:].float()
        logits, hittable = said.decision.logits.float(), said.decision.hittable.float()
        opened = opened_before(rollout.opened, episodes(observation.stage, rollout.begins))
        found = {
            "om_opening": o.opening * losses.opening(logits, observation.target, opened, chosen),
            "om_attainable": o.attainable * losses.attainable(hittable, observation.target, hit, chosen & (ends >= 0)),
        }
        if o.hindsight:
            found["om_hindsight"] = o.hindsight * losses.hindsight(again, rollout.action, missed, chosen)
        return said, found


def episodes(stage: torch.Tensor, begins: torch.Tensor) -> torch.Tensor:
    """Numbers (T, B) of the episodes that steps belong to: a new one where a game or a stage begins."""
    new = begins.clone()
    new[1:] |= stage[1:] != stage[:-1]
    return new.long().cumsum(0)


def begun_within(stage: torch.Tensor, begins: torch.Tensor) -> torch.Tensor:
    """Steps (T, B) whose episode began in the sequence, and not before it."""
    number = episodes(stage, begins)
    return (number > number[0]) | begins[0]


def ends_of(chosen: torch.Tensor, ended: torch.Tensor) -> torch.Tensor:
    """For chosen steps (T, B), the step at which their episode ends; -1 if that is after the sequence."""
    steps = torch.arange(len(ended), device=ended.device)[:, None]
    later = torch.where(ended & chosen, steps, len(ended))
    nearest = later.flip(0).cummin(0).values.flip(0)
    return torch.where(chosen & (nearest < len(ended)), nearest, -1)


def at_end(values: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """What values (T, B) are at the ends (T, B) of the steps' episodes; of no meaning where there is none."""
    return values.gather(0, ends.clamp(min=0))


def opened_before(opened: torch.Tensor, episode: torch.Tensor) -> torch.Tensor:
    """Steps (T, B) before which something had been opened in their episode, as far as the sequence tells."""
    count = opened.long().cumsum(0) - opened.long()
    first = torch.cat([torch.ones_like(opened[:1]), episode[1:] != episode[:-1]])
    before = torch.where(first, count, 0).cummax(0).values
    return count > before


def relabeled(target: torch.Tensor, spot: torch.Tensor) -> torch.Tensor:
    """Targets (T, B, 3), replaced where target indices (T, B) are not -1."""
    return torch.where((spot >= 0)[..., None], targets_of(spot), target)


def targets_of(spot: torch.Tensor) -> torch.Tensor:
    """Modality, row and column (..., 3) of target indices (...,); undefined where an index is -1."""
    return torch.stack(target_of(spot), -1)
