"""The command line. Flags come from the functions' parameters; nothing is parsed by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable

import tyro
from rich.markup import escape

from scrubjay.cli import bench, games, rooms, training, web
from scrubjay.cli.terminal import err
from scrubjay.errors import ScrubjayError

COMMANDS: tuple[Callable[..., None], ...] = (
    rooms.rooms, rooms.room, games.demo, games.play, games.replay, games.games, games.story, games.spots,
    games.tournament, training.train, training.evaluate, training.watch, training.curves, web.serve,
    web.participants, web.human,
)  # fmt: skip
MEASURES: tuple[Callable[..., None], ...] = (
    bench.world, bench.scaling, bench.endurance, bench.game, bench.agent, bench.learning,
)  # fmt: skip


def main() -> None:
    """Runs a command; what the user did wrong is said in one line, without a traceback."""
    app, measures = tyro.extras.SubcommandApp(), tyro.extras.SubcommandApp()
    for command in COMMANDS:
        app.command(command)
    for measure in MEASURES:
        measures.command(measure)
    app.command(measures, name="bench", help="Measurements of speed and memory.")
    try:
        app.cli(prog="scrubjay", description="Rooms, games and agents of Cache.")
    except (ScrubjayError, ValueError, OSError) as error:
        err.print(f"[red]scrubjay:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
