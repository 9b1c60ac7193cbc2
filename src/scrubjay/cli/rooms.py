"""Commands about rooms: rooms, room."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import tyro
from rich.progress import track

from scrubjay.cli.arguments import Positive
from scrubjay.cli.terminal import Renderer, err, print_json
from scrubjay.errors import RoomError


def rooms(
    scenes: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    json: bool = False,
    table: bool = False,
    out: Path = Path("out/rooms.png"),
    size: Positive = 192,
    columns: Positive = 10,
    renderer: Renderer = "auto",
) -> None:
    """Draws a contact sheet of the 150 rooms, or of those named.

    Args:
        scenes: Scenes such as FloorPlan12, kitchen-81723 or iTHOR:FloorPlan28, or groups such as train or iTHOR; by
            default all 150.
        json: Print what each room holds, one JSON object per line, instead of drawing.
        table: Print it as a Markdown table.
        out: Output file.
        size: Size of a room's picture in pixels.
        columns: Rooms per row.
        renderer: The renderer.
    """
    from scrubjay.rooms.generate import SCENES, check_scene, expand_scenes
    from scrubjay.sim.build import build_room
    from scrubjay.viz.picture import tile_pictures, write_picture
    from scrubjay.viz.rooms import count_rooms, draw_tile, facts_table

    chosen = expand_scenes(scenes) or SCENES
    for scene in chosen:
        check_scene(scene)
    if json:
        for _, facts in count_rooms(map(build_room, chosen)):
            print_json(asdict(facts))
        return
    if table:
        for line in facts_table(facts for _, facts in count_rooms(map(build_room, chosen))):
            print(line, flush=True)
        return
    tiles = [draw_tile(build_room(scene), size, renderer) for scene in track(chosen, "Rooms", console=err)]
    write_picture(out, tile_pictures(tiles, min(columns, len(tiles))))
    print(out)


def room(
    scene: Annotated[str, tyro.conf.Positional],
    /,
    out: Path | None = None,
    save: Path | None = None,
    renderer: Renderer = "auto",
) -> None:
    """Writes a page about one room: floor plan, views, depth, ids, normals, openables closed and open.

    Args:
        scene: FloorPlan12, a type and a seed such as kitchen-81723, iTHOR:FloorPlan28 for one of AI2-THOR's rooms,
            molmospaces:PATH for one of MolmoSpaces', or a room file ending in .json.
        out: Output file; by default out/SCENE.html.
        save: Also write the room as JSON, to edit and load again.
        renderer: The renderer.
    """
    from scrubjay.rooms.molmospaces import PREFIX
    from scrubjay.rooms.room import load_room, save_room
    from scrubjay.sim.build import build_room
    from scrubjay.sim.compile import compile_room
    from scrubjay.viz.page import write_page
    from scrubjay.viz.rooms import count_rooms, room_page

    if save and scene.startswith(PREFIX):
        raise RoomError(f"{scene} is not made of the catalog's things, so that it cannot be saved as a room file")
    build = (lambda path: compile_room(load_room(path))) if scene.endswith(".json") else build_room
    compiled, facts = next(count_rooms(map(build, [scene])))
    text, sections = room_page(compiled, facts, renderer)
    path = out or Path("out") / f"{compiled.room.file_stem}.html"
    if save:
        save_room(compiled.room, save)
    write_page(path, compiled.room.scene, text, sections)
    print(path)
