"""How well players do at one stage alone, in rooms they have not seen: fixed games, the same for all players."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scrubjay.envs.tasks import Task
from scrubjay.evaluation.scores import score, summarize_scores
from scrubjay.game.actions import MODALITIES, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.metrics import Summary, summary
from scrubjay.game.record import Record, Recorder
from scrubjay.players.base import Player
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.world import World


def evaluate(
    player: Player,
    task: Task,
    rooms: Sequence[CompiledRoom],
    games: int,
    seed: int = 0,
    size: int = 224,
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> dict[str, Summary]:
    """The measures of a stage over some games in each room, with 95 % confidence intervals."""
    with World(rooms, games, size=size, device=device) as world:
        records = play_once(world, task, player, seed, progress)
    by_scene = {room.room.scene: room for room in rooms}
    scores = [score(record, by_scene[record.scene], visibility=False) for record in records]
    found = {name: value for name, value in summarize_scores(scores).items() if value.games}
    if task.stage == Stage.OM:
        found |= by_modality(records)
    return found


def play_once(
    world: World, task: Task, player: Player, seed: int, progress: Callable[[int, int], None]
) -> list[Record]:
    """The records of one game in every world; a world whose game is over waits for the others."""
    game = CacheGame(world, task.sampler(seed))
    recorder, records = Recorder(game), []
    waiting = np.zeros(len(game), bool)
    while not waiting.all():
        action, place = player(game, np.ones(len(game), bool))
        outcome = game.step(action, place)
        for record, number in zip(recorder.note(outcome, place), np.flatnonzero(outcome.finished), strict=True):
            if not waiting[number]:
                records.append(record)
        waiting |= outcome.finished
        progress(int(waiting.sum()), len(game))
    return records


def by_modality(records: Sequence[Record]) -> dict[str, Summary]:
    """How often manipulations hit their targets, for each modality."""
    found = {}
    for number, name in enumerate(MODALITIES):
        hits = [record.hits[-1][0] for record in records if record.spec.target and record.spec.target[0] == number]
        if hits:
            found[f"hit_{name.replace(' ', '_')}"] = summary(np.array(hits))
    return found
