"""The paper's additional losses on numbers worked out by hand, and their gradients where stages are mixed."""

import numpy as np
import pytest
import torch

from scrubjay.game.actions import ALLOWED, NAMES, PLACE_ACTIONS, Stage, action_index
from scrubjay.training import losses, perspective_losses

YES, NO = torch.tensor([[True]]), torch.tensor([[False]])


def logits_of(stage: Stage, **likely: float) -> torch.Tensor:
    """(1, 1, 219): zeros where the stage has an action, except some by name (with _ for |)."""
    logits = torch.where(torch.from_numpy(ALLOWED[stage]), 0.0, -torch.inf)
    for name, value in likely.items():
        logits[action_index(name.replace("_", "|", 1))] = value
    return logits[None, None]


def test_self_prediction_is_a_softmax_over_the_episode():
    """Three images in an episode, a fourth in the next; D = 4, so dot products count half."""
    seen = torch.tensor([[1.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 3, 0], [9, 9, 9, 9]])[:, None]
    expected = torch.tensor([[0.0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1]])[:, None]
    episode = torch.tensor([[0], [0], [0], [1]])
    first = np.log(2 + np.exp(1.0)) - 1.0
    second = np.log(2 + np.exp(3.0)) - 3.0
    found = losses.self_prediction(seen, expected, episode, torch.ones(3, 1, dtype=torch.bool))
    assert found.item() == pytest.approx((first + second) / 2), "the last step's successor is another episode's"


def test_cells_changed_where_a_tenth_of_the_features_did():
    before = torch.zeros(2, 14, 14)
    now = before.clone()
    now[:, 3, 5] = 0.01
    now[1, 0, 0] = 1e-4
    changed = losses.changed_cells(before, now)
    assert changed.nonzero().tolist() == [[1, 2]], "one of four features is a quarter; the other differs too little"


def test_the_change_map_should_lie_where_something_changed():
    change = torch.zeros(1, 1, 7, 7)
    change[0, 0, 0, 0] = np.log(2.0)
    changed = torch.zeros(1, 1, 7, 7, dtype=torch.bool)
    changed[0, 0, 0, :2] = True
    assert losses.change_localization(change, changed, YES).item() == pytest.approx(-np.log(3 / 50))
    assert losses.change_localization(change, torch.zeros_like(changed), YES).item() == 0


def test_openings_that_were_tried_say_where_others_would_succeed():
    """Four steps: one opening that succeeds, two that fail, and a step that opens nothing."""
    said = torch.zeros(4, 1, 7, 7)
    said[0, 0, 2, 3], said[1, 0, 6, 6] = np.log(3.0), np.log(4.0)
    names = ["OpenAt|3,4", "OpenAt|7,7", "OpenAt|1,1", "MoveAhead"]
    action = torch.tensor([[action_index(name)] for name in names])
    success = torch.tensor([[True], [False], [False], [True]])
    every = torch.ones(4, 1, dtype=torch.bool)
    # The odds were 3, 4 and 1 to 1.
    expected = -(np.log(3 / 4) + np.log(1 / 5) + np.log(1 / 2))
    assert losses.openable(said, action, success, every).item() == pytest.approx(expected / losses.MIN_OPEN_TRIES)
    assert losses.openable(said, action, success, ~every).item() == 0
    # In sixteen games there are 48 tries: enough for a mean.
    said, action, success, every = (tensor.repeat_interleave(16, 1) for tensor in (said, action, success, every))
    assert losses.openable(said, action, success, every).item() == pytest.approx(expected / 3)
    assert losses.openable(said, action, success, every & (action != action[1])).item() == pytest.approx(
        -(np.log(3 / 4) + np.log(1 / 2)) / 2
    )


def test_modalities_keep_a_tenth():
    """All on one cell of on top: the others have 49 each of exp(-8) beside 1."""
    logits = logits_of(Stage.OH)
    logits[..., PLACE_ACTIONS] = -8.0
    logits[..., PLACE_ACTIONS[0]] = 0.0
    rest = np.exp(-8.0)
    share = 49 * rest / (1 + 146 * rest)
    assert losses.modality_collapse(logits, YES).item() == pytest.approx(2 * (np.log(0.1) - np.log(share)), rel=1e-5)
    assert losses.modality_collapse(logits_of(Stage.OH), YES).item() == 0


def test_placing_should_be_like_what_the_manipulator_reaches():
    hittable = torch.full((1, 1, 3, 7, 7), -50.0)
    hittable[0, 0, 1, 2, 3] = hittable[0, 0, 0, 0, 0] = 50.0
    uniform = losses.spatial_collapse(logits_of(Stage.OH), hittable, YES)
    assert uniform.item() == pytest.approx(np.log(147), rel=1e-5)
    better = losses.spatial_collapse(logits_of(Stage.OH, **{"PlaceAt_1,3,4": 5.0, "PlaceAt_0,1,1": 5.0}), hittable, YES)
    assert better < uniform / 2


def test_recalling_and_closing():
    said = torch.zeros(2, 1, 147)
    said[0, 0, 5] = np.log(147)
    both = torch.ones(2, 1, dtype=torch.bool)
    assert losses.recall(said, torch.tensor([[5], [-1]]), both).item() == pytest.approx(np.log((147 + 146) / 147))
    assert losses.closing(logits_of(Stage.OH), YES, YES).item() == pytest.approx(np.log(200))
    assert losses.closing(logits_of(Stage.OH), NO, YES).item() == 0


def test_manipulating():
    action = torch.tensor([[action_index("MoveHandUp")]])
    assert losses.hindsight(logits_of(Stage.OM), action, YES, YES).item() == pytest.approx(np.log(62))
    assert losses.hindsight(logits_of(Stage.OM), action, NO, YES).item() == 0
    contained, top = torch.tensor([[[1, 2, 3]]]), torch.tensor([[[0, 2, 3]]])
    assert losses.opening(logits_of(Stage.OM), contained, NO, YES).item() == pytest.approx(-np.log(49 / 62))
    assert losses.opening(logits_of(Stage.OM), contained, YES, YES).item() == 0
    assert losses.opening(logits_of(Stage.OM), top, NO, YES).item() == 0
    hittable = torch.zeros(1, 1, 3, 7, 7)
    hittable[0, 0, 1, 2, 3] = np.log(3.0)
    assert losses.attainable(hittable, contained, YES, YES).item() == pytest.approx(-np.log(0.75))
    assert losses.attainable(hittable, contained, NO, YES).item() == pytest.approx(-np.log(0.25))


def test_seeking():
    toward = torch.tensor([[action_index("MoveAhead")]])
    assert losses.imitation(logits_of(Stage.S), toward, YES).item() == pytest.approx(np.log(58))
    assert losses.imitation(logits_of(Stage.S), torch.tensor([[-1]]), YES).item() == 0
    assert losses.claiming(logits_of(Stage.S), YES, YES).item() == pytest.approx(np.log(58))
    assert losses.claiming(logits_of(Stage.S), NO, YES).item() == pytest.approx(-np.log(57 / 58), rel=1e-4)


def test_steps_of_other_stages_have_no_part_and_no_gradient():
    """A batch with all stages: every loss is about its own, and every gradient is a number."""
    logits = torch.cat([logits_of(stage) for stage in Stage])
    logits[Stage.PS] = 0.0
    logits.requires_grad_()
    action = torch.tensor(
        [[0], [0], [action_index("PlaceAt|0,1,1")], [action_index("DropObject")], [action_index("ClaimVisible")]]
    )
    stage = torch.arange(5)[:, None]
    hittable = torch.zeros(5, 1, 3, 7, 7)
    target = torch.tensor([[[1, 0, 0]]]).expand(5, 1, 3)
    yes, oh, om, s = torch.ones(5, 1, dtype=torch.bool), stage == Stage.OH, stage == Stage.OM, stage == Stage.S
    total = (
        losses.modality_collapse(logits, oh) + losses.spatial_collapse(logits, hittable, oh)
        + losses.closing(logits, yes, oh) + losses.hindsight(logits, action, yes, om)
        + losses.opening(logits, target, ~yes, om) + losses.imitation(logits, action, s)
        + losses.claiming(logits, yes, s)
    )  # fmt: skip
    total.backward()
    assert torch.isfinite(total) and torch.isfinite(logits.grad).all()
    assert (logits.grad[:2] == 0).all() and (logits.grad[2:].abs().sum((1, 2)) > 0).all()
    assert logits.shape[-1] == len(NAMES)


def test_what_hiding_comes_to_and_which_is_better():
    said = torch.zeros(2, 295)
    assert perspective_losses.outcome(said, torch.tensor([3, 7]), torch.tensor([True, False])).item() == pytest.approx(
        np.log(295)
    )
    values, steps = torch.tensor([[0.0, 1.0, 3.0]]), torch.tensor([[10.0, 20.0, 20.0]])
    pairs = [np.log(1 + np.exp(-1.0)), np.log(1 + np.exp(-3.0)), np.log(1 + np.exp(2.0)) - 0.5 * 2.0]
    assert perspective_losses.ranking(values, steps).item() == pytest.approx(np.mean(pairs), rel=1e-5)


def test_the_mental_seeker_mimics_and_foresees():
    policy, success = torch.zeros(1, 1, 58), torch.zeros(1, 1, 58)
    success[0, 0, 4] = np.log(3.0)
    real = torch.zeros(1, 1, 58)
    real[0, 0, 2] = 1.0
    found = perspective_losses.mental(policy, success, real, torch.tensor([[4]]), YES, NO, YES, claim=57)
    assert found["mental_policy"].item() == pytest.approx(np.log(58))
    assert found["mental_success"].item() == pytest.approx(-np.log(0.75))
    assert found["mental_claim"].item() == pytest.approx(np.log(2))
