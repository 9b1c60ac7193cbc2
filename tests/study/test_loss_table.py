"""Tables of losses: their file and what they refuse."""

import gzip

import numpy as np
import pytest
from study.synthetic import make_losses

from scrubjay.errors import StatisticsError
from scrubjay.study.loss_table import LossTable, read_losses, write_losses

GOOD = {
    "encoder": ["a", "a", "b"],
    "scene_type": ["K", "K", "K"],
    "scene": ["K1", "K1", "K1"],
    "place": [[0, 1, 0], [1, 1, 0], [0, 1, 0]],
    "rotation": [0, 0, 0],
    "loss": [0.1, 0.2, 0.3],
}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("loss", [0.1, 0.0, 0.3], "1 of 3 are not; the first is 0.0 .a in K1 at .1, 1, 0., rotation 0"),
        ("loss", [0.1, -0.2, np.nan], "2 of 3 are not; the first is -0.2"),
        ("loss", [np.nan, 0.2, 0.3], "the first is nan"),
        ("loss", [0.1, 0.2, np.inf], "the first is inf"),
        ("place", [[0, 1, 0], [0, 1, 0], [0, 1, 0]], "rows 1 and 2 are the same place: a in K1 at .0, 1, 0."),
        ("place", [[0, 1, 0], [np.nan, 1, 0], [0, 1, 0]], "place has values that are not finite"),
        ("place", [[0, 1], [0, 2], [0, 3]], "place must have shape .3, 3., not .3, 2."),
        ("rotation", [0, 0], "rotation must have shape"),
        ("scene_type", ["K", "L", "K"], "scene K1 has more than one scene type"),
    ],
)
def test_bad_rows_get_one_clear_sentence(field, value, message):
    LossTable(**GOOD)
    with pytest.raises(StatisticsError, match=message):
        LossTable(**(GOOD | {field: value}))


def test_an_empty_table_is_refused():
    with pytest.raises(StatisticsError, match="empty"):
        LossTable(**{name: [] for name in GOOD})


def test_losses_are_read_back_exactly(tmp_path):
    table = make_losses({"a": 0.5, "b": 0.6}, scenes=1, places=5, seed=0)
    for name in ("losses.csv", "losses.csv.gz"):
        write_losses(table, tmp_path / name)
    assert gzip.decompress((tmp_path / "losses.csv.gz").read_bytes()) == (tmp_path / "losses.csv").read_bytes()
    for name in ("losses.csv", "losses.csv.gz"):
        again = read_losses(tmp_path / name)
        for field in GOOD:
            np.testing.assert_array_equal(getattr(again, field), getattr(table, field))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("encoder,loss\na,1\n", "lacks the columns scene_type, scene, x, y, z, rotation"),
        ("", "lacks the columns"),
        ("encoder,scene_type,scene,x,y,z,rotation,loss\n", "empty"),
        ("encoder,scene_type,scene,x,y,z,rotation,loss\na,K,K1,0,0,zero,0,1\n", "column z must be numbers"),
        ("encoder,scene_type,scene,x,y,z,rotation,loss\na,K,K1,0,0\n", "column z must be numbers"),
    ],
)
def test_bad_files_get_one_clear_sentence(tmp_path, text, message):
    (tmp_path / "losses.csv").write_text(text)
    with pytest.raises(StatisticsError, match=message):
        read_losses(tmp_path / "losses.csv")


def test_a_missing_or_damaged_file_is_named(tmp_path):
    with pytest.raises(StatisticsError, match=r"losses\.csv cannot be read"):
        read_losses(tmp_path / "losses.csv")
    (tmp_path / "losses.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(StatisticsError, match=r"losses\.csv\.gz cannot be read"):
        read_losses(tmp_path / "losses.csv.gz")
