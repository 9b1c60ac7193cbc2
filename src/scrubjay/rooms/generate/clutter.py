"""Small things on and in large ones: on tops, on shelves, in drawers and cabinets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scrubjay.rooms import catalog
from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.generate import priors
from scrubjay.rooms.generate.layout import Plan, Size, box_of, rotated_extent
from scrubjay.rooms.room import GOALS, Thing

LIFT = 0.0005
"""Meters between a thing and its support."""
MAX_COVERAGE = 0.36
"""Fraction of a support that is covered at most, which leaves room for one more thing."""


@dataclass
class Area:
    """A support of a thing, in the room's coordinates."""

    owner: Thing
    middle: np.ndarray
    size: tuple[float, float]
    headroom: float
    covered: float = 0.0


class Clutter:
    """Puts small things on the supports of large ones."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.areas: list[Area] = []
        self.parents: dict[str, str] = {}

    def offer(self, *things: Thing | None) -> None:
        """Adds the supports of things."""
        for thing in things:
            if thing is None:
                continue
            shape = catalog.draw(thing.type, thing.size, np.random.default_rng(thing.seed), thing.style, thing.options)
            turn = rotation("z", -thing.yaw)
            self.parents[thing.name] = thing.inside
            for part in (shape, *shape.moving):
                for support in part.supports:
                    middle = np.asarray(thing.position) + turn @ support.position
                    self.areas.append(Area(thing, middle, support.size, support.headroom))

    def put(
        self,
        kind: str,
        on: tuple[str, ...],
        size=None,
        max_coverage: float = MAX_COVERAGE,
        tries: int = 6,
        **thing_args,
    ) -> Thing | None:
        """Puts a thing on one of the given things (names or types) where it fits; None if nowhere."""
        rng = self.plan.rng
        size = size or priors.size(rng, self.plan.type, kind)
        # An openable cannot move with a drawer.
        fitting = [
            area
            for area in self.areas
            if (area.owner.name in on or area.owner.type in on)
            and self._fits(area, size, max_coverage)
            and not (catalog.TYPES[kind].opens and area.owner.type == "Drawer")
        ]
        if not fitting:
            return None
        weights = np.sqrt([a.size[0] * a.size[1] for a in fitting])
        for _ in range(tries):
            area = fitting[int(rng.choice(len(fitting), p=weights / weights.sum()))]
            if thing := self._put(kind, area, size, **thing_args):
                return thing
        return None

    def _fits(self, area: Area, size: Size, max_coverage: float) -> bool:
        short, long = sorted(size[:2])
        fits = short < min(area.size) - 0.01 and long < max(area.size) - 0.01 and size[2] < area.headroom - 0.01
        return fits and area.covered + size[0] * size[1] < max_coverage * area.size[0] * area.size[1]

    def _put(self, kind: str, area: Area, size: Size, straight: bool = False, **thing_args) -> Thing | None:
        rng, is_round = self.plan.rng, catalog.TYPES[kind].round
        yaw = float(rng.uniform(0, 360)) if is_round else float(rng.normal(0, 0 if straight else 6))
        if not is_round and (size[0] > area.size[0] or (not straight and rng.random() < 0.3 and size[2] < 0.06)):
            yaw += 90
        width, depth = rotated_extent(size, yaw)
        slack = (np.array(area.size) - (width, depth)) / 2 - 0.006
        if slack.min() < 0:
            return None
        offset = rotation("z", -area.owner.yaw) @ np.array([*rng.uniform(-slack, slack), LIFT])
        return self._add(kind, area, tuple(area.middle + offset), area.owner.yaw + yaw, size, **thing_args)

    def place(self, kind: str, owner: Thing, size: Size, at: tuple[float, float], **thing_args) -> Thing | None:
        """Puts a thing on another's highest support, at (x, y) in that one's coordinates, if it fits."""
        area = max((a for a in self.areas if a.owner is owner), key=lambda a: a.middle[2], default=None)
        if area is None:
            return None
        x, y, _ = np.asarray(owner.position) + rotation("z", -owner.yaw) @ np.array([*at, 0.0])
        return self._add(kind, area, (x, y, area.middle[2] + LIFT), owner.yaw, size, **thing_args)

    def _add(
        self, kind: str, area: Area, position: tuple[float, ...], yaw: float, size: Size, **thing_args
    ) -> Thing | None:
        """Adds a thing to an area if it overlaps nothing but the area's owner and what that is in."""
        ancestors, name = [area.owner.name], area.owner.inside
        while name:
            ancestors.append(name)
            name = self.parents.get(name, "")
        if not self.plan.fits(box_of(position, size, yaw), -0.004, tuple(ancestors), clear=False):
            return None
        area.covered += size[0] * size[1]
        return self.plan.add(kind, position, yaw, size, inside=area.owner.name, **thing_args)

    def scatter(self, kinds: tuple[str, ...], fallback: tuple[str, ...], rate: float = 1.0) -> None:
        """Puts small things where the priors have them, as often as those do, or else on `fallback`."""
        rng = self.plan.rng
        owners = {area.owner.type for area in self.areas}
        for kind in kinds:
            if kind in GOALS or rng.random() > priors.share(self.plan.type, kind) * rate:
                continue
            prior = priors.of(self.plan.type, kind)
            for _ in range(int(rng.integers(prior.count[0], prior.count[2] + 1))):
                parents = [parent for parent in prior.on if parent in owners]
                weights = np.array([prior.on[parent] for parent in parents])
                on = (str(rng.choice(parents, p=weights / weights.sum())),) if parents else fallback
                if self.put(kind, on) is None:
                    self.put(kind, fallback)

    def fill(self, things: list[Thing], kinds: tuple[str, ...], share: float = 0.34, max_count: int = 2) -> None:
        """Puts 1 to `max_count` things of the kinds into about a `share` of the openables."""
        rng = self.plan.rng
        for thing in things:
            if rng.random() < share:
                for _ in range(int(rng.integers(1, max_count + 1))):
                    self.put(str(rng.choice(kinds)), (thing.name,), max_coverage=0.45)
