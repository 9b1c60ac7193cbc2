"""Commands about what agents remember: data of free space and rotation, and the study of all four experiments."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from scrubjay.cli.arguments import ALSO_PROCESSES, Natural, PositiveOrNone, WorkerNamesOrNone
from scrubjay.cli.terminal import err, open_crew, progress_bar


def space_data(
    out: Path = Path("out/study/space"),
    scale: Literal["paper", "mini"] = "paper",
    seed: Natural = 0,
    renderer: Literal["auto", "warp", "opengl"] = "auto",
    device: str = "cpu",
    workers: WorkerNamesOrNone = None,
) -> None:
    """Makes the sequences of the free space experiment: agents that turn round twice in kitchens and living rooms.

    About 1,000 sequences of 8 views, 0.5 GB. A command that was interrupted continues where it stopped.

    Args:
        out: Folder of the data.
        scale: The paper's 50 scenes, or three.
        seed: Seed of positions, rotations and directions.
        renderer: The renderer; by default the fastest that works on the device.
        device: cpu, cuda or cuda:N.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster; by default other processes
            prepare rooms, and this one renders.
    """
    from scrubjay.study.space_data import SCALES, make_space_data

    with open_crew(workers) as crew, progress_bar("Scenes") as progress:
        make_space_data(out, SCALES[scale], seed, renderer, device, progress, crew)
    print(out)


def rotation_data(
    agent: str,
    out: Path = Path("out/study/rotation"),
    spots: Path | None = None,
    scale: Literal["paper", "mini"] = "paper",
    spots_per_object: PositiveOrNone = None,
    steps: PositiveOrNone = None,
    seed: Natural = 0,
    renderer: Literal["auto", "warp", "opengl"] = "auto",
    device: str = "cpu",
    workers: Annotated[WorkerNamesOrNone, ALSO_PROCESSES] = None,
    trust_code: bool = False,
) -> None:
    """Makes the sequences of the rotation experiment: seekers that turn away from what they could claim.

    A pair of sequences takes about 80 kB per step. A command that was interrupted continues where it stopped.

    Args:
        agent: The seeker: a run, a folder of weights, or random[:SEED].
        out: Folder of the data.
        spots: Folder of `scrubjay spots`, of all scenes or of some, which are then those of the data; by default easy
            spots are made.
        scale: The paper's 50 scenes, or four, in which the seeker starts in front of the object.
        spots_per_object: Easy spots of each scene and object, at most; by default the scale's (the paper's 20).
        steps: Steps of a search; by default the scale's (the paper's 500).
        seed: Seed of starts, actions and directions.
        renderer: The renderer; by default the fastest that works on the device.
        device: cpu, cuda or cuda:N.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster; by default other processes
            prepare rooms, and this one renders.
        trust_code: Allow an agent whose encoder is a Python class to run.
    """
    from scrubjay.study.rotation_data import SCALES, make_rotation_data
    from scrubjay.study.sources import load_agent_named

    seeker = load_agent_named(agent, "paper" if scale == "paper" else "small", trust_code)
    chosen = SCALES[scale]
    chosen = replace(chosen, spots=spots_per_object or chosen.spots, steps=steps or chosen.steps)
    with open_crew(workers) as crew, progress_bar("Scenes" if spots else "Spots and scenes") as progress:
        make_rotation_data(out, seeker, chosen, spots, seed, renderer, device, progress, crew)
    print(out)


def dynamic(
    agents: list[str],
    out: Path = Path("out/study/dynamic"),
    encoders: list[str] = [],  # noqa: B006 (tyro takes lists)
    data: Path | None = None,
    experiments: list[str] = [],  # noqa: B006
    scale: Literal["paper", "mini"] = "paper",
    device: str = "cpu",
    workers: Annotated[WorkerNamesOrNone, ALSO_PROCESSES] = None,
    features_only: bool = False,
    trust_code: bool = False,
) -> None:
    """Measures what agents remember: four experiments, read out of their dynamic representations, beside baselines.

    Writes dynamic.csv (accuracies with intervals, differences to the first agent), odds.csv (turning back to what
    vanished) and index.html (figures, tables, clips). An interrupted study continues; another agent only adds its own
    features and probes.

    Args:
        agents: Runs or folders of weights, or random[:SEED]; the first one plays, and others are compared with it.
        out: Folder of features and results.
        encoders: More encoders, alone and stacked; names as in `scrubjay study static`.
        data: Folder of the data, each experiment's in a folder of its name; by default made in the output folder.
        experiments: Some of contained, tracking, rotation, space; by default all.
        scale: The paper's sizes, or a trial.
        device: cpu, cuda or cuda:N.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster, that make data, compute
            features and fit probes; by default this process, but for probes one per core. A cluster's machines must
            share the folders.
        features_only: Compute features and stop. The same command without it fits the probes, also on another machine,
            to which `out` and the data were copied, the latter without its images (images.npy).
        trust_code: Allow encoders that are Python classes to run.
    """
    from scrubjay.cli.dynamic_inputs import check_experiments, make_data, named_agents
    from scrubjay.sim.render.make import check_device
    from scrubjay.study.dynamic import SCALES, DynamicStudy
    from scrubjay.study.encoders import load_encoder
    from scrubjay.study.record import StudyRecord
    from scrubjay.viz.dynamic_study import write_dynamic_page
    from scrubjay.workers.base import HERE
    from scrubjay.workers.pool import ProcessWorkers

    check_device(device)
    check_experiments(experiments)
    loaded = named_agents(agents, scale, trust_code)
    others = [load_encoder(name, trust_code) for name in encoders]
    seeker = next(iter(loaded.values()))
    with open_crew(workers) as crew:
        if data is not None:
            sequences = make_data(data, experiments, seeker, scale, device, made=False)
        record = StudyRecord(out, "dynamic", device, scale=scale, agents=", ".join(loaded))
        if data is None:
            with record.part("data"):
                sequences = make_data(out / "data", experiments, seeker, scale, device, made=True, workers=crew)
        study = DynamicStudy(sequences, loaded, others, out, SCALES[scale], device)
        for name, reason in study.left_out.items():
            err.print(f"{name} is left out: {reason}", soft_wrap=True, highlight=False, markup=False)
        record.content["facts"]["data"] = {name: each.digest for name, each in sequences.items()}
        with record.part("features"), progress_bar("Features") as progress:
            study.compute_features(progress, crew or HERE)
        if features_only:
            print(out / "features")
            return
        with record.part("probes"), progress_bar("Probes") as progress, ProcessWorkers(os.cpu_count() or 1) as own:
            result = study.fit(progress, crew or own)
    frames = sum(each.frames for each in sequences.values())
    facts = f"{sum(map(len, sequences.values())):,} sequences of {frames:,} frames. Scale {scale}."
    with record.part("page"):
        write_dynamic_page(out / "index.html", result, sequences, facts)
    print(out / "index.html")
