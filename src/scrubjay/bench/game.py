"""The overhead of the game's rules over the world's own step."""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console

from scrubjay.bench.world import spread
from scrubjay.game import actions
from scrubjay.game.actions import Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.game.stages import LIMITS
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.build import build_rooms
from scrubjay.sim.world import World
from scrubjay.study.record import machine

WALKS = np.array([action_index(n) for n in ("MoveAhead", "MoveLeft", "MoveRight", "RotateLeft", "RotateRight")])


def measure(games: int, rooms: int, steps: int, console: Console) -> dict:
    """Milliseconds per step of walking in E&M and S, with and without the rules."""
    console.print(f"building {rooms} rooms")
    rng = np.random.default_rng(0)
    with World(build_rooms(spread(rooms)), games // rooms, size=56) as world:
        draws = rng.choice(WALKS, (2, steps, len(world)))
        random_episodes = RandomEpisodes()

        def sampler(world: BaseWorld, number: int) -> EpisodeSpec:
            """Half of the games explore, half seek."""
            spec = random_episodes(world, number)
            if number % 2:
                return spec
            return EpisodeSpec(spec.goal, spec.start, Stage.S, Stage.S, pose=(0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0))

        game = CacheGame(world, sampler)
        # Games of all ages, as in training, so that resets are spread over time.
        ages = rng.integers(LIMITS[game.stage] // 2, size=len(world))
        game.time[np.arange(len(world)), game.stage] = ages
        console.print("walking with the rules and without")
        whole = alone = 0.0
        for action, other in zip(*draws, strict=True):
            action, other = np.where(game.stage == Stage.PS, -1, action), np.where(game.stage == Stage.PS, -1, other)
            start = time.perf_counter()
            world.move(actions.MOVE[other])
            world.rotate(actions.ROTATE[other])
            alone += time.perf_counter() - start
            start = time.perf_counter()
            game.step(action, np.zeros((len(world), 4), int))
            whole += time.perf_counter() - start
            hiding = game.stage == Stage.OH
            if hiding.any():
                # Hiding is not measured: those games are reset.
                game.reset(hiding)
    return {
        "games": len(game),
        "step_ms": round(1000 * whole / steps, 3),
        "world_ms": round(1000 * alone / steps, 3),
        "added_ms": round(1000 * (whole - alone) / steps, 3),
        "machine": machine("cpu"),
    }
