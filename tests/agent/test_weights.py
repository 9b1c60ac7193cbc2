"""Weights in a folder: what is written comes back, and what is wrong is named before anything changes."""

import json
import re
from dataclasses import asdict, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import nn

from scrubjay.agent.config import PAPER, PRESETS, SMALL, AgentConfig
from scrubjay.agent.encoder import Encoder
from scrubjay.agent.weights import CONFIG_FILE, fill, load, save
from scrubjay.errors import WeightsError, explain


def weights_files(folder):
    return sorted(path.name for path in folder.glob("weights-*"))


def rewrite(folder, **changes):
    """Changes fields of the JSON file."""
    about = json.loads((folder / CONFIG_FILE).read_text())
    (folder / CONFIG_FILE).write_text(json.dumps({**about, **changes}))


@pytest.fixture
def folder(tmp_path):
    save(nn.Linear(3, 2), SMALL, tmp_path)
    return tmp_path


def test_weights_come_back_bit_for_bit_and_make_the_same_sirs(tmp_path):
    torch.manual_seed(0)
    written, other = Encoder(SMALL), Encoder(SMALL)
    save(written, SMALL, tmp_path)
    config, state = load(tmp_path)
    assert config == SMALL
    assert state.keys() == written.state_dict().keys()
    fill(other, state)
    image = torch.randint(0, 256, (2, 112, 112, 3), dtype=torch.uint8)
    assert torch.equal(other(image).sir, written(image).sir)
    # Loading keeps the layout that convolutions are fast in.
    assert other.stem.weight.is_contiguous(memory_format=torch.channels_last)


@given(st.sampled_from(sorted(PRESETS)), st.integers(1, 600), st.integers(1, 99))
@settings(max_examples=20, deadline=None)
def test_every_config_comes_back(tmp_path_factory, preset, lstm, channels):
    config = replace(PRESETS[preset], lstm=lstm, tiled=1, encoder_channels=(channels, 1, 2, 3))
    folder = tmp_path_factory.mktemp("weights")
    save(nn.Linear(1, 1), config, folder)
    assert load(folder)[0] == config


def test_newer_weights_take_the_place_of_older_ones(folder):
    save(nn.Linear(4, 1), PAPER, folder)
    config, state = load(folder)
    assert config == PAPER
    assert state["weight"].shape == (1, 4)
    assert len(weights_files(folder)) == 1


def test_a_crash_between_the_two_files_leaves_the_older_pair(folder, monkeypatch):
    older = load(folder)[1]

    def crash(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(json, "dumps", crash)
    with pytest.raises(KeyboardInterrupt):
        save(nn.Linear(3, 2), SMALL, folder)
    assert len(weights_files(folder)) == 2
    assert torch.equal(load(folder)[1]["weight"], older["weight"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(version=2), "version: 2; this program reads version 3"),
        (dict(version=4), "version: 4; this program reads version 3"),
        (dict(version=None), "version: None"),
        (dict(config=None), "config: missing"),
        (dict(config={**asdict(SMALL), "lstm": -1}), "config: lstm: input should be greater than 0, not -1"),
        (dict(config={**asdict(SMALL), "lstm": "128"}), "config: lstm"),
        (
            dict(config={**asdict(SMALL), "encoder_channels": [1, 2]}),
            "config: encoder_channels: tuple should have",
        ),
        (dict(config={**asdict(SMALL), "depth": 3}), "config: depth: unexpected keyword argument"),
        (dict(config={k: v for k, v in asdict(SMALL).items() if k != "tiled"}), "config: tiled: missing"),
        (dict(weights="../../secret.safetensors"), "is not the name of a weights' file"),
        (dict(weights=7), "weights: 7"),
        (dict(weights="weights-0123456789abcdef.safetensors"), "weights-0123456789abcdef.safetensors: .*No such file"),
    ],
)
def test_a_wrong_config_file_is_named_by_its_field(folder, changes, words):
    rewrite(folder, **changes)
    with pytest.raises(WeightsError, match=words):
        load(folder)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\udcff"])
def test_a_config_file_that_is_none_is_said_so(folder, text):
    (folder / CONFIG_FILE).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(WeightsError, match=CONFIG_FILE):
        load(folder)


def test_an_empty_folder_is_said_so(tmp_path):
    with pytest.raises(WeightsError, match="not a weights' config"):
        load(tmp_path)


def test_damaged_weights_are_said_so(folder):
    path = folder / weights_files(folder)[0]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(WeightsError, match="damaged"):
        load(folder)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (dict(weight=torch.ones(2, 3)), "bias: missing"),
        (dict(weight=torch.ones(2, 3), bias=torch.ones(2), scale=torch.ones(1)), "scale: unknown"),
        (dict(weight=torch.ones(2, 3), bias=torch.ones(3)), r"bias: its shape is \(3,\), the network's \(2,\)"),
        (dict(weight=torch.ones(2, 3), bias=torch.ones(2).half()), "bias: its type is torch.float16"),
    ],
)
def test_tensors_that_do_not_fit_are_named_and_nothing_changes(state, words):
    module = nn.Linear(3, 2)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with pytest.raises(WeightsError, match=words):
        fill(module, state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (dict(image_size=100), "image_size"),
        (dict(sir_channels=0), "sir_channels"),
        (dict(lstm=2.5), "lstm"),
        (dict(map_read=True), "map_read"),
        (dict(encoder_channels=(8, 8, 8)), "encoder_channels"),
        (dict(decoder_channels=(8, 8, 8, 8, 0)), "decoder_channels"),
        (dict(goal_embedding=(16,)), "goal_embedding"),
        (dict(tiled=513), "tiled"),
    ],
)
def test_a_config_that_cannot_be_names_its_field(changes, field):
    with pytest.raises(ValidationError) as caught:
        AgentConfig(**changes)
    assert re.match(rf"{field}(\.\d+)?: ", explain(caught.value))


def test_the_presets_have_the_papers_sizes():
    assert (PAPER.image_size, PAPER.sir_channels, PAPER.map_value, PAPER.lstm, PAPER.map_read) == (
        224,
        128,
        144,
        512,
        356,
    )
    assert (SMALL.image_size, SMALL.map_value) == (112, 48)
