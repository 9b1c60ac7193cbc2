"""Whole games, played by hand in a room of known dimensions."""

import numpy as np
import pytest
import torch
from helpers import hut

from scrubjay.game.actions import ALLOWED, NAMES, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.game.observation import NO_ACTION, observe
from scrubjay.game.stages import LIMITS
from scrubjay.players.base import RandomPlayer
from scrubjay.rooms.floor import Floor
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.render.base import View
from scrubjay.sim.world import World

NO_PLACE = np.zeros((1, 4), int)


def one(name: str) -> np.ndarray:
    return np.array([action_index(name)])


@pytest.fixture
def world(chest):
    with World([chest]) as world:
        yield world


@pytest.fixture
def game(world) -> CacheGame:
    return CacheGame(world, RandomEpisodes(seed=3, goals=("Tomato",)))


def explore(game: CacheGame) -> None:
    """Turns in place two hundred times, back to the first heading."""
    for _ in range(200):
        game.step(np.full(len(game), action_index("RotateRight")))


def go_before_the_drawer(game: CacheGame) -> None:
    """Chooses the place 1.2 m south of the drawer's front, facing it."""
    start = game.start[0]
    facing = np.array([np.sin(np.radians(start[2])), np.cos(np.radians(start[2]))])
    right = np.array([facing[1], -facing[0]])
    away = (np.array([0.0, 0.25]) - game.world.state.position[0]) / 0.25
    place = np.array([[round(away @ right), round(away @ facing), round(-start[2] / 90) % 4, 1]])
    result = game.step(np.array([-1]), place)
    assert result.success[0] and game.stage[0] == Stage.OH


def open_the_drawer(game: CacheGame) -> None:
    for row in range(1, 8):
        if game.step(one(f"OpenAt|{row},4")).success[0]:
            return
    raise AssertionError("no cell opens the drawer")


def put_into_the_drawer(game: CacheGame) -> np.ndarray:
    """Moves the hand over the open drawer and lets go; returns whether the target was hit."""
    for move in ("Ahead",) * 5 + ("Down",) * 5:
        game.step(one(f"MoveHand{move}"))
    return game.step(one("DropObject")).hit


def test_stages_follow_in_order_and_end_at_their_limits(game):
    assert game.stage[0] == Stage.EM
    explore(game)
    assert game.stage[0] == Stage.PS and game.time[0, Stage.EM] == 200
    go_before_the_drawer(game)
    assert game.world.state.held[0]
    for _ in range(14):
        game.step(one("ReadyForSeeker"))
    assert game.stage[0] == Stage.OH
    result = game.step(one("ReadyForSeeker"))
    assert not result.success[0] and result.ended[0], "nothing was placed"
    assert game.stage[0] == Stage.S and not game.world.state.held[0]
    assert game.world.state.pose[0, 2] < 0.2, "the object was dropped to the floor"
    assert game.world.agent_pose(0)[:3] == pytest.approx(tuple(game.start[0, :3]))
    for step in range(LIMITS[Stage.S]):
        result = game.step(one("RotateLeft"))
        assert result.finished[0] == (step == LIMITS[Stage.S] - 1)
    assert not result.found[0]
    assert game.stage[0] == Stage.EM and game.episode[0] == 2 and game.world.state.goal[0] == -1


def test_an_object_is_hidden_in_a_drawer_and_found(game, chest):
    explore(game)
    go_before_the_drawer(game)
    open_the_drawer(game)
    hits = []
    for row in range(1, 8):
        if game.placed[0]:
            break
        assert game.step(one(f"PlaceAt|1,{row},4")).success[0] and game.stage[0] == Stage.OM
        hits.append(bool(put_into_the_drawer(game)[0]))
        assert game.stage[0] == Stage.OH
        assert chest.things[game.world.contained()[0]] == "Drawer_0"
    assert game.placed[0]
    assert not game.step(one("PlaceAt|0,1,1")).success[0], "it is placed: further attempts fail"
    assert game.step(one("CloseObjects")).success[0]
    result = game.step(one("ReadyForSeeker"))
    assert result.success[0] and result.ended[0] and game.stage[0] == Stage.S
    assert not game.step(one("ClaimVisible")).success[0], "it is in a closed drawer"
    game.world.state.position[0], game.world.state.rotation[0] = (0.0, 0.5), 0.0
    open_the_drawer(game)
    game.step(one("MoveAhead"))
    result = game.step(one("ClaimVisible"))
    assert result.success[0] and result.found[0] and result.finished[0]
    assert game.episode[0] == 2


def test_a_manipulation_runs_inside_oh_without_counting_as_its_steps(game):
    explore(game)
    go_before_the_drawer(game)
    game.step(one("Crouch"))
    game.step(one("PlaceAt|0,4,4"))
    assert game.stage[0] == Stage.OM and game.time[0, Stage.OH] == 2
    assert game.target[0].tolist() == [0, 3, 3]
    for _ in range(LIMITS[Stage.OM]):
        result = game.step(one("MoveHandUp"))
    assert result.ended[0] and not result.hit[0]
    assert game.stage[0] == Stage.OH and game.time[0, Stage.OH] == 2 and not game.placed[0]
    game.step(one("PlaceAt|0,4,4"))
    assert game.time[0, Stage.OM] == 0


def test_the_last_step_of_oh_may_be_a_manipulation(game):
    explore(game)
    go_before_the_drawer(game)
    for name in ("Crouch", "Stand") * 7:
        game.step(one(name))
    game.step(one("PlaceAt|0,1,1"))
    assert game.stage[0] == Stage.OM
    game.step(one("DropObject"))
    assert game.stage[0] == Stage.S


def test_an_impossible_place_is_a_failed_action_and_the_hider_stays(game):
    explore(game)
    before = game.world.agent_pose(0)
    result = game.step(np.array([-1]), np.array([[50, 0, 0, 1]]))
    assert not result.success[0] and result.ended[0]
    assert game.world.agent_pose(0) == before and game.stage[0] == Stage.OH


def test_relative_places_by_hand(game):
    assert game.relative_place().tolist() == [[0, 0, 0, 1]]
    done = game.step(one("MoveAhead")).success[0]
    game.step(one("RotateRight"))
    game.step(one("Crouch"))
    assert game.relative_place().tolist() == [[0, int(done), 1, 0]]


def test_a_turned_grid_keeps_its_angle(chest):
    with World([chest]) as world:
        game = CacheGame(world, RandomEpisodes(seed=5, turned=True))
        while (angle := world.state.rotation[0] % 90) == 0:
            game = CacheGame(world, game.sampler)
        rng = np.random.default_rng(0)
        for _ in range(60):
            game.step(rng.choice(np.flatnonzero(ALLOWED[Stage.EM])[:5], 1))
            assert world.state.rotation[0] % 90 == pytest.approx(angle)
            assert game.relative_place()[0, :2] * 0.25 == pytest.approx(
                np.linalg.solve(_axes(game.start[0, 2]), world.state.position[0] - game.start[0, :2]), abs=1e-6
            )


def _axes(rotation: float) -> np.ndarray:
    facing = np.array([np.sin(np.radians(rotation)), np.cos(np.radians(rotation))])
    return np.stack([[facing[1], -facing[0]], facing], 1)


def test_games_at_different_stages_run_in_one_batch():
    """Random play: every game passes through the stages in order, and a batch equals its games played alone."""
    compiled = compile_room(hut())
    rng = np.random.default_rng(0)
    with World([compiled], copies=3, size=28) as world:
        game = CacheGame(world, RandomEpisodes(seed=1))
        game.time[1, Stage.EM], game.time[2, Stage.EM] = 150, 190
        seen = [[] for _ in range(3)]
        for _ in range(450):
            action = np.array([rng.choice(np.flatnonzero(row)) if row.any() else -1 for row in game.allowed])
            result = game.step(action, np.tile([0, 1, 0, 1], (3, 1)))
            for b, stage in enumerate(result.stage):
                if not seen[b] or seen[b][-1] != stage:
                    seen[b].append(int(stage))
    for stages in seen:
        assert stages[:3] == [Stage.EM, Stage.PS, Stage.OH]
        assert set(stages[3:-1]) <= {Stage.OH, Stage.OM, Stage.S}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (one("ClaimVisible"), "ClaimVisible is not an action of EM"),
        (np.array([-1]), "nothing is not an action of EM"),
        (np.array([219]), "numbers from 0 to 218"),
        (np.array([0, 0]), "one action's number for each of 1 games"),
    ],
)
def test_disallowed_actions_are_refused(game, action, message):
    before = game.world.agent_pose(0)
    with pytest.raises(ValueError, match=message):
        game.step(action)
    assert game.world.agent_pose(0) == before and game.time.sum() == 0


def test_choosing_needs_a_place(game):
    explore(game)
    with pytest.raises(ValueError, match="games in PS need places"):
        game.step(np.array([-1]))
    with pytest.raises(ValueError, match="MoveAhead is not an action of PS"):
        game.step(one("MoveAhead"), NO_PLACE)


def test_unknown_goals_are_refused(world):
    with pytest.raises(ValueError, match="unknown goal objects"):
        RandomEpisodes(goals=("Sofa",))
    assert {GOALS[goal] for goal in CacheGame(world, RandomEpisodes(goals=("Cup",))).goal} == {"Cup"}


def test_oh_resumes_with_its_own_history_after_a_manipulation(game):
    explore(game)
    go_before_the_drawer(game)
    open_the_drawer(game)
    game.step(one("PlaceAt|1,1,1"))
    seen = observe(game)
    assert seen.stage[0] == Stage.OM and seen.last_action[0] == NO_ACTION, "a manipulation begins without a past"
    assert seen.target[0].tolist() == [1, 0, 0] and seen.landed[0] == NO_ACTION
    put_into_the_drawer(game)
    seen = observe(game)
    assert seen.stage[0] == Stage.OH and seen.last_action[0] == action_index("PlaceAt|1,1,1")
    assert not seen.last_success[0] and seen.target[0].tolist() == [0, 0, 0]
    modality, row, column = [int(n) for n in NAMES[seen.landed[0]].split("|")[1].split(",")]
    assert modality == 1, "in a drawer the object is contained, with at least as many pixels as on top"
    masks = game.world.goal_pixels()
    center = masks[1][0].nonzero().float().mean(0) // 32 + 1
    assert abs(row - center[0]) <= 1 and abs(column - center[1]) <= 1
    game.step(one("PlaceAt|1,1,1"))
    assert observe(game).landed[0] == NO_ACTION, "the next manipulation, too, begins without a past"
    put_into_the_drawer(game)
    assert observe(game).landed[0] != NO_ACTION
    game.step(one("CloseObjects"))
    assert observe(game).landed[0] == NO_ACTION, "only in the first observation afterwards"


def test_a_search_alone_starts_with_the_object_at_the_specs_pose(chest):
    start = AgentPose(0.0, 0.0, 90.0, True)
    pose = (0.0, 1.0, 0.05, 1.0, 0.0, 0.0, 0.0)
    with World([chest]) as world:
        game = CacheGame(world, lambda *_: EpisodeSpec("Tomato", start, Stage.S, Stage.S, pose=pose, open=(0,)))
        assert game.stage[0] == Stage.S and world.state.open[0, 0] and world.agent_pose(0) == start
        assert world.state.pose[0].tolist() == list(pose) and not world.state.held[0]
        for _ in range(LIMITS[Stage.S]):
            result = game.step(one("RotateLeft"))
        assert result.finished[0] and game.episode[0] == 2 and game.stage[0] == Stage.S


def test_a_manipulation_alone_ends_with_the_drop(chest):
    with World([chest]) as world:
        game = CacheGame(world, RandomEpisodes(seed=1, first=Stage.OM, last=Stage.OM))
        target = game.target[0].copy()
        assert game.stage[0] == Stage.OM and world.state.held[0] and tuple(target) == game.specs[0].target
        result = game.step(one("DropObject"))
        assert result.success[0] and result.finished[0] and (result.target[0] == target).all()
        assert result.counts[0].sum() > 0 and game.episode[0] == 2 and game.stage[0] == Stage.OM


def test_drops_in_a_batch_are_judged_as_in_single_games(chest):
    """Objects dropped from the same places in a batch have the pixels, targets and hits of single games."""
    drawer = AgentPose(0.0, 0.25, 0.0, True)
    specs = [
        EpisodeSpec(GOALS[b], AgentPose(0.0, 0.0, 0.0, True), Stage.OM, Stage.OM, place, (0, row, 3))
        for b, (place, row) in enumerate(((drawer, 2), (AgentPose(0.0, -0.5, 180.0, False), 5), (drawer, 5)))
    ]
    drops, stays = action_index("DropObject"), action_index("MoveHandUp")
    alone, together = [], []
    for spec in specs:
        with World([chest]) as world:
            alone.append(CacheGame(world, lambda *_, spec=spec: spec).step(np.array([drops])))
    with World([chest], copies=3) as world:
        game = CacheGame(world, lambda _, number: specs[number])
        for dropping in ([0, 2], [1]):
            now = np.isin(np.arange(3), dropping)
            game.reset(np.ones(3, bool))
            together.append((now, game.step(np.where(now, drops, stays))))
    for now, result in together:
        assert not result.counts[~now].any() and not result.hit[~now].any()
        for b in np.flatnonzero(now).tolist():
            assert alone[b].counts[0].sum() > 0 and (result.counts[b] == alone[b].counts[0]).all()
            assert result.hit[b] == alone[b].hit[0] and result.placed[b] == alone[b].placed[0]


@pytest.mark.parametrize(
    ("pixels", "size", "enough"), [(9, 224, False), (10, 224, True), (2, 112, False), (3, 112, True)]
)
def test_ten_pixels_are_enough_for_a_claim(chest, pixels, size, enough):
    """In images of 224; four times as many as at 112. The view is painted by hand."""
    pose = (0.0, -0.5, 0.05, 1.0, 0.0, 0.0, 0.0)
    spec = EpisodeSpec("Cup", AgentPose(0.0, -1.0, 0.0, True), Stage.S, Stage.S, pose=pose)
    with World([chest], size=size) as world:
        game = CacheGame(world, lambda *_: spec)
        ids = torch.full((1, size, size), -1, dtype=torch.int16)
        ids[0, 5, :pixels] = len(chest.room.things) + GOALS.index("Cup")
        game._view = View(ids=ids, depth=torch.ones(1, size, size))
        assert [bool(flags[0]) for flags in game.in_sight()] == [enough, True]
        result = game.step(one("ClaimVisible"))
        assert result.visible[0] == result.found[0] == result.finished[0] == result.success[0] == enough


def test_in_sight_follows_the_current_view(chest):
    """The same if asked twice; after a turn, that of the new view."""
    pose = (0.0, 1.0, 0.05, 1.0, 0.0, 0.0, 0.0)
    with World([chest]) as world:
        game = CacheGame(
            world, lambda *_: EpisodeSpec("Tomato", AgentPose(0.0, 0.0, 0.0, True), Stage.S, Stage.S, pose=pose)
        )
        for turn, visible in ((None, True), ("RotateLeft", False), ("RotateRight", True)):
            if turn:
                game.step(one(turn))
            for _ in range(2):
                seen, near = game.in_sight()
                assert seen.tolist() == [visible] and near.tolist() == [True]
        assert game.step(one("ClaimVisible")).found[0]


@pytest.mark.parametrize("turned", [False, True])
def test_episodes_are_sampled_from_all_positions_of_their_grids(chest, turned):
    """The same as if each spec's grid were computed from scratch."""
    rng, floor = np.random.default_rng(11), Floor(chest.room, chest.shapes)
    with World([chest]) as world:
        sampler = RandomEpisodes(11, turned=turned, first=Stage.OM, last=Stage.OM)
        for _ in range(40):
            spec, everywhere = sampler(world, 0), chest.floor.reachable().positions
            x, y = everywhere[rng.integers(len(everywhere))]
            turn = float(rng.integers(360)) if turned and rng.random() < 0.5 else 90.0 * rng.integers(4)
            assert spec.start == (x, y, turn, True) and GOALS[rng.integers(len(GOALS))] == spec.goal
            grid = floor.grid((x, y), turn % 90)
            there = grid.positions[rng.integers(len(grid))]
            assert spec.place == (*there, (turn + 90 * rng.integers(4)) % 360, bool(rng.integers(2)))
            assert spec.target == (rng.integers(3), rng.integers(7), rng.integers(7))


def test_games_end_with_the_specs_last_stage(chest):
    with World([chest]) as world:
        game = CacheGame(world, RandomEpisodes(seed=1, last=Stage.EM))
        for step in range(200):
            assert game.step(one("RotateLeft")).finished[0] == (step == 199)
        game = CacheGame(
            world, RandomEpisodes(seed=1, first=Stage.OH, last=Stage.OH), limits=np.array([200, 1, 3, 50, 500])
        )
        assert world.state.held[0]
        for step in range(3):
            assert game.step(one("ReadyForSeeker")).finished[0] == (step == 2)
        game = CacheGame(world, RandomEpisodes(seed=1, first=Stage.OH), limits=np.array([200, 1, 3, 50, 5]))
        for step in range(8):
            assert game.step(one("ReadyForSeeker" if step < 3 else "Stand")).finished[0] == (step == 7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"goal": "Sofa"}, "unknown goal object"),
        ({"first": Stage.S}, "begins with S has a pose"),
        ({"first": Stage.OM, "last": Stage.OM}, "begins with OM has a target"),
        ({"first": Stage.OM, "target": (0, 0, 0)}, "no game goes from OM to S"),
        ({"first": Stage.OM, "last": Stage.OM, "target": (3, 0, 0)}, "a target is a modality to 2"),
        ({"first": Stage.S, "pose": (0.0,)}, "seven numbers"),
    ],
)
def test_invalid_specs_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        EpisodeSpec(**{"goal": "Cup", "start": AgentPose(0, 0, 0, True)} | change)


def test_novelty_by_hand(chest):
    """Out and back: each new heading adds three cells, and the way back adds none."""
    with World([chest]) as world:
        game = CacheGame(world, lambda *_: EpisodeSpec("Cup", AgentPose(0.0, -0.5, 90.0, True)))
        assert game.novelty_tracker.size[0] == 3
        novelty = game.step(one("MoveAhead")).novelty
        assert novelty.place[0] and (novelty.extrap_before[0], novelty.extrap_after[0]) == (3, 6)
        novelty = game.step(one("RotateRight")).novelty
        assert not novelty.place[0] and novelty.extrap_after[0] == 9
        game.step(one("RotateRight"))
        novelty = game.step(one("MoveAhead")).novelty
        assert not novelty.place[0] and novelty.extrap_after[0] - novelty.extrap_before[0] == 3
        assert game.step(one("Crouch")).novelty.place[0]
        assert not game.step(one("Crouch")).novelty.place[0]
        assert not game.step(one("Stand")).novelty.place[0]


def test_turning_around_extends_places_once_if_rotations_do_not_count(chest):
    """Three of the eight neighbors lie ahead. A turn shares one of them with the heading before, the last turn two."""
    for count_rotations, sizes in ((True, [3, 6, 9, 12, 12]), (False, [3, 5, 7, 8, 8])):
        with World([chest]) as world:
            spec = EpisodeSpec("Cup", AgentPose(0.0, -0.5, 90.0, True))
            game = CacheGame(world, lambda *_, spec=spec: spec, count_rotations=count_rotations)
            turns = [game.step(one("RotateRight")).novelty.extrap_after[0] for _ in range(4)]
            assert [game.specs[0] == spec, *turns] == [True, *sizes[1:]]
            grown = game.step(one("MoveAhead")).novelty
            assert grown.extrap_after[0] - grown.extrap_before[0] == 3


def test_the_share_of_steps_left_by_hand(chest):
    """E&M has four steps; a manipulation counts its own, and OH's clock stands still meanwhile."""
    with World([chest]) as world:
        game = CacheGame(world, RandomEpisodes(0, last=Stage.EM), np.array([4, 1, 5, 2, 6]))
        shares = []
        for _ in range(5):
            shares.append(observe(game).time_left.item())
            game.step(one("RotateLeft"))
        assert shares == [1, 0.75, 0.5, 0.25, 1]
        game = CacheGame(world, RandomEpisodes(0, first=Stage.OH), np.array([4, 1, 5, 2, 6]))
        shares = []
        for name in ("Crouch", "PlaceAt|0,1,1", "MoveHandUp", "MoveHandUp", "Stand"):
            shares.append(observe(game).time_left.item())
            game.step(one(name))
        assert shares == pytest.approx([1, 0.8, 1, 0.5, 0.6])
        assert observe(game).time_left.dtype == torch.float32


def test_any_drop_is_a_placement_if_the_spec_says_so(chest):
    for anywhere in (False, True):
        with World([chest]) as world:
            spec = EpisodeSpec("Cup", AgentPose(0.0, -0.5, 180.0, True), Stage.OH, anywhere=anywhere)
            game = CacheGame(world, lambda *_, spec=spec: spec)
            game.step(one("PlaceAt|2,1,1"))
            result = game.step(one("DropObject"))
            assert not result.hit[0] and result.placed[0] == game.placed[0] == anywhere


def test_forgiven_actions_fail_and_take_a_step(world):
    game = CacheGame(world, RandomEpisodes(seed=3), forgiving=True)
    before = world.agent_pose(0)
    result = game.step(one("ClaimVisible"))
    assert not result.success[0] and result.action[0] == -1
    assert game.time[0, Stage.EM] == 1 and world.agent_pose(0) == before


def test_games_that_nobody_watches_are_not_drawn(chest):
    with World([chest], copies=3, size=56) as world:
        game = CacheGame(world, RandomEpisodes(seed=3))
        before = {kind: image.clone() for kind, image in game.look().images.items()}
        drawn, view = [], world.view
        world.view = lambda *args, worlds=None: drawn.append(worlds) or view(*args, worlds=worlds)
        for watched in ([True, False, True], [True, True, True]):
            for name in ("Crouch", "Stand"):
                game.step(np.full(3, action_index(name)))
            game.watched = np.array(watched)
            for kind, image in game.look().images.items():
                assert torch.equal(image[game.watched], before[kind][game.watched])
                assert not image[~game.watched].any() and before[kind][1].any()
        assert drawn[0].tolist() == [True, False, True] and drawn[1:] == [None]


def test_games_in_ps_can_wait(chest):
    """Two games reach PS; one chooses at once, the other waits two steps and then chooses the same."""
    with World([chest], copies=2) as world:
        spec = EpisodeSpec("Tomato", AgentPose(0.0, 0.0, 0.0, True))
        game = CacheGame(world, lambda *_: spec, np.array([2, 1, 15, 50, 500]))
        for _ in range(2):
            game.step(np.full(2, action_index("RotateRight")))
        assert (game.stage == Stage.PS).all()
        before, place = game.look(("rgb",)).rgb.clone(), np.array([[1, 1, 2, 1]] * 2)
        first = game.step(np.array([-1, -1]), place, np.array([False, True]))
        assert first.waited.tolist() == [False, True] and first.success.tolist() == [True, False]
        assert first.ended.tolist() == [True, False] and not first.finished.any() and not first.full[1]
        assert game.stage.tolist() == [Stage.OH, Stage.PS] and game.time[1].tolist() == [2, 0, 0, 0, 0]
        assert game.last_action[1] == action_index("RotateRight") and game.last_success[1]
        second = game.step(np.array([action_index("Crouch"), -1]), waiting=np.array([False, True]))
        assert second.success.tolist() == [True, False] and game.time[1, Stage.PS] == 0
        assert torch.equal(game.look(("rgb",)).rgb[1], before[1])
        third = game.step(np.array([action_index("Stand"), -1]), place)
        assert third.success.all() and game.stage.tolist() == [Stage.OH, Stage.OH]
        for result, b in ((first, 0), (third, 1)):
            assert result.place[b].tolist() == [1, 1, 2, 1] and result.ended[b] and game.time[b, Stage.PS] == 1
        np.testing.assert_array_equal(third.pose[0], third.pose[1])


@pytest.mark.parametrize("waiting", [np.ones(1, bool), np.zeros(1, int), np.zeros(2, bool)])
def test_only_games_in_ps_can_wait(game, waiting):
    before = game.time.copy()
    with pytest.raises(ValueError, match="waiting must be a bool array"):
        game.step(one("Crouch"), NO_PLACE, waiting)
    assert (game.time == before).all() and game.world.state.standing[0]


def test_two_halves_of_a_step_are_a_step(chest):
    """The same random game twice; in one of them another game is stepped between the halves."""
    results, player = [], RandomPlayer(4)
    with World([chest], 3, size=28) as world, World([chest], 3, size=28) as other:
        limits = np.array([4, 1, 15, 10, 50])
        games = [CacheGame(each, RandomEpisodes(5, ("Tomato",)), limits) for each in (world, other)]
        for _ in range(60):
            action, place = player(games[0], np.ones(3, bool))
            games[0].begin_step(action, place)
            whole = games[1].step(action, place)
            half = games[0].finish_step()
            results.append(half)
            for name in ("stage", "success", "pose", "place", "open", "counts", "hit", "ended", "finished"):
                np.testing.assert_array_equal(getattr(half, name), getattr(whole, name), err_msg=name)
    assert any(result.counts.any() for result in results), "the test needs drops"
