"""The losses of the seven tasks on numbers worked out by hand."""

import math

import pytest
import torch

from scrubjay.study.probe_losses import LEAST, TASKS


def loss(task: str, predicted, **labels) -> list[float]:
    return TASKS[task].loss(torch.tensor(predicted), {k: torch.tensor(v) for k, v in labels.items()}).tolist()


def test_depth_is_the_mean_absolute_error_over_pixels_with_a_depth():
    # Errors 1, 0.5, -, 2; the third pixel has no depth.
    predicted, target = [[[[2.0, 3.0], [9.0, 1.0]]]], [[[1.0, 2.5], [0.0, 3.0]]]
    assert loss("depth", predicted, target=target) == pytest.approx([3.5 / 3])
    assert loss("depth", predicted, target=target, valid=[[[True, False], [True, True]]]) == pytest.approx([1.5])


def test_normals_are_judged_by_one_minus_cosine():
    # Predictions need not have length 1: the same direction (0), opposite (2), 60 degrees (0.5), and no target.
    predicted = torch.tensor([[0.0, 0, 5], [0, -2, 0], [1, 0, 0], [1, 1, 1]]).T.reshape(1, 3, 2, 2).tolist()
    target = [[[[0.0, 0, 1], [0, 1, 0]], [[0.5, math.sqrt(0.75), 0], [0, 0, 0]]]]
    assert loss("normals", predicted, target=target) == pytest.approx([2.5 / 3 + LEAST])


def test_classes_are_judged_by_binary_cross_entropy():
    # -log(1/2) and -log(1 - 3/4).
    logits = [[0.0, math.log(3)]]
    expected = (math.log(2) + math.log(4)) / 2
    assert loss("class", logits, target=[[True, False]]) == pytest.approx([expected])


def test_openability_weighs_openable_pixels_five_times():
    # Probabilities 1/2, 1/4, 1/4 at both pixels; classes 0 and 2.
    one = torch.tensor([0.5, 0.25, 0.25]).log()
    logits = torch.stack([one, one], 1).reshape(1, 3, 1, 2).tolist()
    expected = (0.2 * math.log(2) + 1 * math.log(4)) / 1.2
    assert loss("openability", logits, target=[[[0, 2]]]) == pytest.approx([expected])


def test_openability_is_torchs_weighted_cross_entropy():
    logits, target = torch.randn(3, 3, 8, 8), torch.randint(0, 3, (3, 8, 8))
    weight = torch.tensor([0.2, 1, 1])
    expected = [
        torch.nn.functional.cross_entropy(logits[i : i + 1], target[i : i + 1], weight).item() for i in range(3)
    ]
    assert TASKS["openability"].loss(logits, {"target": target}).tolist() == pytest.approx(expected, rel=1e-5)


def test_traversable_is_judged_by_binary_cross_entropy_over_pixels():
    logits = [[[[0.0, math.log(3)]]], [[[0.0, 0.0]]]]
    target = [[[True, True]], [[False, True]]]
    assert loss("traversable", logits, target=target) == pytest.approx(
        [(math.log(2) + math.log(4 / 3)) / 2, math.log(2)]
    )


def test_without_an_object_its_pixels_count_as_much_as_all_others():
    # In the mask: 3. Outside: 1 and 2, and a pixel without depth.
    predicted, target = [[[[4.0, 2.0], [4.0, 7.0]]]], [[[1.0, 1.0], [2.0, 0.0]]]
    mask = [[[True, False], [False, False]]]
    assert loss("object_depth", predicted, target=target, mask=mask) == pytest.approx([(3 + 1.5) / 2])
    # In the mask: 2, outside: 0, 0, 1.
    normals = torch.tensor([[0.0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 0]]).T.reshape(1, 3, 2, 2).tolist()
    aims = [[[[0.0, 0, -1], [0, 1, 0]], [[1.0, 0, 0], [0, 1, 0]]]]
    assert loss("object_normals", normals, target=aims, mask=mask) == pytest.approx([(2 + 1 / 3) / 2 + LEAST])


@pytest.mark.parametrize("task", TASKS)
def test_losses_have_finite_gradients_even_where_nothing_is_valid(task):
    shape = (2, TASKS[task].outputs, 4, 4) if TASKS[task].dense else (2, 90)
    predicted = torch.zeros(shape, requires_grad=True)
    target = (
        torch.zeros(2, 4, 4, 3)
        if "normals" in task
        else torch.zeros(2, 4, 4)
        if TASKS[task].dense
        else torch.zeros(2, 90)
    )
    nowhere = torch.zeros(2, 4, 4, dtype=torch.bool)
    losses = TASKS[task].loss(predicted, {"target": target, "mask": nowhere, "valid": nowhere})
    losses.sum().backward()
    assert losses.shape == (2,) and torch.isfinite(losses).all() and torch.isfinite(predicted.grad).all()
