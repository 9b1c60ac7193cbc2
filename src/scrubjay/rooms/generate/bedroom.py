"""Bedrooms: a bed with its side tables, a desk to work at, chests for clothes."""

from __future__ import annotations

from scrubjay.rooms.generate import envelope, priors
from scrubjay.rooms.generate.clutter import Clutter
from scrubjay.rooms.generate.furniture import add_lidded, chest, fill_cells, fittings
from scrubjay.rooms.generate.layout import FRONT, GAP, Fitting, LayoutError, Plan, box_of, right_of
from scrubjay.rooms.generate.room_type import RoomType
from scrubjay.rooms.room import Thing

SMALL = ("AlarmClock", "Book", "Bowl", "CD", "CellPhone", "CreditCard", "HousePlant", "KeyChain", "Mug", "Pen",
         "Pencil", "RemoteControl", "Statue", "TissueBox", "Vase", "Watch")  # fmt: skip
IN_DRAWERS = ("CD", "CreditCard", "KeyChain", "Pen", "Watch", "Cloth", "Pencil", "CellPhone")
ON_FLOOR = (("LaundryHamper", 0.45), ("Box", 0.45), ("BasketBall", 0.37), ("BaseballBat", 0.35), ("TennisRacket",
            0.33), ("Safe", 0.2), ("Dumbbell", 0.13), ("Boots", 0.12), ("HousePlant", 0.2), ("GarbageBag", 0.06),
            ("Footstool", 0.1), ("DogBed", 0.05), ("VacuumCleaner", 0.06))  # fmt: skip
MAX_SIZES = {"HousePlant": (0.45, 0.45, 1.0), "BaseballBat": (0.2, 0.2, 0.95), "TennisRacket": (0.3, 0.25, 0.65)}


def furnish(plan: Plan) -> None:
    """Fills an empty bedroom."""
    rng = plan.rng
    fitting = fittings(plan)
    door = envelope.doorway(plan, plan.walls)
    bed, tables = _bed(plan, fitting)
    desk = _desk(plan, fitting)
    chests: list[Thing] = []
    size = (float(rng.uniform(1.0, 1.5)), float(rng.uniform(0.46, 0.55)), float(rng.uniform(0.8, 1.05)))
    chests += chest(plan, "Dresser", size, fitting, options={"rows": 3, "columns": 2 if size[0] > 1.1 else 1})
    if not desk and not chests:
        raise LayoutError("neither a desk nor a dresser fits")
    if door:
        envelope.switch(plan, door)
    for _ in range(int(rng.integers(1, 3))):
        envelope.window(plan, dressing="Blinds" if rng.random() < 0.8 else "Curtains")
    if rng.random() < 0.55:
        size = (float(rng.uniform(0.7, 1.05)), float(rng.uniform(0.26, 0.34)), float(rng.uniform(1.1, 1.9)))
        chests += chest(plan, "ShelvingUnit", size, fitting)
    if sum(t.type == "Drawer" for t in plan.things) < 7 or rng.random() < 0.25:
        rows = int(rng.integers(3, 5))
        chests += chest(
            plan, "Dresser", (0.62, 0.46, 0.25 * rows + 0.12), fitting, options={"rows": rows, "columns": 1}
        )
    if rng.random() < 0.25:
        plan.furnish("ArmChair", (0.85, 0.85, 0.9), where="corner", away=0.03)
    _on_floor(plan)
    shelves = [_wall_shelf(plan) for _ in range(int(rng.integers(0, 3)))]
    dresser = next((piece for piece in chests if piece.type == "Dresser"), None)
    wide = float(rng.uniform(0.5, 0.8))
    envelope.hang(plan, "Mirror", 1, z=(1.05, 1.3), over=dresser, size=(wide, 0.035, wide * 1.2))
    envelope.hang(plan, "Painting", int(rng.integers(0, 3)), over=bed)
    if rng.random() < 0.3:
        envelope.hang(plan, "Poster", int(rng.integers(1, 3)))
    envelope.ceiling_lamps(plan)
    _small_things(plan, bed, desk, [*tables, *chests, *shelves])


def _bed(plan: Plan, fitting: Fitting) -> tuple[Thing, list[Thing]]:
    """A bed with its head to a wall, side tables beside it, and a rug."""
    rng = plan.rng
    size = (float(rng.uniform(1.0, 1.75)), float(rng.uniform(2.05, 2.2)), float(rng.uniform(0.85, 1.1)))
    bed = plan.place_at_wall(
        "Bed", size, where="middle" if rng.random() < 0.6 else "any", style={"fabric": plan.style["bedding"]}
    )
    if bed is None or not plan.passable():
        raise LayoutError("no room for the bed")
    wall, s = envelope.where_on(plan, bed)
    tables: list[Thing] = []
    for side in (1, -1):
        wide = float(rng.uniform(0.42, 0.52))
        own = (wide, 0.42, float(rng.uniform(0.5, 0.62)))
        at = s + side * (size[0] / 2 + 0.05 + wide / 2)
        if (rng.random() < 0.8 or not tables) and plan.fits_at_wall(wall, at, own, front=0.6):
            checkpoint = plan.checkpoint()
            options = {"drawers": int(rng.integers(1, 3))}
            table = plan.add_at_wall("SideTable", wall, at, own, front=0.6, opens=True, options=options)
            if not plan.passable():
                plan.revert(checkpoint)
                continue
            tables += [table, *fill_cells(plan, table, fitting)]
    if rng.random() < 0.6:
        x, y = wall.at(s, size[1] * 0.75)
        envelope.rug(plan, x, y, bed.yaw, (size[0] + 1.2, size[1] * 0.9))
    return bed, tables


def _desk(plan: Plan, fitting: Fitting) -> Thing | None:
    """A desk with a chair at it."""
    rng = plan.rng
    size = (float(rng.uniform(1.15, 1.5)), float(rng.uniform(0.58, 0.68)), 0.76)
    side = 1 if rng.random() < 0.5 else -1
    pieces = chest(plan, "Desk", size, fitting, options={"rows": int(rng.integers(2, 4)), "side": side}, tries=5)
    if not pieces:
        return None
    desk = pieces[0]
    wall, s = envelope.where_on(plan, desk)
    own = (0.48, 0.52, float(rng.uniform(0.85, 0.95)))
    # The chair goes beside the pedestal: to the left of a right-hand one, seen from behind the desk.
    at = wall.at(s + (1 if wall.along == right_of(desk.yaw) else -1) * -side * 0.17 * size[0], GAP + size[1] + 0.12)
    swivel = {"swivel": 1.0} if rng.random() < 0.4 else {}
    if not plan.fits(
        box_of((*at, 0.0), own, desk.yaw + 180), 0.0, (desk.name, *(p.name for p in pieces[1:])), clear=False
    ):
        return desk
    checkpoint = plan.checkpoint()
    plan.add("Chair", (*at, 0.0), desk.yaw + 180 + float(rng.normal(0, 4)), own, options=swivel)
    if not plan.passable():
        plan.revert(checkpoint)
    return desk


def _on_floor(plan: Plan) -> None:
    """Things on the floor along the walls."""
    rng = plan.rng
    plan.furnish("GarbageCan", (0.3, 0.28, float(rng.uniform(0.32, 0.42))), away=0.02)
    for kind, chance in ON_FLOOR:
        if rng.random() < chance:
            max_size = MAX_SIZES.get(kind, (0.9, 0.7, 1.1))
            size = priors.size_within(rng, plan.type, kind, max_size)
            if kind in ("LaundryHamper", "Box"):
                add_lidded(plan, kind, size)
            else:
                opens = kind == "Safe"
                plan.furnish(kind, size, away=0.02, front=FRONT if opens else 0.0, opens=opens)
    if rng.random() < 0.3:
        plan.furnish("FloorLamp", (0.38, 0.38, 1.6), where="corner", away=0.03)


def _wall_shelf(plan: Plan) -> Thing | None:
    """A board on brackets, above what stands at the wall."""
    size = (float(plan.rng.uniform(0.6, 1.0)), float(plan.rng.uniform(0.18, 0.24)), 0.14)
    return plan.place_at_wall("Shelf", size, z=float(plan.rng.uniform(1.4, 1.6)), options={"brackets": 1.0}, tries=8)


def _pillows(plan: Plan, clutter: Clutter, bed: Thing) -> None:
    """One pillow at the bed's head, or two side by side."""
    rng = plan.rng
    count = 2 if bed.size[0] > 1.3 and rng.random() < 0.75 else 1
    size = (min(0.62, (bed.size[0] - 0.3) / count), 0.36, 0.14)
    alike = int(rng.integers(2**31))
    for i in range(count):
        aside = (i - (count - 1) / 2) * (size[0] + 0.05)
        clutter.place("Pillow", bed, size, (aside, 0.32 - bed.size[1] / 2), seed=alike)


def _small_things(plan: Plan, bed: Thing, desk: Thing | None, places: list[Thing | None]) -> None:
    rng = plan.rng
    clutter = Clutter(plan)
    drawers = [thing for thing in plan.things if thing.type == "Drawer"]
    clutter.offer(bed, desk, *[p for p in places if p and p.type != "Drawer"], *drawers)
    _pillows(plan, clutter, bed)
    if rng.random() < 0.33:
        clutter.put("TeddyBear", ("Bed",), max_coverage=0.8)
    clutter.put("DeskLamp", ("SideTable",), straight=True)
    if desk:
        clutter.put("DeskLamp", ("Desk",), straight=True)
    clutter.put("Laptop", ("Desk", "Bed", "Dresser"), straight=True)
    if rng.random() < 0.12:
        clutter.put("Television", ("Dresser",), size=(0.9, 0.2, 0.58), straight=True)
    clutter.scatter(SMALL, ("Desk", "SideTable", "Dresser", "Shelf"))
    for _ in range(int(rng.integers(1, 4))):
        clutter.put(str(rng.choice(["Book", "Vase", "Statue", "CD", "Book"])), ("Shelf", "ShelvingUnit"))
    clutter.fill(drawers, IN_DRAWERS, 0.26)


TYPE = RoomType(
    furnish,
    width=(3.8, 5.4),
    depth=(4.7, 6.0),
    floors=(
        "carpet#b5a893",
        "carpet#8d8aa0",
        "planks#c39a6b",
        "planks#9b7350",
        "carpet#a3aa9a",
        "carpet#c7bfb2",
    ),
    walls=(
        "wall-0#d6dee6",
        "wall-2#e4d8d3",
        "wall-0#e9e1d2",
        "wall-0#c8d3c6",
        "wall-2#d3d9e2",
        "wall-0#e3d3c8",
        "wall-1#dfe0e6",
    ),
    min_positions=64,
    min_openables=8,
)
