"""Decoders on disk: the same predictions after loading, and other files are refused."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from scrubjay.errors import ProbeError
from scrubjay.study import static_data
from scrubjay.study.encoders import load_encoder
from scrubjay.study.features import Skips
from scrubjay.study.probe import Examples, ProbeConfig, predict, train_probe
from scrubjay.study.probe_files import load_probe, save_probe
from scrubjay.study.probe_losses import CLASSES, TASKS

CONFIG = ProbeConfig(size=14, max_epochs=2)


def examples(task: str, skips: bool = False) -> Examples:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (4, 224, 224, 3), dtype=np.uint8)
    shapes = {"class": (4, 90), "object_normals": (4, 14, 14, 3)}
    labels = {
        "target": rng.random(shapes.get(task, (4, 14, 14))).astype(np.float32),
        "mask": rng.random((4, 14, 14)) < 0.5,
    }
    if not TASKS[task].masked:
        del labels["mask"]
    finer = Skips(load_encoder("random"), lambda rows: images[rows], np.arange(4)) if skips else None
    return Examples(torch.from_numpy(rng.normal(size=(4, 128, 7, 7)).astype(np.float32)), labels, finer)


@pytest.mark.parametrize(("task", "skips"), [("depth", True), ("object_normals", False), ("class", False)])
def test_a_loaded_decoder_predicts_the_same(tmp_path, task, skips):
    some = examples(task, skips)
    result = train_probe(task, some, some, some, CONFIG)
    save_probe(result, tmp_path / "probe.safetensors")
    again = load_probe(tmp_path / "probe.safetensors")
    assert np.array_equal(predict(again, some), predict(result, some)) and np.array_equal(again.losses, result.losses)
    assert again.with_skips == result.with_skips == skips and again.epochs == result.epochs
    assert (again.task, again.best_epoch, again.parameters) == (task, result.best_epoch, result.parameters)


def test_other_files_are_refused(tmp_path):
    some = examples("class")
    save_probe(train_probe("class", some, some, some, CONFIG), tmp_path / "whole")
    (tmp_path / "half").write_bytes((tmp_path / "whole").read_bytes()[:1000])
    save_file({"a": torch.zeros(1)}, tmp_path / "other")
    save_file({"a": torch.zeros(1)}, tmp_path / "empty", {"version": "1", "facts": "{}"})
    for name, words in {"half": "damaged", "nowhere": "damaged", "other": "version 1", "empty": "complete"}.items():
        with pytest.raises(ProbeError, match=rf"{name}: not a .*{words}"):
            load_probe(tmp_path / name)


def test_probes_and_data_agree_about_the_tasks():
    assert tuple(TASKS) == static_data.TASKS and CLASSES == static_data.CLASSES
