"""How processes that train together share out a run: its rooms, its games, its batches and its replay buffers.

All of it is arithmetic on the config and on the number of processes, so that every process knows the others' shares
without asking, and a run can go on with another number of processes (`batch_rule` says with what batches).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch

from scrubjay.training.config import TrainConfig

T = TypeVar("T")
SHARED_BATCHES = (
    "replay_size", "replay_batch_size", "hiding_minibatch", "mental_games", "manipulation_minibatch",
)  # fmt: skip
"""Numbers of a config that processes share out evenly, rounded up, beside its games."""
LEARNING_RATES = ("learning_rate", "dynamics_learning_rate", "perspective_learning_rate")


def shard(items: Sequence[T], rank: int, size: int) -> Sequence[T]:
    """A process's part of the items; if there are fewer than processes, one of them, which others have too."""
    return items[rank::size] if len(items) >= size else items[rank % len(items) : rank % len(items) + 1]


def process_config(config: TrainConfig, rank: int, size: int) -> TrainConfig:
    """The run's config as one of its processes plays and learns it; ValueError if there is not a game for each.

    With the rule `global` the rooms are shared out, or the games of each where there are fewer rooms than processes,
    and so are batches and the replay buffer: together they are those of the config.
    """
    if size == 1:
        return config
    if config.batch_rule != "global":
        factor = math.sqrt(size) if config.batch_rule == "scaled" else 1.0
        return replace(config, **{name: factor * getattr(config, name) for name in LEARNING_RATES})
    if size > config.games:
        raise ValueError(
            f"batch_rule: {size} processes cannot share {config.games} games: start fewer, or raise --copies"
        )
    changes: dict[str, Any] = {name: -(-getattr(config, name) // size) for name in SHARED_BATCHES}
    changes |= {"scenes": tuple(shard(config.scenes, rank, size)), "copies": _copies(config, rank, size)}
    games = len(changes["scenes"]) * changes["copies"]
    changes["minibatch_games"] = -(-games // minibatches(config, size))
    return replace(config, **changes)


def _copies(config: TrainConfig, rank: int, size: int) -> int:
    """A process's games in each of its rooms."""
    rooms = len(config.scenes)
    if rooms >= size:
        return config.copies
    among = len(range(rank % rooms, size, rooms))
    return config.copies // among + (rank // rooms < config.copies % among)


def games_of(config: TrainConfig, rank: int, size: int) -> int:
    """The games of one process."""
    if config.batch_rule != "global":
        return config.games
    return len(shard(config.scenes, rank, size)) * _copies(config, rank, size)


def weight_of(config: TrainConfig, rank: int, size: int) -> float:
    """Factor on a process's losses of rollouts: processes with more games weigh more, 1 on average."""
    every = [games_of(config, each, size) for each in range(size)]
    return every[rank] * size / sum(every)


def minibatches(config: TrainConfig, size: int) -> int:
    """Optimizer steps of a pass over a rollout: as many as one process takes, if each has a game of every process."""
    if config.batch_rule != "global":
        return -(-config.games // config.minibatch_games)
    fewest = min(games_of(config, rank, size) for rank in range(size))
    return min(-(-config.games // config.minibatch_games), fewest)


def share_replay(
    states: Sequence[Mapping[str, torch.Tensor]], config: TrainConfig, rank: int, size: int, openables: int
) -> dict[str, torch.Tensor]:
    """A process's replay buffer (`Replay.state`) out of those of another number of processes; empty if none has one.

    It gets the triplets of its rooms, and of a room that others have too its part of them; if they are more than it can
    hold, the newest. `openables`: the most that one of its rooms has. The current pass over the buffer begins anew.
    """
    filled = [(old, state) for old, state in enumerate(states) if state]
    if not filled:
        return {}
    names = [name for name in filled[0][1] if name not in ("counts", "pending", "room", "open")]
    rows = {name: torch.cat([state[name] for _, state in filled]) for name in names}
    rows["open"] = torch.cat([_widened(state["open"], openables) for _, state in filled])
    every = range(len(config.scenes))
    rooms = torch.cat(
        [torch.tensor(_rooms(every, config, old, len(states)))[state["room"].long()] for old, state in filled]
    )
    kept = torch.cat(
        [_kept(rooms[:, 0], rows["round"], room, config, rank, size) for room in _rooms(every, config, rank, size)]
    )
    own = process_config(config, rank, size)
    kept = kept[rows["round"][kept].argsort(stable=True)][-own.replay_size :]
    local = torch.full((len(every),), -1, dtype=filled[0][1]["room"].dtype)
    local[torch.tensor(_rooms(every, config, rank, size))] = torch.arange(len(own.scenes), dtype=local.dtype)
    rows["room"] = local[rooms]
    state = {name: _padded(tensor[kept], own.replay_size) for name, tensor in rows.items()}
    state["round"][len(kept) :] = -1
    counts = torch.stack([each["counts"] for _, each in filled])
    now, added, used = counts[:, 1].max(), counts[:, 2].sum() // size, counts[:, 3].sum() // size
    state["counts"] = torch.stack([torch.tensor(len(kept) % own.replay_size), now, added, used])
    return state | {"pending": torch.zeros(0, dtype=torch.int64)}


def _rooms(rooms: Sequence[int], config: TrainConfig, rank: int, size: int) -> list[int]:
    """A process's rooms as numbers of the config's, in the order of its worlds."""
    return list(rooms if size == 1 or config.batch_rule != "global" else shard(rooms, rank, size))


def _kept(
    rooms: torch.Tensor, rounds: torch.Tensor, room: int, config: TrainConfig, rank: int, size: int
) -> torch.Tensor:
    """The filled slots with triplets of a room that a process gets."""
    every = range(len(config.scenes))
    holders = [each for each in range(size) if room in _rooms(every, config, each, size)]
    return ((rooms == room) & (rounds >= 0)).nonzero()[:, 0][holders.index(rank) :: len(holders)]


def _widened(is_open: torch.Tensor, openables: int) -> torch.Tensor:
    """What is open (N, 2, n), for rooms with another number of openables at most."""
    return torch.nn.functional.pad(is_open[..., :openables], (0, max(0, openables - is_open.shape[-1])))


def _padded(tensor: torch.Tensor, length: int) -> torch.Tensor:
    """The rows of a tensor, and zeros."""
    return torch.cat([tensor, tensor.new_zeros((length - len(tensor), *tensor.shape[1:]))])
