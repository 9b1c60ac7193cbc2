"""The losses of finished games: OH's actor and critic with their auxiliary losses, and those of PS.

Games are trained on a few updates after their hiding, when the seeker has finished: the map is as it was recorded
then, and the networks read it as they are now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from pydantic import NonNegativeInt
from pydantic.dataclasses import dataclass as checked_dataclass

from scrubjay import tree
from scrubjay.agent.agent import Agent, AgentOutput, explored_maps
from scrubjay.agent.config import CHECKED, explain_errors
from scrubjay.agent.memory import MemoryState
from scrubjay.agent.mental_seeker import NO_SEEKER_ACTION, SEEKER_CLAIM, Rollouts, SeekerPrediction
from scrubjay.agent.metric_map import MapState
from scrubjay.agent.perspective import ExploredMaps
from scrubjay.agent.sampling import sample_categorical
from scrubjay.game import actions, rewards
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.training import losses, perspective_losses
from scrubjay.training.actor_critic import (
    ActorCriticObjective,
    Discount,
    Losses,
    Metrics,
    Weight,
    Weights,
    compute_gae,
    log_prob,
    mean_and_variance,
    mean_where,
    prefixed,
)
from scrubjay.training.hiding_buffer import (
    FinishedBatch,
    HidingEpisodes,
    PerspectiveBatch,
    SeekingEpisodes,
    place_at_table,
    seeker_action_ids,
)
from scrubjay.training.learner import placement_targets

READY = actions.action_index("ReadyForSeeker")
TRAJECTORIES = 100
"""Mental rollouts that rank a seeker's steps."""
GAMES_AT_ONCE = 16
"""Games whose 100 imagined maps are computed at once: it limits the memory of the convolutions."""


@explain_errors
@checked_dataclass(frozen=True, config=CHECKED)
class HidingObjective(ActorCriticObjective):
    """Hyperparameters and loss weights of OH and PS. Defaults are the paper's, and ours where it names none."""

    gamma: Discount = 0.8
    """Discount factor of the rewards."""
    early: NonNegativeInt = 5000
    """Games after which the losses against collapse are dropped."""
    modality: Weight = 0.1
    """OH: weight of the hinge against collapse to one placement modality; only in early games."""
    spatial: Weight = 0.1
    """OH: weight of the cross entropy against spatial collapse of PlaceAt; only in early games."""
    recall: Weight = 0.1
    """OH: weight of recalling the last PlaceAt tried, and of recalling where the object landed."""
    attainable: Weight = 0.1
    """OH: weight of predicting whether a PlaceAt succeeds."""
    closing: Weight = 0.01
    """OH: weight of closing the container that the object was placed in."""
    outcome: Weight = 1.0
    """PS: weight of predicting the outcome of hiding at the chosen place."""
    ranking: Weight = 1.0
    """PS: weight of ranking hiding places by the lengths of mental searches."""
    mental: Weight = 1.0
    """PS: weight of each of the mental seeker's losses: policy, success and claim."""
    center_percentile: bool = False
    """OH: hiders earn how much the percentile exceeds the mean of those who placed their objects. Mental seekers slower
    than real ones give everybody a low percentile, and then those earn most who place nothing. Not in the paper."""

    def hiding_weights(self, early: bool) -> Weights:
        """Loss name -> weight of OH's losses; `early` in training with those against collapse."""
        table = self.actor_critic_weights("oh") | {
            "oh/recall_tried": self.recall,
            "oh/recall_landed": self.recall,
            "oh/attainable": self.attainable,
            "oh/closing": self.closing,
        }
        return table | {"oh/modality": self.modality, "oh/spatial": self.spatial} if early else table

    def perspective_weights(self, again: bool = False) -> Weights:
        """Loss name -> weight of PS's losses; `again`: of those of games that were learned from before."""
        mental = {f"ps/mental_{name}": self.mental for name in ("policy", "success", "claim")}
        return mental if again else {"ps/outcome": self.outcome, "ps/ranking": self.ranking} | mental


@dataclass(frozen=True)
class HidingBatch:
    """OH of n games, with its rewards, which are computed on the host."""

    hiding: HidingEpisodes
    metric_map: MapState
    """At the start of OH."""
    reward: torch.Tensor
    """(n, T)."""
    log_probs: torch.Tensor
    """(n, T): of the actions, under the policy that learning starts from; undefined in padding."""

    def __len__(self) -> int:
        return len(self.reward)


class HidingLearner:
    """An agent and its objective of hiding."""

    def __init__(self, agent: Agent, objective: HidingObjective) -> None:
        self.agent, self.objective = agent, objective

    def hiding_batch(self, games: FinishedBatch, percentile: torch.Tensor) -> HidingBatch:
        """OH of n finished games, given the seekers' percentiles (n,); waits for the device."""
        hid = games.hiding
        if self.objective.center_percentile:
            placed = (hid.success & (hid.place_at >= 0)).any(1)
            percentile = percentile - mean_and_variance(percentile, placed)[0].to(percentile)
        batch = HidingBatch(hid, games.metric_map, hiding_rewards(hid, percentile), hid.log_probs)
        return replace(batch, log_probs=self.log_probs(batch)) if self.objective.clip_coef else batch

    @torch.no_grad()
    def log_probs(self, games: HidingBatch) -> torch.Tensor:
        """Log-probabilities (n, T) of OH's actions under the policy as it is now.

        The seeker's search lies between hiding and learning, hundreds of optimizer steps: clipped against the policy
        that hid, most steps would be out of range before anything was learned from them.
        """
        # Compiling for a few batches would take longer than it saves.
        with torch.compiler.set_stance("force_eager"):
            parts = [tree.index(games, slice(n, n + GAMES_AT_ONCE)) for n in range(0, len(games), GAMES_AT_ONCE)]
            return torch.cat(
                [log_prob(self._play(part).decision.logits.float(), part.hiding.action.T).T for part in parts]
            )

    def _play(self, games: HidingBatch) -> AgentOutput:
        """The agent in OH's steps, (T, n)."""
        observation = tree.map(lambda tensor: tensor.transpose(0, 1), games.hiding.observation)
        return self.agent.evaluate(self._initial_state(games), observation, torch.zeros_like(observation.last_success))

    def oh_losses(self, games: HidingBatch, early: bool) -> tuple[Losses, Metrics]:
        """Plain losses of OH, one for each of `hiding_weights(early)`, and diagnostics."""
        o, hid = self.objective, games.hiding
        step = self._play(games)
        logits, values = step.decision.logits.float(), step.decision.value.float()
        mask, action = hid.mask.T, hid.action.T
        reward, dones = games.reward.T, mask & ~_has_next(mask)
        truncated = out_of_time(hid).T if o.bootstrap_time_limits else None
        advantages = compute_gae(
            reward, values.detach(), torch.zeros_like(values[0]), dones, o.gamma, o.gae_lambda, truncated
        )
        parts, metrics = o.stage_losses(
            self.agent.heads[Stage.OH].return_norm, logits, values, action, advantages, mask, games.log_probs.T,
            hid.log_probs.T,
        )  # fmt: skip
        metrics["open_at_prob"] = losses.open_at_probability(logits, mask)
        metrics["target_prob"] = mean_where(hid.hit_probability.T, hid.manipulated.T)
        tried, landed = recall_targets(hid)
        recalled = self.agent.recall_placements(step.dirs.flat).float()
        hittable, place_at = step.decision.hittable.float(), hid.place_at.T
        terms = prefixed("oh", parts) | {
            "oh/recall_tried": losses.recall(recalled[..., 0, :], tried.T, mask),
            "oh/recall_landed": losses.recall(recalled[..., 1, :], landed.T, mask),
            "oh/attainable": losses.attainable(hittable, placement_targets(place_at), hid.hit.T, hid.manipulated.T),
            "oh/closing": losses.closing(logits, container_left_open(hid).T, mask),
        }
        if early:
            terms["oh/modality"] = losses.modality_collapse(logits, mask)
            terms["oh/spatial"] = losses.spatial_collapse(logits, hittable, mask)
        return terms, prefixed("oh", metrics)

    def ps_losses(self, games: PerspectiveBatch, again: bool = False) -> Losses:
        """Plain losses of PS: outcomes of hiding, the ranking of places, the mental seeker; `again`: the last alone."""
        simulation = self.agent.perspective
        explored, origin = explored_maps(games.metric_map.entries)
        survey = simulation.encode_maps(explored)
        place = self._place_losses(games, survey) if not again else {}
        maps = self._imagined_maps(games, explored, survey)
        return place | prefixed("ps", self._mental_losses(games.seeking, maps, origin))

    def _place_losses(self, games: PerspectiveBatch, survey: torch.Tensor) -> Losses:
        """Of P and V at the places that were considered, on maps M^1 (n, h, w, C)."""
        choice, number = games.choice, torch.arange(len(games), device=survey.device)
        p, v = (scores.float() for scores in self.agent.perspective.evaluate_places(survey, choice.places))
        values = v.gather(-1, choice.outcomes).flatten(1)
        real = choice.valid[..., None].expand_as(choice.outcomes).flatten(1)
        every = torch.ones_like(games.seeking.found)
        return {
            "ps/outcome": perspective_losses.outcome(p[number, choice.chosen], games.outcome, every),
            "ps/ranking": perspective_losses.ranking(values, choice.mean_steps.flatten(1), real),
        }

    def _mental_losses(self, seeking: SeekingEpisodes, maps: torch.Tensor, origin: torch.Tensor) -> Losses:
        """Of the mental seeker along the real ones' paths, on maps M^e (n, h, w, C); see `predict_seeker`."""
        output = self.predict_seeker(seeking, maps, origin)
        longest = len(output.policy)
        action, policy = seeker_action_ids(seeking.action).T[:longest], seeking.policy.transpose(0, 1)[:longest]
        return perspective_losses.mental(
            output.policy.float(), output.success.float(), policy.float(), action, seeking.success.T[:longest],
            seeking.claimable.T[:longest], seeking.mask.T[:longest], SEEKER_CLAIM,
        )  # fmt: skip

    def predict_seeker(self, seeking: SeekingEpisodes, maps: torch.Tensor, origin: torch.Tensor) -> SeekerPrediction:
        """What the mental seeker expects along real seekers' paths, on maps (n, h, w, C) whose first cells are at
        (n, 2); cut to the longest search."""
        longest = int(seeking.steps.max())  # The host waits for the device here, once.
        last = _shift(seeker_action_ids(seeking.action).T[:longest], NO_SEEKER_ACTION)
        done = _shift(seeking.success.T[:longest], False)
        poses = seeker_map_poses(seeking, origin).transpose(0, 1)[:longest]
        return self.agent.perspective.seeker.predict(maps, poses, last, done)

    @torch.no_grad()
    def percentile(self, games: PerspectiveBatch, generator: torch.Generator | None = None) -> torch.Tensor:
        """Percentiles (n,), from -1 to 1, of the seekers' steps among those of mental seekers.

        The mental seekers search for objects hidden at the same place; what the hider does there is sampled from P.
        So the choice of the place cancels out, and a better hiding at that place earns more.
        """
        seeking = games.seeking
        found, steps = seeking.found.cpu().numpy(), seeking.steps.cpu().numpy()
        # Rollouts end when the last real seeker has found its object: every longer one is longer than all of these.
        limit = int(steps[found].max(initial=1))
        mental = self._rollouts_at_place(games, limit, generator)
        lengths = rewards.seeker_steps(mental.found[:, :, 0].cpu().numpy(), mental.steps[:, :, 0].cpu().numpy())
        percentile = rewards.oh_percentile(lengths, rewards.seeker_steps(found, steps))
        return torch.from_numpy(percentile).float().to(seeking.steps.device)

    def _rollouts_at_place(self, games: PerspectiveBatch, limit: int, generator: torch.Generator | None) -> Rollouts:
        """100 mental seekers (n, 100, 1) per game, each after an outcome sampled at the place chosen in PS."""
        simulation, place = self.agent.perspective, games.choice.place[:, None]
        explored, _ = explored_maps(games.metric_map.entries)
        survey = simulation.encode_maps(explored)
        p, _ = simulation.evaluate_places(survey, place)
        outcomes = sample_categorical(p.float().expand(-1, TRAJECTORIES, -1), generator)[:, None]
        parts = zip(*(whole.split(GAMES_AT_ONCE) for whole in (survey, explored.inside, place, outcomes)), strict=True)
        maps = torch.cat([simulation.imagine(*part) for part in parts])
        shape = (limit, len(games), TRAJECTORIES, 1, 2)
        uniforms = torch.rand(shape, device=maps.device, generator=generator)
        return simulation.seeker.simulate(maps, explored.floor, explored.start, uniforms)

    def _imagined_maps(self, games: PerspectiveBatch, explored: ExploredMaps, survey: torch.Tensor) -> torch.Tensor:
        """M^e (n, h, w, C) of the outcomes of hiding, at the hiders' places."""
        place, outcome = games.choice.place[:, None], games.outcome[:, None, None]
        return self.agent.perspective.imagine(survey, explored.inside, place, outcome)[:, 0]

    def _initial_state(self, games: FinishedBatch | HidingBatch) -> MemoryState:
        """The hiders' state at the start of OH: the map alone, because every stage starts with empty states."""
        empty = self.agent.memory.initial_state(len(games), capacity=1)
        return MemoryState(empty.recurrent, empty.suspended, torch.full_like(empty.stage, Stage.PS), games.metric_map)


def hiding_rewards(hiding: HidingEpisodes, percentile: torch.Tensor) -> torch.Tensor:
    """OH's rewards (n, T), given the seekers' percentiles (n,)."""
    action, success, opened, mask = (
        tensor.cpu().numpy() for tensor in (hiding.action, hiding.success, hiding.opened, hiding.mask)
    )
    place_at = (actions.PLACE_AT[action] != NOTHING) & mask
    ready = (actions.READY[action] != NOTHING) & mask
    placed = success & place_at
    terms = rewards.oh_terms(
        success=success,
        open_at=(actions.OPEN_CELL[action] != NOTHING) & mask,
        place_at=place_at,
        ready=ready,
        new_opened=opened,
        placed_before=np.cumsum(placed, 1) > placed,
        probability=hiding.hit_probability.double().cpu().numpy(),
        final=rewards.oh_final(success=success, place_at=place_at, ready=ready),
        percentile=percentile.double().cpu().numpy()[:, None],
    )
    reward = np.where(mask, rewards.total(terms), 0.0).astype(np.float32)
    return torch.from_numpy(reward).to(hiding.action.device)


def out_of_time(hiding: HidingEpisodes) -> torch.Tensor:
    """Steps (n, T) with which OH's step limit alone ended the episode; a last ReadyForSeeker that succeeds ends it."""
    limit = hiding.action.shape[1]
    last = torch.arange(limit, device=hiding.action.device) == limit - 1
    return hiding.mask & last & ~(hiding.success & (hiding.action == READY))


def recall_targets(hiding: HidingEpisodes) -> tuple[torch.Tensor, torch.Tensor]:
    """Target indices (n, T) before each step: of the last PlaceAt tried, and of where the object last landed.

    -1 if nothing was tried, and if the object landed out of view or is in the hand.
    """
    place_at, step = hiding.place_at, torch.arange(hiding.action.shape[1], device=hiding.action.device)
    landed = hiding.observation.landed
    # The end of a manipulation is observed at the next step; the table has an entry for NO_SEEKER_ACTION too.
    landed_at = _pad(place_at_table(landed.device), NOTHING)[landed]

    def last_step(mask: torch.Tensor) -> torch.Tensor:
        """The last step in `mask` before each step, or -1."""
        return _pad(torch.where(mask, step, NOTHING).cummax(1).values[:, :-1], NOTHING, front=True)

    tried, lay = last_step(place_at >= 0), last_step(hiding.manipulated)
    return (
        torch.where(tried >= 0, place_at.gather(1, tried.clamp(min=0)), NOTHING),
        torch.where(lay >= 0, landed_at.gather(1, (lay + 1).clamp(max=len(step) - 1)), NOTHING),
    )


def container_left_open(hiding: HidingEpisodes) -> torch.Tensor:
    """Steps (n, T) after the object was placed into a container, until CloseObjects succeeds."""
    place_at = hiding.place_at
    contained = actions.target_of(place_at)[0] == actions.MODALITIES.index("contained in")
    placed = hiding.success & (place_at >= 0) & contained
    inside = placed.cumsum(1) - placed.long() > 0
    closed = inside & hiding.success & (hiding.action == losses.CLOSE)
    return inside & (closed.cumsum(1) - closed.long() == 0)


def seeker_map_poses(seeking: SeekingEpisodes, origin: torch.Tensor) -> torch.Tensor:
    """The seekers' places (n, T, 4) as row, column, quarter and standing, on maps whose first cells are at (n, 2)."""
    right, ahead, quarter, standing = seeking.place.long().unbind(-1)
    return torch.stack([origin[:, 1:] - ahead, right - origin[:, :1], quarter, standing], -1)


def _has_next(mask: torch.Tensor) -> torch.Tensor:
    """Steps (T, n) whose next step is in `mask` too."""
    return torch.cat([mask[1:], torch.zeros_like(mask[:1])])


def _shift(values: torch.Tensor, first: int | bool) -> torch.Tensor:
    """Values (T, n) of the step before; `first` at the first step."""
    return torch.cat([torch.full_like(values[:1], first), values[:-1]])


def _pad(values: torch.Tensor, value: int, front: bool = False) -> torch.Tensor:
    """One more value along the last axis, at the end or in front."""
    return torch.nn.functional.pad(values, (int(front), int(not front)), value=value)
