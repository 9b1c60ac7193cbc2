"""Records: they replay bit-exactly, and changed or invalid ones are refused."""

import json

import numpy as np
import pytest

from scrubjay.errors import RecordError
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.record import Recorder, load_records, replay, save_records
from scrubjay.rooms.generate import make_room
from scrubjay.sim.compile import compile_room
from scrubjay.sim.world import World

SIZE = 56


@pytest.fixture(scope="module")
def kitchen():
    return compile_room(make_room("FloorPlan9"))


@pytest.fixture(scope="module")
def records(kitchen):
    """Two short random games on rotated grids, in a batch."""
    rng = np.random.default_rng(4)
    with World([kitchen], copies=2, size=SIZE) as world:
        game = CacheGame(world, RandomEpisodes(seed=2, turned=True))
        recorder, done = Recorder(game), []
        while len(done) < 2:
            action = np.array([rng.choice(np.flatnonzero(row)) if row.any() else -1 for row in game.allowed])
            place = np.stack([rng.integers(-3, 4, 2), rng.integers(-3, 4, 2), rng.integers(4, size=2), [1, 0]], 1)
            done += recorder.note(game.step(action, place), place)
    return done


def test_a_record_replays_bit_exactly(records, kitchen):
    for record in records:
        with World([kitchen], size=SIZE) as world:
            stages = [int(result.stage[0]) for _, result in replay(record, world)]
        assert len(stages) == len(record.actions)
        assert [stage for stage in stages if stage == Stage.EM] == [Stage.EM] * 200
        assert stages == record.stages()


def test_records_round_trip_through_a_file(records, tmp_path):
    save_records(records, tmp_path / "games.jsonl")
    assert load_records(tmp_path / "games.jsonl") == records


def test_records_of_version_2_are_read(records, tmp_path):
    """Version 2 called the spec a deal."""
    old = [record.to_dict() | {"version": 2} for record in records]
    for data in old:
        data["deal"] = data.pop("spec")
    (tmp_path / "games.jsonl").write_text("".join(json.dumps(data) + "\n" for data in old))
    assert load_records(tmp_path / "games.jsonl") == records


def test_a_changed_record_does_not_replay(records, kitchen, tmp_path):
    save_records(records[:1], tmp_path / "games.jsonl")
    (changed,) = load_records(tmp_path / "games.jsonl")
    changed.success[7] = not changed.success[7]
    with World([kitchen], size=SIZE) as world, pytest.raises(RecordError, match="step 7"):
        list(replay(changed, world))
    (changed,) = load_records(tmp_path / "games.jsonl")
    changed.pose[0] += 1e-9
    with World([kitchen], size=SIZE) as world, pytest.raises(RecordError, match="ends differently"):
        list(replay(changed, world))
    (changed,) = load_records(tmp_path / "games.jsonl")
    changed.hash = "0" * 64
    with World([kitchen], size=SIZE) as world, pytest.raises(RecordError, match="another hash"):
        list(replay(changed, world))
    with World([kitchen], size=28) as world, pytest.raises(RecordError, match="at 56 pixels"):
        list(replay(changed, world))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data | {"version": 9}, "not a record of version 2 or 3"),
        (lambda data: data | {"extra": 1}, "extra: unexpected keyword argument"),
        (lambda data: {name: data[name] for name in data if name != "size"}, "size: field required"),
        (lambda data: data | {"size": "large"}, "size: input should be a valid integer"),
        (lambda data: data | {"limits": [1, 2]}, "limits: list should have at least 5 items"),
        (lambda data: data | {"success": [1] * len(data["success"])}, "success.0: input should be a valid boolean"),
        (lambda data: data | {"spec": data["spec"] | {"goal": "Sofa"}}, "spec: unknown goal object 'Sofa'"),
        (lambda data: data | {"spec": data["spec"] | {"first": "X"}}, "spec.first: stages are EM"),
        (lambda data: data | {"spec": data["spec"] | {"start": [0, 0]}}, "spec.start.2: field required"),
        (lambda data: data | {"success": []}, "lists of the same length"),
        (lambda data: data | {"actions": ["Fly"] * len(data["actions"])}, "unknown action 'Fly'"),
    ],
)
def test_invalid_records_are_refused(records, tmp_path, change, message):
    path = tmp_path / "games.jsonl"
    save_records(records[:1], path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))) + "\n")
    with pytest.raises(RecordError, match=message):
        load_records(path)
    path.write_text("no JSON\n")
    with pytest.raises(RecordError, match="line 1"):
        load_records(path)
