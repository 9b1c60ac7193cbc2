"""Does the memory know where the hand is, and could it? What it knows, and what its recurrent layers learn alone.

    python scripts/hands.py --agent scrubjay-paper --tracking out/study/data/tracking

The agent plays manipulations of plausible placements, in which the object is not drawn for a while. How many cells is
the hand's head off, while the object is seen and 1-2, 3-5 and 6 or more steps after, and how far has the object moved
since then? In validation rooms, with hands that begin where the game begins them, and anywhere in view; and in the
study's paths behind books (`scrubjay study data tracking`). Then the recurrent layers and that head learn from
manipulations in train rooms, with the encoder as it is, and are asked again. Prints a line of JSON for each; `--out`
keeps the agent, whose policy has not been trained along.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.progress import track

from scrubjay import load_agent, tree
from scrubjay.agent.agent import Agent, save_agent
from scrubjay.agent.sampling import sample_categorical
from scrubjay.envs.tasks import Manipulate
from scrubjay.game.actions import Stage
from scrubjay.game.observation import Observation, observe
from scrubjay.rooms.generate import expand_scenes
from scrubjay.sim.build import build_rooms
from scrubjay.sim.cells import CELLS
from scrubjay.sim.world import World
from scrubjay.study.foyer_tracking import OCCLUDED
from scrubjay.study.sequences import SequenceData
from scrubjay.study.sources import DynamicSource
from scrubjay.training import losses
from scrubjay.training.displaced_hands import DisplacedHands
from scrubjay.training.episode_stats import EpisodeStats, TrackedGame
from scrubjay.training.hidden_hands import HiddenHands

LENGTH, GAMES = 20, 16
"""Steps and games of a batch, if so many were played."""
HIDDEN_SHARE = 0.6
"""Weight of the steps at which the object is hidden."""
SINCE = {"seen": (0, 1), "1-2": (1, 3), "3-5": (3, 6), "6+": (6, 10**6)}
"""Steps since the object was seen."""
STAGES = frozenset({int(Stage.OM)})


class Steps(NamedTuple):
    """T steps of B games."""

    observation: Observation
    """Without images."""
    is_first: torch.Tensor
    hidden: torch.Tensor
    """(T, B) bool: the object is not drawn."""
    cell: torch.Tensor
    """(T, B, 2): where the object is; NaN where nothing is held or outside the image."""
    sir: torch.Tensor
    pooled: torch.Tensor
    """In float16."""


def play(agent: Agent, placements: Path, split: str, rooms: int, copies: int, steps: int, displaced: float) -> Steps:
    """Manipulations in random rooms; nearly all of them hide the object for a while."""
    rng = np.random.default_rng(0)
    every = expand_scenes([f"{split}:kitchen", f"{split}:living_room"])
    scenes = sorted(rng.choice(every, rooms, replace=False).tolist())
    sampler = Manipulate(placements=str(placements)).load(scenes).sampler(0)
    generator = torch.Generator().manual_seed(0)
    rows: list[Steps] = []
    with World(build_rooms(scenes), copies) as world, torch.no_grad():
        hands = HiddenHands(0.8, len(world), rng), DisplacedHands(displaced, rng)
        game = TrackedGame(world, sampler, EpisodeStats(), hidden_hands=hands[0], displaced_hands=hands[1])
        state, episode = agent.initial_state(len(game), 1), np.full(len(game), -1)
        for _ in range(steps):
            is_first, episode = torch.from_numpy(episode != game.episode), game.episode.copy()
            observation = observe(game)
            output = agent.act(state, observation, is_first)
            state, encoded, hidden = output.state, output.encoded, game.hidden()
            assert hidden is not None
            rows.append(
                Steps(
                    replace(observation, image=observation.stage), is_first, torch.from_numpy(hidden),
                    torch.from_numpy(world.held_cells()).float(), encoded.sir.half(), encoded.pooled.half(),
                )
            )  # fmt: skip
            action = sample_categorical(output.decision.logits.float(), generator)
            game.step(action.numpy(), np.zeros((len(game), 4), int))
    return tree.stack(rows)


def hand_logits(agent: Agent, steps: Steps) -> torch.Tensor:
    """(T, B, 7, 7): where the head says that the object is; memories begin empty."""
    is_first = steps.is_first.clone()
    is_first[0] = True
    state = agent.initial_state(is_first.shape[1], 1)
    sir, pooled = steps.sir.float(), steps.pooled.float()
    dirs, _ = agent.memory.sequence(state, sir, pooled, steps.observation, is_first, STAGES)
    assert agent.heads.hand is not None
    return agent.heads.hand(dirs.grid.flatten(0, 1)).unflatten(0, is_first.shape)[:, :, 0]


def errors(logits: torch.Tensor, cell: torch.Tensor, seen: torch.Tensor, is_first: torch.Tensor) -> dict[str, list]:
    """By steps since the object was seen: how many steps, cells that the head is off, cells that it has moved since."""
    share = logits.flatten(-2).softmax(-1).unflatten(-1, (CELLS, CELLS))
    middles = torch.arange(float(CELLS))
    expected = torch.stack([share.sum(-1) @ middles, share.sum(-2) @ middles], -1)
    found = defaultdict[str, list[tuple[float, float]]](list)
    for b in range(cell.shape[1]):
        since, last = -1, torch.zeros(2)
        for t in range(len(cell)):
            since = -1 if is_first[t, b] else since
            if cell[t, b].isnan().any():
                continue
            if seen[t, b]:
                since, last = 0, cell[t, b]
            elif since >= 0:
                since += 1
            if since >= 0:
                name = next(name for name, (low, high) in SINCE.items() if low <= since < high)
                found[name].append(((expected[t, b] - cell[t, b]).norm().item(), (last - cell[t, b]).norm().item()))
    return {name: [len(found[name]), *np.mean(found[name], 0).round(2).tolist()] for name in SINCE if found[name]}


def paths_behind_books(agent: Agent, data: SequenceData, paths: int = 120) -> dict[str, list]:
    """The same in so many paths of the study."""
    chosen = np.random.default_rng(0).choice(len(data), min(paths, len(data)), replace=False)
    lengths = np.array([len(data.frames_of(number)) for number in chosen])
    order = np.argsort(-lengths, kind="stable")
    chosen, lengths = chosen[order], lengths[order]
    first, source = np.array([data.frames_of(number)[0] for number in chosen]), DynamicSource("", agent)
    source.begin(len(chosen), int(lengths[0]))
    shape = int(lengths[0]), len(chosen)
    logits, cell, seen = torch.zeros(*shape, CELLS, CELLS), torch.full((*shape, 2), torch.nan), torch.zeros(shape) > 0
    for step in range(shape[0]):
        count = int((lengths > step).sum())
        frames = first[:count] + step
        images = torch.from_numpy(data.images(frames))
        logits[step, :count] = source.step(source.observe(data, frames, step, images)).decision.hand
        pixels = torch.from_numpy(data.read("cells", frames)).float()
        middles = torch.arange(float(CELLS))
        total = pixels.sum((1, 2))
        where = torch.stack([pixels.sum(2) @ middles, pixels.sum(1) @ middles], 1) / total[:, None]
        cell[step, :count] = where
        seen[step, :count] = torch.from_numpy(data.read("visible", frames)) >= OCCLUDED
    return errors(logits, cell, seen, torch.zeros(shape) > 0)


def learn(agent: Agent, steps: Steps, count: int, learning_rate: float) -> None:
    """Teaches the recurrent layers and the hand's head, in so many steps of the optimizer."""
    assert agent.heads.hand is not None
    layers = [
        part for name, part in agent.memory.named_parameters() if not name.startswith(("metric_map", "map_reader"))
    ]
    layers += agent.heads.hand.parameters()
    optimizer = torch.optim.Adam(layers, learning_rate)
    rng, of_games = np.random.default_rng(0), steps.hidden.shape[1]
    for _ in track(range(count), "Learning", console=Console(stderr=True)):
        begin = int(rng.integers(len(steps.hidden) - LENGTH + 1))
        games = rng.choice(of_games, min(GAMES, of_games), replace=False)
        batch = tree.index(tree.index(steps, slice(begin, begin + LENGTH)), (slice(None), torch.from_numpy(games)))
        logits = hand_logits(agent, batch)
        both = [losses.hand(logits, batch.cell, mask) for mask in (batch.hidden, ~batch.hidden)]
        loss = HIDDEN_SHARE * both[0] + (1 - HIDDEN_SHARE) * both[1]
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(layers, 1.0)
        optimizer.step()


def main(
    agent: str = "scrubjay-paper",
    placements: Path = Path("out/skills/placements"),
    tracking: Path | None = None,
    optimizer_steps: int = 400,
    displaced: float = 0.7,
    rooms: int = 12,
    steps: int = 260,
    learning_rate: float = 3e-4,
    out: Path | None = None,
) -> None:
    """See the top of this file.

    Args:
        agent: A run, a folder of weights or a released agent, with a head for the hand.
        placements: Folder of placements of train and validation kitchens and living rooms.
        tracking: Folder of the study's paths; without one they are left out.
        optimizer_steps: How long to learn; 0 asks the agent as it is.
        displaced: Share of the manipulations to learn from that begin with the hand elsewhere.
        rooms: Train rooms to learn in, four games each.
        steps: Steps of each of these games.
        learning_rate: Adam's.
        out: Folder to write the taught agent to.
    """
    torch.compiler.set_stance("force_eager")
    taught = load_agent(agent).eval()
    if taught.heads.hand is None:
        raise SystemExit(f"{agent}: it has no head for the hand (agent.hand_head)")
    tests = {
        name: play(taught, placements, "validation", 6, 4, 60, share)
        for name, share in (("default", 0), ("anywhere", 1))
    }
    data = SequenceData(tracking, "tracking") if tracking else None

    def ask(learned: int) -> None:
        with torch.no_grad():
            for name, test in tests.items():
                seen = ~test.hidden
                row = errors(hand_logits(taught, test), test.cell, seen, test.is_first)
                print(json.dumps({"hands": name, "optimizer_steps": learned, **row}), flush=True)
            if data:
                print(json.dumps({"hands": "books", "optimizer_steps": learned, **paths_behind_books(taught, data)}))

    ask(0)
    if optimizer_steps:
        learn(taught, play(taught, placements, "train", rooms, 4, steps, displaced), optimizer_steps, learning_rate)
        ask(optimizer_steps)
    if out:
        save_agent(taught.eval(), out)


if __name__ == "__main__":
    tyro.cli(main)
