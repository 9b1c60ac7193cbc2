"""Kitchens: counters along one wall, around a corner, on three sides or on two opposite ones; a table or an island."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.generate import envelope, priors
from scrubjay.rooms.generate.clutter import Clutter
from scrubjay.rooms.generate.counters import DEPTH, HEIGHT, SLAB, WALL_LOW, Run, Unit, build, wall_cabinets
from scrubjay.rooms.generate.furniture import chest, fittings, legs, seats
from scrubjay.rooms.generate.layout import GAP, Fitting, LayoutError, Plan, Size, Wall, box_of
from scrubjay.rooms.generate.palettes import FRONTS
from scrubjay.rooms.generate.room_type import RoomType
from scrubjay.rooms.room import Thing

BESIDE_WALL = 0.1
"""Meters between a run's end and a wall that it meets, so that doors can open."""
CORNER = DEPTH + GAP + 0.002
ON_COUNTER = ("Apple", "Bottle", "Bowl", "ButterKnife", "DishSponge", "Egg", "Fork", "Ladle", "Lettuce", "Mug",
              "Pan", "PaperTowelRoll", "PepperShaker", "Plate", "Pot", "Potato", "SaltShaker", "SoapBottle",
              "Spatula", "Spoon", "Statue", "Vase", "WineBottle", "Book", "CellPhone", "CreditCard")  # fmt: skip
IN_DRAWERS = ("Fork", "Spoon", "ButterKnife", "Spatula", "Ladle", "DishSponge", "AluminumFoil")
IN_CABINETS = ("Plate", "Bowl", "Mug", "Pot", "Bottle", "Pan", "SprayBottle", "Plate", "Mug")
IN_FRIDGE = ("Apple", "Egg", "Lettuce", "Potato", "Bottle", "WineBottle", "Bowl")


def furnish(plan: Plan) -> None:
    """Fills an empty kitchen."""
    rng = plan.rng
    fitting = fittings(plan)
    runs = _runs(plan)
    sink_run = next(run for run in runs if run.has("sink"))
    for run in runs:
        build(plan, run, fitting)
    door = envelope.doorway(plan, plan.walls)
    if door is None or not plan.passable():
        raise LayoutError("the counters leave no way in")
    if rng.random() < 0.75:
        _window_above(plan, sink_run)
    microwave = _above_oven(plan, runs)
    for run in runs:
        wall_cabinets(plan, run, fitting)
    table = _table(plan, fitting)
    envelope.switch(plan, door)
    if rng.random() < 0.5:
        envelope.window(plan, dressing="Blinds" if rng.random() < 0.25 else "")
    plan.furnish("GarbageCan", (0.4, 0.34, float(rng.uniform(0.5, 0.62))), away=0.02)
    if rng.random() < 0.22:
        chest(plan, "ShelvingUnit", (float(rng.uniform(0.7, 0.95)), 0.36, float(rng.uniform(1.3, 1.7))), fitting)
    if rng.random() < 0.2:
        plan.furnish("HousePlant", (0.42, 0.42, 1.0), where="corner", away=0.03)
    if rng.random() < 0.25:
        plan.furnish("Stool", (0.36, 0.36, 0.62), away=0.03)
    if rng.random() < 0.35:
        envelope.hang(plan, "Painting", 1, size=(0.5, 0.035, 0.6))
    envelope.ceiling_lamps(plan)
    _small_things(plan, runs, table, microwave)


def _runs(plan: Plan) -> list[Run]:
    """Plans the counters: their walls and units."""
    rng = plan.rng
    shape = str(rng.choice(["line", "L", "L", "L", "U", "parallel"]))
    pieces = _pieces(plan, shape)
    lengths = [end - start for _, start, end, _, _ in pieces]
    units: list[list[Unit]] = [[] for _ in pieces]
    order = list(np.argsort(lengths)[::-1])
    main, other = order[0], order[1] if len(order) > 1 else order[0]
    wide = float(rng.uniform(0.74, 0.88))
    units[main].append(Unit("sink", float(rng.uniform(0.74, 0.85))))
    units[other].append(Unit("oven", float(rng.uniform(0.6, 0.72))))
    if rng.random() < 0.7 and lengths[main] > 2.6:
        units[main].append(Unit("dishwasher", 0.6))
    ends = [k for k, piece in enumerate(pieces) if not (piece[3] and piece[4]) and lengths[k] > wide + 0.5]
    room_for = [k for k in ends if lengths[k] - sum(u.width for u in units[k]) > wide + 0.35]
    if not room_for:
        raise LayoutError("no end of a counter for the fridge")
    fridge = max(room_for, key=lambda k: lengths[k] - sum(u.width for u in units[k]))
    runs = []
    for k, (wall, start, end, corner_before, corner_after) in enumerate(pieces):
        used = sum(u.width for u in units[k]) + (wide if k == fridge else 0.0)
        left = end - start - used
        if left < 0.3 * max(len(units[k]), 1):
            raise LayoutError("a counter is too short for its units")
        count = max(len(units[k]), round(left / float(rng.uniform(0.46, 0.58))))
        filling = [Unit("drawers" if i % 3 == 1 else "cabinet", left / count) for i in range(count)]
        row = _arrange(rng, units[k], filling)
        if k == fridge:
            at_end = not corner_after if corner_before or rng.random() < 0.5 else False
            row = [*row, Unit("fridge", wide)] if at_end else [Unit("fridge", wide), *row]
        _hinges(row, corner_before, corner_after)
        own = (-0.02 if corner_before == 1 else 0.0, CORNER - GAP if corner_after == 2 else 0.0)
        runs.append(Run(wall, start, row, extend=own))
    return runs


def _pieces(plan: Plan, shape: str) -> list[tuple[Wall, float, float, int, int]]:
    """Segments for counters: wall, start, end, and the corners before and after.

    A corner is 0 for none, 1 if the other segment's top covers it, 2 if this one's does.
    """
    rng, walls = plan.rng, plan.walls
    n = len(walls)

    def convex(i: int) -> bool:
        (ax, ay), (bx, by) = walls[i % n].along, walls[(i + 1) % n].along
        return ax * by - ay * bx > 0

    def reach(low: float, high: float, length: float) -> float:
        return min(float(rng.uniform(low, high)), length - BESIDE_WALL)

    first = int(rng.integers(n))
    a, b, c = walls[first], walls[(first + 1) % n], walls[(first + 2) % n]
    if shape == "line":
        if a.length < 3.7:
            raise LayoutError("the wall is too short for one line of counters")
        length = reach(3.9, 5.2, a.length - BESIDE_WALL)
        start = float(rng.choice([BESIDE_WALL, a.length - BESIDE_WALL - length]))
        return [(a, start, start + length, 0, 0)]
    if shape == "parallel":
        if n != 4 or min(a.length, c.length) < 3 or b.length < 3.3:
            raise LayoutError("no two opposite walls")
        one, two = reach(2.8, 4.4, a.length - BESIDE_WALL), reach(2.4, 3.8, c.length - BESIDE_WALL)
        return [
            (a, BESIDE_WALL, BESIDE_WALL + one, 0, 0),
            (c, c.length - BESIDE_WALL - two, c.length - BESIDE_WALL, 0, 0),
        ]
    if not convex(first) or a.length < 2.4 or b.length < 2.4:
        raise LayoutError("no corner for the counters")
    run_a = reach(2.6, 4.2, a.length)
    pieces = [(a, a.length - run_a, a.length - CORNER, 0, 2)]
    if shape == "L":
        return [*pieces, (b, CORNER, reach(2.7, 4.4, b.length), 1, 0)]
    if not convex(first + 1) or not 2.9 <= b.length <= 4.6 or c.length < 2.2:
        raise LayoutError("no three walls for the counters")
    return [*pieces, (b, CORNER, b.length - CORNER, 1, 2), (c, CORNER, reach(2.0, 3.4, c.length), 1, 0)]


def _arrange(rng: np.random.Generator, special: list[Unit], filling: list[Unit]) -> list[Unit]:
    """Spreads the special units among the others, not at the ends if possible; the dishwasher beside the sink."""
    row = list(filling)
    for unit in special:
        if unit.kind == "dishwasher":
            at = next(i for i, u in enumerate(row) if u.kind == "sink")
            row.insert(at + int(rng.integers(2)), unit)
        else:
            inner = max(len(row), 2)
            at = int(rng.integers(1, inner)) if len(row) > 1 else 1
            row.insert(at, unit)
    return row


def _hinges(row: list[Unit], before: int, after: int) -> None:
    """Doors beside a corner or a fridge open away from it; a fridge's door away from the counter.

    A hinge above 0 is at the unit's end that comes first along the wall.
    """
    for i, unit in enumerate(row):
        unit.hinge = 1.0 if i % 2 else -1.0
        if i == 0 and before:
            unit.hinge = -1.0
        if i == len(row) - 1 and after:
            unit.hinge = 1.0
        if unit.kind == "fridge":
            unit.hinge = 1.0 if i == 0 else -1.0
        elif i > 0 and row[i - 1].kind == "fridge":
            unit.hinge = -1.0
        elif i + 1 < len(row) and row[i + 1].kind == "fridge":
            unit.hinge = 1.0


def _window_above(plan: Plan, run: Run) -> None:
    """A window over the sink."""
    rng = plan.rng
    size = (float(rng.uniform(0.85, 1.15)), 0.07, min(1.0, plan.height - 1.45))
    s = run.middle("sink")
    if plan.fits_at_wall(run.wall, s, size, 1.14, away=envelope.ON_WALL):
        window = plan.add_at_wall("Window", run.wall, s, size, 1.14, away=envelope.ON_WALL)
        if rng.random() < 0.2:
            envelope.dress(plan, window, "Blinds")


def _above_oven(plan: Plan, runs: list[Run]) -> Thing | None:
    """A microwave above the oven, in every other kitchen."""
    rng = plan.rng
    run = next(run for run in runs if run.has("oven"))
    unit = next(unit for unit in run.units if unit.kind == "oven")
    size = (unit.width - 0.02, 0.38, 0.36)
    if rng.random() < 0.5 and plan.fits_at_wall(run.wall, run.middle("oven"), size, WALL_LOW + 0.02):
        return plan.add_at_wall("Microwave", run.wall, run.middle("oven"), size, WALL_LOW + 0.02)
    return None


def _table(plan: Plan, fitting: Fitting) -> list[Thing]:
    """An island with stools or a table with chairs where there is space; else a small table at a wall."""
    rng = plan.rng
    island = rng.random() < 0.4
    west, south, east, north = plan.bounds
    size = (float(rng.uniform(1.2, 1.6)), float(rng.uniform(0.7, 0.85)), 0.75)
    for _ in range(80):
        yaw = float(rng.choice([0, 90]))
        x, y = float(rng.uniform(west + 0.9, east - 0.9)), float(rng.uniform(south + 0.9, north - 0.9))
        spare = 1.0 if island else 0.9
        if not plan.fits(box_of((x, y, 0.06), (size[0] + spare, size[1] + spare, 1.0), yaw)):
            continue
        checkpoint = plan.checkpoint()
        placed = (
            _island(plan, (x, y), yaw, size, fitting)
            if island
            else [plan.add("DiningTable", (x, y, 0), yaw, size, options=legs(plan))]
        )
        if not island:
            seats(plan, placed[0], "Chair", int(rng.integers(2, 5)))
        if plan.passable():
            return placed
        plan.revert(checkpoint)
    small = (float(rng.uniform(0.8, 1.1)), float(rng.uniform(0.6, 0.75)), 0.75)
    table = plan.furnish("DiningTable", small, options=legs(plan))
    if table is None:
        return []
    checkpoint = plan.checkpoint()
    seats(plan, table, "Chair", 4)
    if not plan.passable():
        plan.revert(checkpoint)
    return [table]


def _island(plan: Plan, at: tuple[float, float], yaw: float, size: Size, fitting: Fitting) -> list[Thing]:
    """Cabinets back to back with stools under an overhanging top."""
    rng = plan.rng
    depth = 0.5
    top_depth = depth + 0.3
    forward, right = facing_vector(yaw), right_vector(yaw)
    count = round(size[0] / 0.5)
    width = size[0] / count
    middle = np.asarray(at) + forward * (top_depth - depth - 0.03) / 2
    for i in range(count):
        place = middle + right * ((i - (count - 1) / 2) * width)
        options = {**fitting, "hinge": 1.0 if i % 2 else -1.0}
        unit = plan.add(
            "Cabinet",
            (*place, 0.0),
            yaw,
            (width - 0.003, depth, HEIGHT),
            options=options,
            style={"wood": plan.style["front"]},
        )
        plan.keep_front(unit, 0.6)
    top_size = (size[0] + 0.04, top_depth, SLAB)
    top = plan.add("CounterTop", (*at, HEIGHT + 0.002), yaw, top_size, style={"top": plan.style["counter"]})
    alike = int(rng.integers(2**31))
    for offset in (-0.27, 0.27):
        place = np.asarray(at) + right * offset * size[0] - forward * (top_depth / 2 + 0.08)
        own = (0.36, 0.36, 0.66)
        if plan.fits(box_of((*place, 0.0), own, yaw), 0.0, (top.name,)):
            plan.add("Stool", (*place, 0.0), yaw, own, seed=alike)
    return [top]


def _small_things(plan: Plan, runs: list[Run], table: list[Thing], microwave: Thing | None) -> None:
    rng = plan.rng
    clutter = Clutter(plan)
    units = [thing for run in runs for thing in run.things]
    tops = [top for run in runs for top in run.tops]
    wall = [thing for thing in plan.things if thing.type == "Cabinet" and thing not in units]
    shelves = [thing for thing in plan.things if thing.type in ("Shelf", "ShelvingUnit")]
    clutter.offer(*tops, *table, *units, *wall, *shelves)
    if microwave is None:
        size = priors.size_within(rng, plan.type, "Microwave", (0.52, 0.36, 0.32))
        clutter.put("Microwave", tuple(top.name for top in tops), size, max_coverage=0.6, straight=True, tries=20)
    for kind, max_size in (
        ("CoffeeMachine", (0.26, 0.32, 0.38)),
        ("Toaster", (0.2, 0.3, 0.2)),
        ("Kettle", (0.2, 0.2, 0.22)),
    ):
        if rng.random() < max(priors.share(plan.type, kind), 0.5):
            size = priors.size_within(rng, plan.type, kind, max_size)
            clutter.put(kind, tuple(top.name for top in tops), size, max_coverage=0.5, straight=True, tries=12)
    clutter.scatter(ON_COUNTER, ("CounterTop", "DiningTable"))
    clutter.fill([t for t in units if t.type == "Drawer"], IN_DRAWERS, 0.36)
    clutter.fill([t for t in [*units, *wall] if t.type == "Cabinet"], IN_CABINETS, 0.34)
    clutter.fill([t for t in units if t.type == "Fridge"], IN_FRIDGE, 0.9, max_count=3)


TYPE = RoomType(
    furnish,
    width=(3.4, 4.9),
    depth=(4.4, 5.9),
    floors=(
        "tiles#d9d4c6",
        "tiles#c2c8c8",
        "tiles#b9a58a",
        "planks#c39a6b",
        "planks#9b6f47",
        "tiles#e6e2da",
        "planks#d8ba8e",
    ),
    walls=(
        "wall-0#efe8d8",
        "wall-0#dfe6dd",
        "wall-0#e9dcc4",
        "wall-3#f0efe9",
        "wall-0#cddadf",
        "wall-1#eee6d6",
        "wall-5#e8ddd0",
    ),
    fronts=FRONTS,
    min_positions=64,
    min_openables=14,
)
