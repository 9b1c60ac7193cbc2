"""Our engine behind the unmodified client behind `ThorWorld` is `World`: the same room gives the same numbers."""

import numpy as np
import pytest
from thor.circle import ONE, assert_equal_poses, containers, names_in, play_in_step

import scrubjay
from scrubjay.errors import RecordError, ThorError
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.record import load_records, save_records
from scrubjay.players.base import HiderAndSeeker
from scrubjay.players.by_name import make_hider, make_seeker
from scrubjay.rooms.room import GOALS
from scrubjay.sim.base_world import HAND_MOVES, HAND_TURNS
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.render.base import GOAL_ALONE, WITHOUT_OPENABLES
from scrubjay.sim.world import World
from scrubjay.thor.world import ThorWorld
from scrubjay.viz.episode import replay_episode
from scrubjay.viz.film import Film

pytestmark = pytest.mark.slow  # The client and its packages, 360 MB, are installed first.
KITCHEN, BATHROOM, BEDROOM = "iTHOR:FloorPlan28", "iTHOR:FloorPlan410", "iTHOR:FloorPlan301"
SIZE = 112
LIMITS = np.array([40, 1, 15, 50, 60])


def number(goal: str) -> np.ndarray:
    return np.array([GOALS.index(goal)])


@pytest.fixture(scope="module")
def worlds(real_client, executable):
    """A kitchen behind the client, and our own."""
    with (
        ThorWorld([KITCHEN], size=SIZE, executable=executable, normals=True) as remote,
        World([KITCHEN], size=SIZE) as own,
    ):
        yield remote, own


@pytest.fixture
def fresh(worlds):
    """The worlds with everything closed, and no object."""
    for world in worlds:
        world.remove(ONE)
        world.state.open[:] = False
        world.state.position[0], world.state.rotation[0] = worlds[1].reachable[0].positions[0], 0.0
        world.state.standing[0] = True
    return worlds


def play(worlds, hider: str, seeker: str, steps: int, seed: int, turned: bool = False) -> list[str]:
    goals = tuple(worlds[0].rooms[0].goals)
    games = [CacheGame(world, RandomEpisodes(seed, goals, turned), LIMITS, forgiving=True) for world in worlds]
    players = [HiderAndSeeker(make_hider(hider, seed), make_seeker(seeker, seed)) for _ in worlds]
    return play_in_step(games, players, steps)


def test_rooms_have_the_same_positions_and_openables(worlds):
    remote, own = worlds
    assert remote.reachable[0].positions.tolist() == own.reachable[0].positions.tolist()
    opening = [[world.rooms[0].things[one.thing] for one in world.rooms[0].openables] for world in worlds]
    assert opening[0] == opening[1] and opening[0]
    assert remote.renderer_name == "AI2-THOR"


def test_views_are_the_same_to_the_pixel(fresh):
    remote, own = fresh
    rng, positions = np.random.default_rng(0), own.reachable[0].positions
    for trial in range(6):
        position, rotation = positions[rng.integers(len(positions))], float(rng.integers(360))
        opened = rng.random(own.state.open.shape[1]) < 0.3 * (trial > 2)
        for world in fresh:
            world.state.position[0], world.state.rotation[0] = position, rotation
            world.state.standing[0], world.state.open[0] = trial % 2, opened
        first, second = (world.view(("rgb", "depth", "ids", "normals")) for world in fresh)
        assert (first.rgb == second.rgb).all() and (first.depth == second.depth).all()
        assert (names_in(remote, first.ids.numpy()) == names_in(own, second.ids.numpy())).all()
        known = second.normals.abs().sum(-1) > 0
        assert (first.normals - second.normals)[known].abs().max() < 0.02, "bytes have 1 / 127 of precision"


@pytest.mark.parametrize("goal, seed", [("Tomato", 0), ("Knife", 1)])
def test_a_hand_moves_and_drops_alike(fresh, goal, seed):
    remote, own = fresh
    positions = own.reachable[0].positions
    for world in fresh:
        world.set_agent_pose(0, AgentPose(*positions[40 + seed].tolist(), 90.0 * seed, True))
    assert remote.hold(number(goal))[0] and own.hold(number(goal))[0]
    assert_equal_poses(remote.state.pose[0], own.state.pose[0])
    rng = np.random.default_rng(seed)
    for _ in range(20):
        turns, chosen = rng.random() < 0.4, np.array([rng.integers(6)])
        success = [(world.rotate_hand if turns else world.move_hand)(chosen)[0] for world in fresh]
        where = (HAND_TURNS if turns else HAND_MOVES)[chosen[0]]
        assert success[0] == success[1], where
        assert_equal_poses(remote.state.pose[0], own.state.pose[0], where)
    masks = [[mask.sum() for mask in world.goal_pixels()] for world in fresh]
    assert masks[0] == masks[1]
    assert remote.drop(ONE)[0] and own.drop(ONE)[0]
    assert_equal_poses(remote.state.pose[0], own.state.pose[0])
    assert containers(remote) == containers(own)


def test_an_object_is_where_the_state_says(fresh):
    """A search begins with the object at rest somewhere, and things open: the game writes that into the state."""
    remote, own = fresh
    own.hold(number("Cup"))
    own.drop(ONE)
    for world in fresh:
        world.state.goal[0], world.state.held[0], world.state.pose[0] = GOALS.index("Cup"), False, own.state.pose[0]
        world.state.open[0, 0] = True
    first, second = (world.view(("ids",)) for world in fresh)
    assert (remote.goal_mask(first) == own.goal_mask(second)).all()
    remote.remove(ONE)
    assert (remote.view(("ids",)).ids < len(remote.rooms[0].room.things)).all()


def test_random_games_are_the_same_step_by_step(worlds):
    done = play(worlds, "random", "random", 150, 0)
    assert {"PS", "MoveAhead"} < set(done) and any(name.startswith("MoveHand") for name in done)


@pytest.mark.slow
def test_a_game_is_filmed_as_it_would_be_replayed(worlds, tmp_path):
    """The page of a game on AI2-THOR has the steps, poses and frames of the same game in our own world, replayed."""
    remote, own = worlds
    film, limits = Film(), (6, 1, 4, 20, 6)
    options = dict(goal="Cup", seed=3, limits=limits)
    record = scrubjay.play("heuristic", "frontier", world=remote, watch=film.watch, **options)
    ours = scrubjay.play("heuristic", "frontier", world=own, **options)
    assert (record.renderer, ours.renderer) == ("AI2-THOR", own.renderer_name.split()[0])
    assert (record.actions, record.success, record.found) == (ours.actions, ours.success, ours.found)
    episode, replayed = film.episode(record, own.rooms[0]), replay_episode(ours)
    assert len(episode.steps) == len(replayed.steps) and episode.contained_in == replayed.contained_in
    for one, other in zip(episode.steps[:-1], replayed.steps[:-1], strict=True):
        assert (one.stage, one.action, one.result, one.opened) == (
            other.stage,
            other.action,
            other.result,
            other.opened,
        )
        assert one.agent_pose == pytest.approx(other.agent_pose) and (one.picture == other.picture).all()
    save_records([record], tmp_path / "record.json")
    with pytest.raises(RecordError, match="a game on AI2-THOR does not replay"):
        list(scrubjay.replay(load_records(tmp_path / "record.json")[0]))


@pytest.mark.parametrize("hider, seeker, named", [("easy", "frontier", "easy"), ("random", "oracle", "oracle")])
def test_players_that_need_a_rooms_model_are_refused_before_the_game(worlds, hider, seeker, named):
    with pytest.raises(ValueError, match=f"{named} needs a room's model"):
        scrubjay.play(hider, seeker, goal="Cup", world=worlds[0])


def test_what_ai2thor_cannot_do_is_one_sentence(fresh):
    remote, _ = fresh
    with pytest.raises(ThorError, match="has no Plunger on AI2-THOR"):
        remote.hold(number("Plunger"))
    with pytest.raises(ThorError, match="draws openables whole"):
        remote.view(("ids",), WITHOUT_OPENABLES)
    with pytest.raises(ThorError, match="without"):
        remote.view(("ids",), without=np.array([3]))
    with pytest.raises(ThorError, match="cannot be copied"):
        remote.__reduce__()
    with pytest.raises(ValueError, match="no body can stand"):
        remote.set_agent_pose(0, AgentPose(50.0, 50.0, 0.0, True))
    assert (remote.view(("ids",), GOAL_ALONE).ids == -1).all(), "no object, no pixels"


@pytest.mark.slow
@pytest.mark.parametrize("scene", [KITCHEN, BATHROOM])
@pytest.mark.parametrize(
    "hider, seeker, seed, turned",
    [
        ("heuristic", "frontier", 1, False),
        ("heuristic", "frontier", 2, True),
        ("possible", "possible", 3, False),
        ("random", "random", 4, True),
    ],
)
def test_whole_games_are_the_same_step_by_step(real_client, executable, scene, hider, seeker, seed, turned):
    with ThorWorld([scene], executable=executable) as remote, World([scene]) as own:
        play((remote, own), hider, seeker, 300, seed, turned)


@pytest.mark.slow
def test_worlds_of_several_rooms_act_at_once(real_client, executable):
    """Two copies of two rooms, four controllers: random walks lead where they lead in our own."""
    scenes, rng = [KITCHEN, BEDROOM], np.random.default_rng(0)
    with ThorWorld(scenes, 2, SIZE, executable) as remote, World(scenes, 2, size=SIZE) as own:
        for _ in range(40):
            kind, direction = rng.integers(3), rng.integers(-1, 2, size=4)
            success = [(world.move, world.rotate, world.stand)[kind](direction) for world in (remote, own)]
            assert success[0].tolist() == success[1].tolist()
            assert remote.state.position == pytest.approx(own.state.position, abs=1e-6)
            assert remote.state.rotation.tolist() == own.state.rotation.tolist()
