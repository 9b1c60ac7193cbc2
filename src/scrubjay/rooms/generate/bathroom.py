"""Bathrooms: a tub or a shower, a toilet, a washstand with a mirror, towels."""

from __future__ import annotations

from scrubjay.rooms.generate import envelope, priors
from scrubjay.rooms.generate.clutter import Clutter
from scrubjay.rooms.generate.counters import Run, Unit, build
from scrubjay.rooms.generate.furniture import add_lidded, chest, fittings
from scrubjay.rooms.generate.layout import FRONT, GAP, Fitting, LayoutError, Plan, Size, Wall, box_of
from scrubjay.rooms.generate.room_type import RoomType
from scrubjay.rooms.room import Thing

SMALL = (
    "Candle",
    "Cloth",
    "DishSponge",
    "HousePlant",
    "PaperTowelRoll",
    "SoapBar",
    "SoapBottle",
    "SprayBottle",
    "TissueBox",
)
IN_CABINETS = ("ToiletPaper", "SprayBottle", "SoapBottle", "Cloth", "PaperTowelRoll", "TissueBox")
IN_DRAWERS = ("SoapBar", "Cloth", "Candle", "DishSponge")
PANE = 0.04


def furnish(plan: Plan) -> None:
    """Fills an empty bathroom."""
    rng = plan.rng
    fitting = fittings(plan)
    door = envelope.doorway(plan, [wall for wall in plan.walls if wall.length > 1.4])
    if door is None:
        raise LayoutError("no wall for the door")
    bath = str(rng.choice(["tub", "tub", "shower", "both"]))
    if bath != "shower":
        _tub(plan)
    if bath != "tub":
        _shower(plan)
    runs = _washstand(plan, fitting)
    toilet = _toilet(plan)
    if not plan.passable():
        raise LayoutError("the fittings block the way")
    envelope.switch(plan, door)
    _holders(plan)
    extra = _chest(plan, fitting) if rng.random() < 0.3 else []
    if rng.random() < 0.75:
        size = (float(rng.uniform(0.7, 1.0)), 0.07, float(rng.uniform(0.8, 1.1)))
        envelope.window(
            plan, size=size, z=float(rng.uniform(1.1, 1.25)), dressing="Blinds" if rng.random() < 0.2 else ""
        )
    plan.furnish("GarbageCan", (0.3, 0.28, float(rng.uniform(0.34, 0.5))), away=0.02)
    if rng.random() < 0.3:
        hamper = add_lidded(plan, "LaundryHamper", (0.42, 0.38, 0.62))
        extra += [hamper] if hamper else []
    shelves = [_shelf(plan) for _ in range(int(rng.integers(0, 3)))]
    if rng.random() < 0.15:
        envelope.hang(plan, "Painting", 1, size=(0.45, 0.035, 0.5))
    envelope.ceiling_lamps(plan)
    _small_things(plan, runs, toilet, [*extra, *filter(None, shelves)])


def _chest(plan: Plan, fitting: Fitting) -> list[Thing]:
    """A dresser or shelves for towels."""
    rng = plan.rng
    if rng.random() < 0.5:
        size = (float(rng.uniform(0.6, 0.8)), 0.4, float(rng.uniform(0.8, 1.1)))
        return chest(plan, "Dresser", size, fitting)
    return chest(plan, "ShelvingUnit", (float(rng.uniform(0.6, 0.8)), 0.32, float(rng.uniform(1.1, 1.6))), fitting)


def _corner(plan: Plan, size: Size) -> tuple[Wall, float, int, int]:
    """A convex corner where a box fits: wall, position along it, side of the corner, index of the other wall."""
    rng, walls = plan.rng, plan.walls
    n = len(walls)
    for _ in range(30):
        i = int(rng.integers(n))
        wall, side = walls[i], int(rng.choice([-1, 1]))
        j = (i + side) % n
        a, b = (wall, walls[j]) if side > 0 else (walls[j], wall)
        convex = a.along[0] * b.along[1] - a.along[1] * b.along[0] > 0
        s = wall.length - size[0] / 2 - 0.006 if side > 0 else size[0] / 2 + 0.006
        if (
            convex
            and wall.length > size[0] + 0.02
            and walls[j].length > size[1] + 0.3
            and plan.fits_at_wall(wall, s, size, front=0.55)
        ):
            return wall, s, side, j
    raise LayoutError("no corner for tub or shower")


def _tub(plan: Plan) -> None:
    """A tub along a wall in a corner, with a shower head at its end and mostly a curtain before it."""
    rng = plan.rng
    size = (float(rng.uniform(1.55, 1.75)), float(rng.uniform(0.74, 0.84)), float(rng.uniform(0.52, 0.6)))
    wall, s, side, j = _corner(plan, (size[0], size[1] + 0.15, size[2]))
    plan.add_at_wall("Bathtub", wall, s, size, front=0.5)
    curtain = (size[0] - 0.02, 0.12, 1.9)
    if rng.random() < 0.8:
        drape = plan.add_at_wall(
            "ShowerCurtain", wall, s, curtain, 0.16, away=GAP + size[1] + 0.006, options={"hinge": -side}
        )
        plan.keep_front(drape, 0.5)
    other = plan.walls[j]
    head = (0.2, 0.32, 1.0)
    along = size[1] / 2 if side > 0 else other.length - size[1] / 2
    plan.add_at_wall("ShowerHead", other, along, head, 1.05)


def _shower(plan: Plan) -> None:
    """A corner behind a pane of glass and a glass door, with a shower head."""
    rng = plan.rng
    wide, deep, tall = float(rng.uniform(0.95, 1.15)), float(rng.uniform(0.95, 1.1)), 1.95
    wall, s, side, j = _corner(plan, (wide, deep, 2.0))
    # The glass stands square to the wall; the door is parallel to it and swings out to the room.
    start = s - side * wide / 2
    door = (wide - PANE - 0.012, PANE, tall)
    middle = start + side * (PANE + 0.008 + door[0] / 2)
    shower_door = plan.add_at_wall("ShowerDoor", wall, middle, door, away=GAP + deep - PANE, options={"hinge": -side})
    plan.keep_front(shower_door, 0.85)
    x, y = wall.at(start + side * PANE / 2, GAP + (deep - 0.006) / 2)
    plan.add("ShowerGlass", (x, y, 0.0), wall.yaw + 90, (deep - 0.006, PANE, tall))
    other = plan.walls[j]
    along = deep / 2 if side > 0 else other.length - deep / 2
    plan.add_at_wall("ShowerHead", other, along, (0.2, 0.32, 1.1), 1.0)
    keep = box_of((*wall.at(s, deep / 2), 0.06), (wide, deep, 1.9), wall.yaw)
    plan.keep_clear(keep)


def _washstand(plan: Plan, fitting: Fitting) -> list[Run]:
    """Cabinets and drawers under a top with a sink, and a mirror above."""
    rng = plan.rng
    sides = float(rng.uniform(0.38, 0.5))
    two = rng.random() < 0.15
    kinds = (
        ["drawers", "sink", "drawers", "sink", "drawers"]
        if two
        else [str(rng.choice(["drawers", "cabinet"])), "sink", "drawers"]
    )
    for _ in range(40):
        units = [Unit(kind, float(rng.uniform(0.56, 0.66)) if kind == "sink" else sides) for kind in kinds]
        width = sum(unit.width for unit in units)
        wall = plan.walls[int(rng.integers(len(plan.walls)))]
        depth = 0.5
        if wall.length < width + 0.16:
            continue
        start = float(rng.uniform(0.08, wall.length - width - 0.08))
        if not plan.fits_at_wall(wall, start + width / 2, (width, depth + 0.02, 1.9), front=FRONT):
            continue
        for i, unit in enumerate(units):
            unit.hinge = -1.0 if i == 0 else 1.0
        # A run has one hole in its top: two sinks are two runs side by side.
        parts = [units[:2], units[2:]] if two else [units]
        runs = []
        for part in parts:
            runs.append(Run(wall, start, part, depth=depth, height=0.8))
            start = runs[-1].end + (0.004 if two else 0.0)
            build(plan, runs[-1], fitting)
            _mirror(plan, runs[-1])
        return runs
    raise LayoutError("no wall for the washstand")


def _mirror(plan: Plan, run: Run) -> None:
    """A mirror over a sink."""
    rng = plan.rng
    size = (float(rng.uniform(0.55, 0.75)), 0.035, float(rng.uniform(0.75, 0.95)))
    s = min(max(run.middle("sink"), size[0] / 2 + 0.02), run.wall.length - size[0] / 2 - 0.02)
    if plan.fits_at_wall(run.wall, s, size, 1.18, away=envelope.ON_WALL):
        plan.add_at_wall("Mirror", run.wall, s, size, 1.18, away=envelope.ON_WALL)


def _toilet(plan: Plan) -> Thing:
    """A toilet with paper within reach and a brush beside it."""
    rng = plan.rng
    size = (float(rng.uniform(0.42, 0.48)), float(rng.uniform(0.68, 0.75)), float(rng.uniform(0.78, 0.88)))
    for _ in range(50):
        wall = plan.walls[int(rng.integers(len(plan.walls)))]
        if wall.length < 1.2:
            continue
        s = float(rng.uniform(0.4, wall.length - 0.4))
        if plan.fits_at_wall(wall, s, (size[0] + 0.3, *size[1:])) and plan.fits_at_wall(wall, s, size, front=0.6):
            toilet = plan.add_at_wall("Toilet", wall, s, size, front=0.6, opens=True)
            break
    else:
        raise LayoutError("no wall for the toilet")
    paper, side = (0.2, 0.1, 0.05), int(rng.choice([-1, 1]))
    for way in (side, -side):
        for aside in (0.2, 0.3, 0.45):
            at = s + way * (size[0] / 2 + aside)
            if plan.fits_at_wall(wall, at, (0.22, 0.16, 0.2), 0.66):
                hanger = plan.add_at_wall("ToiletPaperHanger", wall, at, paper, 0.72, away=envelope.ON_WALL)
                place = wall.at(at, envelope.ON_WALL + paper[1] - 0.012)
                plan.add("ToiletPaper", (*place, 0.69), wall.yaw, (0.11, 0.11, 0.11), inside=hanger.name)
                break
        else:
            continue
        break
    brush = (0.12, 0.12, float(rng.uniform(0.38, 0.46)))
    for way in (-side, side):
        at = s + way * (size[0] / 2 + 0.12)
        if plan.fits_at_wall(wall, at, brush, away=0.03):
            plan.add_at_wall("ScrubBrush", wall, at, brush, away=0.03)
            break
    return toilet


def _holders(plan: Plan) -> None:
    """Towels on their holders."""
    rng = plan.rng
    cloth = {"fabric": plan.style["towel"]}
    for kind, towel, count in (
        ("TowelHolder", "Towel", int(rng.integers(1, 3))),
        ("HandTowelHolder", "HandTowel", int(rng.integers(1, 3))),
    ):
        for _ in range(count):
            bath = kind == "TowelHolder"
            size = (0.6, 0.09, 0.035) if bath else (0.16, 0.06, 0.2)
            own = (float(rng.uniform(0.36, 0.44)), 0.05, float(rng.uniform(0.5, 0.62))) if bath else (0.13, 0.045, 0.38)
            around = (size[0], 0.12, own[2] + size[2])
            z = 1.32 if bath else 1.4
            walls = [w for w in plan.walls if w.length > 0.9]
            wall = walls[int(rng.integers(len(walls)))]
            candidates = [float(v) for v in rng.uniform(0.4, wall.length - 0.4, 12)]
            s = next((v for v in candidates if plan.fits_at_wall(wall, v, around, z - own[2] + 0.02)), None)
            if s is None:
                continue
            holder = plan.add_at_wall(kind, wall, s, size, z, away=envelope.ON_WALL)
            away = envelope.ON_WALL + (size[1] - 0.012 if bath else size[1] * 0.65)
            place = (*wall.at(s, away), z + size[2] - own[2] + 0.008 if bath else z + 0.025 - own[2])
            plan.add(towel, place, wall.yaw, own, inside=holder.name, style=cloth)


def _shelf(plan: Plan) -> Thing | None:
    """A board on brackets."""
    size = (float(plan.rng.uniform(0.5, 0.75)), 0.18, 0.14)
    return plan.place_at_wall("Shelf", size, z=float(plan.rng.uniform(1.35, 1.5)), options={"brackets": 1.0}, tries=12)


def _small_things(plan: Plan, runs: list[Run], toilet: Thing, places: list[Thing]) -> None:
    rng = plan.rng
    clutter = Clutter(plan)
    units = [thing for run in runs for thing in run.things]
    clutter.offer(*(top for run in runs for top in run.tops), *units, toilet, *places)
    clutter.scatter(SMALL, ("CounterTop", "Shelf", "Dresser"))
    size = priors.size_within(rng, plan.type, "ToiletPaper", (0.11, 0.11, 0.1))
    clutter.put("ToiletPaper", ("Toilet", "Shelf", "CounterTop"), size, max_coverage=0.5)
    for _ in range(int(rng.integers(0, 3))):
        clutter.put(str(rng.choice(["SoapBottle", "Candle", "Vase", "Cloth", "TissueBox"])), ("Shelf", "ShelvingUnit"))
    drawers = [t for t in [*units, *places] if t.type == "Drawer"]
    clutter.fill(drawers, IN_DRAWERS, 0.26)
    clutter.fill([t for t in units if t.type == "Cabinet"], IN_CABINETS, 0.4)


TYPE = RoomType(
    furnish,
    width=(3.3, 4.0),
    depth=(4.5, 5.2),
    floors=("tiles#d3d9da", "tiles#bfb6a6", "tiles#9fb0b4", "tiles#e4e2dc", "marble#dcd8d0", "tiles#8d9aa0"),
    walls=(
        "wall-3#e2ecee",
        "wall-3#eae6dc",
        "wall-4#e6eeee",
        "wall-3#d5e2dc",
        "wall-4#ece8e0",
        "wall-3#dfe4ee",
    ),
    fronts=("plain#f3f2ee", "plain#d8dedd", "wood#c79a63", "wood#8f5f38", "plain#9fb3b5", "plain#6d7f84"),
    min_positions=34,
    min_openables=7,
)
