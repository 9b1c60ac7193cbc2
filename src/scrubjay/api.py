"""The functions most users need: play a game, train an agent, measure a player.

They compose the folders above; everything they do can be done with those, in smaller steps.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from scrubjay.agent import released
from scrubjay.agent.agent import Agent, load_agent
from scrubjay.envs.tasks import TASKS, Task
from scrubjay.evaluation.evaluate import evaluate as evaluate_task
from scrubjay.evaluation.matches import Match, play_matches
from scrubjay.game import record as record_module
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.episode import EpisodeSampler, RandomEpisodes
from scrubjay.game.metrics import Summary
from scrubjay.game.record import Record
from scrubjay.game.stages import LIMITS
from scrubjay.players.base import HiderAndSeeker, Player
from scrubjay.players.by_name import HIDERS, SEEKERS, make_hider, make_seeker
from scrubjay.rooms.room import Room
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.build import build_rooms
from scrubjay.sim.compile import CompiledRoom, compile_room
from scrubjay.sim.render.make import check_device
from scrubjay.sim.world import World
from scrubjay.spots.episodes import SpotEpisodes
from scrubjay.spots.spots import DIFFICULTIES, load_spots, make_spots, spots_path
from scrubjay.training.agent_player import AgentPlayer
from scrubjay.training.config import VALIDATION, TrainConfig
from scrubjay.training.named_agents import name_folders
from scrubjay.training.run import Run
from scrubjay.training.train import train as train_run

QUICK_CANDIDATES = 100
"""Candidates from which the spots of a single game are selected if there is no spots file."""
Scene = str | Room | CompiledRoom
AnyPlayer = str | os.PathLike[str] | Player | Agent
"""A scripted player's name, a released agent's, the folder of a run or of weights, an agent, or any object that is a
`Player`."""
OMNISCIENT = ("bfs", "oracle")
"""Seekers that look into a room's model."""
RELEASED = "agent"
"""The released agent, where a player is named."""


def play(
    hider: AnyPlayer = "heuristic",
    seeker: AnyPlayer = "frontier",
    scene: Scene = "FloorPlan7",
    goal: str = "Tomato",
    *,
    seed: int = 0,
    size: int = 224,
    limits: Sequence[int] | None = None,
    spots: str | os.PathLike[str] | None = None,
    renderer: str = "auto",
    device: str = "cpu",
    world: BaseWorld | None = None,
    watch: Callable[[CacheGame], None] = lambda game: None,
) -> Record:
    """Plays one game of Cache and returns its record; the same arguments play the same game on a CPU.

    Args:
        hider: `random`, `possible` or `heuristic`; `agent`, the released one; or a run's folder, an agent, or a player
            of your own. With `easy`, `medium` or `hard` there is no hider: the object starts in a spot of that
            difficulty.
        seeker: `random`, `possible`, `frontier`, `bfs` or `oracle`; `agent`; or a run's folder, an agent, or a player.
        scene: A room by name (`FloorPlan12`, `kitchen-81723`), as data, or compiled.
        goal: One of `scrubjay.GOALS`.
        seed: Seeds the episode and both players.
        size: Image size in pixels, a multiple of 7.
        limits: The most steps of each stage: E&M, PS, OH, OM, S; by default the paper's 200, 1, 15, 50, 500.
        spots: A folder filled by `scrubjay spots`; without one, a few spots are made first.
        renderer: `auto`, `opengl` or `warp`.
        device: `cpu`, `cuda` or `cuda:N`.
        world: A world of one room to play in, such as a `ThorWorld`, in place of scene, size, renderer and device.
        watch: Called with the game before each of its steps.
    """
    check_device(device)
    _check_seed(seed)
    searching = hider in DIFFICULTIES if isinstance(hider, str) else False
    hides = None if searching else _player(hider, "hider", (*HIDERS, *DIFFICULTIES), make_hider, seed, device)
    seeks = _player(seeker, "seeker", SEEKERS, make_seeker, seed, device)
    if world is not None and len(world) != 1:
        raise ValueError(f"a game is played in a world of one room and one copy of it, not of {len(world)}")
    with contextlib.ExitStack() as stack:
        if world is None:
            world = stack.enter_context(World([scene], renderer=renderer, size=size, device=device))
        room, name = world.rooms[0], world.rooms[0].room.scene
        if not isinstance(room, CompiledRoom):
            _check_needs_no_model(hider, seeker)
        episodes: EpisodeSampler = RandomEpisodes(seed, (goal,))
        if searching:
            assert isinstance(room, CompiledRoom)
            room_spots = (
                load_spots(spots_path(Path(spots), name, goal), name, goal)
                if spots
                else make_spots(room, goal, QUICK_CANDIDATES)
            )
            episodes = SpotEpisodes([room_spots], (goal,), (str(hider),), seed)
        match = Match(name, _name(hider), _name(seeker), episodes(world, 0))
        players = HiderAndSeeker(hides, seeks)

        def watched(game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            watch(game)
            return players(game, games)

        ((_, record),) = play_matches(world, [match], watched, LIMITS if limits is None else np.asarray(limits))
    return record


def replay(record: Record, world: BaseWorld | None = None) -> Iterator[tuple[CacheGame, StepResult]]:
    """Replays a record bit-exactly, yielding the game and the result of each step; RecordError at the first difference.

    `world` is a world of the record's room alone, at its image size; it is built if there is none.
    """
    if world is not None:
        yield from record_module.replay(record, world)
        return
    with World([record.scene], renderer=record_module.renderer_of(record), size=record.size) as own:
        yield from record_module.replay(record, own)


def train(
    config: str | TrainConfig = "demo",
    out: str | os.PathLike[str] = "out/run",
    *,
    device: str = "cpu",
    start: str | os.PathLike[str] | None = None,
    resume: bool = False,
    report: Callable[[dict[str, Any]], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    trust_code: bool = False,
    **changes: Any,
) -> Agent:
    """Trains an agent and returns it. Config, metrics and checkpoints are in the folder `out`.

    Args:
        config: A preset's name (`demo`, `explore`, `manipulate`, `seek`, `navigate`, `cache`) or a config.
        out: The run's folder, which must not be a run yet, except with `resume`.
        device: `cpu`, `cuda` or `cuda:N`.
        start: A run, a folder of weights or a released agent's name: the agent that the new run starts from.
        resume: Continue the run in `out` with its own config, from its newest checkpoint.
        report: Called with a row of metrics after every update.
        stop: Checked before every update; training ends with a checkpoint once it returns True.
        trust_code: Allow a resumed run whose encoder is a Python class to import it.
        changes: Fields of the config to change, such as `updates=10`; for a preset also `numbers="paper"`.
    """
    check_device(device)
    if resume and (start or changes or config != "demo"):
        raise ValueError("a resumed run keeps its own config: leave out config, start and changes")
    if resume:
        run = Run.open(out, trust_code)
    else:
        new = TrainConfig.preset(config, **changes) if isinstance(config, str) else replace(config, **changes)
        run = Run.begin(out, new, start)
    with contextlib.closing(run):
        train_run(run, device, report, stop)
    # Its code, if it has any, ran just now. A whole path is no released agent's name.
    return load_agent(Path(out).resolve(), trust_code=True).to(device)


def evaluate(
    player: AnyPlayer,
    task: str | Task = "explore",
    *,
    scenes: Sequence[Scene] = VALIDATION,
    games: int = 1,
    seed: int = 7,
    size: int | None = None,
    device: str = "cpu",
) -> dict[str, Summary]:
    """Plays fixed episodes of one task and returns each metric's mean, 95 % confidence interval and number of games.

    Args:
        player: A run's folder, an agent, a player, `agent` for the released one, or the name of a scripted player:
            `random` and `possible` for every task, `frontier` for explore and seek, `scripted` for manipulate.
        task: `explore`, `manipulate`, `hide`, `seek` or `cache` (whole games), or a task object.
        scenes: The rooms; by default the 20 validation rooms.
        games: Games in each room.
        seed: The same seed gives the same episodes.
        size: Image size in pixels; by default the agent's, or 224.
        device: `cpu`, `cuda` or `cuda:N`.
    """
    check_device(device)
    _check_seed(seed)
    if isinstance(task, str):
        if task not in TASKS:
            raise ValueError(f"unknown task {task!r}; choose from {', '.join(TASKS)}")
        task = TASKS[task]()
    known = task.baselines
    chosen = _player(player, "player", known, lambda name, seed: known[name](seed), seed, device)
    built = iter(build_rooms([scene for scene in scenes if isinstance(scene, str)]))
    rooms = [_compiled(next(built) if isinstance(scene, str) else scene) for scene in scenes]
    size = size or (chosen.agent.config.image_size if isinstance(chosen, AgentPlayer) else 224)
    return evaluate_task(chosen, task.load([room.room.scene for room in rooms]), rooms, games, seed, size, device)


def _compiled(room: Room | CompiledRoom) -> CompiledRoom:
    return room if isinstance(room, CompiledRoom) else compile_room(room)


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise ValueError(f"seed: 0 or more, not {seed}")


def _player(
    player: AnyPlayer, role: str, known: Any, make: Callable[[str, int], Player], seed: int, device: str
) -> Player:
    """The player itself, or made from its name, folder or agent; ValueError lists the choices."""
    if isinstance(player, Agent):
        return AgentPlayer(player.to(device), seed)
    if isinstance(player, str) and player in known:
        return make(player, seed)
    if isinstance(player, str | os.PathLike):
        folder = _released(player)
        if not Path(folder).is_dir() and not released.is_name(folder):
            choices = ", ".join([*known, RELEASED])
            raise ValueError(f"unknown {role} {str(player)!r}; choose from {choices}, or a run's folder")
        return AgentPlayer(load_agent(folder).to(device), seed)
    return player


def _check_needs_no_model(*players: AnyPlayer) -> None:
    for player in players:
        if isinstance(player, str) and player in (*DIFFICULTIES, *OMNISCIENT):
            raise ValueError(f"{player} needs a room's model, which only Scrubjay's own worlds have")


def _released(player: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The released agent's name for `agent`; anything else unchanged. A Path is a folder, whatever its name."""
    return released.DEFAULT if player == RELEASED else player


def _name(player: AnyPlayer) -> str:
    """A player's name in a record."""
    if isinstance(player, str | os.PathLike):
        return next(iter(name_folders([_released(player)])))
    return type(player).__name__
