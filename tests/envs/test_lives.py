"""Environments in other rooms, processes and copies, and used in the wrong order."""

import copy
import os
import pickle
import signal
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import SyncVectorEnv
from helpers import drawer_chest, drawn, hut

import scrubjay  # noqa: F401 (it makes the environments known)
from scrubjay.envs.base import PLACE_BOUND
from scrubjay.envs.cache import CacheAEC, CacheEnv, CacheVectorEnv, parallel_env
from scrubjay.game.actions import action_index
from scrubjay.game.observation import NO_ACTION
from scrubjay.rooms.floor import GRID
from scrubjay.rooms.generate import TYPES
from scrubjay.sim.world import World

SIZE = 28
LEFT = {"action": action_index("RotateLeft"), "place": np.zeros(4, int)}


def explore(room, **options):
    return gymnasium.make("scrubjay/Explore-v0", scene=room, size=SIZE, **options)


def explore_many(room):
    return gymnasium.make_vec("scrubjay/Explore-v0", 2, scene=room, size=SIZE)


MAKERS = {
    "stage": lambda room: explore(room, render_mode="rgb_array").unwrapped,
    "stages": explore_many,
    "game": lambda room: CacheEnv(World([room], size=SIZE), render_mode="rgb_array"),
    "games": lambda room: CacheVectorEnv(World([room], 2, size=SIZE)),
    "two": lambda room: CacheAEC(World([room], size=SIZE), render_mode="rgb_array"),
}


@pytest.fixture(params=MAKERS)
def env(request, chest):
    made = MAKERS[request.param](chest)
    yield made
    made.close()


def first_image(env) -> np.ndarray:
    result = env.reset(seed=3)
    return env.render() if result is None else result[0]["image"]


def act(env) -> None:
    """One action, in the environment's own space."""
    if isinstance(env, CacheVectorEnv):
        env.step({name: np.stack([value] * 2) for name, value in LEFT.items()})
    elif isinstance(env, CacheEnv | CacheAEC):
        env.step(LEFT)
    else:
        env.step(np.zeros(2, int) if isinstance(env, gymnasium.vector.VectorEnv) else 0)


def test_no_generated_room_is_larger_than_the_bound_of_places():
    for room_type in TYPES.values():
        assert np.hypot(room_type.width[1], room_type.depth[1]) / GRID <= PLACE_BOUND


def test_rooms_of_different_sizes_have_the_same_spaces():
    rooms = [hut(*drawer_chest()), hut(*drawer_chest(), width=6.0)]
    small, large = envs = [CacheEnv(World([room], size=SIZE)) for room in rooms]
    assert small.observation_space == large.observation_space and small.action_space == large.action_space
    for env in envs:
        env.close()
    both = SyncVectorEnv([lambda room=room: explore(room) for room in rooms])
    seen, _ = both.reset(seed=0)
    assert both.observation_space.contains(seen)
    both.close()


def test_a_larger_room_of_ones_own_has_a_larger_bound():
    env = explore(hut(width=20.0, depth=1.0))
    assert env.observation_space["place"].high[0] == np.ceil(np.hypot(20, 1) / GRID) > PLACE_BOUND
    env.close()


def test_copies_are_what_the_environment_was_made_from(env):
    image = first_image(env)
    act(env)
    for copied in (copy.copy(env), copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert type(copied) is type(env) and copied.world is not env.world
        with pytest.raises(ResetNeeded):
            act(copied)
        assert np.array_equal(first_image(copied), image)
        copied.close()
    act(env)  # Its own world is still there.


def test_environments_are_pickled_with_their_wrappers(chest):
    env = explore(chest)
    copied, both = pickle.loads(pickle.dumps(env)), parallel_env(World([chest], size=SIZE))
    assert np.array_equal(copied.reset(seed=1)[0]["image"], env.reset(seed=1)[0]["image"])
    again = pickle.loads(pickle.dumps(both))
    for one in (copied, env, both, again):
        one.close()


def test_a_world_is_copied_with_its_state(chest):
    with World(["FloorPlan430", chest], size=SIZE, threads=1) as world:
        world.rotate(np.array([0, 1]))
        world.replace(1, hut())
        world.hold(np.array([2, 4]))
        with copy.copy(world) as shallow, pickle.loads(pickle.dumps(world)) as pickled:
            for other in (shallow, pickled):
                assert [room.room for room in other.rooms] == [room.room for room in world.rooms]
                assert all(
                    np.array_equal(vars(other.state)[name], vars(world.state)[name]) for name in vars(world.state)
                )
                assert np.array_equal(other.view().rgb, world.view().rgb)
            before = world.state.copy()
            shallow.move(np.array([0, 0]))
            pickled.drop(np.array([True, True]))
            assert all(np.array_equal(vars(before)[name], vars(world.state)[name]) for name in vars(before))


def test_closed_environments_say_so(env):
    env.reset(seed=0)
    env.close()
    env.close()
    for use in (env.reset, lambda: act(env)):
        with pytest.raises(ClosedEnvironmentError, match="make a new one"):
            use()


def test_environments_without_a_game_ask_for_a_reset(env):
    with pytest.raises(ResetNeeded, match="reset"):
        act(env)
    if env.render_mode:
        with pytest.raises(ResetNeeded, match="reset"):
            env.render()


def test_actions_and_places_are_whole_numbers(chest):
    games = CacheVectorEnv(World([chest], 2, size=SIZE))
    games.reset(seed=0)
    with pytest.raises(ValueError, match="each of 2 games is needed, a whole one, not float64"):
        games.step({"action": np.array([0.5, 1]), "place": np.zeros((2, 4), int)})
    games.games.stage[:], nowhere = 1, np.array([NO_ACTION] * 2)
    with pytest.raises(ValueError, match="places are whole numbers, not float64"):
        games.step({"action": nowhere, "place": np.full((2, 4), 0.5)})
    games.close()
    env = explore(chest).unwrapped
    env.reset(seed=0)
    with pytest.raises(ValueError, match="each of 1 games is needed, a whole one, not float64"):
        env.step(np.float64(1.5))
    assert not env.games.time.any()
    env.close()


FORK = """
import gymnasium, numpy, scrubjay
from gymnasium.vector import AsyncVectorEnv

make = lambda: gymnasium.make("scrubjay/Explore-v0", scene="FloorPlan430", size=224, renderer="{renderer}")
used = make()
used.reset(seed=0)
many = AsyncVectorEnv([make, lambda: used], context="fork")
many.reset(seed=0)
many.step(numpy.array([0, 1]))
many.close()
"""


def forked(renderer: str) -> tuple[int, str]:
    """Vectorizes environments in forks of a process that has used one, with threads of PyTorch's; code and errors."""
    command, environment = [sys.executable, "-c", FORK.format(renderer=renderer)], os.environ | {"OMP_NUM_THREADS": "2"}
    done = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        _, errors = done.communicate(timeout=100)
    finally:
        if done.poll() is None:
            os.killpg(done.pid, signal.SIGKILL)
    return done.returncode, errors


@pytest.mark.skipif(not drawn("opengl"), reason="OpenGL does not work here")
def test_a_fork_of_a_process_that_used_opengl_says_what_to_do():
    code, errors = forked("opengl")
    assert code == 1 and "context='spawn'" in errors.splitlines()[-1]


def test_a_fork_renders_with_warp():
    """PyTorch's threads, which a fork lacks, are not waited for."""
    code, errors = forked("warp")
    assert code == 0, errors
