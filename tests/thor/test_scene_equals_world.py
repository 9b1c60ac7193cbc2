"""A scene with one agent does what a world does: same successes, same poses, same pictures."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import drawn

from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.pose import PITCH
from scrubjay.sim.quaternion import quat_from_axis_angle
from scrubjay.sim.world import World
from scrubjay.thor.scene import ActionFailed, Scene

OPENGL = drawn("opengl")
OFFSETS = np.array([[1, 0, 0], [0, -1, 0], [0, 1, 0], [-1, 0, 0], [0, 0, 1], [0, 0, -1]]) * 0.1
"""Ahead, right and up, for a world's hand movements."""


class Pair:
    """One world and one scene in the same room, which take the same actions."""

    def __init__(self, name: str) -> None:
        self.world = World([name], renderer="opengl")
        # Of iTHOR's rooms, only the scene has what is of the goal types.
        self.scene = Scene(name.removeprefix("iTHOR:") if name.startswith("iTHOR:") else make_room(name), 1, 224, 224)
        self.scene.agents[0].horizon = PITCH
        self.goals = [self.scene.types.index(kind) for kind in GOALS]
        for thing, kind in enumerate(self.scene.types):
            if kind in GOALS:
                self.scene.remove(thing)
        room = self.world.rooms[0]
        self.openables = [self.scene.things.index(room.things[one.thing]) for one in room.openables]

    def tried(self, action, *arguments, **options) -> bool:
        try:
            action(0, *arguments, **options)
        except ActionFailed:
            return False
        return True

    def take(self, rng: np.random.Generator) -> tuple[str, bool, bool]:
        """A random action in both, its name, and whether it succeeded in each."""
        world, scene, body = self.world, self.scene, self.scene.agents[0]
        held = bool(world.state.held[0])
        names = (
            ["rotate", "stand", "hand", "hand", "hand", "turn_hand", "drop", "open"] if held
            else ["move"] * 6 + ["rotate", "stand", "open", "open", "hold", "teleport"]
        )  # fmt: skip
        name = names[rng.integers(len(names))]
        pick = int(rng.integers(6))
        if name == "move":
            offset = 0.25 * facing_vector(body.rotation + (0, -90, 90)[pick % 3])
            return name, bool(world.move(np.array([pick % 3]))[0]), self.tried(scene.move, offset)
        if name == "rotate":
            rotation = (body.rotation + (-90, 90)[pick % 2]) % 360
            done = world.rotate(np.array([pick % 2]))[0]
            return name, bool(done), self.tried(scene.turn, rotation, body.horizon, body.standing)
        if name == "stand":
            upright = not body.standing
            done = world.stand(np.array([int(upright)]))[0]
            return name, bool(done), self.tried(scene.turn, body.rotation, body.horizon, upright)
        if name == "open":
            reach = world._floors.reach(world.room_of, world.state.position)[0]
            number = int(np.argsort(reach, kind="stable")[pick % 4])
            done = self._close(number) if world.state.open[0, number] else world.open(np.array([number]))[0]
            wanted = 0.0 if scene.openness(self.openables[number]) else 1.0
            return name, bool(done), self.tried(scene.set_openness, self.openables[number], wanted, force=True)
        if name == "hold":
            goal = pick % len(GOALS)
            done = world.hold(np.array([goal]))[0]
            for thing in self.goals:
                scene.remove(thing)
            return name, bool(done), self.tried(scene.pick_up, self.goals[goal], force=True)
        if name == "hand":
            return name, bool(world.move_hand(np.array([pick]))[0]), self.tried(scene.move_held, OFFSETS[pick])
        if name == "turn_hand":
            facing = np.array([*facing_vector(body.rotation), 0.0])
            up = np.array([0.0, 0, 1])
            axis = [np.cross(facing, up), up, facing][pick // 2]
            quaternion = quat_from_axis_angle(axis, np.array(-30.0 if pick % 2 else 30.0))
            return name, bool(world.rotate_hand(np.array([pick]))[0]), self.tried(scene.turn_held, quaternion)
        if name == "drop":
            return name, bool(world.drop(np.ones(1, bool))[0]), self.tried(scene.drop)
        positions = world.reachable[0].positions
        position = positions[rng.integers(len(positions))]
        pose = world.agent_pose(0)._replace(x=float(position[0]), y=float(position[1]))
        try:
            world.set_agent_pose(0, pose)
            done = True
        except ValueError:
            done = False
        return name, done, self.tried(scene.teleport, position, body.rotation, body.horizon, body.standing)

    def _close(self, number: int) -> bool:
        """As `close_near`, for one openable."""
        world, one = self.world, np.array([number])
        if world._floors.swept_by(world.room_of, world.state.position, one)[0]:
            return False
        if world._untouched(np.zeros(1, int), one)[0]:
            world.state.open[0, number] = False
            return True
        chosen = np.arange(world.state.open.shape[1]) == number
        return bool(world._simulate(np.ones(1, bool), "close", chosen[None])[0])

    def check(self) -> None:
        s, body = self.world.state, self.scene.agents[0]
        assert body.position == pytest.approx(s.position[0], abs=1e-9)
        assert (body.rotation, body.standing) == (s.rotation[0], s.standing[0])
        assert [self.scene.openness(thing) for thing in self.openables] == s.open[0, : len(self.openables)].tolist()
        assert (body.held is not None) == s.held[0]
        if s.goal[0] >= 0 and self.goals[s.goal[0]] not in self.scene.absent:
            assert self.scene.pose(self.goals[s.goal[0]]) == pytest.approx(s.pose[0], abs=1e-5)


def act_and_compare(name: str, seed: int, steps: int, pictures_every: int) -> dict[str, int]:
    pair, rng, counts = Pair(name), np.random.default_rng(seed), {}
    for step in range(steps):
        action, expected, done = pair.take(rng)
        assert done == expected, (step, action)
        counts[action] = counts.get(action, 0) + done
        pair.check()
        if step % pictures_every == 0 and OPENGL:
            view, pictures = pair.world.view(("rgb", "ids", "depth")), pair.scene.see(0, ("ids", "depth"))
            names = np.array([*pair.world.rooms[0].things, ""]), np.array([*pair.scene.things, ""])
            if not name.startswith("iTHOR:"):
                assert (view.rgb[0].numpy() == pictures.rgb).all()
                assert (names[0][view.ids[0].numpy()] == names[1][pictures.ids]).all()
            assert np.mean(np.abs(view.depth[0].numpy() - pictures.depth) > 1e-5) < 1e-3
    return counts


def test_a_scene_equals_a_world_in_a_kitchen():
    counts = act_and_compare("FloorPlan1", seed=1, steps=150, pictures_every=30)
    assert min(counts[name] for name in ("move", "rotate", "open", "hold", "hand", "turn_hand", "drop")) > 0


def test_a_scene_equals_a_world_in_a_room_of_ithor():
    act_and_compare("iTHOR:FloorPlan28", seed=1, steps=80, pictures_every=30)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["FloorPlan2", "FloorPlan203", "FloorPlan310", "FloorPlan415", "iTHOR:FloorPlan1", "iTHOR:FloorPlan402"]
)
def test_a_scene_equals_a_world_for_a_long_time(name):
    act_and_compare(name, seed=2, steps=1500, pictures_every=50)
