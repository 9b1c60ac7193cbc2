"""The metric map against a dictionary of places, by finite differences, and learning."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from scrubjay import tree
from scrubjay.agent.config import SMALL
from scrubjay.agent.metric_map import EMPTY, Entries, MapReader, MapState, MetricMap, attend_to, pack, unpack

LENGTH = 3


class SlowMap:
    """One game's map as a dictionary; writes through a GRU cell with the same weights."""

    def __init__(self, metric_map: MetricMap, capacity: int) -> None:
        self.values: dict[tuple[int, ...], torch.Tensor] = {}
        self.start, self.capacity = metric_map.initial_hidden, capacity
        self.cell = nn.GRUCell(metric_map.length, metric_map.length).to(metric_map.initial_hidden.dtype)
        with torch.no_grad():
            (
                self.cell.weight_ih.copy_(metric_map.input_gates.weight),
                self.cell.bias_ih.copy_(metric_map.input_gates.bias),
            )
            (
                self.cell.weight_hh.copy_(metric_map.hidden_gates.weight),
                self.cell.bias_hh.copy_(metric_map.hidden_gates.bias),
            )

    def write(self, place: tuple[int, ...], value: torch.Tensor) -> None:
        if place in self.values or len(self.values) < self.capacity:
            self.values[place] = self.cell(value[None], self.values.get(place, self.start)[None])[0]


def make_map(seed: int = 0, length: int = LENGTH) -> MetricMap:
    torch.manual_seed(seed)
    metric_map = MetricMap(length).double()
    nn.init.normal_(metric_map.initial_hidden)
    return metric_map


def walk(seed: int, steps: int, games: int) -> tuple[torch.Tensor, ...]:
    """Places in a small area, so that many are visited again; values, writes and resets."""
    generator = torch.Generator().manual_seed(seed)
    place = torch.stack([torch.randint(low, high, (steps, games), generator=generator) for low, high in AREA], -1)
    value = torch.randn(steps, games, LENGTH, generator=generator, dtype=torch.float64)
    writes = torch.rand(steps, games, generator=generator) < 0.8
    resets = torch.rand(steps, games, generator=generator) < 0.1
    return place, value, writes, resets


AREA = ((-1, 2), (2, 4), (0, 2), (0, 2))


def slow_walk(metric_map: MetricMap, capacity: int, trajectory: tuple[torch.Tensor, ...]) -> list[list[dict]]:
    """The map of each game before each step, and after the last."""
    place, value, writes, resets = trajectory
    games = [SlowMap(metric_map, capacity) for _ in range(place.shape[1])]
    history = []
    for t in range(len(place)):
        for b, game in enumerate(games):
            if resets[t, b]:
                game.values = {}
        history.append([dict(game.values) for game in games])
        for b, game in enumerate(games):
            if writes[t, b]:
                game.write(tuple(place[t, b].tolist()), value[t, b])
    return [*history, [dict(game.values) for game in games]]


def as_dictionaries(entries: Entries) -> list[dict]:
    """The entries readable at one step, by game and place."""
    games: list[dict] = []
    for keys, values, written in zip(entries.keys, entries.values, entries.written, strict=True):
        places = [tuple(place) for place in unpack(keys[written]).tolist()]
        assert len(set(places)) == len(places), "a place is written twice"
        games.append(dict(zip(places, values[written], strict=True)))
    return games


def assert_same(actual: list[dict], expected: list[dict]) -> None:
    for mine, theirs in zip(actual, expected, strict=True):
        assert mine.keys() == theirs.keys()
        for place in mine:
            torch.testing.assert_close(mine[place], theirs[place])


def entries_of(*games: dict) -> Entries:
    """Maps that hold these places and values, for reading."""
    width = max(len(game) for game in games) + 1
    keys = torch.full((len(games), width), EMPTY)
    values = torch.randn(len(games), width, LENGTH, dtype=torch.float64)
    for b, game in enumerate(games):
        for m, (place, value) in enumerate(game.items()):
            keys[b, m], values[b, m] = pack(torch.tensor(place)), torch.as_tensor(value, dtype=torch.float64)
    return Entries(keys, values, keys != EMPTY)


@given(place=st.tuples(st.integers(-2048, 2047), st.integers(-2048, 2047), st.integers(0, 3), st.integers(0, 1)))
def test_a_packed_place_unpacks_to_itself(place):
    key = pack(torch.tensor(place))
    assert key >= 0
    assert tuple(unpack(key).tolist()) == place


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 30), capacity=st.integers(1, 30), cut=st.integers(0, 30))
def test_maps_equal_a_dictionary_of_places_at_every_step(seed, steps, capacity, cut):
    metric_map, trajectory = make_map(seed), walk(seed, steps, games=3)
    expected = slow_walk(metric_map, capacity, trajectory)
    state, t = metric_map.initial_state(3, capacity), 0
    for part in (slice(0, cut), slice(cut, None)):
        tensors = [tensor[part] for tensor in trajectory]
        if len(tensors[0]):
            entries, state = metric_map.write(state, *tensors)
            for step in range(len(tensors[0])):
                assert_same(as_dictionaries(entries.at(step)), expected[t])
                t += 1
    assert_same(as_dictionaries(state.entries), expected[-1])
    assert state.count.tolist() == [len(game) for game in expected[-1]]


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_single_steps_equal_a_sequence(seed):
    metric_map, trajectory = make_map(seed), walk(seed, steps=12, games=2)
    entries, after = metric_map.write(metric_map.initial_state(2, 12), *trajectory)
    state = metric_map.initial_state(2, 12)
    for t in range(12):
        now, state = metric_map.write(state, *(tensor[t : t + 1] for tensor in trajectory))
        assert_same(as_dictionaries(now.at(0)), as_dictionaries(entries.at(t)))
    assert torch.equal(state.keys, after.keys) and torch.equal(state.count, after.count)


def test_games_are_independent():
    metric_map, trajectory = make_map(), walk(seed=1, steps=10, games=4)
    _, together = metric_map.write(metric_map.initial_state(4, 10), *trajectory)
    for b in range(4):
        _, alone = metric_map.write(metric_map.initial_state(1, 10), *(tensor[:, b : b + 1] for tensor in trajectory))
        assert_same(as_dictionaries(alone.entries), as_dictionaries(tree.index(together, slice(b, b + 1)).entries))


def test_a_larger_capacity_keeps_the_entries():
    metric_map, trajectory = make_map(), walk(seed=2, steps=10, games=2)
    _, small = metric_map.write(metric_map.initial_state(2, 10), *trajectory)
    large = small.with_capacity(20)
    assert large.capacity == 20
    assert_same(as_dictionaries(large.entries), as_dictionaries(small.entries))
    again = [torch.cat([tensor, tensor]) for tensor in walk(seed=3, steps=10, games=2)]
    again[3].zero_()
    _, wide = metric_map.write(
        metric_map.initial_state(2, 20), *(torch.cat([a, b]) for a, b in zip(trajectory, again, strict=True))
    )
    _, grown = metric_map.write(large, *again)
    assert_same(as_dictionaries(grown.entries), as_dictionaries(wide.entries))
    with pytest.raises(ValueError, match="capacity"):
        large.with_capacity(5)


def test_value_at_returns_the_places_value_or_zero():
    entries = entries_of({(0, 0, 0, 1): (1, 2, 3), (4, -2, 3, 0): (4, 5, 6)}, {(0, 0, 0, 1): (7, 8, 9)})
    value, known = entries.value_at(torch.tensor([(4, -2, 3, 0), (4, -2, 3, 0)]))
    assert value.tolist() == [[4, 5, 6], [0, 0, 0]]
    assert known.tolist() == [True, False]


def test_attention_weighs_entries_by_similarity_to_the_query():
    entries = entries_of({(0, 0, 0, 0): (1, 0, 0), (1, 0, 0, 0): (0, 2, 0)}, {})
    key = torch.tensor([[1.0, 3, 5], [0, 0, 0]], dtype=torch.float64).expand(2, 2, 3)
    similarity = torch.exp(torch.tensor([1.0, 6.0, 0.0], dtype=torch.float64) / 3**0.5)
    first = (similarity[:2] / similarity.sum()).tolist()
    expected = torch.tensor([[first[0], 2 * first[1], 0], [1 / 3, 2 / 3, 0]], dtype=torch.float64)
    read = attend_to(entries.values)(key, entries.written)
    torch.testing.assert_close(read[0], expected)
    assert not read[1].any(), "an empty map reads as 0"


def test_a_map_as_a_tensor_has_north_up_and_starts_at_its_corner():
    entries = entries_of({(-1, 2, 0, 1): (1, 1, 1), (2, 0, 3, 0): (2, 2, 2)}, {(5, 5, 1, 1): (3, 3, 3)}, {})
    tensor, corner = entries.as_tensor()
    assert tensor.shape == (3, 4, 2, LENGTH, 3, 4)
    assert corner.tolist() == [[-1, 2], [5, 5], [0, 0]]
    filled = {(0, 0, 1, 0, 0): 1, (0, 3, 0, 2, 3): 2, (1, 1, 1, 0, 0): 3}
    for (b, rotation, standing, row, column), value in filled.items():
        assert tensor[b, rotation, standing, :, row, column].tolist() == [value] * 3
        tensor[b, rotation, standing, :, row, column] = 0
    assert not tensor.any()
    assert entries.as_tensor((2, 6))[0].shape == (3, 4, 2, LENGTH, 2, 6)
    assert entries.as_tensor((2, 6))[0].sum() == 3 + 9, "entries outside are left out"


@pytest.mark.parametrize(
    ("turn", "row", "column"), [(0, 1, 4), (1, 0, 1), (2, 3, 0), (3, 4, 3)], ids=["north", "east", "south", "west"]
)
def test_the_egocentric_map_is_rotated_so_that_the_agent_faces_up(turn, row, column):
    """The value lies two steps right and one ahead of the agent in the start's frame, and was observed facing east."""
    entries = entries_of({(12, -6, 1, 1): (1, 2, 3), (14, -7, 0, 0): (9, 9, 9), (10, -12, 0, 0): (9, 9, 9)})
    window = entries.egocentric(torch.tensor([[10, -7, turn, 0]]), 5)
    assert window.shape == (1, 4, 2, LENGTH, 5, 5)
    assert window[0, (1 - turn) % 4, 1, :, row, column].tolist() == [1, 2, 3]
    assert window.sum() == 6


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1, 3, 5]))
def test_windows_of_a_sequence_equal_those_of_its_steps(seed, size):
    metric_map, trajectory = make_map(seed), walk(seed, steps=8, games=2)
    entries, _ = metric_map.write(metric_map.initial_state(2, 8), *trajectory)
    windows, (values, known) = entries.egocentric(trajectory[0], size), entries.value_at(trajectory[0])
    for t in range(8):
        torch.testing.assert_close(windows[t], entries.at(t).egocentric(trajectory[0][t], size))
        value, there = entries.at(t).value_at(trajectory[0][t])
        torch.testing.assert_close(values[t], value)
        assert torch.equal(known[t], there)
        standing = trajectory[0][t, :, 3]
        torch.testing.assert_close(windows[t, [0, 1], 0, standing, :, size // 2, size // 2], value)


def test_gradients_equal_finite_differences():
    metric_map, (place, value, writes, resets) = make_map(), walk(seed=4, steps=4, games=2)
    place[3] = place[1] = place[0]
    writes[:, 0], resets[:, 0] = True, False
    query = torch.randn(2, 2, LENGTH, dtype=torch.float64, requires_grad=True)
    old = torch.randn(2, 5, LENGTH, dtype=torch.float64, requires_grad=True)
    before = metric_map.write(metric_map.initial_state(2, 4), place, value, writes, resets)[1]

    def read(*_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state = MapState(before.keys, old, before.count)
        entries, after = metric_map.write(state, place, value, writes, resets)
        return (
            attend_to(entries.values)(query, entries.written[3]),
            entries.egocentric(place, 1),
            entries.value_at(place)[0],
            after.entries.as_tensor()[0].sum((1, 2)),
        )

    assert torch.autograd.gradcheck(read, (value.requires_grad_(), old, query, *metric_map.parameters()))


def test_a_value_of_the_wrong_length_is_an_error():
    metric_map = make_map()
    place, value, writes, resets = walk(seed=0, steps=2, games=2)
    with pytest.raises(ValueError, match=r"value: expected shape \(2, 2, 3\), got \(2, 2, 2\)"):
        metric_map.write(metric_map.initial_state(2), place, value[..., :2], writes, resets)


def test_the_reader_has_the_configs_output_size():
    reader, metric_map = MapReader(SMALL), MetricMap(SMALL.map_value)
    place = torch.zeros(2, 3, 4, dtype=torch.long)
    entries, _ = metric_map.write(
        metric_map.initial_state(3, 4),
        place,
        torch.randn(2, 3, SMALL.map_value),
        torch.ones(2, 3, dtype=torch.bool),
        torch.zeros(2, 3, dtype=torch.bool),
    )
    around, recalled = (
        reader.read_around(entries, place),
        reader.attention(entries)(torch.randn(3, SMALL.gru_channels), entries.written[1]),
    )
    assert around.shape == (2, 3, SMALL.gru_channels)
    assert SMALL.gru_channels + recalled.shape[-1] == SMALL.map_read


def test_the_map_learns_which_places_were_visited():
    torch.manual_seed(0)
    steps, games = 16, 32
    metric_map, reader = MetricMap(SMALL.map_value), MapReader(SMALL)
    classifier = nn.Linear(SMALL.gru_channels, 1)
    parameters = [*metric_map.parameters(), *reader.parameters(), *classifier.parameters()]
    optimizer = torch.optim.Adam(parameters, 3e-3)
    writes, resets = torch.ones(steps, games, dtype=torch.bool), torch.zeros(steps, games, dtype=torch.bool)

    def loss_and_accuracy() -> tuple[torch.Tensor, float]:
        place = torch.stack([torch.randint(0, high, (steps, games)) for high in (3, 3, 2, 1)], -1)
        value = torch.randn(steps, games, SMALL.map_value)
        entries, _ = metric_map.write(metric_map.initial_state(games, steps), place, value, writes, resets)
        visited = entries.value_at(place)[1]
        guess = classifier(reader.read_around(entries, place))[..., 0]
        right = ((guess > 0) == visited).float().mean().item()
        return nn.functional.binary_cross_entropy_with_logits(guess, visited.float()), right

    for _ in range(60):
        loss, _ = loss_and_accuracy()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss_and_accuracy()[1] > 0.97
