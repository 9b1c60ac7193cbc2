"""The room's envelope: doorways, windows with curtains and blinds, ceiling lamps, light switches, pictures."""

from __future__ import annotations

from scrubjay.rooms.generate import priors
from scrubjay.rooms.generate.layout import STEP_OVER, Plan, Size, Wall, box_of
from scrubjay.rooms.room import Thing

ON_WALL = 0.0015
DOORWAY_FRONT = 0.9


def doorway(plan: Plan, walls: list[Wall], where: str = "any") -> Thing | None:
    """A doorway with free floor in front of it."""
    width = float(plan.rng.uniform(0.88, 1.0))
    size = (width, 0.09, float(plan.rng.uniform(2.05, 2.15)))
    return plan.place_at_wall(
        "Doorway", size, walls, front=DOORWAY_FRONT, away=ON_WALL, where=where, opens=True, tries=40
    )


def switch(plan: Plan, door: Thing) -> None:
    """A light switch beside a doorway, on its wall."""
    wall, s = where_on(plan, door)
    size = priors.size(plan.rng, plan.type, "LightSwitch")
    for away in (0.22, 0.3, 0.45, 0.7):
        for side in (1, -1):
            at = s + side * (door.size[0] / 2 + away)
            if plan.fits_at_wall(wall, at, size, 1.22, away=ON_WALL):
                plan.add_at_wall("LightSwitch", wall, at, size, 1.22, away=ON_WALL)
                return
    plan.place_at_wall("LightSwitch", size, z=1.22, away=ON_WALL)


def where_on(plan: Plan, thing: Thing) -> tuple[Wall, float]:
    """The wall that a thing has its back to, and the thing's position along it."""

    def away(wall: Wall) -> float:
        x, y = thing.position[0] - wall.start[0], thing.position[1] - wall.start[1]
        along = x * wall.along[0] + y * wall.along[1]
        outside = max(-along, along - wall.length, 0.0)
        return abs(x * wall.inward[0] + y * wall.inward[1]) + outside + (0 if wall.yaw == thing.yaw else 100)

    wall = min(plan.walls, key=away)
    x, y = thing.position[0] - wall.start[0], thing.position[1] - wall.start[1]
    return wall, x * wall.along[0] + y * wall.along[1]


def window(plan: Plan, walls=None, size=None, z=None, where="any", dressing: str = "") -> Thing | None:
    """A window, with Curtains or Blinds as `dressing` if they fit."""
    rng = plan.rng
    size = size or (float(rng.uniform(0.95, 1.6)), 0.07, float(rng.uniform(1.1, 1.4)))
    z = float(rng.uniform(0.85, 1.0)) if z is None else z
    pane = plan.place_at_wall("Window", size, walls, z=z, away=ON_WALL, where=where, tries=16)
    if pane and dressing:
        dress(plan, pane, dressing)
    return pane


def dress(plan: Plan, pane: Thing, dressing: str) -> Thing | None:
    """Hangs curtains or blinds before a window."""
    wall, s = where_on(plan, pane)
    top = pane.position[2] + pane.size[2]
    if dressing == "Curtains":
        bottom = 0.06 if plan.rng.random() < 0.6 else pane.position[2] - 0.15
        size = (min(pane.size[0] * 1.55, wall.length - 0.1), 0.11, min(top + 0.18, plan.height - 0.05) - bottom)
    else:
        bottom, size = pane.position[2] + 0.01, (pane.size[0] - 0.02, 0.04, pane.size[2] - 0.02)
    s = min(max(s, size[0] / 2 + 0.02), wall.length - size[0] / 2 - 0.02)
    away = ON_WALL + pane.size[1] + 0.004
    box = box_of(plan.position_at_wall(wall, s, size, bottom, away), size, wall.yaw)
    if not plan.fits(box):
        return None
    return plan.add_at_wall(dressing, wall, s, size, bottom, away=away, style={"fabric": plan.style["curtain"]})


def ceiling_lamps(plan: Plan, kind: str = "CeilingLamp") -> None:
    """One lamp in the middle of the room, two in a long one."""
    west, south, east, north = plan.bounds
    size = (0.45, 0.45, float(plan.rng.uniform(0.18, 0.32)))
    long = max(east - west, north - south) > 6.2
    for part in (-0.25, 0.25) if long else (0.0,):
        along_x = east - west > north - south
        x, y = (part * (east - west), 0.0) if along_x else (0.0, part * (north - south))
        box = box_of((x, y, plan.height - size[2] - 0.002), size, 0)
        if plan.fits(box):
            plan.add(kind, (x, y, plan.height - size[2] - 0.002), 0, size)


def hang(plan: Plan, kind: str, count: int, z: tuple[float, float] = (1.25, 1.45), over=None, size=None) -> list[Thing]:
    """Hangs pictures, mirrors and the like on free wall, the first one over a thing if it fits."""
    hung = []
    for number in range(count):
        own = size or _picture_size(plan, kind)
        height = float(plan.rng.uniform(*z))
        if over is not None and number == 0:
            wall, s = where_on(plan, over)
            height = max(height, over.position[2] + over.size[2] + 0.12)
            if height + own[2] < plan.height - 0.08 and plan.fits_at_wall(wall, s, own, height, away=ON_WALL):
                hung.append(plan.add_at_wall(kind, wall, s, own, height, away=ON_WALL))
                continue
        if thing := plan.place_at_wall(kind, own, z=min(height, plan.height - own[2] - 0.1), away=ON_WALL, tries=20):
            hung.append(thing)
    return hung


def _picture_size(plan: Plan, kind: str) -> Size:
    width, _, height = priors.size(plan.rng, plan.type, kind)
    return (min(max(width, 0.3), 1.3), 0.035, min(max(height, 0.3), 1.0))


def rug(plan: Plan, x: float, y: float, yaw: float, size: tuple[float, float]) -> Thing | None:
    """A rug under furniture, clear of the walls."""
    west, south, east, north = plan.bounds
    kind_size = (*size, 0.0045)
    box = box_of((x, y, 0.0), kind_size, yaw)
    if box[0] < west + 0.1 or box[1] < south + 0.1 or box[3] > east - 0.1 or box[4] > north - 0.1:
        return None
    low = [b for b in plan.occupied if b[2] < STEP_OVER and (b[5] < STEP_OVER or b[2] < 0)]
    if any(box[0] < b[3] and box[3] > b[0] and box[1] < b[4] and box[4] > b[1] for b in low):
        return None
    return plan.add("Rug", (x, y, 0.0005), yaw, kind_size, style={"fabric": plan.style["rug"]})
