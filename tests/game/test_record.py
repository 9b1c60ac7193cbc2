"""Records: they replay bit-exactly, and changed or invalid ones are refused."""

import hashlib
import json
import struct
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from helpers import hut

from scrubjay.errors import RecordError
from scrubjay.game.actions import NOTHING, NUMBERS, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.game.record import Record, Recorder, load_records, read_records, replay, save_records
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import load_room, save_room
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World

SIZE = 56


@pytest.fixture(scope="module")
def kitchen():
    return compile_room(make_room("FloorPlan9"))


@pytest.fixture(scope="module")
def records(kitchen):
    """Two random games on rotated grids, in a batch."""
    rng = np.random.default_rng(4)
    with World([kitchen], copies=2, size=SIZE) as world:
        game = CacheGame(world, RandomEpisodes(seed=2, turned=True))
        recorder, done = Recorder(game), []
        while len(done) < 2:
            action = np.array([rng.choice(np.flatnonzero(row)) if row.any() else -1 for row in game.allowed])
            place = np.stack([rng.integers(-3, 4, 2), rng.integers(-3, 4, 2), rng.integers(4, size=2), [1, 0]], 1)
            done += recorder.note(game.step(action, place), place)
    return done


@pytest.fixture(scope="module")
def short(chest):
    """A game of a few steps, as it is in a file: the hider opens a drawer and drops the object, the seeker gives up."""
    spec = EpisodeSpec("Bread", AgentPose(0.0, 0.25, 0.0, True), anywhere=True)
    with World([chest], size=SIZE) as world:
        game = CacheGame(world, lambda *_: spec, np.array([3, 1, 3, 4, 2]))
        recorder, finished = Recorder(game, {"hider": "possible", "seeker": "bfs"}), []
        names = ["RotateLeft", "RotateRight", "OpenAt|4,4", "", "PlaceAt|0,3,3", "MoveHandAhead", "DropObject"]
        for name in (*names, "ReadyForSeeker", "RotateLeft", "MoveAhead"):
            place = np.zeros((1, 4), int)
            finished += recorder.note(game.step(np.array([NUMBERS.get(name, NOTHING)]), place), place)
    assert finished[0].opened[2] >= 0 and finished[0].hits == [[False, True]] and finished[0].hidden["open"]
    return finished[0].to_dict()


def test_a_record_replays_bit_exactly(records, kitchen):
    for record in records:
        with World([kitchen], size=SIZE) as world:
            stages = [int(result.stage[0]) for _, result in replay(record, world)]
        assert len(stages) == len(record.actions)
        assert [stage for stage in stages if stage == Stage.EM] == [Stage.EM] * 200
        assert stages == record.stages()


def two_records(short: dict) -> list[Record]:
    return [Record.from_dict(short), replace(Record.from_dict(short), players={"hider": "me"})]


def test_records_round_trip_through_a_file(short, tmp_path):
    records = two_records(short)
    save_records(records, tmp_path / "games.jsonl")
    assert load_records(tmp_path / "games.jsonl") == records


def as_version(record: Record, version: int) -> dict:
    """Versions 2 and 3 had no digests, and version 2 called the spec a deal."""
    data = record.to_dict() | {"version": version}
    del data["room"], data["sha256"]
    if version == 2:
        data["deal"] = data.pop("spec")
    return data


@pytest.mark.parametrize("version", [2, 3])
def test_records_of_earlier_versions_are_read_and_replay(short, chest, tmp_path, version):
    path, record = tmp_path / "games.jsonl", Record.from_dict(short)
    path.write_text(json.dumps(as_version(record, version)) + "\n")
    (loaded,) = load_records(path)
    assert replace(loaded, room=chest.room.digest) == record
    save_records([loaded], path)
    for again in (loaded, *load_records(path)):
        with World([chest], size=SIZE) as world:
            list(replay(again, world))


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
        (lambda data: data["hits"][0].__setitem__(1, False), "hits: the replay's manipulations ended with"),
        (lambda data: data["hits"].pop(), "hits: the replay's manipulations ended with"),
        (lambda data: data["hidden"]["pose"].__setitem__(2, 0.5), "hidden: the replay's hider left"),
        (lambda data: data["hidden"]["open"].clear(), "hidden: the replay's hider left"),
        (lambda data: data.__setitem__("hidden", None), "hidden: the replay's hider left"),
        (lambda data: data["players"].__setitem__("seeker", "me"), "other parts of the record were edited"),
        (lambda data: data["places"][3].__setitem__(1, 9), "step 4 of 10, .*: it led to"),
        (lambda data: data["opened"].__setitem__(0, 0), "step 1 of 10, .*: it opened -1, recorded was 0"),
        (lambda data: data.__setitem__("found", not data["found"]), "the replay ends differently"),
        (lambda data: data.__setitem__("room", "0" * 64), "hut is another room now"),
        (lambda data: data["opened"].__setitem__(0, 999), "opened: hut has 2 openables, the record number 999"),
        (lambda data: data["hidden"]["open"].append(999), "hidden.open: hut has 2 openables"),
        (lambda data: data["spec"]["open"].append(999), "spec.open: hut has 2 openables"),
        (lambda data: data["spec"]["start"].__setitem__(0, 99.0), r"spec.start: no body can stand at \(99.00"),
        (lambda data: data["success"].append(True) or data["actions"].append("RotateLeft")
         or data["places"].append([0] * 4) or data["opened"].append(-1), "before the record does"),
        (lambda data: [data[name].pop() for name in ("actions", "success", "places", "opened")], "it goes on"),
    ],
)  # fmt: skip
def test_all_that_a_score_uses_is_compared_with_the_replay(short, chest, change, message):
    with World([chest], size=SIZE) as world:
        list(replay(Record.from_dict(short), world))
        changed = deepcopy(short)
        change(changed)
        with pytest.raises(RecordError, match=message):
            list(replay(Record.from_dict(changed), world))


@pytest.mark.parametrize(("scene", "copies", "size"), [("hut", 2, SIZE), ("hut", 1, 28), ("shed", 1, SIZE)])
def test_a_record_replays_in_a_world_of_its_room_alone_at_its_size(short, chest, scene, copies, size):
    message = "a record of hut at 56 pixels replays in a world of that room alone"
    rooms = [replace(chest.room, scene=scene)]
    with World(rooms, copies, size=size) as world, pytest.raises(RecordError, match=message):
        next(replay(Record.from_dict(short), world))


def test_the_hash_is_of_results_poses_places_and_openings(short, chest):
    """Worked out from the steps of a replay, byte by byte."""
    digest = hashlib.sha256()
    with World([chest], size=SIZE) as world:
        for _, result in replay(Record.from_dict(short), world):
            digest.update(struct.pack("4?", *result.success, *result.hit, *result.placed, *result.ended))
            digest.update(struct.pack("<7d", *result.pose[0]))
            digest.update(struct.pack("<5q", *result.place[0], result.opened[0]))
    assert digest.hexdigest() == short["hash"]


def test_a_rooms_digest_changes_with_every_part_and_not_with_a_file(tmp_path):
    room = make_room("FloorPlan9")
    save_room(room, tmp_path / "room.json")
    assert load_room(tmp_path / "room.json").digest == room.digest == make_room("FloorPlan9").digest
    moved = replace(room.things[-1], position=tuple(np.nextafter(room.things[-1].position, 9).tolist()))
    changes = [replace(room, things=(*room.things[:-1], moved)), replace(room, things=room.things[:-1])]
    changes += [replace(room, height=3.0), replace(room, lamps=room.lamps[::-1]), make_room("FloorPlan8")]
    assert len({room.digest, *(changed.digest for changed in changes)}) == 6
    save_room(hut(), tmp_path / "hut.json")
    assert load_room(tmp_path / "hut.json").digest == hut().digest, "its lengths are whole numbers"


def test_a_file_with_a_cut_off_last_line_keeps_its_good_records(short, tmp_path):
    path, records = tmp_path / "games.jsonl", two_records(short)
    save_records(records, path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.warns(UserWarning, match=r"games.jsonl, line 2: not JSON, perhaps truncated.*the 1 before it"):
        assert load_records(path) == records[:1]
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(RecordError, match="line 2: not JSON"):
        load_records(path)


def test_the_lines_of_a_file_are_read_one_by_one(short, tmp_path):
    path, records = tmp_path / "games.jsonl", two_records(short)
    save_records(records, path)
    first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, b"\x93\xff", b'{"version": 9}', second, b""]))
    numbers, found = zip(*read_records(path), strict=True)
    assert numbers == (1, 2, 3, 4) and (found[0], found[3]) == tuple(records)
    assert all(isinstance(error, RecordError) and f"games.jsonl, line {n}" in str(error) for n, error in
               zip((2, 3), found[1:3], strict=True))  # fmt: skip


def test_a_binary_or_empty_file_is_named(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    for name in ("picture.png", "empty.jsonl"):
        with pytest.raises(RecordError, match=name):
            load_records(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data | {"version": 9}, "not a record of version 2 or 3 or 4"),
        (lambda data: {name: data[name] for name in data if name != "sha256"}, "sha256: field required"),
        (lambda data: data | {"size": "56"}, "size: input should be a valid integer, not '56'"),
        (lambda data: data | {"size": 56.0}, "size: input should be a valid integer, not 56.0"),
        (lambda data: data | {"size": 50}, "size: input should be a multiple of 7, not 50"),
        (lambda data: data | {"limits": "many"}, "limits: input should be a valid list, not 'many'"),
        (lambda data: data | {"limits": [200, 1, 15.0, 50, 500]}, "limits.2: input should be a valid integer"),
        (lambda data: data | {"limits": [200, 1, 15, 50, True]}, "limits.4: input should be a valid integer"),
        (lambda data: data | {"limits": [200, 1, 15, 50, 0]}, "limits.4: input should be greater than or equal to 1"),
        (lambda data: data | {"limits": [200, 2, 15, 50, 500]}, "limits: PS has one step, not 2"),
        (lambda data: data | {"hits": [[1, 0]]}, "hits.0.0: input should be a valid boolean"),
        (lambda data: data | {"hits": [[True]]}, "hits.0: list should have at least 2 items"),
        (lambda data: data | {"found": "yes"}, "found: input should be a valid boolean"),
        (lambda data: data | {"places": [[0, 0, 0]] * len(data["places"])}, "places.0: list should have at least 4"),
        (lambda data: data | {"opened": [-2] * len(data["opened"])}, "opened.0: input should be greater"),
        (lambda data: data | {"hidden": {"pose": [0.0] * 6 + [np.nan], "open": []}}, "hidden.pose.6: .* finite number"),
        (lambda data: data | {"hidden": {"pose": [0.0], "open": []}}, "hidden.pose: list should have at least 7"),
        (lambda data: data | {"actions": ["PS 1 2 3 99999999999999999999"] * len(data["actions"])}, "unknown action"),
        (lambda data: data | {"spec": data["spec"] | {"start": [np.nan, 0, 0, True]}}, "spec.start: .* finite"),
        (lambda data: data | {"spec": data["spec"] | {"open": [-1]}}, "spec.open.0: input should be greater"),
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
def test_invalid_records_are_refused(short, tmp_path, change, message):
    path = tmp_path / "games.jsonl"
    path.write_text(json.dumps(change(short)) + "\n")
    with pytest.raises(RecordError, match=message):
        load_records(path)
    path.write_text("no JSON\n")
    with pytest.raises(RecordError, match="line 1"):
        load_records(path)
