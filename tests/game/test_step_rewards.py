"""Rewards of steps written by hand: all branches of the four algorithms, and when a PlaceAt is rewarded."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.cache import StepResult
from scrubjay.game.novelty import Novelty
from scrubjay.game.rewards import (
    em_step_terms,
    oh_step_terms,
    om_step_terms,
    place_at_terms,
    reward_terms,
    s_step_terms,
    step_reward,
    total,
)

FLAGS = ("success", "hit", "placed", "placed_before", "visible", "waited", "full", "ended", "truncated",
         "finished", "found")  # fmt: skip


def step(stage: Stage, action: str, **what) -> dict:
    """One game's step; flags default to False and numbers to 0."""
    return {"stage": stage, "action": action_index(action) if action else NOTHING, **what}


def result_of(*steps: dict) -> StepResult:
    """The steps of several games together."""

    def of(name: str, default) -> np.ndarray:
        return np.array([one.get(name, default) for one in steps])

    novelty = Novelty(of("new_place", False), of("new_opened", False), of("before", 0), of("after", 0))
    flags = {name: of(name, False) for name in FLAGS}
    return StepResult(
        stage=of("stage", 0), action=of("action", 0), counts=of("counts", np.zeros((3, 7, 7), int)),
        target=of("target", (0, 0, 0)), novelty=novelty, pose=np.zeros((len(steps), 7)),
        place=np.zeros((len(steps), 4), int), opened=np.full(len(steps), NOTHING),
        open=np.zeros((len(steps), 1), bool), **flags,
    )  # fmt: skip


def pixels(modality: int, row: int, column: int, count: int) -> np.ndarray:
    counts = np.zeros((3, 7, 7), int)
    counts[modality, row, column] = count
    if modality == 1:
        counts[0, row, column] = count - 1  # What is contained and seen also counts as on top.
    return counts


EM, PS, OH, OM, S = Stage
BY_HAND = [
    (step(EM, "MoveAhead", success=True, new_place=True, before=3, after=6), -0.01 + 0.2),
    (step(EM, "RotateLeft", success=True, before=6, after=7), -0.01 + 0.2 / 3),
    (step(EM, "MoveAhead", before=3, after=3), -0.03),
    (step(EM, "OpenAt|4,4", success=True, new_opened=True), -0.01 + 0.4),
    (step(EM, "OpenAt|4,4", success=True), -0.001),
    (step(EM, "OpenAt|4,4"), -0.001),
    (step(PS, ""), 0.0),
    (step(PS, "", success=True, new_place=True, before=0, after=9), 0.0),
    (step(OH, "Crouch", success=True), -0.01),
    (step(OH, "Stand"), -0.02),
    (step(OH, "OpenAt|1,7", success=True, new_opened=True), 0.19),
    (step(OH, "OpenAt|1,7", success=True), -0.01),
    (step(OH, "PlaceAt|0,1,1", success=True), 0.0),
    (step(OH, "PlaceAt|0,1,1", placed_before=True), -0.11),
    (step(OH, "ReadyForSeeker"), -0.11),
    (step(OH, "ReadyForSeeker", success=True, placed_before=True, ended=True), -0.01),
    (step(OM, "MoveHandUp", success=True), -0.01),
    (step(OM, "MoveHandUp"), -0.03),
    (step(OM, "OpenAt|1,1", success=True, new_opened=True), 0.09),
    (step(OM, "DropObject", success=True, ended=True), -1.01),
    (step(OM, "DropObject", success=True, ended=True, counts=pixels(0, 2, 2, 50), target=(0, 2, 2)), 1.99),
    (step(OM, "DropObject", success=True, ended=True, counts=pixels(0, 2, 2, 50), target=(0, 3, 2)), 0.24),
    (step(OM, "DropObject", success=True, ended=True, counts=pixels(1, 5, 0, 50), target=(1, 5, 0)), 2.99),
    (step(OM, "DropObject", success=True, ended=True, counts=pixels(1, 5, 0, 50), target=(1, 5, 2)), 0.99 + 0.25**2),
    (step(OM, "MoveHandUp", success=True, full=True, ended=True), -1.01),
    (step(S, "MoveAhead", success=True, new_place=True), 0.0),
    (step(S, "MoveAhead", success=True), -0.01),
    (step(S, "MoveAhead"), -0.03),
    (step(S, "OpenAt|1,1", success=True, new_opened=True), 0.05),
    (step(S, "ClaimVisible"), -0.06),
    (step(S, "ClaimVisible", visible=True), -0.01),
    (step(S, "ClaimVisible", visible=True, success=True, finished=True, found=True), 0.99),
]


@pytest.mark.parametrize(("one", "earned"), BY_HAND)
def test_a_steps_reward_follows_its_algorithm(one, earned):
    assert step_reward(result_of(one)) == pytest.approx([earned], abs=1e-12)


@given(st.permutations(range(len(BY_HAND))))
def test_rewards_do_not_depend_on_the_other_games(order):
    paid = step_reward(result_of(*(BY_HAND[k][0] for k in order)))
    assert paid == pytest.approx([BY_HAND[k][1] for k in order], abs=1e-12)


def test_a_hiding_value_is_rewarded_only_where_something_is_new():
    new = step(EM, "MoveAhead", success=True, new_place=True)
    steps = result_of(new, new, step(EM, "RotateLeft", success=True), step(S, "MoveAhead", success=True))
    assert step_reward(steps, hide=np.array([0.1, 0.0, 0.1, 0.1])) == pytest.approx([0.09, -0.01, -0.01, -0.01])


def test_a_place_at_is_rewarded_when_its_manipulation_ends():
    dropped = dict(success=True, ended=True)
    steps = result_of(
        step(OH, "PlaceAt|0,1,1", success=True),
        step(OM, "MoveHandUp", success=True),
        step(OM, "DropObject", placed=True, **dropped),
        step(OM, "DropObject", placed=True, **dropped),
        step(OM, "DropObject", **dropped),
        step(OM, "MoveHandUp", full=True, ended=True),
        step(S, "ClaimVisible", finished=True, **dropped),
    )
    chance = np.array([0.5, 0.5, 1.0, 0.1, 0.1, 0.1, 0.1])
    paid = total(place_at_terms(steps, chance))
    assert paid == pytest.approx([0, 0, 0.01 + 0.5 / 100, 0.01 + 0.5, -0.02, -0.02, 0])
    assert total(place_at_terms(steps))[2:4] == pytest.approx([0.015, 0.015])


def test_the_terms_have_names_and_add_up_to_the_reward():
    for stage, terms_of in ((EM, em_step_terms), (OH, oh_step_terms), (OM, om_step_terms), (S, s_step_terms)):
        steps = result_of(*(one for one, _ in BY_HAND if one["stage"] == stage))
        terms = terms_of(steps)
        assert "step" in terms and total(terms) == pytest.approx(step_reward(steps))


def test_terms_are_logged_by_stage_and_name():
    """A batch with games at all stages; each game has the terms of its own stage only."""
    steps = result_of(*(one for one, _ in BY_HAND))
    terms = reward_terms(steps)
    assert {"EM/explore", "OH/not_ready", "OM/exact", "S/found"} < set(terms)
    assert sum(terms.values()) == pytest.approx(step_reward(steps))
    for name, term in terms.items():
        assert not term[steps.stage != Stage[name.split("/")[0]]].any()
    assert not reward_terms(result_of(step(PS, ""))) and step_reward(result_of(step(PS, ""))).tolist() == [0.0]


def test_results_written_by_hand_have_every_field():
    result = result_of(BY_HAND[0][0])
    assert {len(getattr(result, f.name)) for f in fields(StepResult) if f.name != "novelty"} == {1}
