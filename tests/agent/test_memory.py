"""The memory: stages and resets, OM inside OH, sequences and steps, learning."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from scrubjay import tree
from scrubjay.agent.config import PAPER, SMALL, AgentConfig
from scrubjay.agent.memory import (
    ALIGNMENT,
    DynamicRepresentation,
    Memory,
    MemoryState,
    ObservationEmbedding,
    RecurrentState,
    Tiled,
    from_cells,
)
from scrubjay.agent.metric_map import EMPTY, gru_cell
from scrubjay.agent.normalization import RunningNorm
from scrubjay.game.actions import Stage, action_index
from scrubjay.game.observation import NO_ACTION, Observation

EM, PS, OH, OM, S = (int(stage) for stage in Stage)
TINY = AgentConfig(112, sir_channels=8, goal_embedding=4, gru_channels=6, lstm=10, tiled=5, map_read=9)
GAME = [EM, EM, PS, OH, OH, OM, OM, OH, OM, OH, S, S, S]
"""The stages of a short game with two manipulations."""


def random_observation(stages: list[list[int]] | torch.Tensor, seed: int = 0) -> Observation:
    """Random observations at stages (T, B)."""
    stage = torch.as_tensor(stages)
    draw = torch.Generator().manual_seed(seed)

    def number(high: int, low: int = 0) -> torch.Tensor:
        return torch.randint(low, high, stage.shape, generator=draw)

    standing = number(2)
    return Observation(
        torch.zeros(*stage.shape, 1, 1, 3, dtype=torch.uint8),
        number(NO_ACTION + 1),
        number(2).bool(),
        standing.bool(),
        number(5),
        stage,
        torch.stack([number(2, -1), number(2), number(4), standing], -1),
        torch.where(stage == OH, number(NO_ACTION + 1, NO_ACTION - 100), NO_ACTION),
        torch.stack([number(3), number(7), number(7)], -1) * (stage == OM)[..., None],
        torch.ones(stage.shape),
    )


def random_sirs(steps: int, games: int, config: AgentConfig = TINY, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Random SIRs and their pooled vectors."""
    sir = torch.randn(steps, games, config.sir_channels, 7, 7, generator=torch.Generator().manual_seed(seed)).double()
    return sir, sir.mean((-1, -2))


def make_memory(config: AgentConfig = TINY) -> Memory:
    torch.manual_seed(0)
    return Memory(config).double()


def run(
    memory: Memory, state: MemoryState, observation: Observation, inputs: tuple, is_first: torch.Tensor | None = None
):
    is_first = torch.zeros(observation.stage.shape, dtype=torch.bool) if is_first is None else is_first
    return memory.sequence(state, *inputs, observation, is_first)


def part(observation: Observation, inputs: tuple, which: slice) -> tuple[Observation, tuple]:
    return tree.index(observation, which), tuple(tensor[which] for tensor in inputs)


def assert_same(first: DynamicRepresentation | RecurrentState, second: DynamicRepresentation | RecurrentState) -> None:
    for name, tensor in vars(first).items():
        torch.testing.assert_close(tensor, vars(second)[name], msg=lambda text, name=name: f"{name}: {text}")


def test_the_papers_shapes():
    with torch.device("meta"):
        memory = Memory(PAPER)
        assert memory.embedding.target.shape == (3, 8, 13, 13)
        assert memory.embedding.action.weight.shape == (440, 16)
        assert memory.embedding.standing.weight.shape == (2, 4)
        assert memory.embedding.goal.weight.shape == (5, 16)
        state = memory.initial_state(2)
        assert state.recurrent.grid.shape == (2, 257, 7, 7)
        assert state.recurrent.hidden.shape == state.recurrent.cell.shape == (2, 512)
        assert state.metric_map.values.shape == (2, 501, 144)
        assert memory.lstm_gates.in_features == 256 + 356 + 512


def test_a_tiled_convolution_is_a_convolution_of_tiled_numbers():
    tiled = Tiled(5, 3 * 2).double()
    numbers = torch.randn(2, 4, 5).double()
    kernel = tiled.taps.weight.view(6, 3, 3, 5).permute(0, 3, 1, 2)
    plain = nn.functional.conv2d(numbers.view(8, 5, 1, 1).expand(8, 5, 7, 7), kernel, padding=1)
    torch.testing.assert_close(from_cells(tiled(numbers, channels=2)), plain.view(2, 4, 6, 7, 7))
    padded = from_cells(tiled(numbers, channels=4)).unflatten(2, (3, 4))
    torch.testing.assert_close(padded[:, :, :, :2], plain.view(2, 4, 3, 2, 7, 7))
    assert not padded[:, :, :, 2:].any()


def test_a_target_puts_the_middle_of_the_learned_tensor_on_its_cell():
    embedding = ObservationEmbedding(TINY)
    observation = random_observation([[OM, OM, S]])
    target = torch.tensor([[[2, 0, 0], [1, 6, 2], [0, 0, 0]]])
    planes = embedding.target_planes(replace(observation, target=target))
    assert planes.shape == (1, 3, TINY.target_embedding, 7, 7)
    assert torch.equal(planes[0, 0], embedding.target[2, :, 6:13, 6:13])
    assert torch.equal(planes[0, 1], embedding.target[1, :, 0:7, 4:11])
    assert torch.equal(planes[0, 1, :, 6, 2], embedding.target[1, :, 6, 6])
    assert not planes[0, 2].any()


def test_landed_is_embedded_like_a_successful_place_at():
    embedding, size = ObservationEmbedding(TINY), TINY.action_embedding
    placed = action_index("PlaceAt|2,3,4")
    observation = replace(
        random_observation([[OH, OH]]),
        last_action=torch.tensor([[placed, NO_ACTION]]),
        last_success=torch.tensor([[True, False]]),
        landed=torch.tensor([[placed, NO_ACTION]]),
    )
    vector = embedding.vector(observation)[0]
    assert vector.shape == (2, embedding.length)
    assert torch.equal(vector[0, :size], vector[0, size : 2 * size])
    assert vector[1, :size].any() and not vector[1, size : 2 * size].any()


def test_a_step_equals_a_convolutional_gru_and_an_lstm_by_hand():
    memory, games = make_memory(), 3
    _, state = run(memory, memory.initial_state(games, 5), random_observation([[EM, OM, S]] * 3), random_sirs(3, games))
    observation, (sir, summary) = random_observation([[EM, OM, S]], seed=1), random_sirs(1, games, seed=1)
    with torch.no_grad():
        for norm in (memory.sir_norm, memory.lstm_norm):
            norm.mean.normal_(), norm.variance.uniform_(0.2, 2)
        memory.gate_norm.weight.uniform_(0.5, 2), memory.gate_norm.bias.normal_()
    dirs, after = run(memory, state, observation, (sir, summary))

    def standardized(numbers: torch.Tensor, norm: RunningNorm) -> torch.Tensor:
        """Each column of (N, n) standardized, clipped to +-5."""
        columns = zip(numbers.T, norm.mean.tolist(), norm.variance.tolist(), strict=True)
        return torch.stack([((x - mean) / variance**0.5).clamp(-5, 5) for x, mean, variance in columns], 1)

    def tiled(numbers: torch.Tensor) -> torch.Tensor:
        return numbers[..., None, None].expand(-1, -1, 7, 7)

    def kernel(module: Tiled) -> torch.Tensor:
        return module.taps.weight.unflatten(0, (-1, 3, 3)).permute(0, 3, 1, 2)

    vector, target = memory.embedding.vector(observation)[0], memory.embedding.target_planes(observation)[0]
    pixels = standardized(sir[0].movedim(1, -1).reshape(-1, TINY.sir_channels), memory.sir_norm)
    image = pixels.view(games, 7, 7, -1).movedim(-1, 1)
    assert (sir[0] - image).abs().max() > 0.1
    inputs = torch.cat([image, target, tiled(vector), tiled(state.recurrent.hidden[:, : TINY.tiled])], 1)
    weight = torch.cat([memory.sir_conv.weight, kernel(memory.embedding_conv), kernel(memory.hidden_conv)], 1)
    driven = nn.functional.conv2d(inputs, weight, memory.sir_conv.bias, padding=1).chunk(3, 1)
    old = memory.grid_conv(state.recurrent.grid).chunk(3, 1)
    reset, update = torch.sigmoid(driven[0] + old[0]), torch.sigmoid(driven[1] + old[1])
    grid = (1 - update) * torch.tanh(driven[2] + reset * old[2]) + update * state.recurrent.grid
    torch.testing.assert_close(after.recurrent.grid, grid)

    pooled = grid[:, : TINY.gru_channels].mean((2, 3))
    entries = state.metric_map.entries
    around, recalled = (
        memory.map_reader.read_around(entries, observation.place[0]),
        memory.map_reader.attention(entries)(pooled, entries.written),
    )
    read = torch.cat([pooled, around, recalled], 1)
    assert read.shape[1] == TINY.gru_channels + TINY.map_read
    lstm_input = torch.cat([standardized(read, memory.lstm_norm), state.recurrent.hidden], 1)
    gates = (lstm_input @ memory.lstm_gates.weight.T).view(games, 4, TINY.lstm)
    apart = gates - gates.mean(-1, keepdim=True)
    level = apart / ((apart**2).mean(-1, keepdim=True) + 1e-5).sqrt()
    level = level * memory.gate_norm.weight.view(4, -1) + memory.gate_norm.bias.view(4, -1)
    (enter, keep, show), new = torch.sigmoid(level[:, [0, 1, 3]]).unbind(1), torch.tanh(level[:, 2])
    cell = keep * state.recurrent.cell + enter * new
    output = show * torch.tanh(cell)
    torch.testing.assert_close(dirs.flat[0], output)
    torch.testing.assert_close(after.recurrent.cell, cell)
    value = torch.cat([summary[0], memory.embedding.goal(observation.goal[0])], 1)
    written, known = after.metric_map.entries.value_at(observation.place[0])
    old_value, old_known = entries.value_at(observation.place[0])
    start = torch.where(old_known[:, None], old_value, memory.metric_map.initial_hidden)
    passed = gru_cell(memory.metric_map.input_gates(value), memory.metric_map.hidden_gates(start), start)
    torch.testing.assert_close(written[[0, 2]], passed[[0, 2]])
    assert known.tolist() == [True, False, True], "OM does not write"


def test_without_norms_the_lstm_is_a_plain_one():
    """PyTorch's LSTM cell, whose second bias is 0, on inputs as they are."""
    memory = make_memory(replace(TINY, running_norms=False, gate_norm=False))
    assert (memory.lstm_gates.bias[TINY.lstm : 2 * TINY.lstm] == 1).all()
    observation, inputs = random_observation([[EM, OM, S]] * 3), random_sirs(3, 3)
    state = memory.initial_state(3, 5)
    dirs, _ = run(memory, state, observation, tuple(20 * tensor for tensor in inputs))
    size = TINY.gru_channels + TINY.map_read
    cell = nn.LSTMCell(size, TINY.lstm).double()
    with torch.no_grad():
        weight, bias = memory.lstm_gates.weight, memory.lstm_gates.bias
        cell.weight_ih.copy_(weight[:, :size]), cell.weight_hh.copy_(weight[:, size:])
        cell.bias_ih.copy_(bias), cell.bias_hh.zero_()
    for t in range(3):
        step, inputs_now = part(observation, inputs, slice(t, t + 1))
        pooled = dirs.grid[t].mean((2, 3))
        entries = state.metric_map.entries
        read = [
            pooled,
            memory.map_reader.read_around(entries, step.place[0]),
            memory.map_reader.attention(entries)(pooled, entries.written),
        ]
        output, content = cell(torch.cat(read, 1), (state.recurrent.hidden, state.recurrent.cell))
        _, state = run(memory, state, step, tuple(20 * tensor for tensor in inputs_now))
        torch.testing.assert_close(dirs.flat[t], output)
        torch.testing.assert_close(state.recurrent.cell, content)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_single_steps_equal_a_sequence_through_all_stages_and_resets(seed, data):
    steps, games = 10, 3
    stages = data.draw(st.lists(st.lists(st.sampled_from(GAME), min_size=3, max_size=3), min_size=10, max_size=10))
    is_first = torch.rand(steps, games, generator=torch.Generator().manual_seed(seed)) < 0.15
    memory, observation, inputs = make_memory(), random_observation(stages, seed), random_sirs(steps, games, seed=seed)
    together, after = run(memory, memory.initial_state(games, 10), observation, inputs, is_first)
    state = memory.initial_state(games, 10)
    for t in range(steps):
        now, step_inputs = part(observation, inputs, t)
        dirs, state = memory.step(state, *step_inputs, now, is_first[t])
        assert_same(dirs, tree.index(together, t))
    assert_same(state.recurrent, after.recurrent)
    assert_same(state.suspended, after.suspended)
    assert torch.equal(state.stage, after.stage)
    assert torch.equal(state.metric_map.keys, after.metric_map.keys)


def test_a_batch_with_resets_equals_separate_runs():
    memory = make_memory()
    observation, inputs = random_observation([[EM, S], [EM, S], [EM, S], [EM, EM], [EM, EM]]), random_sirs(5, 2)
    is_first = torch.tensor([[1, 1], [0, 0], [1, 0], [0, 0], [0, 1]]).bool()
    together, _ = run(memory, memory.initial_state(2, 5), observation, inputs, is_first)
    for game, parts in ((0, [slice(0, 2), slice(2, 5)]), (1, [slice(0, 3), slice(3, 4), slice(4, 5)])):
        for which in parts:
            alone, game_inputs = part(observation, inputs, (which, slice(game, game + 1)))
            dirs, _ = run(memory, memory.initial_state(1, 5), alone, game_inputs)
            assert_same(dirs, tree.index(together, (which, slice(game, game + 1))))


def test_a_manipulation_leaves_ohs_state_unchanged():
    memory = make_memory()
    with_om, without = [OH, OH, OM, OM, OM, OH, OH], [0, 1, 5, 6]
    observation, inputs = random_observation([[stage] for stage in with_om]), random_sirs(7, 1)
    dirs, after = run(memory, memory.initial_state(1, 7), observation, inputs)
    plain, plain_after = run(memory, memory.initial_state(1, 7), *part(observation, inputs, without))
    assert_same(tree.index(dirs, without), plain)
    assert_same(after.recurrent, plain_after.recurrent)
    torch.testing.assert_close(after.metric_map.entries.as_tensor()[0], plain_after.metric_map.entries.as_tensor()[0])


def test_without_oh_suspending_can_be_skipped():
    memory, stages = make_memory(), torch.tensor([[0, 3], [0, 3], [4, 3], [4, 3], [4, 3]])
    is_first = torch.tensor([[True, True], [False, False], [False, True], [False, False], [True, False]])
    observation, inputs = random_observation(stages), random_sirs(5, 2)
    whole, after = memory.sequence(memory.initial_state(2), *inputs, observation, is_first)
    without_oh, after_without_oh = memory.sequence(
        memory.initial_state(2), *inputs, observation, is_first, frozenset({0, 3, 4})
    )
    assert_same(whole, without_oh)
    assert_same(after.recurrent, after_without_oh.recurrent)


@pytest.mark.parametrize("start", [1, 2, 3])
def test_a_new_game_never_resumes_a_suspended_state(start):
    memory, is_first = make_memory(), torch.zeros(5, 1, dtype=torch.bool)
    is_first[start] = True
    observation, inputs = random_observation([[stage] for stage in (OH, OM, OM, OH, OH)]), random_sirs(5, 1)
    dirs, _ = run(memory, memory.initial_state(1, 5), observation, inputs, is_first)
    alone, _ = run(memory, memory.initial_state(1, 5), *part(observation, inputs, slice(start, 5)))
    assert_same(tree.index(dirs, slice(start, None)), alone)


def test_a_manipulation_within_a_game_equals_one_alone_and_has_no_map():
    memory = make_memory()
    observation, inputs = random_observation([[stage] for stage in (OH, OM, OM, OH, OM)]), random_sirs(5, 1)
    dirs, _ = run(memory, memory.initial_state(1, 5), observation, inputs)
    alone, _ = run(memory, memory.initial_state(1, 5), *part(observation, inputs, slice(1, 3)))
    assert_same(tree.index(dirs, slice(1, 3)), alone)
    _, hiding = run(memory, memory.initial_state(1, 5), *part(observation, inputs, slice(0, 1)))
    explored = replace(memory.initial_state(1, 5), metric_map=hiding.metric_map)
    hides = replace(observation, stage=torch.full_like(observation.stage, OH))
    with_map, _ = run(memory, explored, *part(hides, inputs, slice(1, 2)))
    without_map, _ = run(memory, memory.initial_state(1, 5), *part(hides, inputs, slice(1, 2)))
    assert (with_map.flat - without_map.flat).abs().max() > 1e-6, "OH reads it"


def test_gradients_reach_oh_across_a_manipulation():
    memory = make_memory()
    observation, (sir, _) = random_observation([[stage] for stage in (OH, OM, OM, OH)]), random_sirs(4, 1)
    sir.requires_grad_()
    dirs, _ = run(memory, memory.initial_state(1, 5), observation, (sir, sir.detach().mean((-1, -2))))
    (gradient,) = torch.autograd.grad(dirs.flat[3].sum(), sir)
    assert [bool(step.any()) for step in gradient] == [True, False, False, True]


def test_every_stage_resets_the_state_and_the_map_carries_over_to_oh():
    memory = make_memory()
    observation, inputs = random_observation([[stage] for stage in GAME]), random_sirs(len(GAME), 1)
    counts, state = [], memory.initial_state(1, 13)
    states = []
    for t in range(len(GAME)):
        _, state = run(memory, state, *part(observation, inputs, slice(t, t + 1)))
        counts.append(int(state.metric_map.count))
        states.append(state)
    places = [tuple(place) for place in observation.place[:, 0].tolist()]
    written = [0, 1, 3, 4, 7, 9]
    for t, count in enumerate(counts[:10]):
        assert count == len({places[s] for s in written if s <= t})
    assert counts[10:] == [len(set(places[10 : t + 1])) for t in (10, 11, 12)]
    for t, kept_map in ((3, True), (10, False)):
        metric_map = states[t - 1].metric_map if kept_map else memory.initial_state(1, 13).metric_map
        fresh = replace(memory.initial_state(1, 13), metric_map=metric_map)
        _, alone = run(memory, fresh, *part(observation, inputs, slice(t, t + 1)))
        assert_same(alone.recurrent, states[t].recurrent)


def test_the_change_map_is_the_last_channel_of_the_new_state():
    memory = make_memory()
    dirs, after = run(memory, memory.initial_state(2, 3), random_observation([[EM, S]] * 3), random_sirs(3, 2))
    assert dirs.flat.shape == (3, 2, 10) and dirs.grid.shape == (3, 2, 6, 7, 7) and dirs.change.shape == (3, 2, 7, 7)
    assert torch.equal(dirs.change[-1], after.recurrent.grid[:, -1])
    assert torch.equal(dirs.grid[-1], after.recurrent.grid[:, :-1])
    assert torch.equal(dirs.flat[-1], after.recurrent.hidden)


def test_a_state_can_be_detached_and_split_by_game():
    memory = make_memory()
    _, after = run(memory, memory.initial_state(3, 3), random_observation([[EM, S, OH]] * 3), random_sirs(3, 3))
    one = tree.map(lambda tensor: tensor[1:2].detach(), after)
    assert not one.recurrent.grid.requires_grad and not one.metric_map.values.requires_grad
    observation, inputs = random_observation([[EM, S, OH]], seed=5), random_sirs(1, 3, seed=5)
    expected, _ = run(memory, after, observation, inputs)
    dirs, _ = run(memory, one, *part(observation, inputs, (slice(None), slice(1, 2))))
    assert_same(dirs, tree.index(expected, (slice(None), slice(1, 2))))


def test_autocast_keeps_states_in_float32():
    memory = make_memory(SMALL).float()
    observation, inputs = (
        random_observation([[EM, S]] * 4),
        tuple(tensor.float() for tensor in random_sirs(4, 2, SMALL)),
    )
    exact, _ = run(memory, memory.initial_state(2, 4), observation, inputs)
    with torch.autocast("cpu", torch.bfloat16):
        rough, after = run(memory, memory.initial_state(2, 4), observation, inputs)
    assert after.recurrent.cell.dtype == after.recurrent.grid.dtype == after.metric_map.values.dtype == torch.float32
    assert 0 < (rough.flat - exact.flat).abs().max() < 0.02


def test_padded_channels_change_nothing(monkeypatch):
    memory = make_memory()
    observation, inputs = random_observation([[EM, OH], [EM, OM], [PS, OH]]), random_sirs(3, 2)

    def outputs_and_gradients() -> tuple[torch.Tensor, ...]:
        dirs, state = run(memory, memory.initial_state(2, 3), observation, inputs)
        gradients = torch.autograd.grad(
            dirs.flat.sum() + dirs.grid.square().sum() + dirs.change.sum(), memory.parameters(), allow_unused=True
        )
        return *tree.leaves((dirs, state)), *(gradient for gradient in gradients if gradient is not None)

    plain = outputs_and_gradients()
    monkeypatch.setitem(ALIGNMENT, "cpu", 16)
    torch.testing.assert_close(outputs_and_gradients(), plain)


def test_the_memory_compiles_as_one_graph():
    memory = make_memory()
    observation, inputs = random_observation([[EM, OH], [EM, OM], [PS, OH]]), random_sirs(3, 2)
    is_first = torch.zeros(3, 2, dtype=torch.bool)
    plain, _ = memory.sequence(memory.initial_state(2, 3), *inputs, observation, is_first)
    torch._dynamo.reset()
    compiled = torch.compile(memory.sequence, backend="eager", fullgraph=True)
    assert_same(compiled(memory.initial_state(2, 3), *inputs, observation, is_first)[0], plain)


@pytest.mark.parametrize("name", ["sir", "pooled", "is_first", r"state\.stage"])
def test_a_wrong_shape_is_an_error_that_names_the_argument(name):
    memory, observation = make_memory(), random_observation([[EM, S]] * 3)
    (sir, pooled), is_first, state = random_sirs(3, 2), torch.zeros(3, 2, dtype=torch.bool), memory.initial_state(2)
    if name == "sir":
        sir = sir[..., :5]
    elif name == "pooled":
        pooled = pooled[:, :1]
    elif name == "is_first":
        is_first = is_first[:2]
    else:
        state = memory.initial_state(3)
    with pytest.raises(ValueError, match=name):
        memory.sequence(state, sir, pooled, observation, is_first)


def test_is_first_must_be_bool():
    memory = make_memory()
    with pytest.raises(ValueError, match="is_first"):
        run(memory, memory.initial_state(2), random_observation([[EM, S]]), random_sirs(1, 2), torch.zeros(1, 2))


def test_the_memory_learns_to_recall_an_earlier_step():
    """One of four SIRs comes first, then noise; nothing is written into the map."""
    torch.manual_seed(0)
    steps, games = 6, 32
    config = replace(TINY, gru_channels=16, lstm=32, tiled=16, map_read=20)
    memory, classifier = Memory(config), nn.Linear(config.lstm, 4)
    optimizer = torch.optim.Adam([*memory.parameters(), *classifier.parameters()], 1e-2)
    observation = random_observation(torch.full((steps, games), S))
    sirs = torch.randn(4, config.sir_channels, 1, 1)

    def loss_and_accuracy() -> tuple[torch.Tensor, float]:
        shown = torch.randint(0, 4, (games,))
        sir = 0.5 * torch.randn(steps, games, config.sir_channels, 7, 7)
        sir[0] = sirs[shown]
        dirs, _ = run(memory, memory.initial_state(games, steps), observation, (sir, torch.zeros(sir.shape[:3])))
        guess = classifier(dirs.flat[-1])
        return nn.functional.cross_entropy(guess, shown), (guess.argmax(1) == shown).float().mean().item()

    for _ in range(50):
        loss, _ = loss_and_accuracy()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert sum(loss_and_accuracy()[1] for _ in range(5)) / 5 > 0.95


def test_an_empty_map_is_empty_in_every_game():
    state = make_memory().initial_state(4, 7)
    assert (state.metric_map.keys == EMPTY).all() and state.metric_map.capacity == 7
