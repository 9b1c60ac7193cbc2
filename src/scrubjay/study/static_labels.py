"""Labels of the static experiments, computed from views of one room, on the renderer's device.

B is the number of images. Pixels are square and the field of view is 90 degrees, as agents see.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.ndimage import distance_transform_edt, label

from scrubjay.rooms.floor import BODY_RADIUS, MAP_PITCH, STEP_OVER
from scrubjay.sim.compile import CompiledRoom, cached_per_room
from scrubjay.sim.containment import things_within
from scrubjay.study.static_data import DEPTH_STEP, NORMAL_STEP, TYPE_NAMES

STRUCTURE = ("Floor", "Wall", "Ceiling", "Doorway", "Window")
"""Types that are never taken out."""
MAX_MASK = 0.4
"""The largest share of the image that an object may cover to be taken out."""
NOTHING = 255
"""The stored id of a pixel that shows nothing."""
LEVEL = 0.7
"""The least upward component of a normal on which one can walk: neither a wall's foot nor a rug's edge."""


def camera_normals(normals: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Normals (B, H, W, 3) in the axes of cameras (B, 3, 3): right, up, backward."""
    return torch.einsum("bhwi,bij->bhwj", normals, matrix.to(normals.dtype))


def surface_points(depth: torch.Tensor, eye: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Where pixels with depths (B, H, W) are in the room, (B, H, W, 3)."""
    height, width = depth.shape[1:]
    x = (torch.arange(width, device=depth.device) + 0.5) / width * 2 - 1
    y = 1 - (torch.arange(height, device=depth.device) + 0.5) / height * 2
    rays = torch.stack([x.expand(height, width), y[:, None].expand(height, width), -torch.ones_like(depth[0])], -1)
    local = depth[..., None] * rays
    return torch.einsum("bhwj,bij->bhwi", local, matrix.to(depth.dtype)) + eye.to(depth.dtype)[:, None, None]


@cached_per_room
def walkable_floor(room: CompiledRoom) -> np.ndarray:
    """Which points of the floor's map a walking body covers, (columns, rows) bool.

    These are the points within the body's radius of one where it can stand and which is connected to a reachable
    position, with everything closed.
    """
    floor = room.floor
    regions, _ = label(floor.map >= BODY_RADIUS, structure=np.ones((3, 3)))
    here = np.rint((floor.reachable().positions - floor.origin) / MAP_PITCH).astype(int)
    here = np.clip(here, 0, np.array(floor.map.shape) - 1)
    connected = np.isin(regions, np.setdiff1d(regions[tuple(here.T)], [0]))
    # A body's edge lies between two points of the map.
    return distance_transform_edt(~connected) * MAP_PITCH <= BODY_RADIUS + MAP_PITCH / 2


def traversable(points: torch.Tensor, normals: torch.Tensor, depth: torch.Tensor, room: CompiledRoom) -> torch.Tensor:
    """Pixels (B, H, W) bool that show a surface onto which the agent can walk, from points and normals in the room."""
    table = torch.from_numpy(walkable_floor(room)).to(points.device)
    origin = torch.from_numpy(room.floor.origin).to(points.device, points.dtype)
    at = torch.round((points[..., :2] - origin) / MAP_PITCH).long()
    last = torch.tensor(table.shape, device=at.device) - 1
    inside = ((at >= 0) & (at <= last)).all(-1)
    at = torch.minimum(at.clamp(min=0), last)
    low = (points[..., 2] < STEP_OVER) & (normals[..., 2] > LEVEL) & (depth > 0)
    return table[at[..., 0], at[..., 1]] & inside & low


def openability(ids: torch.Tensor, is_open: torch.Tensor, room: CompiledRoom) -> torch.Tensor:
    """Pixels (B, H, W) uint8 of openables: 1 closed, 2 open, as in is_open (B, openables); 0 for all else."""
    table = torch.zeros((len(ids), len(room.things) + 1), dtype=torch.uint8, device=ids.device)
    things = torch.tensor([openable.thing for openable in room.openables], dtype=torch.long, device=ids.device)
    table[:, things] = 1 + is_open[:, : len(things)].to(torch.uint8)
    number = torch.where(ids < 0, len(room.things), ids.long())
    return torch.gather(table, 1, number.flatten(1)).reshape(ids.shape)


def pixel_counts(ids: torch.Tensor, room: CompiledRoom) -> np.ndarray:
    """Pixels of each of the room's things, (B, things)."""
    things = len(room.room.things)
    number = torch.where(ids < 0, things, ids.long()).flatten(1)
    counts = torch.zeros((len(ids), len(room.things) + 1), dtype=torch.int64, device=ids.device)
    return counts.scatter_add_(1, number, torch.ones_like(number)).cpu().numpy()[:, :things]


def type_counts(counts: np.ndarray, room: CompiledRoom) -> np.ndarray:
    """Pixels of each type, (B, types) uint16, from those of things (B, things)."""
    types = np.zeros((len(counts), len(TYPE_NAMES)), np.int64)
    for number, thing in enumerate(room.room.things):
        if thing.type in TYPE_NAMES:
            types[:, TYPE_NAMES.index(thing.type)] += counts[:, number]
    return types.astype(np.uint16)


def removable(counts: np.ndarray, room: CompiledRoom, min_pixels: int, pixels: int) -> np.ndarray:
    """Which things may be taken out, (B, things) bool: seen well, with all in or on them, but not too large."""
    things = len(room.room.things)
    movable = np.array([thing.type not in STRUCTURE for thing in room.room.things])
    together = counts @ things_within(room)[:things, :things].T.astype(np.int64)
    return movable & (counts >= 1) & (together >= min_pixels) & (together <= MAX_MASK * pixels)


def mask_of(ids: torch.Tensor, thing: np.ndarray, room: CompiledRoom) -> torch.Tensor:
    """Pixels (B, H, W) bool of things (B,) and all that is in or on them; none for -1."""
    table = np.zeros((len(thing), len(room.things) + 1), bool)
    table[thing >= 0, :-1] = things_within(room)[thing[thing >= 0]]
    number = torch.where(ids < 0, len(room.things), ids.long())
    return torch.gather(torch.from_numpy(table).to(ids.device), 1, number.flatten(1)).reshape(ids.shape)


def stored_depth(depth: torch.Tensor) -> np.ndarray:
    """Depth as it is stored, uint16; what is farther than it can say is cut off."""
    return torch.round(depth / DEPTH_STEP).clamp(0, 65535).to(torch.int32).cpu().numpy().astype(np.uint16)


def stored_normals(normals: torch.Tensor) -> np.ndarray:
    """Normals as they are stored, int8."""
    return torch.round(normals / NORMAL_STEP).to(torch.int8).cpu().numpy()


def stored_ids(ids: torch.Tensor) -> np.ndarray:
    """Ids as they are stored, uint8."""
    return torch.where(ids < 0, NOTHING, ids).to(torch.uint8).cpu().numpy()
