"""What kind of place a hider chose, from the record of its game."""

from __future__ import annotations

import numpy as np

from scrubjay.game.actions import MODALITIES, Stage
from scrubjay.game.record import Record

DROPPED = "dropped"
"""The kind of a hiding whose object was never placed at a target."""
KINDS = (*MODALITIES, DROPPED)


def kind_of(record: Record) -> str:
    """The modality in which the object was placed, or `DROPPED`."""
    stages = [*record.stages(), None]
    # A PlaceAt that is allowed takes the object into the hand: its manipulation begins with the next step.
    began = [n for n, stage in enumerate(stages[1:]) if stage == Stage.OM and stages[n] == Stage.OH]
    for number, (_, placed) in zip(began, record.hits, strict=True):
        if placed:
            modality, _, _ = record.actions[number].partition("|")[2].split(",")
            return MODALITIES[int(modality)]
    return DROPPED


def meters_from_start(record: Record) -> float:
    """The distance on the floor from the start of hider and seeker to the hidden object."""
    assert record.hidden is not None
    return float(np.linalg.norm(np.array(record.hidden["pose"][:2]) - record.start[:2]))


def path_of_stage(record: Record, *stages: Stage) -> np.ndarray:
    """The places (n, 4) after each step of these stages, as in `Record.places`."""
    chosen = np.isin(np.array(record.stages(), int), stages)
    return np.array(record.places, int).reshape(-1, 4)[chosen]
