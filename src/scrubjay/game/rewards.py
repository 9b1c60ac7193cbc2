"""Rewards of the four learned stages, after the paper's algorithms 1 to 4, as named terms.

`step_reward` and `reward_terms` pay a step of B games by its `StepResult`. Each stage has a function of its algorithm's
terms (`em_terms`, ...), in order; `total` adds them. Two rewards come later than their step: a PlaceAt is paid when its
manipulation ends (`place_at_terms`), and the seeker's percentile when the game ends (`oh_final`, `oh_percentile`). Two
need the agent: E&M's reward for good hiding places (`HidingReward`) and OH's difficulty (`oh_difficulty`).

Shapes are (B,) for one step of B games; whole histories (B, T) work as well, since every term belongs to one step.
Flags are bool arrays. A number that no branch uses may be anything, even NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import TypeVar

import numpy as np
import torch

from scrubjay.game import actions
from scrubjay.game.actions import MODALITIES, NOTHING, Stage
from scrubjay.game.cache import StepResult
from scrubjay.game.placement import FEW_PIXELS, hit_cells, object_pixels
from scrubjay.game.stages import SEEKER_STEPS
from scrubjay.sim.cells import CELLS

Terms = dict[str, np.ndarray]
"""Terms of a reward by name, all of one shape."""
Values = TypeVar("Values", np.ndarray, torch.Tensor)

STEP = -0.01
"""The cost of every step, to discourage long trajectories."""
FAIL = -0.02
"""The further cost of a failed action in E&M, OM and S."""

EM_EXPLORE = 0.2 / 3
"""For each location tuple that the extrapolated set gains, at most three for a new place."""
EM_OPEN = 0.4
"""For an object opened for the first time in the episode."""
EM_HIDE = 0.2
"""For a place whose hiding value exceeds the mean of those before by 1 or more; in proportion for less."""
EM_OPEN_AT_FLOOR = -0.001
"""The lowest reward of an OpenAt."""

OH_NOT_READY = -0.1
"""For ReadyForSeeker before a PlaceAt succeeded."""
OH_OPEN = 0.2
"""For an object opened for the first time in the episode."""
OH_PLACE_AGAIN = -0.1
"""For a PlaceAt after one that succeeded."""
OH_PLACE = 0.02
"""For a PlaceAt that succeeds."""
OH_DIFFICULT = 0.5
"""The largest bonus of a PlaceAt that was unlikely to succeed."""
OH_MIN_PROBABILITY = 0.0001
"""The manipulator's probabilities are clipped to this from below."""
OH_MAX_INVERSE_SQUARE = 100.0
"""Where 1 / p^2 is clipped: a probability of 0.1 earns the whole bonus."""
OH_FAIL = -0.01
"""The further cost of any other failed action in OH; not the 0.02 of the other stages."""
OH_PERCENTILE = 5.0
"""The weight of the seeker's percentile, which is from -1 to 1."""

OM_OPEN = 0.1
"""For an object opened for the first time in the episode."""
OM_OFF_SCREEN = -1.0
"""For dropping the object where the camera would not see it even with all else invisible."""
OM_NEAR = 0.25
"""A drop d cells from the target earns OM_NEAR^d."""
OM_MODALITY = 1.0
"""For a drop in the right modality, if that is contained or behind."""
OM_EXACT = 1.0
"""For a drop on the target itself."""
OM_NOT_DROPPED = -1.0
"""For the last step with the object still in the hand."""

S_FALSE_CLAIM = -0.05
"""For a claim of an object that is not visible."""
S_NEW_PLACE = 0.01
"""A new place offsets the step's cost."""
S_OPEN = 0.06
"""For an object opened for the first time in the episode."""
S_FOUND = 1.0
"""For a successful claim, which ends the game."""
CERTAIN = 1.0
"""The probability of a PlaceAt where no manipulator gives one: the smallest bonus for difficulty."""


def total(terms: Terms) -> np.ndarray:
    """The reward: the sum of its terms, in order."""
    shapes = {name: term.shape for name, term in terms.items()}
    if len(set(shapes.values())) != 1:
        raise ValueError(f"the terms of a reward differ in shape: {shapes}")
    # One after another: the order in which np.sum adds, and with it the last bit, depends on the batch.
    return reduce(np.add, terms.values())


# Exploration and mapping, algorithm 1.


def em_terms(
    *,
    success: np.ndarray,
    open_at: np.ndarray,
    extrap_before: np.ndarray,
    extrap_after: np.ndarray,
    new_opened: np.ndarray,
    new_place: np.ndarray,
    hide: np.ndarray | float = 0.0,
) -> Terms:
    """Terms (B,) of E&M steps. `hide` is `em_hide`'s; pretraining leaves it out."""
    # The sizes count full location tuples, as the set is defined: only then can a place add three. A new place ignores
    # rotation but not standing: crouching where one has only stood is new, as in the seeker's reward.
    growth = np.subtract(extrap_after, extrap_before, dtype=float)
    terms = {
        "step": np.full(success.shape, STEP),
        "fail": _where(~success, FAIL),
        "explore": _where(success, EM_EXPLORE * growth),
        "open": _where(success & new_opened, EM_OPEN),
        "hide": _where(success & (new_opened | new_place), hide),
    }
    # The algorithm's max(r, floor) as a term. It is 0 wherever hide is not, so hide can be added later.
    terms["open_at_floor"] = _where(open_at, np.maximum(EM_OPEN_AT_FLOOR - total(terms), 0.0))
    return terms


def em_hide(value: Values, mean_value: Values, unseen: Values) -> Values:
    """The reward (B,) for places that are better for hiding than the mean of the unseen ones before; any backend."""
    gain = EM_HIDE * (value - mean_value).clip(0.0, 1.0)
    if isinstance(gain, torch.Tensor) and isinstance(unseen, torch.Tensor):
        return torch.where(unseen, gain, 0)
    return _where(unseen, gain)


def em_mean_value(values: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """The mean values (B,) of states that were unseen when entered, from the values (B, T) of states 0 to T - 1.

    `HidingReward` keeps the same mean as a running one.
    """
    # The paper's unseen_s is about the action a_s, yet stands beside v_s, the value before that action. We take it as
    # about state s, entered by the action before, which is what unseen_(t+1) means in the reward of step t. The start
    # is then unseen, and the mean is never empty.
    count = unseen.sum(-1)
    if not count.all():
        raise ValueError("a game has no unseen state; state 0 always is one")
    return _where(unseen, values).sum(-1) / count


class HidingReward:
    """`em_hide` step by step for B games, with the running mean of their unseen states' values, on a device."""

    def __init__(self, games: int, device: torch.device) -> None:
        self.total = torch.zeros(games, device=device)
        self.count = torch.zeros(games, device=device)
        self.unseen = torch.zeros(games, dtype=torch.bool, device=device)
        """(B,): the last step opened something, or reached a place, for the first time in its episode."""

    def observe(self, result: StepResult) -> None:
        """Notes which games reached something new; `pay` gives the reward when the next state's value is known."""
        new = result.success & (result.novelty.place | result.novelty.opened)
        self.unseen = torch.from_numpy(new).to(self.total.device, non_blocking=True)

    def pay(self, values: torch.Tensor, stage: torch.Tensor, is_first: torch.Tensor, keep: bool = True) -> torch.Tensor:
        """Rewards (B,) of the last steps, given the values (B,) of the states that they led to.

        `stage` and `is_first` (B,) are of these states. With `keep=False` they do not count in the mean yet: the next
        call gets them again.
        """
        exploring = stage == int(Stage.EM)
        total, count = (torch.where(is_first, 0, sums) for sums in (self.total, self.count))
        # The state after E&M's last step is in PS, which does not write into the map: that step earns nothing.
        reward = em_hide(values, total / count.clamp(min=1), exploring & ~is_first & self.unseen)
        if keep:
            # A game's start is unseen, so the mean is never empty.
            counts = exploring & (is_first | self.unseen)
            self.total, self.count = total + torch.where(counts, values, 0), count + counts
        return reward


# Object hiding, algorithm 2.


def oh_terms(
    *,
    success: np.ndarray,
    open_at: np.ndarray,
    place_at: np.ndarray,
    ready: np.ndarray,
    new_opened: np.ndarray,
    placed_before: np.ndarray,
    probability: np.ndarray | float,
    final: np.ndarray,
    percentile: np.ndarray | float,
) -> Terms:
    """Terms (B,) of OH steps.

    probability is the manipulator's for the PlaceAt; final and percentile are from `oh_final` and `oh_percentile`.
    """
    # The branches exclude each other: a failed ReadyForSeeker or a further PlaceAt costs 0.1, and not also OH_FAIL.
    again = place_at & placed_before
    placed = place_at & ~placed_before & success
    return {
        "step": np.full(success.shape, STEP),
        "not_ready": _where(ready & ~success, OH_NOT_READY),
        "open": _where(open_at & success & new_opened, OH_OPEN),
        "place_again": _where(again, OH_PLACE_AGAIN),
        "place": _where(placed, OH_PLACE),
        "difficult": _where(placed, oh_difficulty(probability)),
        "fail": _where(~success & ~ready & ~again, OH_FAIL),
        "percentile": _where(final, OH_PERCENTILE * np.asarray(percentile)),
    }


def oh_difficulty(probability: np.ndarray | float) -> np.ndarray:
    """The bonus (B,) of successful placements to which the manipulator gave these probabilities (B,)."""
    inverse_square = 1.0 / np.square(np.maximum(probability, OH_MIN_PROBABILITY))
    return OH_DIFFICULT * np.minimum(inverse_square, OH_MAX_INVERSE_SQUARE) / OH_MAX_INVERSE_SQUARE


def oh_final(*, success: np.ndarray, place_at: np.ndarray, ready: np.ndarray) -> np.ndarray:
    """The steps (B, T) that earn the percentile: the last success other than ReadyForSeeker, if a PlaceAt succeeded.

    Episodes shorter than T are padded with failures.
    """
    counts = success & ~ready
    later = np.cumsum(counts[..., ::-1], -1)[..., ::-1] - counts
    return counts & (later == 0) & (success & place_at).any(-1, keepdims=True)


def oh_percentile(rollout_lengths: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """From -1 to 1 (B,): the share of mental rollouts (B, 100) that are no longer than the seeker's steps (B,)."""
    return -1.0 + 2.0 * (rollout_lengths <= steps[..., None]).mean(-1)


def seeker_steps(found: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Steps (B,) of searches, SEEKER_STEPS where the object was not found."""
    return np.where(found, steps, SEEKER_STEPS)


# Object manipulation, algorithm 3.


def om_terms(
    *,
    success: np.ndarray,
    open_at: np.ndarray,
    drop: np.ndarray,
    new_opened: np.ndarray,
    last: np.ndarray,
    hit: np.ndarray,
    target: np.ndarray,
) -> Terms:
    """Terms (B,) of OM steps; `last` marks the last step allowed.

    hit (B, 3, 7, 7) holds the dropped object's pixels on top, contained and behind in each cell, target (B, 3) the
    modality, row and column, all from 0. Without a drop, hit may hold anything.
    """
    cells = hit_cells(hit)
    modality, row, column = (target[..., k, None, None] for k in range(3))
    is_modality = np.arange(len(MODALITIES))[:, None, None] == modality[..., None]
    is_cell = (np.arange(CELLS)[:, None] == row) & (np.arange(CELLS) == column)
    same_modality = (cells & is_modality).any((-3, -2, -1))
    # The bonus is for the target itself, as printed. That a row above or below is a success too, for contained and
    # behind, is a rule of the hider's stage, and such a drop is already paid for its modality.
    exact = (cells & is_modality & is_cell[..., None, :, :]).any((-3, -2, -1))

    dropped = success & drop
    on_screen = dropped & (object_pixels(hit) > FEW_PIXELS)
    return {
        "step": np.full(success.shape, STEP),
        "fail": _where(~success, FAIL),
        "open": _where(success & open_at & new_opened, OM_OPEN),
        "off_screen": _where(dropped & ~on_screen, OM_OFF_SCREEN),
        "near": _where(on_screen, OM_NEAR ** cells_away(cells, target)),
        "modality": _where(on_screen & same_modality & (target[..., 0] != 0), OM_MODALITY),
        "exact": _where(on_screen & exact, OM_EXACT),
        # As printed, this comes after the other branches: it spares a last step that fails or opens.
        "not_dropped": _where(success & last & ~open_at & ~drop, OM_NOT_DROPPED),
    }


def cells_away(cells: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Rows plus columns (B,) from targets (B, 3) to the nearest hit of cells (B, 3, 7, 7) in any modality."""
    rows = np.abs(np.arange(CELLS)[:, None] - target[..., 1, None, None])
    columns = np.abs(np.arange(CELLS) - target[..., 2, None, None])
    return np.min(rows + columns, axis=(-2, -1), where=cells.any(-3), initial=2 * CELLS)


# Seeking, algorithm 4.


def s_terms(
    *,
    success: np.ndarray,
    claim: np.ndarray,
    visible: np.ndarray,
    new_place: np.ndarray,
    new_opened: np.ndarray,
) -> Terms:
    """Terms (B,) of S steps; `visible` marks claims of an object that has enough pixels, at whatever distance."""
    # A claim of a visible object that is too far away costs the step only: it is neither a false claim nor a FAIL.
    return {
        "step": np.full(success.shape, STEP),
        "fail": _where(~success & ~claim, FAIL),
        "false_claim": _where(~success & claim & ~visible, S_FALSE_CLAIM),
        "new_place": _where(success & new_place, S_NEW_PLACE),
        "open": _where(success & ~new_place & new_opened, S_OPEN),
        "found": _where(success & ~new_place & ~new_opened & claim, S_FOUND),
    }


# Steps of B games.


def step_reward(result: StepResult, hide: np.ndarray | float = 0.0) -> np.ndarray:
    """Rewards (B,) of a step in the stage it was taken in; PS earns nothing. `hide` is `em_hide`'s.

    Leaves out what comes later: `place_at_terms` and the percentile.
    """
    return reduce(np.add, reward_terms(result, hide).values(), np.zeros(len(result.stage)))


def reward_terms(result: StepResult, hide: np.ndarray | float = 0.0) -> Terms:
    """The terms (B,) of `step_reward` by stage and name, such as "EM/explore"; 0 in games at other stages.

    Only stages that a game of the batch is in have terms.
    """
    by_stage: dict[Stage, Callable[[StepResult], Terms]] = {
        Stage.EM: partial(em_step_terms, hide=hide),
        Stage.OH: oh_step_terms,
        Stage.OM: om_step_terms,
        Stage.S: s_step_terms,
    }
    terms: Terms = {}
    for stage, terms_of in by_stage.items():
        games = result.stage == stage
        if games.any():
            terms |= {f"{stage.name}/{name}": np.where(games, term, 0.0) for name, term in terms_of(result).items()}
    return terms


def em_step_terms(result: StepResult, hide: np.ndarray | float = 0.0) -> Terms:
    """`em_terms` of a step; undefined in games at other stages."""
    return em_terms(
        success=result.success,
        open_at=_is(result, actions.OPEN_CELL),
        extrap_before=result.novelty.extrap_before,
        extrap_after=result.novelty.extrap_after,
        new_opened=result.novelty.opened,
        new_place=result.novelty.place,
        hide=hide,
    )


def oh_step_terms(result: StepResult) -> Terms:
    """`oh_terms` of a step, 0 for a PlaceAt that begins a manipulation; undefined in games at other stages."""
    place_at = _is(result, actions.PLACE_AT)
    terms = oh_terms(
        success=result.success,
        open_at=_is(result, actions.OPEN_CELL),
        place_at=place_at,
        ready=_is(result, actions.READY),
        new_opened=result.novelty.opened,
        placed_before=result.placed_before,
        probability=CERTAIN,
        final=np.zeros_like(place_at),
        percentile=0.0,
    )
    return {name: np.where(place_at & result.success, 0.0, term) for name, term in terms.items()}


def place_at_terms(result: StepResult, probability: np.ndarray | float = CERTAIN) -> Terms:
    """`oh_terms` (B,) of the PlaceAt whose manipulations end with this step; 0 elsewhere.

    probability is the manipulator's for the PlaceAt. A game of OM alone has no PlaceAt to pay.
    """
    ended = (result.stage == Stage.OM) & result.ended
    none = np.zeros_like(ended)
    # No manipulation begins after one that succeeded, so none of these is a further PlaceAt.
    terms = oh_terms(
        success=result.placed, open_at=none, place_at=ended, ready=none, new_opened=none, placed_before=none,
        probability=probability, final=none, percentile=0.0,
    )  # fmt: skip
    return {name: np.where(ended, term, 0.0) for name, term in terms.items()}


def om_step_terms(result: StepResult) -> Terms:
    """`om_terms` of a step; undefined in games at other stages."""
    return om_terms(
        success=result.success,
        open_at=_is(result, actions.OPEN_CELL),
        drop=_is(result, actions.DROP),
        new_opened=result.novelty.opened,
        last=result.full,
        hit=result.counts,
        target=result.target,
    )


def s_step_terms(result: StepResult) -> Terms:
    """`s_terms` of a step; undefined in games at other stages."""
    return s_terms(
        success=result.success,
        claim=_is(result, actions.CLAIM),
        visible=result.visible,
        new_place=result.novelty.place,
        new_opened=result.novelty.opened,
    )


def _is(result: StepResult, kind: np.ndarray) -> np.ndarray:
    """Is the action of a kind, given by one of the tables in `actions`, (B,) bool."""
    return kind[result.action] != NOTHING


def _where(condition: np.ndarray, amount: np.ndarray | float) -> np.ndarray:
    """The amount where the condition holds, 0 elsewhere."""
    if condition.dtype != bool:  # `~` of a number is nearly always true.
        raise TypeError(f"a flag is {condition.dtype}, not bool")
    return np.where(condition, amount, 0.0)
