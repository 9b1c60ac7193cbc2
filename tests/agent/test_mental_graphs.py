"""Mental seekers in padded batches of static size, as on a GPU, against the plain simulation."""

import copy
import pickle
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from scrubjay.agent.config import PAPER, SMALL
from scrubjay.agent.mental_graphs import COARSEST, SMALLEST, SeekerGraphs, padded_size
from scrubjay.agent.mental_seeker import SEEKER_CLAIM, MentalSeeker, Rollouts

CONFIG = replace(SMALL, mental_channels=8, mental_lstm=12, action_embedding=4)
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")


def seekers(device: str, config=CONFIG, dtype=torch.float64) -> tuple[MentalSeeker, MentalSeeker]:
    """The same seeker twice: with the plain simulation, and with graphs, which on a CPU are run step by step."""
    torch.manual_seed(0)
    plain = MentalSeeker(config).to(device, dtype)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.mul_(2)
        plain.policy.bias[SEEKER_CLAIM] += 2
    graphs = copy.deepcopy(plain)
    plain._graphs = SimpleNamespace(simulate=MentalSeeker._simulate)
    if device == "cpu":
        graphs._simulate = partial(graphs._graphs.simulate, graphs)
    return plain, graphs


def inputs(games: int, side: int, limit: int, seed: int, device: str, mental: MentalSeeker, repeats: int = 50) -> tuple:
    """Maps, floor, start and uniforms of games with three maps each."""
    rng, dtype = torch.Generator().manual_seed(seed), mental.policy.weight.dtype
    maps = torch.randn(games, 3, side, side + 1, mental.channels, generator=rng, dtype=dtype)
    floor = torch.rand(games, side, side + 1, generator=rng) < 0.8
    floor[:, 1, 1] = True
    start = torch.tensor([[1, 1, 0, 1]] * games)
    uniforms = torch.rand(limit, games, 3, repeats, 2, generator=rng, dtype=dtype)
    return tuple(tensor.to(device) for tensor in (maps, floor, start, uniforms))


def assert_equal(actual: Rollouts, expected: Rollouts) -> None:
    for name in ("steps", "found", "paths"):
        assert torch.equal(getattr(actual, name), getattr(expected, name)), name


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_padded_batches_give_the_trajectories_of_the_plain_simulation(device):
    """Numbers of games, windows and limits change from call to call, and so do the weights, in place."""
    plain, graphs = seekers(device)
    for seed, (games, side, limit) in enumerate([(2, 4, 25), (5, 3, 30), (4, 7, 7), (1, 3, 40), (5, 3, 1)]):
        known = inputs(games, side, limit, seed, device, plain)
        expected = plain.simulate(*known)
        assert_equal(graphs.simulate(*known), expected)
        if limit > 10:
            assert expected.found.any() and not expected.found.all(), "the test needs both"
        with torch.no_grad():
            for mental in (plain, graphs):
                mental.policy.weight *= 0.9
    sizes = set(graphs._graphs._chunks)
    assert sizes == {512, 1024}, "750 trajectories begin in the larger batch and end in the smaller one"


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_other_precisions_and_reallocated_weights_start_new_graphs(device):
    plain, graphs = seekers(device)
    known = inputs(1, 4, 20, 0, device, plain)
    assert_equal(graphs.simulate(*known), plain.simulate(*known))
    before = graphs._graphs._chunks
    graphs.simulate(*known)
    assert graphs._graphs._chunks is before
    graphs.float(), plain.float()
    known = tuple(tensor.float() if tensor.dtype == torch.float64 else tensor for tensor in known)
    actual, expected = graphs.simulate(*known), plain.simulate(*known)
    assert graphs._graphs._chunks is not before
    assert (actual.steps == expected.steps).float().mean() > 0.95, "but for rounding"


def test_copies_begin_without_graphs():
    _, graphs = seekers("cpu")
    known = inputs(1, 3, 5, 0, "cpu", graphs)
    graphs.simulate(*known)
    kept = graphs._graphs
    assert kept._chunks
    for other in (copy.deepcopy(kept), copy.copy(kept), pickle.loads(pickle.dumps(kept))):
        assert isinstance(other, SeekerGraphs) and not other._chunks


def test_sizes_are_powers_of_two_and_then_multiples():
    assert padded_size(1) == padded_size(SMALLEST) == SMALLEST and padded_size(SMALLEST + 1) == 2 * SMALLEST
    assert padded_size(COARSEST) == COARSEST and padded_size(COARSEST + 1) == 2 * COARSEST
    assert padded_size(96_000) == 98_304
    assert all(count <= padded_size(count) < 2 * max(count, SMALLEST) for count in range(1, 40_000, 7))


@GPU
def test_graphs_see_current_weights_in_bfloat16():
    """With the paper's sizes, as in training: weights change between calls, in one autocast context as in several."""
    plain, graphs = seekers("cuda", PAPER, torch.float32)
    known = inputs(20, 12, 100, 0, "cuda", plain, repeats=100)
    means = []
    for turn in range(3):
        with torch.autocast("cuda", torch.bfloat16):
            maps = known[0].bfloat16()
            for _ in range(2):
                actual, expected = (mental.simulate(maps, *known[1:]) for mental in (graphs, plain))
                torch.testing.assert_close(
                    actual.steps.float().mean(), expected.steps.float().mean(), rtol=0.03, atol=0.5
                )
                assert (actual.steps == expected.steps).float().mean() > 0.5
            # What follows in the same context must not read what the graph has converted.
            last = torch.full((1, 20), 3, device="cuda")
            prediction = graphs.predict(maps[:, 0], known[2][None], last, last > 0)
            assert torch.isfinite(prediction.policy).all()
        means.append(actual.steps.float().mean().item())
        with torch.no_grad():
            for mental in (plain, graphs):
                mental.success.bias[SEEKER_CLAIM] -= 2 * (turn + 1)
    assert means[0] < means[1] < means[2], "claims succeed less and less often"
