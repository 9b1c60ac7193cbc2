"""The agent's steps in the games of one world; on a GPU, one CUDA graph.

A step is about a hundred small kernels, and launching them takes the CPU longer than they run. Shapes never change, so
a CUDA graph can hold them. Its inputs and outputs are static tensors: inputs are copied in, and the next step
overwrites the outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent, AgentOutput
from scrubjay.agent.memory import MemoryState
from scrubjay.agent.mental_graphs import CAPTURE_MODE
from scrubjay.game.observation import Observation
from scrubjay.training.augmentation import Augmentation

WARMUP_STEPS = 3
"""Steps before a graph is captured: kernels are compiled and chosen meanwhile."""
COLLECTING_PRIORITY = -1
"""Of CUDA streams that collect, before those that learn: the host waits for every step that is collected, and for few
that are learned from."""


class Actor:
    """An agent in B games, with its recurrent state."""

    def __init__(
        self,
        agent: Agent,
        games: int,
        autocast: Callable[[], torch.autocast],
        augmentation: Augmentation | None = None,
        cuda_graph: bool = False,
    ) -> None:
        """`autocast` makes the context that networks run in; images are augmented first."""
        self.agent, self.autocast, self.augmentation, self.cuda_graph = agent, autocast, augmentation, cuda_graph
        self.state = agent.initial_state(games)
        self._graph: StepGraph | None = None

    def __call__(
        self, observation: Observation, is_first: torch.Tensor, update_state: bool = True
    ) -> tuple[Observation, AgentOutput]:
        """The observation with its image augmented, and the agent's step; `update_state=False` only peeks.

        With a CUDA graph, the next call overwrites the step's tensors. The observation's are safe to keep.
        """
        if not self.cuda_graph:
            augmented, step = self._step(self.state, observation, is_first)
            if update_state:
                self.state = step.state
            return augmented, step
        if self._graph is None:
            self._graph = StepGraph(self._step, self.state, observation, is_first)
            self.state = self._graph.inputs[0]
        augmented, step = self._graph(observation, is_first)
        if update_state:
            tree.copy_(self.state, step.state)
        return replace(observation, image=augmented.image.clone()), step

    def state_snapshot(self) -> MemoryState:
        """The recurrent state now, safe to keep."""
        return tree.map(torch.clone, self.state) if self.cuda_graph else self.state

    def _step(
        self, state: MemoryState, observation: Observation, is_first: torch.Tensor
    ) -> tuple[Observation, AgentOutput]:
        if self.augmentation is not None:
            observation = replace(observation, image=self.augmentation(observation.image))
        with self.autocast():
            return observation, self.agent.act(state, observation, is_first)


class StepGraph:
    """A step captured as a CUDA graph, with its static inputs and outputs."""

    def __init__(
        self,
        step: Callable[[MemoryState, Observation, torch.Tensor], tuple[Observation, AgentOutput]],
        state: MemoryState,
        observation: Observation,
        is_first: torch.Tensor,
    ) -> None:
        self.inputs = tree.map(torch.clone, (state, observation, is_first))
        # The default stream cannot be captured. Each graph has a stream of its own, because matrix products on one
        # stream share a workspace, and the steps of two worlds overlap.
        stream = torch.cuda.Stream(priority=COLLECTING_PRIORITY)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARMUP_STEPS):
                step(*self.inputs)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream, capture_error_mode=CAPTURE_MODE):
            self.outputs = step(*self.inputs)

    def __call__(self, observation: Observation, is_first: torch.Tensor) -> tuple[Observation, AgentOutput]:
        """Replays the step on another observation."""
        tree.copy_(self.inputs[1], observation)
        self.inputs[2].copy_(is_first)
        self.graph.replay()
        return self.outputs
