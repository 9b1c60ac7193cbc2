"""Commands about the experiments on representations: study data static."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from scrubjay.cli.terminal import progress_bar


def static_data(
    out: Path = Path("out/study/static"),
    scale: Literal["paper", "mini"] = "paper",
    seed: int = 0,
    renderer: Literal["warp", "opengl"] = "warp",
    device: str = "cpu",
) -> None:
    """Makes the synthetic images of the static experiments, with the labels of all seven tasks, and a page of samples.

    The paper's 38,055 images take 20 GB. A command that was interrupted continues where it stopped.

    Args:
        out: Folder of the data; samples.html in it is the page.
        scale: The paper's counts, or 120 images of 16 rooms.
        seed: Seed of places, openables and objects.
        renderer: The renderer.
        device: cpu, cuda or cuda:N.
    """
    from scrubjay.study.static_data import StaticData
    from scrubjay.study.static_generate import SCALES, make_static_data
    from scrubjay.viz.static_samples import write_samples_page

    with progress_bar("Images") as progress:
        make_static_data(out, SCALES[scale].counts(), seed, renderer, device, progress)
    write_samples_page(StaticData(out), out / "samples.html")
    print(out / "samples.html")
