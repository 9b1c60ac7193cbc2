"""Losses and gradients that are not finite are named, and their batch is kept."""

import pytest
import torch

from scrubjay.errors import NotFiniteError
from scrubjay.training.finite import FiniteCheck

NAN, ONE = torch.tensor(torch.nan), torch.tensor(1.0)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("losses", "norm", "named"),
    [
        ({"a": ONE, "b": NAN, "c": ONE}, NAN, "b"),
        ({"a": NAN, "b": NAN}, ONE, "a, b"),
        ({"a": ONE}, torch.tensor(torch.inf), "the gradient"),
    ],
)
def test_what_is_not_finite_is_named_by_the_end_of_the_update(losses, norm, named, device):
    check, batch = FiniteCheck(), object()
    check.add({"a": ONE.to(device)}, ONE.to(device), object())
    with pytest.raises(NotFiniteError, match=named) as raised:
        check.add({name: loss.to(device) for name, loss in losses.items()}, norm.to(device), batch)
        check.check()
    assert raised.value.batch is batch
    check.check()
