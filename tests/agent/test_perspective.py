"""Perspective simulation: candidates, invariance to the window's size, and learning a toy task."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from scrubjay.agent.config import PAPER, SMALL, AgentConfig
from scrubjay.agent.hiding_hint import HidingHint
from scrubjay.agent.hiding_outcomes import NOT_HIDDEN, NUM_OUTCOMES
from scrubjay.agent.mental_seeker import NO_SEEKER_ACTION, SEEKER_ACTIONS, SEEKER_CLAIM
from scrubjay.agent.perspective import (
    CANDIDATES,
    ExploredMaps,
    PerspectiveSimulation,
    PlaceChoice,
    Uniforms,
    select_candidates,
)
from scrubjay.game.actions import action_index

CONFIG = replace(SMALL, sir_channels=3, goal_embedding=1, mental_channels=16, mental_lstm=32, action_embedding=8)
OFFSETS = replace(CONFIG, mental_offsets=True)
BOTH = pytest.mark.parametrize("config", [CONFIG, OFFSETS], ids=["place", "offsets"])
"""Imagined maps that tell of a hiding at the hider's place, or everywhere."""
EAST, WEST = 1, 3
AHEAD = SEEKER_ACTIONS.index(action_index("MoveAhead"))


def random_maps(games: int = 3, height: int = 4, width: int = 5, seed: int = 0, share: float = 0.3) -> ExploredMaps:
    """Maps of random places in double precision; each game starts at one of its places."""
    generator = torch.Generator().manual_seed(seed)
    visited = torch.rand(games, 4, 2, height, width, generator=generator) < share
    start = torch.stack([torch.randint(n, (games,), generator=generator) for n in (height, width, 4, 2)], 1)
    visited[torch.arange(games), start[:, 2], start[:, 3], start[:, 0], start[:, 1]] = True
    values = torch.randn(games, 4, 2, CONFIG.map_value, height, width, generator=generator, dtype=torch.float64)
    return ExploredMaps(values * visited[:, :, :, None], visited, start)


def make_simulation(config: AgentConfig = CONFIG) -> PerspectiveSimulation:
    torch.manual_seed(0)
    perspective = PerspectiveSimulation(config).double()
    with torch.no_grad():
        perspective.seeker.policy.bias[SEEKER_CLAIM] += 2
        perspective.seeker.policy.bias[:5] += 3
    return perspective


def sample_uniforms(maps: ExploredMaps, repeats: int = 4, limit: int = 15) -> Uniforms:
    fresh = Uniforms.sample(maps, torch.Generator().manual_seed(5), repeats, limit)
    return Uniforms(**{name: numbers.double() for name, numbers in vars(fresh).items()})


def test_floor_places_rectangle_and_distances_by_hand():
    visited = torch.zeros(1, 4, 2, 4, 6, dtype=torch.bool)
    visited[0, 0, 1, 1, 1] = visited[0, 2, 0, 1, 1] = visited[0, 3, 0, 2, 4] = True
    maps = ExploredMaps(torch.zeros(1, 4, 2, 3, 4, 6), visited, torch.tensor([[1, 1, 0, 1]]))
    assert maps.floor[0].nonzero().tolist() == [[1, 1], [2, 4]]
    assert maps.places[0].nonzero().tolist() == [[0, 1, 1], [2, 1, 1], [3, 2, 4]]
    assert maps.inside[0].nonzero().tolist() == [[row, column] for row in (1, 2) for column in (1, 2, 3, 4)]
    assert maps.distances[0, 1].tolist() == [0.25, 0, 0.25, 0.5, 0.75, 1]
    assert maps.distances[0, 3, 5].item() == pytest.approx(0.25 * 20**0.5)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.floats(0.02, 0.9), st.integers(0, 10_000))
def test_candidates_are_the_five_best_places_and_five_others(height, width, share, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, 4, height, width, generator=generator)
    visited = torch.rand(scores.shape, generator=generator) < share
    visited[:, 0, 0, 0] = True
    scores = scores.masked_fill(~visited, -torch.inf)
    places, real = select_candidates(scores, torch.rand(scores.shape, generator=generator))
    assert places.shape == (2, CANDIDATES, 3)
    for b in range(2):
        known = sorted(
            ((scores[b, q, i, j].item(), (i, j, q)) for q, i, j in visited[b].nonzero().tolist()), reverse=True
        )
        candidates = [tuple(place) for place in places[b].tolist()]
        chosen = [place for place, is_real in zip(candidates, real[b].tolist(), strict=True) if is_real]
        best = [place for _, place in known[:5]]
        assert candidates[: len(best)] == best
        assert len(chosen) == len(set(chosen)) == min(len(known), CANDIDATES)
        assert {*chosen} <= {place for _, place in known}
        assert all(place == best[0] for place, is_real in zip(candidates, real[b].tolist(), strict=True) if not is_real)


def test_all_other_places_are_candidates_equally_often():
    scores = torch.arange(24.0).view(1, 4, 2, 3).expand(6000, 4, 2, 3)
    uniforms = torch.rand(6000, 4, 2, 3, generator=torch.Generator().manual_seed(1))
    places, _ = select_candidates(scores, uniforms)
    row, column, quarter = places[:, 5:].unbind(-1)
    share = (quarter * 6 + row * 3 + column).flatten().bincount(minlength=24) / 6000
    # Five of nineteen: 0.263, with a deviation of 0.0057.
    assert share[:19].tolist() == pytest.approx([5 / 19] * 19, abs=0.03) and share[19:].sum() == 0


def test_a_places_score_is_the_expectation_of_v_under_p():
    perspective, maps = make_simulation(), random_maps()
    survey = perspective.encode_maps(maps)
    scores = perspective.place_scores(survey, maps.places)
    assert scores.isneginf().equal(~maps.places)
    for b, q, i, j in maps.places.nonzero().tolist()[::7]:
        p, v = perspective.evaluate_places(survey, torch.tensor([[[i, j, q]]] * 3))
        assert p.shape == v.shape == (3, 1, NUM_OUTCOMES)
        assert scores[b, q, i, j].item() == pytest.approx((p[b, 0].softmax(0) * v[b, 0]).sum().item())


@BOTH
def test_a_larger_window_changes_nothing(config):
    perspective, maps = make_simulation(config), random_maps(share=0.1)
    above, left = 3, 2

    def pad(tensor: torch.Tensor, value: float = 0) -> torch.Tensor:
        return F.pad(tensor, (left, 4, above, 1), value=value)

    shift = torch.tensor([above, left, 0, 0])
    larger = ExploredMaps(pad(maps.values), pad(maps.visited), maps.start + shift)
    random = sample_uniforms(maps)
    one, other = (
        perspective.choose_place(maps, random),
        perspective.choose_place(larger, replace(random, places=pad(random.places))),
    )
    assert torch.equal(one.place + shift, other.place)
    assert torch.equal(one.places + shift[:3], other.places)
    assert torch.equal(one.rollouts.steps, other.rollouts.steps)
    torch.testing.assert_close(pad(one.scores, -torch.inf), other.scores)
    m_1, larger_m_1 = perspective.encode_maps(maps), perspective.encode_maps(larger)
    torch.testing.assert_close(larger_m_1[:, above:-1, left:-4], m_1)
    m_e = perspective.imagine(m_1, maps.inside, one.places, one.outcomes)
    larger_m_e = perspective.imagine(larger_m_1, larger.inside, other.places, other.outcomes)
    torch.testing.assert_close(larger_m_e[:, :, above:-1, left:-4], m_e)
    torch.testing.assert_close(larger_m_e.abs().sum(), m_e.abs().sum())


@BOTH
def test_a_game_in_a_batch_is_as_if_alone(config):
    perspective, maps = make_simulation(config), random_maps()
    random = sample_uniforms(maps)
    together = perspective.choose_place(maps, random)
    for b in range(3):
        mine = slice(b, b + 1)
        alone = perspective.choose_place(
            ExploredMaps(maps.values[mine], maps.visited[mine], maps.start[mine]),
            Uniforms(random.places[mine], random.outcomes[mine], random.seekers[:, mine], random.choice[mine]),
        )
        assert torch.equal(alone.place[0], together.place[b]) and torch.equal(alone.outcomes[0], together.outcomes[b])
        assert torch.equal(alone.rollouts.paths[:, 0], together.rollouts.paths[:, b])
        torch.testing.assert_close(alone.expected_steps[0], together.expected_steps[b])


def test_places_are_chosen_among_visited_ones_by_expected_steps():
    perspective, maps = make_simulation(), random_maps(games=40, share=0.05)
    choice = perspective.choose_place(maps, sample_uniforms(maps))
    games = torch.arange(40)
    row, column, quarter, standing = choice.place.unbind(1)
    assert maps.visited[games, quarter, standing, row, column].all()
    assert torch.equal(choice.places[games, choice.chosen], choice.place[:, :3])
    assert not choice.valid.all() and choice.valid[games, choice.chosen].all()
    assert torch.equal(choice.valid.sum(1), maps.places.flatten(1).sum(1).clamp(max=10))

    assert torch.equal(choice.mean_steps, choice.rollouts.steps.view(40, 10, 3, 4).float().mean(-1))
    expected = (choice.weights * choice.mean_steps).sum(-1)
    torch.testing.assert_close(choice.expected_steps, expected)
    factor = torch.exp(0.04 * expected) * choice.valid
    torch.testing.assert_close(choice.log_probability.exp(), factor / factor.sum(1, keepdim=True))
    torch.testing.assert_close(choice.weights.sum(-1), torch.ones(40, 10, dtype=torch.float64))


def test_a_hiding_changes_the_map_within_fifteen_positions_and_depends_on_its_outcome():
    perspective = make_simulation()
    survey = torch.randn(1, 1, 40, CONFIG.mental_channels, dtype=torch.float64)
    inside = torch.ones(1, 1, 40, dtype=torch.bool)
    places = torch.tensor([[[0, 20, EAST], [0, 20, WEST]]])
    maps = perspective.imagine(survey, inside, places, torch.tensor([[[3, 4, NOT_HIDDEN], [3, 4, NOT_HIDDEN]]]))
    assert maps.shape == (1, 6, 1, 40, CONFIG.mental_channels)
    first = (maps[0, 0] - maps[0, 1])[0].abs().sum(-1)
    assert first.nonzero().flatten().tolist() == list(range(5, 36))
    assert len(maps[0].flatten(1).unique(dim=0)) == 6


def test_offsets_lead_from_every_position_to_the_hider_by_hand():
    """The hider is at row 1, column 4; from (3, 1), facing north, that is two steps ahead and three to the right."""
    offsets = HidingHint(16).offsets(torch.tensor([[1, 4, EAST]]), 5, 25)[0]
    assert offsets.shape == (5, 25, 4, 5)
    length = 13**0.5
    for heading, (ahead, beside) in enumerate([(2, 3), (3, -2), (-2, -3), (-3, 2)]):
        expected = [ahead / 8, beside / 8, length / 8, ahead / (length + 1), beside / (length + 1)]
        torch.testing.assert_close(offsets[3, 1, heading], torch.tensor(expected))
    assert not offsets[1, 4].any()
    assert offsets[1, 24, WEST, 0] == 2, "twenty steps ahead, cut off"


def test_a_hint_turns_with_the_room():
    """A quarter turn of hider and positions only moves each heading's channels to the next."""
    torch.manual_seed(0)
    hint, side, outcome = HidingHint(16).double(), 7, torch.tensor([30, NOT_HIDDEN])
    row, column, quarter = torch.tensor([[1, 4], [5, 2], [0, 3]])
    here = hint(torch.stack([row, column, quarter], 1), outcome, side, side)
    # Clockwise: what was up is right.
    turned = hint(torch.stack([column, side - 1 - row, (quarter + 1) % 4], 1), outcome, side, side)
    groups = here.unflatten(-1, (4, 4)).roll(1, 3).rot90(-1, (1, 2))
    torch.testing.assert_close(turned.unflatten(-1, (4, 4)), groups)
    outcomes = torch.arange(NUM_OUTCOMES)
    every = hint(torch.tensor([[3, 3, 0]]).expand(NUM_OUTCOMES, 3), outcomes, 2, 2).flatten(1)
    assert len(every.unique(dim=0)) == NUM_OUTCOMES, "all outcomes differ"


def test_normalized_maps_do_not_grow():
    """However large weights become, mental seekers see maps of the same size; without, a hiding drowned in them."""
    maps, sizes = random_maps(), {}
    for config in (CONFIG, OFFSETS):
        perspective = make_simulation(config)
        with torch.no_grad():
            for parameter in (*perspective.map_encoder.parameters(), *perspective.propagation.parameters()):
                parameter *= 10
            survey = perspective.encode_maps(maps)
            imagined = perspective.imagine(survey, maps.inside, torch.zeros(3, 1, 3, dtype=torch.int64), outcomes_of(3))
        assert not imagined[~maps.inside[:, None].expand(imagined.shape[:-1])].any()
        sizes[config.mental_offsets] = imagined[:, 0][maps.inside].pow(2).mean().sqrt().item()
    assert sizes[False] > 1000 and sizes[True] == pytest.approx(1, rel=0.05)


def outcomes_of(games: int) -> torch.Tensor:
    """One outcome for the only place of each game."""
    return torch.arange(games)[:, None, None]


def test_invalid_maps_are_refused():
    maps = random_maps()
    with pytest.raises(ValueError, match="visited: expected shape"):
        ExploredMaps(maps.values, maps.visited[..., :-1], maps.start)
    with pytest.raises(ValueError, match="start: expected shape"):
        ExploredMaps(maps.values, maps.visited, maps.start[:, :2])
    elsewhere = ExploredMaps(maps.values, torch.zeros_like(maps.visited), maps.start)
    with pytest.raises(ValueError, match="start: must be a visited position"):
        make_simulation().choose_place(elsewhere, sample_uniforms(maps))


@BOTH
def test_bfloat16_is_close_to_float32(config):
    perspective, maps = make_simulation(config).float(), random_maps(games=8)
    maps = replace(maps, values=maps.values.float())
    random = Uniforms.sample(maps, torch.Generator().manual_seed(5), 4, 15)
    exact = perspective.choose_place(maps, random)
    with torch.autocast("cpu", torch.bfloat16):
        rough = perspective.choose_place(maps, random)
    known = maps.places
    assert (exact.scores[known] - rough.scores[known]).abs().max() < 0.02
    assert (exact.rollouts.steps.float().mean() - rough.rollouts.steps.float().mean()).abs() < 1


def test_the_papers_sizes():
    perspective = PerspectiveSimulation(PAPER)
    assert perspective.map_encoder[0].in_features == 1152 + 1
    assert perspective.place_head.out_features == 4 * 2 * (2 * 3 * 7 * 7 + 1)
    assert sum(parameter.numel() for parameter in perspective.parameters()) == 1_745_996


# A toy: a corridor of seven positions, walked to its end. At one of them, marked in the map, stands a cupboard. What is
# hidden there facing east is never found; everything else is found when the seeker comes by.
LENGTH = 7
INTO, BEHIND = 10, 200


def corridors(games: int, generator: torch.Generator) -> tuple[ExploredMaps, torch.Tensor]:
    """Corridors, visited facing east and west, and where their cupboards are (B,)."""
    cupboard = torch.randint(1, LENGTH, (games,), generator=generator)
    visited = torch.zeros(games, 4, 2, 1, LENGTH, dtype=torch.bool)
    visited[:, [EAST, WEST], 1] = True
    values = visited[:, :, :, None] * torch.tensor([1.0, 0, 0, 0]).view(4, 1, 1)
    values[torch.arange(games), EAST, 1, 1, 0, cupboard] = 1
    return ExploredMaps(values, visited, torch.tensor([[0, 0, EAST, 1]]).repeat(games, 1)), cupboard


def mental_losses(
    perspective: PerspectiveSimulation, maps: ExploredMaps, cupboard, generator: torch.Generator
) -> torch.Tensor:
    """The losses of one real game per corridor: outcome, policy, success, and success of a claim."""
    games = len(cupboard)
    anywhere = torch.randint(LENGTH, (games,), generator=generator)
    column = torch.where(torch.rand(games, generator=generator) < 0.5, cupboard, anywhere)
    quarter = torch.where(torch.rand(games, generator=generator) < 0.5, EAST, WEST)
    outcome = torch.where(
        quarter == EAST, INTO, torch.where(torch.rand(games, generator=generator) < 0.7, BEHIND, NOT_HIDDEN)
    )
    place = torch.stack([torch.zeros_like(column), column, quarter], 1)[:, None]
    survey = perspective.encode_maps(maps)
    p, _ = perspective.evaluate_places(survey, place)

    time = torch.arange(LENGTH + 3)[:, None]
    never = (column == cupboard) & (quarter == EAST)
    end = torch.where(never, len(time), column)
    at = time.minimum(end).clamp(max=LENGTH - 1)
    here = (at == column) & ~never
    action = torch.where(here, SEEKER_CLAIM, AHEAD)
    success = here | (at < LENGTH - 1)
    last_action = torch.cat([torch.full((1, games), NO_SEEKER_ACTION), action[:-1]])
    last_success = torch.cat([torch.zeros(1, games, dtype=torch.bool), success[:-1]])
    where = torch.stack([torch.zeros_like(at), at, torch.full_like(at, EAST), torch.ones_like(at)], -1)
    m_e = perspective.imagine(survey, maps.inside, place, outcome[:, None, None])[:, 0]
    prediction = perspective.seeker.predict(m_e, where, last_action, last_success)

    took_place = time <= end
    policy = F.cross_entropy(prediction.policy.flatten(0, 1), action.flatten(), reduction="none").view(action.shape)
    taken = prediction.success.gather(2, action[..., None])[..., 0]
    success_loss = F.binary_cross_entropy_with_logits(taken, success.float(), reduction="none")
    claim = F.binary_cross_entropy_with_logits(prediction.success[..., SEEKER_CLAIM], here.float(), reduction="none")
    return F.cross_entropy(p[:, 0], outcome) + ((policy + success_loss + claim) * took_place).sum() / took_place.sum()


def value_loss(perspective: PerspectiveSimulation, maps: ExploredMaps, choice: PlaceChoice) -> torch.Tensor:
    """Ranking loss: V is higher where mental seekers took longer."""
    _, v = perspective.evaluate_places(perspective.encode_maps(maps), choice.places)
    v = v.gather(2, choice.outcomes).flatten(1)
    steps = choice.mean_steps.flatten(1)
    longer = (steps[:, :, None] > steps[:, None]).float()
    loss = F.binary_cross_entropy_with_logits(v[:, :, None] - v[:, None], longer, reduction="none")
    return loss[steps[:, :, None] != steps[:, None]].mean()


@BOTH
def test_gradients_reach_all_parameters(config):
    torch.manual_seed(0)
    perspective, generator = PerspectiveSimulation(config), torch.Generator().manual_seed(0)
    maps, cupboard = corridors(8, generator)
    maps.values.requires_grad_()
    choice = perspective.choose_place(maps, Uniforms.sample(maps, generator, 5, 20))
    (mental_losses(perspective, maps, cupboard, generator) + value_loss(perspective, maps, choice)).backward()
    assert maps.values.grad.abs().sum() > 0
    for name, parameter in perspective.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@pytest.mark.slow
@BOTH
def test_the_simulation_learns_to_hide_in_the_cupboard(config):
    torch.manual_seed(0)
    perspective, generator = PerspectiveSimulation(config), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(perspective.parameters(), 1e-2)
    for update in range(430):
        loss = mental_losses(perspective, *corridors(64, generator), generator)
        if update >= 250:
            maps, _ = corridors(8, generator)
            loss = loss + value_loss(
                perspective, maps, perspective.choose_place(maps, Uniforms.sample(maps, generator, 2, 12))
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    maps, cupboard = corridors(100, generator)
    choice = perspective.choose_place(maps, Uniforms.sample(maps, generator, 5, 100))
    column, quarter = choice.places[..., 1], choice.places[..., 2]
    safe = (column == cupboard[:, None]) & (quarter == EAST)
    # The simulation is right: the object is not found in the cupboard, elsewhere when the seeker passes.
    assert choice.expected_steps[safe].mean() > 80
    assert (choice.expected_steps - column - 1)[~safe].abs().mean() < 1
    # Of fourteen places the cupboard has the highest score in most games. It cannot be chosen in all: with 100 steps
    # there and 7 or fewer at the nine others, softmax(0.04 mu) leaves them 0.16.
    highest = choice.scores.flatten(1).argmax(1) == EAST * LENGTH + cupboard
    chosen = safe[torch.arange(100), choice.chosen]
    assert highest.float().mean() > 0.4
    assert chosen.float().mean() > 0.6
