"""What the game costs beside the world it is played in."""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console

from scrubjay.bench.world import machine, spread
from scrubjay.game import actions
from scrubjay.game.actions import Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.game.stages import LIMITS
from scrubjay.sim.build import build_rooms
from scrubjay.sim.world import World

WALKS = np.array([action_index(n) for n in ("MoveAhead", "MoveLeft", "MoveRight", "RotateLeft", "RotateRight")])


def measure(games: int, rooms: int, steps: int, console: Console) -> dict:
    """Milliseconds of a step of walking in E&M and S, with and without the rules of the game around it."""
    console.print(f"building {rooms} rooms")
    rng = np.random.default_rng(0)
    with World(build_rooms(spread(rooms)), games // rooms, size=56) as world:
        draws = rng.choice(WALKS, (2, steps, len(world)))
        dealer = RandomEpisodes()

        def staggered(world: World, number: int) -> EpisodeSpec:
            """Half of the games explore, half seek."""
            dealt = dealer(world, number)
            if number % 2:
                return dealt
            return EpisodeSpec(dealt.goal, dealt.start, Stage.S, Stage.S, pose=(0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0))

        game = CacheGame(world, staggered)
        # Games of all ages, as in the midst of training: new ones begin now and then, not all at once.
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
            held = game.stage == Stage.OH
            if held.any():
                # Hiding is not what is measured: those games begin again.
                game.reset(held)
    return {
        "games": len(game),
        "step_ms": round(1000 * whole / steps, 3),
        "world_ms": round(1000 * alone / steps, 3),
        "added_ms": round(1000 * (whole - alone) / steps, 3),
        "machine": machine("cpu"),
    }
