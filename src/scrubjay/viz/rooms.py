"""The contact sheet of all rooms, and the page of one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

import numpy as np

from scrubjay.rooms.room import Room
from scrubjay.sim.access import ways_to_open
from scrubjay.sim.compile import CompiledRoom, compile_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.viz.floorplan import draw_floorplan
from scrubjay.viz.page import Figure, Section
from scrubjay.viz.picture import depth_colors, id_colors, label_picture, normal_colors, render_dollhouse


@dataclass(frozen=True)
class Facts:
    """What `scrubjay rooms --json` prints of a room."""

    scene: str
    type: str
    objects: int
    object_types: int
    openables: int
    openables_reachable: int
    geoms: int
    positions: int
    build_s: float


def survey(rooms: Iterable[Room]) -> Iterator[tuple[CompiledRoom, Facts]]:
    """Builds rooms one after another and counts what is in them."""
    start = time.perf_counter()
    for room in rooms:
        compiled = compile_room(room)
        seconds = time.perf_counter() - start
        grid = compiled.floor.reachable()
        ways = ways_to_open(compiled, grid)
        things = compiled.room.things
        yield compiled, Facts(
            room.scene, room.type, len(things), len({thing.type for thing in things}), len(ways),
            sum(bool(way) for way in ways), compiled.visual_geoms, len(grid), round(seconds, 4),
        )  # fmt: skip
        start = time.perf_counter()


def tile(compiled: CompiledRoom, size: int, renderer: str) -> np.ndarray:
    """A room's picture on the contact sheet."""
    return label_picture(render_dollhouse(compiled, size, renderer), compiled.room.scene)


def room_page(room: Room, renderer: str) -> tuple[str, str, list[Section]]:
    """Title, facts and sections of a room's page: plan, views, depth, ids, normals, and openables closed and open."""
    compiled, facts = next(survey([room]))
    grid = compiled.floor.reachable()
    ways = ways_to_open(compiled, grid)
    with World([compiled], renderer=renderer) as world:
        spot = _widest(world)
        drawing = draw_floorplan(compiled, grid, [spot], [bool(way) for way in ways])
        sections = [
            Section("Plan", "Green dots: the reachable grid. Orange: openables, by number; red ones cannot be opened.",
                    [Figure(drawing, "North is up; the agent is red."),
                     Figure(render_dollhouse(compiled, 460, renderer), "The room from above.")]),
            Section("What an agent sees", "Standing and crouching, looking north, east, south and west.",
                    _around(world, spot)),
            Section("One view, four ways", "", _kinds(world, spot)),
            Section("Openables", "Each from a place from which it can be opened: closed, then open.",
                    _openings(world, ways)),
        ]  # fmt: skip
        drawn = world.renderer.name
    counts = ", ".join(f"{key} {value}" for key, value in asdict(facts).items() if key != "scene")
    return room.scene, f"{counts}. Drawn with {drawn}.", sections


def _widest(world: World) -> AgentPose:
    """The reachable position with the most room around it."""
    positions = world.reachable[0].positions
    x, y = positions[world.rooms[0].floor.clearance(positions).argmax()]
    return AgentPose(float(x), float(y), 0.0, True)


def _around(world: World, spot: AgentPose) -> list[Figure]:
    figures = []
    for standing in (True, False):
        for rotation, name in zip((0.0, 90.0, 180.0, 270.0), ("north", "east", "south", "west"), strict=True):
            world.set_agent_pose(0, spot._replace(rotation=rotation, standing=standing))
            figures.append(Figure(_rgb(world), f"{'standing' if standing else 'crouching'}, {name}"))
    return figures


def _kinds(world: World, spot: AgentPose) -> list[Figure]:
    world.set_agent_pose(0, spot)
    view = world.view(("rgb", "depth", "ids", "normals"))
    return [
        Figure(view.rgb[0].cpu().numpy(), "rgb"),
        Figure(depth_colors(view.depth[0].cpu().numpy()), "depth, up to 6 m"),
        Figure(id_colors(view.ids[0].cpu().numpy()), "object ids"),
        Figure(normal_colors(view.normals[0].cpu().numpy()), "normals"),
    ]


def _openings(world: World, ways: list[list[AgentPose]], most: int = 8) -> list[Figure]:
    """Pairs of pictures for openables of as many types as there are."""
    room, figures = world.rooms[0], []
    shown: set[str] = set()
    for number, (openable, places) in enumerate(zip(room.openables, ways, strict=True)):
        kind = room.room.things[openable.thing].type
        if not places or kind in shown or len(shown) >= most:
            continue
        shown.add(kind)
        thing = room.room.things[openable.thing]
        facing = [place for place in places if abs((place.rotation - thing.yaw) % 360 - 180) < 1]
        world.set_agent_pose(0, (facing or places)[-1])
        closed = _rgb(world)
        world.open(np.array([number]))
        caption = f"{room.things[openable.thing]}, number {number}"
        figures.append(Figure(np.concatenate([closed, _rgb(world)], 1), caption))
        world.state.open[:] = False
    return figures


def _rgb(world: World) -> np.ndarray:
    return world.view(("rgb",)).rgb[0].cpu().numpy()
