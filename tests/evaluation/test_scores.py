"""Metrics of games, on records of games played by hand and at random."""

import numpy as np
import pytest

from scrubjay.evaluation.scores import reachable_grid, score, summarize_scores, to_grid_frame
from scrubjay.game.actions import Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.game.record import Record, Recorder
from scrubjay.players.base import RandomPlayer
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World

SIZE = 56
LIMITS = np.array([30, 1, 6, 8, 20])


def play_actions(world: World, sampler, names: list[str], limits: np.ndarray = LIMITS) -> Record:
    """The record of a game with the given actions; PS stays in place."""
    game = CacheGame(world, sampler, limits)
    recorder = Recorder(game)
    for name in names:
        action = np.array([-1 if name == "PS" else action_index(name)])
        place = np.array([[0, 0, game.relative_place()[0, 2], 1]])
        if done := recorder.note(game.step(action, place), place):
            return done[0]
    raise AssertionError("the game has not ended")


@pytest.fixture(scope="module")
def games(chest) -> tuple[list[Record], list[list[tuple[float, float, bool]]]]:
    """Random games on rotated grids, and where their hiders were in E&M."""
    with World([chest], copies=2, size=SIZE) as world:
        game = CacheGame(world, RandomEpisodes(seed=6, turned=True), LIMITS)
        recorder, player, records = Recorder(game), RandomPlayer(3), []
        visited: list[list] = [[], []]
        paths = []
        while len(records) < 6:
            for b in np.flatnonzero(game.stage == Stage.EM):
                visited[b].append((*game.world.state.position[b], game.world.state.standing[b]))
            action, place = player(game, np.ones(len(game), bool))
            result = game.step(action, place)
            records += recorder.note(result, place)
            for b in np.flatnonzero(result.finished):
                paths.append(visited[b])
                visited[b] = []
    return records, paths


def test_coverage_is_the_fraction_of_positions_and_heights(games, chest):
    """Against the positions themselves, with a tolerance instead of the lattice."""
    for record, path in zip(*games, strict=True):
        grid = reachable_grid(record, chest)
        # The fixture misses the position after the last step of E&M, which is in the record.
        last = to_grid_frame(record, grid, np.array(record.places[LIMITS[Stage.EM] - 1 : LIMITS[Stage.EM]]))[0]
        there = grid.positions[(grid.cells == last[:2]).all(1)][0]
        path = [*path, (*there, bool(last[3]))]
        seen = {
            (number, standing)
            for x, y, standing in path
            for number in np.flatnonzero(np.linalg.norm(grid.positions - (x, y), axis=1) < 0.01).tolist()
        }
        assert score(record, chest, visibility=False).coverage == pytest.approx(len(seen) / (2 * len(grid)))


def test_a_game_by_hand(chest):
    """Two steps ahead and a turn visit three positions, and cover those ahead of them."""
    start = AgentPose(-0.5, -0.75, 90.0, True)
    explored = ["MoveAhead", "MoveAhead", "RotateRight"]
    limits = np.array([3, 1, 2, 2, 3])
    hidden = ["PS", "ReadyForSeeker", "ReadyForSeeker"]
    sought = ["RotateLeft", "ClaimVisible", "RotateLeft"]  # Facing east it would see the cup.
    with World([chest], size=SIZE) as world:
        record = play_actions(world, lambda *_: EpisodeSpec("Cup", start), explored + hidden + sought, limits)
    grid = reachable_grid(record, chest)
    metrics = score(record, chest)
    assert metrics.coverage == pytest.approx(3 / (2 * len(grid)))
    # Facing east, three cells each at x = -0.25, 0 and 0.25; the three south of the last place are among them.
    assert metrics.coverage_plus == pytest.approx(9 / (2 * len(grid)))
    assert metrics.opened == 0 and metrics.placed == 0 and np.isnan(metrics.hit_target)
    assert metrics.found == 0 and metrics.steps == 500
    claims = sum(name == "ClaimVisible" for name in record.actions)
    assert metrics.false_claims == claims == 1
    assert 0 < metrics.visible_from < 1 and metrics.bfs_found == 1 and 0 < metrics.bfs_steps <= 1


def test_searches_alone_have_no_metrics_of_hiding(chest):
    pose = (0.0, 0.75, 0.06, 1.0, 0.0, 0.0, 0.0)
    spec = EpisodeSpec("Bread", AgentPose(0.0, 0.0, 0.0, True), Stage.S, Stage.S, pose=pose)
    with World([chest], size=SIZE) as world:
        record = play_actions(world, lambda *_: spec, ["Crouch", "ClaimVisible"])
    metrics = score(record, chest)
    assert record.found and metrics.found == 1 and metrics.steps == 2 and metrics.false_claims == 0
    assert np.isnan(metrics.coverage) and np.isnan(metrics.placed)
    assert set(metrics.to_dict()) == {"visible_from", "bfs_found", "bfs_steps", "found", "steps", "false_claims"}


def test_summaries_tell_fractions_from_counts(games, chest):
    scores = [score(record, chest, visibility=False) for record in games[0]]
    means = summarize_scores(scores)
    assert means["found"].games == len(scores) and 0 <= means["found"].low <= means["found"].high <= 1
    assert means["steps"].mean == pytest.approx(np.mean([game.steps for game in scores]))
    assert means["visible_from"].games == 0
