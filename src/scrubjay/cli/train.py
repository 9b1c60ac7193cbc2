"""`scrubjay train`. Every field of `TrainConfig` is a flag; the preset's values are the defaults.

A module of its own: the flags need the config's class, which takes as long to import as torch.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal

import tyro

from scrubjay.agent.config import PRESETS as AGENTS
from scrubjay.cli.terminal import err, print_json, progress_bar
from scrubjay.errors import TrainingError
from scrubjay.placements.placements import load_placement_files
from scrubjay.sim.render.make import check_device
from scrubjay.spots.spots import load_spot_files
from scrubjay.training.config import PRESETS, TrainConfig, to_json
from scrubjay.training.distributed import is_lost, is_one_of_many, make_group
from scrubjay.training.hogwild import check_asynchronous, train_asynchronously
from scrubjay.training.metrics import scalars
from scrubjay.training.run import Run, checkpoints
from scrubjay.training.train import train

AgentName = Literal["paper", "small"]
NumbersName = Literal["ours", "paper"]
PresetName = Literal["demo", "explore", "manipulate", "seek", "navigate", "pretrain", "cache"]
RESTART = 1
"""Exit status after which torchrun starts the processes again; 2, bad input, ends it (`__main__.py`)."""
SHOWN = ("coverage", "opened", "hit", "found", "seeker_steps")
"""Measures on the progress line, where a run has them."""


@dataclass(frozen=True)
class Command:
    """Trains an agent. Every field of the run's config is a flag, with the preset's value as its default.

    A run is a folder. Ctrl-C writes a checkpoint; --resume continues. Under torchrun, processes train together, and the
    same command continues the run in --out.
    """

    preset: tyro.conf.Positional[PresetName] = "demo"
    """What is learned, and the defaults of all other flags. It comes first."""
    out: Path = Path("out/run")
    """The folder of a new run."""
    resume: Path | None = None
    """The folder of a run to continue, with its own config."""
    start: Path | None = None
    """A run, a folder of weights or a released agent's name: the agent that the new run starts with."""
    device: str = "cpu"
    """cpu, cuda or cuda:N."""
    minutes: float | None = None
    """Stop after this time, as Ctrl-C would."""
    asynchronous: int = 0
    """Train with this many HOGWILD! workers on the CPU, as the paper does; 0 trains synchronously."""
    trust_code: bool = False
    """Allow a run whose encoder is python:... to import that code."""
    agent: Annotated[AgentName | None, tyro.conf.arg(name="agent")] = None
    """Sizes of the networks: the paper's or a small version; --agent.FIELD changes one of them."""
    numbers: NumbersName = "ours"
    """Hyperparameters, losses and normalization: ours, tuned for a few million steps, or the paper's: plain A3C. Flags
    change single ones."""
    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = PRESETS["demo"]


def parse(words: Sequence[str]) -> Command:
    """The training that the words after `scrubjay train` ask for."""
    default = defaults(words)
    command = tyro.cli(Command, args=words, default=default, prog="scrubjay train")
    if command.preset != default.preset:
        raise ValueError(f"name the preset first: scrubjay train {command.preset} ...")
    given = _changed(command.config, default.config)
    given += [name for name in ("start", "agent") if getattr(command, name)]
    given += ["numbers"] if command.numbers != "ours" else []
    if command.resume and given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"{flags}: for a new run; --resume continues one with its own config and agent")
    return command


def defaults(words: Sequence[str]) -> Command:
    """The command with the fields of the preset, of the numbers and of the networks that the words name."""

    @dataclass
    class Named:
        agent: AgentName | None = None
        numbers: NumbersName = "ours"

    preset: Any = words[0] if words and words[0] in PRESETS else "demo"
    named, _ = tyro.cli(Named, args=words, return_unknown_args=True, add_help=False)
    sizes = {}
    if named.agent:
        its = PRESETS[preset].agent
        sizes["agent"] = replace(AGENTS[named.agent], memory=its.memory, heads_read_cells=its.heads_read_cells)
    return Command(preset, config=TrainConfig.preset(preset, named.numbers, **sizes))


def run_command(command: Command) -> None:
    """Trains what a command asks for."""
    config, resume, minutes, asynchronous = command.config, command.resume, command.minutes, command.asynchronous
    check_device(command.device)
    if minutes is not None and not 0 < minutes < float("inf"):
        raise ValueError(f"minutes: a number above 0, not {minutes}")
    if asynchronous < 0 or (asynchronous and "RANK" in os.environ):
        raise ValueError("asynchronous: 0 or more workers of one process; under torchrun training is synchronous")
    if asynchronous and command.device != "cpu":
        raise ValueError(
            f"asynchronous: HOGWILD! workers train on the CPU, not on {command.device}: leave out --device"
        )
    if not resume:
        if config.overlap and is_one_of_many():
            raise ValueError("overlap: only one process alone can learn while it collects: leave it out under torchrun")
        _check_files(config)
        if asynchronous:
            check_asynchronous(config)

    def open_run() -> Run:
        if resume:
            return Run.open(resume, command.trust_code)
        # torchrun starts its processes again with the same command.
        begin = Run.begin_or_continue if is_one_of_many() else Run.begin
        return begin(command.out, config, command.start)

    group, device = make_group(command.device, "" if resume else to_json(config))
    run = group.open_run(open_run)
    if run.untrained and group.rank == 0:
        names = f"{run.untrained[0]} and {len(run.untrained) - 1} more"
        err.print(f"{command.start} lacks {names}, which begin untrained", soft_wrap=True, highlight=False)
    if group.size > 1 and group.rank == 0:
        done = checkpoints(run.folder)
        begun = f"continues after update {int(done[-1].name):,}" if done else "begins"
        err.print(f"{run.folder} {begun} with {group.size} processes", soft_wrap=True, highlight=False)
    until = time.monotonic() + 60 * minutes if minutes else float("inf")
    try:
        with _interrupts() as interrupted, _progress(run, group.rank == 0) as report:

            def stop() -> bool:
                return bool(interrupted) or time.monotonic() > until

            if asynchronous:
                progress = train_asynchronously(run, asynchronous, report, stop)
            else:
                progress = train(run, device, report, stop, group)
            left_behind = group.max(len(interrupted), device) and not interrupted
    except TrainingError as error:
        if is_one_of_many():
            err.print(f"process {group.rank}: {error}", soft_wrap=True, highlight=False)
            sys.exit(RESTART)
        raise ValueError(str(error)) from error
    except RuntimeError as error:
        if not is_one_of_many() or not is_lost(error):
            raise
        err.print(f"process {group.rank}: another process is gone", soft_wrap=True, highlight=False)
        # Not sys.exit: leaving the group in order would wait for the other process.
        os._exit(RESTART)
    finally:
        run.close()
        group.close()
    if left_behind and not run.config.is_done(progress.update, progress.games):
        # Some processes were told to stop, not this one: torchrun starts it again, with those that are left.
        sys.exit(RESTART)
    if group.rank == 0:
        if not run.config.is_done(progress.update, progress.games):
            how = f"--asynchronous {asynchronous}" if asynchronous else f"--device {device}"
            err.print(f"stopped; continue with: scrubjay train --resume {run.folder} {how}", soft_wrap=True)
        print_json({"run": str(run.folder), **vars(progress)})


def _check_files(config: TrainConfig) -> None:
    """Reports missing spots and placements before there is a run."""
    scenes = [*config.scenes, *(config.validation_scenes if config.validation_games else ())]
    if config.spots:
        load_spot_files(config.spots, scenes)
    if config.placements:
        load_placement_files(config.placements, scenes)


def _changed(config: TrainConfig, default: TrainConfig) -> list[str]:
    return [field.name for field in fields(config) if getattr(config, field.name) != getattr(default, field.name)]


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM in a list instead of raising; a second one raises.

    Not under torchrun: Slurm signals all processes, and torchrun then its own once more, before it kills them.
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if is_one_of_many():
            noted.append(number)
            return
        if noted:
            raise KeyboardInterrupt
        err.print("writing a checkpoint; press again to quit at once")
        noted.append(number)

    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield noted
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def _progress(run: Run, shown: bool) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """A progress bar, or lines in a log, and a callback that feeds them and TensorBoard."""
    if not shown:
        yield None
        return
    from torch.utils.tensorboard import SummaryWriter

    config, done = run.config, checkpoints(run.folder)
    with progress_bar("Training", config.updates) as show, SummaryWriter(str(run.folder / "tensorboard")) as writer:
        show(int(done[-1].name) if done else 0, config.updates)
        lately: dict[str, float] = {}

        def report(row: dict[str, Any]) -> None:
            for name, value in scalars(row).items():
                writer.add_scalar(name, value, row["steps"])
            if "validation" in row:
                return
            lately.update({name: row["play"][name] for name in SHOWN if name in row["play"]})
            words = [f"{row['steps']:,} steps, {row['charts']['SPS']:,.0f}/s, {row['games']:,} games"]
            words += [f"{name} {value:.3g}" for name, value in lately.items()]
            # A run that ends by its games ends after about so many updates.
            total = round(row["update"] / (1 - config.share_left(row["update"], row["games"])))
            show(row["update"], total, ", ".join(words))

        yield report
