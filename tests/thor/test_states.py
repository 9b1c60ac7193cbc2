"""Flags of objects, and what heat, cold and water do to them."""

import pytest

from scrubjay.rooms.ithor import objects
from scrubjay.thor.scene import ActionFailed
from scrubjay.thor.states import States


@pytest.fixture
def kitchen():
    records = dict(enumerate(objects("FloorPlan1")))
    things: dict[str, int] = {}
    for thing, record in records.items():
        things.setdefault(record["objectType"], thing)
    return States(records), things


def test_a_knob_turns_its_burner_on(kitchen):
    states, things = kitchen
    knob = things["StoveKnob"]
    states.toggle(knob, True, is_open=False)
    on = [thing for thing in range(100) if states.of(thing).get("isToggled")]
    assert len(on) == 2 and knob in on
    with pytest.raises(ActionFailed, match="already on"):
        states.toggle(knob, True, is_open=False)


def test_a_microwave_is_closed_when_on(kitchen):
    states, things = kitchen
    with pytest.raises(ActionFailed, match="must be closed"):
        states.toggle(things["Microwave"], True, is_open=True)


def test_what_cannot_be_does_not_become(kitchen):
    states, things = kitchen
    with pytest.raises(ActionFailed, match="not breakable"):
        states.change(things["Apple"], "breakable", "isBroken", True)
    with pytest.raises(ActionFailed, match="turned on"):
        states.toggle(things["Apple"], True, is_open=False)
    states.change(things["Apple"], "sliceable", "isSliced", True)
    with pytest.raises(ActionFailed, match="already True"):
        states.change(things["Apple"], "sliceable", "isSliced", True)
    assert states.of(things["Apple"]) == {"isSliced": True}


def test_heat_cooks_and_cold_cools(kitchen):
    states, things = kitchen
    potato, pan, fridge = things["Potato"], things["Pan"], things["Fridge"]
    states.toggle(things["StoveKnob"], True, is_open=False)
    burner = next(thing for thing in range(100) if states.of(thing).get("isToggled") and thing != things["StoveKnob"])
    states.settle({potato: [pan, burner]})
    assert states.of(potato) == {"temperature": "Hot", "isCooked": True}
    states.settle({potato: [fridge]})
    assert states.get(potato, "temperature") == "Cold"
    assert states.get(potato, "isCooked")


def test_a_running_faucet_washes_and_fills_what_is_in_the_sink(kitchen):
    states, things = kitchen
    mug, basin = things["Mug"], things["SinkBasin"]
    states.change(mug, "dirtyable", "isDirty", True)
    states.settle({mug: [basin]})
    assert states.get(mug, "isDirty")
    states.toggle(things["Faucet"], True, is_open=False)
    states.settle({mug: [basin]})
    assert states.of(mug) == {"isDirty": False, "isFilledWithLiquid": True, "fillLiquid": "water"}
    states.empty(mug)
    assert states.get(mug, "fillLiquid") is None
    with pytest.raises(ActionFailed, match="fillLiquid"):
        states.fill(mug, "lava")
    states.fill(mug, "coffee")
    assert states.get(mug, "fillLiquid") == "coffee"
