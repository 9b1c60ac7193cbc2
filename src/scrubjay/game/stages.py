"""Order, step limits and ends of the stages: which stage follows a step, and whether the game ends with it.

EM -> PS -> OH -> S, with an OM inside OH for each PlaceAt. `CacheGame` plays by `advance`; a `Record` derives the stage
of each of its actions from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, Stage

EM, PS, OH, OM, S = (int(stage) for stage in Stage)  # NumPy compares plain ints five times as fast as an IntEnum.
LIMITS = np.array([200, 1, 15, 50, 500])
"""Maximum steps of each stage, (5,)."""
SEEKER_STEPS = int(LIMITS[Stage.S])
"""The seeker's budget, and the steps that a failed search counts as."""


@dataclass(frozen=True)
class Transition:
    """What a step led to in B games, (B,) each; flags are bool."""

    stage: np.ndarray
    """The stage of the next step."""
    chose: np.ndarray
    """PS ended."""
    placing: np.ndarray
    """A PlaceAt succeeded: OH pauses and OM begins."""
    manipulated: np.ndarray
    """OM ended."""
    hidden: np.ndarray
    """OH ended."""
    out_of_time: np.ndarray
    """OH ended because it has no steps left."""
    finished: np.ndarray
    """The game ended."""
    ended: np.ndarray
    """A stage's episode ended; OH's does not when it pauses."""
    truncated: np.ndarray
    """It ended by its step limit alone. A last step that also ends its stage by the rules does not truncate it."""


def advance(
    stage: np.ndarray,
    last: np.ndarray,
    action: np.ndarray,
    success: np.ndarray,
    steps: np.ndarray,
    limits: np.ndarray,
) -> Transition:
    """Transitions of B games after actions (B,) in `stage` (B,), for games that end with the stage `last` (B,).

    steps (B, 5) counts the steps of each stage's current episode, this one included; limits (5,).
    """
    full = steps >= limits
    explored = (stage == EM) & full[:, EM]
    chose = (stage == PS) & full[:, PS]  # A hider that waits has taken no step.
    placing = (stage == OH) & success & (actions.PLACE_AT[action] != NOTHING)
    dropped = success & (actions.DROP[action] != NOTHING)
    manipulated = (stage == OM) & (dropped | full[:, OM])
    found = success & (actions.CLAIM[action] != NOTHING)
    sought = (stage == S) & (found | full[:, S])

    following = np.where(explored, PS, stage)
    following = np.where(placing, OM, following)
    following = np.where(chose & (last != PS) | manipulated & (last != OM), OH, following)

    # OH ends with ReadyForSeeker or at its step limit; a manipulation in progress ends first.
    ready = (stage == OH) & success & (actions.READY[action] != NOTHING)
    out_of_time = (following == OH) & full[:, OH]
    hidden = ready | out_of_time
    following = np.where(hidden & (last == S), S, following)

    finished = (
        explored & (last == EM)
        | chose & (last == PS)
        | hidden & (last == OH)
        | manipulated & (last == OM)
        | sought & (last == S)
    )
    # A manipulation begun with OH's last step ends OH too, but `truncated` is about the stage of the step.
    truncated = (
        explored
        | (stage == OH) & out_of_time & ~ready
        | manipulated & ~dropped
        | sought & ~found
    )  # fmt: skip
    return Transition(following, chose, placing, manipulated, hidden, out_of_time, finished,
                      ended=explored | chose | manipulated | hidden | sought, truncated=truncated)  # fmt: skip
