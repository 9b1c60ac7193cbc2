"""Commands about trained agents: evaluate, watch, curves, export."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import tyro

from scrubjay.cli.terminal import Renderer, err, print_json

Difficulty = Literal["easy", "medium", "hard"]


def evaluate(
    run: tyro.conf.Positional[Path],
    against: tuple[str, ...] = ("random",),
    games: int = 2,
    difficulties: tuple[Difficulty, ...] = ("easy", "medium", "hard"),
    seed: int = 7,
    device: str = "cpu",
    trust_code: bool = False,
) -> None:
    """Evaluates a run's agent and scripted players on the same games in the validation rooms; prints JSON.

    Args:
        run: The folder of a run.
        against: Scripted players: random, possible; frontier (exploring, seeking), scripted (manipulating).
        games: Games in each validation room.
        difficulties: Seeking: which hiding spots.
        seed: The same seed samples the same games.
        device: cpu, cuda or cuda:N.
        trust_code: Allow a run whose encoder is python:... to import that code.
    """
    import torch

    from scrubjay.sim.render.make import check_device
    from scrubjay.training.agent_player import load_player
    from scrubjay.training.run import SPOTS, read_config
    from scrubjay.training.validation import Validation, make_scripted_player

    check_device(device)
    if games < 1 or seed < 0:
        raise ValueError("games: 1 or more; seed: 0 or more")
    config, agent = read_config(run), load_player(run, seed, device, trust_code)
    players = {name: make_scripted_player(config.task, name, seed) for name in against}
    with err.status("building the validation rooms"):
        validation = Validation(config, run / SPOTS, games, seed, device, difficulties=difficulties)
    autocast = torch.autocast("cuda", torch.bfloat16, enabled=device.startswith("cuda"))
    for name, player in ({"agent": agent} | players).items():
        with err.status(f"{name} plays"), autocast:
            summaries = validation.evaluate(player)
        print_json({"player": name, **{metric: list(summary) for metric, summary in summaries.items()}})


def watch(
    run: tyro.conf.Positional[Path],
    scene: str = "FloorPlan21",
    goal: str = "Tomato",
    seed: int = 3,
    out: Path = Path("out/watch"),
    renderer: Renderer = "auto",
    trust_code: bool = False,
) -> None:
    """Plays a whole game with a run's agent as hider and seeker, and writes a page of what it does and why.

    Args:
        run: The folder of a run; its newest checkpoint plays.
        scene: FloorPlan12, or a type and a seed such as kitchen-81723.
        goal: The object that is hidden.
        seed: The same seed plays the same game.
        out: The folder for index.html and record.json.
        renderer: The renderer.
        trust_code: Allow a run whose encoder is python:... to import that code.
    """
    from scrubjay.game.record import save_records
    from scrubjay.viz.agent_page import write_agent_page
    from scrubjay.viz.agent_trace import load_run_agent, trace_agent
    from scrubjay.viz.episode import replay_episode
    from scrubjay.viz.episode_page import summarize

    agent, config, progress = load_run_agent(run, trust_code)
    with err.status(f"the agent plays in {scene}"):
        trace = trace_agent(agent, scene, goal, seed, renderer)
    save_records([trace.record], out / "record.json")
    with err.status("drawing"):
        episode = replay_episode(trace.record, renderer)
        write_agent_page(trace, episode, config, progress, out / "index.html")
    print(summarize(episode))
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
