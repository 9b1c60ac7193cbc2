"""Living rooms: a sofa that faces the television, and furniture around them."""

from __future__ import annotations

from scrubjay.rooms.generate import envelope, priors
from scrubjay.rooms.generate.clutter import Clutter
from scrubjay.rooms.generate.furniture import add_lidded, chest, fill_cells, fittings, legs, seats
from scrubjay.rooms.generate.layout import FRONT, Box, Fitting, LayoutError, Plan, Wall, box_of, right_of
from scrubjay.rooms.generate.room_type import RoomType
from scrubjay.rooms.room import Thing

SMALL = ("Book", "Bowl", "Candle", "CellPhone", "CreditCard", "DeskLamp", "HousePlant", "KeyChain", "Laptop",
         "Newspaper", "Pen", "Pencil", "Plate", "RemoteControl", "Statue", "TissueBox", "Vase", "Watch")  # fmt: skip
IN_DRAWERS = ("CreditCard", "KeyChain", "Pen", "Watch", "RemoteControl", "CellPhone", "Candle", "Pencil")


def furnish(plan: Plan) -> None:
    """Fills an empty living room."""
    rng = plan.rng
    fitting = fittings(plan)
    doors = [envelope.doorway(plan, plan.walls)]
    if rng.random() < 0.35:
        doors.append(envelope.doorway(plan, plan.walls))
    stand, inner = _television(plan, fitting)
    sofa = _sofa(plan, stand)
    tables = _around_sofa(plan, sofa)
    if not plan.passable():
        raise LayoutError("the sofa's group blocks the way")
    for door in filter(None, doors):
        envelope.switch(plan, door)
    dressing = "Curtains" if rng.random() < 0.45 else "Blinds" if rng.random() < 0.3 else ""
    for _ in range(int(rng.integers(1, 4))):
        envelope.window(plan, dressing=dressing, where="any" if rng.random() < 0.6 else "middle")
    dining = _dining(plan) if rng.random() < 0.7 else []
    storage = _storage(plan, fitting)
    _corners(plan)
    envelope.hang(plan, "Painting", int(rng.integers(1, 4)), over=sofa)
    envelope.ceiling_lamps(plan)
    clutter = Clutter(plan)
    clutter.offer(stand, sofa, *tables, *dining, *storage, *inner)
    clutter.offer(*of_type(plan, "ArmChair"))
    _small_things(plan, clutter, [*inner, *storage])


def of_type(plan: Plan, *kinds: str) -> list[Thing]:
    """The plan's things of the given types."""
    return [thing for thing in plan.things if thing.type in kinds]


def _television(plan: Plan, fitting: Fitting) -> tuple[Thing, list[Thing]]:
    """The television on a stand or dresser, at the middle of a wall."""
    rng = plan.rng
    long_enough = [w for w in plan.walls if w.length > 3.4]
    if rng.random() < 0.65:
        kind, size = (
            "TVStand",
            (float(rng.uniform(1.3, 1.9)), float(rng.uniform(0.42, 0.5)), float(rng.uniform(0.5, 0.68))),
        )
        options = {"doors": int(rng.random() < 0.4)}
    else:
        kind, size, options = "Dresser", (float(rng.uniform(1.4, 1.9)), 0.5, float(rng.uniform(0.62, 0.8))), {"rows": 2}
    pieces = chest(plan, kind, size, fitting, options, walls=long_enough, where="middle", tries=6)
    if not pieces:
        raise LayoutError("no wall for the television")
    stand = pieces[0]
    wide = min(priors.size(rng, plan.type, "Television")[0], size[0] - 0.1)
    screen_size = (wide, 0.2, wide * 0.66)
    at = (*stand.position[:2], stand.size[2] + 0.0005)
    plan.add("Television", at, stand.yaw, screen_size, inside=stand.name)
    return stand, pieces[1:]


def _facing(thing: Thing, ahead: float, aside: float, turn: float) -> tuple[tuple[float, float, float], float]:
    """The position `ahead` of a thing's center and `aside` to its right, and its yaw plus `turn`."""
    wall = Wall(thing.position[:2], right_of(thing.yaw), 1.0)
    x, y = wall.at(aside, ahead)
    return (x, y, 0.0), (thing.yaw + turn) % 360


def _sofa(plan: Plan, stand: Thing) -> Thing:
    """A sofa facing the television, back to the other wall or standing free with a way behind it."""
    rng = plan.rng
    width, depth, height = priors.size(rng, plan.type, "Sofa")
    size = (min(width, 2.4), min(depth, 0.98), min(height, 0.95))
    for distance in sorted(rng.uniform(2.0, 3.4, 8)):
        ahead = stand.size[1] / 2 + distance + size[1] / 2
        position, yaw = _facing(stand, ahead, 0.0, 180)
        box = box_of(position, size, yaw)
        behind = _behind(plan, box, yaw)
        if plan.fits(box) and (behind > 0.8 or behind < 0.3):
            if behind < 0.3:
                position, _ = _facing(stand, ahead + behind - 0.02, 0.0, 180)
            return plan.add("Sofa", position, yaw, size)
    raise LayoutError("no room for the sofa")


def _behind(plan: Plan, box: Box, yaw: float) -> float:
    """The distance from a box's back to the wall behind it, up to 0.9 m."""
    for distance in (0.02, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8):
        back = plan.front_of(box, yaw + 180, distance)
        if not plan.fits((*back[:2], 0.3, *back[3:5], 0.5), clear=False):
            return distance
    return 0.9


def _around_sofa(plan: Plan, sofa: Thing) -> list[Thing]:
    """The coffee table and rug before the sofa, side tables beside it, armchairs at an angle to it."""
    rng = plan.rng
    tables = []
    table_size = (
        min(float(rng.uniform(0.85, 1.2)), sofa.size[0] - 0.5),
        float(rng.uniform(0.5, 0.65)),
        float(rng.uniform(0.38, 0.46)),
    )
    gap = 0.45
    position, yaw = _facing(sofa, sofa.size[1] / 2 + gap + table_size[1] / 2, 0.0, 0)
    if plan.fits(box_of(position, table_size, yaw)):
        envelope.rug(plan, position[0], position[1], yaw, (sofa.size[0] + 0.2, table_size[1] + 1.3))
        tables.append(plan.add("CoffeeTable", position, yaw, table_size))
    sides = (1, -1)
    for side in sides:
        if rng.random() < 0.7:
            size = (float(rng.uniform(0.42, 0.55)), 0.42, float(rng.uniform(0.5, 0.62)))
            drawers = int(rng.integers(0, 3))
            aside = side * (sofa.size[0] / 2 + size[0] / 2 + 0.06)
            place, turn = _facing(sofa, (size[1] - sofa.size[1]) / 2, aside, 0)
            box = box_of(place, size, turn)
            if plan.fits(box) and plan.fits(plan.front_of(box, turn, 0.5)):
                checkpoint = plan.checkpoint()
                table = plan.add("SideTable", place, turn, size, options={"drawers": drawers})
                if drawers:
                    plan.keep_front(table, 0.5)
                if not plan.passable():
                    plan.revert(checkpoint)
                    continue
                tables += [table, *fill_cells(plan, table, {"handle": 1, "panel": 0})]
    for side in sides[: int(rng.integers(1, 3))]:
        width, depth, height = priors.size(rng, plan.type, "ArmChair")
        size = (min(width, 0.92), min(depth, 0.9), min(height, 0.95))
        aside = side * (sofa.size[0] / 2 + size[1] / 2 + 0.25)
        place, turn = _facing(sofa, sofa.size[1] / 2 + gap + table_size[1] / 2, aside, -90 * side)
        if plan.fits(box_of(place, size, turn)):
            checkpoint = plan.checkpoint()
            plan.add("ArmChair", place, turn, size)
            if not plan.passable():
                plan.revert(checkpoint)
    return tables


def _dining(plan: Plan) -> list[Thing]:
    """A dining table with chairs where the room has space left."""
    rng = plan.rng
    west, south, east, north = plan.bounds
    size = (float(rng.uniform(1.2, 1.7)), float(rng.uniform(0.8, 0.95)), 0.75)
    for _ in range(90):
        yaw = float(rng.choice([0, 90]))
        x, y = float(rng.uniform(west + 1.2, east - 1.2)), float(rng.uniform(south + 1.2, north - 1.2))
        around = box_of((x, y, 0.06), (size[0] + 1.0, size[1] + 1.0, 1.0), yaw)
        if plan.fits(around):
            checkpoint = plan.checkpoint()
            table = plan.add("DiningTable", (x, y, 0.0), yaw, size, options=legs(plan))
            seats(plan, table, "Chair", int(rng.integers(2, 7)))
            if plan.passable():
                return [table]
            plan.revert(checkpoint)
    return []


def _storage(plan: Plan, fitting: Fitting) -> list[Thing]:
    """Shelves and chests along the walls."""
    rng = plan.rng
    pieces: list[Thing] = []
    if rng.random() < 0.6:
        size = (float(rng.uniform(0.7, 1.1)), float(rng.uniform(0.28, 0.38)), float(rng.uniform(1.4, 2.0)))
        pieces += chest(plan, "ShelvingUnit", size, fitting)
    if rng.random() < 0.55 or not pieces:
        size = (float(rng.uniform(0.9, 1.5)), float(rng.uniform(0.42, 0.5)), float(rng.uniform(0.72, 0.95)))
        pieces += chest(plan, "Dresser", size, fitting, options={"rows": 3 if size[2] > 0.85 else 2})
    if rng.random() < 0.4:
        pieces += chest(plan, "SideTable", (float(rng.uniform(0.5, 0.9)), 0.36, 0.72), fitting, options={"drawers": 1})
    if rng.random() < 0.25:
        pieces += chest(plan, "Desk", (float(rng.uniform(1.2, 1.5)), 0.62, 0.76), fitting, options={"rows": 3})
    return pieces


def _corners(plan: Plan) -> None:
    """Single things on the floor along the walls."""
    rng = plan.rng
    plan.furnish("FloorLamp", (0.42, 0.42, float(rng.uniform(1.55, 1.8))), where="corner", away=0.03)
    if rng.random() < 0.85:
        plan.furnish("HousePlant", (0.45, 0.45, float(rng.uniform(0.8, 1.2))), where="corner", away=0.03)
    plan.furnish("GarbageCan", (0.32, 0.3, float(rng.uniform(0.4, 0.55))), away=0.02)
    if rng.random() < 0.8:
        add_lidded(plan, "Box", (0.44, 0.4, 0.3))
    for kind, chance in (
        ("Ottoman", 0.15),
        ("WateringCan", 0.4),
        ("Boots", 0.2),
        ("DogBed", 0.1),
        ("Safe", 0.1),
        ("RoomDecor", 0.1),
    ):
        if rng.random() < chance:
            size = priors.size_within(rng, plan.type, kind, (0.85, 0.7, 1.4))
            opens = kind == "Safe"
            plan.furnish(kind, size, away=0.02, front=FRONT if opens else 0.0, opens=opens)


def _small_things(plan: Plan, clutter: Clutter, inside: list[Thing]) -> None:
    rng = plan.rng
    for _ in range(int(rng.integers(1, 4))):
        clutter.put("Pillow", ("Sofa", "ArmChair"), max_coverage=0.7)
    clutter.put("Laptop", ("CoffeeTable", "Desk", "DiningTable", "SideTable"))
    clutter.put("DeskLamp", ("SideTable", "Desk", "Dresser"))
    clutter.put("RemoteControl", ("CoffeeTable", "TVStand", "Sofa"))
    clutter.scatter(SMALL, ("CoffeeTable", "DiningTable", "SideTable", "Dresser", "TVStand", "Shelf"), 0.8)
    for _ in range(int(rng.integers(1, 4))):
        kind = str(rng.choice(["Book", "Vase", "Statue", "Book", "HousePlant", "Candle", "Bowl"]))
        clutter.put(kind, ("Shelf", "ShelvingUnit"))
    clutter.fill([thing for thing in inside if thing.type in ("Drawer", "Cabinet")], IN_DRAWERS, 0.26)


TYPE = RoomType(
    furnish,
    width=(4.6, 6.2),
    depth=(5.6, 7.4),
    floors=(
        "planks#b98d5a",
        "planks#8c6240",
        "planks#d2ae7c",
        "carpet#a39a8c",
        "planks#a67c52",
        "carpet#8e94a0",
    ),
    walls=(
        "wall-0#e6dfd1",
        "wall-0#c9d3cf",
        "wall-1#e3dccb",
        "wall-0#d8cdbd",
        "wall-2#dcd6c9",
        "wall-5#d9c7b6",
        "wall-0#b9c4cc",
    ),
    min_positions=64,
    min_openables=5,
    either_way=True,
)
