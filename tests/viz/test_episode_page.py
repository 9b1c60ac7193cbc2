"""Episodes: page and video show the whole game, and a record that does not replay is refused."""

import base64
import io
import json
import re
from dataclasses import replace

import av
import numpy as np
import pytest
from PIL import Image

from scrubjay.errors import RecordError
from scrubjay.game.actions import NAMES, NOTHING, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Recorder
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.viz import episode_page
from scrubjay.viz.captions import action_words, caption, count_things
from scrubjay.viz.episode import STAGES, Episode, key_steps, replay_episode, replay_lines, select_steps
from scrubjay.viz.episode_page import write_episode_page
from scrubjay.viz.video import CAPTION_HEIGHT, FRAME_RATE, FRAME_SIZE, HOLD_SECONDS, write_video

SIZE, MOST = 56, 8 * 2**20


@pytest.fixture(scope="module")
def record():
    """The hider takes a step, returns in PS, and drops the object in front of itself; the seeker claims it."""
    with World(["FloorPlan9"], size=SIZE) as world:
        grid = world.reachable[0]
        middle = world.rooms[0].floor.clearance(grid.positions).argmax()
        x, y = map(float, grid.positions[middle])
        game = CacheGame(world, lambda _, b: EpisodeSpec("Bread", AgentPose(x, y, 0.0, True)))
        recorder, done = Recorder(game), []

        def play(name: str, place: tuple[int, ...] = (0, 0, 0, 1)) -> None:
            action = np.array([action_index(name) if name else NOTHING])
            done.extend(recorder.note(game.step(action, np.array([place])), np.array([place])))

        play("MoveAhead")
        while game.stage[0] == Stage.EM:
            play("RotateRight")
        play("", tuple((-game.relative_place()[0, :2]).tolist()) + (0, 1))
        for name in ("PlaceAt|0,1,1", "MoveHandDown", "MoveHandAhead", "DropObject"):
            play(name)
        while game.stage[0] == Stage.OH:
            play("ReadyForSeeker")
        play("RotateLeft")
        play("ClaimVisible")
        play("RotateRight")
        play("ClaimVisible")
    assert done and done[0].found
    return done[0]


@pytest.fixture(scope="module")
def episode(record) -> Episode:
    return replay_episode(record)


@pytest.fixture(scope="module")
def page(episode, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("episode") / "new" / "index.html"
    write_episode_page(episode, path)
    assert [file.name for file in path.parent.iterdir()] == ["index.html"]
    return path.read_text()


def frames(page: str) -> list[dict]:
    return json.loads(re.search(r"const frames = (.*);\n", page)[1])


def test_the_page_shows_every_stage_and_needs_no_other_file(page):
    ids = re.findall(r'<h3 id="(\w+)">', page)
    assert ids == [stage.name for stage in Stage]
    boards = page.split("<h3 ")[1:]
    assert all(board.count("data:image/webp") >= 1 for board in boards)
    assert boards[Stage.OM].count("<figure>") >= 3 and "<b>Drops the bread</b>" in boards[Stage.OM]
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
        assert Image.open(io.BytesIO(base64.b64decode(frame["image"]))).size == (SIZE, SIZE)
        assert all(0 < share < 100 for share in frame["player"])
    assert shown[0]["object"] is None and shown[-1]["object"] is not None


def test_captions_are_words_and_plans_have_legends(page, record):
    shown, captions = frames(page), re.findall(r"<figcaption><b>(.*?)</b>", page)
    by_action = {frame["action"]: frame["words"] for frame in shown if not frame["failed"]}
    assert by_action["MoveAhead"] == "Steps ahead" and by_action["MoveHandDown"] == "Moves the bread down"
    assert by_action["PlaceAt|0,1,1"] == "Takes the bread to put it on top of something"
    assert [frame["words"] for frame in shown[-4:]] == [
        "Turns left", "Claims the bread, wrongly", "Turns right", "Claims the bread, rightly",
    ]  # fmt: skip
    assert "|" not in "".join([*captions, *(frame["words"] for frame in shown)])
    assert page.count('<p class="keys">') == 2 and ">bread</span>" in page


def test_every_action_has_words():
    words = [action_words(name, success, "Cup") for name in (*NAMES, "PS 1 2 3 1", "") for success in (True, False)]
    assert not [each for each in words if re.search(r"[|{}]|[a-z][A-Z]", each)]
    assert action_words("RotateHand|-X", False, "Cup") == "Cannot turn the cup"
    assert count_things(["Drawer", "Fridge", "Drawer", "Box", "Box", "Box"]) == "3 boxes, 2 drawers, a fridge"


def test_a_step_that_opens_something_names_it(episode):
    drawer = next(n for n, each in enumerate(episode.compiled.openables)
                  if episode.compiled.room.things[each.thing].type == "Drawer")  # fmt: skip
    step = replace(episode.steps[0], action="OpenAt|5,7", opened=(drawer,))
    assert caption(episode, step) == "Opens the drawer"
    assert caption(episode, replace(step, opened=(drawer, drawer))) == "Opens the drawer and the drawer"


def test_the_page_opens_on_something_worth_seeing(episode, page):
    """On the most detailed frame, of those in which something was opened if there are any: none here."""
    first = int(re.search(r'id="scrubber" [^>]*value="(\d+)"', page)[1])
    edges = [float(np.abs(np.diff(step.picture.astype(float), axis=1)).mean()) for step in episode.steps]
    assert first == int(np.argmax(edges))
    walls = key_steps(episode.steps, 5)
    assert len(walls) == 5 and walls[-1] is episode.steps[-1] and walls == sorted(walls, key=lambda step: step.number)


def test_a_long_game_is_thinned_out(episode, record, tmp_path, monkeypatch):
    monkeypatch.setattr(episode_page, "MAX_FRAMES", 40)
    write_episode_page(episode, tmp_path / "index.html")
    page = (tmp_path / "index.html").read_text()
    steps = [frame["step"] for frame in frames(page)]
    assert len(steps) == 40 and steps == sorted(set(steps)) and steps[-1] == len(record.actions)
    assert {frame["stage"] for frame in frames(page)} == {title for title, _, _ in STAGES.values()}


def test_an_episode_has_the_steps_of_its_record(record, episode):
    assert [step.action for step in episode.steps] == record.actions
    spot = episode.steps_in(Stage.PS)[0].agent_pose
    assert spot[:2] == pytest.approx(record.start[:2]), "the hider chose to go back"
    drop = episode.steps_in(Stage.OM)[-1]
    assert drop.action == "DropObject" and drop.object_pose[2] < episode.steps_in(Stage.OM)[0].object_pose[2]
    assert episode.steps[-1].object_pose.tolist() == record.pose


def test_eventful_steps_are_kept(episode):
    steps = episode.steps
    few = select_steps(steps, 20)
    assert len(few) == 20 and few[-1] is steps[-1]
    assert {"PlaceAt|0,1,1", "DropObject", "ClaimVisible"} <= {step.action for step in few}
    assert select_steps(steps[:5], 20) == steps[:5]


def test_a_changed_record_is_refused(record):
    flipped = replace(record, success=[not record.success[0], *record.success[1:]])
    moved = replace(record, pose=[record.pose[0] + 1e-9, *record.pose[1:]])
    for changed in (flipped, moved):
        with pytest.raises(RecordError):
            replay_episode(changed)


def test_a_replay_reports_the_first_difference(record):
    lines = list(replay_lines(record))
    assert len(lines) == len(record.actions) and "ClaimVisible" in lines[-1] and "succeeded" in lines[-1]
    places = [list(place) for place in record.places]
    places[1][0] += 1
    with pytest.raises(RecordError, match=f"step 2 of {len(lines)}, RotateRight in EM: it led to"):
        list(replay_lines(replace(record, places=places)))
    with pytest.raises(RecordError, match=r"step 1 of .*: it opened -1, recorded was 3"):
        list(replay_lines(replace(record, opened=[3, *record.opened[1:]])))
    with pytest.raises(RecordError, match="another hash"):
        list(replay_lines(replace(record, hash="0" * 64)))


def test_the_metrics_of_the_game_are_on_the_page(page):
    rows = dict(re.findall(r'<tr><th>(.*?)</th><td class="number">(.*?)</td>', page))
    assert rows["Found"] == "yes" and rows["Steps"] == "4" and rows["False claims"] == "1"
    assert 0 < float(rows["Coverage"].removesuffix(" %")) < 5, "two positions of many"


def test_a_search_alone_has_a_page(record, tmp_path):
    """The page shows only the stages that the game has; here the seeker claims at once."""
    spec = EpisodeSpec.from_dict({**record.spec.to_dict(), "first": "S", "last": "S", **record.hidden})
    with World([record.scene], size=SIZE) as world:
        game = CacheGame(world, lambda *_: spec)
        recorder = Recorder(game, {"hider": "easy", "seeker": "hand"})
        (search,) = recorder.note(game.step(np.array([action_index("ClaimVisible")])))
    write_episode_page(replay_episode(search), tmp_path / "index.html", "game.mp4")
    page = (tmp_path / "index.html").read_text()
    assert re.findall(r'<h3 id="(\w+)">', page) == ["S"]
    assert "a bread was hidden (easy), the seeker (hand) found it" in page and "The seeker&#39;s path" in page
    assert "In the hand" not in page and "The hider&#39;s path" not in page
    assert '<a href="game.mp4">' in page


def test_the_video_has_the_whole_game(episode, tmp_path):
    write_video(episode, tmp_path / "game.mp4")
    with av.open(tmp_path / "game.mp4") as video:
        (stream,) = video.streams.video
        frames = [frame.to_ndarray(format="rgb24") for frame in video.decode(stream)]
        assert stream.codec_context.name == "h264" and stream.average_rate == FRAME_RATE
    assert len(frames) == len(episode.steps) + FRAME_RATE * HOLD_SECONDS - 1
    assert all(frame.shape == (FRAME_SIZE + CAPTION_HEIGHT, FRAME_SIZE, 3) for frame in frames)
    # None is missing before the fourth from the end, and none is shown twice: its picture is that step's.
    seen = Image.fromarray(frames[len(episode.steps) - 4][:FRAME_SIZE]).resize((SIZE, SIZE))
    gaps = [np.abs(np.asarray(seen, float) - step.picture).mean() for step in episode.steps]
    assert gaps[-4] == min(gaps) < 8
