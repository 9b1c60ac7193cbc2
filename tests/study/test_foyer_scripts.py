"""Scripts in foyers, on real worlds: where objects end, what the two of a pair share, paths behind books."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scrubjay.game.actions import NAMES
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.generate.foyer import table_of
from scrubjay.rooms.generate.foyer_scene import FoyerRequest, Receptacle, free_range, make_foyer, with_table
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import compile_room
from scrubjay.sim.physics import Physics
from scrubjay.sim.physics_pool import physics_state
from scrubjay.sim.world import HAND_MOVES, World
from scrubjay.study import foyer_scripts as scripts
from scrubjay.study import foyer_tracking as tracking
from scrubjay.study.foyer_data import CONTAINED_SCALES, ContainedScale, TrackingScale, plan_contained, plan_tracking

SCALE = ContainedScale(2, 1)


@pytest.fixture(scope="module")
def block():
    """Two rooms with pots on a side table, all five objects."""
    return plan_contained("FloorPlan502", "SideTable", "Pot", SCALE, seed=3)


def test_dropped_objects_end_inside_the_receptacle_or_on_the_table_behind_it(block):
    rooms, _, _, trajectories, valid = block
    assert valid.reshape(-1, 2).all(1).sum() >= 7, "most of ten pairs are valid"
    last = trajectories.poses[np.arange(len(valid)), trajectories.lengths - 1]
    with World(rooms, len(valid) // len(rooms), threads=1) as world:
        state = world.state
        state.position, state.rotation, state.goal = trajectories.position, trajectories.rotation, trajectories.goal
        state.pose, state.held = last.copy(), np.ones(len(world), bool)
        world.drop(state.held)
        contained = world.contained()
    for number in np.flatnonzero(valid):
        room = rooms[number * len(rooms) // len(valid)]
        names, pot = [thing.name for thing in room.room.things], room.room.things[-1]
        now = physics_state(state, number, len(room.openables))
        physics = Physics(room)
        # The engine's own account of the same state, one world at a time.
        assert physics.contains(now) == contained[number]
        contacts = physics._contacts(physics.load(now), now.pose)
        rests_on = {names[thing] for thing in room.geom_thing[contacts.geom].ravel() if thing < len(names)}
        away = state.pose[number, :2] - pot.position[:2]
        if number % 2:
            assert contained[number] != names.index(pot.name) and table_of(room.room).name in rests_on
            assert away @ facing_vector(trajectories.rotation[number]) > 0.1, "farther from the agent than the pot"
        else:
            assert rests_on == {pot.name} and np.linalg.norm(away) < 0.1
            tall = GOALS[trajectories.goal[number]] in ("Plunger", "Bread", "Knife")  # Their middle may be above it.
            assert tall or contained[number] == names.index(pot.name)


def test_the_two_of_a_pair_differ_in_steps_ahead_and_what_follows_alone(block):
    _, _, offsets, trajectories, valid = block
    forward = trajectories.forward_steps()
    for into in range(0, len(valid), 2):
        behind = into + 1
        assert valid[into] == valid[behind] and (offsets[into] == offsets[behind]).all()
        for name in ("position", "rotation", "standing", "goal"):
            assert np.array_equal(getattr(trajectories, name)[into], getattr(trajectories, name)[behind])
        if not valid[into]:
            continue  # A hand may have been stopped on its way.
        words = [[NAMES[a] for a in trajectories.actions[one] if a >= 0] for one in (into, behind)]
        shared = len(words[0]) - words[0][::-1].index("MoveHandAhead")
        assert words[0][:shared] == words[1][:shared], "alike as far as the receptacle"
        assert np.array_equal(trajectories.poses[into, : shared + 1], trajectories.poses[behind, : shared + 1])
        assert set(words[0][shared:]) == {"MoveHandDown"} and set(words[1][shared:]) == {
            "MoveHandAhead",
            "MoveHandDown",
        }
        assert forward[into] == words[0].count("MoveHandAhead") < forward[behind]
        assert max(map(len, words)) <= scripts.MAX_MOVEMENTS


def test_counting_steps_ahead_does_not_tell_into_from_behind():
    """No number of steps separates more than 75 % of pairs in a pot, and agents stand where there is room for them."""
    scale = replace(SCALE, rooms=4, poses=10, objects=("Cup", "Tomato"))
    rooms, _, _, trajectories, valid = plan_contained("FloorPlan501", "DiningTable", "Pot", scale, seed=0)
    into, behind = trajectories.forward_steps().reshape(-1, 2)[valid.reshape(-1, 2).all(1)].T
    assert len(into) > 50
    assert max(((into < count).mean() + (behind >= count).mean()) / 2 for count in range(15)) < 0.75
    with World(rooms, len(valid) // len(rooms), threads=1) as world:
        world.state.position = trajectories.position
        assert world.can_stand()[valid].all()


def test_a_script_is_the_same_in_any_batch_and_is_made_of_actions(block):
    """World by world, by hand, from the same start: the same poses."""
    rooms, _, _, trajectories, _ = block
    for number in (0, 3, 15):
        with World([rooms[number // 10]], threads=1) as world:
            world.state.position[0], world.state.rotation[0] = (
                trajectories.position[number],
                trajectories.rotation[number],
            )
            assert world.hold(trajectories.goal[number : number + 1])[0]
            for step in range(trajectories.lengths[number] - 1):
                assert np.array_equal(world.state.pose[0], trajectories.poses[number, step])
                name = NAMES[trajectories.actions[number, step]]
                if name.startswith("MoveHand"):
                    done = world.move_hand(np.array([HAND_MOVES.index(name.removeprefix("MoveHand").lower())]))
                else:
                    assert name == "RotateHand|-X"
                    done = world.rotate_hand(np.array([0]))
                assert done[0]
            assert np.array_equal(world.state.pose[0], trajectories.poses[number, trajectories.lengths[number] - 1])


def test_the_same_seed_gives_the_same_block_and_another_seed_another():
    small = replace(SCALE, rooms=1, objects=("Tomato",))
    one, same, other = (plan_contained("FloorPlan505", "CoffeeTable", "Bowl", small, seed) for seed in (1, 1, 2))
    assert one[1] == same[1] and np.array_equal(one[3].poses, same[3].poses)
    assert one[1] != other[1]


def test_a_pair_is_invalid_if_one_of_its_two_is():
    """A hamper at the back of its table leaves no place behind it; into it would still go."""
    base = with_table(make_foyer(FoyerRequest("FloorPlan501", "Dresser")), "Dresser")
    low, _ = free_range(base, "LaundryHamper", 0.0)
    room = compile_room(
        make_foyer(FoyerRequest("FloorPlan501", "Dresser", Receptacle("LaundryHamper", toward=float(low[1]))))
    )
    goal = np.array([GOALS.index("Cup")] * 2)
    with World([room], 2, threads=1) as world:
        target = scripts.target_of(room)
        _, valid = scripts.carry_pairs(world, [target], np.array([[0.98, 0.0]] * 2), goal)
        assert not valid.any()
        assert world.state.held.all(), "dropping happened in a copy"
        assert scripts._ends_well(world, [target] * 2, np.array([False, True])).tolist() == [True, False]


def test_the_papers_counts():
    assert CONTAINED_SCALES["paper"].pairs == 25_000
    assert 5 * 5 * len(tracking.TRACKED) * 10 == 750


def test_paths_go_behind_the_books_at_the_agents_side_and_back_out():
    rooms, rows, paths, trajectories = plan_tracking("FloorPlan503", "DiningTable", TrackingScale(2), seed=0)
    assert paths.possible.mean() > 0.5 and not trajectories.standing.any()
    for number in np.flatnonzero(paths.possible):
        room, length = rooms[number // 3], trajectories.lengths[number]
        assert length == paths.moves[number] + 1, "no movement failed"
        facing = trajectories.rotation[number]
        ahead = np.append(facing_vector(facing), 0)
        books = [i for i, thing in enumerate(room.room.things) if thing.name.startswith("Book")]
        assert len(books) == rows[number // 3].count
        _, far = scripts.extent_along(room, books, ahead)
        poses = trajectories.poses[number, :length]
        assert np.ptp(poses @ np.append(ahead, np.zeros(4))) < 1e-6, "straight, across the view"
        assert (poses[:, :3] @ ahead > far).all()
        steps = np.linalg.norm(np.diff(poses[:, :3], axis=0), axis=1)
        assert steps == pytest.approx(0.1)
        name = "MoveHandRight" if paths.to_right[number] else "MoveHandLeft"
        assert {NAMES[a] for a in trajectories.actions[number, : length - 1]} == {name}


def test_a_good_path_is_seen_first_and_then_occluded_for_long_enough():
    assert tracking.is_good_path(np.array([90, 80, 70, 9, 0, 0, 50]))
    assert not tracking.is_good_path(np.array([90, 80, 9, 0, 0, 0, 50])), "seen twice only"
    assert not tracking.is_good_path(np.array([90, 80, 70, 9, 0, 10, 50])), "occluded twice only"
