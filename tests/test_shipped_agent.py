"""The agent that comes with the package: its files, and what its card says of it."""

from pathlib import Path

import pytest
import torch

import scrubjay
from scrubjay.agent import released
from scrubjay.agent.released import DEFAULT, PACKAGE_FOLDER, VARIABLE
from scrubjay.rooms.generate import expand_scenes
from scrubjay.training.release import load_card_text

SOURCE = Path(__file__).parents[1] / "data" / "scrubjay-paper.toml"


@pytest.fixture(autouse=True)
def packaged(monkeypatch):
    """The package's own folder, whatever the environment says."""
    monkeypatch.delenv(VARIABLE, raising=False)


def test_it_loads_by_name_and_is_as_its_card_says():
    card = scrubjay.load_card(DEFAULT)
    assert released.locate(DEFAULT).is_relative_to(PACKAGE_FOLDER)
    assert card.gpu_minutes >= 60 and card.steps > 20e6 and sum(run.games for run in card.training) > 4000
    assert card.licence == "Apache-2.0" and "told" in card.limits, "what it was taught beyond the paper is said"
    agent, encoder = scrubjay.load_agent(DEFAULT), scrubjay.load_encoder(DEFAULT)
    image = torch.randint(256, (2, 224, 224, 3), dtype=torch.uint8)
    with torch.no_grad():
        assert torch.equal(agent.encoder.eval()(image).sir, encoder.eval()(image).sir), (
            "the encoder alone is the agent's"
        )


def test_its_card_is_made_of_the_repository_s_source():
    """Whoever corrects the one makes the other again: `scrubjay release`."""
    source, card = load_card_text(SOURCE).model_dump(), scrubjay.load_card(DEFAULT).model_dump()
    assert {name: card[name] for name in source} == source


@pytest.mark.slow
def test_it_explores_rooms_that_it_has_never_seen():
    rooms = expand_scenes(["validation:kitchen"])[:3]
    scores = scrubjay.evaluate(DEFAULT, "explore", scenes=rooms, games=2)
    assert scores["coverage_plus"].mean > 0.4 and scores["opened"].mean > 0.25, "the card has 0.65 and 0.52"
