"""A client's values become a handler's parameters, or the error that the client expects."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.thor import arguments as a
from scrubjay.thor.arguments import Argument, InvalidRequest, read

MOVE = (Argument("moveMagnitude", a.FLOAT, None), Argument("forceAction", a.BOOL, False))
CAMERA = (Argument("position", a.VECTOR), Argument("orthographicSize", a.FLOAT, None))
ORIGIN = {"x": 0, "y": 0, "z": 0}


def failure(given, arguments=CAMERA, name="AddThirdPartyCamera"):
    with pytest.raises(InvalidRequest) as caught:
        read(name, arguments, given, ignore_unknown=False)
    return caught.value


def test_defaults_and_snake_case():
    assert read("MoveAhead", MOVE, {"action": "MoveAhead", "sequenceId": 3}, False) == {
        "move_magnitude": None,
        "force_action": False,
    }
    assert read("MoveAhead", MOVE, {"moveMagnitude": 1}, False)["move_magnitude"] == 1.0


def test_null_means_not_given():
    assert read("MoveAhead", MOVE, {"forceAction": None}, False)["force_action"] is False
    assert failure({"position": None}).code == "MissingArguments"


def test_words_and_codes():
    unknown = failure({"position": ORIGIN, "z": 1})
    assert str(unknown).startswith("action: AddThirdPartyCamera has an invalid argument: z")
    assert unknown.code == "InvalidArgument"
    wrong = failure({"position": ORIGIN, "orthographicSize": ORIGIN})
    assert str(wrong).startswith("action: AddThirdPartyCamera has an invalid argument: orthographicSize")
    assert str(wrong).endswith("Cannot convert to: float")
    assert wrong.code == "InvalidArgument"
    missing = failure({})
    assert str(missing) == "action: AddThirdPartyCamera is missing the following arguments: position"
    assert missing.code == "MissingArguments"


def test_a_number_for_a_vector_fails_without_a_code():
    """The client's own tests expect a failed event here, not ValueError."""
    assert failure({"position": 5}).code is None
    assert failure({"position": {"x": 5}}).code == "InvalidArgument"


def test_what_comes_with_every_action_is_ignored():
    read("MoveAhead", MOVE, dict.fromkeys(a.EVERYWHERE, True), False)
    read("Initialize", MOVE, {"anything": 1}, True)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, "1", True, [1], {}])
def test_no_float(value):
    assert failure({"moveMagnitude": value}, MOVE).code == "InvalidArgument"


@pytest.mark.parametrize("value", [1.5, 2**31, -(2**40), math.nan, "3", False])
def test_no_int(value):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        a.INT.read(value)


def test_kinds():
    assert a.INT.read(3.0) == 3
    assert a.ROTATION.read(90) == {"y": 90.0}
    assert a.ROTATION.read({"y": 90, "x": None}) == {"y": 90.0}
    assert a.PARTIAL.read({"x": 1, "z": 2}) == {"x": 1.0, "z": 2.0}
    assert a.STRINGS.read(["a", "b"]) == ["a", "b"]
    assert a.BOOL.read(0) is False
    assert a.VECTORS.read([ORIGIN]) == [ORIGIN]
    with pytest.raises(ValueError):
        a.STRINGS.read("ab")


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=5,
)


@given(json)
def test_every_value_is_read_or_refused(value):
    for kind in (a.FLOAT, a.INT, a.BOOL, a.STRING, a.VECTOR, a.PARTIAL, a.ROTATION, a.FLOATS, a.VECTORS, a.RECORDS):
        try:
            read("A", (Argument("value", kind, None),), {"value": value}, False)
        except InvalidRequest as error:
            assert "value" in str(error)
