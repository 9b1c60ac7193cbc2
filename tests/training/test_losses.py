"""The paper's additional losses on numbers worked out by hand, and their gradients where stages are mixed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.game.actions import ALLOWED, NAMES, PLACE_ACTIONS, Stage, action_index
from scrubjay.training import losses, perspective_losses

YES, NO = torch.tensor([[True]]), torch.tensor([[False]])


def logits_of(stage: Stage, **likely: float) -> torch.Tensor:
    """(1, 1, 219): zeros where the stage has an action, except those given by name (with _ for |)."""
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
    loss = losses.self_prediction(seen, expected, episode, torch.ones(3, 1, dtype=torch.bool))
    assert loss.item() == pytest.approx((first + second) / 2), "the last step's successor belongs to another episode"


def test_self_prediction_goes_on_in_the_next_episode():
    """Two episodes of two images: of each pair the first step has a successor, and either image is as likely."""
    episode, every = torch.tensor([[0], [0], [1], [1]]), torch.ones(3, 1, dtype=torch.bool)
    seen, expected = torch.zeros(4, 1, 4), torch.zeros(3, 1, 4)
    assert losses.self_prediction(seen, expected, episode, every).item() == pytest.approx(np.log(2))
    seen[3, 0, 0] = expected[2, 0, 0] = 2.0  # The last image is now e^2 times as likely as the one before.
    likely = np.log(1 + np.exp(-2))
    assert losses.self_prediction(seen, expected, episode, every).item() == pytest.approx((np.log(2) + likely) / 2)


def test_a_cell_has_changed_if_a_tenth_of_its_features_did():
    before = torch.linspace(-2, 2, 392).view(2, 14, 14)
    now = before.clone()
    now[:, 3, 5] += 0.01
    now[1, 0, 0] += 1e-4
    changed = losses.changed_cells(before, now)
    assert changed.nonzero().tolist() == [[1, 2]], "one of four features is a quarter; the other differs too little"


def test_the_change_map_is_trained_towards_changed_cells():
    change = torch.zeros(1, 1, 7, 7)
    change[0, 0, 0, 0] = np.log(2.0)
    changed = torch.zeros(1, 1, 7, 7, dtype=torch.bool)
    changed[0, 0, 0, :2] = True
    assert losses.change_localization(change, changed, YES).item() == pytest.approx(-np.log(3 / 50))
    assert losses.change_localization(change, torch.zeros_like(changed), YES).item() == 0


def test_shared_losses_are_means_per_stage_summed_over_stages():
    """Three steps of one stage, one of another, and a third stage that the batch lacks."""
    episode = torch.tensor([[0, 1]] * 4)
    seen, expected = torch.zeros(4, 2, 4), torch.zeros(3, 2, 4)
    # Of four equal images the next one has probability 1/4; in the second game the first is e^2 times as likely.
    seen[1, 1, 0] = expected[0, 1, 0] = 2.0
    likely, uniform = -np.log(np.exp(2) / (np.exp(2) + 3)), np.log(4)
    many = torch.tensor([[True, True], [True, False], [True, False]])
    one = torch.tensor([[False, False], [False, True], [False, False]])
    loss = losses.self_prediction(seen, expected, episode, many, one, many & one)
    assert loss.item() == pytest.approx((likely + 3 * uniform) / 4 + uniform)
    assert losses.self_prediction(seen, expected, episode, many & one).item() == 0

    changed = torch.zeros(3, 2, 7, 7, dtype=torch.bool)
    changed[:, 0, 0, 0], changed[1, 1, :, :7] = True, True
    loss = losses.change_localization(torch.zeros(3, 2, 7, 7), changed, many, one, many & one)
    assert loss.item() == pytest.approx(np.log(49) + 0), "nothing changed at the fourth of the first stage's steps"
    changed[1, 1] = False
    changed[1, 1, :, 0] = True
    loss = losses.change_localization(torch.zeros(3, 2, 7, 7), changed, many, one, many & one)
    assert loss.item() == pytest.approx(np.log(49) + np.log(7))


def test_tried_openings_train_their_success_logits():
    """Four steps: one OpenAt that succeeds, two that fail, and another action."""
    logits = torch.zeros(4, 1, 7, 7)
    logits[0, 0, 2, 3], logits[1, 0, 6, 6] = np.log(3.0), np.log(4.0)
    names = ["OpenAt|3,4", "OpenAt|7,7", "OpenAt|1,1", "MoveAhead"]
    action = torch.tensor([[action_index(name)] for name in names])
    success = torch.tensor([[True], [False], [False], [True]])
    every = torch.ones(4, 1, dtype=torch.bool)
    # The odds were 3, 4 and 1 to 1.
    expected = -(np.log(3 / 4) + np.log(1 / 5) + np.log(1 / 2))
    assert losses.openable(logits, action, success, every).item() == pytest.approx(expected / losses.MIN_OPEN_TRIES)
    assert losses.openable(logits, action, success, ~every).item() == 0
    # In sixteen games there are 48 tries: enough for a mean.
    logits, action, success, every = (tensor.repeat_interleave(16, 1) for tensor in (logits, action, success, every))
    assert losses.openable(logits, action, success, every).item() == pytest.approx(expected / 3)
    assert losses.openable(logits, action, success, every & (action != action[1])).item() == pytest.approx(
        -(np.log(3 / 4) + np.log(1 / 2)) / 2
    )


def test_what_can_be_opened_trains_the_success_logits_of_all_cells_but_tries_know_better():
    """Two steps: a try fails where there is something to open (the door would hit the agent), and another action."""
    logits = torch.zeros(2, 1, 7, 7)
    logits[0, 0, 2, 3], logits[1, 0, 0, 0] = np.log(3.0), np.log(4.0)
    action = torch.tensor([[action_index("OpenAt|3,4")], [action_index("MoveAhead")]])
    success, every = torch.tensor([[False], [True]]), torch.ones(2, 1, dtype=torch.bool)
    openable = torch.zeros(2, 1, 7, 7, dtype=torch.bool)
    openable[0, 0, 2, 3], openable[1, 0, 0, 0] = True, True
    first, second = -np.log(1 / 4) + 48 * np.log(2), -np.log(4 / 5) + 48 * np.log(2)
    loss = losses.openable(logits, action, success, every, openable)
    assert loss.item() == pytest.approx((first + second) / 2)
    assert losses.openable(logits, action, success, every & success, openable).item() == pytest.approx(second)


def test_where_something_is_closed_opening_it_is_likelier_to_be_learned():
    """Of E&M's 57 actions, all equally likely, three open something in the first step, none in the second."""
    logits = logits_of(Stage.EM).expand(2, 1, -1).clone().requires_grad_()
    openable, every = torch.zeros(2, 1, 7, 7, dtype=torch.bool), torch.ones(2, 1, dtype=torch.bool)
    openable[0, 0, 0, :3] = True
    loss = losses.open_closed(logits, openable, every)
    assert loss.item() == pytest.approx(np.log(57 / 3) / 2)
    loss.backward()
    assert torch.isfinite(logits.grad).all() and not logits.grad[1].any()
    assert (logits.grad[0, 0, losses.OPEN_AT][:3] < 0).all() and logits.grad[0, 0, losses.OPEN_AT][3:].min() > 0
    assert losses.open_closed(logits, openable, every & False).item() == 0


def test_the_hand_counts_in_part_for_each_of_the_cells_around_it():
    logits = torch.zeros(3, 1, 7, 7)
    logits[:, 0, 2, 3] = 1.0
    # A quarter of the way from row 2 to row 3, halfway between columns 3 and 4; outside the image; at its very corner.
    place = torch.tensor([[[2.25, 3.5]], [[float("nan"), float("nan")]], [[-0.5, 6.5]]])
    total = np.log(48 + np.e)
    every = torch.ones(3, 1, dtype=torch.bool)
    assert losses.hand(logits, place, every).item() == pytest.approx((total - 0.75 * 0.5 + total) / 2, rel=1e-5)
    first = torch.tensor([[True], [True], [False]])
    assert losses.hand(logits, place, first).item() == pytest.approx(total - 0.375, rel=1e-5)
    assert losses.hand(logits, place, every & False).item() == 0


def test_seeing_weighs_steps_with_the_object_as_much_as_those_without(monkeypatch):
    monkeypatch.setattr(losses, "MIN_CLAIMABLE", 1)
    logits, claimable = torch.tensor([[1.0, -2.0, 0.5, 3.0]]), torch.tensor([[True, False, False, False]])
    mask = torch.tensor([[True, True, True, False]])
    # -log sigmoid(1) = 0.31326; softplus(-2) = 0.12693, softplus(0.5) = 0.97408; the last step is not S's.
    expected = 0.5 * (0.31326 + (0.12693 + 0.97408) / 2)
    assert losses.visible(logits, claimable, mask).item() == pytest.approx(expected, abs=1e-4)
    monkeypatch.setattr(losses, "MIN_CLAIMABLE", 8)
    expected = 0.5 * (0.31326 / 8 + (0.12693 + 0.97408) / 2)
    assert losses.visible(logits, claimable, mask).item() == pytest.approx(expected, abs=1e-4)


def test_a_seeker_with_nothing_to_claim_learns_to_act_like_the_explorer():
    """The explorer takes one of E&M's 57 actions with a probability of 1/2, S takes all with the same, claims aside."""
    assert ALLOWED[Stage.EM][losses.EXPLORE].all() and not ALLOWED[Stage.EM][losses.EXPLORE.stop :].any()
    explorer = logits_of(Stage.EM).expand(3, 1, -1).clone()
    explorer[..., 3] = np.log(56.0)
    logits = torch.cat([logits_of(stage) for stage in (Stage.S, Stage.S, Stage.OM)]).requires_grad_()
    logits.data[1, 0, losses.CLAIM] = 7.0
    divergence = 0.5 * np.log(0.5 * 57) + 56 * 0.5 / 56 * np.log(57 * 0.5 / 56)
    loss = losses.exploring(logits, explorer, torch.tensor([[True], [True], [False]]))
    assert loss.item() == pytest.approx(divergence)
    loss.backward()
    assert torch.isfinite(logits.grad).all() and not logits.grad[2].any() and not logits.grad[..., losses.CLAIM].any()
    assert logits.grad[0, 0].argmin() == 3
    assert losses.exploring(explorer, explorer, torch.ones(3, 1, dtype=torch.bool)).item() == pytest.approx(0, abs=1e-6)


def test_the_probability_of_opening_is_that_of_all_cells_together():
    """49 of E&M's 57 actions; with one cell twice as likely as the rest, 50 of 58. Masked steps do not count."""
    uniform, likelier = logits_of(Stage.EM), logits_of(Stage.EM, **{"OpenAt_4,4": np.log(2)})
    assert losses.open_at_probability(uniform, YES).item() == pytest.approx(49 / 57)
    assert losses.open_at_probability(likelier, YES).item() == pytest.approx(50 / 58)
    mixed, mask = torch.cat([uniform, torch.full_like(uniform, torch.nan)]), torch.cat([YES, NO])
    assert losses.open_at_probability(mixed, mask).item() == pytest.approx(49 / 57)


def test_each_modality_keeps_a_tenth_of_the_probability():
    """All probability on one cell of "on top": each other modality has 49 cells of exp(-8) beside 1."""
    logits = logits_of(Stage.OH)
    logits[..., PLACE_ACTIONS] = -8.0
    logits[..., PLACE_ACTIONS[0]] = 0.0
    rest = np.exp(-8.0)
    share = 49 * rest / (1 + 146 * rest)
    assert losses.modality_collapse(logits, YES).item() == pytest.approx(2 * (np.log(0.1) - np.log(share)), rel=1e-5)
    assert losses.modality_collapse(logits_of(Stage.OH), YES).item() == 0


def test_placing_is_trained_towards_hittable_targets():
    hittable = torch.full((1, 1, 3, 7, 7), -50.0)
    hittable[0, 0, 1, 2, 3] = hittable[0, 0, 0, 0, 0] = 50.0
    uniform = losses.spatial_collapse(logits_of(Stage.OH), hittable, YES)
    assert uniform.item() == pytest.approx(np.log(147), rel=1e-5)
    better = losses.spatial_collapse(logits_of(Stage.OH, **{"PlaceAt_1,3,4": 5.0, "PlaceAt_0,1,1": 5.0}), hittable, YES)
    assert better < uniform / 2


def test_recall_and_closing_by_hand():
    logits = torch.zeros(2, 1, 147)
    logits[0, 0, 5] = np.log(147)
    both = torch.ones(2, 1, dtype=torch.bool)
    assert losses.recall(logits, torch.tensor([[5], [-1]]), both).item() == pytest.approx(np.log((147 + 146) / 147))
    logits[1, 0, 0] = np.log(147 * 3)
    assert losses.recall(logits, torch.tensor([[-1], [0]]), both).item() == pytest.approx(np.log((3 * 147 + 146) / 441))
    assert losses.closing(logits_of(Stage.OH), YES, YES).item() == pytest.approx(np.log(200))
    assert losses.closing(logits_of(Stage.OH), NO, YES).item() == 0


def test_the_losses_of_om_by_hand():
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


def test_the_losses_of_s_by_hand():
    toward = torch.tensor([[action_index("MoveAhead")]])
    assert losses.imitation(logits_of(Stage.S), toward, YES).item() == pytest.approx(np.log(58))
    assert losses.imitation(logits_of(Stage.S), torch.tensor([[-1]]), YES).item() == 0
    assert losses.claiming(logits_of(Stage.S), YES, YES).item() == pytest.approx(np.log(58))
    assert losses.claiming(logits_of(Stage.S), NO, YES).item() == pytest.approx(-np.log(57 / 58), rel=1e-4)
    assert losses.claiming(logits_of(Stage.S), YES, YES, odds=4.0).item() == pytest.approx(4 * np.log(58))
    certain = logits_of(Stage.S, ClaimVisible=90.0).requires_grad_()
    loss = losses.claiming(certain, NO, YES)
    loss.backward()
    assert loss.item() == pytest.approx(-np.log(1e-6), rel=0.05) and certain.grad[certain > -torch.inf].isfinite().all()
    assert losses.demonstration(logits_of(Stage.S, MoveAhead=np.log(2)), toward, YES).item() == pytest.approx(
        np.log(59 / 2)
    )
    assert losses.demonstration(logits_of(Stage.S), toward, NO).item() == 0


@given(p=st.floats(0.02, 0.98), odds=st.floats(0.25, 8.0))
def test_claims_are_learned_at_a_multiple_of_the_odds_of_success(p, odds):
    """Where a claim succeeds with probability p, the loss is least if its odds are `odds` times those of p."""
    best = odds * p / (odds * p + 1 - p)
    logits = logits_of(Stage.S, ClaimVisible=np.log(57 * best / (1 - best))).double().requires_grad_()
    yes, no = (losses.claiming(logits, outcome, YES, odds) for outcome in (YES, NO))
    (gradient,) = torch.autograd.grad(p * yes + (1 - p) * no, logits)
    assert gradient[..., action_index("ClaimVisible")].abs().max() < 1e-5


def test_steps_of_other_stages_have_no_gradient():
    """A batch with all stages: each loss has gradients in its own stage only, and all are finite."""
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


def test_outcome_and_ranking_by_hand():
    logits = torch.zeros(2, 295)
    assert perspective_losses.outcome(
        logits, torch.tensor([3, 7]), torch.tensor([True, False])
    ).item() == pytest.approx(np.log(295))
    values, steps = torch.tensor([[0.0, 1.0, 3.0]]), torch.tensor([[10.0, 20.0, 20.0]])
    pairs = [np.log(1 + np.exp(-1.0)), np.log(1 + np.exp(-3.0)), np.log(1 + np.exp(2.0)) - 0.5 * 2.0]
    assert perspective_losses.ranking(values, steps).item() == pytest.approx(np.mean(pairs), rel=1e-5)


def test_the_mental_seekers_losses_by_hand():
    policy, success = torch.zeros(1, 1, 58), torch.zeros(1, 1, 58)
    success[0, 0, 4] = np.log(3.0)
    real = torch.zeros(1, 1, 58)
    real[0, 0, 2] = 1.0
    terms = perspective_losses.mental(policy, success, real, torch.tensor([[4]]), YES, NO, YES, claim=57)
    assert terms["mental_policy"].item() == pytest.approx(np.log(58))
    assert terms["mental_success"].item() == pytest.approx(-np.log(0.75))
    assert terms["mental_claim"].item() == pytest.approx(np.log(2))
