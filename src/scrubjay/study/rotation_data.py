"""Sequences for permanence: a seeker that could claim the object turns away instead, and the object vanishes.

An agent plays searches of easy spots. When it would claim the object, it rotates to a random side, the object vanishes,
and it takes four more actions of its own. Every episode makes a pair of sequences with the same actions: as it was, and
with the object invisible from the beginning. Images are a function of the world's state, so episodes are played first,
and only those in which the object was found are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent
from scrubjay.agent.fuse import autocast
from scrubjay.agent.sampling import sample_categorical
from scrubjay.errors import SpotError
from scrubjay.game.actions import CLAIM, NOTHING, NUMBERS, Stage
from scrubjay.game.cache import CacheGame, relative_place
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.observation import observe
from scrubjay.game.stages import LIMITS, SEEKER_STEPS
from scrubjay.rooms.generate import SCENES, split, type_of
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.state import State
from scrubjay.sim.world import World
from scrubjay.spots.episodes import near_episode, search_episode
from scrubjay.spots.spots import (
    CANDIDATES,
    EASY,
    FILES,
    Spot,
    Spots,
    load_spot_files,
    make_spot_files,
    spots_path,
)
from scrubjay.study.blocks import room_of, write_blocks
from scrubjay.study.dynamic_experiments import LAST_STEP
from scrubjay.study.foyer_data import resolved
from scrubjay.study.sequences import SIZE, Clip, SequenceWriter
from scrubjay.study.weight_files import sha256_of
from scrubjay.training.agent_player import resize
from scrubjay.workers.base import HERE, Workers

COLUMNS = {"scene": "U24", "split": "U10", "pair": "i8", "treatment": "?", "turn": "U5", "found": "i4"}
"""`pair`: the number of the pair; `treatment`: the object was there; `turn`: the forced rotation; `found`: its step."""
EXTRAS = {"step": ("int8", ())}
"""Representations after the forced rotation count from 1; 0 before."""
TURNS = ("left", "right")
BATCHES = {"cuda": 128, "cpu": 16}
"""Episodes played at once; their number changes no image, but the agent's samples."""


@dataclass(frozen=True)
class RotationScale:
    """How much data."""

    scenes: tuple[int, int]
    """Train and test scenes of each room type."""
    spots: int = 20
    """Easy spots of each scene and object, at most."""
    steps: int = SEEKER_STEPS
    """Steps of a search."""
    goals: tuple[str, ...] = GOALS
    candidates: int = CANDIDATES
    """Candidates that spots are chosen from."""
    types: tuple[str, ...] = ("kitchen", "living_room")
    near: bool = False
    """For untrained agents: searches begin in front of the object, and whoever could claim it counts as claiming it."""

    def names(self) -> list[str]:
        return [
            scene
            for name, count in zip(("train", "test"), self.scenes, strict=True)
            for room_type in self.types
            for scene in [one for one in SCENES if split(one) == name and type_of(one) == room_type][:count]
        ]


SCALES = {
    "paper": RotationScale((20, 5)),
    "mini": RotationScale((2, 2), 2, steps=4, goals=GOALS[:2], candidates=8, types=("bathroom",), near=True),
}


def make_rotation_data(
    folder: str | os.PathLike[str],
    agent: Agent,
    scale: RotationScale = SCALES["paper"],
    spots: str | os.PathLike[str] | None = None,
    seed: int = 0,
    renderer: str = "auto",
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
    workers: Workers | None = None,
) -> None:
    """Makes what a folder lacks, scene by scene; `spots` is a folder of `scrubjay spots`, by default made in it.

    Scenes that `spots` has not all objects of are left out. `progress` is told of scenes, and of files of spots if they
    are made. Without workers, see `make_blocks`.
    """
    batch = BATCHES[torch.device(device).type]
    renderer, scenes = resolved(renderer, device), scale.names() if spots is None else _with_spots(scale, Path(spots))
    facts = {
        "agent": sha256_of(agent.state_dict()), "renderer": renderer, "spots": scale.spots, "steps": scale.steps,
        "goals": list(scale.goals), "candidates": scale.candidates, "near": scale.near,
    }  # fmt: skip
    writer = SequenceWriter(folder, "rotation", Stage.S, seed, scenes, COLUMNS, EXTRAS, facts)
    where = Path(folder) / "spots" if spots is None else Path(spots)
    missing, before = writer.missing(), 0
    if spots is None and missing:
        before = len(scenes) * len(scale.goals)
        make_spot_files(
            scenes, scale.goals, where, lambda done, _: progress(done, before + len(scenes)), scale.candidates,
            workers=workers or HERE,
        )  # fmt: skip
    items: dict[str, tuple] = dict.fromkeys(scenes, ())
    items |= {name: (name, load_spot_files(where, [name], scale.goals)) for name in missing}
    finish = partial(_block, writer, agent, scale, seed, batch, renderer, device)

    def tell(done: int, total: int) -> None:
        progress(before + done, before + total)

    write_blocks(writer, room_of, finish, items, tell, workers, device)


def _with_spots(scale: RotationScale, folder: Path) -> list[str]:
    """The scenes that a folder has spots of; SpotError unless some are to train in and some to test in."""
    scenes = [name for name in scale.names() if all(spots_path(folder, name, one).exists() for one in scale.goals)]
    for part in ("train", "test"):
        if part not in map(split, scenes):
            wanted = f"of {' or '.join(scale.types)} of the {part} scenes, with {', '.join(scale.goals)}"
            raise SpotError(f"{folder}: no hiding spots {wanted}; make them with `scrubjay spots`")
    return scenes


def _block(
    writer: SequenceWriter, agent: Agent, scale: RotationScale, seed: int, batch: int, renderer: str, device: str,
    room: CompiledRoom, scene: str, files: Sequence[Spots],
) -> dict[str, np.ndarray | str]:  # fmt: skip
    for each in files:
        FILES.check_room(each, room.room)
    easy = [spot for each in files for spot in each.spots[EASY][: scale.spots]]
    agent.to(device).eval()
    # Scenes differ in their numbers of spots, and networks would be compiled for each.
    eager = torch.compiler.set_stance("force_eager")
    with eager, autocast(device), World([room], max(1, min(batch, len(easy))), renderer, SIZE, device) as world:
        return writer.pack(_clips(world, agent, easy, scale, [seed, SCENES.index(scene)], device))


@dataclass(frozen=True)
class _Episode:
    """A search that found the object, T frames."""

    spec: EpisodeSpec
    states: State
    """(T, ...): as it was; the object is gone after the forced rotation."""
    last_action: np.ndarray
    last_success: np.ndarray
    turn: str
    found: int
    """The frame at which the object could be claimed."""


def _clips(
    world: World, agent: Agent, spots: Sequence[Spot], scale: RotationScale, key: Sequence[int], device: str
) -> Iterator[Clip]:
    """Pairs of sequences in one room, with the object and without."""
    name, pair = world.rooms[0].room.scene, SCENES.index(world.rooms[0].room.scene) * 100_000
    for first in range(0, len(spots), len(world)):
        rng = np.random.default_rng([*key, first])
        starts = near_episode if scale.near else search_episode
        specs = [starts(world.rooms[0], spot, rng) for spot in spots[first : first + len(world)]]
        for episode in play_until_found(world, agent, specs, scale, rng, device):
            columns = {"scene": name, "split": split(name), "pair": pair, "turn": episode.turn, "found": episode.found}
            seen = _clip(world, episode, columns | {"treatment": True})
            yield seen
            yield _clip(world, episode, columns | {"treatment": False}, like=seen)
            pair += 1


@torch.no_grad()
def play_until_found(
    world: World,
    agent: Agent,
    specs: Sequence[EpisodeSpec],
    scale: RotationScale,
    rng: np.random.Generator,
    device: str = "cpu",
) -> list[_Episode]:
    """Plays searches, one in each of the first worlds, and returns those in which the agent would claim the object."""
    count = len(specs)
    limits = LIMITS.copy()
    limits[Stage.S] = scale.steps + LAST_STEP + 2
    game = CacheGame(world, lambda _, number: specs[min(number, count - 1)], limits)
    generator = torch.Generator(device).manual_seed(int(rng.integers(2**62)))
    memory, is_first = agent.initial_state(len(game)), torch.ones(len(game), dtype=torch.bool, device=device)
    sides = rng.integers(2, size=len(game))
    found = np.full(len(game), NOTHING)
    states: list[State] = []
    told: list[tuple[np.ndarray, np.ndarray]] = []
    for step in range(scale.steps + LAST_STEP):
        states.append(world.state.copy())
        told.append((game.last_action.copy(), game.last_success.copy()))
        ended = (found != NOTHING) & (step >= found + LAST_STEP)
        if (ended | (found == NOTHING) & (step >= scale.steps))[:count].all():
            break
        observation = observe(game, resize(game.look().rgb, agent.config.image_size).to(device))
        observation = tree.map(lambda tensor: tensor.to(device), observation)
        output = agent.act(memory, observation, is_first)
        memory, is_first = output.state, torch.zeros_like(is_first)
        action = sample_categorical(output.decision.logits.float(), generator).cpu().numpy()
        visible, within_reach = game.in_sight()
        would = visible & within_reach & (found == NOTHING) & (step < scale.steps)
        if not scale.near:
            would &= CLAIM[action] != NOTHING
        found[would] = step
        action = np.where(would, np.array([NUMBERS["RotateLeft"], NUMBERS["RotateRight"]])[sides], action)
        # After the last step of a search, a claim must not end the game.
        late = visible & within_reach & (CLAIM[action] != NOTHING)
        game.step(np.where(late, NUMBERS["Crouch"], action))
        world.remove(found != NOTHING)
    episodes = []
    for number in np.flatnonzero(found[:count] != NOTHING).tolist():
        frames = slice(0, found[number] + LAST_STEP + 1)
        own = _row_of(states[frames], number)
        actions, successes = (np.array([each[part][number] for each in told[frames]]) for part in (0, 1))
        episodes.append(_Episode(specs[number], own, actions, successes, TURNS[sides[number]], int(found[number])))
    return episodes


def _row_of(states: Sequence[State], world: int) -> State:
    """One world's states at T steps, (T, ...)."""
    return State(*(np.stack([getattr(state, field.name)[world] for state in states]) for field in fields(State)))


def _clip(world: World, episode: _Episode, columns: dict, like: Clip | None = None) -> Clip:
    """Draws an episode, with the object or without."""
    states = episode.states
    if not columns["treatment"]:
        states = State(**{**vars(states), "goal": np.full_like(states.goal, NOTHING)})
    length, before, images = len(states.rotation), world.state, []
    for first in range(0, length, len(world)):
        rows = np.minimum(first + np.arange(len(world)), length - 1)
        world.state = State(*(getattr(states, field.name)[rows] for field in fields(State)))
        some = np.arange(len(world)) < length - first
        images.append(world.view(("rgb",), worlds=some).rgb.cpu().numpy())
    world.state = before
    start = np.tile(np.array(episode.spec.start, float), (length, 1))
    steps = np.clip(np.arange(length) - episode.found, 0, None)
    place = relative_place(states, start)
    return Clip(
        np.concatenate(images), episode.last_action, episode.last_success, place, episode.spec.goal, columns,
        {"step": steps}, like,
    )  # fmt: skip
