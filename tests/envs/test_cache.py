"""Gymnasium's and PettingZoo's checkers, and what they do not check: masks, ends of games, seeds, turns."""

import warnings

import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from pettingzoo.test import api_test, parallel_api_test, seed_test

from scrubjay.envs.cache import HIDER, SEEKER, CacheAEC, CacheEnv, CacheVectorEnv, cache_env, parallel_env
from scrubjay.game.actions import NAMES, Stage, action_index
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.observation import NO_ACTION
from scrubjay.game.stages import LIMITS
from scrubjay.rooms.room import GOALS
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.state import State
from scrubjay.sim.world import World

SIZE = 56
HERE = np.zeros(4, int)
MIDDLE = AgentPose(0.0, -1.0, 0.0, True)


@pytest.fixture
def world(chest):
    with World([chest], size=SIZE) as world:
        yield world


@pytest.fixture
def pair(chest):
    with World([chest], copies=2, size=SIZE) as world:
        yield world


def named(name: str) -> dict:
    return {"action": action_index(name), "place": HERE}


def all_do(*numbers: int) -> dict:
    return {"action": np.array(numbers), "place": np.zeros((len(numbers), 4), int)}


def masked(env: CacheVectorEnv, seen: dict, rng: np.random.Generator) -> dict:
    """Random actions that the masks allow."""
    action = np.where(seen["action_mask"] > 0, rng.random(seen["action_mask"].shape), -1).argmax(1)
    return {"action": action, "place": env.action_space["place"].sample()}


def near_the_end(env) -> None:
    """Puts the games into S, with one step left; the object lies where the hider started."""
    game = env.games
    game.world.hold(game.goal)
    game.world.drop(np.ones(len(game), bool))
    game.stage[:] = Stage.S
    game.time[:, Stage.S] = LIMITS[Stage.S] - 1
    game._view = None


def turned_left(world: World, state: State) -> np.ndarray:
    """Images (B, size, size, 3) of a world after a turn to the left in a state."""
    with World(world.rooms, world.copies, size=world.size) as other:
        other.state = state
        other.rotate(np.zeros(len(other), int))
        return other.view().rgb.numpy()


def test_the_single_environment_passes_gymnasiums_checker(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(CacheEnv(world, render_mode="rgb_array"))


def test_the_game_of_two_passes_pettingzoos_checker(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api_test(CacheAEC(world), num_cycles=1000)


def test_the_parallel_game_passes_pettingzoos_checker(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel_api_test(parallel_env(world), num_cycles=60)


def test_the_same_seed_is_the_same_game_of_two(chest):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seed_test(lambda: cache_env(chest, size=SIZE), num_cycles=120)


def test_a_game_of_two_makes_its_own_world(chest):
    env = cache_env(chest, goals=("Bread",), size=28, render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (28, 28, 3) and env.observe(HIDER)["observation"]["goal"] == GOALS.index("Bread")
    env.close()
    with pytest.raises(ValueError, match="Cat"):
        cache_env("no such room", goals=("Cat",))


def test_hiders_observe_where_the_object_landed(pair):
    env = CacheVectorEnv(pair, goals=("Bread",))
    env.reset(seed=0)
    env.games.sampler = lambda *_: EpisodeSpec("Bread", MIDDLE, Stage.OH, Stage.OH, place=MIDDLE)
    env.games.reset(np.ones(2, bool))
    for name in ("PlaceAt|1,1,1", *["MoveHandAhead"] * 3):
        seen, *_ = env.step(all_do(*[action_index(name)] * 2))
        assert seen["landed"].tolist() == [NO_ACTION, NO_ACTION]
    seen, *_ = env.step(all_do(action_index("DropObject"), action_index("MoveHandBack")))
    assert seen["landed"][1] == NO_ACTION and seen["stage"].tolist() == [Stage.OH, Stage.OM]
    assert NAMES[seen["landed"][0]].startswith("PlaceAt|0,") and env.observation_space.contains(seen)


def test_an_action_of_another_stage_takes_a_step_and_changes_nothing(world):
    env = CacheEnv(world)
    first, _ = env.reset(seed=1)
    for number in (action_index("DropObject"), action_index("ClaimVisible"), NO_ACTION):
        seen, reward, terminated, truncated, info = env.step({"action": number, "place": HERE})
        assert np.array_equal(seen["image"], first["image"]) and seen["place"].tolist() == [0, 0, 0, 1]
        assert (reward, terminated, truncated, info["success"]) == (0.0, False, False, False)
        assert seen["last_action"] == NO_ACTION
    assert env.games.time[0, Stage.EM] == 3


def test_an_episode_is_one_game_and_ends_with_its_last_observation(world):
    env = CacheEnv(world, goals=("Tomato",))
    first, _ = env.reset(seed=4)
    near_the_end(env)
    place, pose = env.world.agent_pose(0), env.world.state.pose.copy()
    seen, reward, terminated, truncated, info = env.step(named("RotateLeft"))
    assert truncated and not terminated and reward == 0 and info["finished"] and not info["found"]
    assert seen["stage"] == Stage.S and seen["last_action"] == action_index("RotateLeft") and seen["last_success"] == 1
    assert seen["place"].tolist() == [0, 0, 3, 1], "it turned left of where the game began"
    assert env.observation_space.contains(seen)
    with World(env.world.rooms, size=SIZE) as other:
        other.state = env.world.state.copy()
        other.set_agent_pose(0, place._replace(rotation=(place.rotation - 90) % 360))
        other.state.goal, other.state.pose = np.array([env.games.goal[0]]), pose
        assert np.array_equal(other.view().rgb[0].numpy(), seen["image"])
    again, _ = env.reset(seed=4)
    assert all(np.array_equal(first[name], again[name]) for name in first)


def test_finding_the_object_is_rewarded(world):
    env = CacheEnv(world, goals=("Bread",))
    for seed in range(10):
        env.reset(seed=seed)
        near_the_end(env)
        _, reward, terminated, truncated, info = env.step(named("ClaimVisible"))
        assert terminated == info["found"] != truncated and reward == info["found"]
        if info["found"]:
            return
    raise AssertionError("the object dropped at the seeker's feet was never seen")


def test_the_seeker_wins_what_the_hider_loses(world):
    env = CacheAEC(world, goals=("Bread",))
    results = set()
    for seed in range(10):
        env.reset(seed=seed)
        near_the_end(env)
        env.agent_selection = SEEKER
        env.step(named("ClaimVisible"))
        won = 1.0 if env.infos[SEEKER]["found"] else -1.0
        last = {}
        for agent in env.agent_iter():
            _, last[agent], terminated, _, _ = env.last()
            assert terminated
            env.step(None)
        assert last == {SEEKER: won, HIDER: -won}
        results.add(won)
    assert 1.0 in results, "the object dropped at the seeker's feet was never seen"


def test_vector_observations_are_of_the_declared_space(pair):
    env = CacheVectorEnv(pair)
    assert env.observation_space == batch_space(env.single_observation_space, 2)
    seen, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    env.action_space.seed(0)
    stages = set()
    for _ in range(260):
        assert env.observation_space.contains(seen)
        assert (seen["action_mask"].sum(1) > 0).all()
        assert (seen["action_mask"][:, NO_ACTION] == (seen["stage"] == Stage.PS)).all()
        assert not seen["target"][seen["stage"] != Stage.OM].any()
        seen, reward, *_ = env.step(masked(env, seen, rng))
        assert reward.shape == (2,)
        stages.update(seen["stage"].tolist())
    assert {Stage.EM, Stage.PS, Stage.OH, Stage.OM} <= stages


def test_a_finished_game_starts_the_next_one_in_the_same_step(pair):
    env = CacheVectorEnv(pair)
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    env.reset(seed=2)
    near_the_end(env)
    env.games.time[1, Stage.S] = 0
    before = pair.state.copy()
    seen, _, terminated, truncated, info = env.step(all_do(action_index("RotateLeft"), action_index("RotateRight")))
    assert truncated.tolist() == [True, False] and not terminated.any()
    assert info["_final_obs"].tolist() == info["_final_info"].tolist() == [True, False]
    assert info["final_obs"][1] is None and env.single_observation_space.contains(info["final_obs"][0])
    assert info["final_obs"][0]["stage"] == Stage.S and info["final_obs"][0]["place"].tolist() == [0, 0, 3, 1]
    assert seen["stage"].tolist() == [Stage.EM, Stage.S] and seen["place"][0].tolist() == [0, 0, 0, 1]
    assert seen["last_action"].tolist() == [NO_ACTION, action_index("RotateRight")]
    assert np.array_equal(seen["image"], pair.view().rgb.numpy()), "the picture is of the next game"
    assert np.array_equal(info["final_obs"][0]["image"], turned_left(pair, before)[0])


def test_final_observations_can_be_skipped_and_images_kept_as_tensors(pair):
    env = CacheVectorEnv(pair, tensors=True, final_obs=False, reward=lambda game, result: result.stage * 1.0)
    env.reset(seed=2)
    near_the_end(env)
    seen, reward, _, truncated, info = env.step(all_do(*[action_index("RotateLeft")] * 2))
    assert truncated.all() and "final_obs" not in info and info["final_info"]["finished"].all()
    assert isinstance(seen["image"], torch.Tensor) and torch.equal(seen["image"], pair.view().rgb)
    assert reward.tolist() == [Stage.S, Stage.S], "a reward of one's own"


def test_vector_actions_outside_the_mask_are_an_error_before_anything_changes(pair):
    env = CacheVectorEnv(pair)
    env.reset(seed=0)
    for wrong in (action_index("DropObject"), NO_ACTION, NO_ACTION + 1):
        with pytest.raises(ValueError, match="action"):
            env.step(all_do(action_index("RotateLeft"), wrong))
    assert not env.games.time.any() and env.games.relative_place()[0].tolist() == [0, 0, 0, 1]


def test_the_same_seed_plays_the_same_games(pair):
    env = CacheVectorEnv(pair, turned=True)
    runs = []
    for seed in (5, 5, 6):
        seen, _ = env.reset(seed=seed)
        rng, pictures = np.random.default_rng(0), [seen["image"]]
        env.action_space.seed(0)
        env.games.time[:, Stage.EM] = LIMITS[Stage.EM] - 5
        for _ in range(12):
            seen, *_ = env.step(masked(env, seen, rng))
            pictures.append(seen["image"])
        runs.append(np.stack(pictures))
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])


def test_turns_follow_the_stages_and_only_the_acting_agent_observes(world):
    env = CacheAEC(world)
    env.reset(seed=3)
    start = env.world.agent_pose(0)
    env.games.time[0, Stage.EM] = LIMITS[Stage.EM] - 1
    env.step(named("RotateLeft"))
    assert env.agent_selection == HIDER and env.observe(HIDER)["observation"]["stage"] == Stage.PS
    assert np.flatnonzero(env.observe(HIDER)["action_mask"]["action"]).tolist() == [NO_ACTION]
    assert env.observe(HIDER)["observation"]["image"].any() and not env.observe(SEEKER)["observation"]["image"].any()
    env.step({"action": NO_ACTION, "place": np.array([0, 0, 2, 0])})
    assert env.world.agent_pose(0).rotation == (start.rotation + 180) % 360 and not env.world.agent_pose(0).standing
    with pytest.raises(ValueError, match="OH"):
        env.step(named("MoveAhead"))
    for _ in range(LIMITS[Stage.OH]):
        assert env.agent_selection == HIDER
        env.step(named("ReadyForSeeker"))
    assert env.agent_selection == SEEKER and env.world.agent_pose(0) == start
    assert env.observe(SEEKER)["observation"]["image"].any() and not env.observe(HIDER)["observation"]["image"].any()
    env.games.time[0, Stage.S] = LIMITS[Stage.S] - 1
    env.step(named("RotateLeft"))
    assert env.rewards == {HIDER: 1.0, SEEKER: -1.0} and all(env.terminations.values())
    assert env.observe(SEEKER)["observation"]["stage"] == Stage.S
    env.step(None)
    env.step(None)
    assert env.agents == []


def test_one_game_needs_one_world(pair):
    for kind in (CacheEnv, CacheAEC):
        with pytest.raises(ValueError, match="one room in one copy"):
            kind(pair)
