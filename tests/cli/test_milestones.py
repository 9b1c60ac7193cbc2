"""`scrubjay milestones` as a user types it."""

from dataclasses import replace

import pytest
from helpers import run_command

from scrubjay.agent.agent import Agent, save_agent
from scrubjay.agent.config import SMALL
from scrubjay.training.config import TrainConfig
from scrubjay.training.run import Progress, Run


def command(monkeypatch, capsys, *args: str) -> tuple[int, str, str]:
    return run_command(monkeypatch, capsys, "milestones", *args)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A run with milestones 0 and 8, one without any, and weights of an agent with larger images."""
    folder = tmp_path_factory.mktemp("milestones")
    for name, milestones in (("run", (0, 8)), ("bare", ())):
        run = Run.begin(folder / name, TrainConfig.preset("demo", agent=SMALL, milestones=milestones))
        run.save_milestones(Agent(SMALL), Progress(), -1)
        run.save_milestones(Agent(SMALL), Progress(1, 1, 8), 0)
        run.close()
    save_agent(Agent(replace(SMALL, image_size=224)), folder / "large")
    return folder


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "name at least one run"),
        (["bare"], "bare has no milestones: name one of its checkpoints"),
        (["nowhere"], "nowhere"),
        (["run", "run"], "is given twice"),
        (["run", "large"], "agents see images of different sizes"),
        (["run", "--rooms", "FloorPlan999"], "unknown scene 'FloorPlan999'"),
        (["run", "--rooms", "FloorPlan501", "--shown", "FloorPlan1"], "shown: nobody plays in FloorPlan1"),
        (["run", "--hiders", "nobody"], "unknown hider nobody"),
        (["run", "--rooms", "FloorPlan501", "--spots", "run"], "there are no spots of a"),
        (["run", "--rooms", "FloorPlan501", "--games", "0"], "--games: 1 or more, not 0"),
    ],
)
def test_mistakes_are_one_sentence_and_write_nothing(files, args, message, monkeypatch, capsys):
    monkeypatch.chdir(files)
    code, _, errors = command(monkeypatch, capsys, *args, "--out", "new")
    assert code == 2 and message in errors and "Traceback" not in errors and not (files / "new").exists()


@pytest.mark.slow
def test_all_milestones_hide_and_seek_and_the_page_is_written(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    args = ["run", "--rooms", "FloorPlan501", "--games", "1", "--hiders", "--seekers", "random"]
    code, printed, errors = command(monkeypatch, capsys, *args)
    assert code == 0, errors
    assert printed.splitlines()[-1] == "out/milestones/index.html" and "Spots of easy, medium and hard" in errors
    page = (files / "out" / "milestones" / "index.html").read_text()
    assert "8 games" in page and "One game of each" in page
