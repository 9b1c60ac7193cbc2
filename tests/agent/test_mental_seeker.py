"""The mental seeker: its actions, staying on the floor, and trajectories that do not depend on the batch."""

from dataclasses import replace

import pytest
import torch

from scrubjay.agent.config import SMALL
from scrubjay.agent.mental_seeker import NO_SEEKER_ACTION, SEEKER_ACTIONS, SEEKER_CLAIM, SEEKER_INDEX, MentalSeeker
from scrubjay.game.actions import NAMES, action_index

CONFIG = replace(SMALL, mental_channels=8, mental_lstm=12, action_embedding=4)
NORTH, EAST, SOUTH, WEST = range(4)
STEPS = {NORTH: (-1, 0), EAST: (0, 1), SOUTH: (1, 0), WEST: (0, -1)}
FLOOR = torch.tensor([[1, 1, 1, 0], [1, 0, 1, 0], [1, 1, 1, 1]], dtype=torch.bool)


def seeker(offsets: bool = False, **bias: float) -> MentalSeeker:
    """A seeker with random weights and biased actions, in double precision."""
    torch.manual_seed(0)
    mental = MentalSeeker(replace(CONFIG, mental_offsets=offsets)).double()
    with torch.no_grad():
        for parameter in mental.parameters():
            parameter.mul_(2)
        for name, amount in bias.items():
            mental.policy.bias[index(name)] += amount
    return mental


def index(name: str) -> int:
    return SEEKER_ACTIONS.index(action_index(name))


def set_success(mental: MentalSeeker, *names: str) -> MentalSeeker:
    """Makes every action succeed except these."""
    with torch.no_grad():
        mental.success.weight.zero_()
        mental.success.bias.fill_(50.0)
        mental.success.bias[[index(name) for name in names]] = -50.0
    return mental


def walk_alone(mental: MentalSeeker, maps, floor, start, uniforms) -> tuple[int, bool, list[int]]:
    """One trajectory in one map (h, w, C), step by step, recomputed from the start at every step."""
    height, width = floor.shape
    row, column, quarter, standing = start.tolist()
    places, actions, successes, path = [], [NO_SEEKER_ACTION], [False], []
    for by_action, by_success in uniforms:
        places.append((row, column, quarter, standing))
        path.append(row * width + column)
        past = (torch.tensor(past)[:, None] for past in (places, actions, successes))
        prediction = mental.predict(maps[None], *past)
        chance = prediction.policy[-1, 0].softmax(0)
        action = next((a for a in range(len(chance)) if by_action < chance[: a + 1].sum()), len(chance) - 1)
        success = bool(by_success < prediction.success[-1, 0, action].sigmoid())
        name = NAMES[SEEKER_ACTIONS[action]]
        if name.startswith("Move"):
            heading = (quarter + {"MoveAhead": 0, "MoveRight": 1, "MoveLeft": -1}[name]) % 4
            to_row, to_column = row + STEPS[heading][0], column + STEPS[heading][1]
            success = success and 0 <= to_row < height and 0 <= to_column < width and bool(floor[to_row, to_column])
            if success:
                row, column = to_row, to_column
        if success and name.startswith("Rotate"):
            quarter = (quarter + {"RotateRight": 1, "RotateLeft": -1}[name]) % 4
        if success and name in ("Stand", "Crouch"):
            standing = int(name == "Stand")
        actions.append(action)
        successes.append(success)
        if success and name == "ClaimVisible":
            return len(path), True, path
    return len(path), False, path


def test_the_seekers_actions_are_the_58_of_its_stage():
    assert len(SEEKER_ACTIONS) == NO_SEEKER_ACTION == 58
    assert NAMES[SEEKER_ACTIONS[SEEKER_CLAIM]] == "ClaimVisible"
    assert SEEKER_INDEX[list(SEEKER_ACTIONS)].tolist() == list(range(58))
    assert SEEKER_INDEX[219] == NO_SEEKER_ACTION and SEEKER_INDEX[action_index("DropObject")] == -1


@pytest.mark.parametrize("offsets", [False, True])
@torch.no_grad()
def test_trajectories_in_a_batch_equal_single_ones(offsets):
    mental = seeker(
        offsets, MoveAhead=3, MoveLeft=2.5, MoveRight=2.5, RotateLeft=2, RotateRight=2, Stand=1, ClaimVisible=1.5
    )
    generator = torch.Generator().manual_seed(2)
    maps = torch.randn(2, 3, *FLOOR.shape, CONFIG.mental_channels, generator=generator, dtype=torch.float64)
    floor = torch.stack([FLOOR, torch.ones_like(FLOOR)])
    start = torch.tensor([[2, 3, WEST, 1], [1, 1, NORTH, 0]])
    uniforms = torch.rand(23, 2, 3, 4, 2, generator=generator, dtype=torch.float64)
    rollouts = mental.simulate(maps, floor, start, uniforms)
    lengths = set()
    for b in range(2):
        for k in range(3):
            for r in range(4):
                steps, found, path = walk_alone(mental, maps[b, k], floor[b], start[b], uniforms[:, b, k, r])
                lengths.add(steps)
                assert (rollouts.steps[b, k, r], rollouts.found[b, k, r]) == (steps, found)
                assert rollouts.paths[:, b, k, r].tolist() == path + [-1] * (23 - steps)
    # The comparison is meaningful only if trajectories end at different times.
    assert min(lengths) < 10 and max(lengths) == 23 and len(lengths) > 3
    alone = mental.simulate(maps[1:], floor[1:], start[1:], uniforms[:, 1:])
    assert torch.equal(alone.steps[0], rollouts.steps[1])


def test_a_seeker_that_only_walks_ahead_stops_at_the_end_of_the_floor():
    mental = set_success(seeker(MoveAhead=200))
    maps = torch.zeros(1, 1, *FLOOR.shape, CONFIG.mental_channels, dtype=torch.float64)
    uniforms = torch.rand(6, 1, 1, 2, 2, dtype=torch.float64)
    for start, path in (
        ((2, 0, EAST, 1), [8, 9, 10, 11, 11, 11]),
        ((2, 0, NORTH, 1), [8, 4, 0, 0, 0, 0]),
        ((0, 2, SOUTH, 1), [2, 6, 10, 10, 10, 10]),
        ((0, 2, WEST, 0), [2, 1, 0, 0, 0, 0]),
        ((0, 2, EAST, 0), [2] * 6),
    ):
        rollouts = mental.simulate(maps, FLOOR[None], torch.tensor([start]), uniforms)
        assert rollouts.paths[:, 0, 0].T.tolist() == [path, path]
        assert rollouts.steps.unique().tolist() == [6] and not rollouts.found.any()


@pytest.mark.parametrize(
    ("name", "path"), [("MoveRight", [10, 6, 2, 2]), ("MoveLeft", [10, 10, 10, 10])], ids=["right", "left"]
)
def test_right_and_left_are_relative_to_the_heading(name, path):
    mental = set_success(seeker(**{name: 200}))
    maps = torch.zeros(1, 1, *FLOOR.shape, CONFIG.mental_channels, dtype=torch.float64)
    uniforms = torch.rand(4, 1, 1, 1, 2, dtype=torch.float64)
    rollouts = mental.simulate(maps, FLOOR[None], torch.tensor([[2, 2, WEST, 1]]), uniforms)
    assert rollouts.paths[:, 0, 0, 0].tolist() == path


def test_only_a_successful_claim_ends_the_search():
    mental = seeker(ClaimVisible=200)
    maps = torch.zeros(1, 2, *FLOOR.shape, CONFIG.mental_channels, dtype=torch.float64)
    uniforms = torch.rand(30, 1, 2, 5, 2, dtype=torch.float64)
    start = torch.tensor([[0, 0, 0, 1]])
    rollouts = set_success(mental).simulate(maps, FLOOR[None], start, uniforms)
    assert (rollouts.steps == 1).all() and rollouts.found.all()
    assert (rollouts.paths[0] == 0).all() and (rollouts.paths[1:] == -1).all()
    rollouts = set_success(mental, "ClaimVisible").simulate(maps, FLOOR[None], start, uniforms)
    assert (rollouts.steps == 30).all() and not rollouts.found.any()


def test_claims_succeed_as_often_as_predicted():
    mental = set_success(seeker(ClaimVisible=200))
    with torch.no_grad():
        mental.success.bias[SEEKER_CLAIM] = torch.tensor(0.25).logit()
    maps = torch.zeros(1, 1, *FLOOR.shape, CONFIG.mental_channels, dtype=torch.float64)
    uniforms = torch.rand(100, 1, 1, 4000, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    steps = mental.simulate(maps, FLOOR[None], torch.tensor([[0, 0, 0, 1]]), uniforms).steps
    # Geometric: mean 4, deviation 3.46, so 0.055 for the mean of 4,000.
    assert steps.double().mean().item() == pytest.approx(4, abs=0.25)


def test_seekers_stay_on_the_floor():
    mental = set_success(seeker(MoveAhead=3, MoveLeft=3, MoveRight=3, RotateLeft=3))
    generator = torch.Generator().manual_seed(4)
    floor = torch.rand(6, 5, 7, generator=generator) < 0.6
    floor[:, 2, 3] = True
    maps = torch.randn(6, 2, 5, 7, CONFIG.mental_channels, generator=generator, dtype=torch.float64)
    uniforms = torch.rand(60, 6, 2, 20, 2, generator=generator, dtype=torch.float64)
    paths = mental.simulate(maps, floor, torch.tensor([[2, 3, 0, 1]] * 6), uniforms).paths.long()
    for b in range(6):
        walked = paths[:, b][paths[:, b] >= 0]
        assert floor[b].flatten()[walked].all()
    assert len(paths.unique()) > 10


def test_nothing_is_observed_off_the_map():
    mental = seeker()
    maps = torch.randn(1, *FLOOR.shape, CONFIG.mental_channels, dtype=torch.float64)
    places = torch.tensor([[[-1, 2, 0, 1]], [[3, 0, 1, 1]], [[0, 4, 1, 0]]])
    last, success = torch.full((3, 1), NO_SEEKER_ACTION), torch.zeros(3, 1, dtype=torch.bool)
    on_map = mental.predict(maps, places, last, success)
    nothing = mental.predict(torch.zeros_like(maps), places, last, success)
    assert torch.equal(on_map.policy, nothing.policy) and torch.equal(on_map.success, nothing.success)
    assert on_map.policy.shape == on_map.success.shape == (3, 1, 58)


def test_slices_start_with_the_direction_ahead():
    """Rotating both the map and the seeker by a quarter gives the same slice."""
    mental = seeker()
    maps = torch.arange(8.0, dtype=torch.float64).view(1, 1, 1, 8)
    at = torch.zeros(4, dtype=torch.long)
    assert mental._slices(maps, at, torch.arange(4)).tolist() == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [2, 3, 4, 5, 6, 7, 0, 1],
        [4, 5, 6, 7, 0, 1, 2, 3],
        [6, 7, 0, 1, 2, 3, 4, 5],
    ]


def test_invalid_sizes_are_refused():
    with pytest.raises(ValueError, match="mental_channels must be a multiple of 4, not 10"):
        MentalSeeker(replace(CONFIG, mental_channels=10))
    maps = torch.zeros(1, 2, *FLOOR.shape, CONFIG.mental_channels, dtype=torch.float64)
    with pytest.raises(ValueError, match="does not fit"):
        seeker().simulate(maps, FLOOR[None], torch.zeros(1, 4, dtype=torch.long), torch.rand(3, 1, 3, 2, 2))
