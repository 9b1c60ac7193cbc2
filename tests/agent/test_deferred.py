"""Deferred layers have the outputs and gradients of plain ones."""

import gc
import weakref

import pytest
import torch
from torch.nn import functional as F

from scrubjay.agent.deferred import Convolution, DeferredLayer, Linear, Scores, WeightedSum

STEPS = 4


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def leaf(*shape: int) -> torch.Tensor:
    return numbers(*shape).requires_grad_()


CASES = {
    "linear": (Linear(), (5, 3), [(3, 3), (3,)], F.linear),
    "linear without bias": (Linear(), (5, 3), [(3, 3)], F.linear),
    "convolution": (Convolution(), (2, 3, 4, 4), [(3, 3, 3, 3), (3,)], lambda x, w, b: F.conv2d(x, w, b, padding=1)),
    "scores": (Scores(), (2, 4, 4), [(2, 4, 4)], lambda x, v: torch.einsum("bhc,bmc->bhm", x, v)),
    "weighted sum": (WeightedSum(), (2, 4, 4), [(2, 4, 4)], lambda x, v: torch.einsum("bhm,bmc->bhc", x, v)),
}


def recur(apply, x: torch.Tensor) -> torch.Tensor:
    """A recurrent network of one layer: all steps' outputs matter, and each depends on those before."""
    outputs = []
    for step in range(STEPS):
        x = torch.tanh(apply(x) + 0.1 * step)
        outputs.append(x)
    return torch.stack(outputs)


@pytest.mark.parametrize("name", CASES)
def test_a_recurrent_network_of_deferred_layers_has_the_gradients_of_plain_ones(name):
    operation, shape, weight_shapes, plain = CASES[name]
    torch.manual_seed(0)
    x, weights = leaf(*shape), [leaf(*size) for size in weight_shapes]
    scale = numbers(STEPS, *shape)
    expected = recur(lambda x: plain(x, *weights), x)
    gradients = torch.autograd.grad((expected * scale).sum(), [x, *weights])
    actual = recur(DeferredLayer(operation, *weights), x)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(torch.autograd.grad((actual * scale).sum(), [x, *weights]), gradients)


def test_without_gradients_nothing_is_recorded():
    x, weight = numbers(2, 3), leaf(3, 3)
    with torch.no_grad():
        assert not recur(DeferredLayer(Linear(), weight), x).requires_grad


def test_frozen_weights_pass_gradients_to_their_inputs():
    x, weight = leaf(2, 3), numbers(3, 3)
    layer = DeferredLayer(Linear(), weight)
    expected = torch.autograd.grad(recur(lambda x: F.linear(x, weight), x).sum(), x)
    torch.testing.assert_close(torch.autograd.grad(recur(layer, x).sum(), x), expected)


def test_a_sequence_that_is_dropped_frees_its_memory():
    gc.disable()
    try:
        x, weight = leaf(2, 3), leaf(3, 3)
        layer = DeferredLayer(Linear(), weight)
        output, dead = recur(layer, x), weakref.ref(layer._tape)
        del layer, output
        assert dead() is None
    finally:
        gc.enable()
