"""Draws from categorical distributions by Gumbel noise: the argmax of logits + noise is a draw from their softmax."""

from __future__ import annotations

import torch


def gumbel(uniforms: torch.Tensor) -> torch.Tensor:
    """Gumbel noise of the same shape, from uniform numbers in [0, 1)."""
    return -(-uniforms.clamp(min=torch.finfo(uniforms.dtype).tiny).log()).log()


def sample_categorical(logits: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """One draw (...,) from softmax(logits) (..., N)."""
    uniforms = torch.rand(logits.shape, device=logits.device, generator=generator)
    return (logits + gumbel(uniforms)).argmax(-1)
