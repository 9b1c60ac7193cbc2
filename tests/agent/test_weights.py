"""Weights in a folder: they round-trip, and errors are reported before anything changes."""

import json
import re
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from scrubjay.agent.agent import Agent, load_agent
from scrubjay.agent.config import PAPER, PRESETS, SMALL, AgentConfig
from scrubjay.agent.encoder import Encoder
from scrubjay.agent.weights import CONFIG_FILE, fill, load, save
from scrubjay.errors import WeightsError
from scrubjay.game.observation import NO_ACTION, Observation


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


def test_weights_round_trip_bit_by_bit(tmp_path):
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


def test_compact_weights_are_half_as_large_and_rounded_but_statistics_are_exact(tmp_path):
    torch.manual_seed(0)
    agent = Agent(SMALL)
    for buffer in agent.buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 1.5)
    save(agent, SMALL, tmp_path / "full")
    save(agent, SMALL, tmp_path / "half", compact=True)
    full, half = (sum(path.stat().st_size for path in (tmp_path / name).iterdir()) for name in ("full", "half"))
    assert half < 0.52 * full
    other = Agent(SMALL)
    fill(other, load(tmp_path / "half")[1])
    parameters = dict(agent.named_parameters())
    for name, tensor in other.state_dict().items():
        its = agent.state_dict()[name]
        expected = its.bfloat16().float() if name in parameters else its
        assert tensor.dtype == its.dtype and torch.equal(tensor, expected), name


@given(st.sampled_from(sorted(PRESETS)), st.integers(1, 600), st.integers(1, 99))
@settings(max_examples=20, deadline=None)
def test_every_config_round_trips(tmp_path_factory, preset, lstm, channels):
    config = replace(PRESETS[preset], lstm=lstm, tiled=1, encoder_channels=(channels, 1, 2, 3))
    folder = tmp_path_factory.mktemp("weights")
    save(nn.Linear(1, 1), config, folder)
    assert load(folder)[0] == config


def test_weights_from_before_a_switch_have_its_default(folder):
    path = folder / "config.json"
    about = json.loads(path.read_text())
    for name in ("separate_openable_head", "critic_sees_time"):
        assert about["config"].pop(name) is False
    assert about["config"].pop("openable_hidden") == 0 and about["config"].pop("open_at_prior") is False
    assert about["config"].pop("hand_head") is False and about["config"].pop("hiding_priors") is False
    for name in ("heads_read_cells", "running_norms", "gate_norm", "centered_filters"):
        assert about["config"].pop(name) is True
    path.write_text(json.dumps(about))
    assert load(folder)[0] == SMALL


def test_newer_weights_replace_older_ones(folder):
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
    ("changes", "message"),
    [
        (dict(version=2), "version: 2; this program reads versions 3 and 4. Load it with the release that wrote it"),
        (dict(version=5), "version: 5; this program reads versions 3 and 4"),
        (dict(version=3.5), "version: 3.5; this program reads versions 3 and 4"),
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
        (dict(weights="../../secret.safetensors"), "is not the name of a weights file"),
        (dict(weights=7), "weights: 7"),
        (dict(weights="weights-0123456789abcdef.safetensors"), "weights-0123456789abcdef.safetensors: .*No such file"),
    ],
)
def test_an_invalid_config_names_its_field(folder, changes, message):
    rewrite(folder, **changes)
    with pytest.raises(WeightsError, match=message):
        load(folder)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\udcff"])
def test_an_invalid_config_file_is_refused(folder, text):
    (folder / CONFIG_FILE).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(WeightsError, match=CONFIG_FILE):
        load(folder)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(WeightsError, match="not a config of weights"):
        load(tmp_path)


def test_damaged_weights_are_refused(folder):
    path = folder / weights_files(folder)[0]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(WeightsError, match="damaged"):
        load(folder)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (dict(weight=torch.ones(2, 3)), "bias: missing"),
        (dict(weight=torch.ones(2, 3), bias=torch.ones(2), scale=torch.ones(1)), "scale: unknown"),
        (dict(weight=torch.ones(2, 3), bias=torch.ones(3)), r"bias: expected shape \(2,\), got \(3,\)"),
        (
            dict(weight=torch.ones(2, 3), bias=torch.ones(2).half()),
            r"bias: expected torch\.float32, got torch\.float16",
        ),
    ],
)
def test_mismatched_tensors_are_named_and_nothing_changes(state, message):
    module = nn.Linear(3, 2)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with pytest.raises(WeightsError, match=message):
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
def test_invalid_config_values_name_their_field(changes, field):
    with pytest.raises(ValueError) as caught:
        AgentConfig(**changes)
    assert re.match(rf"{field}(\.\d+)?: ", str(caught.value))


def test_the_presets_have_the_papers_sizes():
    assert (PAPER.image_size, PAPER.sir_channels, PAPER.map_value, PAPER.lstm, PAPER.map_read) == (
        224,
        128,
        144,
        512,
        356,
    )
    assert (SMALL.image_size, SMALL.map_value) == (112, 48)


def test_an_agent_of_version_3_loads_and_gives_the_same_outputs(tmp_path):
    """Tiny networks and their outputs, both written by the last commit that wrote version 3."""
    with zipfile.ZipFile(Path(__file__).with_name("weights_v3.zip")) as files:
        files.extractall(tmp_path)
    expected = json.loads((tmp_path / "outputs.json").read_text())
    agent, n, stage = load_agent(tmp_path), torch.arange(4), torch.tensor([0, 2, 3, 4])
    observation = Observation(
        image=(torch.arange(4 * 112 * 112 * 3) * 37 % 251).to(torch.uint8).view(4, 112, 112, 3),
        last_action=n * 50,
        last_success=n % 2 == 0,
        standing=n % 2 == 1,
        goal=n,
        stage=stage,
        place=torch.stack([n - 1, n, n, n % 2], -1),
        landed=torch.full((4,), NO_ACTION),
        target=torch.stack([n % 3, n, n + 1], -1) * (stage == 3)[:, None],
        time_left=torch.ones(4),
    )
    maps, floor = torch.linspace(-1, 1, 2 * 3 * 4).view(1, 2, 3, 4), torch.ones(1, 2, 3, dtype=torch.bool)
    place, perspective = torch.tensor([[[1, 2, 3]]]), agent.perspective
    with torch.no_grad():
        step = agent.act(agent.initial_state(4, 4), observation, torch.ones(4, dtype=torch.bool))
        decision, flat = step.decision, step.dirs.flat
        dynamics = agent.dynamics(step.encoded, n, step.encoded)
        seeker = perspective.seeker.predict(
            maps, torch.tensor([[[1, 2, 3, 1]]]), torch.tensor([[5]]), torch.tensor([[True]])
        )
        outputs = {
            "value": decision.value,
            "logits": torch.where(decision.logits.isfinite(), decision.logits, 0).sum(-1),
            "hittable": decision.hittable.sum((1, 2, 3)),
            "openable": decision.openable.sum((1, 2)),
            "recall": agent.recall_placements(flat).abs().sum((1, 2)),
            "predicted": agent.predict_sir(flat, n).sum(-1),
            "projected": agent.project_sir(step.encoded.sir).sum(-1),
            "images": torch.stack([image.mean((1, 2, 3)) for image in dynamics.images]).sum(0),
            "changed": dynamics.changed.mean((1, 2)),
            "confidence": dynamics.confidence.mean((1, 2)),
            "success": dynamics.would_succeed,
            "inverse": dynamics.inverse.abs().sum(-1),
            "scores": perspective.place_scores(maps, torch.ones(1, 4, 2, 3, dtype=torch.bool)).flatten()[:4],
            "imagined": perspective.imagine(maps, floor, place, torch.tensor([[[7]]])).flatten()[:4],
            "policy": seeker.policy.flatten()[:4],
            "seeker_success": seeker.success.flatten()[:4],
        }
    assert outputs.keys() == expected.keys()
    for name, values in outputs.items():
        assert values.tolist() == pytest.approx(expected[name], rel=1e-4, abs=1e-4), name
    save(agent, agent.config, tmp_path / "again")
    again = load_agent(tmp_path / "again")
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in agent.state_dict().items())
