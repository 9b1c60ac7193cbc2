"""Commands that measure players against each other: tournament, plan, milestones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from scrubjay.cli.arguments import ImageSize, ImageSizeOrNone, Natural, Positive, WorkerNames
from scrubjay.cli.terminal import Renderer, err, print_json, progress_bar


def tournament(
    hiders: tuple[str, ...] | None = None,
    seekers: tuple[str, ...] = ("random", "frontier", "bfs", "oracle"),
    rooms: tuple[str, ...] = ("test:kitchen", "test:living_room"),
    games: Positive = 5,
    spots: Path | None = None,
    agents: tuple[Path, ...] = (),
    seed: Natural = 0,
    size: ImageSize = 224,
    at_once: Positive = 4,
    renderer: Renderer = "auto",
    device: str = "cpu",
    workers: WorkerNames = "1",
    out: Path = Path("out/tournament"),
) -> None:
    """Plays hiders and sets of spots against seekers; an interrupted tournament continues where it stopped.

    Writes games.jsonl, table.md, results.json and plot.png; prints the table, then one JSON object.

    Args:
        hiders: random, possible, heuristic, names of agents, and easy, medium or hard for spots of that difficulty; by
            default random and heuristic, and with --spots the three difficulties.
        seekers: random, possible, frontier, bfs, oracle, and names of agents.
        rooms: Scenes, splits (train, validation, test), or a split's rooms of one type (test:bedroom).
        games: Hidings of each hider in each room.
        spots: Folder of hiding spots, filled by `scrubjay spots`.
        agents: Folders of runs, milestones or weights, or scrubjay-paper, the released agent. They can be hiders and
            seekers by name: out/cache is cache, its milestone after 1,000,000 games cache-1000000; equal names are
            preceded by their parent folders.
        seed: The same seed samples the same games.
        size: Image size in pixels.
        at_once: Games in parallel; on a GPU use many.
        renderer: The renderer.
        device: cpu, cuda or cuda:N.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster; each plays in as many
            rooms at a time as there are games at once.
        out: Output folder.
    """
    from scrubjay.evaluation.tournament import TournamentPlan, play_tournament
    from scrubjay.players.by_name import HIDERS, SEEKERS
    from scrubjay.rooms.generate import expand_scenes
    from scrubjay.spots.spots import DIFFICULTIES
    from scrubjay.training.named_agents import load_agents, name_folders
    from scrubjay.viz.tournament import write_results
    from scrubjay.workers.choose import open_workers

    trained = load_agents(name_folders(agents, (*HIDERS, *SEEKERS, *DIFFICULTIES)), device)
    digests = {name: agent.digest for name, agent in trained.items()}
    if hiders is None:
        hiders = ("random", "heuristic", *(DIFFICULTIES if spots else ()))
    plan = TournamentPlan(hiders, seekers, expand_scenes(rooms), games, seed, spots, size, renderer, device, at_once)
    with open_workers(workers) as crew, progress_bar("Games") as update:
        hidings = play_tournament(plan, {**HIDERS, **trained}, {**SEEKERS, **trained}, out, update, digests, crew)
    text, results = write_results(hidings, out)
    print(text)
    print_json(results)


def plan(
    plan: Annotated[str, tyro.conf.Positional] = "",
    /,
    run: Path | None = None,
    spots: Path | None = None,
    people: Path | None = None,
    people_searches: Path | None = None,
    at_once: Positive = 4,
    renderer: Renderer = "auto",
    device: str = "cpu",
    workers: WorkerNames = "1",
    trust_code: bool = False,
    out: Path = Path("out/trials"),
) -> None:
    """Plays an evaluation plan, such as the paper's; without one, lists those that are ready.

    Hiders hide, then every seeker searches for every object; an interrupted plan continues where it stopped. Games are
    in the output folder, which plans can share; tables, CSV and a page are in a folder there of the plan's name.

    Args:
        plan: paper-hiding (appendix E.1), paper-seeking (E.2), small, or a file.
        run: The run whose milestones and checkpoints are the plan's agents.
        spots: Folder of hiding spots, filled by `scrubjay spots`.
        people: Records of people's hidings: records.jsonl of a hiding study.
        people_searches: The table of people's searches: table.json of a seeking study.
        at_once: Games in parallel; on a GPU use many.
        renderer: The renderer.
        device: cpu, cuda or cuda:N.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster; each plays in as many
            rooms at a time as there are games at once.
        trust_code: Allow agents whose encoder is python:... to import that code.
        out: Output folder.
    """
    from scrubjay.evaluation.plan_file import load_plan, plan_path, ready_plans

    if not plan:
        for name, ready in ready_plans():
            print(f"{name:>14}  {ready.title}: {ready.about}\n{'':>14}  {plan_path(name)}")
        return

    from scrubjay.evaluation.plan_trials import play_plan, prepare
    from scrubjay.game.record import save_records
    from scrubjay.sim.render.make import check_device
    from scrubjay.training.named_agents import load_agents, plan_folders
    from scrubjay.viz.plan_results import write_plan_results
    from scrubjay.workers.choose import open_workers

    path = plan_path(plan)
    loaded = load_plan(path)
    check_device(device)
    agents = load_agents(plan_folders(loaded, run, path.parent), device, trust_code)
    planned = prepare(loaded, spots, people, people_searches)
    for sentence in planned.skipped:
        err.print(sentence, soft_wrap=True)
    digests = {name: agent.digest for name, agent in agents.items()}
    with open_workers(workers) as crew, progress_bar("Games") as update:
        hidings, records = play_plan(planned, agents, out, update, digests, renderer, device, at_once, crew)
    results = out / path.stem
    for name, hidden in records.items():
        save_records(hidden, results / "records" / f"{name}.jsonl")
    facts = [f"{name} is {agent.folder} ({agent.digest})." for name, agent in agents.items()]
    text, _ = write_plan_results(planned, hidings, results, facts)
    print(text)
    print(results / "index.html")


def milestones(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional],
    /,
    hiders: tuple[str, ...] = ("random", "heuristic"),
    seekers: tuple[str, ...] = ("random", "frontier"),
    spots: Path | None = None,
    rooms: tuple[str, ...] = ("test:kitchen", "test:living_room"),
    games: Positive = 10,
    shown: tuple[str, ...] = (),
    seed: Natural = 0,
    size: ImageSizeOrNone = None,
    at_once: Positive = 4,
    renderer: Renderer = "auto",
    device: str = "cpu",
    workers: WorkerNames = "1",
    trust_code: bool = False,
    out: Path = Path("out/milestones"),
) -> None:
    """Do they play? All milestones of runs hide and seek against each other, scripted players and spots.

    Writes CSV tables with 95 % intervals, charts and a page: hider against seeker over training, how and where hiders
    hide, and one game of each milestone from the same start, with its paths and mental rollouts. An interrupted
    tournament continues where it stopped.

    Args:
        runs: Runs, whose milestones and newest checkpoint play; folders of weights; or scrubjay-paper, as released.
        hiders: Scripted hiders beside them: random, possible, heuristic.
        seekers: Scripted seekers beside them: random, possible, frontier, bfs, oracle.
        spots: Folder of hiding spots, filled by `scrubjay spots`; without one, spots are left out.
        rooms: Scenes, splits (train, validation, test), or a split's rooms of one type (test:bedroom).
        games: Hidings of each hider in each room, of the five objects in turn.
        shown: Rooms whose hiding places and games are drawn; by default the first one of each type.
        seed: The same seed samples the same games.
        size: Image size in pixels; by default what the agents see.
        at_once: Games in parallel; on a GPU use many.
        renderer: The renderer.
        device: cpu, cuda or cuda:N.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster; each plays in as many
            rooms at a time as there are games at once.
        trust_code: Allow agents whose encoder is python:... to import that code.
        out: Output folder.
    """
    from scrubjay.agent.fuse import autocast
    from scrubjay.evaluation.tournament import TournamentPlan, check_plan, play_tournament
    from scrubjay.players.by_name import HIDERS, SEEKERS
    from scrubjay.rooms.generate import expand_scenes
    from scrubjay.sim.render.make import check_device
    from scrubjay.spots.spots import DIFFICULTIES
    from scrubjay.training.milestones import common_image_size, find_milestones, with_own_seeds
    from scrubjay.training.named_agents import load_agents
    from scrubjay.viz.milestone_page import shown_scenes, write_milestones
    from scrubjay.workers.choose import open_workers

    if not runs:
        raise ValueError("name at least one run")
    check_device(device)
    scenes = expand_scenes(rooms)
    found = find_milestones(runs, (*HIDERS, *SEEKERS, *DIFFICULTIES))
    agents = load_agents({milestone.name: milestone.folder for milestone in found}, device, trust_code)
    hide = [name for name, agent in agents.items() if agent.agent.config.memory == "full"]
    plan = TournamentPlan(
        (*hide, *hiders, *(DIFFICULTIES if spots else ())), (*agents, *seekers), scenes, games, seed, spots,
        size or common_image_size(agents), renderer, device, at_once,
    )  # fmt: skip
    players = with_own_seeds(agents)
    all_hiders, all_seekers = {**HIDERS, **players}, {**SEEKERS, **players}
    check_plan(plan, all_hiders, all_seekers)
    drawn = shown_scenes(scenes, shown)
    notes = [f"{name} has no map to choose hiding places from, and only seeks." for name in agents if name not in hide]
    if not spots:
        notes.append(
            "Spots of easy, medium and hard difficulty are left out: `scrubjay spots` makes them, --spots takes them."
        )
    for sentence in notes:
        err.print(sentence, soft_wrap=True)
    digests = {name: agent.digest for name, agent in agents.items()}
    with open_workers(workers) as crew, progress_bar("Games") as update, autocast(device):
        hidings = play_tournament(plan, all_hiders, all_seekers, out, update, digests, crew)
    with progress_bar("Games to draw") as update:
        write_milestones(plan, found, agents, hidings, out, drawn, notes, update)
    print(out / "index.html")
