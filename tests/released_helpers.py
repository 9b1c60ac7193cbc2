"""A small agent, released into a folder that stands for the package's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from scrubjay.agent.agent import Agent, save_agent
from scrubjay.agent.config import SMALL, AgentConfig
from scrubjay.agent.released import DEFAULT, CardText, ResultTable, TrainingRun
from scrubjay.training.release import write_release

TEXT = CardText(
    title="A small agent",
    about="Untrained.",
    trained_on="Nothing.",
    training=(TrainingRun(command="scrubjay train demo", steps=0, gpu_minutes=0, commit="0" * 40),),
    results=(ResultTable(title="Found", columns=("player", "found"), rows=(("agent", 0.0), ("random", 0.5))),),
    licence="Apache-2.0",
)


def release_small(out: Path, name: str = DEFAULT, seed: int = 0, **changes) -> tuple[Agent, Path]:
    """An untrained agent of the small preset, and the folder of its release."""
    torch.manual_seed(seed)
    config: AgentConfig = replace(SMALL, **changes)
    agent = Agent(config).eval()
    for buffer_name, buffer in agent.named_buffers():
        if buffer_name.endswith(("mean", "variance")):
            buffer.uniform_(0.5, 1.5)
    save_agent(agent, out.with_name(f"{out.name}-{name}-weights"))
    return agent, write_release(out.with_name(f"{out.name}-{name}-weights"), TEXT, name, out)
