"""Where hiders hide: the places of many objects as a heat map on the floor plan, the same starts for all hiders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.ndimage import gaussian_filter

from scrubjay.evaluation.trials import Hiding
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.viz.agent_charts import PIXEL_RATIO
from scrubjay.viz.agent_trace import to_room_frame
from scrubjay.viz.floorplan import MARGIN, FloorPlan, plan_fraction
from scrubjay.viz.page import Figure
from scrubjay.viz.palette import BLUE, INK, QUIET, RED

CELLS = 160
"""Cells along an edge of the heat map."""
BLUR = 0.25
"""Standard deviation of each object's heat, in meters."""
STRONGEST = 0.85
"""Opacity of the hottest place."""
MAP_SIZE = 340
MAX_STARTS = 40
"""Starts are marked if there are no more."""


def density(compiled: CompiledRoom, points: np.ndarray) -> np.ndarray:
    """The share of points (n, 2) per cell of the plan, blurred, (CELLS, CELLS), north up; sums to 1 at most."""
    counts = np.zeros((CELLS, CELLS))
    for x, y in points:
        across, down = plan_fraction(compiled, x, y)
        counts[min(int(down * CELLS), CELLS - 1), min(int(across * CELLS), CELLS - 1)] += 1
    west, south, east, north = compiled.room.bounds
    # The plan's cells are not square where the room is not.
    blur = [BLUR * CELLS / (length + 2 * MARGIN) for length in (north - south, east - west)]
    return gaussian_filter(counts / max(len(points), 1), blur, mode="constant")


def hiding_maps(
    compiled: CompiledRoom, hidings: Mapping[str, Sequence[Hiding]], seeker: str, labels: Mapping[str, str]
) -> list[Figure]:
    """A plan for each hider with its objects: blue where the seeker did not find them, hollow where it did."""
    points = {
        hider: np.array(
            [hiding.record.hidden["pose"][:2] for hiding in hidden if hiding.record and hiding.record.hidden]
        )
        for hider, hidden in hidings.items()
    }
    heats = {hider: density(compiled, places) for hider, places in points.items()}
    hottest = max(heat.max() for heat in heats.values())
    figures = []
    for hider, hidden in hidings.items():
        plan = FloorPlan(compiled, compiled.floor.reachable(), MAP_SIZE, numbered=False)
        plan.shade(STRONGEST * np.sqrt(heats[hider] / hottest), RED)
        starts = {hiding.record.start for hiding in hidden if hiding.record}
        for start in starts if len(starts) <= MAX_STARTS else ():
            plan.dot(start, QUIET)
        small = 6 if len(hidden) <= 60 else 4
        found = [hiding.results[seeker].found for hiding in hidden] if seeker else [False] * len(hidden)
        for (x, y), was_found in zip(points[hider], found, strict=True):
            plan.diamond(x, y, "white" if was_found else BLUE, small, outline=INK if was_found else "white")
        caption = f"{labels.get(hider, hider)}: {len(hidden)} hiding{'s' * (len(hidden) > 1)}"
        caption += f", {sum(found)} found by {labels.get(seeker, seeker)}" if seeker else ""
        figures.append(Figure(plan.picture_at(PIXEL_RATIO), caption))
    return figures


def poses_in_room(start: AgentPose, places: np.ndarray) -> list[AgentPose]:
    """Places (n, 4) of a record, relative to its start, as poses in the room."""
    positions = to_room_frame(start, places[:, :2].astype(float))
    return [
        AgentPose(float(x), float(y), float(start.rotation + 90 * quarter) % 360, bool(standing))
        for (x, y), (_, _, quarter, standing) in zip(positions, places.tolist(), strict=True)
    ]
