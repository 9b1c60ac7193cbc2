"""The buffer of visual dynamics replay: triplets (image before, action, image after).

It holds about 20,000 of a limited age. Each group of actions may fill only a share of the triplets added at once, so
that walking does not crowd out the rest. Images stay uint8 on the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from scrubjay.game.actions import NAMES, Stage, action_index
from scrubjay.training.rollout import Rollout

SIZE = 20_000
BATCH = 64
SAMPLE_SHARE = 0.02
"""Share of a rollout's steps that become triplets."""
MAX_GROUP_SHARE = 0.2
"""Largest share of a group of actions in the triplets added at once."""
MAX_AGE = 50
"""Rollouts after which a triplet is dropped."""

CLAIM, READY, DROP = action_index("ClaimVisible"), action_index("ReadyForSeeker"), action_index("DropObject")


def _groups() -> np.ndarray:
    kinds = [name.split("|")[0] for name in NAMES]
    kinds = ["MoveHand" if kind.startswith("MoveHand") else kind for kind in kinds]
    return np.unique(kinds, return_inverse=True)[1]


GROUPS = _groups()
"""(219,): actions of one group differ only in where they point."""


@dataclass(frozen=True)
class Triplets:
    """N transitions."""

    before: torch.Tensor
    """(N, H, W, 3) uint8."""
    action: torch.Tensor
    """(N,) int64."""
    after: torch.Tensor
    """(N, H, W, 3) uint8."""
    success: torch.Tensor
    """(N,) bool."""

    def __len__(self) -> int:
        return len(self.action)


class Replay:
    """A ring buffer of triplets on a device."""

    def __init__(
        self, image_size: int, size: int = SIZE, device: str = "cpu", seed: int = 0, max_age: int = MAX_AGE
    ) -> None:
        if size < BATCH:
            raise ValueError(f"a replay buffer must hold at least one batch of {BATCH} triplets, not {size}")
        shape = (size, image_size, image_size, 3)
        self._before = torch.zeros(shape, dtype=torch.uint8, device=device)
        self._after = torch.zeros(shape, dtype=torch.uint8, device=device)
        self._action = torch.zeros(size, dtype=torch.int64, device=device)
        self._success = torch.zeros(size, dtype=torch.bool, device=device)
        self._round = np.full(size, -1)
        """The rollout that filled each slot; -1 for empty or expired slots."""
        self._next, self._now, self.max_age = 0, 0, max_age
        self.rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        return int((self._round >= 0).sum())

    def add(self, triplets: Triplets) -> int:
        """Adds a rollout's triplets, balanced by action, and drops expired ones; returns how many were added."""
        self._now += 1
        self._round[self._round < self._now - self.max_age] = -1
        kept = balance_by_action(triplets.action.cpu().numpy(), self.rng)[: len(self._round)]
        slots = (self._next + np.arange(len(kept))) % len(self._round)
        self._next = int((self._next + len(kept)) % len(self._round))
        self._round[slots] = self._now
        where, which = torch.from_numpy(slots), torch.from_numpy(kept)
        for ring, new in (
            (self._before, triplets.before), (self._after, triplets.after),
            (self._action, triplets.action), (self._success, triplets.success),
        ):  # fmt: skip
            ring[where.to(ring.device)] = new[which.to(new.device)].to(ring.device)
        return len(kept)

    def epoch(self) -> Iterator[Triplets]:
        """All triplets once, in random batches of 64; an incomplete last batch is left out."""
        order = self.rng.permutation(np.flatnonzero(self._round >= 0))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            chosen = torch.from_numpy(order[start : start + BATCH]).to(self._action.device)
            yield Triplets(*(ring[chosen] for ring in (self._before, self._action, self._after, self._success)))


def sample_triplets(rollout: Rollout, rng: np.random.Generator, share: float = SAMPLE_SHARE) -> Triplets:
    """A random sample of a rollout's transitions.

    Where a game or a stage ends, the next image is from elsewhere, with two exceptions: after actions that end a stage
    and change no pixel, the image before is also the image after; and a manipulation starts and ends at its hider's
    place.
    """
    stage, action, success = (tensor[:-1] for tensor in (rollout.observation.stage, rollout.action, rollout.success))
    next_stage, done = rollout.observation.stage[1:], rollout.dones[:-1]
    unchanged = done & success & ((action == CLAIM) | (action == READY))
    begun = (stage == Stage.OH) & (next_stage == Stage.OM)
    dropped = (stage == Stage.OM) & (next_stage == Stage.OH) & (action == DROP) & success
    follows = ((stage == next_stage) & ~done | begun | dropped) & ~rollout.is_first[1:]
    steps, games = ((unchanged | follows) & (stage != Stage.PS)).cpu().numpy().nonzero()
    sample = rng.permutation(len(steps))[: max(1, round(share * rollout.action.numel()))]
    t, b = (torch.from_numpy(x[sample]).to(action.device) for x in (steps, games))
    image = rollout.observation.image
    return Triplets(image[t, b], action[t, b], image[t + (~unchanged[t, b]).long(), b], success[t, b])


def balance_by_action(action: np.ndarray, rng: np.random.Generator, share: float = MAX_GROUP_SHARE) -> np.ndarray:
    """Indices, in random order, of triplets with actions (N,) to keep: no group exceeds its share of N."""
    order = rng.permutation(len(action))
    group = GROUPS[action[order]]
    most = max(1, int(share * len(action)))
    # The number of triplets of the same group before each.
    ranks = np.zeros(len(order), int)
    for number in np.unique(group):
        mine = group == number
        ranks[mine] = np.arange(mine.sum())
    return order[ranks < most]
