"""The page of placements."""

from scrubjay.game.actions import action_index
from scrubjay.placements.placements import Placement, Placements
from scrubjay.sim.build import build_room
from scrubjay.sim.pose import AgentPose
from scrubjay.viz.placements import write_placements_page


def test_a_page_shows_each_modality(tmp_path):
    x, y = build_room("foyer-1").floor.reachable().positions[0].tolist()
    here = AgentPose(x, y, 0.0, True)
    one = Placement(here, here, (2, 3, 4), (), (x, y + 1, 0.1, 1.0, 0.0, 0.0, 0.0), (action_index("DropObject"),))
    write_placements_page([Placements("foyer-1", "Cup", 1, (one,))], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "1 placements in 1 files" in text and "row 4, column 5, 1 actions" in text
    assert [f"Cup in foyer-1, {name}" in text for name in ("on top", "contained in", "behind")] == [True] * 3
    assert text.count("<img") == 1
