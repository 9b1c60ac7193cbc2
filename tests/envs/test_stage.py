"""Each stage as an environment: Gymnasium's checker, rewards by hand, other players' steps, seeds."""

import copy
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from helpers import drawer_chest, hut
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scrubjay  # noqa: F401 (it makes the environments known)
from scrubjay.envs.stage import TASKS, StageEnv
from scrubjay.envs.stage_games import ACTIONS
from scrubjay.errors import SpotError
from scrubjay.game.actions import NAMES, NOTHING, PLACE_ACTIONS, Stage, action_index
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.stages import LIMITS
from scrubjay.players.base import RandomPlayer
from scrubjay.sim.pose import AgentPose

SIZE = 56
LARGE = 112
"""Images in which a bread at a hider's feet has enough pixels."""
COUNTS = {"Explore": 57, "Hide": 200, "Manipulate": 62, "Seek": 58}


class Always:
    """Repeats the same few actions and counts its steps; in PS it stays."""

    def __init__(self, *names: str) -> None:
        self.numbers, self.steps = [action_index(name) for name in names], 0

    def __call__(self, game, games):
        action = np.where(games, self.numbers[self.steps % len(self.numbers)], NOTHING)
        self.steps += 1
        return action, np.zeros((len(game), 4), int)


def dropper(seed: int) -> Always:
    """Drops the object in view, a little ahead."""
    return Always(*["MoveHandAhead"] * 3, "DropObject")


def turner(seed: int) -> Always:
    """Neither hides nor finds anything."""
    return Always("RotateLeft")


def environments(make, chest):
    """Makes environments in the room of the chest, and closes them."""
    opened = []

    def make_one(task: str, **options):
        opened.append(make(f"scrubjay/{task}-v0", **{"scene": chest, "size": SIZE} | options))
        return opened[-1].unwrapped

    yield make_one
    for env in opened:
        env.close()


@pytest.fixture
def make(chest):
    """Makes a `StageEnv`."""
    yield from environments(gymnasium.make, chest)


@pytest.fixture
def make_vec(chest):
    """Makes a `StageVectorEnv`."""
    yield from environments(gymnasium.make_vec, chest)


def own(task: str, name: str) -> int:
    """An action's index within a task's stage."""
    return int(np.searchsorted(ACTIONS[TASKS[task].stage], action_index(name)))


def do(env: StageEnv, name: str) -> tuple:
    return env.step(own(type(env.task).__name__, name))


OPPOSED = [("Hide", {"opponent": turner}), ("Seek", {"opponent": turner})]


@pytest.mark.parametrize(("task", "options"), [*((task, {}) for task in COUNTS), *OPPOSED])
def test_gymnasiums_checker_passes(make, task, options):
    env = make(task, render_mode="rgb_array", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env)


@pytest.mark.parametrize("task", COUNTS)
def test_actions_are_those_of_the_stage(make, task):
    env = make(task)
    assert env.action_space.n == COUNTS[task]
    seen, _ = env.reset(seed=0)
    assert seen["last_action"] == COUNTS[task], "there was none"
    if task == "Manipulate":
        assert seen["target"].tolist() == list(env.games.specs[0].target)
    for number in (0, COUNTS[task] - 1):
        seen, _, over, _, _ = env.step(number)
        assert seen["last_action"] == number and env.observation_space.contains(seen)
        if over:
            break
    env.reset()
    for wrong in (-1, COUNTS[task]):
        with pytest.raises(ValueError, match=f"from 0 to {COUNTS[task] - 1}"):
            env.step(wrong)
    with pytest.raises(ValueError, match="each of 1 games"):
        env.step(0.5)


def test_environments_are_registered_without_imports():
    code = "import gymnasium; gymnasium.make('scrubjay:scrubjay/Seek-v0', goals='Nonsense')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "unknown goal objects ['Nonsense']" in done.stderr


def test_exploration_is_rewarded_for_novelty(make):
    env = make("Explore", scene=hut())
    env.reset(seed=0)
    env.world.state.position[0] = (0, 0)
    env.games.start[0, :2] = (0, 0)
    earned = [do(env, name)[1] for name in ["MoveAhead", *["RotateRight"] * 4, "MoveAhead", "Stand", "OpenAt|1,1"]]
    # Each new place and heading extends the extrapolated set by three; the fourth turn ends where the first began.
    assert earned == pytest.approx([0.19, 0.19, 0.19, 0.19, -0.01, 0.19, -0.03, -0.001])


def test_exploring_ends_after_two_hundred_steps(make):
    env = make("Explore")
    env.reset(seed=0)
    for number in range(LIMITS[Stage.EM]):
        _, _, over, cut, _ = do(env, "RotateLeft")
        assert cut == (number == LIMITS[Stage.EM] - 1) and not over
    with pytest.raises(gymnasium.error.ResetNeeded):
        do(env, "RotateLeft")
    first = env.games
    seen, _ = env.reset()
    assert env.games is first and seen["last_action"] == COUNTS["Explore"], "the next game had begun already"
    assert not do(env, "RotateLeft")[2]


def test_a_manipulation_ends_with_the_drop_and_rewards_the_target(make):
    env = make("Manipulate")
    rewards = set()
    for seed in range(6):
        env.reset(seed=seed)
        do(env, "RotateHand|+Y")
        seen, reward, over, cut, info = do(env, "DropObject")
        assert over and not cut and info["success"] and env.observation_space.contains(seen)
        rewards.add(round(reward, 6))
        assert (reward > 1) >= info["hit"] and -1.01 <= reward <= 2.99
    assert len(rewards) > 1


def test_an_object_that_is_never_dropped_costs_one(make):
    env = make("Manipulate", scene=hut())
    env.reset(seed=1)
    for number in range(LIMITS[Stage.OM]):
        _, reward, over, cut, _ = do(env, "RotateHand|+Y")
        last = number == LIMITS[Stage.OM] - 1
        assert cut == last and not over and reward == pytest.approx(-1.01 if last else -0.01)


def begin_hiding(env: StageEnv) -> None:
    """Hider and seeker start in the middle of the room's south, facing north."""
    env.reset(seed=0)
    middle = AgentPose(0.0, -1.0, 0.0, True)
    env.games.sampler = lambda *_: EpisodeSpec("Bread", middle, Stage.OH, env.games.specs[0].last, place=middle)
    env.games.reset(np.ones(1, bool))


def place_object(env: StageEnv) -> None:
    """Drops the object, sees where it landed, and places it there."""
    seen, reward, over, _, info = do(env, "PlaceAt|1,1,1")
    assert not over and not info["placed"] and reward == pytest.approx(-0.02), "nothing here contains anything"
    assert seen["last_action"] == own("Hide", "PlaceAt|1,1,1") and not seen["last_success"]
    seen, reward, over, _, info = do(env, NAMES[PLACE_ACTIONS[seen["landed"]]])
    assert info["placed"] and info["hit"] and info["success"] and seen["last_success"] and not over
    assert reward == pytest.approx(0.01 + 0.005)


def test_a_place_at_is_a_whole_manipulation_in_one_step(make):
    env = make("Hide", scene=hut(), size=LARGE, manipulator=dropper)
    begin_hiding(env)
    place_object(env)
    assert env.games.time[0, Stage.OH] == 2
    assert do(env, "PlaceAt|1,1,1")[1] == pytest.approx(-0.11)
    _, reward, over, cut, _ = do(env, "ReadyForSeeker")
    assert over and not cut and reward == pytest.approx(-0.01)


def test_a_placement_in_the_last_step_is_rewarded_before_the_game_ends(make):
    env = make("Hide", scene=hut(), size=LARGE, manipulator=dropper)
    begin_hiding(env)
    landed = do(env, "PlaceAt|1,1,1")[0]["landed"]
    env.games.time[0, Stage.OH] = LIMITS[Stage.OH] - 1
    seen, reward, over, cut, info = do(env, NAMES[PLACE_ACTIONS[landed]])
    assert cut and not over and info["placed"] and reward == pytest.approx(0.015) and seen["landed"] == landed


def test_the_hider_earns_the_most_if_the_object_is_never_found(make):
    env = make("Hide", scene=hut(), size=LARGE, manipulator=dropper, opponent=turner)
    begin_hiding(env)
    place_object(env)
    _, reward, over, _, info = do(env, "ReadyForSeeker")
    assert over and not info["found"] and reward == pytest.approx(-0.01 + 5)
    assert env.games.others.players[Stage.S].steps == LIMITS[Stage.S]


def test_the_hider_loses_if_the_object_is_found_soon(make):
    seeker = Always("RotateLeft", "RotateRight", "ClaimVisible")
    env = make("Hide", scene=hut(), size=LARGE, manipulator=dropper, opponent=lambda seed: seeker)
    begin_hiding(env)
    place_object(env)
    _, reward, over, _, info = do(env, "ReadyForSeeker")
    assert over and info["found"] and seeker.steps == 3
    assert reward == pytest.approx(-0.01 + 5 * (2 * 3 / 500 - 1))


def test_the_default_manipulator_often_hits(make):
    env = make("Hide", scene=hut(), size=LARGE)
    begin_hiding(env)
    assert do(env, "PlaceAt|0,6,4")[4]["placed"], "the floor before the hider's feet"


def test_without_a_placement_the_search_does_not_count(make):
    env = make("Hide", opponent=turner)
    env.reset(seed=0)
    for number in range(LIMITS[Stage.OH]):
        _, reward, over, cut, info = do(env, "ReadyForSeeker")
        assert not cut, "the end of the search ends the game"
        assert over == (number == LIMITS[Stage.OH] - 1) and reward == pytest.approx(-0.11) and not info["placed"]
    assert env.games.others.players[Stage.S].steps == 1


def test_games_in_a_batch_equal_single_ones(make, make_vec):
    """The same spec and actions give the same rewards and observations, whatever the other games do."""
    one, many = make("Hide", manipulator=dropper), make_vec("Hide", num_envs=3, manipulator=dropper)
    many.reset(seed=3)
    spec = many.games.specs[1]
    one.reset()
    one.games.sampler = lambda *_: spec
    one.games.reset(np.ones(1, bool))
    rng = np.random.default_rng(0)
    for name in ("Crouch", "PlaceAt|2,4,4", "OpenAt|4,4", "PlaceAt|0,5,4", "CloseObjects", "ReadyForSeeker"):
        actions = rng.integers(200, size=3)
        actions[1] = own("Hide", name)
        seen, reward, over, _, info = many.step(actions)
        alone, earned, ended, _, one_info = do(one, name)
        assert (reward[1], over[1]) == (earned, ended) and {
            n: v[1] for n, v in info.items() if n in one_info
        } == one_info
        assert all(np.array_equal(seen[part][1], alone[part]) for part in alone)


def test_seekers_are_rewarded_for_finding(make):
    env = make("Seek", goals="Bread")
    for seed in range(12):
        seen, _ = env.reset(seed=seed)
        assert seen["goal"] == env.games.goal[0] and env.games.world.state.goal[0] == env.games.goal[0]
        _, reward, over, _, info = do(env, "ClaimVisible")
        assert over == info["found"] == info["success"]
        assert reward == pytest.approx(0.99) if over else round(reward, 6) in (-0.06, -0.01)
        if over:
            return
    raise AssertionError("the object was never in sight at once")


@pytest.mark.parametrize("task", COUNTS)
def test_the_same_seed_plays_the_same_games(make, task):
    env = make(task, turned=True)
    runs = []
    for seed in (5, 5, 6):
        seen, _ = env.reset(seed=seed)
        rng, run = np.random.default_rng(0), [seen["image"]]
        for _ in range(6):
            seen, reward, over, *_ = env.step(rng.integers(COUNTS[task]))
            run += [seen["image"], reward]
            if over:
                seen, _ = env.reset()
                run.append(seen["image"])
        runs.append(run)
    same = [len(a) == len(b) and all(map(np.array_equal, a, b)) for a, b in ((runs[0], runs[1]), (runs[0], runs[2]))]
    assert same == [True, False]


def test_an_opponent_hides_and_the_learner_only_seeks(make):
    env = make("Seek", opponent=RandomPlayer)
    runs = []
    for _ in range(2):
        seen, _ = env.reset(seed=1)
        games = env.games
        assert games.stage[0] == Stage.S and games.time[0, Stage.EM] == LIMITS[Stage.EM] and not games.time[0, Stage.S]
        assert seen["place"].tolist() == [0, 0, 0, 1] and seen["last_action"] == COUNTS["Seek"]
        runs.append(games.world.state.pose[0].tolist())
    assert runs[0] == runs[1], "the opponent's choices are the seed's too"


def test_wrong_options_are_clear_errors(make):
    with pytest.raises(ValueError, match="Cat"):
        make("Hide", goals=("Cat",))
    with pytest.raises(ValueError, match="57"):
        make("Explore", size=57)
    with pytest.raises(SpotError, match="nowhere"):
        make("Seek", spots="nowhere")
    with pytest.raises(ValueError, match="Sleep"):
        StageEnv("Sleep")


def test_options_of_other_stages_are_refused(make):
    with pytest.raises(TypeError, match="spots"):
        make("Explore", spots="folder")


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**31), task=st.sampled_from(["Hide", "Manipulate"]))
def test_games_of_random_actions_end_in_time_and_stay_within_their_spaces(make, seed, task):
    env = make(task, scene=hut(*drawer_chest()), **({"manipulator": dropper} if task == "Hide" else {}))
    seen, _ = env.reset(seed=seed)
    rng, over, cut, steps = np.random.default_rng(seed), False, False, 0
    while not over and not cut:
        seen, reward, over, cut, info = env.step(rng.integers(COUNTS[task]))
        steps += 1
        assert env.observation_space.contains(seen) and not (over and cut) and -1.03 <= reward <= 2.99
        assert seen["last_success"] == info["success"]
    assert steps <= LIMITS[env.task.stage] and (steps == LIMITS[env.task.stage] or over)
    env.close()


@pytest.mark.parametrize("task", COUNTS)
def test_vector_observations_are_of_the_declared_space(make_vec, task):
    env = make_vec(task, num_envs=2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2, int))
    assert env.observation_space == batch_space(env.single_observation_space, 2)
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    seen, _ = env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(10):
        assert env.observation_space.contains(seen)
        seen, reward, over, cut, _ = env.step(env.action_space.sample())
        assert reward.shape == over.shape == cut.shape == (2,) and not cut.any()


def test_a_finished_game_starts_the_next_one_in_the_same_step(make_vec):
    env = make_vec("Seek", num_envs=2)
    env.reset(seed=0)
    env.games.time[0, Stage.S] = LIMITS[Stage.S] - 1
    left, right = own("Seek", "RotateLeft"), own("Seek", "RotateRight")
    with copy.copy(env.world) as other:
        other.rotate(np.array([0, 1]))
        final = other.view().rgb[0].numpy()
    seen, _, over, cut, info = env.step(np.array([left, right]))
    assert not over.any()
    assert cut.tolist() == info["_final_obs"].tolist() == info["_final_info"].tolist() == [True, False]
    assert info["final_obs"][1] is None and info["final_obs"][0]["last_action"] == left
    assert info["final_obs"][0]["place"].tolist() == [0, 0, 3, 1]
    assert final.any() and np.array_equal(info["final_obs"][0]["image"], final)
    assert seen["last_action"].tolist() == [COUNTS["Seek"], right] and seen["place"][0].tolist() == [0, 0, 0, 1]


def test_a_new_hiding_is_played_while_the_other_games_wait(make_vec):
    env = make_vec("Seek", num_envs=2, opponent=turner, final_obs=False, tensors=True)
    env.reset(seed=0)
    turn = own("Seek", "RotateLeft")
    env.step(np.array([turn, turn]))
    env.games.time[0, Stage.S] = LIMITS[Stage.S] - 1
    seen, _, over, cut, info = env.step(np.array([turn, turn]))
    assert (
        not over.any()
        and cut.tolist() == [True, False]
        and "final_obs" not in info
        and isinstance(seen["image"], torch.Tensor)
    )
    assert env.games.episode.tolist() == [2, 1] and env.games.time[:, Stage.S].tolist() == [0, 2]
    assert env.games.stage.tolist() == [Stage.S, Stage.S] and seen["last_action"].tolist() == [COUNTS["Seek"], turn]


def test_several_rooms_share_the_games_evenly(make_vec, chest):
    rooms = [chest, hut(*drawer_chest(), width=5.0)]
    env = make_vec("Explore", num_envs=4, scene=rooms)
    assert env.world.room_of.tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="3 games"):
        make_vec("Explore", num_envs=3, scene=rooms)


def test_stable_baselines_trains_on_seeking_unchanged(make):
    stable = pytest.importorskip("stable_baselines3")
    checks = pytest.importorskip("stable_baselines3.common.env_checker")
    env = make("Seek")
    checks.check_env(env)
    model = stable.PPO("MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    model.learn(256)
    assert model.num_timesteps == 256
    after = model.policy.state_dict()
    assert all(torch.isfinite(value).all() for value in after.values())
    assert any(not torch.equal(value, after[name]) for name, value in before.items())
    action, _ = model.predict(env.reset(seed=1)[0])
    assert env.action_space.contains(int(action))
