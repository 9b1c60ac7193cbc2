"""Layers that a recurrent network applies at every step, with the gradients of their weights computed once.

Plain autograd computes a weight's gradient at each step and adds it up: for T steps, T small products and T passes over
the weight, in the products' precision. A `DeferredLayer` keeps the steps' inputs and output gradients instead, and
computes one large product when the backward pass has reached the first step.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch.nn import functional as F

Tensors = tuple[torch.Tensor, ...]


class Operation(Protocol):
    """A function that is linear in its input and in each of its weights."""

    def forward(self, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor: ...

    def input_gradient(self, gradient: torch.Tensor, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor: ...

    def weight_gradients(
        self, gradients: list[torch.Tensor], inputs: list[torch.Tensor], *weights: torch.Tensor
    ) -> Tensors:
        """The sums over all steps."""
        ...


class Linear:
    """x (B, n) times a weight (m, n), plus a bias (m,) if there is one."""

    def forward(self, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return F.linear(x, *weights)

    def input_gradient(self, gradient: torch.Tensor, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return gradient @ weights[0]

    def weight_gradients(
        self, gradients: list[torch.Tensor], inputs: list[torch.Tensor], *weights: torch.Tensor
    ) -> Tensors:
        gradient = torch.cat(gradients)
        weight = gradient.T @ torch.cat(inputs)
        return (weight,) if len(weights) == 1 else (weight, gradient.sum(0))


class Convolution:
    """A 3 x 3 convolution of x (B, n, H, W) with a weight (m, n, 3, 3) and a bias (m,), zero-padded."""

    def forward(self, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        weight, bias = weights
        return F.conv2d(x, weight, bias, padding=1)

    def input_gradient(self, gradient: torch.Tensor, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return self._backward(gradient, x, weights[0], [True, False, False])[0]

    def weight_gradients(
        self, gradients: list[torch.Tensor], inputs: list[torch.Tensor], *weights: torch.Tensor
    ) -> Tensors:
        _, weight, bias = self._backward(torch.cat(gradients), torch.cat(inputs), weights[0], [False, True, True])
        return weight, bias

    def _backward(self, gradient: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, wanted: list[bool]) -> Any:
        # Public functions compute one of the three at a time, and lose the memory format.
        bias_size, one = [len(weight)], [1, 1]
        return torch.ops.aten.convolution_backward(
            gradient, x, weight, bias_size, one, one, one, False, [0, 0], 1, wanted
        )


class Scores:
    """Scores (B, H, M) of queries (B, H, C) against values (B, M, C), which are the weight."""

    def forward(self, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return x @ weights[0].transpose(1, 2)

    def input_gradient(self, gradient: torch.Tensor, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return gradient @ weights[0]

    def weight_gradients(
        self, gradients: list[torch.Tensor], inputs: list[torch.Tensor], *weights: torch.Tensor
    ) -> Tensors:
        return (torch.cat(gradients, 1).transpose(1, 2) @ torch.cat(inputs, 1),)


class WeightedSum:
    """Sums (B, H, C) of values (B, M, C), which are the weight, weighted by x (B, H, M)."""

    def forward(self, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return x @ weights[0]

    def input_gradient(self, gradient: torch.Tensor, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return gradient @ weights[0].transpose(1, 2)

    def weight_gradients(
        self, gradients: list[torch.Tensor], inputs: list[torch.Tensor], *weights: torch.Tensor
    ) -> Tensors:
        return (torch.cat(inputs, 1).transpose(1, 2) @ torch.cat(gradients, 1),)


class _Tape:
    """What the backward pass has recorded of a layer's steps. Holds no tensor with a graph, so that nothing leaks."""

    def __init__(self, operation: Operation, weights: Tensors) -> None:
        self.operation, self.weights = operation, tuple(weight.detach() for weight in weights)
        self.inputs: list[torch.Tensor] = []
        self.gradients: list[torch.Tensor] = []


class _Weights(torch.autograd.Function):
    """Weights to a token that every step takes: so this runs backward after all steps have."""

    @staticmethod
    def forward(ctx: Any, tape: _Tape, *weights: torch.Tensor) -> torch.Tensor:
        ctx.tape = tape
        return weights[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        tape = ctx.tape
        gradients = tape.operation.weight_gradients(tape.gradients, tape.inputs, *tape.weights)
        tape.inputs, tape.gradients = [], []
        return None, *gradients


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, token: torch.Tensor, tape: _Tape) -> torch.Tensor:
        ctx.tape = tape
        ctx.save_for_backward(x)
        return tape.operation.forward(x, *tape.weights)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        tape, (x,), (gradient,) = ctx.tape, ctx.saved_tensors, gradients
        tape.inputs.append(x)
        tape.gradients.append(gradient)
        wanted = ctx.needs_input_grad[0]
        return tape.operation.input_gradient(gradient, x, *tape.weights) if wanted else None, None, None


class DeferredLayer:
    """An operation with its weights, to be applied at every step of one sequence."""

    def __init__(self, operation: Operation, *weights: torch.Tensor) -> None:
        self._operation, self._weights = operation, weights
        learning = torch.is_grad_enabled() and any(weight.requires_grad for weight in weights)
        # A compiler sees the whole sequence: it needs no tape, which it could not follow.
        self._tape = _Tape(operation, weights) if learning and not torch.compiler.is_compiling() else None
        self._token = _Weights.apply(self._tape, *weights) if self._tape else None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if self._tape is None:
            return self._operation.forward(x, *self._weights)
        return _Step.apply(x, self._token, self._tape)
