"""The batched world: actions, invariants under random play, and refused input."""

import numpy as np
import pytest
from helpers import drawer_chest, hut

from scrubjay.errors import RoomError
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.access import find_opening_poses
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.quaternion import quat_mul
from scrubjay.sim.world import HAND_MOVES, HAND_TURNS, World

ALL = np.ones(1, bool)


def one(value: int) -> np.ndarray:
    return np.array([value])


@pytest.fixture
def world(chest):
    with World([chest]) as world:
        world.set_agent_pose(0, AgentPose(0.0, 0.0, 0.0, True))
        yield world


def test_moves_are_a_quarter_of_a_meter_in_the_agents_own_directions(world):
    for rotation, ahead in ((0, (0, 1)), (90, (1, 0)), (180, (0, -1)), (270, (-1, 0))):
        for move, turn in ((0, 0), (1, -90), (2, 90)):
            world.set_agent_pose(0, AgentPose(0.0, 0.0, rotation, True))
            assert world.move(one(move))[0]
            x, y = ahead
            angle = np.radians(turn)
            expected = 0.25 * np.array([x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)])
            assert world.state.position[0] == pytest.approx(expected, abs=1e-9)


def test_the_held_object_is_where_its_pixels_are(world):
    assert np.isnan(world.held_cells()).all(), "nothing is held yet"
    assert world.hold(one(GOALS.index("Tomato")))[0]
    for move in ("ahead", "right", "right", "down", "down", "left", "ahead"):
        world.move_hand(one(HAND_MOVES.index(move)))
        _, alone = world.goal_pixels()
        rows, columns = (index.double().mean().item() for index in alone[0].nonzero(as_tuple=True))
        # Pixels' middles are half a pixel further; cells are counted from the middle of the first.
        middle = (np.array([rows, columns]) + 0.5) / world.size * 7 - 0.5
        assert world.held_cells()[0] == pytest.approx(middle, abs=0.12)
    world.drop(ALL)
    assert np.isnan(world.held_cells()).all()


def test_a_wall_stops_a_move(world):
    world.set_agent_pose(0, AgentPose(-1.75, 0.0, 270.0, True))
    assert not world.move(one(0))[0]
    assert world.agent_pose(0) == AgentPose(-1.75, 0.0, 270.0, True)


def test_turning_standing_and_crouching(world):
    assert world.rotate(one(0))[0] and world.state.rotation[0] == 270
    assert world.rotate(one(1))[0] and world.state.rotation[0] == 0
    assert not world.stand(one(1))[0]
    assert world.stand(one(0))[0] and not world.state.standing[0]
    assert not world.stand(one(0))[0]
    assert world.stand(one(1))[0]


def test_nothing_is_done_where_nothing_is_asked(chest):
    with World([chest], copies=3) as world:
        world.state.position[:] = 0
        assert world.move(np.array([0, -1, 0])).tolist() == [True, False, True]
        assert world.state.position[1].tolist() == [0, 0]


def test_an_agent_in_the_way_blocks_a_drawer_and_one_further_back_does_not(world):
    world.set_agent_pose(0, AgentPose(0.0, 1.0, 0.0, True))
    assert not world.open(one(0))[0] and not world.state.open.any()
    world.set_agent_pose(0, AgentPose(0.0, 0.25, 0.0, True))
    assert world.open(one(0))[0]
    assert not world.open(one(0))[0], "it is open already"


def test_an_open_drawer_is_walked_around(world):
    world.set_agent_pose(0, AgentPose(0.0, 0.5, 0.0, True))
    assert world.open(one(0))[0]
    moves = 0
    while world.move(one(0))[0]:
        moves += 1
    assert world.state.position[0, 1] < 1.0
    assert world.close_near(ALL)[0]
    assert world.move(one(0))[0]


def test_closing_needs_something_open_within_reach(world):
    assert not world.close_near(ALL)[0]
    world.set_agent_pose(0, AgentPose(0.0, 0.25, 0.0, True))
    world.open(one(0))
    world.set_agent_pose(0, AgentPose(0.0, -1.75, 0.0, True))
    assert not world.close_near(ALL)[0]
    assert world.state.open[0, 0]


def test_open_at_opens_what_is_at_the_cell(world):
    """From 0.75 m in front of the drawer, it is in the middle column; the row is found by trying from the top."""
    world.set_agent_pose(0, AgentPose(0.0, 0.5, 0.0, True))
    assert not world.open_at(one(6), one(0))[0]
    opened = [row for row in range(7) if world.open_at(one(row), one(3))[0]]
    assert len(opened) == 1 and world.state.open[0].tolist() == [True, False]


def test_open_at_reaches_no_further_than_arms_length(world):
    world.set_agent_pose(0, AgentPose(0.0, -0.5, 0.0, True))
    for row in range(7):
        assert not world.open_at(one(row), one(3))[0]


@pytest.mark.parametrize("standing", [True, False])
def test_openable_cells_are_those_where_open_at_succeeds_unless_the_agent_is_in_the_way(standing):
    """Every cell is tried, in 24 places of a kitchen, some of them with everything open."""
    rng = np.random.default_rng(0)
    with World(["FloorPlan1"], copies=24) as world:
        positions = world.reachable[0].positions
        world.state.position[:] = positions[rng.choice(len(positions), 24)]
        world.state.rotation[:], world.state.standing[:] = 90.0 * rng.integers(4, size=24), standing
        world.state.open[:6] = True
        view = world.view(("ids", "depth"))
        found = world.openable_cells(view).numpy()
        is_open = world.state.open.copy()
        blocked = np.stack([
            world._floors.swept_by(world.room_of, world.state.position, np.full(24, k)) for k in range(is_open.shape[1])
        ], 1)  # fmt: skip
        clear = ~(blocked & ~is_open).any(1)
        for row, column in np.ndindex(7, 7):
            success = world.open_at(np.full(24, row), np.full(24, column), view)
            world.state.open[:] = is_open
            assert not (success & ~found[:, row, column]).any()
            assert (success == found[:, row, column])[clear].all()
        assert found.any((1, 2)).sum() > 4 and clear.sum() > 10


def test_an_object_is_hidden_in_a_drawer(world, chest):
    world.set_agent_pose(0, AgentPose(0.0, 0.5, 0.0, True))
    world.open(one(0))
    assert world.hold(one(GOALS.index("Cup")))[0]
    for move in ("ahead", "ahead", "ahead", "down", "down", "down", "down", "ahead"):
        world.move_hand(one(HAND_MOVES.index(move)))
    assert world.drop(ALL)[0]
    assert chest.things[world.contained()[0]] == "Drawer_0"
    assert world.close_near(ALL)[0]
    assert chest.things[world.contained()[0]] == "Drawer_0"
    assert not world.drop(ALL)[0], "nothing is held any more"
    world.remove(ALL)
    assert world.contained()[0] == -1 and world.state.goal[0] == -1


def test_hand_actions_need_something_in_the_hand(world):
    assert not world.move_hand(one(0))[0]
    assert not world.rotate_hand(one(0))[0]
    assert not world.drop(ALL)[0]


def test_turning_the_hand_back_and_forth_returns(world):
    world.hold(one(GOALS.index("Knife")))
    before = world.state.pose.copy()
    for turn in ("+X", "-X", "+Y", "-Y", "+Z", "-Z"):
        assert world.rotate_hand(one(HAND_TURNS.index(turn)))[0]
    assert world.state.pose == pytest.approx(before, abs=1e-9)


@pytest.mark.parametrize("heading", [0.0, 90.0])
@pytest.mark.parametrize(
    ("turn", "before", "after"),
    [("+X", "ahead", "down"), ("-X", "ahead", "up"), ("+Y", "ahead", "right"), ("-Y", "ahead", "left"),
     ("+Z", "right", "up"), ("-Z", "right", "down")],
)  # fmt: skip
def test_a_turn_of_the_hand_has_its_sign(empty, turn, before, after, heading):
    """By 30 degrees, in free air and beside a wall, where physics decides; as in Unity, whose axes are left-handed."""
    ahead, right = ([0, 1, 0], [1, 0, 0]) if heading == 0 else ([1, 0, 0], [0, -1, 0])
    ways = {"ahead": np.array(ahead), "right": np.array(right), "up": np.array([0, 0, 1])}
    ways |= {"left": -ways["right"], "down": -ways["up"]}
    with World([empty]) as world:
        for free in (True, False):
            world.set_agent_pose(0, AgentPose(0.0, 0.0, heading, True))
            assert world.hold(one(GOALS.index("Plunger")))[0]
            if not free:  # The wall is at 2 m; a plunger is half a meter long and 15 cm wide.
                world.state.pose[0, :3] = 1.78 * ways["ahead"] + ways["up"]
            assert world._clear(ALL, world.state.goal, *[world.state.pose[:, :3]] * 2)[0] == free
            start = world.state.pose[0].copy()
            assert world.rotate_hand(one(HAND_TURNS.index(turn)))[0]
            turned = quat_mul(world.state.pose[0, 3:], start[3:] * [1, -1, -1, -1])
            vector = quat_mul(quat_mul(turned, np.array([0, *ways[before]])), turned * [1, -1, -1, -1])[1:]
            expected = np.cos(np.radians(30)) * ways[before] + np.sin(np.radians(30)) * ways[after]
            assert vector == pytest.approx(expected, abs=1e-9)
            assert world.state.pose[0, :3] == pytest.approx(start[:3])


def random_play(world: World, rng: np.random.Generator, steps: int, check=lambda before, done, kind: None) -> bytes:
    """Random actions of every kind in every world; returns the trajectory as bytes."""
    count, trajectory = len(world), b""
    for _ in range(steps):
        before = world.state.copy()
        kind = rng.choice(["move", "rotate", "stand", "open", "close", "hold", "hand", "turn", "drop"],
                          p=[0.2, 0.08, 0.04, 0.2, 0.06, 0.08, 0.24, 0.05, 0.05])  # fmt: skip
        if kind == "move":
            done = world.move(rng.integers(-1, 3, count))
        elif kind == "rotate":
            done = world.rotate(rng.integers(-1, 2, count))
        elif kind == "stand":
            done = world.stand(rng.integers(-1, 2, count))
        elif kind == "open":
            counts = np.array([len(world.rooms[room].openables) for room in world.room_of])
            done = world.open(rng.integers(-1, np.maximum(counts, 1)))
        elif kind == "close":
            done = world.close_near(rng.random(count) < 0.7)
        elif kind == "hold":
            done = world.hold(np.where(rng.random(count) < 0.5, rng.integers(5, size=count), -1))
        elif kind == "hand":
            done = world.move_hand(rng.integers(-1, 6, count))
        elif kind == "turn":
            done = world.rotate_hand(rng.integers(-1, 6, count))
        else:
            done = world.drop(rng.random(count) < 0.7)
        check(before, done, kind)
        state = world.state
        trajectory += b"".join(array.tobytes() for array in (done, state.pose, state.position, state.open))
    return trajectory


def test_thousands_of_random_actions_keep_the_world_whole():
    """No crash, nothing through the floor or a wall, failed actions change nothing, opened things close again."""
    scenes = ["FloorPlan5", "FloorPlan12", "FloorPlan205", "FloorPlan305", "FloorPlan405", "FloorPlan505"]
    rng = np.random.default_rng(11)
    with World(scenes, copies=2) as world:
        bounds = np.array([world.rooms[room].room.bounds for room in world.room_of])
        heights = np.array([world.rooms[room].room.height for room in world.room_of])

        def check(before, done, kind):
            after = world.state
            for name in ("position", "rotation", "standing", "open", "goal", "pose", "held"):
                same = (getattr(before, name) == getattr(after, name)).reshape(len(world), -1).all(1)
                assert same[~done].all(), f"a failed {kind} changed {name}"
            present = after.goal >= 0
            x, y, z = after.pose[:, :3].T
            inside = (bounds[:, 0] < x) & (x < bounds[:, 2]) & (bounds[:, 1] < y) & (y < bounds[:, 3])
            assert inside[present].all() and ((z > 0) & (z < heights))[present].all()
            assert np.isfinite(after.pose).all()

        random_play(world, rng, 250, check)
        world.remove(np.ones(len(world), bool))
        for b in range(len(world)):
            room = world.room_of[b]
            for x, y in world.reachable[room].positions:
                world.state.position[b] = (x, y)
                world.close_near(np.arange(len(world)) == b)
                if not world.state.open[b].any():
                    break
        assert not world.state.open.any()


def test_play_is_the_same_with_any_number_of_threads_and_in_any_batch():
    scenes = ["FloorPlan6", "FloorPlan306"]
    compiled = [compile_room(make_room(scene)) for scene in scenes]
    trajectories = []
    for threads in (1, 4):
        with World(compiled, copies=2, threads=threads) as world:
            trajectories.append(random_play(world, np.random.default_rng(3), 60))
    assert trajectories[0] == trajectories[1]
    with World(compiled[:1], threads=2) as alone, World(compiled, copies=2, threads=2) as many:
        for world in (alone, many):
            world.hold(np.zeros(len(world), int))
            for move in (0, 5, 5, 1, 0, 0, 5):
                world.move_hand(np.full(len(world), move))
            world.drop(np.ones(len(world), bool))
        assert alone.state.pose[0].tobytes() == many.state.pose[0].tobytes() == many.state.pose[1].tobytes()


def test_a_room_without_openables_can_be_played_in(empty):
    with World([empty], copies=2) as world:
        assert not world.open_at(np.array([3, -1]), np.array([3, -1])).any()
        assert not world.close_near(np.ones(2, bool)).any()
        assert world.move(np.array([0, 0])).shape == (2,)


def test_openables_can_be_opened_from_their_opening_poses(world, chest):
    opening_poses = find_opening_poses(chest, world.reachable[0])
    assert all(opening_poses)
    for number, poses in enumerate(opening_poses):
        for pose in poses[:5]:
            world.set_agent_pose(0, pose)
            assert world.open(one(number))[0]
            world.state.open[:] = False


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: w.move(one(3)), "action 3 is out of range: -1 for nothing, or 0 to 2 for ahead, left, right"),
        (lambda w: w.move(one(-2)), "action -2 is out of range"),
        (lambda w: w.move(np.array([0, 1])), "one whole number for each of 1 worlds"),
        (lambda w: w.move(np.array([0.5])), "one whole number for each of 1 worlds"),
        (lambda w: w.hold(one(5)), "0 to 4 for Bread, Cup, Knife, Plunger, Tomato"),
        (lambda w: w.open(one(2)), "openables are numbers from -1 to 1"),
        (lambda w: w.open_at(one(7), one(0)), "action 7 is out of range"),
        (lambda w: w.set_agent_pose(0, AgentPose(1.99, 0.0, 0.0, True)), r"no body can stand at \(1.99, 0.00\) in hut"),
        (lambda w: w.set_agent_pose(0, AgentPose(0.0, 1.7, 0.0, True)), "no body can stand"),
    ],
)
def test_bad_input_is_refused_before_anything_changes(world, call, message):
    before = world.state.copy()
    with pytest.raises(ValueError, match=message):
        call(world)
    assert all((getattr(before, name) == getattr(world.state, name)).all() for name in vars(before))


def test_bad_worlds_are_refused():
    with pytest.raises(RoomError, match="unknown scene 'FloorPlan999'"):
        World(["FloorPlan999"])
    with pytest.raises(ValueError, match="at least one room"):
        World([])
    with pytest.raises(ValueError, match="not a multiple of 7"):
        World([hut(*drawer_chest())], size=100)
