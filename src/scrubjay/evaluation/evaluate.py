"""Evaluation on fixed episodes of one task: all players meet the same games."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scrubjay.envs.tasks import Task
from scrubjay.evaluation.matches import idle_spec
from scrubjay.evaluation.scores import score, summarize_scores
from scrubjay.game.actions import MODALITIES, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.metrics import Summary, summary
from scrubjay.game.record import Record, Recorder
from scrubjay.players.base import Player
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.world import World

IDLE = action_index("Stand")
"""What is done in a world that waits for the others."""


def evaluate(
    player: Player,
    task: Task,
    rooms: Sequence[CompiledRoom],
    games: int,
    seed: int = 0,
    size: int = 224,
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Summary]:
    """Plays a task's episodes and returns the mean of each metric, its 95 % confidence interval and the game count.

    The metrics are the fields of `Score` that the task has and that need no ray casting; in OM also `hit_<modality>`.

    Args:
        player: Acts in all games, which run side by side.
        task: Samples the episodes; one that needs hiding spots must have them loaded.
        rooms: The rooms to play in.
        games: Games per room.
        seed: The same seed samples the same episodes for every player.
        size: Image size in pixels, a multiple of 7.
        device: `cpu`, `cuda` or `cuda:N`.
        progress: Called after every step with the finished games and all games.
    """
    with World(rooms, games, size=size, device=device) as world:
        records = play_episodes(world, task, player, seed, progress)
    by_scene = {room.room.scene: room for room in rooms}
    scores = [score(record, by_scene[record.scene], visibility=False) for record in records]
    summaries = {name: value for name, value in summarize_scores(scores).items() if value.games}
    if task.stage == Stage.OM:
        summaries |= hits_by_modality(records)
    return summaries


def play_episodes(
    world: BaseWorld, task: Task, player: Player, seed: int, progress: Callable[[int, int], None]
) -> list[Record]:
    """The records of one game in every world; worlds that finished early wait for the others."""
    sampler, begun = task.sampler(seed), set[int]()

    def first_or_idle(world: BaseWorld, number: int) -> EpisodeSpec:
        if number in begun:
            return idle_spec(world.rooms[world.room_of[number]])
        begun.add(number)
        return sampler(world, number)

    game = CacheGame(world, first_or_idle)
    recorder, records = Recorder(game), []
    finished = np.zeros(len(game), bool)
    while not finished.all():
        game.watched = ~finished
        action, place = player(game, ~finished)
        result = game.step(np.where(finished, IDLE, action), place)
        for record, number in zip(recorder.note(result, place), np.flatnonzero(result.finished), strict=True):
            if not finished[number]:
                records.append(record)
        finished |= result.finished
        progress(int(finished.sum()), len(game))
    return records


def hits_by_modality(records: Sequence[Record]) -> dict[str, Summary]:
    """The hit rate of manipulations for each modality that occurs, as `hit_<modality>`."""
    summaries = {}
    for number, name in enumerate(MODALITIES):
        hits = [record.hits[-1][0] for record in records if record.spec.target and record.spec.target[0] == number]
        if hits:
            summaries[f"hit_{name.replace(' ', '_')}"] = summary(np.array(hits))
    return summaries
