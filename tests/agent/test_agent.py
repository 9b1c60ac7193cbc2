"""The agent as a whole: acting, evaluating, choosing a place, features and weights."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from scrubjay import tree
from scrubjay.agent.agent import FEATURES, Agent, explored_maps, load_agent, save_agent
from scrubjay.agent.config import PAPER, SMALL
from scrubjay.agent.encoder import Encoded
from scrubjay.errors import WeightsError
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.observation import Observation, observe
from scrubjay.players.base import RandomPlayer
from scrubjay.sim.world import World

LIMITS = np.array([10, 1, 3, 3, 6])


@pytest.fixture(scope="module")
def agent() -> Agent:
    torch.manual_seed(0)
    return Agent(SMALL)


def stacked(observations: list[Observation]) -> Observation:
    return Observation(
        *(torch.stack(list(each)) for each in zip(*(vars(o).values() for o in observations), strict=True))
    )


@pytest.fixture(scope="module")
def played(chest) -> tuple[Observation, torch.Tensor]:
    """Observations (T, B) of short random games through all stages, and `is_first` (T, B)."""
    with World([chest], copies=2, size=SMALL.image_size) as world:
        game, player = CacheGame(world, RandomEpisodes(seed=1), LIMITS), RandomPlayer(5)
        game.time[1, Stage.EM] = 6
        observations, is_first, finished = [], [], np.ones(2, bool)
        for _ in range(44):
            observations.append(observe(game))
            is_first.append(torch.from_numpy(finished))
            finished = game.step(*player(game, np.ones(2, bool))).finished
    return stacked(observations), torch.stack(is_first)


def test_evaluating_a_sequence_equals_acting_step_by_step(agent, played):
    observation, is_first = played
    assert set(observation.stage.flatten().tolist()) == set(range(5)) and is_first.sum() > 2
    state, steps = agent.initial_state(2), []
    with torch.no_grad():
        for t in range(len(is_first)):
            step = agent.act(state, tree.index(observation, t), is_first[t])
            state = step.state
            steps.append(step)
        whole = agent.evaluate(agent.initial_state(2), observation, is_first)
    for name in ("logits", "value", "hittable"):
        one = torch.stack([getattr(step.decision, name) for step in steps])
        torch.testing.assert_close(one, getattr(whole.decision, name), atol=1e-4, rtol=1e-3)
    features = whole.features()
    assert set(features) == set(FEATURES)
    for name, values in features.items():
        one = torch.stack([step.features()[name] for step in steps])
        torch.testing.assert_close(one, values, atol=1e-4, rtol=1e-3)


def test_hindsight_targets_are_evaluated_like_a_second_pass(agent, played):
    observation, is_first = played
    other = torch.stack([torch.full_like(is_first, n, dtype=torch.int64) for n in (2, 4, 6)], -1)
    with torch.no_grad():
        both = agent.evaluate(agent.initial_state(2), observation, is_first, targets=other)
        first = agent.evaluate(agent.initial_state(2), observation, is_first)
        second = agent.evaluate(agent.initial_state(2), replace(observation, target=other), is_first)
    assert (first.decision.logits != second.decision.logits).any()
    for expected, actual in ((first, both.games(slice(2))), (second, both.games(slice(2, 4)))):
        torch.testing.assert_close(actual.decision.logits, expected.decision.logits, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(actual.dirs.flat, expected.dirs.flat, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(actual.state.recurrent.cell, expected.state.recurrent.cell, atol=1e-4, rtol=1e-3)


def test_hiders_choose_among_visited_places(agent, chest):
    with World([chest], copies=3, size=SMALL.image_size) as world, torch.no_grad():
        game, player = CacheGame(world, RandomEpisodes(seed=2, turned=True), LIMITS), RandomPlayer(1)
        state, is_first = agent.initial_state(3), torch.ones(3, dtype=torch.bool)
        visited: list[set] = [set(), set(), set()]
        while (game.stage == Stage.EM).all():
            for b, place in enumerate(game.relative_place().tolist()):
                visited[b].add(tuple(place))
            state = agent.act(state, observe(game), is_first).state
            is_first[:] = False
            game.step(*player(game, np.ones(3, bool)))
        here = game.relative_place()
        places, choice, explored = agent.choose_place(
            state.metric_map, observe(game).place, torch.Generator().manual_seed(3)
        )
        assert explored.visited.flatten(1).sum(1).tolist() == [len(each) for each in visited]
        assert choice.valid.any(1).all()
        chosen = places.numpy() + np.concatenate([here[:, :2], np.zeros((3, 2), int)], 1)
        for b in range(3):
            assert tuple(chosen[b].tolist()) in visited[b]
        result = game.step(np.full(3, -1), places.numpy())
        assert result.success.all() and (game.relative_place() == chosen).all()


def test_explored_maps_by_hand(agent):
    """Two places: the start, and one step to the left and two ahead of it, crouching, facing left."""
    state = agent.memory.metric_map.initial_state(1, 4)
    place = torch.tensor([[[0, 0, 0, 1]], [[-1, 2, 3, 0]]])
    value = torch.randn(2, 1, SMALL.map_value)
    flags = torch.ones(2, 1, dtype=torch.bool)
    _, state = agent.memory.metric_map.write(state, place, value, flags, torch.zeros_like(flags))
    explored, origin = explored_maps(state.entries)
    assert explored.values.shape[-2:] == (3, 2) and origin.tolist() == [[-1, 2]]
    assert explored.start.tolist() == [[2, 1, 0, 1]]
    assert explored.visited.nonzero().tolist() == [[0, 0, 1, 2, 1], [0, 3, 0, 0, 0]]


class Blank(torch.nn.Module):
    """An encoder whose SIR is always 0."""

    config = SMALL

    def forward(self, image: torch.Tensor) -> Encoded:
        sir = torch.zeros(len(image), SMALL.sir_channels, 7, 7)
        return Encoded(image, sir, sir.mean((2, 3)), ())


def test_any_encoder_can_replace_ours(played):
    observation, is_first = played
    step = Agent(SMALL, encoder=Blank()).evaluate(Agent(SMALL).initial_state(2), observation, is_first)
    assert (step.features()["sir"] == 0).all()


def test_weights_round_trip_and_a_different_encoder_is_refused(agent, played, tmp_path):
    save_agent(agent, tmp_path / "agent")
    again = load_agent(tmp_path / "agent")
    observation, is_first = played
    with torch.no_grad():
        one, other = (each.evaluate(each.initial_state(2), observation, is_first) for each in (agent, again))
    assert torch.equal(one.decision.value, other.decision.value)
    with pytest.raises(WeightsError, match="encoder"):
        load_agent(tmp_path / "agent", encoder=Blank())


def test_invalid_observations_name_the_field(agent, played):
    observation, is_first = played
    first = tree.index(observation, 0)
    state = agent.initial_state(2)
    small = Observation(**{**vars(first), "image": first.image[:, ::2, ::2]})
    with pytest.raises(ValueError, match="image: expected shape"):
        agent.act(state, small, is_first[0])
    real = Observation(**{**vars(first), "image": first.image.float()})
    with pytest.raises(ValueError, match=r"image: expected torch\.uint8"):
        agent.act(state, real, is_first[0])
    strange = Observation(**{**vars(first), "stage": torch.tensor([0, 9])})
    with pytest.raises(ValueError, match="stage: 9"):
        agent.act(state, strange, is_first[0])


def test_parameter_counts():
    """Parameters of each part, as in the table of docs/agent.md."""
    counts = {
        name: {part: sum(p.numel() for p in module.parameters()) for part, module in Agent(config).named_children()}
        for name, config in (("paper", PAPER), ("small", SMALL))
    }
    assert list(counts["paper"]) == [
        "encoder", "memory", "heads", "perspective", "dynamics", "action_embedding", "sir_predictor", "sir_projection",
        "placement_recall",
    ]  # fmt: skip
    assert {name: sum(parts.values()) for name, parts in counts.items()} == {"paper": 15_988_219, "small": 1_443_587}
    table = (Path(__file__).parents[2] / "docs" / "agent.md").read_text()
    for part in ("encoder", "memory", "heads", "perspective", "dynamics"):
        for parts in counts.values():
            assert f"{parts[part]:,}" in table, part
