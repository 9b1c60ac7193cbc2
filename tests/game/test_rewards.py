"""Rewards: every branch of the paper's four algorithms, on numbers worked out by hand."""

import numpy as np
import pytest

from scrubjay.game.actions import Stage
from scrubjay.game.rewards import (
    cells_away,
    em_hide,
    em_mean_value,
    em_terms,
    hit_cells,
    object_pixels,
    oh_difficulty,
    oh_final,
    oh_percentile,
    oh_terms,
    om_terms,
    s_terms,
    seeker_steps,
    total,
)
from scrubjay.game.stages import LIMITS

TOP, CONTAINED, BEHIND = 0, 1, 2
EM = dict(success=True, open_at=False, extrap_before=30, extrap_after=30, new_opened=False, new_place=False, hide=0.0)
OH: dict[str, float] = dict(
    success=True, open_at=False, place_at=False, ready=False, new_opened=False, placed_before=False
)
OH |= dict(probability=np.nan, final=False, percentile=np.nan)
OM = dict(success=True, open_at=False, drop=False, new_opened=False, last=False)
S = dict(success=True, claim=False, visible=False, new_place=False, new_opened=False)


def reward(terms, defaults, **changes) -> tuple[float, dict[str, float]]:
    """The reward of one step, and those of its terms that are not 0."""
    values = terms(**{name: np.array([value]) for name, value in (defaults | changes).items()})
    assert all(term.shape == (1,) for term in values.values())
    return float(total(values)[0]), {name: float(term[0]) for name, term in values.items() if term[0] != 0}


def pixels(*cells: tuple[int, int, int, int]) -> np.ndarray:
    """Counts (3, 7, 7) with (modality, row, column, pixels) as given."""
    hit = np.zeros((3, 7, 7), np.int32)
    for modality, row, column, count in cells:
        hit[modality, row, column] = count
    return hit


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, -0.01),
        ({"success": False}, -0.03),
        ({"extrap_after": 33}, 0.19),
        ({"extrap_after": 31}, -0.01 + 0.2 / 3),
        ({"extrap_after": 33, "new_place": True}, 0.19),
        ({"extrap_after": 33, "new_place": True, "hide": 0.15}, 0.34),
        # A turn leads to new tuples but to no new place, so the value of the place does not count.
        ({"extrap_after": 32, "hide": 0.15}, -0.01 + 0.4 / 3),
        ({"open_at": True, "new_opened": True}, 0.39),
        ({"open_at": True, "new_opened": True, "hide": 0.2}, 0.59),
        # Opened again, or not at all: lifted to -0.001.
        ({"open_at": True}, -0.001),
        ({"open_at": True, "success": False}, -0.001),
        # A failed action earns nothing.
        ({"success": False, "extrap_after": 33, "new_opened": True, "new_place": True, "hide": 0.2}, -0.03),
    ],
)
def test_rewards_of_em(changes, expected):
    assert reward(em_terms, EM, **changes)[0] == pytest.approx(expected, abs=1e-12)


def test_terms_of_em():
    _, opened = reward(em_terms, EM, open_at=True, new_opened=True, hide=0.2)
    assert opened == pytest.approx({"step": -0.01, "open": 0.4, "hide": 0.2})
    _, failed = reward(em_terms, EM, success=False, open_at=True)
    assert failed == pytest.approx({"step": -0.01, "fail": -0.02, "open_at_floor": 0.029})
    without = {name: value for name, value in EM.items() if name != "hide"}
    assert reward(em_terms, without, new_place=True, extrap_after=33)[1] == pytest.approx(
        {"step": -0.01, "explore": 0.2}
    )


def test_sizes_may_be_unsigned():
    sizes = {"extrap_before": np.uint16(12), "extrap_after": np.uint16(9)}
    assert reward(em_terms, EM, **sizes)[0] == pytest.approx(-0.21)


def test_hiding_value_of_a_place():
    value, mean = np.array([0.75, 2.5, 0.1, 0.75]), np.array([0.5, 0.5, 0.5, 0.5])
    hide = em_hide(value, mean, np.array([True, True, True, False]))
    assert hide == pytest.approx([0.05, 0.2, 0.0, 0.0])


def test_the_mean_value_is_over_unseen_states():
    values = np.array([[1.0, 5.0, 2.0], [4.0, np.nan, np.nan]])
    unseen = np.array([[True, False, True], [True, False, False]])
    assert em_mean_value(values, unseen) == pytest.approx([1.5, 4.0])
    with pytest.raises(ValueError, match="unseen"):
        em_mean_value(values, unseen & False)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # Standing, crouching or closing.
        ({}, -0.01),
        ({"success": False}, -0.02),
        ({"ready": True}, -0.01),
        ({"ready": True, "success": False}, -0.11),
        ({"open_at": True}, -0.01),
        ({"open_at": True, "new_opened": True}, 0.19),
        ({"open_at": True, "success": False}, -0.02),
        ({"place_at": True, "success": False, "probability": 0.5}, -0.02),
        ({"place_at": True, "success": False, "placed_before": True, "probability": 0.5}, -0.11),
        ({"place_at": True, "success": True, "placed_before": True, "probability": 0.5}, -0.11),
        ({"place_at": True, "probability": 1.0}, -0.01 + 0.02 + 0.005),
        ({"place_at": True, "probability": 0.5}, -0.01 + 0.02 + 0.02),
        ({"place_at": True, "probability": 0.01}, -0.01 + 0.02 + 0.5),
        # The final step: the placement, or a later one.
        ({"place_at": True, "probability": 0.5, "final": True, "percentile": 0.6}, 3.03),
        ({"final": True, "percentile": -1.0, "placed_before": True}, -5.01),
        ({"final": True, "percentile": 1.0, "placed_before": True}, 4.99),
    ],
)
def test_rewards_of_oh(changes, expected):
    assert reward(oh_terms, OH, **changes)[0] == pytest.approx(expected, abs=1e-12)


def test_terms_of_oh():
    _, placed = reward(oh_terms, OH, place_at=True, probability=0.5, final=True, percentile=0.2)
    assert placed == pytest.approx({"step": -0.01, "place": 0.02, "difficult": 0.02, "percentile": 1.0})
    assert reward(oh_terms, OH, ready=True, success=False)[1] == {"step": -0.01, "not_ready": -0.1}
    again = {"place_at": True, "placed_before": True, "success": False}
    assert reward(oh_terms, OH, **again)[1] == {"step": -0.01, "place_again": -0.1}


def test_difficulty_is_clipped_on_both_sides():
    assert oh_difficulty(np.array([1.0, 0.5, 0.2, 0.1, 0.05, 0.0])) == pytest.approx(
        [0.005, 0.02, 0.125, 0.5, 0.5, 0.5]
    )


def test_the_reward_of_hiding_asks_for_targets_that_are_hit_one_time_in_ten():
    """What who always tries targets of the same probability expects, with the paper's discount: docs/training.md."""

    def expected(p: float) -> float:
        hit, missed = (reward(oh_terms, OH, place_at=True, probability=p, success=done)[0] for done in (True, False))
        value = 0.0
        for _ in range(LIMITS[Stage.OH]):
            value = p * hit + (1 - p) * (missed + 0.8 * value)
        return value

    printed = {0.05: 0.03, 0.08: 0.08, 0.1: 0.12, 0.12: 0.08, 0.15: 0.06, 0.3: 0.01, 0.8: 0.01}
    assert {p: round(expected(p), 2) for p in printed} == printed
    assert max(np.linspace(0.01, 1, 100), key=expected) == pytest.approx(0.1)


def test_which_step_of_hiding_is_final():
    # PlaceAt fails, PlaceAt, CloseObjects, CloseObjects fails, ReadyForSeeker.
    success = np.array([0, 1, 1, 0, 1], bool)
    place_at, ready = np.array([1, 1, 0, 0, 0], bool), np.array([0, 0, 0, 0, 1], bool)
    closed = oh_final(success=success[None], place_at=place_at[None], ready=ready[None])
    assert closed.tolist() == [[False, False, True, False, False]]
    # The same without a closing that succeeds: the placement.
    success[2] = False
    assert oh_final(success=success[None], place_at=place_at[None], ready=ready[None]).argmax() == 1
    # Nothing was placed, though other actions succeeded.
    success[:3] = [False, False, True]
    assert not oh_final(success=success[None], place_at=place_at[None], ready=ready[None]).any()


def test_percentile_of_the_seekers_steps():
    lengths = np.tile(np.arange(1, 101), (4, 1))
    steps = seeker_steps(np.array([True, True, True, False]), np.array([75, 100, 1, 33]))
    assert steps.tolist() == [75, 100, 1, 500]
    assert oh_percentile(lengths, steps) == pytest.approx([0.5, 1.0, -0.98, 1.0])
    assert oh_percentile(lengths + 400, np.array([400, 450, 500, 500])) == pytest.approx([-1.0, 0.0, 1.0, 1.0])


SEEN = pixels((TOP, 3, 4, 100))
IN = pixels((TOP, 3, 4, 30), (BEHIND, 3, 4, 70), (CONTAINED, 3, 4, 100))
HIDDEN = pixels((TOP, 2, 4, 15), (BEHIND, 3, 4, 85))


@pytest.mark.parametrize(
    ("changes", "hit", "target", "expected"),
    [
        ({}, SEEN, (TOP, 3, 4), -0.01),
        ({"success": False}, SEEN, (TOP, 3, 4), -0.03),
        ({"open_at": True}, SEEN, (TOP, 3, 4), -0.01),
        ({"open_at": True, "new_opened": True}, SEEN, (TOP, 3, 4), 0.09),
        ({"open_at": True, "new_opened": True, "success": False}, SEEN, (TOP, 3, 4), -0.03),
        # The last step without a drop, which only an action of the hand that succeeds can make worse.
        ({"last": True}, SEEN, (TOP, 3, 4), -1.01),
        ({"last": True, "success": False}, SEEN, (TOP, 3, 4), -0.03),
        ({"last": True, "open_at": True}, SEEN, (TOP, 3, 4), -0.01),
        ({"last": True, "open_at": True, "new_opened": True}, SEEN, (TOP, 3, 4), 0.09),
        ({"last": True, "drop": True}, SEEN, (TOP, 3, 4), 1.99),
        ({"drop": True, "success": False}, SEEN, (TOP, 3, 4), -0.03),
        # Off screen up to ten pixels, whatever the target.
        ({"drop": True}, pixels(), (TOP, 3, 4), -1.01),
        ({"drop": True}, pixels((TOP, 3, 4, 4), (BEHIND, 3, 4, 6), (CONTAINED, 3, 4, 10)), (CONTAINED, 3, 4), -1.01),
        ({"drop": True}, pixels((TOP, 3, 4, 11)), (TOP, 3, 4), 1.99),
        # On top: where it should be, one, two and five cells away.
        ({"drop": True}, SEEN, (TOP, 3, 4), 1.99),
        ({"drop": True}, SEEN, (TOP, 2, 4), 0.24),
        ({"drop": True}, SEEN, (TOP, 2, 5), 0.0525),
        ({"drop": True}, SEEN, (TOP, 0, 6), -0.01 + 0.25**5),
        # The right cell on top of something, though it should be behind or inside.
        ({"drop": True}, SEEN, (BEHIND, 3, 4), 0.99),
        ({"drop": True}, SEEN, (CONTAINED, 3, 4), 0.99),
        # Inside, and wanted inside, there and elsewhere; then wanted on top, then behind.
        ({"drop": True}, IN, (CONTAINED, 3, 4), 2.99),
        ({"drop": True}, IN, (CONTAINED, 4, 4), 1.24),
        ({"drop": True}, IN, (TOP, 3, 4), 0.99),
        ({"drop": True}, IN, (BEHIND, 3, 4), 0.99),
        # Behind, and wanted behind, there and one row off; then wanted on top of where a part is seen.
        ({"drop": True}, HIDDEN, (BEHIND, 3, 4), 2.99),
        ({"drop": True}, HIDDEN, (BEHIND, 2, 4), 1.24),
        ({"drop": True}, HIDDEN, (TOP, 2, 4), 0.24),
        # Two cells hit, 20 and 19 pixels: the nearer one and the modality of either count.
        ({"drop": True}, pixels((TOP, 0, 0, 20), (BEHIND, 6, 6, 19)), (TOP, 6, 5), 0.24),
        ({"drop": True}, pixels((TOP, 0, 0, 20), (BEHIND, 6, 6, 19)), (BEHIND, 0, 1), 1.24),
        # The second with 18 of 20 is no hit.
        ({"drop": True}, pixels((TOP, 0, 0, 20), (BEHIND, 6, 6, 18)), (BEHIND, 0, 1), 0.24),
    ],
)
def test_rewards_of_om(changes, hit, target, expected):
    got, _ = reward(om_terms, OM, hit=hit, target=target, **changes)
    assert got == pytest.approx(expected, abs=1e-12)


def test_terms_of_om():
    _, exact = reward(om_terms, OM, hit=IN, target=(CONTAINED, 3, 4), drop=True)
    assert exact == {"step": -0.01, "near": 1.0, "modality": 1.0, "exact": 1.0}
    assert reward(om_terms, OM, hit=pixels(), target=(TOP, 0, 0), drop=True)[1] == {"step": -0.01, "off_screen": -1.0}
    assert reward(om_terms, OM, hit=IN, target=(TOP, 0, 0), last=True)[1] == {"step": -0.01, "not_dropped": -1.0}


def test_cells_that_are_hit():
    hit = pixels((TOP, 0, 0, 100), (BEHIND, 2, 3, 95), (BEHIND, 6, 6, 94), (CONTAINED, 1, 1, 99))
    assert np.argwhere(hit_cells(hit[None])[0]).tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 3]]
    assert object_pixels(hit[None]).tolist() == [289]
    assert cells_away(hit_cells(hit[None]), np.array([[TOP, 2, 2]])).tolist() == [1]
    assert not hit_cells(pixels()[None]).any()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, -0.01),
        ({"success": False}, -0.03),
        ({"success": False, "visible": True}, -0.03),
        ({"claim": True, "success": False}, -0.06),
        # Seen, but too far away.
        ({"claim": True, "success": False, "visible": True}, -0.01),
        ({"claim": True, "visible": True}, 0.99),
        ({"new_place": True}, 0.0),
        ({"new_opened": True}, 0.05),
        # No action does two of these, but the algorithm has an order: a place, an opening, a claim.
        ({"new_place": True, "new_opened": True, "claim": True}, 0.0),
        ({"new_opened": True, "claim": True}, 0.05),
        ({"new_place": True, "success": False}, -0.03),
    ],
)
def test_rewards_of_s(changes, expected):
    assert reward(s_terms, S, **changes)[0] == pytest.approx(expected, abs=1e-12)


def test_terms_of_s():
    assert reward(s_terms, S, claim=True, visible=True)[1] == {"step": -0.01, "found": 1.0}
    assert reward(s_terms, S, claim=True, success=False)[1] == {"step": -0.01, "false_claim": -0.05}
    assert reward(s_terms, S, new_place=True)[1] == {"step": -0.01, "new_place": 0.01}


def random_arguments(names, rng, *shape: int) -> dict[str, np.ndarray]:
    """Random independent flags, and random numbers for numeric arguments."""
    inputs = {name: rng.random(shape) < 0.5 for name in names}
    numbers = {name: rng.random(shape) for name in ("hide", "probability", "percentile")}
    numbers |= {name: rng.integers(0, 400, shape) for name in ("extrap_before", "extrap_after")}
    return inputs | {name: value for name, value in numbers.items() if name in inputs}


@pytest.mark.parametrize(("terms", "defaults"), [(em_terms, EM), (oh_terms, OH), (om_terms, OM), (s_terms, S)])
def test_a_batch_equals_its_steps_one_by_one(terms, defaults):
    rng = np.random.default_rng(0)
    inputs = random_arguments(defaults, rng, 50, 8)
    if terms is om_terms:
        crowded = rng.integers(0, 30, (50, 8, 3, 7, 7)) * (rng.random((50, 8, 3, 7, 7)) < 0.02)
        inputs |= {"hit": crowded, "target": rng.integers(0, [3, 7, 7], (50, 8, 3))}
    history = terms(**inputs)
    for t in range(8):
        batch = terms(**{name: value[:, t] for name, value in inputs.items()})
        for b in range(50):
            single = terms(**{name: value[b : b + 1, t] for name, value in inputs.items()})
            assert single.keys() == batch.keys() == history.keys()
            for name in single:
                assert single[name][0] == batch[name][b] == history[name][b, t], name
            assert total(single)[0] == total(batch)[b] == total(history)[b, t]


def test_values_and_percentiles_in_a_batch_equal_single_ones():
    rng = np.random.default_rng(1)
    value, mean, unseen = rng.normal(size=20), rng.normal(size=20), rng.random(20) < 0.5
    lengths, steps, found = rng.integers(1, 500, (20, 100)), rng.integers(1, 500, 20), rng.random(20) < 0.5
    seen = rng.random((20, 9)) < 0.5
    seen[:, 0] = True
    values = rng.normal(size=(20, 9))
    flags = random_arguments(("success", "place_at", "ready"), rng, 20, 15)
    for b in range(20):
        one = slice(b, b + 1)
        assert em_hide(value[one], mean[one], unseen[one])[0] == em_hide(value, mean, unseen)[b]
        assert em_mean_value(values[one], seen[one])[0] == em_mean_value(values, seen)[b]
        assert oh_percentile(lengths[one], steps[one])[0] == oh_percentile(lengths, steps)[b]
        assert seeker_steps(found[one], steps[one])[0] == seeker_steps(found, steps)[b]
        single = oh_final(**{name: flag[one] for name, flag in flags.items()})
        assert (single[0] == oh_final(**flags)[b]).all()
        assert single.sum() <= 1


def test_invalid_arguments_are_errors():
    flag = np.array([True, False])
    with pytest.raises(TypeError, match="bool"):
        s_terms(success=flag.astype(int), claim=flag, visible=flag, new_place=flag, new_opened=flag)
    with pytest.raises(ValueError, match="shape"):
        total(s_terms(success=flag, claim=flag, visible=flag, new_place=flag[:, None], new_opened=flag))
