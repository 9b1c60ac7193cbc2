"""Statistics of a whole study: tasks, notes, Holm over tasks."""

import math

import numpy as np
import pytest
from study.synthetic import make_losses

from scrubjay.errors import StatisticsError
from scrubjay.study.bootstrap import loss_ratios
from scrubjay.study.comparison import compare_encoders
from scrubjay.study.contrasts import against_control, holm
from scrubjay.study.mixed_model import fit_mixed_model


@pytest.fixture(scope="module")
def losses():
    return {
        "depth": make_losses({"cache": 0.35, "imagenet": 0.5, "random": 0.9}, scenes=2, places=16, seed=1),
        "normals": make_losses({"cache": 0.5, "imagenet": 0.5, "random": 0.55}, scenes=2, places=16, seed=2),
        "class": make_losses({"cache": 0.5, "imagenet": 0.5, "random": 0.5}, scenes=1, places=16, seed=3),
    }


def test_rows_hold_ratios_contrasts_and_holm_over_tasks(losses):
    kitchen = losses["class"].rows(losses["class"].scene_type == "Kitchen")
    study = compare_encoders(losses | {"class": kitchen}, "imagenet", draws=200)
    assert [(c.task, c.encoder) for c in study.comparisons[:4]] == [
        ("depth", "cache"), ("depth", "imagenet"), ("depth", "random"), ("normals", "cache"),
    ]  # fmt: skip
    found = {(c.task, c.encoder): c for c in study.comparisons}
    better, control, worse = (found["depth", name] for name in ("cache", "imagenet", "random"))
    assert better.significant and better.ratio.high < 1 and better.contrast.high < 0
    assert worse.significant and worse.ratio.low > 1
    assert not control.significant and control.contrast is None and control.ratio == (1, 1, 1)
    assert better.ratio == loss_ratios(losses["depth"], "imagenet", draws=200)["cache"]
    assert better.contrast == against_control(fit_mixed_model(losses["depth"]), "imagenet")[0]
    plain = [found[task, "random"].contrast.p for task in ("depth", "normals")]
    np.testing.assert_allclose([found[task, "random"].p_holm for task in ("depth", "normals")], holm(plain))
    assert [len(study.pairs[task]) for task in losses] == [3, 3, 0]
    # One scene: intervals, and a note in place of a model.
    single = found["class", "cache"]
    assert single.contrast is None and math.isnan(single.p_holm) and "class" not in study.models
    assert single.note == "no mixed model: the mixed model needs two scenes or more"
    assert math.isnan(single.row()["p"]) and single.row()["significant"] is False
    assert better.row()["p"] == better.contrast.p and better.row()["note"] == ""


def test_bad_tables_are_named_before_anything_is_computed(losses):
    lacking = losses["normals"].rows(losses["normals"].encoder != "imagenet")
    with pytest.raises(StatisticsError, match="normals: no losses of encoder 'imagenet'; there are cache, random"):
        compare_encoders(losses | {"normals": lacking}, "imagenet")
    alone = losses["normals"].rows(losses["normals"].encoder == "imagenet")
    with pytest.raises(StatisticsError, match="normals: a comparison needs two encoders or more"):
        compare_encoders(losses | {"normals": alone}, "imagenet")
    with pytest.raises(StatisticsError, match="no task"):
        compare_encoders({}, "imagenet")
