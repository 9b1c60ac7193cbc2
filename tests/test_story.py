"""Stories: the page shows the whole game, the video too, and a record that does not replay leaves no file."""

import base64
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from scrubjay.game.actions import NOTHING, Stage, number_of
from scrubjay.game.cache import Cache
from scrubjay.game.deal import Deal
from scrubjay.game.record import Recorder, RecordError
from scrubjay.show import story
from scrubjay.show.story import Story, chosen, tell, write_story, write_video
from scrubjay.world.place import Place
from scrubjay.world.world import World

SIZE, MOST = 56, 8 * 2**20


@pytest.fixture(scope="module")
def record():
    """The hider takes a step, comes back by its choice, drops the object before itself; the seeker claims it."""
    with World(["FloorPlan9"], size=SIZE) as world:
        grid = world.reachable[0]
        middle = world.rooms[0].floor.clearance(grid.positions).argmax()
        x, z = map(float, grid.positions[middle])
        cache = Cache(world, lambda _, b: Deal("Bread", Place(x, z, 0.0, True)))
        recorder, done = Recorder(cache), []

        def play(name: str, place: tuple[int, ...] = (0, 0, 0, 1)) -> None:
            action = np.array([number_of(name) if name else NOTHING])
            done.extend(recorder.note(cache.step(action, np.array([place])), np.array([place])))

        play("MoveAhead")
        while cache.stage[0] == Stage.EM:
            play("RotateRight")
        play("", tuple((-cache.relative_place()[0, :2]).tolist()) + (0, 1))
        for name in ("PlaceAt|0,1,1", "MoveHandDown", "MoveHandAhead", "DropObject"):
            play(name)
        while cache.stage[0] == Stage.OH:
            play("ReadyForSeeker")
        play("RotateLeft")
        play("ClaimVisible")
        play("RotateRight")
        play("ClaimVisible")
    assert done and done[0].found
    return done[0]


@pytest.fixture(scope="module")
def told(record) -> Story:
    return tell(record)


@pytest.fixture(scope="module")
def page(record, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("story") / "new" / "index.html"
    write_story(record, path)
    assert [file.name for file in path.parent.iterdir()] == ["index.html"]
    return path.read_text()


def frames(page: str) -> list[dict]:
    return json.loads(re.search(r"const frames = (.*);\n", page)[1])


def test_the_page_shows_every_stage_and_needs_no_other_file(page):
    ids = re.findall(r'<h3 id="(\w+)">', page)
    assert ids == [stage.name for stage in Stage]
    boards = page.split("<h3 ")[1:]
    assert all(board.count("data:image/jpeg") >= 1 for board in boards)
    assert boards[Stage.OM].count("<figure>") >= 3 and "<b>DropObject</b>" in boards[Stage.OM]
    assert "found after 4 steps" in page and "manipulation. White" in page
    assert not re.search(r'(src|href)="(?!data:)', page) and "http" not in page
    assert len(page.encode()) < MOST


def test_the_scrubber_goes_through_the_game(page, record):
    shown = frames(page)
    assert len(shown) == len(record.actions), "a short game is shown step by step"
    assert f'max="{len(shown) - 1}"' in page and f"{len(shown)} of {len(record.actions)} steps" in page
    assert [frame["action"] for frame in shown] == record.actions
    assert [not frame["failed"] for frame in shown] == record.success
    for frame in shown:
        assert Image.open(io.BytesIO(base64.b64decode(frame["image"]))).size == (160, 160)
        assert all(0 < share < 100 for share in frame["player"])
    assert shown[0]["object"] is None and shown[-1]["object"] is not None


def test_a_long_game_is_thinned_out(record, tmp_path, monkeypatch):
    monkeypatch.setattr(story, "FRAMES", 40)
    write_story(record, tmp_path / "index.html")
    page = (tmp_path / "index.html").read_text()
    steps = [frame["step"] for frame in frames(page)]
    assert len(steps) == 40 and steps == sorted(set(steps)) and steps[-1] == len(record.actions)
    assert {frame["stage"] for frame in frames(page)} == {title for title, _, _ in story.STAGES.values()}


def test_the_replay_is_told_as_it_was(record, told):
    assert [step.action for step in told.steps] == record.actions
    spot = told.of(Stage.PS)[0].place
    assert spot[:2] == pytest.approx(record.start[:2]), "the hider chose to go back"
    drop = told.of(Stage.OM)[-1]
    assert drop.action == "DropObject" and drop.pose[2] < told.of(Stage.OM)[0].pose[2]
    assert told.steps[-1].pose.tolist() == record.pose


def test_eventful_steps_are_kept(told):
    steps = told.steps
    few = chosen(steps, 20)
    assert len(few) == 20 and few[-1] is steps[-1]
    assert {"PlaceAt|0,1,1", "DropObject", "ClaimVisible"} <= {step.action for step in few}
    assert chosen(steps[:5], 20) == steps[:5]


def test_a_changed_record_is_refused_before_anything_is_written(record, tmp_path):
    flipped = replace(record, success=[not record.success[0], *record.success[1:]])
    moved = replace(record, pose=[record.pose[0] + 1e-9, *record.pose[1:]])
    for write, name in ((write_story, "index.html"), (write_video, "game.gif")):
        for changed in (flipped, moved):
            with pytest.raises(RecordError):
                write(changed, tmp_path / "new" / name)
    assert not any(tmp_path.iterdir())


def test_the_video_has_the_whole_game(record, tmp_path):
    write_video(record, tmp_path / "game.gif")
    with Image.open(tmp_path / "game.gif") as video:
        assert video.n_frames == len(record.actions) <= 300
        assert video.width == 224 and video.info["loop"] == 0
