"""Commands that play, record and replay games: demo, play, replay, games, story, spots, placements."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from scrubjay.cli.arguments import ALSO_PROCESSES, Natural, Positive, WorkerNames
from scrubjay.cli.terminal import Renderer, err, print_json, progress_bar

if TYPE_CHECKING:
    from scrubjay.viz.episode import Episode


def demo(out: Path = Path("out/demo"), renderer: Renderer = "auto", released: bool = False) -> None:
    """Builds rooms, plays a scripted game and writes illustrated pages; the first one says what a run there learned.

    Args:
        out: Output folder; `make demo` puts a run, its evaluation and a study of its encoder there first.
        renderer: The renderer.
        released: Only let the released agent play, if it is here; the demo's page links to its page.
    """
    from scrubjay.viz.demo import write_demo, write_released

    if released:
        page = write_released(out, renderer, err)
        print(f"Done: open {page} (the released agent's game) in a browser." if page else "No released agent is here.")
        return
    page, _ = write_demo(out, renderer, err)
    print(f"Done: open {page} in a browser.")


def play(
    hider: str = "heuristic",
    seeker: str = "frontier",
    scene: str = "FloorPlan7",
    goal: str = "Tomato",
    seed: Natural = 0,
    out: Path = Path("out/play"),
    spots: Path | None = None,
    video: bool = True,
    renderer: Renderer = "auto",
    world: str = "own",
) -> None:
    """Plays one game and writes its record, page and video.

    Args:
        hider: random, possible, heuristic, agent (the released one), or a run's folder; or easy, medium or hard for a
            spot of that difficulty.
        seeker: random, possible, frontier, bfs, oracle, agent, or a run's folder.
        scene: FloorPlan12, a type and a seed such as kitchen-81723, or one of AI2-THOR's such as iTHOR:FloorPlan28.
        goal: The object that is hidden: Bread, Cup, Knife, Plunger or Tomato.
        seed: The same seed plays the same game.
        out: Output folder for record.json, index.html and game.mp4.
        spots: Folder of hiding spots; without one they are made, which takes half a minute.
        video: Also write a video.
        renderer: The renderer.
        world: own; thor for AI2-THOR, as its client starts it; or thor:PATH for another executable behind its client.
    """
    from scrubjay.api import play as play_game
    from scrubjay.game.record import save_records
    from scrubjay.viz.episode import replay_episode
    from scrubjay.viz.episode_page import describe_metrics, summarize, write_episode_page
    from scrubjay.viz.video import write_video

    if world == "own":
        with err.status("playing"):
            record = play_game(hider, seeker, scene, goal, seed=seed, spots=spots, renderer=renderer)
        save_records([record], out / "record.json")
        with err.status("drawing"):
            episode = replay_episode(record, renderer)
    else:
        with err.status("playing"):
            episode = _play_on_thor(hider, seeker, scene, goal, seed, world)
        save_records([episode.record], out / "record.json")
    with err.status("drawing"):
        if video:
            write_video(episode, out / "game.mp4")
        write_episode_page(episode, out / "index.html", "game.mp4" if video else "")
    print(summarize(episode))
    for name, value, meaning in describe_metrics(episode):
        print(f"{name:>16} {value:>8}  {meaning}")
    print(out / "index.html")


def _play_on_thor(hider: str, seeker: str, scene: str, goal: str, seed: int, world: str) -> Episode:
    """Plays one game on AI2-THOR and films it."""
    from scrubjay.api import play as play_game
    from scrubjay.rooms.generate import make_room
    from scrubjay.sim.compile import compile_room
    from scrubjay.thor.world import ThorWorld
    from scrubjay.viz.film import Film

    kind, _, executable = world.partition(":")
    if kind != "thor":
        raise ValueError(f"world: own, thor or thor:PATH, not {world}")
    film = Film()
    with ThorWorld([scene], executable=executable or None) as remote:
        remote.rooms[0].goal(goal)
        record = play_game(hider, seeker, scene, goal, seed=seed, world=remote, watch=film.watch)
    return film.episode(record, compile_room(make_room(record.scene)))


def replay(records: Annotated[Path, tyro.conf.Positional], /, check: bool = False) -> None:
    """Replays recorded games bit-exactly and reports each one's first difference; exits with 1 if there is one.

    Args:
        records: A file of records.
        check: Only check, without printing every step.
    """
    from scrubjay.errors import RecordError, ScrubjayError
    from scrubjay.game.record import read_records
    from scrubjay.viz.episode import replay_lines

    lines = list(read_records(records))
    if all(isinstance(record, RecordError) for _, record in lines):
        raise lines[0][1]  # type: ignore[misc]
    different = 0
    for number, record in lines:
        try:
            if isinstance(record, RecordError):
                raise record
            for line in replay_lines(record):
                if not check:
                    print(line)
            print(f"{number}: {record.goal} in {record.scene}, {len(record.actions)} steps, the same: {record.hash}")
        except (ScrubjayError, ValueError) as error:  # Also rooms and renderers that do not exist.
            different += 1
            name = "" if isinstance(record, RecordError) else f"{record.goal} in {record.scene}, not the same: "
            err.print(f"{number}: {name}{error}", highlight=False, markup=False, soft_wrap=True)
    if different:
        sys.exit(1)


def games(
    scene: Annotated[str, tyro.conf.Positional],
    /,
    count: Positive = 1,
    hider: str = "random",
    seeker: str = "frontier",
    seed: Natural = 0,
    out: Path = Path("out/games.jsonl"),
    renderer: Renderer = "auto",
) -> None:
    """Plays games with scripted players and records them, one JSON object per line.

    Args:
        scene: FloorPlan12, or a type and a seed such as kitchen-81723.
        count: Number of games.
        hider: random, possible or heuristic.
        seeker: random, possible, frontier, bfs or oracle.
        seed: The same seed plays the same games.
        out: Output file.
        renderer: The renderer.
    """
    from scrubjay.evaluation.matches import Match, play_matches
    from scrubjay.game.episode import RandomEpisodes
    from scrubjay.game.record import save_records
    from scrubjay.players.base import HiderAndSeeker
    from scrubjay.players.by_name import make_hider, make_seeker
    from scrubjay.sim.world import World

    players = HiderAndSeeker(make_hider(hider, seed), make_seeker(seeker, seed))
    records, sampler = [], RandomEpisodes(seed)
    with World([scene], renderer=renderer) as world, progress_bar("Games", count) as update:
        matches = [Match(scene, hider, seeker, sampler(world, 0)) for _ in range(count)]
        for _, record in play_matches(world, matches, players):
            records.append(record)
            update(len(records), count)
    save_records(records, out)
    for record in records:
        print_json({"scene": record.scene, "goal": record.goal, "steps": len(record.actions), "found": record.found})


def story(
    records: Annotated[Path, tyro.conf.Positional],
    /,
    number: Positive = 1,
    out: Path = Path("out/story.html"),
    video: Path | None = None,
    renderer: Renderer = "auto",
) -> None:
    """Writes a page about a recorded game: storyboard, floor plans, metrics, a scrubber through its frames.

    Args:
        records: A file of records, as `scrubjay play`, `games` and `tournament` write it.
        number: Which record, from 1.
        out: Output file.
        video: Also write an MP4 here.
        renderer: The renderer.
    """
    from scrubjay.errors import RecordError
    from scrubjay.game.record import load_records
    from scrubjay.viz.episode import replay_episode
    from scrubjay.viz.episode_page import write_episode_page
    from scrubjay.viz.video import write_video

    games = load_records(records)
    if not 1 <= number <= len(games):
        raise RecordError(f"{records} has {len(games)} records; there is no number {number}")
    episode = replay_episode(games[number - 1], renderer)
    if video:
        write_video(episode, video)
    write_episode_page(episode, out, os.path.relpath(video, out.parent) if video else "")
    print(out)


def spots(
    scenes: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    goal: tuple[str, ...] = (),
    candidates: Positive = 400,
    workers: Annotated[WorkerNames, ALSO_PROCESSES] = "2",
    seed: Natural = 0,
    out: Path = Path("out/spots"),
) -> None:
    """Makes easy, medium and hard hiding spots, one file per room and object. Existing files are kept.

    Args:
        scenes: Scenes, or splits as for `tournament`; by default all train, validation and test rooms.
        goal: Objects to hide, of Bread, Cup, Knife, Plunger and Tomato; by default all five.
        candidates: Settled placements tried for each file.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster.
        seed: The same seed makes the same spots.
        out: Output folder; or a .json file for one room and one object.
    """
    from scrubjay.rooms.generate import expand_scenes
    from scrubjay.rooms.room import GOALS
    from scrubjay.spots.spots import make_spot_files, make_spots, save_spots
    from scrubjay.workers.choose import open_workers

    if out.suffix == ".json":
        if len(scenes) != 1 or len(goal) != 1:
            raise ValueError(f"{out} can hold the spots of one room and one object: name both, or give a folder")
        save_spots(make_spots(scenes[0], goal[0], candidates, seed), out)
    else:
        wanted = expand_scenes(scenes or ("train", "validation", "test"))
        with open_workers(workers) as crew, progress_bar("Spots") as update:
            make_spot_files(wanted, goal or GOALS, out, update, candidates, seed, crew)
    print(out)


def placements(
    scenes: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    goal: tuple[str, ...] = (),
    count: Positive = 90,
    workers: Annotated[WorkerNames, ALSO_PROCESSES] = "2",
    seed: Natural = 0,
    page: Path | None = None,
    out: Path = Path("out/placements"),
) -> None:
    """Makes plausible placements to learn OM from, one file per room and object. Existing files are kept.

    Args:
        scenes: Scenes; by default all train, validation and test rooms.
        goal: Objects to place, of Bread, Cup, Knife, Plunger and Tomato; by default all five.
        count: Placements in each file, a third of them on top, contained and behind each, if the room has so many.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster.
        seed: The same seed makes the same placements.
        page: Also draw some of each file into this HTML file.
        out: Output folder.
    """
    from scrubjay.placements.generate import make_placement_files
    from scrubjay.placements.placements import load_placement_files
    from scrubjay.rooms.generate import expand_scenes
    from scrubjay.rooms.room import GOALS
    from scrubjay.workers.choose import open_workers

    wanted = expand_scenes(scenes or ("train", "validation", "test"))
    with open_workers(workers) as crew, progress_bar("Placements") as tell:
        make_placement_files(wanted, goal or GOALS, out, tell, count, seed, crew)
    print(out)
    if page:
        from scrubjay.viz.placements import write_placements_page

        with err.status("drawing"):
            write_placements_page(load_placement_files(out, wanted, goal or GOALS), page)
        print(page)
