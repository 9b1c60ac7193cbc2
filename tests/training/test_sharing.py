"""Shares of processes: by hand, and together always the whole run."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.training.config import TrainConfig
from scrubjay.training.sharing import games_of, minibatches, process_config, shard, share_replay, weight_of

ROOMS = tuple(f"FloorPlan{number}" for number in range(401, 406))
FIVE = TrainConfig.preset(
    "demo", scenes=ROOMS, copies=4, minibatch_games=8, replay_size=100, replay_batch_size=16, hiding_minibatch=5
)


def test_two_processes_share_five_rooms():
    first, second = (process_config(FIVE, rank, 2) for rank in range(2))
    assert first.scenes == ("FloorPlan401", "FloorPlan403", "FloorPlan405")
    assert second.scenes == ("FloorPlan402", "FloorPlan404")
    assert first.copies == second.copies == 4
    # 20 games in minibatches of 8 are three optimizer steps: of 4 games of the first, and of 2 or 3 of the second.
    assert minibatches(FIVE, 2) == minibatches(FIVE, 1) == 3
    assert (first.minibatch_games, second.minibatch_games) == (4, 3)
    assert (first.replay_size, first.replay_batch_size, first.hiding_minibatch) == (50, 8, 3)
    # 12 and 8 of 20 games, in units of the mean of 10.
    assert (weight_of(FIVE, 0, 2), weight_of(FIVE, 1, 2)) == (1.2, 0.8)
    assert first.learning_rate == FIVE.learning_rate


def test_more_processes_than_rooms_share_their_games():
    two = replace(FIVE, scenes=ROOMS[:2], copies=3)
    shares = [process_config(two, rank, 5) for rank in range(5)]
    assert [share.scenes for share in shares] == [ROOMS[:1], ROOMS[1:2], ROOMS[:1], ROOMS[1:2], ROOMS[:1]]
    assert [share.copies for share in shares] == [1, 2, 1, 1, 1]
    assert minibatches(two, 5) == 1, "six games in minibatches of eight"


def test_more_processes_than_games_are_refused():
    with pytest.raises(ValueError, match="21 processes cannot share 20 games: start fewer, or raise --copies"):
        process_config(FIVE, 0, 21)


def test_one_process_has_all_of_it():
    assert process_config(FIVE, 0, 1) is FIVE and weight_of(FIVE, 0, 1) == 1


def test_each_process_has_the_configs_batches_by_the_other_rules():
    kept = replace(FIVE, batch_rule="process")
    assert process_config(kept, 3, 4) == kept and minibatches(kept, 4) == 3
    scaled = process_config(replace(FIVE, batch_rule="scaled"), 1, 4)
    assert scaled.learning_rate == 2 * FIVE.learning_rate and scaled.games == FIVE.games
    assert scaled.dynamics_learning_rate == 2 * FIVE.dynamics_learning_rate
    assert scaled.perspective_learning_rate == 2 * FIVE.perspective_learning_rate


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(1, 8), st.integers(1, 40), st.integers(1, 40))
def test_shares_are_always_the_whole(rooms, copies, size, minibatch):
    config = replace(FIVE, scenes=ROOMS[:rooms], copies=copies, minibatch_games=minibatch)
    size = min(size, config.games)
    games = Counter[str]()
    for rank in range(size):
        share = process_config(config, rank, size)
        games.update({scene: share.copies for scene in share.scenes})
        assert share.games == games_of(config, rank, size) >= minibatches(config, size) >= 1
    assert games == dict.fromkeys(config.scenes, copies), "each game is one process's"
    assert sum(weight_of(config, rank, size) for rank in range(size)) == pytest.approx(size)
    assert minibatches(config, size) <= minibatches(config, 1)


def buffers(config: TrainConfig, size: int, filled: int) -> list[dict[str, torch.Tensor]]:
    """What `size` processes have in their replay buffers: triplets whose action tells their room and their number."""
    states = []
    for rank in range(size):
        own = process_config(config, rank, size)
        rooms = torch.arange(own.replay_size) % len(own.scenes)
        number = torch.tensor([config.scenes.index(own.scenes[room]) for room in rooms]) * 1000
        states.append({
            "round": torch.where(torch.arange(own.replay_size) < filled, torch.arange(own.replay_size) // 4, -1),
            "pending": torch.arange(3), "counts": torch.tensor([filled % own.replay_size, 25, 10 * size, 6 * size]),
            "room": rooms.int()[:, None].repeat(1, 2),
            "open": torch.ones(own.replay_size, 2, 4 + rank, dtype=torch.bool),
            "action": number + 100 * rank + torch.arange(own.replay_size), "success": rooms > 0,
        })  # fmt: skip
    return states


def triplets(states: list[dict[str, torch.Tensor]]) -> Counter[int]:
    return Counter(action for state in states for action in state["action"][state["round"] >= 0].tolist())


@pytest.mark.parametrize(("before", "after"), [(2, 1), (2, 3), (3, 2), (1, 4), (1, 7), (7, 1)])
@pytest.mark.parametrize("rule", ["global", "process"])
def test_another_number_of_processes_shares_out_the_replay_buffers_anew(before, after, rule):
    config = replace(FIVE, batch_rule=rule, replay_size=200)
    old = buffers(config, before, filled=10)
    new = [share_replay(old, config, rank, after, openables=6) for rank in range(after)]
    assert triplets(new) == triplets(old) and len(triplets(old)) == 10 * before, "each triplet is in one of them"
    for rank, state in enumerate(new):
        own = process_config(config, rank, after)
        count = int((state["round"] >= 0).sum())
        assert len(state["round"]) == len(state["action"]) == own.replay_size and state["open"].shape[1:] == (2, 6)
        assert state["counts"].tolist() == [count, 25, 10 * before * before // after, 6 * before * before // after]
        of = torch.tensor([config.scenes.index(scene) for scene in own.scenes])[state["room"][:count].long()]
        assert (of == state["action"][:count, None] // 1000).all(), "rooms are those of the new process"
        assert state["room"].dtype == torch.int32 and not len(state["pending"])


def test_a_buffer_that_is_too_small_keeps_the_newest_triplets():
    config = replace(FIVE, replay_size=16)
    (old,) = buffers(config, 1, filled=16)
    state = share_replay([old], config, 0, 4, openables=4)
    assert len(state["round"]) == 4
    mine = old["round"][torch.isin(old["room"][:, 0], torch.tensor([0, 4]))]
    assert state["round"].tolist() == mine.sort().values[-4:].tolist()


def test_no_buffers_make_no_buffer():
    assert share_replay([{}, {}], FIVE, 0, 3, openables=4) == {}


def test_there_is_a_room_for_everybody():
    assert shard("abcde", 1, 2) == "bd"
    assert [shard("ab", rank, 3) for rank in range(3)] == ["a", "b", "a"]
