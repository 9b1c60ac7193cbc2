"""Physics in child processes: bit-exactly as in threads; nothing hangs, no process is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sim.test_world import random_play

from scrubjay.envs.tasks import Manipulate
from scrubjay.errors import PhysicsError, TrainingError
from scrubjay.game import actions
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.sim.build import build_room
from scrubjay.sim.physics_pool import PhysicsProcesses
from scrubjay.sim.world import World
from scrubjay.training.config import TrainConfig
from scrubjay.training.distributed import Group
from scrubjay.training.run import Run
from scrubjay.training.train import train
from scrubjay.training.trainer import Trainer, physics_processes

SCENES = ("FloorPlan6", "FloorPlan208", "FloorPlan306")


@pytest.fixture(scope="module")
def rooms():
    return [build_room(scene) for scene in SCENES]


@pytest.fixture
def physics():
    physics = PhysicsProcesses(2)
    yield physics
    physics.close()


def holding(world: World) -> World:
    """Puts a tomato into every agent's hand."""
    assert world.hold(np.full(len(world), 4)).all()
    return world


def with_cores(monkeypatch, count: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(count)), raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)


def everyone(world: World) -> np.ndarray:
    return np.ones(len(world), bool)


def test_random_play_is_the_same_bit_by_bit(rooms, physics):
    trajectories = []
    for backend in (None, physics):
        with World(rooms, copies=4, physics=backend) as world:
            trajectories.append(random_play(world, np.random.default_rng(5), 120))
    assert trajectories[0] == trajectories[1]


def test_games_are_the_same_bit_by_bit(rooms, physics):
    """Random manipulation games, from the first step to the pixels of the dropped object."""
    hands = [
        number
        for number, name in enumerate(actions.NAMES)
        if actions.ALLOWED[Stage.OM, number] and (not name.startswith("OpenAt") or name in ("OpenAt|4,4", "OpenAt|6,4"))
    ]
    trajectories = []
    for backend in (None, physics):
        rng = np.random.default_rng(2)
        with World(rooms, copies=4, size=28, physics=backend) as world:
            game, trajectory = CacheGame(world, Manipulate().sampler(3)), []
            for _ in range(25):
                result = game.step(rng.choice(hands, len(game)))
                trajectory += [result.pose.tobytes(), result.success.tobytes(), result.counts.tobytes()]
            trajectories.append(trajectory)
    assert trajectories[0] == trajectories[1]


def test_two_worlds_share_processes_and_leave_them_open(rooms, physics):
    with World(rooms, physics=physics) as one, World(rooms[1:], copies=2, physics=physics) as other:
        for world in (one, other, one):
            assert holding(world).drop(everyone(world)).all()
    with World(rooms, physics=physics) as world:
        assert holding(world).drop(everyone(world)).all()


def test_a_room_that_is_replaced_is_played_in(rooms, physics, chest):
    poses = []
    for backend in (None, physics):
        with World(rooms, physics=backend) as world:
            holding(world).drop(everyone(world))
            world.replace(1, chest)
            assert rooms[1] not in getattr(backend, "_numbers", {})
            holding(world).drop(everyone(world))
            poses.append(world.state.pose.tobytes())
    assert poses[0] == poses[1]


def test_a_process_that_dies_is_an_error_and_changes_nothing(rooms, physics):
    with World(rooms, copies=4, physics=physics) as world:
        before = holding(world).state.copy()
        os.kill(physics.pool.children[0].process.pid, signal.SIGKILL)
        with pytest.raises(PhysicsError, match="ended unexpectedly, with exit code -9"):
            world.drop(everyone(world))
        assert all((getattr(before, name) == getattr(world.state, name)).all() for name in vars(before))
        with pytest.raises(PhysicsError, match="processes are closed"):
            world.drop(everyone(world))


def test_a_process_that_dies_at_work_is_an_error(rooms, physics):
    others = [child.process for child in physics.pool.children]
    with World(rooms, copies=40, physics=physics) as world:
        holding(world).drop(everyone(world))
        holding(world)
        killer = threading.Timer(0.05, others[1].kill)
        killer.start()
        with pytest.raises(PhysicsError, match="exit code -9"):
            for _ in range(100):
                world.drop(everyone(world))
                holding(world)
        killer.join()
    assert all(process.poll() is not None for process in others), "the others end, too"


def test_worlds_whose_physics_runs_at_the_same_time_do_not_interfere(rooms, physics):
    """Two worlds begin to drop, are received in reverse order, and end as if they had dropped one after another."""
    poses = []
    for together in (False, True):
        with World(rooms, 8, physics=physics) as one, World(rooms, 3, physics=physics) as other:
            for world in (one, other):
                holding(world)
                if together:
                    world.defer_physics()
                    assert not world.awaits_physics
                success = world.drop(everyone(world))
                assert success.all() != together and world.awaits_physics == together
            if together:
                assert all(world.state.held.all() for world in (one, other)), "nothing has changed yet"
                assert other.receive_physics().all() and one.receive_physics().all()
            assert not any(world.awaits_physics or world.state.held.any() for world in (one, other))
            assert one.hold(np.full(len(one), 4)).all(), "no longer deferred"
            poses.append([world.state.pose.copy() for world in (one, other)])
    for alone, together in zip(*poses, strict=True):
        np.testing.assert_array_equal(alone, together)


def test_deferred_physics_of_a_process_that_died_is_an_error(rooms, physics):
    with World(rooms, 8, physics=physics) as one, World(rooms, 8, physics=physics) as other:
        for world in (one, other):
            holding(world)
            world.defer_physics()
        one.drop(everyone(one))
        other.drop(everyone(other))
        for child in physics.pool.children:
            child.process.kill()
        for world in (one, other):
            with pytest.raises(PhysicsError, match=r"exit code -9|closed"):
                world.receive_physics()


def test_an_error_in_a_process_is_reported(rooms, physics):
    with World(rooms, physics=physics) as world, pytest.raises(PhysicsError, match="AssertionError"):
        physics.submit(rooms, "drop", world.state)()


def test_an_interruption_ends_the_processes(rooms, physics):
    """Otherwise their replies would be taken for those to the next request."""
    processes = [child.process for child in physics.pool.children]
    with World(rooms, copies=40, physics=physics) as world:
        holding(world).drop(everyone(world))
        holding(world)
        timer = threading.Timer(0.05, lambda: signal.raise_signal(signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            for _ in range(100):
                world.drop(everyone(world))
                holding(world)
    assert all(process.poll() is not None for process in processes)


def test_closing_ends_the_processes_and_can_be_done_twice(rooms):
    physics = PhysicsProcesses(2)
    processes = [child.process for child in physics.pool.children]
    with World(rooms, physics=physics) as world:
        holding(world).drop(everyone(world))
        physics.close()
        physics.close()
        assert [process.poll() for process in processes] == [0, 0]
        world.replace(0, rooms[0])
        with pytest.raises(PhysicsError, match="closed"):
            holding(world).drop(everyone(world))


def test_there_is_at_least_one_process():
    with pytest.raises(ValueError, match="at least one process, not 0"):
        PhysicsProcesses(0)


PLAYING = """
import os, signal, sys, time
from scrubjay.sim.build import build_room
from scrubjay.sim.physics_pool import PhysicsProcesses
from scrubjay.sim.world import World
import numpy as np

world = World([build_room("FloorPlan401")], 4, physics=PhysicsProcesses(2))
assert world.hold(np.full(4, 4)).all() and world.drop(np.ones(4, bool)).all()
print("playing", flush=True)
"""

PLAYING_ON = """
try:
    time.sleep(60)
except KeyboardInterrupt:
    print(world.hold(np.full(4, 4)).all() and world.drop(np.ones(4, bool)).all())
"""


@pytest.mark.parametrize(
    ("end", "code"), [("", 0), ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL)], ids=["ended", "killed"]
)
def test_no_process_outlives_the_one_that_began_it(end, code):
    """They share one pipe, which reaches its end only when all of them have ended."""
    ended = subprocess.run([sys.executable, "-c", PLAYING + end], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "playing\n", "")


def test_ctrl_c_is_heard_by_the_player_alone():
    """A terminal sends it to all processes of a session."""
    player = subprocess.Popen(
        [sys.executable, "-c", PLAYING + PLAYING_ON],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert player.stdout is not None and player.stdout.readline() == "playing\n"
    time.sleep(0.2)
    os.killpg(player.pid, signal.SIGINT)
    assert player.communicate(timeout=60) == ("True\n", "") and player.returncode == 0


@pytest.mark.parametrize(
    ("task", "cores", "group_size", "expected"),
    [
        ("manipulate", 16, 1, 14),
        ("seek", 5, 1, 3),
        ("cache", 4, 1, 0),
        ("explore", 16, 1, 0),
        ("manipulate", 16, 2, 6),
        ("manipulate", 16, 4, 0),
        ("manipulate", 128, 1, 16),
    ],
)
def test_processes_are_as_many_as_cores_allow(monkeypatch, task, cores, group_size, expected):
    with_cores(monkeypatch, cores)
    group = Group()
    group.size = group_size
    assert physics_processes(task, group) == expected


MANIPULATING = TrainConfig.preset(
    "demo", task="manipulate", scenes=("FloorPlan401",), copies=16, unroll_length=10, minibatch_games=16, updates=1,
    checkpoint_interval=1,
    replay_batches=0,
)  # fmt: skip


def test_training_is_the_same_with_few_cores_and_with_many(monkeypatch):
    weights = []
    for cores in (2, 5):
        with_cores(monkeypatch, cores)
        trainer = Trainer(MANIPULATING)
        assert (trainer.physics is not None) == (cores == 5)
        trainer.run(lambda row: None, lambda: False, lambda: None)
        assert trainer.physics is None or trainer.physics._numbers, "no physics was needed, so nothing was tested"
        trainer.close()
        weights.append([parameter.detach().numpy().tobytes() for parameter in trainer.agent.parameters()])
    assert weights[0] == weights[1]
    assert trainer.physics is not None and not trainer.physics.pool.children


def test_a_run_whose_physics_dies_says_so(monkeypatch, tmp_path):
    with_cores(monkeypatch, 5)
    begin = PhysicsProcesses.__init__

    def killed(physics: PhysicsProcesses, count: int) -> None:
        begin(physics, count)
        physics.pool.children[0].process.kill()

    monkeypatch.setattr(PhysicsProcesses, "__init__", killed)
    run = Run.begin(tmp_path / "run", MANIPULATING)
    with pytest.raises(TrainingError, match=r"exit code -9.*the last checkpoint is intact"):
        train(run)
    run.close()
