"""The demonstration: a page of rooms, a walk and an object hidden in a drawer, and the page of a whole game."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console

from scrubjay.evaluation.matches import play_scripted_game
from scrubjay.game.record import save_records
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.access import ways_to_open
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose, hand_directions
from scrubjay.sim.world import MOVES, World
from scrubjay.viz.episode import replay_episode
from scrubjay.viz.episode_page import summarize, write_episode_page
from scrubjay.viz.floorplan import draw_floorplan
from scrubjay.viz.page import Figure, Section, write_page
from scrubjay.viz.picture import render_dollhouse
from scrubjay.viz.video import write_video

SHOWN = ("FloorPlan1", "FloorPlan201", "FloorPlan301", "FloorPlan401", "FloorPlan501")
STAGE = "FloorPlan1"
GOAL = "Tomato"


HIDER, SEEKER, SEED = "heuristic", "frontier", 3
"""Of the game."""


def write_demo(out: Path, renderer: str, console: Console) -> tuple[Path, Path]:
    """Plays the demonstration and writes its pages: of the game, and of the rooms."""
    return write_game(out, renderer, console), write_rooms(out, renderer, console)


def write_game(out: Path, renderer: str, console: Console) -> Path:
    """Plays a whole game and writes its record, its video and its page."""
    console.print(f"playing a game in {STAGE}: {HIDER} hides a {GOAL.lower()}, {SEEKER} seeks it")
    record = play_scripted_game(STAGE, GOAL, HIDER, SEEKER, SEED, renderer)
    save_records([record], out / "record.json")
    episode = replay_episode(record, renderer)
    console.print(summarize(episode))
    write_video(episode, out / "game.mp4")
    write_episode_page(episode, out / "index.html", "game.mp4")
    return out / "index.html"


def write_rooms(out: Path, renderer: str, console: Console) -> Path:
    """Builds rooms, walks through one, hides an object there, and writes the page."""
    console.print("building a room of each type")
    rooms = [Figure(render_dollhouse(compile_room(make_room(scene)), 300, renderer), scene) for scene in SHOWN]
    with World([STAGE], renderer=renderer) as world:
        console.print(f"walking through {STAGE}, drawn with {world.renderer.name}")
        drawer, place = _drawer(world)
        world.set_agent_pose(0, _far_from(world, place))
        walk, way = _walk(world, place)
        console.print(f"hiding a {GOAL.lower()} in {world.rooms[0].things[world.rooms[0].openables[drawer].thing]}")
        hiding = _hide(world, drawer)
        facts = f"{len(way) - 1} actions on the way. Drawn with {world.renderer.name}."
        route = Figure(draw_floorplan(world.rooms[0], world.reachable[0], way), "The way to the drawer.")
    page = out / "rooms.html"
    write_page(page, "Scrubjay: rooms that can be acted in", facts, [
        Section("Rooms", "One of each type, made from a seed.", rooms),
        Section("A walk", "On a grid of 0.25 m, with quarter turns.", [route, *walk]),
        Section("Hiding", "The agent opens a drawer, moves the object in its hand, lets it fall, and closes.", hiding),
    ])  # fmt: skip
    return page


def _drawer(world: World) -> tuple[int, AgentPose]:
    """A drawer that can be opened, as high up as there is one, and the place to do it from."""
    room = world.rooms[0]
    ways = ways_to_open(room, world.reachable[0])
    found = []
    for number, (openable, places) in enumerate(zip(room.openables, ways, strict=True)):
        thing = room.room.things[openable.thing]
        front = np.array(thing.position[:2]) + facing_vector(thing.yaw) * (thing.size[1] / 2 + 0.75)
        facing = [p for p in places if p.standing and abs((p.rotation - thing.yaw) % 360 - 180) < 1]
        if thing.type == "Drawer" and thing.size[2] > 0.12 and facing:
            best = min(facing, key=lambda p: np.hypot(p.x - front[0], p.y - front[1]))
            found.append((thing.position[2], -np.hypot(best.x - front[0], best.y - front[1]), number, best))
    _, _, number, place = max(found, key=lambda way: way[:2])
    return number, place


def _far_from(world: World, place: AgentPose) -> AgentPose:
    grid = world.reachable[0]
    away = grid.distances(grid.index((place.x, place.y)))
    x, y = grid.positions[away.argmax()]
    return AgentPose(float(x), float(y), 0.0, True)


def _walk(world: World, target: AgentPose, pictures: int = 5) -> tuple[list[Figure], list[AgentPose]]:
    """Walks a shortest way, facing where it goes, and turns as the target does; a few pictures, and all places."""
    grid = world.grid(0)
    here, there = (grid.index((place.x, place.y)) for place in (world.agent_pose(0), target))
    positions = grid.positions[grid.path(here, there)]
    way, views = [world.agent_pose(0)], [_rgb(world)]

    def note() -> None:
        way.append(world.agent_pose(0))
        views.append(_rgb(world))

    for step in np.diff(positions, axis=0):
        for _ in range(_quarters(world, float(np.degrees(np.arctan2(*step))) % 360)):
            world.rotate(np.array([1]))
            note()
        world.move(np.array([MOVES.index("ahead")]))
        note()
    for _ in range(_quarters(world, target.rotation)):
        world.rotate(np.array([1]))
        note()
    chosen = np.linspace(0, len(views) - 1, pictures).astype(int)
    return [Figure(views[i], f"after {i} actions") for i in chosen], way


def _quarters(world: World, rotation: float) -> int:
    """Turns to the right until a rotation is reached."""
    return round((rotation - world.state.rotation[0]) % 360 / 90) % 4


def _hide(world: World, drawer: int) -> list[Figure]:
    """Opens the drawer, brings the object over it, lets it fall, and closes the drawer."""
    figures = []

    def note(caption: str) -> None:
        figures.append(Figure(_rgb(world), caption))

    note("In front of the drawer.")
    world.open(np.array([drawer]))
    note("Open.")
    world.hold(np.array([GOALS.index(GOAL)]))
    note(f"The {GOAL.lower()} in the hand, at its default position.")
    moves = _bring_over(world, drawer)
    note(f"After {moves} movements of the hand.")
    world.drop(np.ones(1, bool))
    seen, alone = (int(mask.sum()) for mask in world.goal_pixels())
    container = world.contained()[0]
    inside = f"contained in {world.rooms[0].things[container]}" if container >= 0 else "not contained in anything"
    note(f"Dropped and at rest: {inside}, {seen} of its {alone} pixels seen.")
    world.close_near(np.ones(1, bool))
    seen, alone = (int(mask.sum()) for mask in world.goal_pixels())
    note(f"Closed: {seen} of its {alone} pixels seen.")
    return figures


def _bring_over(world: World, drawer: int, most: int = 30) -> int:
    """Moves the hand, one greedy step after another, over the middle of the open drawer and down to it."""
    room = world.rooms[0]
    thing = room.room.things[room.openables[drawer].thing]
    target = np.array([*thing.position[:2], thing.position[2] + thing.size[2] + 0.05])
    target[:2] += facing_vector(thing.yaw) * room.openables[drawer].travel[0]
    steps = hand_directions(world.state.rotation[0])
    moved = 0
    for _ in range(most):
        here = world.state.pose[0, :3]
        gaps = np.linalg.norm(here + 0.1 * steps - target, axis=1)
        better = [choice for choice in gaps.argsort() if gaps[choice] < np.linalg.norm(here - target)]
        if not any(world.move_hand(np.array([choice]))[0] for choice in better):
            break
        moved += 1
    return moved


def _rgb(world: World) -> np.ndarray:
    return world.view(("rgb",)).rgb[0].cpu().numpy()
