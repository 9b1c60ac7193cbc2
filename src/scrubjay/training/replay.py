"""The buffer of visual dynamics replay: triplets (image before, action, image after).

It holds about 20,000 of a limited age. Each group of actions may fill only a share of the triplets added at once, so
that walking does not crowd out the rest. Batches are random partitions of the buffer, pass after pass; a pass takes
several updates. Images stay uint8 on the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from scrubjay.game.actions import NAMES, Stage, action_index
from scrubjay.training.rollout import Rollout

SIZE = 20_000
BATCH = 64
MAX_AGE = 50
"""Rollouts after which a triplet is dropped."""
MAX_GROUP_SHARE = 0.2
"""Largest share of a group of actions in the triplets added at once."""
REFILL = 4
"""While the buffer is not full, a rollout adds this many times as many triplets."""

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
        self,
        image_size: int,
        size: int = SIZE,
        device: str = "cpu",
        seed: int = 0,
        max_age: int = MAX_AGE,
        batch_size: int = BATCH,
    ) -> None:
        if size < batch_size:
            raise ValueError(f"a replay buffer must hold at least one batch of {batch_size} triplets, not {size}")
        shape = (size, image_size, image_size, 3)
        self._before = torch.zeros(shape, dtype=torch.uint8, device=device)
        self._after = torch.zeros(shape, dtype=torch.uint8, device=device)
        self._action = torch.zeros(size, dtype=torch.int64, device=device)
        self._success = torch.zeros(size, dtype=torch.bool, device=device)
        self._round = np.full(size, -1)
        """The rollout that filled each slot; -1 for empty or expired slots."""
        self._next, self._now, self.max_age, self.batch_size = 0, 0, max_age, batch_size
        self._pending = np.zeros(0, int)
        """Slots that the current pass has not used yet, in random order."""
        self._added, self._used = 0, 0
        self.rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        return int((self._round >= 0).sum())

    @property
    def mean_uses(self) -> float:
        """How often a triplet was used so far, on average over all that were added."""
        return self._used / max(1, self._added)

    @property
    def wanted(self) -> int:
        """Triplets that the next rollout should add: as many as keep the buffer full, and more until it is."""
        every = -(-len(self._round) // self.max_age)
        return every if len(self) == len(self._round) else min(REFILL * every, len(self._round))

    def add(self, triplets: Triplets) -> None:
        """Adds a rollout's triplets and drops expired ones."""
        if len(triplets) > len(self._round):
            raise ValueError(f"{len(triplets)} triplets do not fit into a buffer of {len(self._round)}")
        self._now += 1
        self._round[self._round < self._now - self.max_age] = -1
        slots = (self._next + np.arange(len(triplets))) % len(self._round)
        self._next = int((self._next + len(triplets)) % len(self._round))
        self._round[slots] = self._now
        self._added += len(triplets)
        where = torch.from_numpy(slots).to(self._action.device)
        for ring, new in (
            (self._before, triplets.before), (self._after, triplets.after),
            (self._action, triplets.action), (self._success, triplets.success),
        ):  # fmt: skip
            ring[where] = new.to(ring.device)

    def next_batch(self) -> Triplets | None:
        """The next batch of the current pass, or of a new one; None if the buffer holds less than one batch.

        A pass uses every slot at most once. Slots are read when their batch comes, so what is new is used soon. An
        incomplete last batch is left out.
        """
        self._pending = self._pending[self._round[self._pending] >= 0]
        if len(self._pending) < self.batch_size:
            self._pending = self.rng.permutation(np.flatnonzero(self._round >= 0))
        if len(self._pending) < self.batch_size:
            return None
        chosen, self._pending = self._pending[: self.batch_size], self._pending[self.batch_size :]
        self._used += len(chosen)
        index = torch.from_numpy(chosen).to(self._action.device)
        return Triplets(*(ring[index] for ring in (self._before, self._action, self._after, self._success)))


def sample_triplets(
    rollout: Rollout, rng: np.random.Generator, count: int, group_share: float = MAX_GROUP_SHARE
) -> Triplets:
    """Up to `count` random transitions of a rollout, no group of actions more than its share of `count`.

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
    sample = sample_by_group(action.cpu().numpy()[steps, games], rng, count, group_share)
    t, b = (torch.from_numpy(x[sample]).to(action.device) for x in (steps, games))
    image = rollout.observation.image
    return Triplets(image[t, b], action[t, b], image[t + (~unchanged[t, b]).long(), b], success[t, b])


def sample_by_group(action: np.ndarray, rng: np.random.Generator, count: int, share: float) -> np.ndarray:
    """Indices, in random order, of up to `count` of the actions (N,); no group exceeds its share of `count`."""
    order = rng.permutation(len(action))
    group = GROUPS[action[order]]
    most = max(1, int(share * count))
    # The number of triplets of the same group before each.
    ranks = np.zeros(len(order), int)
    for number in np.unique(group):
        mine = group == number
        ranks[mine] = np.arange(mine.sum())
    return order[ranks < most][:count]
