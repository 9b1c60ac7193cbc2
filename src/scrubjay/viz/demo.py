"""The demo: its first page, the page of a whole game, and a page of rooms, a walk and an object hidden in a drawer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from scrubjay.agent.released import DEFAULT, names
from scrubjay.api import play
from scrubjay.game.record import save_records
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.access import find_opening_poses
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose, hand_directions
from scrubjay.sim.world import MOVES, World
from scrubjay.viz.agent_page import load_described_agent, write_agent_page
from scrubjay.viz.agent_trace import trace_agent
from scrubjay.viz.episode import Episode, replay_episode
from scrubjay.viz.episode_page import summarize, write_episode_page
from scrubjay.viz.floorplan import FloorPlan
from scrubjay.viz.overview import write_overview
from scrubjay.viz.page import Figure, Section, write_page
from scrubjay.viz.picture import render_dollhouse
from scrubjay.viz.rooms import words_of_type
from scrubjay.viz.video import write_video

ROOMS = ("FloorPlan1", "FloorPlan201", "FloorPlan301", "FloorPlan401", "FloorPlan501")
SCENE, GOAL = "FloorPlan1", "Tomato"
AGENT_SCENE = "FloorPlan21"
"""A validation room: no agent was trained in it."""
HIDER, SEEKER, SEED = "heuristic", "frontier", 3
MAX_HAND_MOVES = 30
LINKS = {
    "The released agent": "released/index.html",
    "The rooms": "rooms.html",
    "The agent that was trained": "agent/index.html",
    "What its encoder sees, a small study": "study/index.html",
}
"""Pages of `make demo`, relative to its first one, which links to those that are there."""


def write_demo(out: Path, renderer: str, console: Console) -> tuple[Path, Path]:
    """Writes the demo's pages, and returns the paths of the first one and of the rooms'."""
    figures = draw_rooms(renderer, console)
    rooms = write_rooms(out, figures, renderer, console)
    episode = write_game(out, renderer, console)
    links = {text: href for text, href in LINKS.items() if (out / href).exists()}
    return write_overview(out, episode, figures, links, renderer), rooms


def write_game(out: Path, renderer: str, console: Console) -> Episode:
    """Plays a whole game, writes its record, its video and its page, and returns it."""
    console.print(f"playing in {SCENE}: {HIDER} hides a {GOAL.lower()}, {SEEKER} seeks it")
    record = play(HIDER, SEEKER, SCENE, GOAL, seed=SEED, renderer=renderer)
    save_records([record], out / "record.json")
    episode = replay_episode(record, renderer)
    console.print(summarize(episode))
    write_video(episode, out / "game.mp4")
    write_episode_page(episode, out / "game.html", "game.mp4", {"The demo": "index.html"})
    return episode


def write_released(out: Path, renderer: str, console: Console) -> Path | None:
    """Lets the released agent hide and seek, and writes the page of its game; None if there is none."""
    if DEFAULT not in names():
        return None
    console.print(f"playing in {AGENT_SCENE}: {DEFAULT} hides a {GOAL.lower()} and seeks it: about a minute")
    agent, training = load_described_agent(DEFAULT)
    trace = trace_agent(agent, AGENT_SCENE, GOAL, SEED, renderer)
    trace = replace(trace, record=replace(trace.record, players={"hider": DEFAULT, "seeker": DEFAULT}))
    save_records([trace.record], out / "released" / "record.json")
    episode = replay_episode(trace.record, renderer)
    console.print(summarize(episode))
    write_agent_page(trace, episode, training, out / "released" / "index.html")
    return out / "released" / "index.html"


def draw_rooms(renderer: str, console: Console) -> list[Figure]:
    """A room of each type from above."""
    console.print("building a room of each type")
    figures = []
    for scene in ROOMS:
        room = make_room(scene)
        picture = render_dollhouse(compile_room(room), 300, renderer)
        figures.append(Figure(picture, f"{scene}, a {words_of_type(room.type)}"))
    return figures


def write_rooms(out: Path, rooms: list[Figure], renderer: str, console: Console) -> Path:
    """Walks through a room, hides an object there, and writes the page."""
    with World([SCENE], renderer=renderer) as world:
        console.print(f"walking through {SCENE}, rendered with {world.renderer.name}")
        drawer, pose = _select_drawer(world)
        world.set_agent_pose(0, _farthest_pose(world, pose))
        walk, path = _walk(world, pose)
        console.print(f"hiding a {GOAL.lower()} in {world.rooms[0].things[world.rooms[0].openables[drawer].thing]}")
        hiding = _hide(world, drawer)
        facts = f"{len(path) - 1} actions on the path. Rendered with {world.renderer.name}."
        drawing = FloorPlan(world.rooms[0], world.reachable[0], 400, numbered=False)
        drawing.path(path)
        plan = Figure(drawing.picture, "The path to the drawer. Orange: what opens. Green: where an agent can stand.")
    page = out / "rooms.html"
    write_page(page, "Scrubjay: interactive rooms", facts, [
        Section("Rooms", "One of each type, generated from a seed.", rooms),
        Section("A walk", "On a grid of 0.25 m, with quarter turns.", [plan, *walk]),
        Section("Hiding", "The agent opens a drawer, drops the object into it, and closes it.", hiding),
    ])  # fmt: skip
    return page


def _select_drawer(world: World) -> tuple[int, AgentPose]:
    """The highest drawer that can be opened from its front, and the pose to do it from."""
    room = world.rooms[0]
    opening_poses = find_opening_poses(room, world.reachable[0])
    candidates = []
    for number, (openable, poses) in enumerate(zip(room.openables, opening_poses, strict=True)):
        thing = room.room.things[openable.thing]
        front = np.array(thing.position[:2]) + facing_vector(thing.yaw) * (thing.size[1] / 2 + 0.75)
        facing = [p for p in poses if p.standing and abs((p.rotation - thing.yaw) % 360 - 180) < 1]
        if thing.type == "Drawer" and thing.size[2] > 0.12 and facing:
            best = min(facing, key=lambda p: np.hypot(p.x - front[0], p.y - front[1]))
            candidates.append((thing.position[2], -np.hypot(best.x - front[0], best.y - front[1]), number, best))
    _, _, number, pose = max(candidates, key=lambda candidate: candidate[:2])
    return number, pose


def _farthest_pose(world: World, pose: AgentPose) -> AgentPose:
    grid = world.reachable[0]
    distances = grid.distances(grid.index((pose.x, pose.y)))
    x, y = grid.positions[distances.argmax()]
    return AgentPose(float(x), float(y), 0.0, True)


def _walk(world: World, target: AgentPose, pictures: int = 5) -> tuple[list[Figure], list[AgentPose]]:
    """Walks a shortest path to a pose; returns a few frames, and all poses on the way."""
    grid = world.grid(0)
    here, there = (grid.index((pose.x, pose.y)) for pose in (world.agent_pose(0), target))
    positions = grid.positions[grid.path(here, there)]
    path, views = [world.agent_pose(0)], [_rgb(world)]

    def record() -> None:
        path.append(world.agent_pose(0))
        views.append(_rgb(world))

    for step in np.diff(positions, axis=0):
        for _ in range(_right_turns(world, float(np.degrees(np.arctan2(*step))) % 360)):
            world.rotate(np.array([1]))
            record()
        world.move(np.array([MOVES.index("ahead")]))
        record()
    for _ in range(_right_turns(world, target.rotation)):
        world.rotate(np.array([1]))
        record()
    shown = np.linspace(0, len(views) - 1, pictures).astype(int)
    return [Figure(views[i], f"after {i} actions") for i in shown], path


def _right_turns(world: World, rotation: float) -> int:
    """Quarter turns to the right to a rotation."""
    return round((rotation - world.state.rotation[0]) % 360 / 90) % 4


def _hide(world: World, drawer: int) -> list[Figure]:
    """Opens the drawer, drops the object into it, and closes it; a frame of each step."""
    figures = []

    def record(caption: str) -> None:
        figures.append(Figure(_rgb(world), caption))

    record("In front of the drawer.")
    world.open(np.array([drawer]))
    record("Open.")
    world.hold(np.array([GOALS.index(GOAL)]))
    record(f"The {GOAL.lower()} in the hand, at its default position.")
    moves = _move_over(world, drawer)
    record(f"After {moves} hand movements.")
    world.drop(np.ones(1, bool))
    visible, unoccluded = (int(mask.sum()) for mask in world.goal_pixels())
    container = world.contained()[0]
    inside = f"contained in {world.rooms[0].things[container]}" if container >= 0 else "not contained in anything"
    record(f"At rest: {inside}, {visible} of its {unoccluded} pixels visible.")
    world.close_near(np.ones(1, bool))
    visible, unoccluded = (int(mask.sum()) for mask in world.goal_pixels())
    record(f"Closed: {visible} of its {unoccluded} pixels visible.")
    return figures


def _move_over(world: World, drawer: int) -> int:
    """Moves the hand greedily to just above the open drawer; returns the number of movements."""
    room = world.rooms[0]
    thing = room.room.things[room.openables[drawer].thing]
    target = np.array([*thing.position[:2], thing.position[2] + thing.size[2] + 0.05])
    target[:2] += facing_vector(thing.yaw) * room.openables[drawer].travel[0]
    steps = hand_directions(world.state.rotation[0])
    moved = 0
    for _ in range(MAX_HAND_MOVES):
        here = world.state.pose[0, :3]
        gaps = np.linalg.norm(here + 0.1 * steps - target, axis=1)
        better = [choice for choice in gaps.argsort() if gaps[choice] < np.linalg.norm(here - target)]
        if not any(world.move_hand(np.array([choice]))[0] for choice in better):
            break
        moved += 1
    return moved


def _rgb(world: World) -> np.ndarray:
    return world.view(("rgb",)).rgb[0].cpu().numpy()
