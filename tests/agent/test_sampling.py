"""Categorical draws by Gumbel noise."""

import torch

from scrubjay.agent.sampling import gumbel, sample_categorical


def test_samples_follow_the_softmax():
    logits = torch.tensor([0.0, 1.0, -2.0, float("-inf")])
    drawn = sample_categorical(logits.expand(20_000, 4), torch.Generator().manual_seed(0))
    shares = torch.bincount(drawn, minlength=4) / len(drawn)
    torch.testing.assert_close(shares, logits.softmax(0), atol=0.02, rtol=0)
    assert shares[3] == 0


def test_noise_is_finite_at_zero():
    assert gumbel(torch.zeros(3)).isfinite().all() and gumbel(torch.zeros(3, dtype=torch.float64)).isfinite().all()
