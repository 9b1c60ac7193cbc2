"""A person's game: hiding in attempts, seeking without limits, pointing; its steps lead to the same state again."""

import numpy as np
import pytest
from helpers import drawer_chest, hut
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import replay
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.web import pointing
from scrubjay.web.seen_map import FLOOR, THING, SeenMap, points
from scrubjay.web.trial import ALLOWED, HIDE, POINT_OPEN, POINT_PLACE, SEEK, NotAllowedError, Trial

SIZE = 112
START = AgentPose(0.0, 0.0, 0.0, True)
AT_DRAWER = AgentPose(0.0, 0.75, 0.0, True)
HIDING = EpisodeSpec("Tomato", START, Stage.EM, Stage.OH, anywhere=True)
ON_FLOOR = (0.0, 1.0, 0.065, 1.0, 0.0, 0.0, 0.0)
SEEKING = EpisodeSpec("Bread", START, Stage.S, Stage.S, pose=ON_FLOOR)


@pytest.fixture(scope="module")
def room():
    return compile_room(hut(*drawer_chest()))


@pytest.fixture(scope="module")
def world(room):
    with World([room], size=SIZE) as world:
        yield world


def done(trial: Trial, *names: str) -> list[str]:
    """Does what a person can do, and returns the steps it came to."""
    taken = []
    for name in names:
        for action in trial.steps_for(name):
            trial.step(action)
            taken.append(action)
    return taken


def seen_share(trial: Trial, thing: str) -> tuple[float, float]:
    """A point of the picture, in shares, in the middle of what is seen of a thing."""
    world, ids = trial.game.world, trial.game.look().ids[0].numpy()
    rows, columns = np.nonzero(ids == world.rooms[0].things.index(thing))
    middle = np.hypot(rows - np.median(rows), columns - np.median(columns)).argmin()
    return (columns[middle] + 0.5) / SIZE, (rows[middle] + 0.5) / SIZE


def test_a_person_hides_in_a_drawer_and_closes_it(world, room):
    trial = Trial(world, HIDING, HIDE, {"hider": "person"})
    assert trial.phase == "walk"
    done(trial, "MoveAhead", "MoveAhead")
    action = pointing.open_action_at(trial, *seen_share(trial, "Drawer_0"))
    assert trial.step(action) and trial.state.open[0].tolist() == [True, False]
    done(trial, "HideHere")
    assert trial.phase == "hold" and trial.state.held[0]
    depth, ids = trial.game.look().depth[0].numpy(), trial.game.look().ids[0].numpy()
    inside = points(trial.state, depth)
    floor = (ids == room.things.index("Drawer_0")) & (inside[..., 2] < 0.68) & (inside[..., 2] > 0.6)
    rows, columns = np.nonzero(floor)
    middle = len(rows) // 2
    pointing.move_hand_to(trial, (columns[middle] + 0.5) / SIZE, (rows[middle] + 0.5) / SIZE, trial.step)
    assert trial.phase == "hand"
    done(trial, "DropObject")
    assert trial.phase == "placed"
    assert room.things[world.contained()[0]] == "Drawer_0"
    done(trial, "CloseObjects")
    assert trial.success and not trial.state.open[0].any()
    done(trial, "ReadyForSeeker")
    assert trial.phase == "done" and trial.record.hidden["open"] == []
    with World([room], size=SIZE) as again:
        assert sum(1 for _ in replay(trial.record, again)) == len(trial.record.actions)
    assert trial.record.pose == trial.record.hidden["pose"]


def test_picking_up_again_begins_an_attempt_where_the_person_is(world):
    trial = Trial(world, HIDING, HIDE, {})
    done(trial, "MoveAhead", "RotateRight", "HideHere", "MoveHandAhead", "DropObject")
    assert trial.phase == "placed" and trial.steps == 5
    here = trial.place
    done(trial, "PickUp")
    assert trial.phase == "hold" and trial.place == here and trial.state.held[0]
    done(trial, "Walk")
    assert trial.phase == "walk" and trial.place == here and trial.state.goal[0] == -1
    done(trial, "RotateLeft", "HideHere", "DropObject", "ReadyForSeeker")
    assert trial.record.spec.place == here
    assert [name for name in trial.record.actions if name] == [
        "RotateLeft", "PS 0 0 0 1", "PlaceAt|0,4,4", "DropObject", "ReadyForSeeker"
    ]  # fmt: skip


def test_what_was_opened_stays_open_in_the_next_attempt(world):
    trial = Trial(world, HIDING, HIDE, {})
    done(trial, "MoveAhead", "MoveAhead")
    trial.step(pointing.open_action_at(trial, *seen_share(trial, "Drawer_0")))
    done(trial, "HideHere", "Walk")
    assert trial.state.open[0].tolist() == [True, False]


def test_a_seeker_claims_and_the_record_replays(world, room):
    trial = Trial(world, SEEKING, SEEK, {"seeker": "person"})
    assert trial.phase == "seek"
    done(trial, "RotateLeft", "ClaimVisible")
    assert trial.success is False
    done(trial, "RotateRight", "ClaimVisible")
    assert trial.phase == "done" and trial.record.found and trial.steps == 4
    assert trial.place == START
    with World([room], size=SIZE) as again:
        assert sum(1 for _ in replay(trial.record, again)) == 4


def test_giving_up_ends_a_search_as_a_record_that_replays(world, room):
    trial = Trial(world, SEEKING, SEEK, {})
    done(trial, "RotateLeft", "GiveUp")
    assert trial.phase == "done" and not trial.record.found and trial.steps == 1
    with World([room], size=SIZE) as again:
        assert sum(1 for _ in replay(trial.record, again)) == 2


def test_trials_share_a_world_and_leave_each_other_alone(world):
    first, second = (Trial(world, SEEKING, SEEK, {}) for _ in range(2))
    first.bind(world)
    done(first, "MoveAhead")
    second.bind(world)
    done(second, "RotateLeft", "Crouch")
    first.bind(world)
    done(first, "MoveRight")
    assert first.place == AgentPose(0.25, 0.25, 0.0, True) and second.place == AgentPose(0.0, 0.0, 270.0, False)


def test_what_cannot_be_done_is_said_and_changes_nothing(world):
    trial = Trial(world, SEEKING, SEEK, {})
    for name in ("HideHere", "DropObject", "Fly", "", "point:open", "PS 0 0 0 0", "OpenAt|1,1"):
        with pytest.raises(NotAllowedError, match="cannot be done now"):
            trial.steps_for(name)
    with pytest.raises(NotAllowedError, match="Nothing opens"):
        pointing.open_action_at(trial, 0.5, 0.99)
    hiding = Trial(world, HIDING, HIDE, {})
    done(hiding, "RotateRight", "RotateRight", "HideHere")
    with pytest.raises(NotAllowedError, match="too far"):
        pointing.hand_target(hiding, 0.5, 0.0)
    assert trial.steps == 0


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_same_steps_lead_to_the_same_state(world, data):
    """Whatever a person does, a trial is rebuilt from its steps."""
    trial = Trial(world, HIDING, HIDE, {})
    taken = []

    def take(action: str) -> bool:
        taken.append(action)
        return trial.step(action)

    for _ in range(data.draw(st.integers(1, 10))):
        names = ALLOWED[trial.phase]
        if not names:
            break
        name = data.draw(st.sampled_from(names))
        x, y = data.draw(st.floats(0, 1)), data.draw(st.floats(0, 1))
        try:
            if name == POINT_OPEN:
                take(pointing.open_action_at(trial, x, y))
            elif name == POINT_PLACE:
                pointing.move_hand_to(trial, x, y, take)
            else:
                for action in trial.steps_for(name):
                    take(action)
        except NotAllowedError:
            continue
    again = Trial(world, HIDING, HIDE, {})
    for action in taken:
        again.step(action)
    assert (again.phase, again.place, again.steps) == (trial.phase, trial.place, trial.steps)
    assert np.array_equal(again.state.pose, trial.state.pose) and np.array_equal(again.state.open, trial.state.open)
    assert again.record == trial.record


def test_the_map_shows_floor_and_things_where_they_are(world):
    trial = Trial(world, EpisodeSpec("Tomato", START, Stage.S, Stage.S, pose=(1.8, -1.8, 0.05, 1, 0, 0, 0)), SEEK, {})
    seen = SeenMap(world.rooms[0].room.bounds)
    seen.add(trial.state, trial.game.look().depth[0].numpy())
    # The room is 4 m square, so (x, y) is at row (2 - y) / 0.1 and column (x + 2) / 0.1.
    assert seen.pixels[10, 20] == FLOOR
    assert (seen.pixels[3:6, 18:22] == THING).any()
    assert not seen.pixels[25:].any()
    first = seen.png()
    assert first.startswith(b"\x89PNG") and not seen.changed
    seen.add(trial.state, trial.game.look().depth[0].numpy())
    assert not seen.changed
