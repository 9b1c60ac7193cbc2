"""Arrays as pictures (H, W, 3) uint8: false colors for depth, ids and normals, tiles, labels, files."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from PIL import Image, ImageDraw, ImageFont

from scrubjay.files import write_atomically
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.room import Room
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.render.base import Shot
from scrubjay.sim.render.make import make_renderer
from scrubjay.viz.palette import INK, PAPER, rgb

ON_WALLS = (
    "Window", "Curtains", "Blinds", "Doorway", "LightSwitch", "Painting", "Mirror", "Shelf", "ShowerHead", "Towel",
    "TowelHolder", "HandTowel", "HandTowelHolder", "ToiletPaperHanger",
)  # fmt: skip
ABOVE_HEADS = 1.2
"""Meters: what begins higher and stands on nothing hangs, such as a kitchen's upper cabinets."""


def depth_colors(depth: np.ndarray, far: float = 6.0) -> np.ndarray:
    """Near is bright, far is dark, no hit is black."""
    shade = colormaps["magma"](1 - np.clip(depth / far, 0, 1))[..., :3]
    return (np.where(depth[..., None] > 0, shade, 0) * 255).astype(np.uint8)


def id_colors(ids: np.ndarray) -> np.ndarray:
    """A color per thing; consecutive ids are far apart on the color wheel."""
    wheel = colormaps["hsv"]((ids * 0.618034) % 1)[..., :3] * (0.55 + 0.45 * ((ids * 7) % 5 / 4))[..., None]
    return (np.where(ids[..., None] >= 0, wheel, 0) * 255).astype(np.uint8)


def normal_colors(normals: np.ndarray) -> np.ndarray:
    """East, north and up as red, green and blue."""
    return (np.clip(normals * 0.5 + 0.5, 0, 1) * 255).astype(np.uint8)


def label_picture(picture: np.ndarray, text: str, height: int = 20) -> np.ndarray:
    """A picture with a line of text under it."""
    canvas = Image.new("RGB", (picture.shape[1], picture.shape[0] + height), PAPER)
    canvas.paste(Image.fromarray(picture), (0, 0))
    font = ImageFont.load_default(size=int(height * 0.62))
    ImageDraw.Draw(canvas).text((3, picture.shape[0] + height * 0.12), text, fill=INK, font=font)
    return np.asarray(canvas)


def tile_pictures(pictures: list[np.ndarray], columns: int, gap: int = 4) -> np.ndarray:
    """Pictures of one size, row by row."""
    height, width = pictures[0].shape[:2]
    rows = -(-len(pictures) // columns)
    sheet = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap, 3), rgb(PAPER), np.uint8)
    for i, picture in enumerate(pictures):
        top, left = gap + i // columns * (height + gap), gap + i % columns * (width + gap)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def shrink_picture(picture: np.ndarray, size: int) -> np.ndarray:
    """A square picture, antialiased, at `size` pixels."""
    return np.asarray(Image.fromarray(picture).resize((size, size), Image.Resampling.LANCZOS))


def encode_picture(picture: np.ndarray, format: str = "PNG", quality: int = 88) -> bytes:
    """The bytes of an image file."""
    buffer = io.BytesIO()
    # Method 2 is WebP's speed: twice as fast as its default, and hardly larger.
    Image.fromarray(picture).save(buffer, format, quality=quality, optimize=True, method=2)
    return buffer.getvalue()


def write_picture(path: Path, picture: np.ndarray) -> None:
    """Writes a JPEG if the name ends in .jpg or .jpeg, else a PNG."""
    write_atomically(path, encode_picture(picture, "JPEG" if path.suffix in (".jpg", ".jpeg") else "PNG"))


def data_url(picture: np.ndarray, format: str = "PNG") -> str:
    """A picture as a URL that contains it."""
    return f"data:image/{format.lower()};base64," + base64.b64encode(encode_picture(picture, format)).decode()


def render_dollhouse(
    compiled: CompiledRoom, size: int, renderer: str = "auto", field_of_view: float = 40.0
) -> np.ndarray:
    """The room from above one corner, without the ceiling, the near walls, and what hangs on them.

    Back faces are culled, so that shell and walls are invisible from behind; other things would float.
    """
    west, south, east, north = compiled.room.bounds
    center = np.array([(west + east) / 2, (south + north) / 2, 0.55])
    distance = max(np.hypot(east - west, north - south), 4.0) / 2 / np.tan(np.radians(field_of_view / 2)) * 1.22
    azimuth, elevation = np.radians(215.0), np.radians(52.0)
    back = np.array(
        [np.sin(azimuth) * np.cos(elevation), np.cos(azimuth) * np.cos(elevation), np.sin(elevation)]
    )  # fmt: skip
    right = np.cross([0, 0, 1.0], back)
    right /= np.linalg.norm(right)
    matrix = np.stack([right, np.cross(back, right), back], -1)
    no_goal, goal_pose = np.array([-1]), np.array([[0, 0, 0, 1.0, 0, 0, 0]])
    closed = np.zeros((1, max(1, len(compiled.openables))), bool)
    eye, hidden = center + back * distance, _in_the_way(compiled.room, back[:2])
    shot = Shot(eye[None], matrix[None], closed, no_goal, goal_pose, field_of_view, left_out=hidden[None])
    drawing = make_renderer(renderer, [compiled], 1, 2 * size, cull_backfaces=True)
    view = drawing.draw(shot, ("rgb", "ids"))
    drawing.close()
    picture = view.rgb[0].cpu().numpy()
    picture[view.ids[0].cpu().numpy() < 0] = rgb(PAPER)
    return shrink_picture(picture, size)


def _in_the_way(room: Room, towards_camera: np.ndarray) -> np.ndarray:
    """Things (n,) bool between the camera and the room: the ceiling and its lamps, near walls, and what hangs there.

    The catalog's walls are one thing, culled where they are seen from behind; those of other rooms are one each.
    """
    west, south, east, north = room.bounds
    center, hidden = np.array([(west + east) / 2, (south + north) / 2]), set()
    for thing in room.things:
        turned_away = facing_vector(thing.yaw) @ towards_camera < 0
        hangs = not thing.inside and (thing.type in ON_WALLS or thing.position[2] > ABOVE_HEADS)
        near_wall = thing.type == "Wall" and any(thing.position) and (thing.position[:2] - center) @ towards_camera > 0
        above = thing.type in ("Ceiling", "CeilingLamp")
        if above or near_wall or (turned_away and hangs) or thing.inside in hidden:
            hidden.add(thing.name)
    return np.array([thing.name in hidden for thing in room.things])
