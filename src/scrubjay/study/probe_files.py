"""Trained decoders as files: what a page of predictions needs after a study, or a decoder for pictures of your own.

A file is safetensors: the decoder's weights, the test losses, and the result's facts as metadata. Nothing in it runs.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors import torch as safetensors

from scrubjay.agent import weights
from scrubjay.errors import ProbeError, WeightsError
from scrubjay.files import write_atomically
from scrubjay.study.decoders import ClassHead, DenseDecoder
from scrubjay.study.probe import Decoder, Epoch, ProbeResult
from scrubjay.study.probe_losses import TASKS

VERSION = "1"
LOSSES = "test losses"


def save_probe(result: ProbeResult, path: str | Path) -> None:
    """Writes a result with its decoder."""
    decoder = result.decoder
    tensors = {name: value.cpu().contiguous() for name, value in decoder.state_dict().items()}
    facts = {
        "task": result.task,
        "best_epoch": result.best_epoch,
        "epochs": [asdict(epoch) for epoch in result.epochs],
        "seconds": result.seconds,
        "size": decoder.size if isinstance(decoder, DenseDecoder) else None,
    }
    tensors[LOSSES] = torch.from_numpy(result.losses)
    write_atomically(path, safetensors.save(tensors, {"version": VERSION, "facts": json.dumps(facts)}))


def load_probe(path: str | Path) -> ProbeResult:
    """Reads what `save_probe` wrote, onto the CPU; ProbeError if it is something else."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ProbeError(f"{path}: not a file of a probe, or damaged: {error}") from error
    if metadata.get("version") != VERSION:
        raise ProbeError(f"{path}: not a probe of version {VERSION}")
    try:
        facts = json.loads(metadata["facts"])
        losses = tensors.pop(LOSSES).numpy()
        epochs = [Epoch(**epoch) for epoch in facts["epochs"]]
        decoder = _make(facts["task"], facts["size"], tensors)
        weights.fill(decoder, tensors)
        return ProbeResult(
            task=facts["task"],
            with_skips=bool(decoder.skip_norms),
            losses=losses,
            best_epoch=facts["best_epoch"],
            validation_loss=epochs[facts["best_epoch"]].validation_loss,
            epochs=epochs,
            parameters=sum(parameter.numel() for parameter in decoder.parameters()),
            seconds=facts["seconds"],
            decoder=decoder.eval(),
        )
    except (KeyError, IndexError, TypeError, ValueError, WeightsError) as error:
        raise ProbeError(f"{path}: not a complete probe: {error}") from error


def _make(name: str, size: int | None, tensors: dict[str, torch.Tensor]) -> Decoder:
    """A decoder of the sizes that its tensors have."""
    task, channels = TASKS[name], len(tensors["sir_norm.mean"])
    if not task.dense:
        return ClassHead(channels, len(tensors["linear.bias"]))
    assert size is not None
    scales = sum(key.startswith("skip_norms.") and key.endswith(".mean") for key in tensors)
    skips = tuple(len(tensors[f"skip_norms.{scale}.mean"]) for scale in range(scales))
    decoder = DenseDecoder(channels, task.outputs, skips, task.masked, size)
    return decoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
