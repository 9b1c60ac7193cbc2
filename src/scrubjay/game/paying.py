"""What each step of B games earns: the rewards of `rewards.py`, from the `StepResult` of a step.

A step is paid by its own stage (`rewards_of`). A PlaceAt alone is judged later: the step that begins its manipulation
earns nothing, and all that the PlaceAt earns comes with the step that ends the manipulation (`placement`), beside what
that step earns the manipulator. Only what is known when OH is over is left out, the seeker's percentile: `oh_final`
and `oh_percentile` give it.
"""

from __future__ import annotations

import numpy as np

from scrubjay.game import actions, rewards
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import StepResult
from scrubjay.game.rewards import Terms, total

CERTAIN = 1.0
"""The manipulator's probability of a success that nobody doubted: it makes the bonus for difficulty smallest."""


def rewards_of(outcome: StepResult, hide: np.ndarray | float = 0.0) -> np.ndarray:
    """What a step earns (B,) in the stage it was taken in; `hide` is what `em_hide` gives. The choice of PS is unpaid.

    What a manipulation's end earns the PlaceAt that began it is `placement`'s.
    """
    stages = outcome.stage
    paid = np.zeros(len(stages))
    for stage, terms_of in ((Stage.OH, oh), (Stage.OM, om), (Stage.S, s)):
        if (stages == stage).any():
            paid = np.where(stages == stage, total(terms_of(outcome)), paid)
    if (stages == Stage.EM).any():
        paid = np.where(stages == Stage.EM, total(em(outcome, hide)), paid)
    return paid


def em(outcome: StepResult, hide: np.ndarray | float = 0.0) -> Terms:
    """Terms (B,) of steps of E&M; of no meaning in games at other stages."""
    news = outcome.news
    return rewards.em_terms(
        success=outcome.success,
        open_at=_is(outcome, actions.OPEN_CELL),
        extrap_before=news.extrap_before,
        extrap_after=news.extrap_after,
        new_opened=news.opened,
        new_place=news.place,
        hide=hide,
    )


def oh(outcome: StepResult) -> Terms:
    """Terms (B,) of steps of OH, 0 for a PlaceAt that begins a manipulation; of no meaning in games at other stages."""
    place_at = _is(outcome, actions.PLACE_AT)
    terms = rewards.oh_terms(
        success=outcome.success,
        open_at=_is(outcome, actions.OPEN_CELL),
        place_at=place_at,
        ready=_is(outcome, actions.READY),
        new_opened=outcome.news.opened,
        placed_before=outcome.placed_before,
        probability=CERTAIN,
        final=np.zeros_like(place_at),
        percentile=0.0,
    )
    return {name: np.where(place_at & outcome.success, 0.0, term) for name, term in terms.items()}


def placement(outcome: StepResult, probability: np.ndarray | float = CERTAIN) -> Terms:
    """Terms (B,) of the PlaceAt whose manipulations end with this step, in any game; 0 elsewhere.

    probability is the manipulator's for the PlaceAt. A manipulation that was dealt alone has no PlaceAt to be paid.
    """
    over = (outcome.stage == Stage.OM) & outcome.ended
    none = np.zeros_like(over)
    # No manipulation begins after one that succeeded, so that none of them is a PlaceAt again.
    terms = rewards.oh_terms(
        success=outcome.placed, open_at=none, place_at=over, ready=none, new_opened=none, placed_before=none,
        probability=probability, final=none, percentile=0.0,
    )  # fmt: skip
    return {name: np.where(over, term, 0.0) for name, term in terms.items()}


def om(outcome: StepResult) -> Terms:
    """Terms (B,) of steps of OM; of no meaning in games at other stages."""
    return rewards.om_terms(
        success=outcome.success,
        open_at=_is(outcome, actions.OPEN_CELL),
        drop=_is(outcome, actions.DROP),
        new_opened=outcome.news.opened,
        last=outcome.full,
        hit=outcome.counts,
        target=outcome.target,
    )


def s(outcome: StepResult) -> Terms:
    """Terms (B,) of steps of S; of no meaning in games at other stages."""
    return rewards.s_terms(
        success=outcome.success,
        claim=_is(outcome, actions.CLAIM),
        visible=outcome.visible,
        new_place=outcome.news.place,
        new_opened=outcome.news.opened,
    )


def _is(outcome: StepResult, kind: np.ndarray) -> np.ndarray:
    """Whose actions (B,) are of a kind, by one of the tables of `actions`."""
    return kind[outcome.action] != NOTHING
