"""Furniture in groups: chests with drawers, tables with chairs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scrubjay.rooms.catalog import storage
from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.generate import priors
from scrubjay.rooms.generate.layout import FRONT, Fitting, Plan, Size, box_of
from scrubjay.rooms.room import Thing


def fittings(plan: Plan) -> Fitting:
    """The handles and panels that all drawers and cabinets of a room share."""
    return {"handle": int(plan.rng.integers(4)), "panel": int(plan.rng.integers(3))}


def fill_cells(plan: Plan, furniture: Thing, fitting: Fitting) -> list[Thing]:
    """Adds the drawers, cabinets or shelves of a piece of furniture."""
    turn, things = rotation("z", -furniture.yaw), []
    for kind, at, size in storage.cells(furniture.type, furniture.size, furniture.options):
        position = np.asarray(furniture.position) + turn @ np.asarray(at)
        options = {} if kind == "Shelf" else dict(fitting)
        if furniture.type != "SideTable" and kind == "Drawer":
            options["housing"] = 0.0
        if kind == "Cabinet":
            options["hinge"] = 1.0 if at[0] <= 0 else -1.0
        things.append(plan.add(kind, position, furniture.yaw, size, inside=furniture.name, options=options))
    return things


def chest(
    plan: Plan, kind: str, size: Size, fitting: Fitting, options: Mapping[str, float] | None = None, **place_args
) -> list[Thing]:
    """A piece with drawers at a wall, free floor in front: the piece, then its drawers; empty if it does not fit."""
    opens = bool(storage.cells(kind, size, options or {})) and kind != "ShelvingUnit"
    front = FRONT if opens else 0.5
    piece = plan.furnish(kind, size, front=front, opens=opens, options=options, **place_args)
    return [piece, *fill_cells(plan, piece, fitting)] if piece else []


def add_lidded(plan: Plan, kind: str, size: Size) -> Thing | None:
    """Adds a box or hamper near a wall, with space for its lid behind or its flaps beside it."""
    return plan.furnish(kind, size, away=0.16, beside=0.18 if kind == "Box" else 0.02, front=0.5, opens=True)


def legs(plan: Plan) -> dict[str, float]:
    """Options of a table with legs in its corners, clear of chairs."""
    return {"legs": int(plan.rng.integers(4)), "round": 0.0}


def seats(plan: Plan, table: Thing, kind: str, count: int, under: float = 0.42) -> list[Thing]:
    """Chairs or stools around a table, pushed a little under it, along its longer sides first."""
    rng = plan.rng
    width, depth, _ = table.size
    size = priors.size(rng, plan.type, kind)
    size = (min(size[0], 0.52), min(size[1], 0.56), min(size[2], 1.0) if kind == "Chair" else min(size[2], 0.74))
    tuck = under * min(size[1], depth / 2 - 0.08)
    sides = [(side, offset) for offset in ((-0.22, 0.22) if width > 1.4 else (0.0,)) for side in (0, 180)]
    sides += [(90, 0.0), (270, 0.0)] if depth > 0.78 else []
    alike = int(rng.integers(2**31))
    chairs = []
    for side, offset in sides[:count]:
        half = (depth if side in (0, 180) else width) / 2
        along = offset * width if side in (0, 180) else 0.0
        out = half + size[1] / 2 - tuck + float(rng.uniform(0, 0.05))
        local = rotation("z", -side) @ np.array([along * (1 if side == 0 else -1), out, 0])
        at = np.asarray(table.position) + rotation("z", -table.yaw) @ local
        yaw = table.yaw + side + 180 + float(rng.normal(0, 3))
        if plan.fits(box_of(tuple(at), size, yaw), 0.0, (table.name,)):
            chairs.append(plan.add(kind, at, yaw, size, seed=alike))
    return chairs
