"""Colors of segmentation pictures."""

import numpy as np

from scrubjay.rooms.ithor import FLOOR_PLANS, objects
from scrubjay.thor.colors import BACKGROUND, Colors

NAMES, TYPES = ["Apple|+00.10|+00.90|+00.20", "Apple|+01.10|+00.90|+00.20", "Wall"], ["Apple", "Apple", "Wall"]


def test_ids_and_types_have_colors_of_their_own():
    listing = {row["name"]: tuple(row["color"]) for row in Colors(NAMES, TYPES).listing}
    assert set(listing) == {*NAMES, "Apple"}
    assert len(set(listing.values())) == len(listing)
    assert BACKGROUND not in listing.values()


def test_pictures_are_opaque_colors_of_the_list():
    colors = Colors(NAMES, TYPES)
    listing = {row["name"]: row["color"] for row in colors.listing}
    things = np.array([[0, 1, 2], [-1, 7, 0]], np.int16)
    ids, classes = colors.ids(things), colors.classes(things)
    assert ids.shape == classes.shape == (2, 3, 4)
    assert ids.dtype == np.uint8
    assert ids[0].tolist() == [[*listing[name], 255] for name in NAMES]
    assert classes[0].tolist() == [[*listing[kind], 255] for kind in TYPES]
    assert ids[1, :2].tolist() == [[0, 0, 0, 255]] * 2


def test_a_type_has_the_same_color_in_every_room():
    seen: dict[str, list[int]] = {}
    for scene in FLOOR_PLANS[::10]:
        records = objects(scene)
        colors = Colors([r["objectId"] for r in records], [r["objectType"] for r in records])
        for row in colors.listing:
            if "|" not in row["name"]:
                assert seen.setdefault(row["name"], row["color"]) == row["color"]
