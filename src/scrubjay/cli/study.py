"""Commands about the experiments on representations: data of several, the static study, a report of all studies."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

from scrubjay.cli.arguments import Natural, PositiveOrNone, WorkerNamesOrNone
from scrubjay.cli.terminal import open_crew, parse_labels, progress_bar


def static_data(
    out: Path = Path("out/study/static"),
    scale: Literal["paper", "mini"] = "paper",
    seed: Natural = 0,
    renderer: Literal["warp", "opengl"] = "warp",
    device: str = "cpu",
    workers: WorkerNamesOrNone = None,
) -> None:
    """Makes the synthetic images of the static experiments, with the labels of all seven tasks, and a page of samples.

    The paper's 38,055 images take 20 GB. A command that was interrupted continues where it stopped.

    Args:
        out: Folder of the data; samples.html in it is the page.
        scale: The paper's counts, or 120 images of 16 rooms.
        seed: Seed of places, openables and objects.
        renderer: The renderer.
        device: cpu, cuda or cuda:N.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster; by default other processes
            prepare rooms, and this one renders.
    """
    from scrubjay.study.static_data import StaticData
    from scrubjay.study.static_generate import SCALES, make_static_data
    from scrubjay.viz.static_samples import write_samples_page

    with open_crew(workers) as crew, progress_bar("Images") as progress:
        make_static_data(out, SCALES[scale].counts(), seed, renderer, device, progress, crew)
    write_samples_page(StaticData(out), out / "samples.html")
    print(out / "samples.html")


def contained_data(
    out: Path = Path("out/study/contained"),
    scale: Literal["paper", "mini"] = "paper",
    rooms: PositiveOrNone = None,
    poses: PositiveOrNone = None,
    seed: Natural = 0,
    renderer: Literal["auto", "warp", "opengl"] = "auto",
    device: str = "cpu",
    workers: WorkerNamesOrNone = None,
) -> None:
    """Makes the sequences of "contained or behind": pairs of objects carried into a receptacle or behind it.

    Up to 25,000 pairs; those that would end elsewhere when dropped are left out. An interrupted command continues.

    Args:
        out: Folder of the data; clips.html in it is a page of examples.
        scale: Every foyer, table, receptacle and object with 40 offsets, or 48 pairs in 8 rooms.
        rooms: Places of each receptacle on its table; by default the scale's (8 or 1). With 1, an eighth of the data.
        poses: Of the agent at each place; by default the scale's (5 or 6).
        seed: Seed of places.
        renderer: The renderer; by default the fastest that works on the device.
        device: cpu, cuda or cuda:N.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster; by default other processes
            prepare rooms, and this one renders.
    """
    from scrubjay.study.foyer_data import CONTAINED_SCALES, make_contained_data
    from scrubjay.study.sequences import SequenceData
    from scrubjay.viz.clips import write_contained_clips

    chosen = CONTAINED_SCALES[scale]
    chosen = replace(chosen, rooms=rooms or chosen.rooms, poses=poses or chosen.poses)
    with open_crew(workers) as crew, progress_bar("Blocks") as progress:
        make_contained_data(out, chosen, seed, renderer, device, progress, crew)
    write_contained_clips(SequenceData(out, "contained"), out / "clips.html")
    print(out / "clips.html")


def tracking_data(
    out: Path = Path("out/study/tracking"),
    scale: Literal["paper", "mini"] = "paper",
    seed: Natural = 0,
    renderer: Literal["auto", "warp", "opengl"] = "auto",
    device: str = "cpu",
    workers: WorkerNamesOrNone = None,
) -> None:
    """Makes the sequences of occluded tracking: objects carried along a path behind a row of books.

    An interrupted command continues where it stopped.

    Args:
        out: Folder of the data; clips.html in it is a page of examples.
        scale: Ten paths of each object in every foyer at every table, up to 750, or 16.
        seed: Seed of books and paths.
        renderer: The renderer; by default the fastest that works on the device.
        device: cpu, cuda or cuda:N.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster; by default other processes
            prepare rooms, and this one renders.
    """
    from scrubjay.study.foyer_data import TRACKING_SCALES, make_tracking_data
    from scrubjay.study.sequences import SequenceData
    from scrubjay.viz.clips import write_tracking_clips

    with open_crew(workers) as crew, progress_bar("Blocks") as progress:
        make_tracking_data(out, TRACKING_SCALES[scale], seed, renderer, device, progress, crew)
    write_tracking_clips(SequenceData(out, "tracking"), out / "clips.html")
    print(out / "clips.html")


def static(
    encoders: list[str],
    out: Path = Path("out/study/results"),
    data: Path | None = None,
    control: str = "efficientnet-lite0",
    tasks: list[str] = [],  # noqa: B006 (tyro takes lists)
    scale: Literal["paper", "mini"] = "paper",
    device: str = "cpu",
    trust_code: bool = False,
    sizes: list[int] = [],  # noqa: B006
    workers: WorkerNamesOrNone = None,
) -> None:
    """Measures what the static representations of encoders know: seven tasks, read out of their frozen features.

    Encoders: ours@FOLDER (a run or weights), random[:SEED], efficientnet-lite0, mobilenetv2, augnet-resnet50,
    timm:NAME@FILE, hf:FOLDER, torch:FILE, python:package.module:Class. Writes static.csv (losses with intervals,
    comparisons with the control), index.html (figures and tables), encoders.json, and the loss of every test image. An
    interrupted study continues; more encoders only add their own probes.

    Args:
        encoders: The encoders by name.
        out: Folder of features and results.
        data: Folder of `scrubjay study data static`; by default it is made in the output folder first.
        control: The encoder that others are compared with; no comparisons if it is not among them.
        tasks: Some of the seven tasks; by default all.
        scale: The paper's decoders and training, or small ones for a trial.
        device: cpu, cuda or cuda:N.
        trust_code: Allow encoders that are Python classes to run.
        sizes: Numbers of training examples, such as 75 300 1200 4800, for static_sizes.csv and a chart of them.
        workers: Processes, or ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT for a cluster, that make images, compute
            features and train probes; by default this process. A cluster's machines must share the folders.
    """
    from scrubjay.sim.render.make import check_device
    from scrubjay.study.encoders import load_encoder
    from scrubjay.study.record import StudyRecord
    from scrubjay.study.static import SCALES, StaticStudy, check_names
    from scrubjay.study.static_data import TASKS, StaticData
    from scrubjay.study.static_generate import SCALES as DATA_SCALES
    from scrubjay.study.static_generate import make_static_data
    from scrubjay.viz.static_predictions import view_predictions
    from scrubjay.viz.static_study import write_static_page
    from scrubjay.workers.base import HERE

    check_device(device)
    check_names(encoders, tasks)
    loaded = [load_encoder(name, trust_code) for name in encoders]
    compared = control if control in encoders else None
    record = StudyRecord(out, "static", device, scale=scale, control=compared)
    with open_crew(workers) as crew:
        if data is None:
            data = out / "data"
            with record.part("images"), progress_bar("Images") as progress:
                make_static_data(data, DATA_SCALES[scale].counts(), device=device, progress=progress, workers=crew)
        study = StaticStudy(StaticData(data), loaded, out, SCALES[scale], compared, tasks or TASKS, device, sizes)
        with record.part("probes and statistics"), progress_bar("Features and probes") as progress:
            rows = study.run(progress, crew or HERE)
    with record.part("page"):
        images = view_predictions(study.data, out, study.shown, encoders)
    record.content["facts"] |= {"images": len(study.data), "data": study.digest}
    record.write()
    descriptions = [encoder.description.as_dict() for encoder in loaded]
    facts = f"{len(study.data):,} images, scale {scale}"
    write_static_page(out / "index.html", rows, descriptions, facts, images, record.content, study.size_rows)
    print(out / "index.html")


def merge(
    studies: list[Path],
    out: Path = Path("out/study/merged"),
    control: str = "efficientnet-lite0",
    data: Path | None = None,
    labels: list[str] = [],  # noqa: B006
) -> None:
    """Makes one static study of several on the same data, such as encoders that were measured on different machines.

    Neither images nor encoders are needed, except images for predictions on the page.

    Args:
        studies: Folders of results of `scrubjay study static`.
        out: Folder of the results of all.
        control: The encoder that others are compared with; no comparisons if it is not among them.
        data: Folder of the images, to show predictions beside them.
        labels: What the page and its figures call encoders: ours@out/run="Explorer".
    """
    from scrubjay.study.record import StudyRecord, read_record
    from scrubjay.study.static_data import StaticData
    from scrubjay.study.static_merge import FinishedStudy, merge_studies
    from scrubjay.study.static_predictions import shown_rows
    from scrubjay.viz.static_predictions import view_predictions
    from scrubjay.viz.static_study import write_static_page

    images = StaticData(data) if data is not None else None
    called = parse_labels(labels)
    start = time.perf_counter()
    rows = merge_studies(studies, out, control)
    record = StudyRecord(out, "static", **read_record(out)["facts"])
    record.seconds["statistics"] = round(time.perf_counter() - start, 2)
    record.write()
    encoders, facts = FinishedStudy(out).encoders, record.content["facts"]
    names = [encoder["name"] for encoder in encoders]
    views = view_predictions(images, out, shown_rows(images), names) if images is not None else []
    line = f"{facts['images']:,} images, scale {facts['scale']}"
    columns = ("encoder", "control")
    rows = [row | {name: called.get(str(row[name]), row[name]) for name in columns if name in row} for row in rows]
    encoders = [{**encoder, "name": called.get(encoder["name"], encoder["name"])} for encoder in encoders]
    write_static_page(out / "index.html", rows, encoders, line, views, record.content)
    print(out / "index.html")


def report(studies: list[Path], out: Path = Path("out/study/report.html")) -> None:
    """Puts the results of all studies on one page, beside the figures that the paper prints.

    Args:
        studies: Folders of results (static.csv, natural.csv, dynamic.csv), or folders that contain them.
        out: The page.
    """
    from scrubjay.study.report import read_studies
    from scrubjay.viz.study_report import write_report

    if not studies:
        raise ValueError("studies: name at least one folder of results")
    write_report(out, read_studies(studies))
    print(out)
