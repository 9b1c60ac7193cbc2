"""The buffer of visual dynamics replay: triplets (image before, action, image after).

It holds about 20,000 of a limited age. Each group of actions may fill only a share of the triplets added at once, so
that walking does not crowd out the rest. Batches are random partitions of the buffer, pass after pass; a pass takes
several updates. Images stay uint8 on the device.

Checkpoints keep the buffer without its images, which would be 6 GB, but with what they were rendered from
(`frames.py`): a resumed run renders them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from scrubjay.game.actions import NAMES, Stage, action_index
from scrubjay.sim.world import World
from scrubjay.training.frames import from_tensors, read_array, render_frames, to_tensors
from scrubjay.training.rollout import Rollout

SIZE = 20_000
BATCH = 64
MAX_AGE = 50
"""Rollouts after which a triplet is dropped."""
MAX_GROUP_SHARE = 0.2
"""Largest share of a group of actions in the triplets added at once."""
REFILL = 4
"""While the buffer is not full, a rollout adds this many times as many triplets."""

RENDERED_AT_ONCE = 256
"""Images rendered together when a buffer is restored."""

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
    frames: np.ndarray | None = None
    """(N, 2): what the images before and after were rendered from; not in batches."""
    visible: torch.Tensor | None = None
    """(N, 2, 101) bool: the types in CLASSES that the images before and after show, if they are labeled."""

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
        classes: int = 0,
    ) -> None:
        """`classes`: images are labeled with the presence of so many."""
        if size < batch_size:
            raise ValueError(f"a replay buffer must hold at least one batch of {batch_size} triplets, not {size}")
        shape = (size, image_size, image_size, 3)
        self._before = torch.zeros(shape, dtype=torch.uint8, device=device)
        self._after = torch.zeros(shape, dtype=torch.uint8, device=device)
        self._action = torch.zeros(size, dtype=torch.int64, device=device)
        self._success = torch.zeros(size, dtype=torch.bool, device=device)
        self._visible = torch.zeros((size, 2, classes), dtype=torch.bool, device=device) if classes else None
        self._round = np.full(size, -1)
        """The rollout that filled each slot; -1 for empty or expired slots."""
        self._next, self._now, self.max_age, self.batch_size = 0, 0, max_age, batch_size
        self._pending = np.zeros(0, int)
        """Slots that the current pass has not used yet, in random order."""
        self._added, self._used = 0, 0
        self._frames: np.ndarray | None = None
        """(size, 2): what the images were rendered from; None until a triplet with frames is added."""
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
        if self._visible is not None and triplets.visible is not None:
            self._visible[where] = triplets.visible.to(self._visible.device)
        if triplets.frames is not None:
            if self._frames is None:
                self._frames = np.zeros((len(self._round), 2), triplets.frames.dtype)
            self._frames[slots] = triplets.frames

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
        visible = None if self._visible is None else self._visible[index]
        return Triplets(
            self._before[index], self._action[index], self._after[index], self._success[index], visible=visible
        )

    def state(self) -> dict[str, torch.Tensor]:
        """All but images and random numbers, to be written into a checkpoint; empty if triplets have no frames."""
        if self._frames is None:
            return {}
        counts = np.array([self._next, self._now, self._added, self._used])
        arrays = {"round": self._round, "pending": self._pending, "counts": counts}
        tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()} | to_tensors(self._frames)
        labels = {} if self._visible is None else {"visible": self._visible.cpu()}
        return tensors | {"action": self._action.cpu(), "success": self._success.cpu()} | labels

    def restore(self, state: Mapping[str, torch.Tensor], world: World, augmented: bool) -> None:
        """Restores a `state()` and renders its images in a world of the same rooms; ValueError if it does not fit.

        Images are bit-exact with the same renderer on the same machine, and nearly equal elsewhere.
        """
        size, left = len(self._round), len(state.get("pending", ()))
        frames = from_tensors(state, (size, 2), world)
        rounds, pending = read_array(state, "round", (size,), int), read_array(state, "pending", (left,), int)
        counts = read_array(state, "counts", (4,), int)
        action, success = read_array(state, "action", (size,), int), read_array(state, "success", (size,), bool)
        visible = self._visible
        if visible is not None:
            visible = torch.from_numpy(read_array(state, "visible", tuple(visible.shape), bool)).to(visible.device)
        if counts.min() < 0 or counts[0] >= size or rounds.min() < -1 or rounds.max() > counts[1]:
            raise ValueError("its counts contradict each other")
        if action.min() < 0 or action.max() >= len(NAMES) or not np.isin(pending, np.arange(size)).all():
            raise ValueError("an action or a slot is out of range")
        self._round, self._pending, self._frames, self._visible = rounds, pending, frames, visible
        self._next, self._now, self._added, self._used = map(int, counts)
        self._action.copy_(torch.from_numpy(action))
        self._success.copy_(torch.from_numpy(success))
        filled = np.flatnonzero(rounds >= 0)
        for slots in np.split(filled, range(RENDERED_AT_ONCE, len(filled), RENDERED_AT_ONCE)):
            where = torch.from_numpy(slots).to(self._action.device)
            for ring, each in zip((self._before, self._after), frames[slots].T, strict=True):
                ring[where] = render_frames(world, each, augmented).to(ring.device)


def sample_triplets(
    rollout: Rollout,
    rng: np.random.Generator,
    count: int,
    group_share: float = MAX_GROUP_SHARE,
    frames: np.ndarray | None = None,
) -> Triplets:
    """Up to `count` random transitions of a rollout, no group of actions more than its share of `count`.

    `frames` (T, B) are what the rollout's images were rendered from.

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
    chosen, stays = torch.stack([(unchanged | follows) & (stage != Stage.PS), unchanged]).cpu().numpy()
    steps, games = chosen.nonzero()
    sample = sample_by_group(action.cpu().numpy()[steps, games], rng, count, group_share)
    steps, games = steps[sample], games[sample]
    after = steps + ~stays[steps, games]
    t, s, b = (torch.from_numpy(index).to(action.device) for index in (steps, after, games))
    image, visible = rollout.observation.image, rollout.visible
    return Triplets(
        image[t, b], action[t, b], image[s, b], success[t, b],
        None if frames is None else frames[np.stack([steps, after], 1), games[:, None]],
        None if visible is None else torch.stack([visible[t, b], visible[s, b]], 1),
    )  # fmt: skip


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
