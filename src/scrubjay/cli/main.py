"""The command line. tyro derives the flags from the commands' parameters."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from types import FrameType
from typing import Any

import tyro
from pydantic import ValidationError
from rich.markup import escape

import scrubjay
from scrubjay.cli import (
    bench,
    evaluation,
    games,
    leaderboard,
    rooms,
    study,
    study_dynamic,
    study_natural,
    study_train,
    thor,
    training,
    web,
)
from scrubjay.cli.terminal import err
from scrubjay.errors import ScrubjayError, explain, reason

COMMANDS: tuple[Callable[..., None], ...] = (
    rooms.rooms, rooms.room, games.demo, games.play, games.replay, games.games, games.story, games.spots,
    games.placements, evaluation.tournament, evaluation.plan, evaluation.milestones, training.evaluate, training.watch,
    training.curves, training.export, training.release, training.released, web.serve, web.participants,
    web.dry_run, web.human,
)  # fmt: skip
MEASURES: tuple[Callable[..., None], ...] = (
    bench.world, bench.scaling, bench.endurance, bench.game, bench.ratios, bench.agent, bench.step,
    bench.learning, bench.cluster, bench.server, bench.thor,
)  # fmt: skip

DESCRIPTION = (
    "Rooms, games and agents for Cache. `scrubjay COMMAND --help` lists a command's options, `scrubjay --version` "
    "prints the version."
)
CONTINUE = ("spots", "placements", "tournament", "plan", "milestones", "study")
"""Commands that keep what is done when they are interrupted."""


def train() -> None:
    """Trains an agent; `scrubjay train PRESET --help` lists a flag for every field of the run's config."""
    # For the list of commands alone: `main` parses its flags, which take as long to import as torch.


def _studies() -> tyro.extras.SubcommandApp:
    """The commands of `scrubjay study`."""
    studies, data = tyro.extras.SubcommandApp(), tyro.extras.SubcommandApp()
    data.command(name="static")(_deferred(study.static_data))
    data.command(name="contained")(_deferred(study.contained_data))
    data.command(name="tracking")(_deferred(study.tracking_data))
    data.command(name="space")(_deferred(study_dynamic.space_data))
    data.command(name="rotation")(_deferred(study_dynamic.rotation_data))
    studies.command(data, name="data", help="Makes the data of experiments.")
    studies.command(_deferred(study.static))
    studies.command(_deferred(study_natural.natural))
    studies.command(_deferred(study.merge))
    studies.command(_deferred(study.report))
    studies.command(_deferred(study_natural.photographs))
    trainings = tyro.extras.SubcommandApp()
    trainings.command(name="auto-encoder")(_deferred(study_train.auto_encoder))
    trainings.command(_deferred(study_train.classes))
    studies.command(trainings, name="train", help="Trains the encoders of baselines.")
    studies.command(_deferred(study_dynamic.dynamic))
    return studies


def _leaderboard() -> tyro.extras.SubcommandApp:
    """The commands of `scrubjay leaderboard`."""
    board = tyro.extras.SubcommandApp()
    board.command(_deferred(leaderboard.add))
    board.command(_deferred(leaderboard.show))
    return board


def _thor() -> tyro.extras.SubcommandApp:
    """The commands of `scrubjay thor`."""
    commands = tyro.extras.SubcommandApp()
    for command in (thor.install, thor.remove, thor.path):
        commands.command(_deferred(command))
    return commands


def main() -> None:
    """Runs a command; a user's mistake and Ctrl-C are reported in one line, without a traceback."""
    words = sys.argv[1:]
    if words == ["--version"]:
        print(f"scrubjay {scrubjay.__version__}")
        return
    interrupts: list[int] = []
    try:
        with _noted(interrupts):
            parse(words)()
    except BrokenPipeError:  # The reader has read enough, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (Exception, KeyboardInterrupt) as error:
        # Libraries turn an interrupt into errors of their own.
        if interrupts or isinstance(error, KeyboardInterrupt):
            _say(
                "interrupted"
                + ("; the same command continues where it stopped" if words[:1] and words[0] in CONTINUE else "")
            )
            sys.exit(130)
        if not isinstance(error, (ScrubjayError, ValueError, OSError, ImportError)):
            raise
        _say(_sentence(error))
        sys.exit(2)


def parse(words: list[str]) -> Callable[[], None]:
    """The command that words ask for, ready to be called. Words that make no sense exit with an explanation."""
    if words[:1] == ["train"]:
        from scrubjay.cli.train import parse as parse_training
        from scrubjay.cli.train import run_command

        return partial(run_command, parse_training(words[1:]))
    app, measures = tyro.extras.SubcommandApp(), tyro.extras.SubcommandApp()
    for command in COMMANDS:
        app.command(_deferred(command))
    app.command(train)
    for measure in MEASURES:
        measures.command(_deferred(measure))
    app.command(measures, name="bench", help="Benchmarks of speed and memory.")
    app.command(_studies(), name="study", help="Experiments on what representations know.")
    app.command(_leaderboard(), name="leaderboard", help="Results of full-size studies, side by side.")
    app.command(_thor(), name="thor", help="The engine behind AI2-THOR's client.")
    return app.cli(args=words, prog="scrubjay", description=DESCRIPTION)


def _deferred(command: Callable[..., None]) -> Callable[..., Callable[[], None]]:
    """A function of the same parameters that binds them instead of running the command."""

    @wraps(command)
    def bind(*args: Any, **kwargs: Any) -> Callable[[], None]:
        return partial(command, *args, **kwargs)

    return bind


@contextmanager
def _noted(interrupts: list[int]) -> Iterator[None]:
    """Notes Ctrl-C, which raises KeyboardInterrupt; the second one exits at once."""

    def note(number: int, frame: FrameType | None) -> None:
        if interrupts:
            os._exit(130)
        interrupts.append(number)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # Ignored, as in the background of a shell, or somebody else's.
        yield
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _sentence(error: Exception) -> str:
    """What is wrong, in words."""
    if isinstance(error, ValidationError):
        return explain(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason(error)}"
    return str(error)


def _say(message: str) -> None:
    err.print(f"[red]scrubjay:[/red] {escape(message)}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
