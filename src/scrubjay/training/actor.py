"""An agent's steps in the games of one world. On a GPU a step is recorded once and then launched as a whole.

A step is some hundred small kernels, and launching them one by one takes the CPU longer than they take the GPU. Shapes
are always the same, so a CUDA graph can hold them. It reads and writes tensors of its own: what goes in is copied, and
what comes out is overwritten by the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent, AgentOutput
from scrubjay.agent.memory import MemoryState
from scrubjay.game.observation import Observation
from scrubjay.training.augmentation import Augmentation

TRIES = 3
"""Steps before recording: kernels are compiled and chosen meanwhile."""


class Acting:
    """What an agent makes of B games, step after step, and what it remembers of them."""

    def __init__(
        self,
        agent: Agent,
        games: int,
        half: Callable[[], torch.autocast],
        augmentation: Augmentation | None = None,
        recorded: bool = False,
    ) -> None:
        """`half` makes the context that networks run in; images go through the augmentation first."""
        self.agent, self.half, self.augmentation, self.recorded = agent, half, augmentation, recorded
        self.state = agent.initial_state(games)
        self._recording: Recording | None = None

    def __call__(
        self, observation: Observation, begins: torch.Tensor, remember: bool = True
    ) -> tuple[Observation, AgentOutput]:
        """The observation with its image augmented, and what the agent says; without `remember` nothing is kept of it.

        If recorded, the step is good until the next one; the observation's tensors are for keeps either way.
        """
        if not self.recorded:
            seen, said = self._step(self.state, observation, begins)
            if remember:
                self.state = said.state
            return seen, said
        if self._recording is None:
            self._recording = Recording(self._step, self.state, observation, begins)
            self.state = self._recording.inputs[0]
        seen, said = self._recording(observation=observation, begins=begins)
        if remember:
            tree.copy_(self.state, said.state)
        return replace(observation, image=seen.image.clone()), said

    def remembered(self) -> MemoryState:
        """What the agent remembers now, as it will stay."""
        return tree.map(torch.clone, self.state) if self.recorded else self.state

    def _step(
        self, state: MemoryState, observation: Observation, begins: torch.Tensor
    ) -> tuple[Observation, AgentOutput]:
        if self.augmentation is not None:
            observation = replace(observation, image=self.augmentation(observation.image))
        with self.half():
            return observation, self.agent.act(state, observation, begins)


class Recording:
    """A step's kernels, and the tensors that they read and write."""

    def __init__(
        self,
        step: Callable[[MemoryState, Observation, torch.Tensor], tuple[Observation, AgentOutput]],
        state: MemoryState,
        observation: Observation,
        begins: torch.Tensor,
    ) -> None:
        self.inputs = tree.map(torch.clone, (state, observation, begins))
        # Not on the default stream, which cannot be recorded; and on a stream of its own, for what is multiplied on one
        # stream shares scratch memory, and steps of two worlds run at the same time.
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(TRIES):
                step(*self.inputs)
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=aside):
            self.outputs = step(*self.inputs)

    def __call__(self, observation: Observation, begins: torch.Tensor) -> tuple[Observation, AgentOutput]:
        """The recorded step of other observations."""
        tree.copy_(self.inputs[1], observation)
        self.inputs[2].copy_(begins)
        self.graph.replay()
        return self.outputs
