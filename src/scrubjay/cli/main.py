"""The command line. tyro derives the flags from the commands' parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable

import tyro
from pydantic import ValidationError
from rich.markup import escape

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
    training,
    web,
)
from scrubjay.cli.terminal import err
from scrubjay.errors import ScrubjayError, explain

COMMANDS: tuple[Callable[..., None], ...] = (
    rooms.rooms, rooms.room, games.demo, games.play, games.replay, games.games, games.story, games.spots,
    games.placements, evaluation.tournament, evaluation.plan, evaluation.milestones, training.evaluate, training.watch,
    training.curves, training.export, training.release, training.released, web.serve, web.participants,
    web.dry_run, web.human,
)  # fmt: skip
MEASURES: tuple[Callable[..., None], ...] = (
    bench.world, bench.scaling, bench.endurance, bench.game, bench.agent, bench.step, bench.learning,
)  # fmt: skip


def train() -> None:
    """Trains an agent; `scrubjay train PRESET --help` lists a flag for every field of the run's config."""
    # For the list of commands alone: `main` parses its flags, which take as long to import as torch.


def _studies() -> tyro.extras.SubcommandApp:
    """The commands of `scrubjay study`."""
    studies, data = tyro.extras.SubcommandApp(), tyro.extras.SubcommandApp()
    data.command(name="static")(study.static_data)
    data.command(name="contained")(study.contained_data)
    data.command(name="tracking")(study.tracking_data)
    data.command(name="space")(study_dynamic.space_data)
    data.command(name="rotation")(study_dynamic.rotation_data)
    studies.command(data, name="data", help="Makes the data of experiments.")
    studies.command(study.static)
    studies.command(study_natural.natural)
    studies.command(study.merge)
    studies.command(study.report)
    studies.command(study_natural.photographs)
    trainings = tyro.extras.SubcommandApp()
    trainings.command(name="auto-encoder")(study_train.auto_encoder)
    trainings.command(study_train.classes)
    studies.command(trainings, name="train", help="Trains the encoders of baselines.")
    studies.command(study_dynamic.dynamic)
    return studies


def _leaderboard() -> tyro.extras.SubcommandApp:
    """The commands of `scrubjay leaderboard`."""
    board = tyro.extras.SubcommandApp()
    board.command(leaderboard.add)
    board.command(leaderboard.show)
    return board


def main() -> None:
    """Runs a command; a user's mistake is reported in one line, without a traceback."""
    words = sys.argv[1:]
    app, measures = tyro.extras.SubcommandApp(), tyro.extras.SubcommandApp()
    for command in COMMANDS:
        app.command(command)
    app.command(train)
    for measure in MEASURES:
        measures.command(measure)
    app.command(measures, name="bench", help="Benchmarks of speed and memory.")
    app.command(_studies(), name="study", help="Experiments on what representations know.")
    app.command(_leaderboard(), name="leaderboard", help="Results of full-size studies, side by side.")
    try:
        if words[:1] == ["train"]:
            from scrubjay.cli.train import main as train_main

            train_main(words[1:])
        else:
            app.cli(prog="scrubjay", description="Rooms, games and agents for Cache.")
    except (ScrubjayError, ValueError, OSError, ImportError) as error:
        message = explain(error) if isinstance(error, ValidationError) else str(error)
        err.print(f"[red]scrubjay:[/red] {escape(message)}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
