"""Writes a release: an agent and its encoder in bfloat16, and a card with the SHA-256 of every file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import tomllib
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError
from torch import nn

import scrubjay
from scrubjay.agent import released, weights
from scrubjay.agent.agent import load_agent
from scrubjay.agent.encoders import FROM_FOLDER, FROM_PYTHON
from scrubjay.agent.released import CARD, CARD_TEXT, PARTS, Card, CardText, ReleasedFile
from scrubjay.errors import WeightsError, explain, reason
from scrubjay.files import write_atomically
from scrubjay.players.by_name import HIDERS, SEEKERS
from scrubjay.spots.spots import DIFFICULTIES
from scrubjay.training.run import newest

TAKEN = {*HIDERS, *SEEKERS, *DIFFICULTIES, "agent", "scripted"}
"""Names of other players."""


def load_card_text(path: str | os.PathLike[str]) -> CardText:
    """What the author of a release wrote about it, as TOML; WeightsError says what is wrong or missing."""
    try:
        return CardText.model_validate_json(json.dumps(tomllib.loads(Path(path).read_text())))
    except ValidationError as error:
        raise WeightsError(f"{path}: {explain(error)}") from error
    except (OSError, ValueError, TypeError) as error:
        raise WeightsError(f"{path}: not a card in TOML: {reason(error)}") from error


def write_release(
    source: str | os.PathLike[str],
    text: CardText,
    name: str = released.DEFAULT,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Releases the agent of a run, a milestone or a folder of weights, and returns the release's folder, `out / name`.

    `out` is where released agents are loaded from, by default. The folder appears whole, after it was loaded once.
    """
    released.check_name(name)
    if name in TAKEN:
        raise ValueError(f"name: {name} is another player's name")
    parent = Path(out) if out else released.folder()
    final = parent / name
    if final.exists() and not overwrite:
        raise WeightsError(f"{final} exists: choose another name, or replace it with --overwrite")
    agent = load_agent(newest(source), trust_code=False)
    config = agent.config
    if config.encoder.startswith(FROM_PYTHON):
        raise WeightsError(f"{source}: its encoder is {config.encoder}: an agent that runs code cannot be released")
    if config.encoder.startswith(FROM_FOLDER):
        # Its weights are among the agent's; the folder that they came from is nobody else's.
        config = replace(config, encoder="cnn")
    encoder = agent.encoder
    assert isinstance(encoder, nn.Module)
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{name}.") as scratch:
        draft = Path(scratch) / name
        for part, module in zip(PARTS, (agent, encoder), strict=True):
            weights.save(module, config, draft / part, compact=True)
        parameters = sum(parameter.numel() for parameter in agent.parameters())
        write_card(draft, text, name, parameters)
        load_agent(draft / "agent")
        weights.load(draft / "encoder", "encoder")
        if final.exists():
            shutil.move(final, Path(scratch) / "before")
        draft.rename(final)
        final.chmod(0o755)
    return final


def write_card(folder: Path, text: CardText, name: str, parameters: int) -> Card:
    """Writes the card of the files in a release's folder, as JSON and as Markdown."""
    paths = sorted(path for part in PARTS for path in (folder / part).iterdir())
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    card = Card(
        **dict(text),
        version=1,
        name=name,
        package=scrubjay.__version__,
        parameters=parameters,
        files={
            path: ReleasedFile(bytes=len(data), sha256=hashlib.sha256(data).hexdigest()) for path, data in files.items()
        },
    )
    write_atomically(folder / CARD, json.dumps(card.model_dump(mode="json"), indent=1) + "\n")
    write_atomically(folder / CARD_TEXT, released.markdown(card))
    return card
