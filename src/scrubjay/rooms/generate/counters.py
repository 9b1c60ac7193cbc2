"""Counters: runs of cabinets, drawers and appliances along a wall under a counter top, and wall cabinets above."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scrubjay.rooms.catalog import kitchen as built_in
from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.generate.layout import FRONT, GAP, Fitting, Plan, Size, Wall, box_of
from scrubjay.rooms.room import Thing

DEPTH, HEIGHT = 0.6, 0.88
OVERHANG = 0.018
SLAB = 0.04
JOINT = 0.003
"""Meters between two units of a run."""
WALL_DEPTH, WALL_LOW = 0.35, 1.46
BURNER = (0.19, 0.19, 0.018)
KNOB = (0.042, 0.03, 0.042)


@dataclass
class Unit:
    """One unit of a run: cabinet, drawers, sink, oven, dishwasher, fridge or nothing under the top."""

    kind: str
    width: float
    hinge: float = 1.0


@dataclass
class Run:
    """Units in order along a wall, from `start`."""

    wall: Wall
    start: float
    units: list[Unit]
    depth: float = DEPTH
    height: float = HEIGHT
    extend: tuple[float, float] = (0.0, 0.0)
    """Meters by which the top extends beyond the first and last unit, over a corner."""
    things: list[Thing] = field(default_factory=list)
    tops: list[Thing] = field(default_factory=list)

    @property
    def end(self) -> float:
        return self.start + sum(unit.width for unit in self.units)

    def spans(self) -> list[tuple[Unit, float, float]]:
        """Each unit with its start and end along the wall."""
        edges = self.start + np.cumsum([0.0] + [unit.width for unit in self.units])
        return [(u, float(a), float(b)) for u, a, b in zip(self.units, edges, edges[1:], strict=False)]

    def has(self, kind: str) -> bool:
        return any(unit.kind == kind for unit in self.units)

    def middle(self, kind: str) -> float:
        """The center of the first unit of a kind, along the wall."""
        return next((a + b) / 2 for unit, a, b in self.spans() if unit.kind == kind)


def build(plan: Plan, run: Run, fitting: Fitting) -> None:
    """Puts a run's units and tops into the room."""
    for unit, start, end in run.spans():
        s, width = (start + end) / 2, end - start - JOINT
        size = (width, run.depth, run.height)
        if unit.kind in ("cabinet", "sink"):
            low = run.height if unit.kind == "cabinet" else run.height - 0.17
            _openable(plan, run, "Cabinet", s, (width, run.depth, low), 0.0, {**fitting, "hinge": unit.hinge})
            if unit.kind == "sink":
                _apron(plan, run, s, width, low)
        elif unit.kind == "drawers":
            _stack(plan, run, s, width, fitting)
        elif unit.kind == "dishwasher":
            _openable(plan, run, "Dishwasher", s, size, 0.0, {})
        elif unit.kind == "oven":
            _stove(plan, run, s, width)
        elif unit.kind == "fridge":
            own = (width, max(run.depth + 0.08, 0.68), float(plan.rng.uniform(1.72, 1.92)))
            _openable(plan, run, "Fridge", s, own, 0.0, {"hinge": unit.hinge}, reach=0.95)
    _cover(plan, run)


def _openable(
    plan: Plan, run: Run, kind: str, s: float, size: Size, z: float, options: dict[str, float], reach: float = FRONT
) -> Thing:
    style = {"wood": plan.style["front"]} if kind in ("Cabinet", "Drawer") else None
    thing = plan.add_at_wall(kind, run.wall, s, size, z, front=reach, opens=True, options=options, style=style)
    run.things.append(thing)
    return thing


def _apron(plan: Plan, run: Run, s: float, width: float, low: float) -> None:
    """The board that closes the front between a sink's cabinet and the top."""
    size = (width, 0.05, run.height - low - 0.004)
    away = GAP + run.depth - 0.024 - size[1]
    plan.add_at_wall("CounterTop", run.wall, s, size, low + 0.002, away=away, style={"top": plan.style["front"]})


def _stack(plan: Plan, run: Run, s: float, width: float, fitting: Fitting) -> None:
    """Drawers on top of one another, the lowest the tallest."""
    shares = ((0.6, 0.4), (0.4, 0.36, 0.24), (0.28, 0.26, 0.26, 0.2))[int(plan.rng.integers(3))]
    z = 0.0
    for share in shares:
        tall = share * run.height
        _openable(plan, run, "Drawer", s, (width, run.depth, tall - JOINT), z, fitting)
        z += tall


def _stove(plan: Plan, run: Run, s: float, width: float) -> None:
    """An oven with four burners on top and four knobs on its front."""
    rng = plan.rng
    size = (width, run.depth + 0.015, run.height + SLAB - 0.004)
    oven = _openable(plan, run, "Oven", s, size, 0.0, {})
    turn, at = rotation("z", -oven.yaw), np.asarray(oven.position)
    alike, grip = int(rng.integers(2**31)), int(rng.integers(2**31))
    for x in (-0.25, 0.25):
        for y in (-0.21, 0.2):
            scale = 1.0 if (x > 0) == (y > 0) else 0.84
            own = (BURNER[0] * scale, BURNER[1] * scale, BURNER[2])
            place = at + turn @ np.array([x * width, y * size[1], size[2] + 0.0005])
            run.things.append(plan.add("StoveBurner", place, oven.yaw, own, inside=oven.name, seed=alike))
    for x in (-0.4, -0.27, 0.27, 0.4):
        place = at + turn @ np.array(
            [x * width, size[1] / 2 - 0.035 + 0.0005 + KNOB[1] / 2, 0.918 * size[2] - KNOB[2] / 2]
        )
        plan.add("StoveKnob", place, oven.yaw, KNOB, inside=oven.name, seed=grip)


def _cover(plan: Plan, run: Run) -> None:
    """Tops over all units but ovens and fridges, with the sink in its hole."""
    pieces: list[list[float]] = []
    for unit, start, end in run.spans():
        if unit.kind in ("oven", "fridge"):
            pieces.append([])
        elif pieces and pieces[-1]:
            pieces[-1][1] = end
        else:
            pieces.append([start, end])
    pieces = [piece for piece in pieces if piece]
    if pieces:
        pieces[0][0] -= run.extend[0]
        pieces[-1][1] += run.extend[1]
    sink_at = run.middle("sink") if run.has("sink") else np.inf
    for start, end in pieces:
        size = (end - start - JOINT, run.depth + OVERHANG, SLAB)
        options, inset = {}, None
        if start < sink_at < end:
            inset = _sink_size(plan, run)
            options = {
                "hole_x": sink_at - (start + end) / 2,
                "hole_width": 0.88 * inset[0],
                "hole_depth": 0.92 * inset[1],
            }
        style = {"top": plan.style["counter"]}
        at, z = (start + end) / 2, run.height + 0.002
        top = plan.add_at_wall("CounterTop", run.wall, at, size, z, options=options, style=style)
        run.tops.append(top)
        if inset:
            _sink(plan, run, top, sink_at, inset)


def _sink_size(plan: Plan, run: Run) -> Size:
    width = next(unit.width for unit in run.units if unit.kind == "sink")
    return (min(width - 0.06, float(plan.rng.uniform(0.5, 0.68))), min(0.72 * run.depth, run.depth - 0.17), 0.18)


def _sink(plan: Plan, run: Run, top: Thing, s: float, size: Size) -> None:
    """A sink in a top's hole, its basin, and a tap behind it."""
    rng = plan.rng
    z = top.position[2] + SLAB + 0.014 - size[2]
    away = GAP + (top.size[1] - size[1]) / 2
    sink = plan.add_at_wall(
        "Sink", run.wall, s, size, z, away=away, inside=top.name, style={"sink": plan.style["sink"]}
    )
    at, basin = built_in.basin_of(size)
    place = np.asarray(sink.position) + rotation("z", -sink.yaw) @ np.asarray(at)
    sink_basin = plan.add("SinkBasin", place, sink.yaw, basin, inside=sink.name, style={"sink": plan.style["sink"]})
    run.things.append(sink_basin)
    reach = float(rng.uniform(0.15, 0.2))
    tap = (float(rng.choice([0.1, 0.2])), reach, float(rng.uniform(0.2, 0.3)))
    back = away + 0.012
    place = (*run.wall.at(s, back + reach / 2), sink.position[2] + size[2] + 0.0005)
    plan.add("Faucet", place, sink.yaw, tap, inside=sink.name)


def wall_cabinets(plan: Plan, run: Run, fitting: Fitting, share: float = 0.9) -> list[Thing]:
    """Cabinets on the wall above a run where they fit: windows, hoods and corners stay free."""
    rng = plan.rng
    cabinets = []
    tall = min(float(rng.uniform(0.62, 0.74)), plan.height - WALL_LOW - 0.12)
    for unit, start, end in run.spans():
        z, height, depth = WALL_LOW, tall, WALL_DEPTH
        if unit.kind == "fridge":
            z = max(thing.size[2] for thing in run.things if thing.type == "Fridge") + 0.06
            height, depth = min(WALL_LOW + tall, plan.height - 0.1) - z, DEPTH
        if unit.kind == "oven" or height < 0.28 or rng.random() > share:
            continue
        size = (end - start - JOINT, depth, height)
        box = box_of(plan.position_at_wall(run.wall, (start + end) / 2, size, z), size, run.wall.yaw)
        door_space = plan.front_of(box, run.wall.yaw, 0.45)
        if not plan.fits(box) or not plan.fits((*door_space[:2], z, *door_space[3:5], z + height), clear=False):
            continue
        options = {**fitting, "hinge": unit.hinge, "wall": 1.0}
        thing = plan.add_at_wall(
            "Cabinet", run.wall, (start + end) / 2, size, z, options=options, style={"wood": plan.style["front"]}
        )
        plan.keep_clear((*door_space[:2], z, *door_space[3:5], z + height))
        cabinets.append(thing)
    return cabinets
