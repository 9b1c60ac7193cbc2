"""The page of the static study: bars relative to the control, tables, predictions beside the truth, encoders."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scrubjay.files import write_atomically
from scrubjay.study.comparison import SIGNIFICANCE
from scrubjay.study.printed import encoder_note
from scrubjay.study.static import PLAIN, WITH_SKIPS, Row
from scrubjay.viz.page import load_template
from scrubjay.viz.ratio_chart import TITLES, draw_ratios, short_names
from scrubjay.viz.static_predictions import FAR, ImageView
from scrubjay.viz.static_sizes import draw_sizes

DECODERS = {
    PLAIN: "From 7 x 7 features alone",
    WITH_SKIPS: "With skip connections",
}
TRIAL = (
    "A trial on few images with small decoders, trained for two epochs: it shows that everything works, and its "
    "numbers and stars say nothing about the encoders."
)


def write_static_page(
    path: Path,
    rows: Sequence[Row],
    encoders: Sequence[Mapping[str, Any]],
    facts: str,
    images: Sequence[ImageView] = (),
    record: Mapping[str, Any] | None = None,
    sizes: Sequence[Row] = (),
) -> None:
    """Writes the page, and beside it a PNG of each chart, and all charts as figure.svg and figure.png.

    `facts` is the line under the title, `images` the predictions to show, `record` what made the results, as
    `study.record` has it, `sizes` the rows of static_sizes.csv.
    """
    names = [str(each["name"]) for each in encoders]
    warning = TRIAL if record and record["facts"].get("scale") == "mini" else ""
    sections, panels = [], {}
    for decoder, title in DECODERS.items():
        its = [row for row in rows if row["decoder"] == decoder]
        if not its:
            continue
        chart = b""
        control = its[0].get("control", "")
        if control:
            panels[title] = its
            chart = draw_ratios({title: its}, names)
            write_atomically(path.with_name(f"static-{'skips' if decoder == WITH_SKIPS else 'plain'}.png"), chart)
        tasks = list(dict.fromkeys(str(row["task"]) for row in its))
        by_encoder = {
            name: {str(row["task"]): row for row in its if row["encoder"] == name}
            for name in names
            if any(row["encoder"] == name for row in its)
        }
        notes = list(dict.fromkeys(f"{row['task']}: {row['note']}" for row in its if row.get("note")))
        sections.append((title, base64.b64encode(chart).decode(), control, tasks, by_encoder, notes))
    if panels:
        for format in ("svg", "png"):
            write_atomically(path.with_name(f"figure.{format}"), draw_ratios(panels, names, format))
    curves = {
        title: base64.b64encode(draw_sizes(its, names)).decode()
        for decoder, title in DECODERS.items()
        if (its := [row for row in sizes if row["decoder"] == decoder])
    }
    page = load_template("static_page.html").render(
        title="What encoders see", facts=facts, sections=sections,
        encoders=encoders, images=images, labels=short_names(names), warning=warning,
        titles={task: title.replace("\n", " ") for task, title in TITLES.items()}, significance=SIGNIFICANCE,
        decoders=DECODERS, note_of=encoder_note, record=record, far=FAR, curves=curves,
    )  # fmt: skip
    write_atomically(path, page)
