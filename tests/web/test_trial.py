"""A person's game: hiding in attempts, seeking without limits, pointing; its steps reproduce its state."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import hut
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from web_helpers import ROOM, SIZE, START, center_of, take

from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import replay as replay_record
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.web import pointing
from scrubjay.web.seen_map import FLOOR, THING, SeenMap, backproject
from scrubjay.web.trial import ALLOWED, HIDE, POINT_OPEN, POINT_PLACE, SEEK, NotAllowedError, Trial

AT_DRAWER = AgentPose(0.0, 0.75, 0.0, True)
HIDING = EpisodeSpec("Tomato", START, Stage.EM, Stage.OH, anywhere=True)
ON_FLOOR = (0.0, 1.0, 0.065, 1.0, 0.0, 0.0, 0.0)
SEEKING = EpisodeSpec("Bread", START, Stage.S, Stage.S, pose=ON_FLOOR)


def thing_at(trial: Trial, thing: str) -> tuple[float, float]:
    """The image fraction (x, y) of a visible thing."""
    return center_of(trial.game.look().ids[0].numpy() == trial.game.world.rooms[0].things.index(thing))


def test_a_person_hides_in_a_drawer_and_closes_it(world):
    trial = Trial(world, HIDING, HIDE, {"hider": "person"})
    assert trial.phase == "walk"
    take(trial, "MoveAhead", "MoveAhead")
    action = pointing.open_action_at(trial, *thing_at(trial, "Drawer_0"))
    assert trial.step(action) and trial.state.open[0].tolist() == [True, False]
    take(trial, "HideHere")
    assert trial.phase == "hold" and trial.state.held[0]
    depth, ids = trial.game.look().depth[0].numpy(), trial.game.look().ids[0].numpy()
    height = backproject(trial.state, depth)[..., 2]
    drawer_floor = (ids == ROOM.things.index("Drawer_0")) & (height < 0.68) & (height > 0.6)
    pointing.move_hand_to(trial, *center_of(drawer_floor), trial.step)
    assert trial.phase == "hand"
    take(trial, "DropObject")
    assert trial.phase == "placed"
    assert ROOM.things[world.contained()[0]] == "Drawer_0"
    take(trial, "CloseObjects")
    assert trial.success and not trial.state.open[0].any()
    take(trial, "ReadyForSeeker")
    assert trial.phase == "done" and trial.record.hidden["open"] == []
    with World([ROOM], size=SIZE) as again:
        assert sum(1 for _ in replay_record(trial.record, again)) == len(trial.record.actions)
    assert trial.record.pose == trial.record.hidden["pose"]


def test_picking_up_again_starts_an_attempt_at_the_current_pose(world):
    trial = Trial(world, HIDING, HIDE, {})
    take(trial, "MoveAhead", "RotateRight", "HideHere", "MoveHandAhead", "DropObject")
    assert trial.phase == "placed" and trial.steps == 5
    here = trial.agent_pose
    take(trial, "PickUp")
    assert trial.phase == "hold" and trial.agent_pose == here and trial.state.held[0]
    take(trial, "Walk")
    assert trial.phase == "walk" and trial.agent_pose == here and trial.state.goal[0] == -1
    take(trial, "RotateLeft", "HideHere", "DropObject", "ReadyForSeeker")
    assert trial.record.spec.place == here
    assert [name for name in trial.record.actions if name] == [
        "RotateLeft", "PS 0 0 0 1", "PlaceAt|0,4,4", "DropObject", "ReadyForSeeker"
    ]  # fmt: skip


def test_what_was_opened_stays_open_in_the_next_attempt(world):
    trial = Trial(world, HIDING, HIDE, {})
    take(trial, "MoveAhead", "MoveAhead")
    trial.step(pointing.open_action_at(trial, *thing_at(trial, "Drawer_0")))
    take(trial, "HideHere", "Walk")
    assert trial.state.open[0].tolist() == [True, False]


def test_a_seeker_claims_and_the_record_replays(world):
    trial = Trial(world, SEEKING, SEEK, {"seeker": "person"})
    assert trial.phase == "seek"
    take(trial, "RotateLeft", "ClaimVisible")
    assert trial.success is False
    take(trial, "RotateRight", "ClaimVisible")
    assert trial.phase == "done" and trial.record.found and trial.steps == 4
    assert trial.agent_pose == START
    with World([ROOM], size=SIZE) as again:
        assert sum(1 for _ in replay_record(trial.record, again)) == 4


def test_giving_up_ends_a_search_as_a_record_that_replays(world):
    trial = Trial(world, SEEKING, SEEK, {})
    take(trial, "RotateLeft", "GiveUp")
    assert trial.phase == "done" and not trial.record.found and trial.steps == 1
    with World([ROOM], size=SIZE) as again:
        assert sum(1 for _ in replay_record(trial.record, again)) == 2


def test_trials_share_a_world_without_affecting_each_other(world):
    first, second = (Trial(world, SEEKING, SEEK, {}) for _ in range(2))
    first.bind(world)
    take(first, "MoveAhead")
    second.bind(world)
    take(second, "RotateLeft", "Crouch")
    first.bind(world)
    take(first, "MoveRight")
    assert first.agent_pose == AgentPose(0.25, 0.25, 0.0, True) and second.agent_pose == AgentPose(
        0.0, 0.0, 270.0, False
    )


def test_unavailable_actions_are_refused_and_change_nothing(world):
    trial = Trial(world, SEEKING, SEEK, {})
    for name in ("HideHere", "DropObject", "Fly", "", "point:open", "PS 0 0 0 0", "OpenAt|1,1"):
        with pytest.raises(NotAllowedError, match="is not possible now"):
            trial.steps_for(name)
    with pytest.raises(NotAllowedError, match="Nothing opens"):
        pointing.open_action_at(trial, 0.5, 0.99)
    hiding = Trial(world, HIDING, HIDE, {})
    take(hiding, "RotateRight", "RotateRight", "HideHere")
    with pytest.raises(NotAllowedError, match="too far"):
        pointing.hand_target(hiding, 0.5, 0.0)
    assert trial.steps == 0


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_same_steps_lead_to_the_same_state(world, data):
    """Whatever a person does, a trial can be restored from its steps."""
    trial = Trial(world, HIDING, HIDE, {})
    taken = []

    def step(action: str) -> bool:
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
                step(pointing.open_action_at(trial, x, y))
            elif name == POINT_PLACE:
                pointing.move_hand_to(trial, x, y, step)
            else:
                for action in trial.steps_for(name):
                    step(action)
        except NotAllowedError:
            continue
    again = Trial(world, HIDING, HIDE, {})
    for action in taken:
        again.step(action)
    assert (again.phase, again.agent_pose, again.steps) == (trial.phase, trial.agent_pose, trial.steps)
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


@pytest.mark.parametrize("start", [START, AT_DRAWER, AgentPose(0.6, 0.9, 0.0, False), AgentPose(0.0, -1.0, 0.0, True)])
def test_what_is_said_to_open_opens_by_pointing_at_it_and_nothing_else_does(world, start):
    for number, openable in enumerate(
        pointing.openables_in_view(Trial(world, replace(SEEKING, start=start), SEEK, {}))[1]
    ):
        trial = Trial(world, replace(SEEKING, start=start), SEEK, {})
        labels, _ = pointing.openables_in_view(trial)
        row, column = pointing.pixel(len(labels), openable.x, openable.y)
        assert labels[row, column] == number + 1
        try:
            opened = trial.step(pointing.open_action_at(trial, openable.x, openable.y))
        except NotAllowedError:
            opened = False
        assert opened == openable.opens


def test_labels_mark_the_pixels_of_openables_and_an_open_one_no_longer_opens(world):
    trial = Trial(world, replace(SEEKING, start=AT_DRAWER), SEEK, {})
    labels, openables = pointing.openables_in_view(trial)
    assert [openable.name for openable in openables] == ["drawer", "cabinet"]
    ids = trial.game.look().ids[0].numpy()
    for number, thing in enumerate(("Drawer_0", "Cabinet_0"), 1):
        assert ((labels == number) == (ids == ROOM.things.index(thing))).all()
    trial.step(pointing.open_action_at(trial, openables[0].x, openables[0].y))
    assert [openable.opens for openable in pointing.openables_in_view(trial)[1] if openable.name == "drawer"] == [False]


def test_where_nothing_opens_no_pixel_is_labelled():
    with World([compile_room(hut())], size=SIZE) as bare:
        labels, openables = pointing.openables_in_view(Trial(bare, SEEKING, SEEK, {}))
    assert not labels.any() and openables == []
