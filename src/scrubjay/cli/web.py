"""Commands about people: the server that they play on, simulated ones, and what a study found."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.table import Table

from scrubjay.cli.terminal import Renderer, err, print_json


def serve(
    data: Path = Path("out/play.db"),
    studies: tuple[Path, ...] = (),
    records: tuple[Path, ...] = (),
    host: str = "127.0.0.1",
    port: int = 8000,
    hosts: tuple[str, ...] = (),
    agents: tuple[Path, ...] = (),
    size: int = 224,
    renderer: Renderer = "auto",
) -> None:
    """Serves the pages on which people hide, seek, watch and take part in studies.

    Args:
        data: The database: one SQLite file. The admin's token lies beside it.
        studies: Files of studies.
        records: Files of records that everybody may watch.
        host: The address to listen at; other machines can reach it only if it is not this one's own.
        port: The port.
        hosts: Names under which the server is reached, beside this machine's own.
        agents: Folders of training runs, or of weights, whose agents people can play against.
        size: The edge of the pictures in pixels.
        renderer: What draws.
    """
    from scrubjay.players.by_name import HIDERS, SEEKERS
    from scrubjay.training.agent_player import load_player
    from scrubjay.web.opponents import Opponents
    from scrubjay.web.server import Settings
    from scrubjay.web.server import serve as run
    from scrubjay.web.thinking import ThinkingPlayer

    # Each is loaded once, for all its games; a folder that is none is an error before the server starts.
    trained = {folder.name: partial(ThinkingPlayer, load_player(folder).agent) for folder in agents}
    opponents = Opponents({**HIDERS, **trained}, {**SEEKERS, **trained})

    def look(done: int, total: int) -> None:
        if done == total or (err.is_terminal and done):
            end = "\r" if done < total else "\n"
            err.print(f"looking at the studies' hiding places: {done} of {total}", end=end)

    settings = Settings(data, studies, records, hosts, size, renderer, opponents=opponents, progress=look)
    run(settings, host, port, say=lambda text: print(text, flush=True))


def participants(
    count: int = 40, seconds: float = 120.0, url: str = "http://127.0.0.1:8000", study: str = "", pause: float = 1.0
) -> None:
    """Plays through a server's study, or freely, with simulated people. Prints one JSON object last.

    Args:
        count: How many at once.
        seconds: For how long.
        url: Where the server is.
        study: The study's name; without one the server's first, or free play where there is none.
        pause: Seconds between one person's actions.
    """
    from scrubjay.web.load_test import participants as play

    print_json(play(count, seconds, url, study, pause))


def human(study: str, data: Path = Path("out/play.db"), out: Path | None = None) -> None:
    """The table of a study: find rates and steps with 95 % confidence intervals, as the paper gives them.

    Args:
        study: The study's name.
        data: The server's database.
        out: A folder for all of the study's data, as CSV and lines of JSON.
    """
    from scrubjay.files import write_atomically
    from scrubjay.web.export import FILES, exported, human_table

    rows = human_table(data, study)
    if out:
        for name in FILES:
            write_atomically(out / name, "".join(exported(data, study, name)))
        err.print(f"wrote {', '.join(FILES)} into {out}", soft_wrap=True)
    table = Table(*(rows[0] if rows else ["nothing yet"]))
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    err.print(table)
    print_json({"study": study, "table": rows})
