"""Arrays made into pictures: colors for depth, ids and normals, tiles, labels, PNG."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from PIL import Image, ImageDraw, ImageFont

from scrubjay.files import write_atomically
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.render.base import Shot
from scrubjay.sim.render.make import make_renderer

INK, PAPER = (38, 42, 50), (250, 249, 246)


def depth_colors(depth: np.ndarray, far: float = 6.0) -> np.ndarray:
    """Near is bright, far is dark; nothing is black."""
    shade = colormaps["magma"](1 - np.clip(depth / far, 0, 1))[..., :3]
    return (np.where(depth[..., None] > 0, shade, 0) * 255).astype(np.uint8)


def id_colors(ids: np.ndarray) -> np.ndarray:
    """A color for each thing; neighboring numbers are far apart on the wheel."""
    wheel = colormaps["hsv"]((ids * 0.618034) % 1)[..., :3] * (0.55 + 0.45 * ((ids * 7) % 5 / 4))[..., None]
    return (np.where(ids[..., None] >= 0, wheel, 0) * 255).astype(np.uint8)


def normal_colors(normals: np.ndarray) -> np.ndarray:
    """East, north and up as red, green and blue."""
    return (np.clip(normals * 0.5 + 0.5, 0, 1) * 255).astype(np.uint8)


def labeled(picture: np.ndarray, text: str, height: int = 20) -> np.ndarray:
    """A picture with a line of text under it."""
    canvas = Image.new("RGB", (picture.shape[1], picture.shape[0] + height), PAPER)
    canvas.paste(Image.fromarray(picture), (0, 0))
    font = ImageFont.load_default(size=int(height * 0.62))
    ImageDraw.Draw(canvas).text((3, picture.shape[0] + height * 0.12), text, fill=INK, font=font)
    return np.asarray(canvas)


def tiled(pictures: list[np.ndarray], columns: int, gap: int = 4) -> np.ndarray:
    """Pictures of one size in rows."""
    height, width = pictures[0].shape[:2]
    rows = -(-len(pictures) // columns)
    sheet = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap, 3), PAPER, np.uint8)
    for i, picture in enumerate(pictures):
        top, left = gap + i // columns * (height + gap), gap + i % columns * (width + gap)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def shrunk(picture: np.ndarray, size: int) -> np.ndarray:
    """A square picture made smaller, smoothly."""
    return np.asarray(Image.fromarray(picture).resize((size, size), Image.Resampling.LANCZOS))


def encoded(picture: np.ndarray, format: str = "PNG") -> bytes:
    """A picture as the content of a file."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format, quality=88, optimize=True)
    return buffer.getvalue()


def write_picture(path: Path, picture: np.ndarray) -> None:
    """Writes a PNG, or a JPEG where the name ends so."""
    write_atomically(path, encoded(picture, "JPEG" if path.suffix in (".jpg", ".jpeg") else "PNG"))


def inline(picture: np.ndarray) -> str:
    """A picture as an address that can stand in a page."""
    return "data:image/png;base64," + base64.b64encode(encoded(picture)).decode()


def dollhouse(compiled: CompiledRoom, size: int, renderer: str = "auto", field_of_view: float = 40.0) -> np.ndarray:
    """The room from above one corner, as if its ceiling and near walls were glass: they are seen from inside only."""
    west, south, east, north = compiled.room.bounds
    middle = np.array([(west + east) / 2, (south + north) / 2, 0.55])
    reach = max(np.hypot(east - west, north - south), 4.0) / 2 / np.tan(np.radians(field_of_view / 2)) * 1.22
    turn, climb = np.radians(215.0), np.radians(52.0)
    back = np.array([np.sin(turn) * np.cos(climb), np.cos(turn) * np.cos(climb), np.sin(climb)])
    right = np.cross([0, 0, 1.0], back)
    right /= np.linalg.norm(right)
    matrix = np.stack([right, np.cross(back, right), back], -1)
    still = np.array([[0, 0, 0, 1.0, 0, 0, 0]])
    closed = np.zeros((1, max(1, len(compiled.openables))), bool)
    shot = Shot((middle + back * reach)[None], matrix[None], closed, np.array([-1]), still, field_of_view)
    drawing = make_renderer(renderer, [compiled], 1, 2 * size, culled=True)
    view = drawing.draw(shot, ("rgb", "ids"))
    drawing.close()
    picture = view.rgb[0].cpu().numpy()
    picture[view.ids[0].cpu().numpy() < 0] = PAPER
    return shrunk(picture, size)
