"""The storyboard of a game: one picture with frames of both players and the floor plan."""

import numpy as np
import pytest

from scrubjay.api import play
from scrubjay.game.actions import Stage
from scrubjay.viz.captions import with_article
from scrubjay.viz.episode import Episode, replay_episode
from scrubjay.viz.floorplan import FloorPlan
from scrubjay.viz.palette import PAPER, rgb
from scrubjay.viz.storyboard import WIDTH, draw_storyboard, hider_panels, seeker_panels


@pytest.fixture(scope="module")
def episode() -> Episode:
    return replay_episode(play("heuristic", "oracle", "FloorPlan401", "Bread", size=56))


def test_panels_follow_the_game(episode):
    hiding, seeking = hider_panels(episode), seeker_panels(episode)
    for panels in (hiding, seeking):
        numbers = [step.number for step, _ in panels]
        assert 2 <= len(panels) <= 4 and numbers == sorted(numbers)
    assert hiding[0][0].stage == Stage.EM and {step.stage for step, _ in seeking} == {Stage.S}
    assert seeking[-1][0] is episode.steps[-1]


def test_the_storyboard_is_one_picture_of_a_fixed_width(episode):
    picture = draw_storyboard(episode)
    assert picture.dtype == np.uint8 and picture.shape[1:] == (WIDTH, 3)
    assert (picture[0, 0] == rgb(PAPER)).all() and (picture[:, 900:] != rgb(PAPER)).any(), "the plan is on the right"
    assert (draw_storyboard(episode) == picture).all(), "the same game draws the same picture"


def test_things_have_their_article():
    assert with_article("Drawer_5") == "a drawer" and with_article("GarbageCan_1") == "a garbage can"
    assert with_article("Oven_2") == "an oven"


def test_numbers_on_a_plan_do_not_overlap(episode, monkeypatch):
    """Stacked drawers have one position: each number gets a box of its own."""
    boxes = []
    place = FloorPlan._free_position

    def recording(self, x, y, width, height, taken):
        boxes[:] = taken
        return place(self, x, y, width, height, taken)

    monkeypatch.setattr(FloorPlan, "_free_position", recording)
    FloorPlan(episode.compiled, episode.grid, 500)
    assert len(boxes) == len(episode.compiled.openables) - 1
    for i, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:i]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
