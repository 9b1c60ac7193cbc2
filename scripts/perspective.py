"""Does the hider's mental seeker know where the object is? What it knows, and what it learns, in an agent's games.

    python scripts/perspective.py --games 256 --steps 400

The agent plays whole games in train rooms. In a fifth of them its mental seeker is asked, along each real seeker's
path, whether a claim would succeed, in a map imagined with the true hiding and in one with a hiding at a random other
place. If it knows where the object is, it tells steps at which that can be claimed from others (AUC), in the first map
only. Seekers are taught to walk to where it expects claims to succeed: in how many games is there such a place, how far
is it from the hider's, and how far is the floor? Second, 30 imagined hidings are searched twice, by 50 mental seekers
each: means that correlate between the halves depend on the hiding. Then untrained simulations learn from the other
games, each game's places once and its search again and again, and are asked the same. Prints a line of JSON for each.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import tyro
from sklearn.metrics import roc_auc_score

from scrubjay import load_agent, tree
from scrubjay.agent.agent import Agent, explored_maps, save_agent
from scrubjay.agent.mental_seeker import SEEKER_CLAIM
from scrubjay.agent.perspective import PerspectiveSimulation, Uniforms
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.rooms.floor import GRID
from scrubjay.rooms.generate import expand_scenes
from scrubjay.sim.build import build_rooms
from scrubjay.sim.world import World
from scrubjay.training import path_teacher
from scrubjay.training.actor_critic import total_loss
from scrubjay.training.hiding_buffer import PerspectiveBatch
from scrubjay.training.hiding_learner import HidingLearner, HidingObjective
from scrubjay.training.rollout import Collector

TESTED = 5
"""One game in so many is not learned from."""
SIMULATED = 12
"""Tested games whose imagined hidings are searched twice."""


def play(agent: Agent, count: int, rooms: int, copies: int, seed: int) -> PerspectiveBatch:
    """At least so many whole games, without their images."""
    every = expand_scenes(["train:kitchen", "train:living_room"])
    scenes = np.random.default_rng(seed).choice(every, rooms, replace=False)
    with World(build_rooms(sorted(scenes.tolist())), copies) as world:
        game = CacheGame(world, RandomEpisodes(seed, first=Stage.EM, last=Stage.S))
        collector = Collector(agent, [game], seed, hiding=True, think_every=8)
        batches: list[PerspectiveBatch] = []
        while sum(map(len, batches)) < count:
            collector.collect(8)
            if ended := len(collector.finished_games):
                batches.append(collector.finished_games.take(ended).perspective)
                print(json.dumps({"games": sum(map(len, batches))}), flush=True)
    return tree.cat(batches)


@torch.no_grad()
def knowledge(learner: HidingLearner, games: PerspectiveBatch) -> dict[str, float | None]:
    """AUCs of claims with the true place and with another, and the correlation between two halves of mental seekers."""
    simulation, generator = learner.agent.perspective, torch.Generator().manual_seed(1)
    explored, origin = explored_maps(games.metric_map.entries)
    survey, (height, width) = simulation.encode_maps(explored), explored.floor.shape[1:]
    index = explored.places.flatten(1).float().multinomial(1, generator=generator)[:, 0]
    elsewhere = torch.stack([index // width % height, index % width, index // (height * width)], -1)
    seeking = games.seeking
    longest = int(seeking.steps.max())
    mask, claimable = seeking.mask.T[:longest], seeking.claimable.T[:longest]
    scores: dict[str, float | None] = {}
    for name, place in (("true_place", games.choice.place), ("other_place", elsewhere)):
        maps = simulation.imagine(survey, explored.inside, place[:, None], games.outcome[:, None, None])[:, 0]
        claims = learner.predict_seeker(seeking, maps, origin).success[..., SEEKER_CLAIM]
        scores[name] = round(roc_auc_score(claimable[mask].numpy(), claims[mask].numpy()), 3)
        if name == "true_place":
            goals = path_teacher.claimable(simulation.seeker, maps, explored.floor).flatten(3).any(3)
            taught = round(float(goals.flatten(1).any(1).float().mean()), 3)
            scores |= {"taught": taught, "taught_m": distance(goals, place), "floor_m": distance(explored.floor, place)}
    some = tree.index(games, slice(SIMULATED))
    explored, _ = explored_maps(some.metric_map.entries)
    first = Uniforms.sample(explored, generator)
    second = replace(first, seekers=torch.rand(first.seekers.shape, generator=generator))
    one, two = (simulation.choose_place(explored, each).mean_steps.flatten(1).numpy() for each in (first, second))
    halves = np.mean([np.corrcoef(mine, other)[0, 1] for mine, other in zip(one, two, strict=True)])
    hidings = some.choice.place[:, None], some.outcome[:, None, None]
    maps = simulation.imagine(simulation.encode_maps(explored), explored.inside, *hidings)[:, 0]
    rms = maps[explored.inside].pow(2).mean().sqrt()
    return scores | {"halves": round(float(halves), 3), "map_rms": round(float(rms), 2)}


def distance(positions: torch.Tensor, place: torch.Tensor) -> float | None:
    """The mean distance in meters from positions (n, h, w) bool to places (n, 3), over the games that have any."""
    pairs = [(each.nonzero(), here[:2]) for each, here in zip(positions, place, strict=True) if each.any()]
    games = [GRID * (found - here).float().norm(dim=1).mean() for found, here in pairs]
    return round(float(torch.stack(games).mean()), 2) if games else None


def learn(learner: HidingLearner, games: PerspectiveBatch, steps: int, rate: float, size: int) -> None:
    """Steps of an optimizer on `size` games each: first all games once, then the mental seeker's losses again."""
    optimizer = torch.optim.Adam(learner.agent.perspective.parameters(), rate)
    once = list(torch.randperm(len(games)).split(size))
    for step in range(steps):
        again = step >= len(once)
        some = tree.index(games, torch.randperm(len(games))[:size] if again else once[step])
        loss = total_loss(learner.ps_losses(some, again), learner.objective.perspective_weights(again))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learner.agent.perspective.parameters(), 10)
        optimizer.step()


def main(
    agent: str = "scrubjay-paper",
    games: int = 256,
    steps: int = 400,
    rate: float = 1e-3,
    size: int = 16,
    rooms: int = 12,
    copies: int = 2,
    seed: int = 1,
    out: Path | None = None,
) -> None:
    """See the top of this file.

    Args:
        agent: A run, a folder of weights or a released agent.
        games: Whole games to play, at least.
        steps: Optimizer steps of each simulation that learns.
        rate: Their learning rate.
        size: Games of a step.
        rooms: Train kitchens and living rooms to play in.
        copies: Games at a time in each.
        seed: Random seed.
        out: Folder to write the agent to, with the simulation that is told everywhere.
    """
    player = load_agent(agent).eval()
    played = play(player, games, rooms, copies, seed)
    tested = torch.arange(len(played)) % TESTED == 0
    train, test = (tree.index(played, which.nonzero()[:, 0]) for which in (~tested, tested))
    learner = HidingLearner(player, HidingObjective())
    about = {"games": len(played), "found": round(float(played.seeking.found.float().mean()), 3)}
    print(json.dumps(about | {"simulation": agent, **knowledge(learner, test)}), flush=True)
    for offsets in (False, True):
        torch.manual_seed(seed)
        player.perspective = PerspectiveSimulation(replace(player.config, mental_offsets=offsets))
        learn(learner, train, steps, rate, size)
        name = "told everywhere" if offsets else "told at the hider's place"
        print(json.dumps({"simulation": name, "steps": steps, **knowledge(learner, test)}), flush=True)
    if out:
        player.config = replace(player.config, mental_offsets=True)
        save_agent(player, out)


if __name__ == "__main__":
    tyro.cli(main)
