"""The buffer of visual dynamics replay: triplets (image before, action, image after) from play.

It holds about 20,000, none older than a given age, and no action more than its share: each of the groups of actions
below may fill only a part of what is new, so that walking does not drown the rest. Images stay uint8 on one device.
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
SHARE = 0.02
"""Of the steps played, how many become triplets."""
MOST_SHARE = 0.2
"""Of the triplets that are taken in at once, a group of actions may have this much, at most."""
OLDEST = 50
"""Rounds of play after which a triplet is thrown away."""

CLAIM, READY, DROP = action_index("ClaimVisible"), action_index("ReadyForSeeker"), action_index("DropObject")


def _groups() -> np.ndarray:
    kinds = [name.split("|")[0] for name in NAMES]
    kinds = ["MoveHand" if kind.startswith("MoveHand") else kind for kind in kinds]
    return np.unique(kinds, return_inverse=True)[1]


GROUPS = _groups()
"""(219,): actions of the same group are alike but for where they point."""


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
    """A ring of triplets on a device."""

    def __init__(
        self, image_size: int, size: int = SIZE, device: str = "cpu", seed: int = 0, oldest: int = OLDEST
    ) -> None:
        if size < BATCH:
            raise ValueError(f"a replay buffer holds at least one batch of {BATCH} triplets, not {size}")
        shape = (size, image_size, image_size, 3)
        self._before = torch.zeros(shape, dtype=torch.uint8, device=device)
        self._after = torch.zeros(shape, dtype=torch.uint8, device=device)
        self._action = torch.zeros(size, dtype=torch.int64, device=device)
        self._success = torch.zeros(size, dtype=torch.bool, device=device)
        self._round = np.full(size, -1)
        """When each slot was filled; -1 where none was, or what was there is too old."""
        self._next, self._now, self.oldest = 0, 0, oldest
        self.rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        return int((self._round >= 0).sum())

    def add(self, triplets: Triplets) -> int:
        """Takes in a round's triplets, subsampled by action, forgets what is too old; how many were taken in."""
        self._now += 1
        self._round[self._round < self._now - self.oldest] = -1
        kept = balanced(triplets.action.cpu().numpy(), self.rng)[: len(self._round)]
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
        """All that is there, once, in random batches of 64; what is left over waits for another epoch."""
        order = self.rng.permutation(np.flatnonzero(self._round >= 0))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            chosen = torch.from_numpy(order[start : start + BATCH]).to(self._action.device)
            yield Triplets(*(ring[chosen] for ring in (self._before, self._action, self._after, self._success)))


def triplets_of(rollout: Rollout, rng: np.random.Generator, share: float = SHARE) -> Triplets:
    """Some of a rollout's transitions: image before, action, image after, success.

    Where a game or a stage ends, what is seen next is from elsewhere, but for two cases. Actions that end something and
    change no pixel are followed by what was seen before them; and a manipulation stays where its hider is.
    """
    stage, action, success = (tensor[:-1] for tensor in (rollout.observation.stage, rollout.action, rollout.success))
    then, ended = rollout.observation.stage[1:], rollout.ended[:-1]
    unmoved = ended & success & ((action == CLAIM) | (action == READY))
    begun = (stage == Stage.OH) & (then == Stage.OM)
    dropped = (stage == Stage.OM) & (then == Stage.OH) & (action == DROP) & success
    follows = ((stage == then) & ~ended | begun | dropped) & ~rollout.begins[1:]
    steps, games = ((unmoved | follows) & (stage != Stage.PS)).cpu().numpy().nonzero()
    chosen = rng.permutation(len(steps))[: max(1, round(share * rollout.action.numel()))]
    t, b = (torch.from_numpy(x[chosen]).to(action.device) for x in (steps, games))
    image = rollout.observation.image
    return Triplets(image[t, b], action[t, b], image[t + (~unmoved[t, b]).long(), b], success[t, b])


def balanced(action: np.ndarray, rng: np.random.Generator, share: float = MOST_SHARE) -> np.ndarray:
    """Which of the triplets with these actions (N,) to keep, in random order: no group more than its share of N."""
    order = rng.permutation(len(action))
    group = GROUPS[action[order]]
    most = max(1, int(share * len(action)))
    # How many of its group come before each.
    ranks = np.zeros(len(order), int)
    for number in np.unique(group):
        mine = group == number
        ranks[mine] = np.arange(mine.sum())
    return order[ranks < most]
