"""A training run's folder: its config, its logs, its checkpoints and its milestones.

A checkpoint is a folder: the agent's weights, the state of the optimizers and of the replay buffer, and the run's
progress with their digests. It is written under a temporary name and then renamed, so a killed run leaves the last
checkpoint intact. A milestone is the agent alone, after a number of games; unlike checkpoints, milestones are never
deleted.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors
from torch import nn

from scrubjay.agent import released, weights
from scrubjay.agent.agent import Agent, load_agent
from scrubjay.agent.config import AgentConfig
from scrubjay.agent.encoders import check_encoder, check_trusted
from scrubjay.errors import RunError, WeightsError, reason
from scrubjay.files import write_atomically
from scrubjay.game.actions import Stage
from scrubjay.training.config import TrainConfig, from_json, to_json
from scrubjay.training.shadow import ShadowClassifier, fill_shadow, save_shadow

VERSION = 18
KEPT = 3
"""How many checkpoints are kept: the newest ones, and the one with the best validation score."""
CONFIG, LOG, LOCK, PROGRESS, OPTIMIZERS = "run.json", "metrics.jsonl", "lock", "progress.json", "optimizers.safetensors"
REPLAY = "replay.safetensors"
"""A checkpoint's replay buffer without images; without one the buffer starts empty."""
VALIDATION_LOG = "validation.jsonl"
"""Metrics of the agent and of scripted players in the validation rooms."""
MILESTONES = "milestones"
"""Folder of the agents that are kept for ever, named by their numbers of games."""
SCORE = "score.json"
"""A checkpoint's validation score, if it has one: its metric and value."""
ADDED_PARTS = (
    "separate_openable_head", "openable_hidden", "open_at_prior", "hand_head", "hiding_priors", "mental_offsets",
)  # fmt: skip
"""Fields of the networks that only add to what heads read, or replace perspective simulation: an agent without these
parts can start a run with them."""
LOCK_PATIENCE = 20.0
"""Seconds that a process which was started again waits for the lock of the one before it."""
SPOTS = "spots"
"""Folder of the hiding spots that a run has made."""


@dataclass(frozen=True)
class Progress:
    """A run's progress."""

    update: int = 0
    """Rollouts trained on."""
    steps: int = 0
    """Environment steps."""
    games: int = 0
    seconds: float = 0.0
    rate: float = 0.1
    """The adaptive schedule's factor on all learning rates. It begins low: fresh optimizers take large steps."""


class Run:
    """A run's folder, locked for one process."""

    def __init__(self, folder: Path, config: TrainConfig, lock: IO[str] | None = None) -> None:
        self.folder, self.config, self._lock = folder, config, lock
        self.untrained: list[str] = []
        """Tensors of its networks that the agent which a new run starts with lacks."""

    @classmethod
    def begin(
        cls, folder: str | os.PathLike[str], config: TrainConfig, start: str | os.PathLike[str] | None = None
    ) -> Run:
        """Creates a run in a new folder; `start` is a run, or a folder of weights, whose agent it starts with.

        The run's networks may have parts that this agent lacks: they begin untrained.
        """
        folder = Path(folder)
        if (folder / CONFIG).exists():
            raise RunError(f"{folder} is a run already: continue it with --resume {folder}, or choose another folder")
        check_encoder(config.agent)
        agent = load_agent(newest(start)) if start else None
        untrained: list[str] = []
        if agent and agent.config != config.agent:
            agent, untrained = _grown(agent, config, f"{start}")
        if config.seek_like_explore:
            if agent is None:
                raise RunError("seek_like_explore: an agent that explores is needed: name it with --start")
            agent.heads[Stage.S].copy_policy(agent.heads[Stage.EM])
        shadow = None
        if agent and start and config.shadow_classifier:
            # Without its own shadow, one would lack the updates that this agent's encoder has had.
            shadow = ShadowClassifier(agent.encoder, agent.config)
            fill_shadow(shadow, newest(start))
        folder.mkdir(parents=True, exist_ok=True)
        run = cls(folder, config, _lock(folder))
        run.untrained = untrained
        if agent:
            # The first checkpoint, with fresh optimizers, is written before the config: without a config the folder is
            # no run, so one that lacks its first checkpoint cannot be resumed.
            run.save(agent, {}, Progress(), shadow=shadow)
        about = {"version": VERSION, "commit": _commit(), "config": json.loads(to_json(config))}
        write_atomically(folder / CONFIG, json.dumps(about, indent=1) + "\n")
        return run

    @classmethod
    def begin_or_continue(
        cls, folder: str | os.PathLike[str], config: TrainConfig, start: str | os.PathLike[str] | None = None
    ) -> Run:
        """Begins a run, or opens the one in the folder, which must have the same config.

        For processes that are started again with the same command. The lock of one that was killed may outlive it on a
        network's file system.
        """
        folder = Path(folder)
        if not (folder / CONFIG).exists():
            return cls.begin(folder, config, start)
        its = read_config(folder)
        if different := [
            field.name for field in fields(config) if getattr(its, field.name) != getattr(config, field.name)
        ]:
            raise RunError(
                f"{folder} is a run with another {', '.join(different)}: choose another folder with --out, or continue "
                f"it with its own config: --resume {folder}"
            )
        return cls(folder, its, _lock(folder, LOCK_PATIENCE))

    @classmethod
    def open(cls, folder: str | os.PathLike[str], trust_code: bool = False) -> Run:
        """Opens a run to continue it; RunError if it is none, damaged, of another version or in use.

        A run whose encoder is a Python class is opened only with `trust_code`.
        """
        folder = Path(folder)
        config = read_config(folder)
        check_trusted(config.agent, trust_code)
        return cls(folder, config, _lock(folder))

    def close(self) -> None:
        if self._lock:
            self._lock.close()

    def log(self, row: dict[str, Any], name: str = LOG) -> None:
        """Appends a row to a log; rows after the last checkpoint are dropped when the run is resumed."""
        with open(self.folder / name, "a") as file:
            file.write(json.dumps(row) + "\n")

    def rows(self, name: str = LOG) -> list[dict[str, Any]]:
        """A log's rows; none if there is no such log yet."""
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def rewind(self, progress: Progress) -> None:
        """Drops log rows later than a checkpoint."""
        for path in (self.folder / LOG, self.folder / VALIDATION_LOG):
            if path.exists():
                kept = [line for line in path.read_text().splitlines() if _update_of(line) <= progress.update]
                write_atomically(path, "".join(line + "\n" for line in kept))

    def save(
        self,
        agent: Agent,
        optimizers: Mapping[str, torch.optim.Optimizer],
        progress: Progress,
        replays: Sequence[Mapping[str, torch.Tensor]] = (),
        shadow: ShadowClassifier | None = None,
    ) -> Path:
        """Writes a checkpoint and deletes the oldest ones, except the best. `replays` has one buffer per process."""
        final = checkpoint_folder(self.folder, progress)
        files = {OPTIMIZERS: safetensors.save(_flatten(optimizers))}
        if any(replays):
            buffers = {f"{rank}.{name}": t for rank, replay in enumerate(replays) for name, t in replay.items()}
            files[REPLAY] = safetensors.save(buffers)
        with _new_folder(final) as draft:
            weights.save(agent, agent.config, draft)
            if shadow is not None:
                save_shadow(shadow, draft)
            for name, data in files.items():
                write_atomically(draft / name, data)
            _write_progress(draft, progress, **{name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
        best = best_checkpoint(self.folder)
        for old in checkpoints(self.folder)[:-KEPT]:
            if old != best:
                shutil.rmtree(old)
        return final

    def save_score(self, progress: Progress, metric: str, value: float) -> None:
        """Writes the validation score of a checkpoint; the one with the highest value is never deleted."""
        folder = checkpoint_folder(self.folder, progress)
        if folder.exists():
            write_atomically(folder / SCORE, json.dumps({"metric": metric, "value": value}) + "\n")

    def save_milestones(
        self, agent: Agent, progress: Progress, games_before: int, shadow: ShadowClassifier | None = None
    ) -> list[Path]:
        """Writes the agent for each milestone passed since `games_before`; one that exists already is kept.

        Milestone 0 is the agent before its first update, or after its pretraining.
        """
        passed = [games for games in self.config.milestones if games_before < games <= progress.games]
        due = [path for path in (self.folder / MILESTONES / f"{games:012d}" for games in passed) if not path.exists()]
        for final in due:
            with _new_folder(final) as draft:
                weights.save(agent, agent.config, draft)
                if shadow is not None:
                    save_shadow(shadow, draft)
                _write_progress(draft, progress)
        return due

    def restore(
        self,
        agent: Agent,
        optimizers: Mapping[str, torch.optim.Optimizer],
        shadow: ShadowClassifier | None = None,
    ) -> Progress:
        """Loads the newest checkpoint, if there is one, into agent, optimizers and shadow."""
        saved = checkpoints(self.folder)
        return load_checkpoint(saved[-1], agent, optimizers, shadow) if saved else Progress()

    def restore_replay(self, restore: Callable[[Sequence[Mapping[str, torch.Tensor]]], None]) -> None:
        """Calls `restore` with the newest checkpoint's replay buffers, one per process, if it has any.

        RunError if they are damaged, or if `restore` raises ValueError.
        """
        path = [self.folder, *checkpoints(self.folder)][-1]
        try:
            digest = json.loads((path / PROGRESS).read_text()).get(REPLAY) if path != self.folder else None
            if digest is None:
                return
            data = (path / REPLAY).read_bytes()
            if hashlib.sha256(data).hexdigest() != digest:
                raise ValueError("its digest differs")
            buffers: dict[int, dict[str, torch.Tensor]] = {}
            for key, tensor in safetensors.load(data).items():
                rank, name = key.split(".", 1)
                buffers.setdefault(int(rank), {})[name] = tensor
            restore([buffers.get(rank, {}) for rank in range(1 + max(buffers))])
        except (OSError, ValueError, SafetensorError) as error:
            raise RunError(
                f"{path / REPLAY}: damaged: {error}. Delete the checkpoint's folder to continue from the one before it"
            ) from error


def read_config(folder: str | os.PathLike[str]) -> TrainConfig:
    """A run's config; RunError says what is wrong."""
    path = Path(folder) / CONFIG
    if not path.exists():
        raise RunError(
            f"{folder} is not a run: " + (f"it has no {CONFIG}" if path.parent.is_dir() else "no such folder")
        )
    try:
        about = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"{folder} is not a run: {CONFIG}: {reason(error)}") from error
    version = about.get("version") if isinstance(about, dict) else None
    if version != VERSION:
        raise RunError(
            f"{path}: a run of version {version}; this program continues version {VERSION}. "
            f"Begin a new run with its agent: scrubjay train PRESET --start {folder}"
        )
    try:
        return from_json(json.dumps(about.get("config")))
    except ValueError as error:
        raise RunError(f"{path}: {error}") from error


def checkpoints(folder: str | os.PathLike[str]) -> list[Path]:
    """A run's checkpoints, oldest first."""
    return sorted(path for path in (Path(folder) / "checkpoints").glob("[0-9]*") if (path / PROGRESS).exists())


def checkpoint_folder(folder: Path, progress: Progress) -> Path:
    """Where a run's checkpoint of that progress is."""
    return folder / "checkpoints" / f"{progress.update:08d}"


def best_checkpoint(folder: str | os.PathLike[str]) -> Path | None:
    """A run's checkpoint with the highest validation score, the earliest of equals; None without validation."""
    scores = {path: score for path in checkpoints(folder) if (score := read_score(path)) is not None}
    return max(scores, key=scores.__getitem__, default=None)


def read_score(checkpoint: Path) -> float | None:
    """A checkpoint's validation score; None if it has none, or an unreadable one."""
    try:
        value = json.loads((checkpoint / SCORE).read_text())["value"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return float(value) if isinstance(value, int | float) and value == value else None


def newest(folder: str | os.PathLike[str]) -> Path:
    """A run's newest checkpoint, RunError if it has none; a released agent's folder, by name; or the folder itself."""
    folder = released.locate(folder)
    saved = checkpoints(folder)
    if not saved and (folder / CONFIG).exists():
        raise RunError(f"{folder} has no checkpoint yet: continue it with scrubjay train --resume {folder}")
    return [folder, *saved][-1]


def load_checkpoint(
    path: Path,
    agent: Agent,
    optimizers: Mapping[str, torch.optim.Optimizer],
    shadow: ShadowClassifier | None = None,
) -> Progress:
    """Loads a checkpoint into agent, optimizers and shadow; RunError if it is damaged."""
    try:
        about = json.loads((path / PROGRESS).read_text())
        data = (path / OPTIMIZERS).read_bytes()
        config, tensors = weights.load(path)
        progress = Progress(**{name: about[name] for name in vars(Progress())})
        intact = about["version"] == VERSION and about[OPTIMIZERS] == hashlib.sha256(data).hexdigest()
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RunError(
            f"{path}: damaged: {error}. Delete this folder to continue from the checkpoint before it"
        ) from error
    if not intact:
        raise RunError(f"{path}: damaged, or of another version. Delete this folder to continue from the one before it")
    if config != agent.config:
        raise RunError(f"{path}: the agent's config differs from the run's")
    if shadow is not None:
        try:
            fill_shadow(shadow, path)
        except WeightsError as error:
            raise RunError(f"{error}. Delete {path} to continue from the checkpoint before it") from error
    weights.fill(agent, tensors)
    _fill(optimizers, safetensors.load(data))
    return progress


@contextmanager
def _new_folder(final: Path) -> Iterator[Path]:
    """A folder under a temporary name, renamed at the end; RunError, and nothing left behind, if writing fails."""
    for left in final.parent.glob(".[0-9]*"):
        shutil.rmtree(left, ignore_errors=True)
    draft = final.with_name(f".{final.name}")
    try:
        draft.mkdir(parents=True)
        yield draft
    except OSError as error:
        # Half a checkpoint must not keep filling a full disk.
        shutil.rmtree(draft, ignore_errors=True)
        raise RunError(f"{final} could not be written ({error}); the checkpoints before it are intact") from error
    shutil.rmtree(final, ignore_errors=True)
    draft.rename(final)


def _write_progress(folder: Path, progress: Progress, **digests: str) -> None:
    about = {"version": VERSION, **vars(progress), **digests}
    write_atomically(folder / PROGRESS, json.dumps(about, indent=1) + "\n")


def _flatten(optimizers: Mapping[str, torch.optim.Optimizer]) -> dict[str, torch.Tensor]:
    """The optimizers' state by `optimizer.parameter.name`."""
    tensors = {}
    for name, optimizer in optimizers.items():
        for number, values in optimizer.state_dict()["state"].items():
            for what, value in values.items():
                tensors[f"{name}.{number}.{what}"] = torch.as_tensor(value).detach().cpu().contiguous()
    return tensors


def _fill(optimizers: Mapping[str, torch.optim.Optimizer], tensors: dict[str, torch.Tensor]) -> None:
    for name, optimizer in optimizers.items():
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key, tensor in tensors.items():
            optimizer_name, number, what = key.split(".")
            if optimizer_name == name:
                state.setdefault(int(number), {})[what] = tensor
        if not state:
            continue  # The first checkpoint of a run started from another run's agent has none.
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        # Files keep no memory layout, and fused Adam asks for that of the parameters.
        for parameter, values in optimizer.state.items():
            for what, value in values.items():
                if value.shape == parameter.shape:
                    values[what] = torch.empty_like(parameter, requires_grad=False).copy_(value)


def _lock(folder: Path, patience: float = 0.0) -> IO[str]:
    """Locks a run's folder; RunError if another process holds it for so many seconds."""
    lock, until = open(folder / LOCK, "w"), time.monotonic() + patience  # noqa: SIM115 (held until the run is closed)
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError as error:
            if time.monotonic() >= until:
                lock.close()
                raise RunError(f"{folder} is in use by another process") from error
            time.sleep(0.2)


def _update_of(line: str) -> float:
    try:
        return float(json.loads(line)["update"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _commit() -> str:
    """The package's git commit, if it is a working copy."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def trainable_parameters(*modules: nn.Module) -> list[nn.Parameter]:
    """The modules' parameters that require gradients, each once."""
    return list(dict.fromkeys(p for module in modules for p in module.parameters() if p.requires_grad))


def _grown(agent: Agent, config: TrainConfig, name: str) -> tuple[Agent, list[str]]:
    """The agent with the run's networks, and the names of their tensors that it lacked; RunError if others differ."""
    same_parts = replace(config.agent, **{part: getattr(agent.config, part) for part in ADDED_PARTS})
    torch.manual_seed(config.seed)
    grown = Agent(config.agent, agent.encoder)
    state, own = agent.state_dict(), grown.state_dict()
    if agent.config.mental_offsets != config.agent.mental_offsets:
        # Other imagined maps: nothing that was learned about them holds.
        state = {name: value for name, value in state.items() if not name.startswith("perspective.")}
    if same_parts != agent.config or not state.keys() <= own.keys():
        raise RunError(f"{name}: its networks differ from the run's in {_difference(agent.config, config.agent)}")
    grown.load_state_dict(own | state)
    return grown, sorted(own.keys() - state.keys())


def _difference(one: AgentConfig, other: AgentConfig) -> str:
    names = [field.name for field in fields(AgentConfig) if getattr(one, field.name) != getattr(other, field.name)]
    return ", ".join(f"{name} ({getattr(one, name)}, not {getattr(other, name)})" for name in names)
