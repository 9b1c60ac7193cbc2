"""Decoders and their training: shapes, overfitting, chance, what an encoder is told, schedule and determinism."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from scrubjay.agent.config import PAPER
from scrubjay.errors import ProbeError
from scrubjay.study import features
from scrubjay.study.decoders import ChannelNorm, ClassHead, DenseDecoder
from scrubjay.study.encoders import load_encoder
from scrubjay.study.features import DataFeatures, Skips
from scrubjay.study.probe import Examples, ProbeConfig, predict, train_probe
from scrubjay.study.probe_losses import TASKS
from scrubjay.study.static_probe import probe_task

QUICK = ProbeConfig(size=14, batch_size=8, max_epochs=14)


def upsampled(cells: np.ndarray, size: int = 14) -> np.ndarray:
    return cells.repeat(size // 7, 1).repeat(size // 7, 2)


class Scenes:
    """n examples whose labels of different tasks have nothing to do with each other."""

    def __init__(self, n: int, seed: int, size: int = 14):
        rng = np.random.default_rng(seed)
        self.depth = rng.uniform(0.5, 5, (n, 7, 7)).astype(np.float32)
        self.types = rng.random((n, 12)) < 0.3
        self.mask = np.zeros((n, size, size), bool)
        self.mask[:, : size // 4, : size // 4] = True
        normals = rng.normal(size=(n, 7, 7, 3)).astype(np.float32)
        self.targets = {
            "depth": upsampled(self.depth, size),
            "object_depth": upsampled(rng.uniform(0.5, 5, (n, 7, 7)).astype(np.float32), size),
            "normals": upsampled(normals, size),
            "object_normals": upsampled(normals, size),
            "class": self.types,
            "openability": upsampled(rng.integers(0, 3, (n, 7, 7)), size),
            "traversable": upsampled(rng.random((n, 7, 7)) < 0.5, size),
        }
        self.noise = rng.normal(size=(n, 8, 7, 7)).astype(np.float32)

    def labels(self, task: str) -> dict[str, np.ndarray]:
        return {"target": self.targets[task]} | ({"mask": self.mask} if TASKS[task].masked else {})

    def examples(self, task: str, told: str = "") -> Examples:
        sir = self.noise.copy()
        if told == "depth":
            sir[:, 0] = self.depth
        if told == "class":
            sir[:, :8] = self.types[:, :8, None, None]
        return Examples(torch.from_numpy(sir), self.labels(task))


TRAIN, VALIDATION, TEST = Scenes(32, 0), Scenes(16, 1), Scenes(32, 2)


def probe(task: str, told: str = "", config: ProbeConfig = QUICK) -> float:
    sets = (part.examples(task, told) for part in (TRAIN, VALIDATION, TEST))
    return float(train_probe(task, *sets, config).losses.mean())


@pytest.mark.parametrize("task", ["depth", "normals", "class", "traversable"])
def test_an_encoder_that_is_told_the_depth_wins_at_depth_and_nowhere_else(task):
    ratio = probe(task, "depth") / probe(task)
    assert ratio < 0.5 if task == "depth" else 0.9 < ratio < 1.1


def test_shuffled_labels_give_chance():
    rng = np.random.default_rng(0)
    sets = [part.examples("class", "class") for part in (TRAIN, VALIDATION, TEST)]
    told = train_probe("class", *sets, QUICK).losses.mean()
    for place in (0, 1):
        sets[place] = replace(sets[place], labels={"target": rng.permutation(sets[place].labels["target"])})
    shuffled = train_probe("class", *sets, QUICK).losses.mean()
    frequency = TRAIN.types.mean(0)
    chance = -np.where(TEST.types, np.log(frequency), np.log(1 - frequency)).mean()
    assert shuffled > 0.95 * chance and told < 0.8 * chance


@pytest.mark.parametrize("task", ["depth", "object_normals", "class", "openability"])
def test_a_decoder_overfits_eight_images(task):
    few = Scenes(8, 3).examples(task)
    # The class head starts nearer to its aim, and takes smaller steps.
    config = replace(QUICK, batch_size=4, max_epochs=200 if task == "class" else 60, patience=30)
    result = train_probe(task, few, few, few, config)
    first, best = result.epochs[0].validation_loss, result.validation_loss
    assert best < 0.4 * first and result.losses.mean() == pytest.approx(best, rel=1e-4)
    assert result.best_epoch > 10 and predict(result, few).shape[0] == 8


def test_predictions_are_those_that_were_judged():
    few = Scenes(8, 3).examples("depth")
    result = train_probe("depth", few, few, few, QUICK)
    error = np.abs(predict(result, few) - few.labels["target"]).mean((1, 2))
    assert error == pytest.approx(result.losses, rel=1e-5)
    normals = predict(train_probe("normals", *[Scenes(8, 3).examples("normals")] * 3, QUICK), few)
    assert normals.shape == (8, 14, 14, 3) and np.linalg.norm(normals, axis=3) == pytest.approx(1, abs=1e-4)


def test_a_seed_gives_the_same_losses_to_the_bit():
    few = Scenes(12, 3).examples("depth")
    config = replace(QUICK, max_epochs=2)
    torch.manual_seed(0)
    one = train_probe("depth", few, few, few, config)
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    two = train_probe("depth", few, few, few, config)
    other = train_probe("depth", few, few, few, replace(config, seed=1))
    assert np.array_equal(one.losses, two.losses) and not np.array_equal(one.losses, other.losses)
    assert torch.equal(state, torch.random.get_rng_state())


def test_training_ends_at_the_third_reduction_of_the_learning_rate():
    few = Scenes(4, 3).examples("class")
    # Nothing counts as better, so every sixth epoch reduces the rate.
    result = train_probe("class", few, few, few, ProbeConfig(threshold=100.0))
    rates = [epoch.learning_rate for epoch in result.epochs]
    assert rates == pytest.approx([1e-2] * 7 + [1e-3] * 6 + [1e-4] * 6)
    losses = [epoch.validation_loss for epoch in result.epochs]
    assert result.best_epoch == int(np.argmin(losses)) and result.validation_loss == min(losses)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("skips", [(), PAPER.encoder_channels])
def test_the_decoder_has_the_specified_shape(skips, masked):
    decoder = DenseDecoder(128, 3, skips, masked)
    inputs = [layer.conv.in_channels - masked for layer in decoder.merge]
    outputs = [layer.conv.out_channels for layer in decoder.merge]
    assert outputs == [128, 64, 32, 32, 16]
    assert inputs == [a + b for a, b in zip(outputs, [192, 64, 32, 16, 0] if skips else [0] * 5, strict=True)]
    assert decoder.first.conv.in_channels == 128 + masked
    assert isinstance(decoder.project, torch.nn.Identity) == bool(skips)
    finer = [torch.randn(2, c, s, s) for c, s in zip(skips, (112, 56, 28, 14), strict=False)]
    mask = torch.zeros(2, 224, 224, dtype=torch.bool) if masked else None
    assert decoder(torch.randn(2, 128, 7, 7), finer, mask).shape == (2, 3, 224, 224)


def test_the_class_head_is_the_maximum_over_cells_and_a_linear_layer():
    head, x = ClassHead(128, 90), torch.randn(2, 128, 7, 7)
    assert sum(p.numel() for p in head.parameters()) == 128 * 90 + 90
    torch.nn.init.normal_(head.linear.weight)
    expected = x.amax((2, 3)) / 128**0.5 @ head.linear.weight.T + head.linear.bias
    assert torch.allclose(head(x), expected, atol=1e-5)
    assert sum(p.numel() for p in ClassHead(1280, 90).parameters()) == 128 * 90 + 90 + 1280 * 128 + 128


@pytest.mark.parametrize("channels", [128, 40])
def test_the_class_head_starts_at_the_frequencies_of_the_labels(channels):
    head, x = ClassHead(channels, 3), torch.randn(9, channels, 7, 7) * 100
    target = torch.tensor([[1, 0, 0]] * 4 + [[1, 1, 0]] * 5)
    head.fit([x])
    head.start_at(target)
    assert head(x).sigmoid().detach().numpy() == pytest.approx(np.array([[0.95, 0.55, 0.05]] * 9), abs=1e-6)


def test_features_are_standardized_by_the_training_examples():
    x = torch.stack([torch.randn(50, 7, 7) * 3 + 5, torch.randn(50, 7, 7) * 0.5 - 1, torch.full((50, 7, 7), 2.0)], 1)
    norm = ChannelNorm(3)
    norm.fit(x.split(8))
    y = norm(x)
    assert y.mean((0, 2, 3)).abs().max() < 1e-4
    assert y[:, :2].std((0, 2, 3)) == pytest.approx(torch.ones(2), abs=1e-3) and torch.isfinite(y).all()


def test_decoders_with_skips_read_what_the_features_lack(tmp_path, monkeypatch):
    # Labels are the brightness of pixels; a constant stands for the features, and the finer scales are the encoder's.
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (24, 14, 14, 1), dtype=np.uint8).repeat(16, 1).repeat(16, 2).repeat(3, 3)
    target = images[:, ::16, ::16, 0] / np.float32(255) + np.float32(0.5)
    encoder, rows = load_encoder("random"), np.arange(24)
    constant = Examples(torch.ones(24, 128, 7, 7), {"target": target})
    skipping = replace(constant, skips=Skips(encoder, lambda rows: images[rows], rows))
    without, using = (train_probe("depth", part, part, part, QUICK) for part in (constant, skipping))
    assert using.with_skips and not without.with_skips
    assert using.losses.mean() < 0.5 * without.losses.mean()


class FakeData:
    """A data set in memory: images, of which depth is the brightness."""

    def __init__(self):
        self.pixels = np.random.default_rng(0).integers(1, 256, (12, 7, 7, 1), dtype=np.uint8)

    def images(self, rows):
        return self.pixels[rows].repeat(32, 1).repeat(32, 2).repeat(3, 3)

    def split(self, name):
        return {"train": np.arange(8), "validation": np.array([8, 9]), "test": np.array([10, 11])}[name]

    def usable(self, task, rows):
        return rows

    def training_rows(self, task, count=1200, seed=0):
        return self.split("train")[:count]

    def labels(self, task, rows):
        return {"target": self.images(rows)[..., 0] / np.float32(64)}


def test_a_task_is_probed_from_a_data_set_and_cached_features_change_nothing(tmp_path, monkeypatch):
    data, encoder, config = FakeData(), load_encoder("random"), replace(QUICK, max_epochs=2)
    first = DataFeatures(encoder, data.images, tmp_path)
    plain = probe_task(data, first, "depth", config=config)
    skipping = probe_task(data, first, "depth", with_skips=True, config=config)
    monkeypatch.setattr(features.FeatureCache, "compute", lambda self, *args: None)
    again = probe_task(data, DataFeatures(encoder, data.images, tmp_path), "depth", config=config)
    assert plain.losses.shape == (2,) and np.array_equal(plain.losses, again.losses)
    assert skipping.with_skips and not np.array_equal(plain.losses, skipping.losses)


def test_examples_that_do_not_fit_are_refused_before_training():
    good = Scenes(4, 0).examples("depth")
    cases = {
        "unknown task 'color'": ("color", good),
        "lack 'mask'": ("object_depth", good),
        "lack 'target'": ("depth", replace(good, labels={})),
        "has no train examples": ("depth", Examples(good.sir[:0], {"target": good.labels["target"][:0]})),
        "3 train labels of depth for 4": ("depth", replace(good, labels={"target": good.labels["target"][:3]})),
        "not finite": ("depth", replace(good, labels={"target": good.labels["target"] * np.nan})),
        "15 x 14, not 14 x 14": ("depth", replace(good, labels={"target": np.ones((4, 15, 14), np.float32)})),
    }
    for words, (task, examples) in cases.items():
        with pytest.raises(ProbeError, match=words):
            train_probe(task, examples, examples, examples, QUICK)
    other = replace(good, sir=good.sir[:, :4])
    with pytest.raises(ProbeError, match="features are of different encoders"):
        train_probe("depth", good, good, other, QUICK)
    with pytest.raises(ValueError, match="size"):
        ProbeConfig(size=30)
    with pytest.raises(ValueError, match="size: 14, 28, 56, 112 or 224, not 30"):
        DenseDecoder(128, 1, size=30)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.parametrize("task", ["depth", "class", "object_normals"])
def test_a_graph_takes_the_same_steps(task, monkeypatch):
    """The learning rate falls on the way, and the last batch of an epoch is smaller."""
    config = replace(QUICK, batch_size=10, max_epochs=8, patience=0, threshold=10.0, min_learning_rate=1e-9)
    parts = [scenes.examples(task, "depth") for scenes in (TRAIN, VALIDATION, TEST)]
    captured = train_probe(task, *parts, config, "cuda")
    rates = [epoch.learning_rate for epoch in captured.epochs]
    assert len(set(rates)) > 2
    monkeypatch.setattr("scrubjay.study.probe._GraphStep", lambda step, size: step)
    plain = train_probe(task, *parts, config, "cuda")
    assert [epoch.learning_rate for epoch in plain.epochs] == rates
    np.testing.assert_allclose(captured.losses, plain.losses, rtol=1e-3, atol=1e-4)
