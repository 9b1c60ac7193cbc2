"""States of objects that change metadata only: on, broken, sliced, dirty, cooked, filled, used up, warm.

Nothing of it is drawn or simulated. Heat, cold and water follow from where objects are whenever something changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scrubjay.thor.scene import ActionFailed

CLOSED_WHEN_ON = ("Microwave",)
"""Types that turn on only when closed, and open only when off."""
LIQUIDS = ("water", "coffee", "wine")
BASINS = ("SinkBasin", "BathtubBasin", "Sink", "Bathtub")
COFFEE = ("Mug",)
"""What a coffee machine fills."""

Record = dict[str, Any]


class States:
    """What changed of the objects' records since the scene was made."""

    def __init__(self, records: Mapping[int, Record]) -> None:
        self._records = records
        self._things = {record["objectId"]: thing for thing, record in records.items()}
        self._changes: dict[int, Record] = {}

    def of(self, thing: int) -> Record:
        """The changed fields of a thing's record."""
        return self._changes.get(thing, {})

    def get(self, thing: int, field: str) -> Any:
        """A field's value now."""
        return self.of(thing).get(field, self._records[thing][field])

    def set(self, thing: int, **fields: Any) -> None:
        """Changes fields of a thing's record."""
        self._changes.setdefault(thing, {}).update(fields)

    def toggle(self, thing: int, on: bool, is_open: bool) -> None:
        """Turns a thing on or off, and what it controls."""
        kind, name = self._records[thing]["objectType"], self._records[thing]["objectId"]
        if not self._records[thing]["toggleable"]:
            raise ActionFailed(f"{name} cannot be turned on or off")
        if self.get(thing, "isToggled") == on:
            raise ActionFailed(f"{name} is already {'on' if on else 'off'}")
        if on and kind in CLOSED_WHEN_ON and is_open:
            raise ActionFailed(f"{name} must be closed to be turned on")
        for one in (thing, *(self._things[name] for name in self._records[thing]["controlledObjects"] or ())):
            self.set(one, isToggled=on)

    def change(self, thing: int, able: str, state: str, to: bool) -> None:
        """Sets a flag `state` of a thing whose record allows it by a flag `able`; fails if it is set already."""
        name = self._records[thing]["objectId"]
        if not self._records[thing][able]:
            raise ActionFailed(f"{name} is not {able}")
        if self.get(thing, state) == to:
            raise ActionFailed(f"{state} of {name} is already {to}")
        self.set(thing, **{state: to})

    def fill(self, thing: int, liquid: str) -> None:
        """Fills a thing."""
        if liquid not in LIQUIDS:
            raise ActionFailed(f"fillLiquid is one of {', '.join(LIQUIDS)}, not {liquid!r}")
        self.change(thing, "canFillWithLiquid", "isFilledWithLiquid", True)
        self.set(thing, fillLiquid=liquid)

    def empty(self, thing: int) -> None:
        """Pours out what a thing is filled with."""
        self.change(thing, "canFillWithLiquid", "isFilledWithLiquid", False)
        self.set(thing, fillLiquid=None)

    def settle(self, parents: Mapping[int, Sequence[int]]) -> None:
        """Warms, cools, cooks, washes and fills things by what they are in or on, the nearest first."""
        running = any(
            record["objectType"] == "Faucet" and self.get(thing, "isToggled") for thing, record in self._records.items()
        )
        for thing, within in parents.items():
            for parent in within:
                if parent in self._records:
                    self._affect(thing, parent, running)

    def _affect(self, thing: int, parent: int, water_runs: bool) -> None:
        record, above = self._records[thing], self._records[parent]
        if above["isHeatSource"] and self.get(parent, "isToggled"):
            self.set(thing, temperature="Hot")
            if record["cookable"]:
                self.set(thing, isCooked=True)
        if above["isColdSource"]:
            self.set(thing, temperature="Cold")
        if above["objectType"] == "CoffeeMachine" and self.get(parent, "isToggled") and record["objectType"] in COFFEE:
            self.set(thing, isFilledWithLiquid=True, fillLiquid="coffee")
        if above["objectType"] in BASINS and water_runs:
            if record["dirtyable"]:
                self.set(thing, isDirty=False)
            if record["canFillWithLiquid"] and not self.get(thing, "isFilledWithLiquid"):
                self.set(thing, isFilledWithLiquid=True, fillLiquid="water")
