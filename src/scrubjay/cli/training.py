"""Commands about trained agents: evaluate, watch, curves, export, release, released."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import tyro

from scrubjay.cli.arguments import Natural, Positive, PositiveFloat
from scrubjay.cli.terminal import Renderer, err, print_json

Difficulty = Literal["easy", "medium", "hard"]


def evaluate(
    run: tyro.conf.Positional[Path],
    against: tuple[str, ...] = ("random",),
    games: Positive = 2,
    difficulties: tuple[Difficulty, ...] = ("easy", "medium", "hard"),
    task: Literal["explore", "manipulate", "seek", "cache"] | None = None,
    spots: Path | None = None,
    placements: Path | None = None,
    scenes: tuple[str, ...] = (),
    temperature: PositiveFloat | None = None,
    seed: Natural = 7,
    device: str = "cpu",
    trust_code: bool = False,
) -> None:
    """Evaluates a run's agent and scripted players on the same games in the validation rooms; prints JSON.

    Args:
        run: The folder of a run, or with a task also of weights; or a released agent's name.
        against: Scripted players: random, possible; frontier (exploring, seeking), scripted (manipulating).
        games: Games in each validation room.
        difficulties: Seeking: which hiding spots.
        task: What it plays; by default what the run learns.
        spots: Seeking, with a task: folder of hiding spots, filled by `scrubjay spots`; else they are made.
        placements: Manipulating, with a task: folder of `scrubjay placements`; else targets are uniform.
        scenes: With a task: rooms to play in, by default the validation rooms.
        temperature: Divides the logits of the agent's policy: 1 samples it as trained, less prefers likely actions. By
            default 0.25 in OM and 1 elsewhere.
        seed: The same seed samples the same games.
        device: cpu, cuda or cuda:N.
        trust_code: Allow a run whose encoder is python:... to import that code.
    """

    from scrubjay.agent.fuse import autocast
    from scrubjay.agent.released import is_name
    from scrubjay.sim.render.make import check_device
    from scrubjay.training.agent_player import load_player
    from scrubjay.training.config import TrainConfig
    from scrubjay.training.run import SPOTS, read_config
    from scrubjay.training.validation import Validation, make_scripted_player

    check_device(device)
    if not task and is_name(run):
        raise ValueError(f"{run} learned more than one task: name one with --task")
    config = None if task else read_config(run)
    agent = load_player(run, seed, device, trust_code, temperature)
    if task:
        files = {"spots": str(spots or ""), "placements": str(placements or "")}
        config = TrainConfig.preset(task, agent=agent.agent.config, **files)
        if scenes:
            config = replace(config, validation_scenes=tuple(scenes))
    assert config is not None
    players = {name: make_scripted_player(config.task, name, seed) for name in against}
    made = None if task else run / SPOTS
    with err.status("building the validation rooms"):
        validation = Validation(config, made, games, seed, device, difficulties=difficulties)
    for name, player in ({"agent": agent} | players).items():
        with err.status(f"{name} plays"), autocast(device):
            summaries = validation.evaluate(player)
        print_json({"player": name, **{metric: list(summary) for metric, summary in summaries.items()}})


def watch(
    run: tyro.conf.Positional[Path],
    scene: str = "FloorPlan21",
    goal: str = "Tomato",
    seed: Natural = 3,
    out: Path = Path("out/watch"),
    renderer: Renderer = "auto",
    trust_code: bool = False,
) -> None:
    """Plays a game with a run's agent as hider and seeker, and writes a page of what it does and why.

    The page of a run that trained one stage shows that one.

    Args:
        run: The folder of a run, whose newest checkpoint plays, or of weights; or a released agent's name.
        scene: FloorPlan12, or a type and a seed such as kitchen-81723.
        goal: The object that is hidden: Bread, Cup, Knife, Plunger or Tomato.
        seed: The same seed plays the same game.
        out: The folder for index.html and record.json.
        renderer: The renderer.
        trust_code: Allow a run whose encoder is python:... to import that code.
    """
    from scrubjay.game.record import save_records
    from scrubjay.viz.agent_page import (
        describe_game,
        limits_of,
        load_described_agent,
        trained_stages,
        write_agent_page,
    )
    from scrubjay.viz.agent_trace import trace_agent
    from scrubjay.viz.episode import replay_episode

    agent, training = load_described_agent(run, trust_code)
    stages = trained_stages(run)
    with err.status(f"the agent plays in {scene}"):
        trace = trace_agent(agent, scene, goal, seed, renderer, limits_of(stages))
    save_records([trace.record], out / "record.json")
    with err.status("drawing"):
        episode = replay_episode(trace.record, renderer)
        write_agent_page(trace, episode, training, out / "index.html", stages)
    print(describe_game(episode, stages))
    print(out / "index.html")


def curves(
    runs: tyro.conf.Positional[tuple[Path, ...]], only: tuple[str, ...] = (), out: Path = Path("out/curves.png")
) -> None:
    """Plots the metrics of runs, one panel per metric, into a PNG.

    Args:
        runs: Folders of runs; their names are the curves'.
        only: Metrics to draw, such as play/coverage or losses/em/entropy; else the rewards, play and most losses.
        out: The picture.
    """
    from scrubjay.viz.curves import write_curves

    if not runs:
        raise ValueError("name at least one run")
    write_curves(runs, out, only)
    print(out)


def export(
    run: tyro.conf.Positional[Path],
    part: Literal["agent", "encoder"] = "agent",
    out: Path = Path("out/agent"),
    trust_code: bool = False,
) -> None:
    """Saves a run's newest agent in half the space: parameters in bfloat16, without optimizers. --start takes it too.

    Args:
        run: The folder of a run, a milestone or weights.
        part: The whole agent, or its encoder alone, for studies.
        out: The folder of the new weights.
        trust_code: Allow an agent whose encoder is python:... to import that code.
    """
    from torch import nn

    from scrubjay.agent import weights
    from scrubjay.agent.agent import load_agent

    if out.exists() and any(out.iterdir()):
        raise ValueError(f"{out}: not empty; choose another folder")
    agent = load_agent(run, trust_code=trust_code)
    module = agent.encoder if part == "encoder" else agent
    assert isinstance(module, nn.Module)
    weights.save(module, agent.config, out, compact=True)
    print(out)


def release(
    run: tyro.conf.Positional[Path],
    card: Path,
    name: str = "scrubjay-paper",
    out: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Makes a released agent: agent and encoder in bfloat16, and a card with the SHA-256 of every file.

    Args:
        run: The folder of a run, a milestone or weights.
        card: A TOML file: how it was trained, on what, how good it is, its licence; see the guide "Release an agent".
        name: The name that loads it.
        out: The folder of released agents; by default the package's, or that of SCRUBJAY_RELEASED.
        overwrite: Replace a release of the same name.
    """
    from scrubjay.training.release import load_card_text, write_release

    text = load_card_text(card)
    with err.status("writing and checking"):
        written = write_release(run, text, name, out, overwrite)
    print(written)


def released(name: tyro.conf.Positional[str] = "", check: bool = False) -> None:
    """Lists the released agents, or prints the card of one.

    Args:
        name: A released agent.
        check: Load it, which compares its files with its card, instead of printing the card.
    """
    from scrubjay.agent.released import folder, load_card, markdown, names

    if check:
        from scrubjay.agent import weights

        for each in [name] if name else names():
            card = load_card(each)
            weights.load(each, "agent")
            weights.load(each, "encoder")
            print(f"{each}: {len(card.files)} files are as its card says")
    elif name:
        print(markdown(load_card(name)), end="")
    else:
        for each in names():
            print(f"{each:>20}  {load_card(each).title}")
        err.print(f"{len(names())} in {folder()}", soft_wrap=True)
