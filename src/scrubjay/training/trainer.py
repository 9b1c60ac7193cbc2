"""The training loop: collect a rollout, train on it, replay, log, save.

A run is divided into segments, from one checkpoint to the next. Every segment starts new games, with random numbers
that depend on the seed and the number of updates alone. A resumed run therefore equals an uninterrupted one.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from scrubjay import tree
from scrubjay.agent.agent import Agent
from scrubjay.agent.encoders import make_encoder
from scrubjay.agent.fuse import varying_shapes
from scrubjay.agent.normalization import commit_norms, running_norms
from scrubjay.envs.tasks import SearchEpisodes, Task
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSampler, MixedEpisodes
from scrubjay.placements.episodes import PlacementEpisodes
from scrubjay.sim.build import build_rooms
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.physics_pool import PhysicsProcesses
from scrubjay.sim.world import World
from scrubjay.training.actor_critic import Losses, Metrics, Weights, over_processes, prefixed, total_loss
from scrubjay.training.class_labels import CLASSES
from scrubjay.training.config import TrainConfig
from scrubjay.training.cuda_graphs import CudaGraphLearner
from scrubjay.training.displaced_hands import DisplacedHands
from scrubjay.training.distributed import Group
from scrubjay.training.dynamics_losses import WEIGHTS as DYNAMICS_WEIGHTS
from scrubjay.training.dynamics_losses import replay_losses
from scrubjay.training.episode_stats import EpisodeStats, EpisodicReturns, TrackedGame
from scrubjay.training.finite import FiniteCheck
from scrubjay.training.hidden_hands import HiddenHands
from scrubjay.training.hiding_buffer import HidingEpisodes, PerspectiveBatch, RecentGames
from scrubjay.training.hiding_learner import HidingLearner
from scrubjay.training.learner import ROLLOUT_STAGES, Learner
from scrubjay.training.manipulation_buffer import ManipulationBuffer
from scrubjay.training.metrics import MeanMetrics, merge_means, to_floats
from scrubjay.training.optimizers import adapt_rate, cooled, make_optimizers, set_learning_rates
from scrubjay.training.overlap import Background, FairLock
from scrubjay.training.replay import Replay, Triplets, sample_triplets
from scrubjay.training.rollout import Collector, Rollout
from scrubjay.training.run import Progress
from scrubjay.training.shadow import ShadowClassifier, labeled_images
from scrubjay.training.sharing import minibatches, process_config, share_replay, weight_of
from scrubjay.training.tasks import load_practice, load_task

Report = Callable[[dict[str, Any]], None]
"""Gets a row of metrics after every update, and a row of validation scores after every checkpoint."""
FEW_CORES, MAX_PROCESSES = 4, 16
"""On at most so many cores physics runs in threads; on more, in at most so many processes."""


class Trainer:
    """An agent, its optimizers, and its worlds."""

    def __init__(
        self,
        config: TrainConfig,
        device: str = "cpu",
        group: Group | None = None,
        folder: Path | None = None,
        pretrained: bool = True,
    ) -> None:
        """`folder` keeps the hiding spots made for seeking; without `pretrained` the encoder's weights come later."""
        self.device, self.group = device, group or Group()
        self.whole_config = config
        """The run's; `config` is this process's share of it."""
        self.config = config = self._own_config(config)
        # Shapes never change: it pays to search for the fastest kernels.
        torch.backends.cudnn.benchmark = device.startswith("cuda")
        torch.manual_seed(config.seed)
        self.agent = Agent(config.agent, make_encoder(config.agent, pretrained)).to(device)
        self.whole_games = config.task == "cache"
        # The manipulations of whole games are trained as whole episodes, which rollouts seldom hold.
        stages = {Stage.EM, Stage.S} if self.whole_games else set(ROLLOUT_STAGES)
        self.learner = Learner(self.agent, config.objective, stages)
        self.manipulation = Learner(self.agent, config.objective, {Stage.OM}, shared=False)
        self.manipulations: ManipulationBuffer | None = None
        self.stages: frozenset[int] | None = None
        """The stages that rollouts may have, where that differs from rollout to rollout."""
        if self.whole_games:
            self.stages = frozenset(Stage)
        elif any(config.practice):
            self.stages = frozenset({Stage.EM, Stage.OM})
        self.shadow: ShadowClassifier | None = None
        if config.shadow_classifier:
            self.shadow = ShadowClassifier(self.agent.encoder, config.agent, config.seed).to(device)
        self.shadow_means = MeanMetrics()
        self.hiding = HidingLearner(self.agent, config.hiding)
        self.optimizers = make_optimizers(self.agent, config, self.shadow)
        self.progress = Progress()
        # On GPUs each process has means of its own: its minibatches are large, and processes do not capture their
        # graphs, in which they would wait for each other, at the same steps.
        self.total = self.group.total if device == "cpu" and self.group.size > 1 else None
        self.weight = 1.0 if self.total else weight_of(self.whole_config, self.group.rank, self.group.size)
        self.graphs: dict[str, CudaGraphLearner] = {}
        """By what is learned; see `_step`."""
        self.finite = FiniteCheck()
        if config.overlap and self.group.size > 1:
            raise ValueError("overlap: only one process alone can learn while it collects")
        self.background = Background(device, FairLock()) if config.overlap else None
        self._waiting: Rollout | None = None
        """With `overlap`: collected, and learned from while the next is."""
        self._has_learned = self._has_simulated = False
        self.stats, self.episodes = EpisodeStats(), EpisodeStats()
        self.rooms: list[CompiledRoom] = build_rooms(list(config.scenes))
        self.task: Task = load_task(config.scenes, config, folder)
        self.practice = load_practice(config.scenes, config, folder)
        """The tasks of the other episodes, with their shares."""
        worlds = 2 if config.copies > 1 and device.startswith("cuda") else 1
        copies = [len(part) for part in np.array_split(np.arange(config.copies), worlds)]
        size = self.agent.config.image_size
        processes = physics_processes(config.task, self.group)
        self.physics = PhysicsProcesses(processes) if processes else None
        self.worlds = [World(self.rooms, count, size=size, device=device, physics=self.physics) for count in copies]
        self.replay = self._make_replay()

    def _own_config(self, config: TrainConfig) -> TrainConfig:
        """What this process plays and learns of a run."""
        return process_config(config, self.group.rank, self.group.size)

    def _make_replay(self) -> Replay | None:
        """An empty buffer, or None if nothing is replayed."""
        c = self.config
        if not c.replay_batches or not self.agent.encoder.has_skips:
            return None
        return Replay(
            c.agent.image_size, c.replay_size, self.device,
            max_age=c.replay_max_age, batch_size=c.replay_batch_size,
            classes=len(CLASSES) if c.shadow_classifier else 0,
        )  # fmt: skip

    def close(self) -> None:
        if self.background:
            self.background.close()
        for world in self.worlds:
            world.close()
        if self.physics:
            self.physics.close()

    def autocast(self, cached: bool = True) -> torch.autocast:
        """bfloat16 on a GPU; `cached`: weights are converted once, not for every use."""
        kind = self.device.split(":")[0]
        return torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda", cache_enabled=cached)

    def start_segment(self) -> tuple[Collector, Replay | None]:
        """New games, staggered, and the replay buffer, both seeded by the number of updates."""
        seeds = np.random.SeedSequence([self.config.seed, self.progress.update, self.group.rank]).generate_state(7)
        torch.manual_seed(int(seeds[0]))
        sampler = self._sampler(int(seeds[1]))
        limits, rotations = np.array(self.config.stage_limits), self.config.explore_reward_rotations
        span = (Stage.EM if self.whole_games else self.task.stage, self.task.stage)
        games = [
            TrackedGame(world, sampler, self.stats, limits, rotations, span, *self._hands(len(world), int(seed)))
            for world, seed in zip(self.worlds, seeds[5:], strict=False)
        ]
        self.returns = EpisodicReturns(sum(map(len, games)))
        ages = np.random.default_rng(seeds[4])
        for game in games:
            game.stagger(ages)
        whole = self.whole_games
        self.manipulations = ManipulationBuffer(self.agent, games) if whole else None
        self.recent_games = RecentGames(max(self.config.mental_games, self.config.hiding_minibatch))
        # Threads share the cache: with `overlap` collecting would read what learning's stream has yet to convert.
        autocast = partial(self.autocast, cached=self.background is None)
        collector = Collector(
            self.agent, games, int(seeds[2]), self.config.augment, autocast, hiding_value=whole, hiding=whole,
            cuda_graph=self.device.startswith("cuda"), record_frames=self.replay is not None,
            think_every=self.config.think_every, record_openable=self.config.objective.records_openable,
            record_hand=self.config.objective.hand > 0 and self.config.agent.hand_head,
            demonstrations=self.config.demonstration_share > 0,
            classes=self.shadow is not None, turn=self.background.turn if self.background else None,
        )  # fmt: skip
        if self.replay is not None:
            self.replay.rng = np.random.default_rng(int(seeds[3]))
        return collector, self.replay

    def restore_replay(self, states: Sequence[Mapping[str, torch.Tensor]]) -> None:
        """Restores the replay buffer from the states of all processes; ValueError if this one's does not fit.

        Another number of processes has other rooms each: it shares out the buffers anew.
        """
        rank, size, world = self.group.rank, self.group.size, self.worlds[0]
        if self.replay is None:
            return
        if len(states) == size:
            state = states[rank]
        else:
            state = share_replay(states, self.whole_config, rank, size, world.state.open.shape[1])
        if state:
            self.replay.restore(state, world, self.config.augment)

    def _sampler(self, seed: int) -> EpisodeSampler:
        """The task's episodes, and those that are practiced among them, or before; validation plays the task alone."""
        if not self.practice:
            return self._eased(self.task.sampler(seed))
        mixing, *seeds = map(int, np.random.SeedSequence(seed).generate_state(1 + len(self.practice)))
        tasks, shares = [task for task, _ in self.practice], [share for _, share in self.practice]
        samplers = [task.sampler(each) for task, each in zip((self.task, *tasks), (seed, *seeds), strict=True)]
        if self.progress.update < self.config.pretraining_updates:
            shares = [share / sum(shares) for share in shares]
        return MixedEpisodes([self._eased(each) for each in samplers], [1 - sum(shares), *shares], mixing)

    def _hands(self, games: int, seed: int) -> tuple[HiddenHands | None, DisplacedHands | None]:
        """Which manipulations do not see the object in the hand for a while, and which begin with it elsewhere."""
        hidden, displaced = self.config.hidden_share, self.config.displaced_share
        first, second = (np.random.default_rng(each) for each in (seed, [seed, 1]))
        return (
            HiddenHands(hidden, games, first) if hidden else None,
            DisplacedHands(displaced, second) if displaced else None,
        )

    def _eased(self, episodes: EpisodeSampler) -> EpisodeSampler:
        """The same with what only training has: demonstrations, and searches that begin near the object."""
        if isinstance(episodes, PlacementEpisodes):
            episodes.demonstrated = self.config.demonstration_share
        if isinstance(episodes, SearchEpisodes):
            episodes.in_given_spots.near = self.config.near_share
        return episodes

    def run(self, report: Report, stop: Callable[[], bool], save: Callable[[], None]) -> None:
        """Trains to the last update or game or until `stop()`; calls `save` at the end of each segment."""
        while not self._is_done() and self._all(not stop()):
            collector, replay = self.start_segment()
            due = self.config.next_checkpoint(self.progress.update)
            while self.progress.update < due and not self._is_done() and self._all(not stop()):
                report(self.update(collector, replay))
            self._learn_waiting(collector, replay)
            save()

    def _is_done(self) -> bool:
        return self.config.is_done(self.progress.update, self.progress.games)

    def update(self, collector: Collector, replay: Replay | None) -> dict[str, Any]:
        """Collects one rollout and trains on it; returns a row of metrics."""
        start = time.perf_counter()
        self._schedule_learning_rates()
        before = collector.steps
        losses: dict[str, float] = {}
        if self.background and self._waiting is not None:
            learn = partial(self._learn, self._waiting, collector, replay)
            if self._has_learned:
                self.background.start(learn)
            else:
                # Compiling and loading kernels meanwhile seems to invalidate graphs that collecting captures: this once
                # it waits.
                losses, self._has_learned = learn(), True
        rollout = collector.collect(self.config.unroll_length)
        collected = time.perf_counter()
        if self.background:
            losses = self.background.result() if self.background.is_running else losses
            self._waiting = rollout
        self._keep(rollout, collector, replay)
        if not self.background:
            losses = self._learn(rollout, collector, replay)
        now = time.perf_counter()
        steps = self.group.sum(collector.steps - before, self.device)
        self.returns.add(rollout, ROLLOUT_STAGES, self.episodes)
        self.progress = Progress(
            self.progress.update + 1,
            self.progress.steps + steps,
            self.progress.games + self.group.sum(self.stats.pop_games(), self.device),
            self.progress.seconds + now - start,
            self._next_rate(losses) if self.config.learning_rate_schedule == "adaptive" else self.progress.rate,
        )
        # Sums and counts, so that means are those of all processes' games; only the first process's row is logged.
        mine = (
            self.episodes.pop_sums(),
            {s.name.lower(): _sum(rollout.reward[rollout.observation.stage == s]) for s in Stage},
            {name: (value, 1) for name, value in losses.items() if value == value},
            self.stats.pop_sums(),
        )
        everyone = self.group.gather(mine)
        episodes, rewards, learned, play = zip(*(everyone if self.group.rank == 0 else [mine]), strict=True)
        return {
            "update": self.progress.update,
            "steps": self.progress.steps,
            "games": self.progress.games,
            "seconds": round(self.progress.seconds, 2),
            "memory_mib": memory_usage(self.device),
            "charts": merge_means(episodes)
            | self._learning_rates(losses)
            | {
                "processes": self.group.size,
                "SPS": round(steps / (now - start), 1),
                "collect_share": round((collected - start) / (now - start), 3),
            }
            | (
                {"replay_triplets": len(replay), "replay_uses": round(replay.mean_uses, 3)}
                if replay is not None
                else {}
            ),
            "reward": dict.fromkeys((s.name.lower() for s in Stage), None) | merge_means(rewards, digits=5),
            "losses": merge_means(learned) if self.group.size > 1 else losses,
            "play": merge_means(play),
        }

    def _keep(self, rollout: Rollout, collector: Collector, replay: Replay | None) -> None:
        """Keeps of a rollout what is learned from it later, or again."""
        if self.manipulations is not None:
            self.manipulations.add(rollout)
        if replay is not None:
            share = self.config.replay_group_share
            replay.add(sample_triplets(rollout, replay.rng, replay.wanted, share, collector.frames))

    def _learn(self, rollout: Rollout, collector: Collector, replay: Replay | None) -> dict[str, float]:
        """All optimizer steps that follow a rollout; mean losses and diagnostics."""
        with over_processes(self.total):
            metrics = self.train_rollout(rollout)
            if self.manipulations is not None:
                metrics |= self.train_manipulations(self.manipulations)
            if collector.hiding_buffers:
                metrics |= self.train_hiding(collector)
            if replay is not None:
                metrics |= self.train_dynamics(replay)
        self.finite.check()
        metrics |= self.shadow_means.means()
        self.shadow_means = MeanMetrics()
        return to_floats(metrics)

    def _learn_waiting(self, collector: Collector, replay: Replay | None) -> None:
        """Learns from the last rollout of a segment, whose games end here."""
        rollout, self._waiting = self._waiting, None
        if rollout is not None:
            self._learn(rollout, collector, replay)

    def _alone(self) -> AbstractContextManager:
        """While learning in the background: nothing is collected meanwhile."""
        return self.background.alone() if self.background and self.background.is_running else nullcontext()

    def _schedule_learning_rates(self) -> None:
        set_learning_rates(self.optimizers, self.config, self.progress)

    def _next_rate(self, losses: Mapping[str, float]) -> float:
        """The factor on learning rates after an update, by the mean of its stages' KL divergences."""
        divergences = [value for name, value in losses.items() if name.endswith("/approx_kl") and value == value]
        # All processes change alike.
        total = torch.tensor([sum(divergences), float(len(divergences))], device=self.device)
        self.group.average([total])
        divergence, count = total.tolist()
        # Cooling down, policies change less and less, and are not to be sped up again.
        if not count or cooled(self.config, self.progress) < 1:
            return self.progress.rate
        return adapt_rate(self.progress.rate, divergence / count, self.config.target_kl)

    def _learning_rates(self, losses: Mapping[str, float]) -> dict[str, float]:
        """Those of the optimizers that took steps in this update."""
        rates = {name: optimizer.param_groups[0]["lr"] for name, optimizer in self.optimizers.items()}
        others = {f"{name}/learning_rate": rate for name, rate in rates.items() if name != "play"}
        used = {name: rate for name, rate in others.items() if name.replace("learning_rate", "grad_norm") in losses}
        return {"learning_rate": rates["play"], **used}

    def train_rollout(self, rollout: Rollout) -> Metrics:
        """Optimizer steps on minibatches of the rollout's games; mean losses and diagnostics.

        Those of a stage are means over the minibatches that have its steps, and left out where none has.
        """
        count, mean = rollout.action.shape[1], MeanMetrics()
        # Games lie room by room: shuffled, every minibatch has many rooms.
        orders = [torch.randperm(count) for _ in range(self.config.epochs)]
        for games in [games for order in orders for games in self._minibatches(order)]:
            batch = rollout.games(games.to(rollout.action.device))
            occurred = {}
            if self.stages is not None:
                # Whatever stages occur, all minibatches have the same losses, and so the same graph.
                batch = replace(batch, stages=self.stages)
                occurred = {s.name.lower(): (batch.observation.stage == s).any() for s in ROLLOUT_STAGES}
            full = len(games) == min(self.config.minibatch_games, count)
            # Processes with more games weigh more.
            weights = {name: self.weight * weight for name, weight in self.learner.weights(batch).items()}
            losses, metrics, norm = self._step("rollouts", self.learner, weights, batch, full, self.agent)
            mean.add(losses | metrics | {"play/grad_norm": norm}, occurred)
            self._shadow_step("play", batch)
        absent = {s.name.lower() for s in ROLLOUT_STAGES if s not in rollout.stages}
        return {name: value for name, value in mean.means().items() if name.split("/")[0] not in absent}

    def _step(
        self,
        name: str,
        losses: Callable[[Any], tuple[Losses, Metrics]],
        weights: Weights,
        batch: Any,
        full: bool,
        committed: nn.Module,
        optimizer: str = "play",
    ) -> tuple[Losses, Metrics, torch.Tensor]:
        """A step of an optimizer: plain losses, diagnostics, and the gradient's norm before clipping.

        Commits the running statistics of a part of the agent. On a GPU, losses and gradients of `full` batches are one
        CUDA graph for each `name`, captured on the first batch; smaller ones run without.
        """
        if not (full and self.device.startswith("cuda")):
            with self.autocast():
                terms, metrics = losses(batch)
            norm = self._optimizer_step(optimizer, terms, weights, batch)
            self._commit_norms(committed)
            return terms, metrics, norm
        if name not in self.graphs or not self.graphs[name].fits(batch, weights):
            self.graphs.pop(name, None)  # Frees its memory.
            with self._alone():
                self.graphs[name] = CudaGraphLearner(self.agent, losses, weights, self.autocast, batch, committed)
        terms, metrics = self.graphs[name](batch)
        self.group.average_norms(running_norms(committed))
        self.group.average_gradients(self._parameters(optimizer))
        norm = self._clip_gradients(optimizer, terms, batch)
        self.optimizers[optimizer].step()
        return terms, metrics, norm

    def _minibatches(self, order: torch.Tensor) -> Sequence[torch.Tensor]:
        """Games of each minibatch: as many minibatches in all processes, even if their numbers of games differ."""
        if self.group.size == 1:
            return order.split(self.config.minibatch_games)
        return order.tensor_split(minibatches(self.whole_config, self.group.size))

    def train_manipulations(self, buffer: ManipulationBuffer) -> Metrics:
        """Optimizer steps of OM on the manipulations that have ended, in full minibatches; mean losses.

        As many passes over them as over rollouts.
        """
        count, mean = self.config.manipulation_minibatch, MeanMetrics()
        batches = [-self.group.max(-ready, self.device) for ready in buffer.ready(count)]
        for batch in buffer.minibatches(batches, count, self.config.epochs):
            weights = self.manipulation.weights(batch.rollout)
            # Only the returns are committed: as of OH, sequences are padded with steps that were never taken.
            name = f"manipulations of {len(batch.rollout)} steps"
            losses, metrics, norm = self._step(
                name, lambda each: self.manipulation(each.rollout), weights, batch, True, self.agent.heads
            )
            mean.add(losses | metrics | {"om/grad_norm": norm})
            self._shadow_step("play", batch.rollout)
        return mean.means()

    def train_hiding(self, collector: Collector) -> Metrics:
        """Optimizer steps of OH and PS on finished games, in full batches; mean losses and diagnostics."""
        finished_games, count, mean = collector.finished_games, self.config.hiding_minibatch, MeanMetrics()
        objective = self.config.hiding
        passes = self.config.epochs if objective.clip_coef else 1
        while self._all(len(finished_games) >= count):
            early = self.progress.games < objective.early
            # Mental seekers have buffers of their own, which collecting uses too.
            with self._alone(), varying_shapes(), self.autocast():
                games = finished_games.take(count)
                percentile = self.hiding.percentile(games.perspective, collector.generator)
                hidings = self.hiding.hiding_batch(games, percentile)
            size = -(-count // self.config.hiding_splits)
            # The first steps compile and load kernels: see `update`.
            with nullcontext() if self._has_simulated else self._alone():
                for some in torch.randperm(count).split(size):
                    mean.add(self._train_perspective(tree.index(games.perspective, some.to(percentile.device))))
                self.recent_games.add(games.perspective)
                for _ in range(self.config.mental_replays):
                    mean.add(self._train_perspective(self.recent_games.sample(size), again=True))
            self._has_simulated = True
            orders = [torch.randperm(count) for _ in range(passes)]
            for some in [some for order in orders for some in order.split(size)]:
                batch = tree.index(hidings, some.to(percentile.device))
                # Of OH only the returns are committed: its sequences are padded with steps that were never taken.
                hidden, metrics, norm = self._step(
                    "hidings",
                    partial(self.hiding.oh_losses, early=early),
                    objective.hiding_weights(early),
                    batch,
                    len(some) == size,
                    self.agent.heads,
                )
                mean.add(hidden | metrics | {"oh/grad_norm": norm})
                self._shadow_step("play", batch.hiding)
            self.stats.add("percentile", percentile.cpu().numpy())
        return mean.means()

    def _train_perspective(self, games: PerspectiveBatch, again: bool = False) -> Metrics:
        """A step of perspective simulation's optimizer; its losses. `again`: of the mental seeker alone."""
        weights = self.config.hiding.perspective_weights(again)
        with varying_shapes():
            with self.autocast():
                losses = self.hiding.ps_losses(games, again)
            norm = self._optimizer_step("perspective", losses, weights, games)
        return losses | {"perspective/grad_norm": norm}

    def _commit_norms(self, module: nn.Module) -> None:
        """Commits the last batch to the running statistics of a module, and averages them over processes."""
        commit_norms(module)
        self.group.average_norms(running_norms(module))

    def _all(self, ready: bool) -> bool:
        """Are all processes ready? Gradients are averaged over all, so all must take part."""
        return self.group.max(int(not ready), self.device) == 0

    def train_dynamics(self, replay: Replay) -> Metrics:
        """Optimizer steps on a few batches of visual dynamics replay; mean losses."""
        mean = MeanMetrics()
        for _ in range(self.config.replay_batches):
            batch = replay.next_batch()
            if not self._all(batch is not None) or batch is None:
                break
            # Visual dynamics has no running statistics to commit.
            losses, _, norm = self._step(
                "dynamics",
                partial(replay_losses, self.agent),
                DYNAMICS_WEIGHTS,
                batch,
                True,
                self.agent.dynamics,
                "dynamics",
            )
            mean.add(prefixed("dynamics", losses | {"grad_norm": norm}))
            self._shadow_step("dynamics", batch)
        return mean.means()

    def _shadow_step(self, kind: Literal["play", "dynamics"], batch: Rollout | HidingEpisodes | Triplets) -> None:
        """After each step of an optimizer of the agent's encoder: one of the shadow, if there is one, on its images.

        Not part of the agent's CUDA graphs: an encoder's kernels are few and large.
        """
        if self.shadow is None:
            return
        images, name = labeled_images(batch), f"class_{kind}"
        with self.autocast():
            losses = {"loss": self.shadow.loss(images)}
        norm = self._optimizer_step(name, losses, {"loss": 1.0}, images)
        self.shadow_means.add(prefixed(name, losses | {"grad_norm": norm}))

    def _optimizer_step(self, name: str, losses: Losses, weights: Weights, batch: object) -> torch.Tensor:
        """One step of an optimizer on the weighted sum of losses; the gradient's norm before clipping."""
        norm = self.backward(name, losses, weights, batch)
        self.optimizers[name].step()
        return norm

    def backward(self, name: str, losses: Losses, weights: Weights, batch: object) -> torch.Tensor:
        """Sets an optimizer's gradients, clipped; their norm before clipping. NotFiniteError holds the batch."""
        total, parameters = total_loss(losses, weights), self._parameters(name)
        self.optimizers[name].zero_grad(set_to_none=True)
        # Gradients of `torch.autograd.grad` need not lie in memory as their parameters do, which fused Adam asks for.
        total.backward(inputs=parameters)
        self.group.average_gradients(parameters)
        return self._clip_gradients(name, losses, batch)

    def _parameters(self, name: str) -> list[nn.Parameter]:
        """Those of an optimizer."""
        return [p for group in self.optimizers[name].param_groups for p in group["params"]]

    def _clip_gradients(self, name: str, losses: Losses, batch: object) -> torch.Tensor:
        """Clips gradients by their norm, which it returns. Neither that nor a loss may be other than finite."""
        parameters = [p for p in self._parameters(name) if p.grad is not None]
        norm = nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm or math.inf)
        self.finite.add(losses, norm, batch)
        return norm


def physics_processes(task: str, group: Group) -> int:
    """The number of physics processes; 0 for threads, also in E&M, which moves no objects."""
    local_processes = int(os.environ.get("LOCAL_WORLD_SIZE", group.size))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores //= local_processes
    # Two cores are left for this process and the GPU's driver.
    return 0 if task == "explore" or cores <= FEW_CORES else min(cores - 2, MAX_PROCESSES)


def memory_usage(device: str) -> dict[str, int]:
    """MiB in use by this process, and reserved on the GPU."""
    pages = Path("/proc/self/statm")
    host = int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0
    reserved = torch.cuda.memory_reserved(device) if device.startswith("cuda") else 0
    return {"host": host // 2**20, "gpu": reserved // 2**20}


def _sum(values: torch.Tensor) -> tuple[float, int]:
    """The sum, and the number of values."""
    return float(values.sum()), values.numel()
