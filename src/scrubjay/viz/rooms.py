"""A contact sheet of rooms, and the page of one room."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from scrubjay.sim.access import find_opening_poses
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.viz.floorplan import draw_floorplan
from scrubjay.viz.page import Figure, Section
from scrubjay.viz.picture import depth_colors, id_colors, label_picture, normal_colors, render_dollhouse

MAX_OPENABLES = 8


@dataclass(frozen=True)
class RoomFacts:
    """What `scrubjay rooms --json` prints about a room."""

    scene: str
    type: str
    objects: int
    object_types: int
    openables: int
    openables_reachable: int
    geoms: int
    positions: int
    build_s: float


def count_rooms(rooms: Iterable[CompiledRoom]) -> Iterator[tuple[CompiledRoom, RoomFacts]]:
    """Counts what is in rooms, one by one; what it takes to get one from an iterator is its time to build."""
    start = time.perf_counter()
    for compiled in rooms:
        seconds = time.perf_counter() - start
        grid = compiled.floor.reachable()
        opening_poses = find_opening_poses(compiled, grid)
        room, things = compiled.room, compiled.room.things
        yield compiled, RoomFacts(
            room.scene, room.type, len(things), len({thing.type for thing in things}), len(opening_poses),
            sum(bool(poses) for poses in opening_poses), compiled.visual_geoms, len(grid), round(seconds, 4),
        )  # fmt: skip
        start = time.perf_counter()


def facts_table(rooms: Iterable[RoomFacts]) -> Iterator[str]:
    """The lines of a Markdown table, one for each room, and their sums."""
    yield "| Room | Type | Things | Openables | of them in reach | Reachable positions |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    total = np.zeros(4, int)
    for facts in rooms:
        counts = (facts.objects, facts.openables, facts.openables_reachable, facts.positions)
        total += counts
        yield f"| {facts.scene} | {words_of_type(facts.type)} | {' | '.join(map(str, counts))} |"
    yield f"| all | | {' | '.join(f'{count:,}' for count in total)} |"


def draw_tile(compiled: CompiledRoom, size: int, renderer: str) -> np.ndarray:
    """A room on the contact sheet."""
    room = compiled.room
    name = f"{room.scene}, {words_of_type(room.type)}" if "FloorPlan" in room.scene else room.scene
    return label_picture(render_dollhouse(compiled, size, renderer), name)


def words_of_type(room_type: str) -> str:
    """`living_room` as `living room`."""
    return room_type.replace("_", " ")


def room_page(compiled: CompiledRoom, facts: RoomFacts, renderer: str) -> tuple[str, list[Section]]:
    """Text and sections of a room's page: plan, views, depth, ids, normals, openables closed and open."""
    grid = compiled.floor.reachable()
    opening_poses = find_opening_poses(compiled, grid)
    with World([compiled], renderer=renderer) as world:
        pose = _roomiest_pose(world)
        plan = draw_floorplan(compiled, grid, [pose], [bool(poses) for poses in opening_poses])
        sections = [
            Section("Floor plan", "Green: reachable positions. Orange: openables by number; red: out of reach.",
                    [Figure(plan, "North is up. The red dot is the agent."),
                     Figure(render_dollhouse(compiled, 460, renderer), "The room from above one corner.")]),
            Section("Views", "Standing and crouching, facing north, east, south and west.", _draw_views(world, pose)),
            Section("Image types", "What renderers provide for one view.", _draw_image_types(world, pose)),
            Section("Openables", "One of each type, closed and open, from a pose that can open it.",
                    _draw_openables(world, opening_poses)),
        ]  # fmt: skip
        renderer_name = world.renderer.name
    text = (
        f"{words_of_type(facts.type).capitalize()} with {facts.objects} objects of {facts.object_types} types, "
        f"{facts.openables} openables ({facts.openables_reachable} in reach), {facts.positions} reachable positions. "
        f"{facts.geoms} geoms, compiled in {facts.build_s:.2f} s, rendered with {renderer_name}."
    )
    return text, sections


def _roomiest_pose(world: World) -> AgentPose:
    """The reachable position with the largest clearance, facing north."""
    positions = world.reachable[0].positions
    x, y = positions[world.rooms[0].floor.clearance(positions).argmax()]
    return AgentPose(float(x), float(y), 0.0, True)


def _draw_views(world: World, pose: AgentPose) -> list[Figure]:
    figures = []
    for standing in (True, False):
        for rotation, name in zip((0.0, 90.0, 180.0, 270.0), ("north", "east", "south", "west"), strict=True):
            world.set_agent_pose(0, pose._replace(rotation=rotation, standing=standing))
            figures.append(Figure(_rgb(world), f"{'standing' if standing else 'crouching'}, {name}"))
    return figures


def _draw_image_types(world: World, pose: AgentPose) -> list[Figure]:
    world.set_agent_pose(0, pose)
    view = world.view(("rgb", "depth", "ids", "normals"))
    return [
        Figure(view.rgb[0].cpu().numpy(), "rgb"),
        Figure(depth_colors(view.depth[0].cpu().numpy()), "depth, up to 6 m"),
        Figure(id_colors(view.ids[0].cpu().numpy()), "object ids"),
        Figure(normal_colors(view.normals[0].cpu().numpy()), "normals"),
    ]


def _draw_openables(world: World, opening_poses: list[list[AgentPose]]) -> list[Figure]:
    """An openable of each type, closed and open side by side."""
    room, figures = world.rooms[0], []
    shown: set[str] = set()
    for number, (openable, poses) in enumerate(zip(room.openables, opening_poses, strict=True)):
        kind = room.room.things[openable.thing].type
        if not poses or kind in shown or len(shown) >= MAX_OPENABLES:
            continue
        shown.add(kind)
        thing = room.room.things[openable.thing]
        facing = [pose for pose in poses if abs((pose.rotation - thing.yaw) % 360 - 180) < 1]
        world.set_agent_pose(0, (facing or poses)[-1])
        closed = _rgb(world)
        world.open(np.array([number]))
        caption = f"{room.things[openable.thing]}, number {number}"
        figures.append(Figure(np.concatenate([closed, _rgb(world)], 1), caption))
        world.state.open[:] = False
    return figures


def _rgb(world: World) -> np.ndarray:
    return world.view(("rgb",)).rgb[0].cpu().numpy()
