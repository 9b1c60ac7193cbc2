"""The 219 actions of Cache, by name and number, the stages that have them, and what each asks of the world.

Rows and columns count from 1 in names, as in the paper, and from 0 in arrays: `OpenAt|1,7` is the last cell of the top
row. A PlaceAt has a target: a modality, a row and a column. Perspective simulation's choice of a place is not among the
219: it is one decision over places.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from scrubjay.sim.cells import CELLS
from scrubjay.sim.world import HAND_MOVES, HAND_TURNS

if TYPE_CHECKING:
    import torch

NOTHING = -1
MODALITIES = ("on top", "contained in", "behind")
_CELLS = [(row, column) for row in range(CELLS) for column in range(CELLS)]


class Stage(IntEnum):
    """The stages of a game, in order; OM runs inside OH."""

    EM = 0
    PS = 1
    OH = 2
    OM = 3
    S = 4


def _names() -> tuple[str, ...]:
    return (
        *("MoveAhead", "MoveLeft", "MoveRight", "RotateLeft", "RotateRight", "Stand", "Crouch"),
        *(f"OpenAt|{row + 1},{column + 1}" for row, column in _CELLS),
        "CloseObjects",
        *(f"MoveHand{move.capitalize()}" for move in HAND_MOVES),
        *(f"RotateHand|{turn}" for turn in HAND_TURNS),
        "DropObject",
        *(f"PlaceAt|{m},{row + 1},{column + 1}" for m in range(len(MODALITIES)) for row, column in _CELLS),
        "ReadyForSeeker",
        "ClaimVisible",
    )


NAMES = _names()
NUMBERS = {name: number for number, name in enumerate(NAMES)}

_STAGES_OF = {
    "Move": (Stage.EM, Stage.S),
    "Rotate": (Stage.EM, Stage.S),
    "Stand": (Stage.EM, Stage.OH, Stage.S),
    "Crouch": (Stage.EM, Stage.OH, Stage.S),
    "OpenAt": (Stage.EM, Stage.OH, Stage.OM, Stage.S),
    "CloseObjects": (Stage.EM, Stage.OH, Stage.S),
    "MoveHand": (Stage.OM,),
    "RotateHand": (Stage.OM,),
    "DropObject": (Stage.OM,),
    "PlaceAt": (Stage.OH,),
    "ReadyForSeeker": (Stage.OH,),
    "ClaimVisible": (Stage.S,),
}
"""The paper's table of stages, by the prefix of an action's name; the longest prefix counts."""


def _allowed() -> np.ndarray:
    allowed = np.zeros((len(Stage), len(NAMES)), bool)
    for number, name in enumerate(NAMES):
        kind = max((kind for kind in _STAGES_OF if name.startswith(kind)), key=len)
        allowed[list(_STAGES_OF[kind]), number] = True
    return allowed


ALLOWED = _allowed()
"""(5, 219) bool: the actions of each stage; PS has none."""


def _argument(*names: str) -> np.ndarray:
    """(220,): for each action its index in `names`, or -1. The last entry is -1, so that action -1 maps to -1."""
    table = np.full(len(NAMES) + 1, NOTHING)
    for index, name in enumerate(names):
        table[NUMBERS[name]] = index
    return table


# What each action asks of the world, (220,) each: the argument of the world's method, or -1. Action -1 asks nothing.
MOVE = _argument("MoveAhead", "MoveLeft", "MoveRight")
ROTATE = _argument("RotateLeft", "RotateRight")
STAND = _argument("Crouch", "Stand")
OPEN_CELL = _argument(*(name for name in NAMES if name.startswith("OpenAt")))
CLOSE = _argument("CloseObjects")
HAND_MOVE = _argument(*(name for name in NAMES if name.startswith("MoveHand")))
HAND_TURN = _argument(*(name for name in NAMES if name.startswith("RotateHand")))
DROP = _argument("DropObject")
PLACE_AT = _argument(*(name for name in NAMES if name.startswith("PlaceAt")))
"""The target index of each PlaceAt."""
PLACE_ACTIONS = np.flatnonzero(PLACE_AT[:-1] != NOTHING)
"""(147,): the inverse, the PlaceAt of each target index."""
READY = _argument("ReadyForSeeker")
CLAIM = _argument("ClaimVisible")

Index = TypeVar("Index", int, np.ndarray, "torch.Tensor")


def target_index(modality: Index, row: Index, column: Index) -> Index:
    """The index of PlaceAt's targets, 0 to 146, in the order of its actions; for ints, arrays and tensors."""
    return (modality * CELLS + row) * CELLS + column


def target_of(index: Index) -> tuple[Index, Index, Index]:
    """Modality, row and column of target indices; undefined, but within range, where an index is -1."""
    return index // CELLS**2 % len(MODALITIES), index // CELLS % CELLS, index % CELLS


def action_index(name: str) -> int:
    """An action's number; ValueError names the kinds of actions."""
    if name not in NUMBERS:
        kinds = ", ".join(sorted({name.split("|")[0] for name in NAMES}))
        raise ValueError(f"unknown action {name!r}; actions are {kinds}, with cells from 1 to {CELLS} behind a bar")
    return NUMBERS[name]
