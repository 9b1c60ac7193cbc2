"""Commands about natural images: study natural, study photographs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from scrubjay.cli.terminal import progress_bar

if TYPE_CHECKING:
    from scrubjay.study.natural_data import Source


def natural(
    encoders: list[str],
    out: Path = Path("out/study/natural"),
    sun: Path | None = None,
    nyu: Path | None = None,
    walkable: Path | None = None,
    control: str = "efficientnet-lite0",
    scale: Literal["paper", "mini"] = "paper",
    device: str = "cpu",
    trust_code: bool = False,
) -> None:
    """Measures what encoders know of natural images: scenes, depth and walkable surfaces, read out of frozen features.

    The data sets are yours: a task runs if its folder is given. Writes natural.csv (metrics with intervals, differences
    from the control) and natural.html. An interrupted study continues; more encoders only add their own probes.
    Encoders are named as for `scrubjay study static`.

    Args:
        encoders: The encoders by name.
        out: Folder of results, and of SUN397's pictures at 256 pixels (7 GB).
        sun: SUN397, the folder with the folders a to z, and Training_01.txt and Testing_01.txt.
        nyu: NYUv2's nyu_depth_v2_labeled.mat with splits.mat beside it, or a folder with {train,test}/{images,depths}.
        walkable: A folder with {train,test}/{images,walkable}.
        control: The encoder that others are compared with; no comparisons if it is not among them.
        scale: All pictures and epochs, or a few for a trial.
        device: cpu, cuda or cuda:N.
        trust_code: Allow encoders that are Python classes to run.
    """
    from scrubjay.errors import DataError
    from scrubjay.sim.render.make import check_device
    from scrubjay.study.encoders import load_encoder
    from scrubjay.study.natural import SCALES, NaturalStudy
    from scrubjay.study.natural_nyu import nyu_source
    from scrubjay.study.natural_sun import Sun
    from scrubjay.study.record import StudyRecord
    from scrubjay.viz.natural_study import write_natural_page

    check_device(device)
    limits = SCALES[scale]
    sources: list[Source] = []
    if sun is not None:
        sources.append(Sun(sun, limits.classes, limits.images))
    sources += [
        nyu_source(folder, task, limits.images)
        for task, folder in (("depth", nyu), ("walkable", walkable))
        if folder is not None
    ]
    if not sources:
        raise DataError("natural: give the folder of a data set: --sun, --nyu or --walkable")
    loaded = [load_encoder(name, trust_code) for name in encoders]
    compared = control if control in encoders else None
    record = StudyRecord(out, "natural", device, scale=scale, control=compared)
    data = []
    for source in sources:
        with record.part("pictures"), progress_bar(f"Pictures ({source.task})") as progress:
            data.append(source.load(out / "pictures", progress))
    study = NaturalStudy(data, loaded, out, limits.config, compared, device)
    with record.part("probes and statistics"), progress_bar("Epochs") as progress:
        rows = study.run(progress)
    counts = ", ".join(f"{each.task} {len(each['train']):,} train and {len(each['test']):,} test" for each in data)
    write_natural_page(out / "natural.html", study, rows, f"Images: {counts}; scale {scale}")
    print(out / "natural.html")


def photographs(
    results: Path,
    encoders: list[str],
    images: Path | None = None,
    out: Path = Path("out/study/photographs.html"),
    device: str = "cpu",
    trust_code: bool = False,
) -> None:
    """Writes a page of the depth that encoders see in photographs, by decoders that a static study has trained.

    Photographs are those that scikit-image and Debian's opencv-doc carry, as far as they are installed, or your own.
    Two of the former have measured depth. The network is never asked.

    Args:
        results: Folder of a finished `scrubjay study static` with the task depth.
        encoders: Encoders of that study, by name.
        images: A folder of pictures, instead of those of packages.
        out: The page.
        device: cpu, cuda or cuda:N.
        trust_code: Allow encoders that are Python classes to run.
    """
    from scrubjay.sim.render.make import check_device
    from scrubjay.study.encoders import load_encoder
    from scrubjay.study.photographs import depth_decoders, own_photographs, packaged_photographs, predict_depth
    from scrubjay.viz.photographs import write_photographs_page

    check_device(device)
    shown = packaged_photographs() if images is None else own_photographs(images)
    loaded = {name: load_encoder(name, trust_code) for name in encoders}
    decoders = depth_decoders(results, list(loaded.values()))
    depths = {
        kind: {name: predict_depth(file, loaded[name], shown, device) for name, file in files.items()}
        for kind, files in decoders.items()
    }
    write_photographs_page(out, shown, depths, f"{len(shown)} photographs, central squares")
    print(out)
