"""The placements and spots in `data/` fit today's rooms."""

import tarfile
from pathlib import Path

from scrubjay.placements import placements
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS
from scrubjay.spots import spots

ARCHIVE = Path(__file__).parents[2] / "data" / "skills.tar.gz"


def test_shipped_placements_and_spots_are_those_of_todays_rooms(tmp_path):
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    for files, name in ((placements.FILES, "placements"), (spots.FILES, "spots")):
        contents = [files.load(path) for path in sorted((tmp_path / "skills" / name).glob("*.json"))]
        scenes = {content.scene for content in contents}
        assert len(contents) == len(scenes) * len(GOALS), "all objects of each room"
        rooms = {scene: make_room(scene) for scene in scenes}
        for content in contents:
            files.check_room(content, rooms[content.scene])
