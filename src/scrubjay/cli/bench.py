"""Commands that measure speed and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from scrubjay.cli.terminal import Renderer, err, print_json


def world(
    rooms: int = 10,
    copies: int = 1,
    seconds: float = 5.0,
    size: int = 224,
    renderer: Renderer = "auto",
    device: str = "cpu",
) -> None:
    """Measures the world: building, looking, hand actions, settling, memory. Prints one JSON object last.

    Args:
        rooms: How many different rooms.
        copies: Copies of each.
        seconds: How long each speed is measured.
        size: The edge of an image in pixels.
        renderer: What draws.
        device: cpu, cuda or cuda:N.
    """
    from scrubjay.bench.world import measure
    from scrubjay.sim.render.make import check_device

    check_device(device)
    print_json(measure(rooms, copies, seconds, size, renderer, device, err))


def scaling(device: str = "cuda", seconds: float = 0.7, out: Path = Path("results")) -> None:
    """Measures how speed grows with worlds, rooms and geoms; writes scaling.jsonl and scaling.png.

    Args:
        device: cpu, cuda or cuda:N.
        seconds: How long each speed is measured.
        out: The folder for the table and the plot.
    """
    from scrubjay.bench.scaling import measure
    from scrubjay.sim.render.make import check_device

    check_device(device)
    for row in measure(device, seconds, out, err):
        print_json(row)


def endurance(device: str = "cuda", minutes: float = 10.0, copies: int = 16, interval: float = 20.0) -> None:
    """Plays at random in the 80 train rooms and watches memory, and the picture against OpenGL's. Prints JSON last.

    Args:
        device: cpu, cuda or cuda:N.
        minutes: How long it plays.
        copies: Copies of each room.
        interval: Seconds between looks at memory and pictures.
    """
    from scrubjay.bench.endurance import measure
    from scrubjay.sim.render.make import check_device

    check_device(device)
    print_json(measure(device, minutes, copies, interval, err))


def game(games: int = 1024, rooms: int = 8, steps: int = 200) -> None:
    """Measures what the rules of the game cost beside the world, without pixels. Prints JSON.

    Args:
        games: How many at once.
        rooms: In how many rooms.
        steps: How many steps are measured.
    """
    from scrubjay.bench.game import measure

    print_json(measure(games, rooms, steps, err))


def agent(
    preset: Literal["paper", "small"] = "paper",
    device: str = "cpu",
    games: int = 1024,
    seconds: float = 3.0,
    compiled: bool = False,
    out: Path | None = None,
) -> None:
    """Measures how fast the agent acts, learns and imagines. Prints one JSON object last.

    Args:
        preset: The networks' sizes.
        device: cpu, cuda or cuda:N.
        games: For how many games it acts at once.
        seconds: How long each speed is measured.
        compiled: Compile the encoder first.
        out: A folder for agent.jsonl, a table of how each figure grows.
    """
    from scrubjay.bench.agent import growth, measure
    from scrubjay.sim.render.make import check_device

    check_device(device)
    if out:
        growth(preset, device, seconds, out, err)
    print_json(measure(preset, device, games, seconds, compiled, err))


def learning(
    preset: Literal["demo", "explore", "manipulate", "seek", "cache"] = "explore",
    device: str = "cpu",
    numbers: Literal["paper", "preset"] = "paper",
    rooms: int = 40,
    copies: int = 24,
    minibatch_games: int | None = None,
    spots: str | None = None,
    updates: int = 5,
) -> None:
    """Measures training from end to end: steps a second, and what each part of an update takes. Prints JSON last.

    Args:
        preset: What is learned, and by which agent.
        device: cpu, cuda or cuda:N.
        numbers: The paper's actor-critic, which learns from each step once, or the objective that the preset has.
        rooms: In how many of the train rooms; those of demo are its own.
        copies: Games in each.
        minibatch_games: Games that make one step of the optimizer.
        spots: For seeking: a folder that `scrubjay spots` filled.
        updates: How many are measured.
    """
    from scrubjay.bench.learning import measure, trainings
    from scrubjay.bench.learning import rooms as some
    from scrubjay.sim.render.make import check_device

    check_device(device)
    changes: dict[str, Any] = {} if preset == "demo" else {"scenes": some(rooms), "copies": copies}
    changes |= {"minibatch_games": minibatch_games} if minibatch_games else {}
    changes |= {"spots": spots} if spots else {}
    print_json(measure(trainings(preset, numbers, **changes), device, updates, err))
