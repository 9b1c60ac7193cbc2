"""Which object types an image shows, as AI2-THOR's `visible` would say: the labels of the classification baseline.

A thing is visible if the image shows at least ten of its pixels and the nearest is within reach: 1.5 m from the agent's
vertical axis. A type is if any of its things is. Labels are of the image as rendered: augmentation may cut off an edge.
"""

from __future__ import annotations

import numpy as np
import torch

from scrubjay.rooms.room import GOALS
from scrubjay.sim import cells
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.pose import REACH, cameras
from scrubjay.sim.render.base import View

CLASSES: tuple[str, ...] = (
    "AlarmClock", "Apple", "ArmChair", "Bathtub", "Bed", "Blinds", "Book", "Bottle", "Bowl", "Box", "Bread",
    "ButterKnife", "CD", "Cabinet", "Candle", "CeilingLamp", "CellPhone", "Chair", "Cloth", "CoffeeMachine",
    "CoffeeTable", "CounterTop", "CreditCard", "Cup", "Curtains", "Desk", "DeskLamp", "DiningTable", "DishSponge",
    "Dishwasher", "Drawer", "Dresser", "Egg", "Faucet", "FloorLamp", "Fork", "Fridge", "GarbageCan", "HandTowel",
    "HandTowelHolder", "HousePlant", "KeyChain", "Knife", "Ladle", "Laptop", "LaundryHamper", "Lettuce",
    "LightSwitch", "Microwave", "Mirror", "Mug", "Oven", "Painting", "Pan", "PaperTowelRoll", "Pen", "Pencil",
    "PepperShaker", "Pillow", "Plate", "Plunger", "Pot", "Potato", "RemoteControl", "Rug", "SaltShaker",
    "ScrubBrush", "Shelf", "ShelvingUnit", "ShowerCurtain", "ShowerDoor", "ShowerGlass", "ShowerHead", "SideTable",
    "Sink", "SinkBasin", "SoapBar", "SoapBottle", "Sofa", "Spatula", "Spoon", "SprayBottle", "Statue", "Stool",
    "StoveBurner", "StoveKnob", "TVStand", "Television", "TennisRacket", "TissueBox", "Toaster", "Toilet",
    "ToiletPaper", "ToiletPaperHanger", "Tomato", "Towel", "TowelHolder", "Vase", "Watch", "WateringCan", "Window",
)  # fmt: skip
"""The paper's number of types, 101: the five goal objects, and what at least nine of the 80 train rooms have, but for
their shell. Weights are trained in this order: never change it."""
MIN_PIXELS = 10
"""Pixels of images of 224 x 224 that show a visible thing."""


class ClassLabels:
    """Labels the views of a world's agents, on the renderer's device, without waiting for it."""

    def __init__(self, world: BaseWorld, device: str | torch.device = "cpu") -> None:
        things = max(len(room.things) for room in world.rooms)
        # The last column stands for pixels without a thing; what is no class has the number after the last.
        table = np.full((len(world.rooms), things + 1), len(CLASSES))
        for row, room in zip(table, world.rooms, strict=True):
            types = [*(thing.type for thing in room.room.things), *GOALS]
            row[: len(types)] = [CLASSES.index(kind) if kind in CLASSES else len(CLASSES) for kind in types]
        self._class_of = torch.from_numpy(table[world.room_of]).to(device)
        """(B, things + 1): the class of each thing."""
        self._spread = torch.from_numpy(horizontal_spread(world.size)).to(device)
        every = cells.reference_pixels(np.arange(world.size**2 + 1), world.size)
        self._min_pixels = int(np.searchsorted(every, MIN_PIXELS))

    def __call__(self, view: View) -> torch.Tensor:
        """The types that are visible in a view of all worlds, with ids and depth: (B, 101) bool."""
        ids, things = view.ids, self._class_of.shape[1]
        near = view.depth * self._spread <= REACH
        # Two counts for each thing, of pixels out of reach and within. Integers: their sums depend on no order.
        number = torch.where(ids < 0, things - 1, ids) + things * near.to(ids.dtype)
        number = number.long().flatten(1)
        counts = torch.zeros((len(ids), 2 * things), dtype=torch.int32, device=ids.device)
        counts.scatter_add_(1, number, torch.ones_like(number, dtype=torch.int32))
        far, near = counts.unflatten(1, (2, things)).unbind(1)
        visible = (far + near >= self._min_pixels) & (near > 0)
        shown = torch.zeros((len(ids), len(CLASSES) + 1), dtype=torch.int32, device=ids.device)
        return shown.scatter_add_(1, self._class_of, visible.int())[:, :-1] > 0


def horizontal_spread(size: int) -> np.ndarray:
    """How far a pixel of depth 1 is from the agent's vertical axis, (size, size) float32.

    The same for all poses: the camera is on that axis and its pitch is fixed.
    """
    _, matrix = cameras(np.zeros(2), np.array(0.0), np.array(True))
    x = (np.arange(size) + 0.5) / size * 2 - 1
    rays = np.stack([*np.meshgrid(x, -x), -np.ones((size, size))], -1)
    return np.linalg.norm((rays @ matrix.T)[..., :2], axis=-1).astype(np.float32)
