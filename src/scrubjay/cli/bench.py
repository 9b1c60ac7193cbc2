"""Benchmarks: world, scaling, endurance, game, ratios, agent, step, learning, cluster, server, thor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from scrubjay.cli.arguments import ImageSize, Natural, Positive, PositiveFloat, PositiveOrNone
from scrubjay.cli.terminal import Renderer, err, print_json


def world(
    rooms: Positive = 10,
    copies: Positive = 1,
    seconds: PositiveFloat = 5.0,
    size: ImageSize = 224,
    renderer: Renderer = "auto",
    device: str = "cpu",
) -> None:
    """Benchmarks the world: building, rendering, hand actions, settling, memory. Prints one JSON object.

    Args:
        rooms: Number of different rooms.
        copies: Worlds per room.
        seconds: Duration of each measurement.
        size: Image size in pixels.
        renderer: The renderer.
        device: cpu, cuda or cuda:N.
    """
    from scrubjay.bench.world import measure
    from scrubjay.sim.render.make import check_device

    check_device(device)
    print_json(measure(rooms, copies, seconds, size, renderer, device, err))


def scaling(device: str = "cuda", seconds: PositiveFloat = 0.7, out: Path = Path("results")) -> None:
    """Benchmarks how speed scales with worlds, rooms and geoms; writes scaling.jsonl and scaling.png.

    Args:
        device: cpu, cuda or cuda:N.
        seconds: Duration of each measurement.
        out: Output folder.
    """
    from scrubjay.bench.scaling import measure
    from scrubjay.sim.render.make import check_device

    check_device(device)
    for row in measure(device, seconds, out, err):
        print_json(row)


def endurance(
    device: str = "cuda", minutes: PositiveFloat = 10.0, copies: Positive = 16, interval: PositiveFloat = 20.0
) -> None:
    """Plays randomly in the 80 train rooms; checks memory, and images against OpenGL. Prints JSON.

    Args:
        device: cpu, cuda or cuda:N.
        minutes: Duration.
        copies: Worlds per room.
        interval: Seconds between checks.
    """
    from scrubjay.bench.endurance import measure
    from scrubjay.sim.render.make import check_device

    check_device(device)
    print_json(measure(device, minutes, copies, interval, err))


def game(games: Positive = 1024, rooms: Positive = 8, steps: Positive = 200) -> None:
    """Benchmarks the rules of the game without rendering. Prints JSON.

    Args:
        games: Parallel games.
        rooms: Number of rooms.
        steps: Measured steps.
    """
    from scrubjay.bench.game import measure

    if games < rooms:
        raise ValueError(f"games: one or more in each of the {rooms} rooms, not {games} in all")
    print_json(measure(games, rooms, steps, err))


def ratios(rooms: Positive = 150) -> None:
    """Compares times that must stay small with others on the same machine; exits with 1 if a ratio is too large.

    Args:
        rooms: Number of fixed rooms that are made.
    """
    from scrubjay.bench.ratios import measure

    figures = measure(rooms, err)
    print_json(figures)
    if figures["too_large"]:
        sys.exit(1)


def agent(
    preset: Literal["paper", "small"] = "paper",
    device: str = "cpu",
    games: Positive = 1024,
    seconds: PositiveFloat = 3.0,
    compiled: bool = False,
    out: Path | None = None,
) -> None:
    """Benchmarks acting, learning and perspective simulation of the agent. Prints one JSON object.

    Args:
        preset: Sizes of the networks.
        device: cpu, cuda or cuda:N.
        games: Parallel games.
        seconds: Duration of each measurement.
        compiled: Use torch.compile on the encoder.
        out: Output folder for agent.jsonl, a table of how each figure scales.
    """
    from scrubjay.bench.agent import measure, sweep
    from scrubjay.sim.render.make import check_device

    check_device(device)
    if out:
        sweep(preset, device, seconds, out, err)
    print_json(measure(preset, device, games, seconds, compiled, err))


def step(
    agent: Annotated[str, tyro.conf.Positional] = "scrubjay-paper",
    /,
    scene: str = "FloorPlan21",
    goal: str = "Tomato",
    steps: Positive = 300,
    seed: Natural = 3,
    trust_code: bool = False,
) -> None:
    """Benchmarks one agent in one game on one core: the time of a step and of its parts. Prints one JSON object.

    Args:
        agent: A released agent's name, a run, a folder of weights, or random for an untrained one of the paper's size.
        scene: The room.
        goal: The object: Bread, Cup, Knife, Plunger or Tomato.
        steps: Measured steps.
        seed: The same seed plays the same game.
        trust_code: Allow an agent whose encoder is python:... to import that code.
    """
    from scrubjay.bench.step import measure
    from scrubjay.study.sources import load_agent_named

    with err.status("playing"):
        figures = measure(load_agent_named(agent, trust_code=trust_code), scene, goal, steps, seed)
    print_json(figures)


def learning(
    preset: Literal["demo", "explore", "manipulate", "seek", "navigate", "pretrain", "cache"] = "explore",
    device: str = "cpu",
    numbers: Literal["paper", "preset"] = "paper",
    rooms: Positive = 40,
    scenes: list[str] = [],  # noqa: B006 (tyro takes lists)
    copies: list[Positive] = [24],  # noqa: B006 (tyro takes lists)
    minibatch_games: PositiveOrNone = None,
    spots: str | None = None,
    start: str | None = None,
    overlap: bool = False,
    updates: Positive = 5,
    profile: Path | None = None,
) -> None:
    """Benchmarks training end to end: steps per second, and the time of each part of an update. Prints JSON lines.

    Args:
        preset: The training preset.
        device: cpu, cuda or cuda:N.
        numbers: The paper's hyperparameters, with one pass over each rollout, or the preset's.
        rooms: Number of rooms; demo has its own.
        scenes: Rooms to take them from, named as in `scrubjay train`; by default the preset's.
        copies: Games per room; demo has its own. Several numbers are measured in turn, a line of JSON each.
        minibatch_games: Games that make one step of the optimizer.
        spots: Seeking: folder of hiding spots, filled by `scrubjay spots`.
        start: The agent that plays and learns: a run, a folder of weights or a released one; by default an untrained
            one, which in whole games spends nearly all steps in OM.
        overlap: Learn from a rollout while the next one is collected.
        updates: Measured updates.
        profile: Write where the host spends one more update, function by function, to this text file; on a GPU, also
            which kernels collecting runs, to one beside it.
    """
    from scrubjay.agent.agent import load_agent
    from scrubjay.bench.learning import benchmark_config, measure, some_rooms
    from scrubjay.rooms.generate import expand_scenes
    from scrubjay.sim.render.make import check_device
    from scrubjay.spots.spots import load_spot_files
    from scrubjay.training.config import PRESETS
    from scrubjay.training.run import newest

    check_device(device)
    names = some_rooms(expand_scenes(scenes) if scenes else PRESETS[preset].scenes, rooms)
    if spots:
        load_spot_files(spots, names)
    agent = load_agent(newest(start)) if start else None
    changes: dict[str, Any] = {"overlap": overlap}
    changes |= {"agent": agent.config} if agent else {}
    changes |= {"minibatch_games": minibatch_games} if minibatch_games else {}
    changes |= {"spots": spots} if spots else {}
    sizes: list[dict[str, Any]] = [{}] if preset == "demo" else [{"scenes": names, "copies": one} for one in copies]
    # All of them are checked before the first is measured.
    configs = [benchmark_config(preset, numbers, **changes, **size) for size in sizes]
    for config in configs:
        print_json(measure(config, device, updates, err, profile, agent))


def cluster(
    preset: Literal["demo", "explore", "manipulate", "seek", "navigate"] = "demo",
    updates: Positive = 20,
    gpus_per_node: Positive = 8,
    gigabits: PositiveFloat = 400.0,
    inner_gigabytes: PositiveFloat = 450.0,
    microseconds: PositiveFloat = 20.0,
    price: PositiveFloat = 3.0,
    games: Positive = 4_500_000,
    steps_per_game: PositiveFloat = 700.0,
    out: Path | None = None,
) -> None:
    """Predicts training in several processes: 1, 2 and 4 here, beside what is measured, and up to 64 GPUs. Prints JSON.

    Args:
        preset: What the processes of this machine train.
        updates: Measured updates.
        gpus_per_node: GPUs of a node.
        gigabits: Bandwidth between nodes in Gbit/s, each way.
        inner_gigabytes: Bandwidth of a GPU within its node in GB/s, each way.
        microseconds: Latency of a hop.
        price: Of an hour of a GPU.
        games: Whole games to be played in all.
        steps_per_game: Their mean length.
        out: Output folder for cluster.jsonl and cluster.png.
    """
    from scrubjay.bench.cluster import Cluster, measure

    if updates < 2:
        raise ValueError(f"updates: 2 or more, to see how much they vary, not {updates}")
    assumptions = Cluster(gpus_per_node, gigabits, inner_gigabytes, microseconds, price, games, steps_per_game)
    print_json(measure(preset, updates, assumptions, out, err))


def server(
    participants: Positive = 100,
    seconds: PositiveFloat = 600.0,
    pause: PositiveFloat = 1.0,
    idle: Natural = 0,
    half_sent: Natural = 0,
    size: ImageSize = 224,
) -> None:
    """Benchmarks the web server with simulated participants in a study: latencies, losses, memory. Prints JSON.

    Args:
        participants: Number of concurrent participants.
        seconds: Duration.
        pause: Seconds between a participant's actions.
        idle: Connections held beside them that send nothing.
        half_sent: Connections held beside them with a request that never ends.
        size: Image size in pixels.
    """
    from scrubjay.bench.server import measure

    print_json(measure(participants, seconds, pause, idle, half_sent, size, err))


def thor(python: Path | None = None, scene: str = "FloorPlan28", steps: Positive = 500) -> None:
    """Benchmarks the engine behind AI2-THOR's client: steps per second and the time of each part, one JSON per line.

    Args:
        python: An interpreter that has the ai2thor package; by default this one.
        scene: The scene.
        steps: Measured steps.
    """
    from scrubjay.bench.thor import measure

    for row in measure(python, scene, steps, err):
        print_json(row)
