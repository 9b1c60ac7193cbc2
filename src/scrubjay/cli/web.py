"""Commands for human play: the server, its load test, and a study's results."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.table import Table

from scrubjay.cli.arguments import ImageSize, Natural, Port, Positive, PositiveFloat
from scrubjay.cli.terminal import Renderer, err, print_json, progress_bar


def serve(
    data: Path = Path("out/play.db"),
    studies: tuple[Path, ...] = (),
    records: tuple[Path, ...] = (),
    host: str = "127.0.0.1",
    port: Port = 8000,
    hosts: tuple[str, ...] = (),
    agents: tuple[Path, ...] = (),
    released: bool = True,
    size: ImageSize = 224,
    renderer: Renderer = "auto",
    only_studies: bool = False,
    connections_per_client: Positive = 1000,
    play_size: ImageSize = 448,
) -> None:
    """Serves the web pages on which people hide, seek, watch games and take part in studies.

    Args:
        data: The database, one SQLite file. The admin token is stored beside it.
        studies: Study files (TOML).
        records: Record files that anyone may watch.
        host: The address to listen on. The default is reachable from this machine only.
        port: The port to listen on.
        hosts: Host names under which the server is reached, besides localhost.
        agents: Training runs, weights folders or names of agents to play against.
        released: Offer the released agent too, if it is here.
        size: Image size in pixels, a multiple of 7, in studies and of games to watch.
        renderer: The renderer.
        only_studies: Offer the studies alone, no free play and no records.
        connections_per_client: Open connections per client address. A reverse proxy is one client.
        play_size: Image size of the games that people play outside studies, for them and for their opponents.
    """
    from scrubjay.agent.released import DEFAULT, names
    from scrubjay.players.by_name import HIDERS, SEEKERS
    from scrubjay.training.named_agents import load_agents, name_folders
    from scrubjay.web.connections import Limits
    from scrubjay.web.opponents import Opponents
    from scrubjay.web.server import Settings
    from scrubjay.web.server import serve as run
    from scrubjay.web.thinking import ThinkingPlayer

    def show_progress(done: int, total: int) -> None:
        if done == total or (err.is_terminal and done):
            end = "\r" if done < total else "\n"
            err.print(f"checking the studies' hiding places: {done} of {total}", end=end)

    settings = Settings(
        data, studies, records, hosts, size, renderer, progress=show_progress, only_studies=only_studies,
        limits=Limits(connections_per_client), play_size=play_size,
    )  # fmt: skip
    # Agents are loaded once and shared by their games; an invalid folder is an error before the server starts.
    if released and not only_studies and DEFAULT in names() and Path(DEFAULT) not in agents:
        agents = (Path(DEFAULT), *agents)
    folders = name_folders(agents, (*HIDERS, *SEEKERS))
    trained = {name: partial(ThinkingPlayer, named.agent) for name, named in load_agents(folders).items()}
    opponents = Opponents({**HIDERS, **trained}, {**SEEKERS, **trained})

    settings.opponents = opponents
    run(settings, host, port, log=lambda text: print(text, flush=True))


def participants(
    count: Positive = 40,
    seconds: PositiveFloat = 120.0,
    url: str = "http://127.0.0.1:8000",
    study: str = "",
    pause: PositiveFloat = 1.0,
    idle: Natural = 0,
    half_sent: Natural = 0,
) -> None:
    """Load-tests a server with simulated participants and prints latencies and errors as JSON.

    Args:
        count: Number of concurrent participants.
        seconds: Duration of the test.
        url: The server's URL.
        study: The study to take part in; by default the server's first, or free play if it has none.
        pause: Seconds between a participant's actions.
        idle: Connections to hold that send nothing.
        half_sent: Connections to hold with a request that never ends.
    """
    from scrubjay.web.load_test import run_load_test

    print_json(run_load_test(count, seconds, url, study, pause, idle=idle, half_sent=half_sent))


def dry_run(
    study: Path,
    out: Path = Path("out/dry-run"),
    participants: Positive = 5,
    speed: PositiveFloat = 20.0,
    seed: Natural = 0,
    size: ImageSize = 224,
    renderer: Renderer = "auto",
) -> None:
    """Tries a study with simulated participants, who go through all of it on a real server; exports its data.

    Args:
        study: The study file (TOML).
        out: A new folder for the export and the database.
        participants: How many take part. Every fifth leaves in the middle, every tenth does not agree.
        speed: How much faster than time the server's clock runs, so that nobody waits long to give up.
        seed: Seeds what the participants answer and do.
        size: Image size in pixels.
        renderer: The renderer.
    """
    from scrubjay.web.dry_run import dry_run as run

    with progress_bar("Participants", participants) as progress:
        progress(0, participants)
        summary = run(study, out, participants, speed, seed, progress, size=size, renderer=renderer)
    err.print(f"wrote the data to {out}, as `scrubjay human --out` would", soft_wrap=True)
    print_json(summary)


def human(study: str, data: Path = Path("out/play.db"), out: Path | None = None) -> None:
    """Prints a study's results as in the paper: find rates and steps with 95 % confidence intervals.

    Args:
        study: The study's name.
        data: The server's database.
        out: A folder to export all of the study's data to, as CSV and JSON lines.
    """
    from scrubjay.files import write_atomically
    from scrubjay.web.export import FILES, export_file, human_table

    rows = human_table(data, study)
    if out:
        for name in FILES:
            write_atomically(out / name, "".join(export_file(data, study, name)))
        err.print(f"wrote {', '.join(FILES)} to {out}", soft_wrap=True)
    table = Table(*(rows[0] if rows else ["no searches yet"]))
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    err.print(table)
    print_json({"study": study, "table": rows})
