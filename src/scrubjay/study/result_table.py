"""Tables of results as CSV, the same for all studies."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence


def table_text(rows: Iterable[Mapping[str, str | float | bool]], fields: Sequence[str]) -> str:
    """A header and a line for each row; numbers in six digits, nothing where there is none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(fields)
    for row in rows:
        writer.writerow(_cell(row.get(field, "")) for field in fields)
    return text.getvalue()


def _cell(value: str | float | bool) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)
