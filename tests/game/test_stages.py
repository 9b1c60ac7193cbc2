"""The order of the stages, on steps written by hand."""

import numpy as np
import pytest

from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.stages import LIMITS, advance

EM, PS, OH, OM, S = Stage


def after(stage: Stage, action: str = "", success: bool = True, last: Stage = S, **steps: int):
    """The transition of one game whose stages have had these steps, this one included."""
    count = np.array([[steps.get(each.name, 0) for each in Stage]])
    action_number = np.array([action_index(action) if action else NOTHING])
    return advance(np.array([stage]), np.array([last]), action_number, np.array([success]), count, LIMITS)


@pytest.mark.parametrize(
    ("transition", "following", "ended"),
    [
        (after(EM, "MoveAhead", EM=199), EM, False),
        (after(EM, "MoveAhead", EM=200), PS, True),
        (after(EM, "MoveAhead", False, EM=200), PS, True),
        (after(PS, PS=1), OH, True),
        (after(OH, "Crouch", OH=14), OH, False),
        (after(OH, "PlaceAt|0,1,1", OH=3), OM, False),
        (after(OH, "PlaceAt|0,1,1", False, OH=3), OH, False),
        (after(OH, "PlaceAt|0,1,1", OH=15), OM, False),
        (after(OH, "ReadyForSeeker", OH=3), S, True),
        (after(OH, "ReadyForSeeker", False, OH=3), OH, False),
        (after(OH, "Crouch", OH=15), S, True),
        (after(OM, "MoveHandUp", OM=49, OH=3), OM, False),
        (after(OM, "MoveHandUp", OM=50, OH=3), OH, True),
        (after(OM, "DropObject", OM=2, OH=3), OH, True),
        (after(OM, "DropObject", False, OM=2, OH=3), OM, False),
        (after(OM, "DropObject", OM=2, OH=15), S, True),
        (after(S, "ClaimVisible", False, S=499), S, False),
    ],
)
def test_stages_follow_each_other(transition, following, ended):
    assert transition.stage.tolist() == [following] and transition.ended.tolist() == [ended]
    assert not transition.finished[0]


@pytest.mark.parametrize(
    ("transition", "truncated"),
    [
        (after(EM, "MoveAhead", EM=199), False),
        (after(EM, "MoveAhead", EM=200), True),
        (after(PS, PS=1), False),
        (after(OH, "Crouch", OH=15), True),
        (after(OH, "ReadyForSeeker", OH=15), False),
        (after(OH, "ReadyForSeeker", False, OH=15), True),
        (after(OH, "PlaceAt|0,1,1", OH=15), False),
        (after(OM, "MoveHandUp", OM=50, OH=3), True),
        (after(OM, "DropObject", OM=50, OH=3), False),
        (after(OM, "DropObject", False, OM=50, OH=3), True),
        (after(OM, "DropObject", OM=2, OH=15), False),
        (after(S, "MoveAhead", S=500), True),
        (after(S, "ClaimVisible", S=500), False),
        (after(S, "ClaimVisible", False, S=500), True),
    ],
)
def test_a_step_limit_alone_truncates(transition, truncated):
    assert transition.truncated.tolist() == [truncated]
    assert transition.ended[0] or not truncated


@pytest.mark.parametrize(
    "transition",
    [
        after(EM, "MoveAhead", last=EM, EM=200),
        after(PS, last=PS, PS=1),
        after(OH, "ReadyForSeeker", last=OH, OH=2),
        after(OH, "Crouch", last=OH, OH=15),
        after(OM, "DropObject", last=OH, OM=2, OH=15),
        after(OM, "DropObject", last=OM, OM=2),
        after(OM, "MoveHandUp", last=OM, OM=50),
        after(S, "ClaimVisible", S=3),
        after(S, "MoveAhead", S=500),
    ],
)
def test_games_end_with_their_last_stage(transition):
    assert transition.finished[0] and transition.ended[0]
