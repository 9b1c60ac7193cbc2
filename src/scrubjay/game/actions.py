"""The 219 actions of Cache, by name and number, and what each asks of the world.

Cells and modalities count from 1 in names, as in the paper, and from 0 in arrays: `OpenAt|1,7` is the uppermost row's
last cell. Choosing a place in perspective simulation is none of the 219: it is one decision over places.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from scrubjay.sim.cells import CELLS
from scrubjay.sim.world import HAND_MOVES, HAND_TURNS

NOTHING = -1
MODALITIES = ("on top", "contained in", "behind")
_CELLS = [(row, column) for row in range(CELLS) for column in range(CELLS)]


class Stage(IntEnum):
    """The stages of a game, in their order; OM runs inside OH."""

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
"""The paper's table: in which stages the actions are whose names begin so; the longest beginning counts."""


def _allowed() -> np.ndarray:
    allowed = np.zeros((len(Stage), len(NAMES)), bool)
    for number, name in enumerate(NAMES):
        kind = max((kind for kind in _STAGES_OF if name.startswith(kind)), key=len)
        allowed[list(_STAGES_OF[kind]), number] = True
    return allowed


ALLOWED = _allowed()
"""(5, 219): which actions a stage has; none in PS."""


def _asks(*names: str) -> np.ndarray:
    """For each action its place among some names, or -1; the last entry is for no action at all."""
    table = np.full(len(NAMES) + 1, NOTHING)
    for place, name in enumerate(names):
        table[NUMBERS[name]] = place
    return table


# What an action asks of the world, each (220,): a number for the world's method, or -1. Indexing with -1 asks nothing.
MOVE = _asks("MoveAhead", "MoveLeft", "MoveRight")
ROTATE = _asks("RotateLeft", "RotateRight")
STAND = _asks("Crouch", "Stand")
OPEN_CELL = _asks(*(name for name in NAMES if name.startswith("OpenAt")))
CLOSE = _asks("CloseObjects")
HAND_MOVE = _asks(*(name for name in NAMES if name.startswith("MoveHand")))
HAND_TURN = _asks(*(name for name in NAMES if name.startswith("RotateHand")))
DROP = _asks("DropObject")
PLACE_AT = _asks(*(name for name in NAMES if name.startswith("PlaceAt")))
"""Modality * 49 + row * 7 + column."""
PLACES = np.flatnonzero(PLACE_AT[:-1] != NOTHING)
"""And back, (147,): the number of the PlaceAt of a modality, row and column."""
READY = _asks("ReadyForSeeker")
CLAIM = _asks("ClaimVisible")


def action_index(name: str) -> int:
    """An action's number; ValueError names what is allowed."""
    if name not in NUMBERS:
        kinds = ", ".join(sorted({name.split("|")[0] for name in NAMES}))
        raise ValueError(f"unknown action {name!r}; actions are {kinds}, with cells from 1 to {CELLS} behind a bar")
    return NUMBERS[name]
