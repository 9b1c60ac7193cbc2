"""Trains a run to its end: logs, checkpoints, milestones and validation are kept in its folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from safetensors import torch as safetensors

from scrubjay import tree
from scrubjay.errors import NotFiniteError, PhysicsError, TrainingError
from scrubjay.files import write_atomically
from scrubjay.training.distributed import Group
from scrubjay.training.run import SPOTS, Progress, Run, checkpoints
from scrubjay.training.trainer import Report, Trainer
from scrubjay.training.validation import Validation, validate


def train(
    run: Run,
    device: str = "cpu",
    report: Report | None = None,
    stop: Callable[[], bool] = lambda: False,
    group: Group | None = None,
    validation: Validation | None = None,
) -> Progress:
    """Trains a run from its newest checkpoint to its end, or until `stop()`; logs and saves into its folder.

    `validation` replaces the run's own, which is built when first needed.
    """
    group = group or Group()
    pretrained = not checkpoints(run.folder)
    with contextlib.closing(Trainer(run.config, device, group, run.folder / SPOTS, pretrained)) as trainer:
        trainer.progress = run.restore(trainer.agent, trainer.optimizers, trainer.shadow)
        run.restore_replay(trainer.restore_replay)
        state = [tensor for tensor in trainer.agent.state_dict().values() if tensor.is_floating_point()]
        group.broadcast(state)
        group.wait()
        games = trainer.progress.games
        if group.rank == 0:
            run.rewind(trainer.progress)
            if trainer.progress.update == run.config.pretraining_updates == 0:
                run.save_milestones(trainer.agent, trainer.progress, games_before=-1, shadow=trainer.shadow)

        def save() -> None:
            group.check_equal(trainer.agent, f"after update {trainer.progress.update}")
            replays = group.gather(trainer.replay.state() if trainer.replay else {})
            if group.rank == 0:
                run.save(trainer.agent, trainer.optimizers, trainer.progress, replays, trainer.shadow)
                # Whoever stops a run waits for its checkpoint, not for minutes of games.
                if run.config.validation_games and not stop():
                    run_validation()
            group.wait()

        def run_validation() -> None:
            nonlocal validation
            validation = validation or Validation(
                run.config, run.folder / SPOTS, run.config.validation_games, device=device
            )
            with trainer.autocast():
                row = validate(run, validation, trainer.agent, trainer.progress)
            if report:
                report(row)

        def log(row: dict[str, Any]) -> None:
            nonlocal games
            if group.rank == 0:
                pretrained = trainer.progress.update == run.config.pretraining_updates
                run.save_milestones(trainer.agent, trainer.progress, -1 if pretrained else games, trainer.shadow)
                games = trainer.progress.games
                run.log(row)
                if report:
                    report(row)

        try:
            trainer.run(log, stop, save)
        except NotFiniteError as error:
            path = run.folder / f"not_finite-{trainer.progress.update}.safetensors"
            batch = {name: t.detach().cpu().contiguous() for name, t in tree.leaves_with_path(error.batch)}
            write_atomically(path, safetensors.save(batch))
            raise TrainingError(f"update {trainer.progress.update}: {error}; the batch is in {path}") from error
        except PhysicsError as error:
            raise TrainingError(f"{error}; the last checkpoint is intact") from error
        except torch.cuda.OutOfMemoryError as error:
            raise TrainingError(
                f"out of GPU memory with {run.config.games} games and minibatches of {run.config.minibatch_games}: "
                "reduce copies or minibatch_games; the last checkpoint is intact"
            ) from error
        return trainer.progress
