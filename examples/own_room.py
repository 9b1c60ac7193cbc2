"""A room of your own: take a generated one, rearrange it, save it, and walk in it."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import scrubjay

room = scrubjay.make_room("bedroom-7")
print(f"{room.scene}: {len(room.things)} things, among them {len(room.of_type('Drawer'))} drawers")

# Rooms are plain data: keep everything but the chairs, and add a box to hide things in.
west, south, east, north = room.bounds
box = scrubjay.Thing("Box_mine", "Box", ((west + east) / 2, (south + north) / 2, 0.0), 0, (0.4, 0.3, 0.3))
things = (*(thing for thing in room.things if thing.type not in ("Chair", "ArmChair")), box)
room = replace(room, scene="my bedroom", things=things)

scrubjay.save_room(room, "my_bedroom.json")
room = scrubjay.load_room("my_bedroom.json")  # The file can be edited by hand; errors name the field.

with scrubjay.World([room], size=112) as world:
    steps = [bool(world.move(np.array([0]))[0]) for _ in range(5)]
    print(f"walked {sum(steps)} of {len(steps)} steps; saved in {Path('my_bedroom.json').resolve().name}")

record = scrubjay.play("possible", "random", room, "Bread", size=112, limits=(10, 1, 5, 20, 20))
print(f"a game in it took {len(record.actions)} steps")
