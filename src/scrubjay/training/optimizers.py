"""The optimizers of a run, and their learning rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.heads import ACTING_STAGES
from scrubjay.training.config import TrainConfig
from scrubjay.training.run import Progress, trainable_parameters
from scrubjay.training.shadow import ShadowClassifier

TOLERANCE, CHANGE, SMALLEST_RATE = 1.5, 1.2, 0.01
"""Adaptive learning rates: a KL divergence off its target by more than the tolerance changes the factor so much."""


def make_optimizers(
    agent: Agent, config: TrainConfig, shadow: ShadowClassifier | None = None
) -> dict[str, torch.optim.Adam]:
    """`play` for everything learned from play, `perspective`, and `dynamics`, which also trains the encoder; a
    navigation agent has `play` alone.

    A shadow has its own of the two that train the encoder.
    """
    layers = (layer for stage in ACTING_STAGES for layer in agent.heads[stage].output_layers)
    output_layers = trainable_parameters(*layers)
    full = config.agent.memory == "full"
    on_gpu = next(agent.parameters()).is_cuda
    apart = trainable_parameters(agent.dynamics, agent.perspective) if full else []
    others = {id(p) for p in (*apart, *output_layers)}
    played = [
        {"params": [p for p in trainable_parameters(agent) if id(p) not in others]},
        {"params": output_layers, "lr": config.head_lr_scale * config.learning_rate},
    ]

    def adam(parameters: Any, rate: float) -> torch.optim.Adam:
        # Fused, a step reads and writes weights and their statistics once, not a dozen times.
        return torch.optim.Adam(parameters, rate, config.betas, amsgrad=True, fused=on_gpu)

    optimizers = {"play": adam(played, config.learning_rate)}
    if full:
        replayed = trainable_parameters(agent.encoder, agent.dynamics)
        optimizers["perspective"] = adam(agent.perspective.parameters(), config.perspective_learning_rate)
        optimizers["dynamics"] = adam(replayed, config.dynamics_learning_rate)
    if shadow is not None:
        optimizers["class_play"] = adam(shadow.parameters(), config.learning_rate)
        optimizers["class_dynamics"] = adam(shadow.parameters(), config.dynamics_learning_rate)
    return optimizers


def set_learning_rates(
    optimizers: Mapping[str, torch.optim.Optimizer], config: TrainConfig, progress: Progress
) -> None:
    """Sets the learning rates of the next update.

    They depend on the run's progress alone, so a resumed run has the rates of an uninterrupted one.
    """
    linear = config.learning_rate_schedule == "linear"
    left = config.share_left(progress.update, progress.games)
    common = (left if linear else 1.0) * cooled(config, progress)
    adaptive = config.learning_rate_schedule == "adaptive"
    for name, optimizer in optimizers.items():
        # Perspective simulation changes no policy of E&M, OM or S, whose divergence adapts the others.
        factor = common * progress.rate if adaptive and name != "perspective" else common
        for group in optimizer.param_groups:
            group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor


def cooled(config: TrainConfig, progress: Progress) -> float:
    """The factor on all learning rates that falls to 0 at the end, 1 before."""
    left = config.share_left(progress.update, progress.games)
    return min(1.0, left / config.cooldown) if config.cooldown else 1.0


def adapt_rate(rate: float, kl: float, target: float) -> float:
    """The adaptive schedule's next factor, after an update with a KL divergence."""
    if kl > TOLERANCE * target:
        return max(rate / CHANGE, SMALLEST_RATE)
    return min(rate * CHANGE, 1.0) if kl < target / TOLERANCE else rate
