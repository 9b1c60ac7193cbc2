"""What is learned from games that are over: OH's actor and critic with their own losses, and those of PS.

Games are learned from a few updates after their hiding, when the seeker has finished: the kept map is as it was made
then, and the networks read it as they are now.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent, explored_maps
from scrubjay.agent.memory import MemoryState
from scrubjay.agent.mental_seeker import NO_SEEKER_ACTION, SEEKER_CLAIM
from scrubjay.agent.perspective import MAX_SEEKER_STEPS, ExploredMaps
from scrubjay.game import actions, rewards
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.training import losses, perspective_losses
from scrubjay.training.actor_critic import (
    ActorCriticObjective,
    Losses,
    Metrics,
    Weights,
    actor_critic_losses,
    compute_gae,
    prefixed,
)
from scrubjay.training.hiding_buffer import SPOT, Finished, Hiding, Seeking, seeker_numbers
from scrubjay.training.learner import targets_of

TRAJECTORIES = 100
"""Mental rollouts that a seeker's steps are compared with."""


@dataclass(frozen=True)
class HidingObjective(ActorCriticObjective):
    """Hyperparameters and loss weights of OH and PS. Defaults are the paper's, and ours where it names none."""

    gamma: float = 0.8
    early: int = 5000
    """Games after which the losses against collapse are dropped."""
    modality: float = 0.1
    spatial: float = 0.1
    recall: float = 0.1
    attainable: float = 0.1
    closing: float = 0.01
    outcome: float = 1.0
    ranking: float = 1.0
    mental: float = 1.0

    def hiding_weights(self, early: bool) -> Weights:
        """Loss name -> weight of OH's losses; `early` in training with those against collapse."""
        table = self.actor_critic_weights("oh") | {
            "oh/recall_tried": self.recall,
            "oh/recall_landed": self.recall,
            "oh/attainable": self.attainable,
            "oh/closing": self.closing,
        }
        return table | {"oh/modality": self.modality, "oh/spatial": self.spatial} if early else table

    def perspective_weights(self) -> Weights:
        """Loss name -> weight of PS's losses."""
        return {
            "ps/outcome": self.outcome,
            "ps/ranking": self.ranking,
            "ps/mental_policy": self.mental,
            "ps/mental_success": self.mental,
            "ps/mental_claim": self.mental,
        }


class HidingLearner:
    """An agent and its objective of hiding."""

    def __init__(self, agent: Agent, objective: HidingObjective) -> None:
        self.agent, self.objective = agent, objective

    def hiding(self, games: Finished, percentile: torch.Tensor, early: bool) -> tuple[Losses, Metrics]:
        """Plain losses of OH, one for each of `hiding_weights(early)`, and diagnostics; percentiles are (n,)."""
        o, hid = self.objective, games.hiding
        observation = tree.map(lambda tensor: tensor.transpose(0, 1), hid.observation)
        begins = torch.zeros_like(observation.last_success)
        step = self.agent.evaluate(self._before(games), observation, begins)
        logits, values = step.decision.logits.float(), step.decision.value.float()
        within, action = hid.within.T, hid.action.T
        rewards, dones = earned(hid, percentile).T, within & ~_later(within)
        advantages = compute_gae(rewards, values.detach(), torch.zeros_like(values[0]), dones, o.gamma, o.gae_lambda)
        returns, norm = advantages + values.detach(), self.agent.heads[Stage.OH].return_norm
        norm.update(returns[..., None], within)
        parts, metrics = actor_critic_losses(
            logits, values, action, advantages, returns, within, hid.log_probability.T, o.clip_coef,
            o.normalize_advantages, norm.std,
        )  # fmt: skip
        tried, landed = to_recall(hid)
        recalled = self.agent.recall_placements(step.dirs.flat).float()
        hittable, spot = step.decision.hittable.float(), hid.spot.T
        found = prefixed("oh", parts) | {
            "oh/recall_tried": losses.recall(recalled[..., 0, :], tried.T, within),
            "oh/recall_landed": losses.recall(recalled[..., 1, :], landed.T, within),
            "oh/attainable": losses.attainable(hittable, targets_of(spot), hid.success.T, spot >= 0),
            "oh/closing": losses.closing(logits, left_open(hid).T, within),
        }
        if early:
            found["oh/modality"] = losses.modality_collapse(logits, within)
            found["oh/spatial"] = losses.spatial_collapse(logits, hittable, within)
        return found, prefixed("oh", metrics)

    def perspective(self, games: Finished) -> Losses:
        """Plain losses of PS: outcomes of hiding, the ranking of places, the mental seeker."""
        thought, seeking, simulation = games.thought, games.seeking, self.agent.perspective
        explored, origin = explored_maps(games.metric_map.entries)
        survey, number = simulation.encode_maps(explored), torch.arange(len(games), device=origin.device)
        p, v = (scores.float() for scores in simulation.evaluate_places(survey, thought.places))
        happened = games.hiding.outcome
        values = v.gather(-1, thought.outcomes).flatten(1)
        real = thought.valid[..., None].expand_as(thought.outcomes).flatten(1)
        every = torch.ones_like(seeking.found)
        found = {
            "ps/outcome": perspective_losses.outcome(p[number, thought.chosen], happened, every),
            "ps/ranking": perspective_losses.ranking(values, thought.mean_steps.flatten(1), real),
        }
        maps = self._imagined(games, explored, survey)
        # Sequences are only as long as the longest search: here the host waits for the device, once.
        most = int(seeking.steps.max())
        action = seeker_numbers(seeking.action).T[:most]
        last, done = _shifted(action, NO_SEEKER_ACTION), _shifted(seeking.success.T[:most], False)
        output = simulation.seeker.predict(maps, places_on_maps(seeking, origin).transpose(0, 1)[:most], last, done)
        policy = seeking.policy.transpose(0, 1)[:most].float()
        mental = perspective_losses.mental(
            output.policy.float(), output.success.float(), policy, action, seeking.success.T[:most],
            seeking.claimable.T[:most], seeking.within.T[:most], SEEKER_CLAIM,
        )  # fmt: skip
        return found | prefixed("ps", mental)

    @torch.no_grad()
    def percentile(self, games: Finished, generator: torch.Generator | None = None) -> torch.Tensor:
        """From -1 to 1 (n,): how the seekers' steps compare with those of mental seekers after the same hiding.

        Mental seekers give up after 100 steps, so that a real one who takes as many counts as having taken longest.
        """
        explored, _ = explored_maps(games.metric_map.entries)
        maps = self._imagined(games, explored, self.agent.perspective.encode_maps(explored))
        shape = (MAX_SEEKER_STEPS, len(games), 1, TRAJECTORIES, 2)
        uniforms = torch.rand(shape, device=maps.device, generator=generator)
        found = self.agent.perspective.seeker.simulate(maps[:, None], explored.floor, explored.start, uniforms)
        lengths, sought = found.steps[:, 0].cpu().numpy(), games.seeking
        steps = rewards.seeker_steps(sought.found.cpu().numpy(), sought.steps.cpu().numpy())
        return torch.from_numpy(rewards.oh_percentile(lengths, steps)).float().to(maps.device)

    def _imagined(self, games: Finished, explored: ExploredMaps, survey: torch.Tensor) -> torch.Tensor:
        """M^e (n, h, w, C) of what hiding came to, where the hider stood."""
        place, happened = games.thought.place[:, None], games.hiding.outcome[:, None, None]
        return self.agent.perspective.imagine(survey, explored.inside, place, happened)[:, 0]

    def _before(self, games: Finished) -> MemoryState:
        """What the hiders remembered when OH began: the map alone, for every stage begins with empty states."""
        empty = self.agent.memory.initial_state(len(games), capacity=1)
        return MemoryState(empty.recurrent, empty.suspended, torch.full_like(empty.stage, Stage.PS), games.metric_map)


def earned(hid: Hiding, percentile: torch.Tensor) -> torch.Tensor:
    """OH's rewards (n, T), all of them, given the seekers' percentiles (n,)."""
    number, success, opened, within = (
        tensor.cpu().numpy() for tensor in (hid.action, hid.success, hid.opened, hid.within)
    )
    place_at = (actions.PLACE_AT[number] != NOTHING) & within
    ready = (actions.READY[number] != NOTHING) & within
    placed = success & place_at
    terms = rewards.oh_terms(
        success=success,
        open_at=(actions.OPEN_CELL[number] != NOTHING) & within,
        place_at=place_at,
        ready=ready,
        new_opened=opened,
        placed_before=np.cumsum(placed, 1) > placed,
        probability=hid.probability.double().cpu().numpy(),
        final=rewards.oh_final(success=success, place_at=place_at, ready=ready),
        percentile=percentile.double().cpu().numpy()[:, None],
    )
    paid = np.where(within, rewards.total(terms), 0.0).astype(np.float32)
    return torch.from_numpy(paid).to(hid.action.device)


def to_recall(hid: Hiding) -> tuple[torch.Tensor, torch.Tensor]:
    """Spots (n, T) at each step: of the PlaceAt tried last, and where the last manipulation left the object.

    -1 where nothing was tried, and where the object was left out of sight or in the hand.
    """
    spot, step = hid.spot, torch.arange(hid.action.shape[1], device=hid.action.device)
    # A PlaceAt after one that succeeded fails at once: it was tried, and moved nothing.
    placed = (hid.success & (spot >= 0)).long()
    moved = (spot >= 0) & (placed.cumsum(1) - placed == 0)
    landed = hid.observation.landed
    # The end of a manipulation is seen at the next step; the table has a place for no action too.
    where = _append(SPOT.to(landed.device), NOTHING)[landed]

    def last(chosen: torch.Tensor) -> torch.Tensor:
        """The last chosen step before each step, or -1."""
        return _append(torch.where(chosen, step, NOTHING).cummax(1).values[:, :-1], NOTHING, front=True)

    tried, lay = last(spot >= 0), last(moved)
    return (
        torch.where(tried >= 0, spot.gather(1, tried.clamp(min=0)), NOTHING),
        torch.where(lay >= 0, where.gather(1, (lay + 1).clamp(max=len(step) - 1)), NOTHING),
    )


def left_open(hid: Hiding) -> torch.Tensor:
    """Steps (n, T) after the object was placed into something, until CloseObjects has succeeded."""
    into = hid.success & (hid.spot >= 0) & (actions.target_of(hid.spot)[0] == actions.MODALITIES.index("contained in"))
    inside = into.cumsum(1) - into.long() > 0
    closed = inside & hid.success & (hid.action == losses.CLOSE)
    return inside & (closed.cumsum(1) - closed.long() == 0)


def places_on_maps(seeking: Seeking, origin: torch.Tensor) -> torch.Tensor:
    """The seekers' places (n, T, 4) as row, column, quarter and standing, on maps whose first cells are at (n, 2)."""
    right, ahead, quarter, standing = seeking.place.long().unbind(-1)
    return torch.stack([origin[:, 1:] - ahead, right - origin[:, :1], quarter, standing], -1)


def _later(within: torch.Tensor) -> torch.Tensor:
    """Steps (T, n) after which there is another."""
    return torch.cat([within[1:], torch.zeros_like(within[:1])])


def _shifted(values: torch.Tensor, first: int | bool) -> torch.Tensor:
    """What the step before had, (T, n), and something else at the first."""
    return torch.cat([torch.full_like(values[:1], first), values[:-1]])


def _append(values: torch.Tensor, more: int, front: bool = False) -> torch.Tensor:
    """One more number along the last axis, behind or in front."""
    return torch.nn.functional.pad(values, (int(front), int(not front)), value=more)
