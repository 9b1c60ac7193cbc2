"""Rewards of the four learned stages, after the paper's algorithms 1 to 4: named terms, and their sum.

Each stage has a function that gives its terms in a dictionary, in the order of the algorithm; `total` adds them. What
the agent has to know (the value of a place, the manipulator's probability, lengths of mental rollouts) comes in as
arguments. Shapes say (B,) for one step of B games; whole histories (B, T) work as well, for every term belongs to one
step. Flags are bool arrays. A number that no branch uses may be anything, NaN too.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from scrubjay.game.placement import FEW_PIXELS, hit_cells, object_pixels

Terms = dict[str, np.ndarray]

STEP = -0.01
"""Every step of every stage costs this, to discourage long trajectories."""
FAIL = -0.02
"""A failed action of E&M, OM and S costs this beside the step."""

EM_EXPLORE = 0.2 / 3
"""For each location tuple that the extrapolated set gains; a new tuple adds three of them at most."""
EM_OPEN = 0.4
"""For an object opened for the first time in the episode."""
EM_HIDE = 0.2
"""For a place that is better for hiding than those before it by 1 or more; in proportion for less."""
EM_OPEN_AT_FLOOR = -0.001
"""OpenAt is never punished by more than this."""

OH_NOT_READY = -0.1
"""For ReadyForSeeker before anything was placed."""
OH_OPEN = 0.2
"""For an object opened for the first time in the episode."""
OH_PLACE_AGAIN = -0.1
"""For PlaceAt after a PlaceAt that succeeded."""
OH_PLACE = 0.02
"""For PlaceAt that succeeds."""
OH_DIFFICULT = 0.5
"""The most that a successful PlaceAt earns for having been unlikely to succeed."""
OH_LEAST_PROBABILITY = 0.0001
"""The manipulator's probabilities count as no smaller than this."""
OH_MOST_DIFFICULT = 100.0
"""Where the inverse square of the probability is cut off: a chance of one in ten earns all there is to earn."""
OH_FAIL = -0.01
"""Any other failed action of OH costs this beside the step, and not the 0.02 of the other stages."""
OH_PERCENTILE = 5.0
"""The seeker's percentile, from -1 to 1, is worth this much."""

OM_OPEN = 0.1
"""For an object opened for the first time in the episode."""
OM_OFF_SCREEN = -1.0
"""For dropping the object where the camera would not see it even through all else."""
OM_NEAR = 0.25
"""Dropping the object d cells from the target earns this to the power of d."""
OM_MODALITY = 1.0
"""For dropping it in the right modality, if that is contained or behind."""
OM_EXACT = 1.0
"""For dropping it at the target itself."""
OM_NOT_DROPPED = -1.0
"""For reaching the last step with the object still in the hand."""

S_FALSE_CLAIM = -0.05
"""For claiming that the object is visible when it is not."""
S_NEW_PLACE = 0.01
"""A new place takes the step's cost back."""
S_OPEN = 0.06
"""For an object opened for the first time in the episode."""
S_FOUND = 1.0
"""For a claim that succeeds, which ends the game."""
S_MAX_STEPS = 500
"""What the seeker's steps count as if it does not find the object."""


def total(terms: Terms) -> np.ndarray:
    """The reward: the sum of terms that all have the same shape."""
    shapes = {name: term.shape for name, term in terms.items()}
    if len(set(shapes.values())) != 1:
        raise ValueError(f"the terms of a reward differ in shape: {shapes}")
    # One after another: the order in which np.sum adds, and so the last bit, depends on the batch.
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
    """Terms (B,) of an E&M step: was it an OpenAt, what was new, and the sizes of the extrapolated set around it.

    hide is what `em_hide` gives; pretraining goes without it.
    """
    # The sizes are of full location tuples, as the set is defined, for only so can a tuple add three. A new place
    # ignores rotation but not standing: crouching where one has only stood is new, as in the seeker's reward.
    growth = np.subtract(extrap_after, extrap_before, dtype=float)
    terms = {
        "step": np.full(success.shape, STEP),
        "fail": _where(~success, FAIL),
        "explore": _where(success, EM_EXPLORE * growth),
        "open": _where(success & new_opened, EM_OPEN),
        "hide": _where(success & (new_opened | new_place), hide),
    }
    # The algorithm's max(r, floor), as what is added to r. It is 0 wherever hide is not, so hide can be added later.
    terms["open_at_floor"] = _where(open_at, np.maximum(EM_OPEN_AT_FLOOR - total(terms), 0.0))
    return terms


def em_hide(value: np.ndarray, mean_value: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """How much better (B,) the places that steps led to are for hiding than the mean of the unseen ones before."""
    return _where(unseen, EM_HIDE * np.clip(value - mean_value, 0.0, 1.0))


def em_mean_value(values: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """The mean values (B,) of states that were unseen when entered, from the values (B, T) of states 0 to T - 1."""
    # The paper's unseen_s is about the action a_s, yet stands beside v_s, the value before that action. We take it as
    # about state s, entered by the action before, which is what unseen_(t+1) means in the reward of step t. The start
    # is then unseen, and the mean is never empty.
    count = unseen.sum(-1)
    if not count.all():
        raise ValueError("no state is marked unseen in some of the games; state 0 always is")
    return _where(unseen, values).sum(-1) / count


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
    """Terms (B,) of an OH step: which action it was, was an earlier PlaceAt successful, and what the agent knows.

    probability is the manipulator's for the PlaceAt; final and percentile are of `oh_final` and `oh_percentile`.
    """
    # A ReadyForSeeker that fails costs 0.1 and not also OH_FAIL; so does a further PlaceAt: the branches exclude.
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
    """The bonus (B,) of placements that the manipulator gave these probabilities (B,) to succeed."""
    inverse_square = 1.0 / np.square(np.maximum(probability, OH_LEAST_PROBABILITY))
    return OH_DIFFICULT * np.minimum(inverse_square, OH_MOST_DIFFICULT) / OH_MOST_DIFFICULT


def oh_final(*, success: np.ndarray, place_at: np.ndarray, ready: np.ndarray) -> np.ndarray:
    """The steps (B, T) that earn the percentile: the last success but for ReadyForSeeker, if anything was placed.

    Episodes shorter than T are filled up with failures.
    """
    counts = success & ~ready
    later = np.cumsum(counts[..., ::-1], -1)[..., ::-1] - counts
    return counts & (later == 0) & (success & place_at).any(-1, keepdims=True)


def oh_percentile(rollout_lengths: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """From -1 to 1 (B,): the share of mental rollouts (B, 100) that are no longer than the seeker's steps (B,)."""
    return -1.0 + 2.0 * (rollout_lengths <= steps[..., None]).mean(-1)


def seeker_steps(found: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Steps (B,) to find the object, the most there are if it was not found."""
    return np.where(found, steps, S_MAX_STEPS)


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
    """Terms (B,) of an OM step: which action it was, was it the last allowed, and where the object fell.

    hit (B, 3, 7, 7) holds the dropped object's pixels on top, contained and behind in each cell, target (B, 3) the
    modality, row and column, all from 0. Without a drop, hit may hold anything.
    """
    cells = hit_cells(hit)
    modality, row, column = (target[..., k, None, None] for k in range(3))
    is_modality = np.arange(3)[:, None, None] == modality[..., None]
    is_cell = (np.arange(7)[:, None] == row) & (np.arange(7) == column)
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
        # As printed, this is a last resort after the other branches: it spares a last step that fails or opens.
        "not_dropped": _where(success & last & ~open_at & ~drop, OM_NOT_DROPPED),
    }


def cells_away(cells: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Rows plus columns (B,) from targets (B, 3) to the nearest hit of cells (B, 3, 7, 7) in any modality."""
    rows = np.abs(np.arange(7)[:, None] - target[..., 1, None, None])
    columns = np.abs(np.arange(7) - target[..., 2, None, None])
    return np.min(rows + columns, axis=(-2, -1), where=cells.any(-3), initial=14)


# Seeking, algorithm 4.


def s_terms(
    *,
    success: np.ndarray,
    claim: np.ndarray,
    visible: np.ndarray,
    new_place: np.ndarray,
    new_opened: np.ndarray,
) -> Terms:
    """Terms (B,) of an S step: was it a claim, had the object the pixels that a claim needs, and what was new."""
    # A claim about a visible object that is too far away costs the step only: no false claim, and no FAIL either.
    return {
        "step": np.full(success.shape, STEP),
        "fail": _where(~success & ~claim, FAIL),
        "false_claim": _where(~success & claim & ~visible, S_FALSE_CLAIM),
        "new_place": _where(success & new_place, S_NEW_PLACE),
        "open": _where(success & ~new_place & new_opened, S_OPEN),
        "found": _where(success & ~new_place & ~new_opened & claim, S_FOUND),
    }


def _where(condition: np.ndarray, amount: np.ndarray | float) -> np.ndarray:
    """The amount where the condition holds, 0 elsewhere."""
    if condition.dtype != bool:  # `~` of a number is nearly always true.
        raise TypeError(f"a flag is {condition.dtype}, not bool")
    return np.where(condition, amount, 0.0)
