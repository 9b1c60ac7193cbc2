"""Features on disk: computed once, resumed to the same bits, kept apart by encoder."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from scrubjay.agent.encoder import Encoded
from scrubjay.errors import EncoderError
from scrubjay.study import features
from scrubjay.study.encoders import StudyEncoder, load_encoder
from scrubjay.study.features import FeatureCache, Skips

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 224, 224, 3), dtype=np.uint8)


class Means(nn.Module):
    """Features are the means of 7 x 7 patches, times a weight."""

    def __init__(self, weight: float = 1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, image):
        sir = self.weight * nn.functional.adaptive_avg_pool2d(image.permute(0, 3, 1, 2).float() / 255, 7)
        return Encoded(image, sir, sir.mean((2, 3)), ())


class Blinding(Means):
    """Infinite for bright images alone."""

    def forward(self, image):
        encoded = super().forward(image)
        return Encoded(image, encoded.sir / (encoded.sir < 1), encoded.pooled, ())


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(features, "SHARD", 4)
    monkeypatch.setattr(features, "BATCH", 3)


class Interrupted(Exception):
    pass


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


class Source:
    """Images by row, counted; can be interrupted."""

    def __init__(self, last: int = 1000):
        self.asked: list[int] = []
        self.last = last

    def __call__(self, rows):
        self.asked += list(rows)
        if len(self.asked) > self.last:
            raise Interrupted
        return IMAGES[rows]


def test_features_come_back_in_the_order_of_the_rows(tmp_path):
    encoder, source = StudyEncoder("means", Means(), "none"), Source()
    cache = FeatureCache(tmp_path, encoder.description)
    seen = []
    cache.compute(encoder, source, [7, 3, 3, 11, 0, 19], progress=lambda done, total: seen.append((done, total)))
    assert source.asked == [0, 3, 7, 11, 19] and seen == [(4, 5), (5, 5)]
    sir = FeatureCache(tmp_path, encoder.description).load([19, 0, 3])
    expected = encoder(torch.from_numpy(IMAGES[[19, 0, 3]])).sir.to(torch.bfloat16)
    assert torch.equal(sir, expected)
    cache.compute(encoder, source, [3, 4])
    assert source.asked[5:] == [4]
    about = json.loads((tmp_path / encoder.description.key / "encoder.json").read_text())
    assert about["sha256"] == encoder.description.sha256 and about["channels"] == 3


def test_a_resumed_cache_equals_an_unbroken_one(tmp_path):
    encoder, rows = load_encoder("random"), np.arange(14)
    whole, broken = (FeatureCache(tmp_path / name, encoder.description) for name in ("whole", "broken"))
    whole.compute(encoder, Source(), rows)
    with pytest.raises(Interrupted):
        broken.compute(encoder, Source(last=10), rows)
    resumed = FeatureCache(tmp_path / "broken", encoder.description)
    assert resumed.missing(rows).tolist() == list(range(8, 14))
    resumed.compute(encoder, Source(), rows)
    files = [sorted((tmp_path / name).rglob("*.safetensors")) for name in ("whole", "broken")]
    assert [path.name for path in files[0]] == [path.name for path in files[1]]
    assert all(one.read_bytes() == two.read_bytes() for one, two in zip(*files, strict=True))


def test_another_encoder_or_data_set_is_another_cache(tmp_path):
    one, two = (StudyEncoder("means", Means(weight), "none") for weight in (1.0, 2.0))
    cache = FeatureCache(tmp_path, one.description)
    cache.compute(one, Source(), [0, 1])
    other = FeatureCache(tmp_path, two.description)
    assert len(other.missing([0, 1])) == 2 and len(FeatureCache(tmp_path, one.description, data="x").missing([0])) == 1
    with pytest.raises(EncoderError, match="cache of another encoder"):
        cache.compute(two, Source(), [2])
    with pytest.raises(EncoderError, match="2 examples of 2 are not computed"):
        other.load([0, 1])


def test_features_that_are_not_finite_stop_the_computation_and_what_was_there_stays(tmp_path):
    encoder = StudyEncoder("blinding", Blinding(), "none")
    cache = FeatureCache(tmp_path, encoder.description)
    with pytest.raises(EncoderError, match="blinding gives NaN or infinite features of images"):
        cache.compute(encoder, lambda rows: np.where((rows >= 6)[:, None, None, None], 255, IMAGES[rows]), range(8))
    assert FeatureCache(tmp_path, encoder.description).missing(range(8)).tolist() == [4, 5, 6, 7]


def test_a_damaged_file_is_named(tmp_path):
    encoder = StudyEncoder("means", Means(), "none")
    FeatureCache(tmp_path, encoder.description).compute(encoder, Source(), [0])
    (path,) = tmp_path.rglob("*.safetensors")
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(EncoderError, match="damaged; delete it"):
        FeatureCache(tmp_path, encoder.description)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_finer_scales_are_the_same_whether_held_or_encoded_again(device, monkeypatch):
    encoder, rows = load_encoder("random"), np.array([5, 2, 9, 4])
    held = Skips(encoder, Source(), rows, device)
    monkeypatch.setitem(features.HELD_BYTES, device, 1 << 20)  # Enough for the images, which only a GPU holds.
    again = Skips(encoder, Source(), rows, device)
    places = torch.tensor([3, 0], device=device)
    assert held.held and not again.held and again.on_device == (device == "cuda")
    for one, two, shape in zip(held[places], again[places], [(16, 112), (32, 56), (64, 28), (192, 14)], strict=True):
        assert one.dtype == torch.bfloat16 and tuple(one.shape) == (2, shape[0], shape[1], shape[1])
        torch.testing.assert_close(one, two, rtol=0.02, atol=0.02)
    with pytest.raises(EncoderError, match="gives no finer scales"):
        Skips(StudyEncoder("means", Means(), "none"), Source(), rows)
