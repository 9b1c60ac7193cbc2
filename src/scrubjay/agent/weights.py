"""Weights in a folder: tensors in a safetensors file, and their config in a JSON file beside it.

The JSON file names the weights file, whose name is a digest of its contents. So a folder always holds one consistent
pair, even after a crash while it is overwritten. Loading executes no code from either file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors
from torch import nn

from scrubjay.agent import released
from scrubjay.agent.config import AgentConfig
from scrubjay.errors import WeightsError, reason
from scrubjay.files import write_atomically

VERSION = 4
RENAMED_SINCE_3 = {
    r"memory\.senses": "memory.embedding",
    r"memory\.metric_map\.driven": "memory.metric_map.input_gates",
    r"memory\.metric_map\.recurrent": "memory.metric_map.hidden_gates",
    r"memory\.metric_map\.start": "memory.metric_map.initial_hidden",
    r"memory\.reader\.narrow": "memory.map_reader.value_projection",
    r"memory\.reader\.around": "memory.map_reader.local_net",
    r"memory\.reader\.asks": "memory.map_reader.query",
    r"memory\.reader\.answers": "memory.map_reader.output",
    r"memory\.seen": "memory.sir_conv",
    r"memory\.told": "memory.embedding_conv",
    r"memory\.recalled": "memory.hidden_conv",
    r"memory\.recurrent": "memory.grid_conv",
    r"memory\.usual_sir": "memory.sir_norm",
    r"memory\.usual_input": "memory.lstm_norm",
    r"memory\.gates": "memory.lstm_gates",
    r"memory\.balance": "memory.gate_norm",
    r"heads\.stages\.(\w+)\.here": r"heads.stages.\1.cell_filters",
    r"heads\.stages\.(\w+)\.opens": r"heads.stages.\1.open_logit",
    r"heads\.stages\.(\w+)\.visible": r"heads.stages.\1.goal_filters",
    r"heads\.stages\.(\w+)\.target": r"heads.stages.\1.target_embedding",
    r"heads\.stages\.(\w+)\.returns": r"heads.stages.\1.return_norm",
    r"heads\.hittable_here": "heads.hittable_cells",
    r"heads\.hittable_all": "heads.hittable_global",
    r"perspective\.blocks": "perspective.map_encoder",
    r"perspective\.glance": "perspective.place_head",
    r"perspective\.outcome": "perspective.outcome_embedding",
    r"perspective\.quarter": "perspective.heading_embedding",
    r"perspective\.hiding": "perspective.hiding_mlp",
    r"perspective\.spread": "perspective.propagation",
    r"perspective\.seeker\.pose": "perspective.seeker.pose_embedding",
    r"perspective\.seeker\.last": "perspective.seeker.action_embedding",
    r"dynamics\.action": "dynamics.action_planes",
    r"dynamics\.forward_dynamics\.aim": "dynamics.forward_dynamics.flow_head",
    r"dynamics\.forward_dynamics\.pixels": "dynamics.forward_dynamics.pixel_head",
    r"dynamics\.forward_dynamics\.scales\.(\d)\.grow": r"dynamics.forward_dynamics.scales.\1.upsample",
    r"dynamics\.forward_dynamics\.scales\.(\d)\.join": r"dynamics.forward_dynamics.scales.\1.merge",
    r"dynamics\.forward_dynamics\.scales\.(\d)\.told": r"dynamics.forward_dynamics.scales.\1.action_conv",
    r"dynamics\.forward_dynamics\.scales\.(\d)\.paint": r"dynamics.forward_dynamics.scales.\1.residual",
    r"dynamics\.success": "dynamics.success_head",
    r"dynamics\.inverse": "dynamics.inverse_head",
    r"foreseen_action": "action_embedding",
    r"expects": "sir_predictor",
    r"recognises": "sir_projection",
    r"recalls": "placement_recall",
}
"""Module names in version 3, as regular expressions, and since."""
YOUNGER_FIELDS = {
    "encoder": "cnn", "freeze_encoder": False, "separate_openable_head": False, "critic_sees_time": False,
    "openable_hidden": 0, "open_at_prior": False, "hand_head": False, "hiding_priors": False, "mental_offsets": False,
    "memory": "full", "heads_read_cells": True, "running_norms": True, "gate_norm": True, "centered_filters": True,
}  # fmt: skip
"""Config fields that older files lack, and the values that their agents were trained with."""
ENCODER = "encoder."
"""Begins the names of the encoder's tensors among an agent's."""
CONFIG_FILE = "config.json"
WEIGHTS_FILE = re.compile(r"weights-([0-9a-f]{16})\.safetensors")


def save(module: nn.Module, config: AgentConfig, folder: str | os.PathLike[str], compact: bool = False) -> None:
    """Writes a module's weights and config to a folder, replacing those that it held.

    `compact`: parameters are rounded to bfloat16, half the size, to act and to start from; running statistics are not.
    """
    folder = Path(folder)
    rounded = {name for name, _ in module.named_parameters()} if compact else set()
    tensors = {
        name: (tensor.to(torch.bfloat16) if name in rounded else tensor).cpu().contiguous()
        for name, tensor in module.state_dict().items()
    }
    data = safetensors.save(tensors)
    name = f"weights-{_digest(data)}.safetensors"
    write_atomically(folder / name, data)
    about = {"version": VERSION, "config": asdict(config), "weights": name}
    write_atomically(folder / CONFIG_FILE, json.dumps(about, indent=1) + "\n")
    for path in folder.iterdir():
        if WEIGHTS_FILE.fullmatch(path.name) and path.name != name:
            path.unlink()


def load(folder: str | os.PathLike[str], part: released.Part = "agent") -> tuple[AgentConfig, dict[str, torch.Tensor]]:
    """The config and the tensors by name, on the CPU, that `save` wrote; WeightsError says what is wrong.

    A training run's folder gives its newest checkpoint, a released agent's name its agent or encoder (`part`), after
    its files were compared with its card. Tensors of version 3 get their present names.
    """
    folder = released.locate(folder, part)
    if not folder.is_dir():
        raise WeightsError(f"{folder}: there is no such folder of a run or of weights")
    release = released.release_of(folder)
    path = [folder / CONFIG_FILE, *sorted(folder.glob(f"checkpoints/[0-9]*/{CONFIG_FILE}"))][-1]
    try:
        text = path.read_bytes()
        if release:
            release.check(path, text)
        about = json.loads(text)
    except WeightsError:
        raise
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path}: not a config of weights: {reason(error)}") from error
    version = about.get("version") if isinstance(about, dict) else None
    if version not in (3, VERSION):
        raise WeightsError(
            f"{path}: version: {version!r}; this program reads versions 3 and {VERSION}. "
            "Load it with the release that wrote it, or train the agent again"
        )
    config = _config(about.get("config"), path)
    name = about.get("weights")
    match = WEIGHTS_FILE.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise WeightsError(f"{path}: weights: {name!r} is not the name of a weights file")
    stored = _tensors(path.with_name(match[0]), match[1], release)
    tensors = {name: t.float() if t.dtype == torch.bfloat16 else t for name, t in stored.items()}
    return config, tensors if version == VERSION else {_renamed(name): tensor for name, tensor in tensors.items()}


def load_encoder(folder: str | os.PathLike[str]) -> tuple[AgentConfig, dict[str, torch.Tensor]]:
    """The config and the encoder's tensors, of weights of an encoder alone or of a whole agent."""
    config, tensors = load(folder, "encoder")
    own = {name.removeprefix(ENCODER): value for name, value in tensors.items() if name.startswith(ENCODER)}
    return config, own or tensors


def fill(module: nn.Module, state: dict[str, torch.Tensor]) -> None:
    """Copies tensors into a module; WeightsError, before anything changes, unless names, shapes and dtypes agree."""
    own = module.state_dict()
    if missing := sorted(own.keys() - state.keys()):
        raise WeightsError(f"{missing[0]}: missing from the file, with {len(missing) - 1} more")
    if unknown := sorted(state.keys() - own.keys()):
        raise WeightsError(f"{unknown[0]}: unknown to the network, with {len(unknown) - 1} more")
    for name, tensor in own.items():
        if state[name].shape != tensor.shape:
            raise WeightsError(f"{name}: expected shape {tuple(tensor.shape)}, got {tuple(state[name].shape)}")
        if state[name].dtype != tensor.dtype:
            raise WeightsError(f"{name}: expected {tensor.dtype}, got {state[name].dtype}")
    module.load_state_dict(state)


def _renamed(name: str) -> str:
    """The present name of a tensor in a file of version 3."""
    for old, new in RENAMED_SINCE_3.items():
        name, count = re.subn(rf"^{old}(?=\.|$)", new, name)
        if count:
            return name
    return name


def _config(data: Any, path: Path) -> AgentConfig:
    if not isinstance(data, dict):
        raise WeightsError(f"{path}: config: missing")
    data = YOUNGER_FIELDS | data
    if missing := {field.name for field in fields(AgentConfig)} - data.keys():
        raise WeightsError(f"{path}: config: {min(missing)}: missing")
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    try:
        return AgentConfig(**values)
    except ValueError as error:
        raise WeightsError(f"{path}: config: {error}") from error


def _tensors(path: Path, digest: str, release: released.Release | None) -> dict[str, torch.Tensor]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WeightsError(f"{path}: {error}") from error
    if release:
        release.check(path, data)
    if _digest(data) != digest:
        raise WeightsError(f"{path}: damaged: its contents do not match the digest in its name")
    try:
        return safetensors.load(data)
    except SafetensorError as error:
        raise WeightsError(f"{path}: not a safetensors file: {error}") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
