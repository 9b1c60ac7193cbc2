"""Kinds of hiding places, and distances, of records written by hand."""

import pytest

from scrubjay.evaluation.hiding_places import kind_of, meters_from_start, path_of_stage
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record
from scrubjay.sim.pose import AgentPose

START = AgentPose(1.0, 1.0, 0.0, True)


def hiding(actions: list[str], hits: list[list[bool]], success: list[bool] | None = None) -> Record:
    """A game that begins with OH; places count the steps."""
    record = Record("FloorPlan1", EpisodeSpec("Cup", START, Stage.OH, Stage.OH), 224, "OpenGL", [200, 1, 15, 50, 500])
    record.actions, record.hits = actions, hits
    record.success = success or [True] * len(actions)
    record.places = [[number, 0, 0, 1] for number in range(len(actions))]
    record.opened = [-1] * len(actions)
    record.hidden = {"pose": [4.0, 5.0, 0.5, 1.0, 0.0, 0.0, 0.0], "open": []}
    return record


@pytest.mark.parametrize(
    ("actions", "hits", "kind"),
    [
        (["PlaceAt|1,4,4", "DropObject", "ReadyForSeeker"], [[True, True]], "contained in"),
        (["PlaceAt|0,1,1", "DropObject", "PlaceAt|2,3,5", "MoveHandAhead", "DropObject"],
         [[False, False], [False, True]], "behind"),
        (["PlaceAt|0,1,1", "DropObject"], [[False, False]], "dropped"),
        (["Crouch", "Stand"], [], "dropped"),
    ],
)  # fmt: skip
def test_the_kind_is_the_modality_of_the_attempt_that_succeeded(actions, hits, kind):
    assert kind_of(hiding(actions, hits)) == kind


def test_a_placeat_after_the_object_was_placed_is_no_attempt():
    record = hiding(
        ["PlaceAt|1,4,4", "DropObject", "PlaceAt|2,1,1", "ReadyForSeeker"], [[True, True]], [True, True, False, True]
    )
    assert record.stages() == [Stage.OH, Stage.OM, Stage.OH, Stage.OH] and kind_of(record) == "contained in"


def test_meters_from_the_start_are_measured_on_the_floor():
    assert meters_from_start(hiding(["Stand"], [])) == pytest.approx(5)


def test_the_path_of_a_stage_has_its_places_alone():
    record = hiding(["PlaceAt|0,1,1", "DropObject", "Crouch"], [[False, False]])
    assert path_of_stage(record, Stage.OM).tolist() == [[1, 0, 0, 1]]
    assert path_of_stage(record, Stage.OH, Stage.OM).shape == (3, 4) and path_of_stage(record, Stage.S).shape == (0, 4)
