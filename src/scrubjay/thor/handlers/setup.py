"""Actions that begin an episode or change how a scene looks: Reset, Initialize, and what is random by a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from scrubjay.rooms.materials.materials import TEXTURES
from scrubjay.thor.handlers.cameras import change_resolution
from scrubjay.thor.scene import ActionFailed
from scrubjay.thor.session import MAX_AGENTS, MODES, Session, Settings

NEAR, FAR = 0.1, 20.0
"""Meters between which cameras see; the client scales depth by them."""
FIELD_OF_VIEW = {"default": 90.0, "locobot": 60.0}
SURFACES = (
    "ArmChair", "Bed", "Chair", "CoffeeTable", "CounterTop", "Desk", "DiningTable", "Dresser", "Ottoman", "Shelf",
    "SideTable", "Sofa", "Stool", "TVStand",
)  # fmt: skip
"""Receptacles on whose top objects are spawned."""
MARGIN = 0.01
"""Meters above a surface from which a spawned object falls."""


def pass_(session: Session, agent: int) -> None:
    """Does nothing."""


def reset(session: Session, agent: int, scene_name: str | None) -> None:
    """Makes a scene anew."""
    name = scene_name or session.scene_name
    if not name:
        raise ActionFailed("sceneName must say which scene to load")
    session.load(name)


def initialize(
    session: Session,
    agent: int,
    grid_size: float,
    visibility_distance: float,
    field_of_view: float | None,
    agent_mode: str,
    agent_count: int,
    snap_to_grid: bool,
    rotate_step_degrees: float,
    render_image: bool,
    render_depth_image: bool,
    render_instance_segmentation: bool,
    render_semantic_segmentation: bool,
    render_object_image: bool,
    render_class_image: bool,
    render_normals_image: bool,
    fast_action_emit: bool,
    width: int | None,
    height: int | None,
) -> dict[str, Any]:
    """Sets how agents act and what is rendered."""
    mode = "locobot" if agent_mode.lower() == "bot" else agent_mode.lower()
    if mode not in MODES:
        raise ActionFailed(f"agentMode is one of {', '.join(MODES)}, not {agent_mode!r}")
    degrees = FIELD_OF_VIEW[mode] if field_of_view is None else field_of_view
    _check_numbers(grid_size, visibility_distance, degrees, agent_count, rotate_step_degrees)
    if snap_to_grid and rotate_step_degrees % 90:
        raise ActionFailed(
            f"with snapToGrid, rotateStepDegrees must be a multiple of 90, but it is {rotate_step_degrees:g}; "
            "pass snapToGrid=False"
        )
    if width is not None or height is not None:
        sides = (session.width if width is None else width, session.height if height is None else height)
        change_resolution(session, agent, *sides)
    if agent_count != len(session.scene.agents):
        session.load(session.scene_name, agent_count)
    asked = {
        "rgb": render_image, "depth": render_depth_image, "normals": render_normals_image,
        "ids": render_instance_segmentation or render_object_image,
        "classes": render_semantic_segmentation or render_class_image,
    }  # fmt: skip
    session.settings = Settings(
        grid_size, visibility_distance, degrees, snap_to_grid, rotate_step_degrees, mode, fast_action_emit,
        frozenset(kind for kind, wanted in asked.items() if wanted),
    )  # fmt: skip
    session.scene.reach = visibility_distance
    for one in range(agent_count):
        session.scene.set_field_of_view(one, degrees)
        if snap_to_grid:
            session.stand_near(one, session.agent(one).position)
    return {"cameraNearPlane": NEAR, "cameraFarPlane": FAR}


def _check_numbers(
    grid_size: float, visibility_distance: float, field_of_view: float, agents: int, rotate_step: float
) -> None:
    if not 0.01 <= grid_size <= 10:
        raise ActionFailed(f"gridSize is from 0.01 to 10 m, not {grid_size:g}")
    if not 0 < visibility_distance <= 1000:
        raise ActionFailed(f"visibilityDistance is between 0 and 1000 m, not {visibility_distance:g}")
    if not 0 < field_of_view < 180:
        raise ActionFailed(f"fieldOfView is between 0 and 180 degrees, not {field_of_view:g}")
    if not 1 <= rotate_step <= 360:
        raise ActionFailed(f"rotateStepDegrees is from 1 to 360, not {rotate_step:g}")
    if not 1 <= agents <= MAX_AGENTS:
        raise ActionFailed(f"agentCount is from 1 to {MAX_AGENTS}, not {agents}")


def ignore_quality(session: Session, agent: int, quality: str | int | None) -> None:
    """Accepts a quality."""


def ignore_speed(session: Session, agent: int, x: float | None) -> None:
    """Accepts a speed."""


def ignore_physics(session: Session, agent: int, time_step: float | None, sim_seconds: float | None) -> None:
    """Accepts steps of physics."""


def set_random_seed(session: Session, agent: int, seed: int) -> None:
    """Seeds the random actions that come."""
    session.seed = seed


def randomize_materials(
    session: Session,
    agent: int,
    use_train_materials: bool | None,
    use_val_materials: bool | None,
    use_test_materials: bool | None,
    use_external_materials: bool | None,
    in_room_types: list[str] | None,
) -> dict[str, Any]:
    """Draws things in other materials of the catalog."""
    session.scene.retexture(_next_seed(session))
    return {
        "useTrainMaterials": use_train_materials is not False, "useValMaterials": bool(use_val_materials),
        "useTestMaterials": bool(use_test_materials), "useExternalMaterials": use_external_materials is not False,
        "inRoomTypes": in_room_types, "totalMaterialsConsidered": len(TEXTURES),
    }  # fmt: skip


def randomize_colors(session: Session, agent: int) -> None:
    """Draws things in other materials of the catalog."""
    session.scene.retexture(_next_seed(session))


def reset_materials(session: Session, agent: int) -> None:
    """Draws things in their own materials."""
    session.scene.retexture(None)


def ignore_lighting(
    session: Session,
    agent: int,
    brightness: list[float] | None,
    randomize_color: bool,
    hue: list[float] | None,
    saturation: list[float] | None,
    synchronized: bool,
) -> None:
    """Accepts ranges of light."""


def random_spawn(
    session: Session,
    agent: int,
    random_seed: int,
    force_visible: bool,
    place_stationary: bool,
    num_duplicates_of_type: list[dict[str, Any]] | None,
    excluded_receptacles: list[str] | None,
    excluded_object_ids: list[str] | None,
    num_placement_attempts: int,
    allow_floor: bool,
) -> None:
    """Puts loose objects onto surfaces at random; what fits nowhere stays."""
    if not 1 <= num_placement_attempts <= 1000:
        raise ActionFailed(f"numPlacementAttempts is from 1 to 1000, not {num_placement_attempts}")
    scene, records = session.scene, session.objects.records
    rng = np.random.Generator(np.random.PCG64([random_seed % 2**32, 1]))
    types = (*SURFACES, "Floor") if allow_floor else SURFACES
    barred, kept = set(excluded_receptacles or ()), set(excluded_object_ids or ())
    surfaces = [
        thing for thing, record in records.items()
        if record["objectType"] in types and record["objectType"] not in barred and thing not in scene.absent
    ]  # fmt: skip
    held = {body.held for body in scene.agents}
    loose = [
        thing for thing, record in records.items()
        if record["pickupable"] and record["objectId"] not in kept and thing not in scene.absent | held
    ]  # fmt: skip
    for thing in loose:
        for _ in range(num_placement_attempts):
            if not surfaces or _spawn(session, thing, int(rng.choice(surfaces)), rng):
                break


def _spawn(session: Session, thing: int, surface: int, rng: np.random.Generator) -> bool:
    """Tries to put a thing onto a random point of a surface."""
    scene = session.scene
    corners, top = scene.corners(thing), scene.corners(surface)
    half = np.ptp(corners, axis=0) / 2
    low, high = top[:, :2].min(0) + half[:2], top[:, :2].max(0) - half[:2]
    draw = rng.random(2)
    if (low > high).any():
        return False
    pose = np.array(scene.pose(thing), float)
    pose[:2] = low + draw * (high - low)
    pose[2] += top[:, 2].max() + MARGIN - corners[:, 2].min()
    try:
        scene.place(thing, pose, settle=True)
    except ActionFailed:
        return False
    return True


def _next_seed(session: Session) -> int:
    """A seed for a random action: others for the next ones, the same after SetRandomSeed."""
    session.seed = (session.seed * 1_103_515_245 + 12_345) % 2**31
    return session.seed
