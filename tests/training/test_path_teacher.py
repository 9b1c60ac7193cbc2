"""Shortest paths in the mental map: against breadth-first search, by hand, and in whole games."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import tree
from scrubjay.agent.agent import Agent, explored_maps
from scrubjay.agent.config import SMALL
from scrubjay.agent.hiding_outcomes import NOT_HIDDEN
from scrubjay.agent.mental_seeker import NO_SEEKER_ACTION, SEEKER_CLAIM
from scrubjay.agent.metric_map import MapState
from scrubjay.agent.perspective import PerspectiveSimulation
from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.sim.world import World
from scrubjay.training.learner import Learner, Objective
from scrubjay.training.path_teacher import UNREACHABLE, PathTeacher, claimable, distances, first_actions, teach
from scrubjay.training.rollout import Collector

CPU = torch.device("cpu")
NORTH, EAST, SOUTH, WEST = range(4)
WAYS = {NORTH: (-1, 0), EAST: (0, 1), SOUTH: (1, 0), WEST: (0, -1)}
TURNED = {"MoveAhead": 0, "MoveRight": 1, "MoveLeft": 3}


def after(place: tuple, action: str) -> tuple:
    """The place (row, column, quarter, standing) after an action, if all cells were floor."""
    row, column, quarter, standing = place
    if action in TURNED:
        down, right = WAYS[(quarter + TURNED[action]) % 4]
        return row + down, column + right, quarter, standing
    if action.startswith("Rotate"):
        return row, column, (quarter + (1 if action == "RotateRight" else 3)) % 4, standing
    return row, column, quarter, int(action == "Stand")


ACTIONS = (*TURNED, "RotateLeft", "RotateRight", "Stand", "Crouch")


def slow_distances(aims: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Distances by a breadth-first search from each place."""
    result = np.full(aims.shape, UNREACHABLE)
    for start in np.ndindex(*aims.shape):
        if not floor[start[:2]]:
            continue
        seen, queue = {start}, deque([(start, 0)])
        while queue:
            place, steps = queue.popleft()
            if aims[place]:
                result[start] = steps
                break
            for action in ACTIONS:
                there = after(place, action)
                on = all(0 <= there[k] < floor.shape[k] for k in range(2)) and floor[there[:2]]
                if on and there not in seen:
                    seen.add(there)
                    queue.append((there, steps + 1))
    return result


def random_maps(seed: int, games: int, height: int, width: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random((games, height, width, 4, 2)) < share, rng.random((games, height, width)) < 0.7


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.0, 0.02, 0.3]))
def test_distances_are_those_of_a_breadth_first_search(seed, height, width, share):
    aims, floor = random_maps(seed, 2, height, width, share)
    computed = distances(torch.from_numpy(aims), torch.from_numpy(floor)).numpy()
    for b in range(2):
        assert (computed[b] == slow_distances(aims[b] & floor[b][..., None, None], floor[b])).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 7), st.sampled_from([0.0, 0.01, 0.3]))
def test_first_actions_reduce_the_distance_by_one(seed, height, width, share):
    aims, floor = (torch.from_numpy(array) for array in random_maps(seed, 2, height, width, share))
    away = distances(aims, floor)
    steps = first_actions(away)
    assert ((steps == NOTHING) == (away >= UNREACHABLE)).all() and (
        (steps == action_index("ClaimVisible")) == (away == 0)
    ).all()
    names = {action_index(name): name for name in ACTIONS}
    for b, *place in ((steps >= 0) & (away > 0)).nonzero().tolist():
        there = after(tuple(place), names[steps[(b, *place)].item()])
        assert min(there[:2]) >= 0 and away[(b, *there)] == away[(b, *place)] - 1


def test_long_paths_are_found_to_the_end():
    """A corridor of 60 positions, claimed from its east end, facing west: longer than the steps between two checks."""
    aims = torch.zeros(1, 1, 60, 4, 2, dtype=torch.bool)
    aims[0, 0, 59, WEST, 1] = True
    away = distances(aims, torch.ones(1, 1, 60, dtype=torch.bool))
    assert away[0, 0, 0, NORTH, 1] == 59 + 1, "sideways, with one turn"
    assert away[0, 0, 0, EAST, 1] == 59 + 2, "ahead, with two turns"
    assert away[0, 0, 0, WEST, 0] == 1 + 59 + 1 + 1, (
        "there is no step backwards: turn, sideways, turn back, and stand up"
    )


def l_shaped_teacher() -> tuple[PathTeacher, torch.Tensor]:
    """Floor in the shape of an L: (2, 0), (1, 0), (0, 0), (0, 1); claimed crouching at (0, 1), facing east."""
    floor = torch.tensor([[[1, 1], [1, 0], [1, 0]]], dtype=torch.bool)
    aims = torch.zeros(1, 3, 2, 4, 2, dtype=torch.bool)
    aims[0, 0, 1, EAST, 0] = True
    teacher = PathTeacher(3, CPU)
    # The game's start is at (1, 0): the window's first position is a step ahead of it.
    teacher.set(torch.tensor([1]), first_actions(distances(aims, floor)), torch.tensor([[0, 1]]))
    return teacher, distances(aims, floor)


@pytest.mark.parametrize(
    ("place", "action", "steps"),
    [
        ((0, -1, NORTH, 1), "MoveAhead", 5),
        ((0, 0, NORTH, 1), "MoveAhead", 4),
        ((0, 0, NORTH, 0), "MoveAhead", 3),
        ((0, 1, NORTH, 0), "MoveRight", 2),
        ((0, 1, SOUTH, 0), "MoveLeft", 2),
        ((0, 1, EAST, 1), "MoveAhead", 2),
        ((1, 1, NORTH, 0), "RotateRight", 1),
        ((1, 1, SOUTH, 0), "RotateLeft", 1),
        ((1, 1, EAST, 1), "Crouch", 1),
        ((1, 1, EAST, 0), "ClaimVisible", 0),
        ((1, 0, EAST, 0), None, UNREACHABLE),
        ((2, 1, EAST, 0), None, None),
        ((0, 2, EAST, 0), None, None),
        ((-9, -9, EAST, 0), None, None),
    ],
)
def test_actions_by_hand(place, action, steps):
    teacher, away = l_shaped_teacher()
    actions = teacher.action(torch.tensor([place] * 3))
    assert actions.tolist() == [NOTHING, action_index(action) if action else NOTHING, NOTHING]
    if steps is not None:
        assert away[0, 1 - place[1], place[0], place[2], place[3]] == steps


def test_actions_survive_a_larger_window():
    teacher, _ = l_shaped_teacher()
    here = torch.tensor([[0, 0, NORTH, 1]] * 3)
    larger = torch.full((2, 2, 5, 4, 2), action_index("Stand"))
    teacher.set(torch.tensor([0, 2]), larger, torch.tensor([[-4, 0], [-4, 9]]))
    assert teacher.action(here).tolist() == [action_index("Stand"), action_index("MoveAhead"), NOTHING]
    smaller = torch.full((1, 1, 1, 4, 2), action_index("Crouch"))
    teacher.set(torch.tensor([0]), smaller, torch.tensor([[-4, 0]]))
    assert teacher.action(here).tolist() == [NOTHING, action_index("MoveAhead"), NOTHING], (
        "nothing is left of the previous game"
    )
    assert teacher.action(torch.stack([here, here + 9])).tolist() == [teacher.action(here).tolist(), [NOTHING] * 3]


CONFIG = replace(SMALL, sir_channels=3, goal_embedding=1, mental_channels=16, mental_lstm=32, action_embedding=8)


def simulation() -> PerspectiveSimulation:
    """A simulation whose mental seeker predicts success of a claim at some places and failure at others."""
    torch.manual_seed(3)
    perspective = PerspectiveSimulation(CONFIG)
    with torch.no_grad():
        perspective.outcome_embedding.weight *= 3
        perspective.seeker.success.weight[SEEKER_CLAIM] *= 20
    return perspective


@torch.no_grad()
def test_claims_succeed_where_the_mental_seeker_predicts_it_for_its_first_step():
    seeker, generator = simulation().seeker, torch.Generator().manual_seed(0)
    maps = torch.randn(2, 3, 4, CONFIG.mental_channels, generator=generator)
    floor = torch.rand(2, 3, 4, generator=generator) < 0.7
    claims = claimable(seeker, maps, floor)
    assert (
        claims.shape == (2, 3, 4, 4, 2)
        and not claims[~floor].any()
        and not claimable(seeker, maps, floor & False).any()
    )
    odds = np.full(claims.shape, -np.inf)
    for b, row, column in floor.nonzero().tolist():
        for quarter, standing in np.ndindex(4, 2):
            place = torch.tensor([[[row, column, quarter, standing]]])
            prediction = seeker.predict(
                maps[b : b + 1], place, torch.tensor([[NO_SEEKER_ACTION]]), torch.tensor([[False]])
            )
            odds[b, row, column, quarter, standing] = prediction.success[0, 0, SEEKER_CLAIM].item()
    assert (claims.numpy() == (odds > 0)).all() and 0 < claims.sum() < 8 * floor.sum()
    with torch.no_grad():
        seeker.success.bias[SEEKER_CLAIM] -= 100
    assert not claimable(seeker, maps, floor).any(), "a mental seeker that expects no success teaches nothing"


def write_random_walks(agent_map, games: int, seed: int) -> tuple[MapState, torch.Tensor]:
    """Maps of random walks from the start, and the places (T, B, 4) of their steps."""
    generator = torch.Generator().manual_seed(seed)
    steps = 25
    way = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0]])[torch.randint(4, (steps, games), generator=generator)]
    position = torch.cat([torch.zeros(1, games, 2, dtype=torch.int64), way.cumsum(0)[:-1]])
    views = torch.stack([torch.randint(n, (steps, games), generator=generator) for n in (4, 2)], -1)
    place = torch.cat([position, views], -1)
    yes = torch.ones(steps, games, dtype=torch.bool)
    value = torch.randn(steps, games, CONFIG.map_value, generator=generator)
    return agent_map.write(agent_map.initial_state(games), place, value, yes, ~yes)[1], place


def teacher_inputs(maps: MapState, place: torch.Tensor, outcome: torch.Tensor) -> tuple:
    """The arguments of `start` for objects hidden at places (n, 4) as observed."""
    explored, origin = explored_maps(maps.entries)
    row, column = origin[:, 1] - place[:, 1], place[:, 0] - origin[:, 0]
    return explored, origin, torch.stack([row, column, place[:, 2]], -1), outcome


def start(teacher: PathTeacher, perspective, games, explored, origin, place, outcome) -> None:
    """Starts to teach games (n,), given by index."""
    teacher.set(games, teach(perspective, explored, place, outcome), origin)


@torch.no_grad()
def test_a_game_in_a_batch_is_taught_as_if_alone():
    perspective = simulation()
    metric_map = Agent(CONFIG).memory.metric_map
    maps, place = write_random_walks(metric_map, 4, 0)
    outcome = torch.tensor([0, 17, 200, NOT_HIDDEN])
    together = PathTeacher(6, CPU)
    numbers = torch.tensor([5, 0, 3, 2])
    start(together, perspective, numbers, *teacher_inputs(maps, place[-1], outcome))
    seen = set()
    for b in range(4):
        alone = PathTeacher(1, CPU)
        one = tree.index(maps, slice(b, b + 1))
        start(alone, perspective, torch.tensor([0]), *teacher_inputs(one, place[-1, b : b + 1], outcome[b : b + 1]))
        for there in place[:, b]:
            everywhere = there.expand(6, 4)
            action = together.action(everywhere)[numbers[b]].item()
            assert action == alone.action(there[None]).item()
            seen.add(action)
    assert action_index("ClaimVisible") in seen and len(seen) > 3, "the test needs different actions"
    assert (together.action(place[0, 0].expand(6, 4))[[1, 4]] == NOTHING).all(), "the other games have no teacher"


@torch.no_grad()
def test_actions_follow_the_imagined_map_of_each_hiding():
    """Every action of the teacher, computed the slow way: M^e of each game, then breadth-first search."""
    perspective, (maps, place) = simulation(), write_random_walks(Agent(CONFIG).memory.metric_map, 2, 1)
    teacher, outcome = PathTeacher(2, CPU), torch.tensor([40, 7])
    explored, origin, at, _ = known = teacher_inputs(maps, place[3], outcome)
    start(teacher, perspective, torch.arange(2), *known)
    survey = perspective.encode_maps(explored)
    for b in range(2):
        one = slice(b, b + 1)
        imagined = perspective.imagine(survey[one], explored.inside[one], at[one, None], outcome[one, None, None])
        aims = claimable(perspective.seeker, imagined[:, 0], explored.floor[one])[0].numpy()
        away = slow_distances(aims, explored.floor[b].numpy())
        for there in np.ndindex(*away.shape):
            row, column, quarter, standing = there
            here = torch.tensor([[origin[b, 0] + column, origin[b, 1] - row, quarter, standing]] * 2)
            action = teacher.action(here)[b].item()
            if away[there] in (0, UNREACHABLE):
                assert action == (action_index("ClaimVisible") if away[there] == 0 else NOTHING)
            else:
                name = next(name for name in ACTIONS if action_index(name) == action)
                assert away[after(there, name)] == away[there] - 1


def test_teaching_works_in_bfloat16():
    """As on a GPU: most actions are the same, since few predictions are close to the threshold."""
    perspective, (maps, place) = simulation(), write_random_walks(Agent(CONFIG).memory.metric_map, 4, 2)
    actions = []
    for bfloat16 in (False, True):
        teacher = PathTeacher(4, CPU)
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            start(
                teacher, perspective, torch.arange(4), *teacher_inputs(maps, place[2], torch.tensor([3, 60, 150, 290]))
            )
        actions.append(teacher.actions)
    assert (actions[0] == actions[1]).float().mean() > 0.9


def test_seekers_are_taught_in_whole_games_and_imitate(chest):
    """Claims are predicted to succeed everywhere: seekers are taught from the first step of S to the game's end."""
    torch.manual_seed(0)
    agent = Agent(SMALL)
    with torch.no_grad():
        agent.perspective.seeker.success.bias[SEEKER_CLAIM] = 100
    with World([chest], copies=2, size=SMALL.image_size) as world:
        game = CacheGame(world, RandomEpisodes(3), np.array([3, 1, 2, 2, 4]))
        collector = Collector(agent, [game], seed=1, hiding=True)
        rollout = collector.collect(16)
    seeking = rollout.observation.stage == Stage.S
    assert seeking.any() and (rollout.teacher_action[~seeking] == NOTHING).all()
    first = seeking[1:] & ~seeking[:-1]
    assert (rollout.teacher_action[1:][first] == action_index("ClaimVisible")).all(), "the hider knows the start"
    assert set(rollout.teacher_action[seeking].tolist()) <= {NOTHING, action_index("ClaimVisible")}

    learner = Learner(agent, Objective(imitation=0.5))
    loss = learner(rollout)[0]["s/imitation"]
    logits = agent.evaluate(rollout.state, rollout.observation, rollout.is_first).decision.logits
    taught = seeking & (rollout.teacher_action >= 0)
    expected = -logits.log_softmax(-1)[taught, action_index("ClaimVisible")].mean()
    torch.testing.assert_close(loss, expected)
    loss.backward()
    bias = agent.heads.stages["S"].actor.bias.grad
    assert bias is not None and torch.isfinite(bias).all() and bias.argmin() == len(bias) - 1, "claims become likely"
    nothing = type(rollout)(**{**vars(rollout), "teacher_action": torch.full_like(rollout.teacher_action, NOTHING)})
    assert learner(nothing)[0]["s/imitation"] == 0
