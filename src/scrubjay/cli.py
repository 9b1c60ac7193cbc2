"""The command line. Flags come from the functions' parameters; nothing is parsed by hand."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.progress import Progress, track

Renderer = Literal["auto", "opengl", "warp"]
err = Console(stderr=True)


def rooms(
    scenes: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    json: bool = False,
    out: Path = Path("out/rooms.png"),
    size: int = 192,
    columns: int = 10,
    renderer: Renderer = "auto",
) -> None:
    """A contact sheet of the 150 rooms, or of those named.

    Args:
        scenes: Scenes such as FloorPlan12 or kitchen-81723; all 150 if none is named.
        json: Print what each room holds, one JSON object a line, instead of drawing.
        out: Where the sheet goes.
        size: The edge of a room's picture in pixels.
        columns: Rooms in a row.
        renderer: What draws.
    """
    from scrubjay.show.picture import tiled, write_picture
    from scrubjay.show.rooms import survey, tile
    from scrubjay.world.generate import SCENES, make_room
    from scrubjay.world.mjcf import compile_room

    chosen = scenes or SCENES
    if json:
        for _, facts in survey(map(make_room, chosen)):
            _print_json(asdict(facts))
        return
    tiles = [tile(compile_room(make_room(scene)), size, renderer) for scene in track(chosen, "Rooms", console=err)]
    write_picture(out, tiled(tiles, min(columns, len(tiles))))
    print(out)


def room(
    scene: Annotated[str, tyro.conf.Positional],
    /,
    out: Path | None = None,
    save: Path | None = None,
    renderer: Renderer = "auto",
) -> None:
    """A page about one room: plan, views, depth, ids, normals, openables closed and open.

    Args:
        scene: FloorPlan12, or a type and a seed such as kitchen-81723, or a room file ending in .json.
        out: Where the page goes; out/SCENE.html if not given.
        save: Also write the room as a file that can be edited and read again.
        renderer: What draws.
    """
    from scrubjay.show.page import write_page
    from scrubjay.show.rooms import room_page
    from scrubjay.world.generate import make_room
    from scrubjay.world.room import load_room, save_room

    made = load_room(scene) if scene.endswith(".json") else make_room(scene)
    title, facts, sections = room_page(made, renderer)
    path = out or Path("out") / f"{title}.html"
    if save:
        save_room(made, save)
    write_page(path, title, facts, sections)
    print(path)


def demo(out: Path = Path("out/demo"), renderer: Renderer = "auto") -> None:
    """Builds rooms, walks, opens a drawer, hides an object in it, and writes a page with pictures.

    Args:
        out: The folder for the page.
        renderer: What draws.
    """
    from scrubjay.show.demo import write_demo

    page = write_demo(out, renderer, err)
    print(f"Done: open {page} in a browser.")


def games(
    scene: Annotated[str, tyro.conf.Positional],
    /,
    count: int = 1,
    player: Literal["random", "explorer"] = "explorer",
    seed: int = 0,
    out: Path = Path("out/games.jsonl"),
    renderer: Renderer = "auto",
) -> None:
    """Plays games of Cache with a scripted player and records them, a line of JSON each.

    Args:
        scene: FloorPlan12, or a type and a seed such as kitchen-81723.
        count: How many games.
        player: Who hides and seeks: random, or an explorer that is random only where it hides.
        seed: The same seed plays the same games.
        out: Where the records go.
        renderer: What draws.
    """
    from scrubjay.game.cache import Cache
    from scrubjay.game.deal import Dealer
    from scrubjay.game.explorer import Explorer
    from scrubjay.game.players import Instead, Player, RandomPlayer, play
    from scrubjay.game.record import Record, Recorder, save_records
    from scrubjay.world.world import World

    chosen: Player = RandomPlayer(seed)
    if player == "explorer":
        chosen = Instead(Explorer(seed), chosen)
    with World([scene], renderer=renderer) as world, Progress(console=err) as progress:
        cache = Cache(world, Dealer(seed))
        recorder = Recorder(cache)
        records: list[Record] = []
        task = progress.add_task("Games", total=count)
        while len(records) < count:
            action, place = play(cache, chosen, chosen)
            done = recorder.note(cache.step(action, place), place)
            records += done
            progress.advance(task, len(done))
    save_records(records, out)
    for record in records:
        _print_json({"scene": record.scene, "goal": record.goal, "steps": len(record.actions), "found": record.found})


def story(
    records: Annotated[Path, tyro.conf.Positional],
    /,
    number: int = 1,
    out: Path = Path("out/story.html"),
    video: Path | None = None,
    renderer: Renderer = "auto",
) -> None:
    """A page about a recorded game: storyboard, plans, the object in the hand, and a scrubber through its frames.

    Args:
        records: A file of records, as `scrubjay games` writes it.
        number: Which of them, from 1.
        out: Where the page goes.
        video: Also write the game as an animated GIF.
        renderer: What draws.
    """
    from scrubjay.game.record import RecordError, load_records
    from scrubjay.show.story import write_story, write_video

    found = load_records(records)
    if not 1 <= number <= len(found):
        raise RecordError(f"{records} has {len(found)} records; there is no number {number}")
    write_story(found[number - 1], out, renderer)
    if video:
        write_video(found[number - 1], video, renderer)
    print(out)


def spots(
    scenes: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    goals: tuple[str, ...] = (),
    candidates: int = 400,
    processes: int = 2,
    seed: int = 0,
    out: Path = Path("out/spots"),
) -> None:
    """Makes easy, medium and hard hiding spots, a file for each room and object; what is there already is kept.

    Args:
        scenes: Scenes; all train, validation and test rooms if none is named.
        goals: Objects to hide; all five if none is named.
        candidates: Settled places that are tried for each.
        processes: Rooms worked on side by side.
        seed: The same seed makes the same spots.
        out: The folder for the files.
    """
    from scrubjay.game.spots import make_all
    from scrubjay.world.generate import SCENES, split
    from scrubjay.world.room import GOALS

    chosen = scenes or tuple(scene for scene in SCENES if split(scene) != "dynamic")
    with Progress(console=err) as progress:
        task = progress.add_task("Spots")
        make_all(
            chosen, goals or GOALS, out, lambda done, total: progress.update(task, completed=done, total=total),
            candidates, seed, processes,
        )  # fmt: skip
    print(out)


def bench_world(
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
    from scrubjay.world.renderers import check_device

    check_device(device)
    _print_json(measure(rooms, copies, seconds, size, renderer, device, err))


def bench_scaling(device: str = "cuda", seconds: float = 0.7, out: Path = Path("results")) -> None:
    """Measures how speed grows with worlds, rooms and geoms; writes scaling.jsonl and scaling.png.

    Args:
        device: cpu, cuda or cuda:N.
        seconds: How long each speed is measured.
        out: The folder for the table and the plot.
    """
    from scrubjay.bench.scaling import measure
    from scrubjay.world.renderers import check_device

    check_device(device)
    for row in measure(device, seconds, out, err):
        _print_json(row)


def bench_endurance(device: str = "cuda", minutes: float = 10.0, copies: int = 16, interval: float = 20.0) -> None:
    """Plays at random in the 80 train rooms and watches memory, and the picture against OpenGL's. Prints JSON last.

    Args:
        device: cpu, cuda or cuda:N.
        minutes: How long it plays.
        copies: Copies of each room.
        interval: Seconds between looks at memory and pictures.
    """
    from scrubjay.bench.endurance import measure
    from scrubjay.world.renderers import check_device

    check_device(device)
    _print_json(measure(device, minutes, copies, interval, err))


def main() -> None:
    """Runs a command; what the user did wrong is said in one line, without a traceback."""
    from scrubjay.world.room import RoomError
    from scrubjay.world.view import RendererError

    app, bench = tyro.extras.SubcommandApp(), tyro.extras.SubcommandApp()
    for command in (rooms, room, demo, games, story, spots):
        app.command(command)
    bench.command(name="world")(bench_world)
    bench.command(name="scaling")(bench_scaling)
    bench.command(name="endurance")(bench_endurance)
    app.command(bench, name="bench", help="Measurements of speed and memory.")
    try:
        app.cli(prog="scrubjay", description="Rooms, games and agents of Cache.")
    except (RoomError, RendererError, ValueError, OSError) as error:
        err.print(f"[red]scrubjay:[/red] {error}", highlight=False)
        sys.exit(2)


def _print_json(record: dict) -> None:
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
