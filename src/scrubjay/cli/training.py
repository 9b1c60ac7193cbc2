"""Commands that train agents, say how well they do, and show what they do."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from scrubjay.cli.terminal import Renderer, err, print_json

Preset = Literal["demo", "explore", "manipulate", "seek", "cache"]
Difficulty = Literal["easy", "medium", "hard"]
SHOWN = ("coverage", "opened", "hit", "found", "seeker_steps")
"""Measures that the progress line shows, where a run has them."""


def train(
    preset: tyro.conf.Positional[Preset] = "demo",
    out: Path = Path("out/run"),
    resume: Path | None = None,
    start: Path | None = None,
    device: str = "cpu",
    scenes: tuple[str, ...] | None = None,
    copies: int | None = None,
    updates: int | None = None,
    interval: int | None = None,
    chunk: int | None = None,
    learning_rate: float | None = None,
    spots: str | None = None,
    difficulties: tuple[Difficulty, ...] | None = None,
    examined: int | None = None,
    seed: int | None = None,
    minutes: float | None = None,
    asynchronous: int = 0,
) -> None:
    """Trains an agent. A run is a folder; Ctrl-C saves, and --resume goes on. Under torchrun, processes learn together.

    Args:
        preset: What is learned, and with which numbers; the others here change some of them.
        out: The folder of a new run.
        resume: The folder of a run to go on with; then the preset and its numbers are the run's own.
        start: A run, or a folder with weights, whose agent the new run begins with: whole games after explore and
            manipulate.
        device: cpu, cuda or cuda:N.
        scenes: Rooms to learn in, by name; any number of generated ones such as kitchen-81723.
        copies: Games in each room.
        updates: Rollouts after which the run is over.
        interval: Rollouts between checkpoints.
        chunk: Games that make one step of the optimizer.
        learning_rate: Of the optimizer.
        spots: For seeking: a folder that `scrubjay spots` filled; without it the run makes its own.
        difficulties: For seeking: in which of these spots.
        examined: Games in each validation room that are played after every checkpoint, to see how far the agent is.
        seed: The same seed on a CPU trains the same agent.
        minutes: Stop after this time, as Ctrl-C would.
        asynchronous: Train with this many unsynchronized workers on the CPU, as the paper does; 0 trains in step.
    """
    from scrubjay.errors import TrainingError
    from scrubjay.sim.render.make import check_device
    from scrubjay.spots.episodes import load_all
    from scrubjay.training.config import VALIDATION, changed
    from scrubjay.training.distributed import group_of
    from scrubjay.training.hogwild import train_asynchronously
    from scrubjay.training.run import Run
    from scrubjay.training.trainer import train as run_training

    check_device(device)
    numbers = {
        "scenes": scenes, "copies": copies, "updates": updates, "interval": interval, "chunk": chunk,
        "learning_rate": learning_rate, "spots": spots, "difficulties": difficulties, "examined": examined,
        "seed": seed,
    }  # fmt: skip
    training = changed(preset, **numbers)
    given = [f"--{name.replace('_', '-')}" for name, value in numbers.items() if value is not None]
    if resume and (start or given):
        raise ValueError(
            f"{', '.join(given) or '--start'}: for a new run; one to --resume has its own numbers and agent"
        )
    if minutes is not None and not 0 < minutes < float("inf"):
        raise ValueError(f"minutes: a number above 0, not {minutes}")
    if asynchronous < 0 or (asynchronous and "RANK" in os.environ):
        raise ValueError("asynchronous: 0 or more workers of one process; under torchrun processes learn in step")

    if training.spots and not resume:
        # What is missing is said before there is a run.
        load_all(training.spots, [*training.scenes, *(VALIDATION if training.examined else ())])

    def opened() -> Run:
        return Run.open(resume) if resume else Run.begin(out, training, start)

    group, device = group_of(device)
    run = group.opened(opened)
    until = time.monotonic() + 60 * minutes if minutes else float("inf")
    try:
        with _interrupts() as interrupted, _progress(run.folder, run.training.updates, group.rank == 0) as report:

            def stop() -> bool:
                return bool(interrupted) or time.monotonic() > until

            if asynchronous:
                progress = train_asynchronously(run, asynchronous, report, stop)
            else:
                progress = run_training(run, device, report, stop, group)
    except TrainingError as error:
        raise ValueError(str(error)) from error
    finally:
        run.close()
        group.close()
    if group.rank == 0:
        if progress.update < run.training.updates:
            how = f"--asynchronous {asynchronous}" if asynchronous else f"--device {device}"
            err.print(f"stopped; go on with: scrubjay train --resume {run.folder} {how}", soft_wrap=True)
        print_json({"run": str(run.folder), **vars(progress)})


def evaluate(
    run: tyro.conf.Positional[Path],
    against: tuple[str, ...] = ("random",),
    games: int = 2,
    difficulties: tuple[Difficulty, ...] = ("easy", "medium", "hard"),
    seed: int = 7,
    device: str = "cpu",
) -> None:
    """Measures a run's agent, and scripted players, on the same games in the validation rooms. Prints JSON.

    Args:
        run: The folder of a run.
        against: Players without networks: random, possible; frontier (exploring, seeking), scripted (manipulating).
        games: Games in each of the 20 rooms.
        difficulties: For seeking: in which hiding spots.
        seed: The same seed deals the same games.
        device: cpu, cuda or cuda:N.
    """
    import torch

    from scrubjay.sim.render.make import check_device
    from scrubjay.training.agent_player import load_player
    from scrubjay.training.run import SPOTS, training_of
    from scrubjay.training.validation import Validation, scripted

    check_device(device)
    if games < 1 or seed < 0:
        raise ValueError("games: 1 or more; seed: 0 or more")
    training, agent = training_of(run), load_player(run, seed, device)
    players = {name: scripted(training.task, name, seed) for name in against}
    with err.status("building the validation rooms"):
        exam = Validation(training, run / SPOTS, games, seed, device, difficulties=difficulties)
    half = torch.autocast("cuda", torch.bfloat16, enabled=device.startswith("cuda"))
    for name, player in ({"agent": agent} | players).items():
        with err.status(f"{name} plays"), half:
            marks = exam.marks(player)
        print_json({"player": name, **{measure: list(mark) for measure, mark in marks.items()}})


def watch(
    run: tyro.conf.Positional[Path],
    scene: str = "FloorPlan21",
    goal: str = "Tomato",
    seed: int = 3,
    out: Path = Path("out/watch"),
    renderer: Renderer = "auto",
) -> None:
    """Lets a run's agent play a whole game, as hider and seeker, and writes a page of what it does and why.

    Args:
        run: The folder of a run; its newest checkpoint plays.
        scene: FloorPlan12, or a type and a seed such as kitchen-81723.
        goal: The object that is hidden.
        seed: The same seed plays the same game.
        out: The folder for index.html and record.json.
        renderer: What draws.
    """
    from scrubjay.game.record import save_records
    from scrubjay.viz.agent_page import write_agent_page
    from scrubjay.viz.agent_trace import load_run_agent, trace_agent
    from scrubjay.viz.episode import replay_episode
    from scrubjay.viz.episode_page import summarize

    agent, training, progress = load_run_agent(run)
    with err.status(f"the agent plays in {scene}"):
        trace = trace_agent(agent, scene, goal, seed, renderer)
    save_records([trace.record], out / "record.json")
    with err.status("drawing"):
        episode = replay_episode(trace.record, renderer)
        write_agent_page(trace, episode, training, progress, out / "index.html")
    print(summarize(episode))
    print(out / "index.html")


def curves(
    runs: tyro.conf.Positional[tuple[Path, ...]], only: tuple[str, ...] = (), out: Path = Path("out/curves.png")
) -> None:
    """Draws how runs went, one panel for each measure of their logs, into a PNG.

    Args:
        runs: Folders of runs; their names are the curves'.
        only: Measures to draw, such as play/coverage or losses/em/entropy; else the rewards, play and most losses.
        out: The picture.
    """
    from scrubjay.viz.curves import draw

    if not runs:
        raise ValueError("name at least one run")
    draw(runs, out, only)
    print(out)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Notes Ctrl-C and polite requests to end, instead of falling over: a list that stays empty without them."""
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if noted:
            raise KeyboardInterrupt
        err.print("saving; once more to give up at once")
        noted.append(number)

    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield noted
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def _progress(folder: Path, updates: int, shown: bool) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """Shows how a run goes and writes it for TensorBoard."""
    if not shown:
        yield None
        return
    from torch.utils.tensorboard import SummaryWriter

    from scrubjay.training.metrics import scalars
    from scrubjay.training.run import checkpoints

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err) as bar, SummaryWriter(str(folder / "tensorboard")) as writer:
        done = checkpoints(folder)
        task = bar.add_task("training", total=updates, completed=int(done[-1].name) if done else 0)
        lately: dict[str, float] = {}

        def report(row: dict[str, Any]) -> None:
            for name, value in scalars(row).items():
                writer.add_scalar(name, value, row["steps"])
            if "validation" in row:
                return
            lately.update({name: row["play"][name] for name in SHOWN if name in row["play"]})
            words = [f"{row['steps']:,} steps, {row['charts']['SPS']:,.0f}/s, {row['games']:,} games"]
            words += [f"{name} {value:.3g}" for name, value in lately.items()]
            bar.update(task, completed=row["update"], description=", ".join(words))

        yield report
