"""Pictures stretched once over a face: paintings, screens, window views, labels, covers, pages, dials, keys.

They have their own colors and are painted on a canvas.
"""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.materials.canvas import DARK, LIGHT, Canvas, Color, tones
from scrubjay.rooms.materials.textures import Rng, clouds, mix, noise, smooth


def ridge(rng: Rng, width: int, level: float, rough: float, cells: int, octaves: int = 3) -> np.ndarray:
    """A skyline about `level`."""
    return level - rough * (clouds(rng, 1, width, 1, cells, octaves)[0] - 0.5)


def picture(rng: Rng, variant: int) -> np.ndarray:
    """A painting: four of each kind, some with a mount around them."""
    canvas = Canvas(128, 128, (0.93, 0.91, 0.85))
    kind, turn = variant % len(PAINTINGS), variant // len(PAINTINGS)
    PAINTINGS[kind](rng, canvas, turn)
    if (kind + turn) % 4 == 1:
        canvas.paint(np.maximum(np.abs(canvas.x - 0.5), np.abs(canvas.y - 0.5)) - 0.39, (0.95, 0.94, 0.9))
    return canvas.pixels * (0.95 + 0.08 * noise(rng, 128, 128, 14, 40)[..., None])


LIGHTS: tuple[tuple[Color, Color], ...] = (
    ((0.35, 0.6, 0.88), (0.85, 0.93, 0.98)), ((0.93, 0.5, 0.32), (1, 0.88, 0.6)),
    ((0.75, 0.78, 0.72), (0.97, 0.93, 0.8)), ((0.42, 0.36, 0.6), (0.98, 0.72, 0.55)),
)  # fmt: skip
"""The sky's colors above and at the horizon: day, sunset, haze, dusk."""


def landscape(rng: Rng, c: Canvas, turn: int) -> None:
    """Hills before hills, and a sun."""
    c.gradient(*LIGHTS[turn % len(LIGHTS)], end=0.6)
    c.disc(rng.uniform(0.2, 0.8), rng.uniform(0.15, 0.35), rng.uniform(0.07, 0.12), (1, 0.95, 0.7))
    near = np.array(((0.16, 0.36, 0.12), (0.42, 0.24, 0.1), (0.24, 0.26, 0.1), (0.1, 0.3, 0.26))[turn % 4])
    far = np.array([0.6, 0.65, 0.76])
    for i in range(4):
        c.ground(ridge(rng, c.shape[1], 0.5 + 0.13 * i, 0.26 - 0.03 * i, 2 + i), far + (near - far) * i / 3)
    for _ in range(rng.integers(0, 5)):
        x, y = rng.uniform(0.1, 0.9), rng.uniform(0.72, 0.9)
        c.line((x, y), (x, y - 0.08), 0.02, (0.3, 0.2, 0.12))
        c.disc(x, y - 0.12, 0.05, near * 0.6, 1.4)


def squares(rng: Rng, c: Canvas, turn: int) -> None:
    """Black bars, white fields, some of them red, blue and yellow."""
    xs, ys = (np.sort(rng.choice(np.arange(1, 8), 3, replace=False) / 8) for _ in range(2))
    columns, rows = [0, *xs, 1], [0, *ys, 1]
    for i, field in enumerate(rng.permutation(16)[:6]):
        a, b = field % 4, field // 4
        ink = ((0.85, 0.12, 0.1), (0.12, 0.25, 0.65), (0.97, 0.82, 0.15))[i % 3]
        c.box(columns[a], rows[b], columns[a + 1], rows[b + 1], ink)
    for x, y in zip(xs, ys, strict=True):
        c.box(x - 0.018, 0, x + 0.018, 1, DARK)
        c.box(0, y - 0.018, 1, y + 0.018, DARK)


def portrait(rng: Rng, c: Canvas, turn: int) -> None:
    """A head and shoulders."""
    back, dress = tones(rng, 2, 0.75)
    c.gradient(back, back * 0.45)
    skin = np.array([0.95, 0.76, 0.62]) * rng.uniform(0.5, 1)
    hair = np.array([0.5, 0.3, 0.12]) * rng.uniform(0.2, 1.6)
    if turn % 2:
        c.disc(0.5, 0.45, 0.24, hair, 1.35)
    c.disc(0.5, 1.05, 0.4, dress, 0.95)
    c.box(0.42, 0.5, 0.58, 0.72, skin * 0.85)
    c.disc(0.5, 0.4, 0.17, skin, 1.3)
    c.paint(np.minimum(0.185 - np.sqrt((c.x - 0.5) ** 2 + ((c.y - 0.37) / 1.25) ** 2), 0.3 - c.y), hair)
    for side in (-0.07, 0.07):
        c.disc(0.5 + side, 0.39, 0.022, (0.12, 0.08, 0.06), 0.8)
    c.line((0.45, 0.53), (0.55, 0.53), 0.022, (0.65, 0.22, 0.2))
    c.paint(0.06 - np.abs(c.x - 0.5) - 0.5 * np.maximum(c.y - 0.7, 0.7 - c.y), (0.96, 0.95, 0.9))


def seascape(rng: Rng, c: Canvas, turn: int) -> None:
    """Water with boats under a high sky."""
    horizon = rng.uniform(0.42, 0.6)
    c.gradient(*LIGHTS[turn % len(LIGHTS)], end=horizon)
    c.paint(clouds(rng, *c.shape, 4, 2) - 0.62 - c.y * 0.3, (0.98, 0.97, 0.95), 0.8)
    water = mix((0.25, 0.5, 0.66), (0.05, 0.22, 0.42), np.clip((c.y - horizon) / (1 - horizon), 0, 1))
    c.paint(c.y - horizon, mix(water, (0.7, 0.85, 0.9), 0.35 * smooth(0.6, 0.7, noise(rng, *c.shape, 18, 4))))
    for _ in range(rng.integers(1, 4)):
        x, y = rng.uniform(0.15, 0.85), horizon + rng.uniform(0.04, 0.3)
        size = 0.1 + 0.5 * (y - horizon)
        c.paint(np.minimum(0.6 * size - np.abs(c.x - x) - (c.y - y), 0.16 * size - np.abs(c.y - y)), (0.35, 0.16, 0.1))
        across, up = c.x - x + 0.02, y - 0.16 * size - c.y
        c.paint(np.minimum(np.minimum(across, up), 0.55 * size - 0.65 * across - 0.4 * up), LIGHT)
        c.line((x - 0.02, y), (x - 0.02, y - 1.5 * size), 0.014, (0.25, 0.15, 0.1))


def flowers(rng: Rng, c: Canvas, turn: int) -> None:
    """A vase on a table."""
    table, glaze, *inks = tones(rng, 5)
    wall = tones(rng, 1, pale=0.55)[0]
    c.gradient(wall, wall * 0.85)
    c.box(-1, 0.78, 2, 2, table * 0.6)
    heads = [(rng.uniform(0.2, 0.8), rng.uniform(0.12, 0.45)) for _ in range(rng.integers(5, 9))]
    for head in heads:
        c.line((0.5, 0.62), head, 0.018, (0.16, 0.4, 0.16))
    c.disc(0.5, 0.56, 0.13, (0.2, 0.45, 0.18), 0.6)
    for i, (x, y) in enumerate(heads):
        for dx, dy in ((0.05, 0), (-0.05, 0), (0, 0.05), (0, -0.05)):
            c.disc(x + dx, y + dy, 0.045, inks[i % 3])
        c.disc(x, y, 0.032, (0.98, 0.85, 0.3))
    c.disc(0.5, 0.76, 0.15, glaze, 1.0)
    c.box(0.43, 0.56, 0.57, 0.68, glaze)
    c.disc(0.45, 0.72, 0.035, glaze * 0.4 + 0.6, 2)


def circles(rng: Rng, c: Canvas, turn: int) -> None:
    """Discs and rings over each other, and a few strokes."""
    c.pixels[:] = LIGHT * rng.uniform(0.85, 1)
    for _ in range(7):
        (x, y), radius, (outer, inner) = rng.uniform(0.1, 0.9, 2), rng.uniform(0.07, 0.22), tones(rng, 2)
        c.disc(x, y, radius, outer, share=0.85)
        c.disc(x, y, radius * 0.55, inner)
    x, y = rng.uniform(0.3, 0.7, 2)
    c.ring(x, y, 0.28, 0.03, DARK)
    for _ in range(4):
        c.line(rng.random(2), rng.random(2), 0.02, DARK)


def quilt(rng: Rng, c: Canvas, turn: int) -> None:
    """A grid of fields, each in two colors, divided straight, slantwise or around."""
    count = int(rng.integers(3, 6))
    inks = [*tones(rng, 3), LIGHT]
    for i in range(count * count):
        left, top, edge = i % count / count, i // count / count, 1 / count
        one, two = rng.permutation(4)[:2]
        c.box(left, top, left + edge, top + edge, inks[one])
        part = c.part(left, top, left + edge, top + edge)
        x, y = part.x - left - edge / 2, part.y - top - edge / 2
        within = edge / 2 - np.maximum(np.abs(x), np.abs(y))
        slant = np.minimum(within, x - y if i % 2 else x + y)
        part.paint((slant, edge * 0.36 - np.sqrt(x**2 + y**2), within - edge * 0.22)[turn % 3], inks[two])


def peaks(rng: Rng, c: Canvas, turn: int) -> None:
    """Mountains with snow, or a town at night, before a moon."""
    night = turn % 2 == 1
    above, horizon = ((0.05, 0.08, 0.22), (0.35, 0.3, 0.5)) if night else LIGHTS[turn % len(LIGHTS)]
    c.gradient(above, horizon, end=0.8)
    c.disc(rng.uniform(0.2, 0.8), 0.2, 0.08, (0.98, 0.96, 0.85))
    if night:
        for x in np.arange(0, 1, 0.125):
            top = rng.uniform(0.4, 0.75)
            c.box(x, top, x + 0.115, 1, np.array([0.1, 0.1, 0.17]) * rng.uniform(0.8, 1.8))
            for window in rng.permutation(8)[:4]:
                left, y = x + 0.02 + 0.05 * (window % 2), top + 0.05 + 0.1 * (window // 2)
                c.box(left, y, left + 0.03, y + 0.05, (1, 0.85, 0.4))
        return
    for level, rock in ((0.5, (0.5, 0.53, 0.65)), (0.68, (0.32, 0.34, 0.42))):
        saw = np.abs((c.x[0] * rng.uniform(1.5, 2.5) + rng.random()) % 1 - 0.5) * 2
        skyline = level - 0.36 * saw + 0.08 * clouds(rng, 1, c.shape[1], 1, 6)[0]
        c.ground(skyline, rock)
        snow_line = 0.14 + 0.6 * skyline.min() + 0.4 * skyline
        c.paint(np.minimum(c.y - skyline, snow_line - c.y), (0.97, 0.98, 1))
    c.ground(ridge(rng, c.shape[1], 0.82, 0.08, 8), (0.12, 0.26, 0.18))


PAINTINGS = landscape, squares, portrait, seascape, flowers, circles, quilt, peaks


def sky(rng: Rng, variant: int) -> np.ndarray:
    """What a window shows: clouds, hills, and by turns trees, roofs, fields or a town."""
    c = Canvas(128, 160, 1)
    evening, day = ((0.62, 0.66, 0.85), (1, 0.86, 0.72)), ((0.5, 0.71, 0.95), (0.9, 0.95, 0.99))
    above, horizon = evening if variant % 4 == 3 else day
    c.gradient(above, horizon, end=0.65)
    cloud = smooth(0.5, 0.8, clouds(rng, *c.shape, 4, 3, 4)) * (1 - smooth(0.3, 0.65, c.y))
    c.pixels = mix(c.pixels, (1, 0.99, 0.97), 0.85 * cloud)
    for level, color in ((0.62, (0.62, 0.72, 0.8)), (0.7, (0.5, 0.64, 0.56)), (0.78, (0.45, 0.6, 0.36))):
        c.ground(ridge(rng, c.shape[1], level, 0.12, 3), color)
    if variant % 4 == 1:
        for x in np.arange(-0.05, 1, 0.21):
            wide, top, roof = rng.uniform(0.08, 0.12), rng.uniform(0.68, 0.76), rng.uniform(0.7, 1.1)
            c.box(x, top, x + 2 * wide, 2, (0.9, 0.87, 0.8))
            gable = np.minimum(top - c.y + 0.01, c.y - top + wide * 1.1 - np.abs(c.x - x - wide))
            c.paint(gable, np.array([0.68, 0.36, 0.26]) * roof)
            for side in (0.35, 1.25):
                c.box(x + side * wide, top + 0.06, x + (side + 0.4) * wide, top + 0.13, (0.35, 0.42, 0.5))
    elif variant % 4 == 2:
        for x in np.arange(0, 1, 0.13):
            top = rng.uniform(0.35, 0.65)
            c.box(x, top, x + 0.11, 2, np.array([0.6, 0.64, 0.7]) * rng.uniform(0.8, 1.25))
            for y in np.arange(top + 0.05, 1, 0.09):
                c.box(x + 0.02, y, x + 0.09, y + 0.04, (0.42, 0.5, 0.6))
    else:
        for _ in range(7):
            x, y, size = rng.uniform(0, 1), rng.uniform(0.8, 0.95), rng.uniform(0.06, 0.1)
            c.line((x, y + 0.05), (x, y - size), 0.02, (0.36, 0.27, 0.18))
            green = np.array([0.24, 0.45, 0.2]) * rng.uniform(0.8, 1.3)
            c.disc(x, y - size * 1.6, size, green, 1.2)
            c.disc(x - size * 0.3, y - size * 2, size * 0.5, green * 1.25)
    return c.pixels


def screen(rng: Rng, variant: int) -> np.ndarray:
    """Even variants: a television's picture; odd ones: a desktop with windows."""
    if variant % 2 == 0:
        c = Canvas(96, 160, 0.1)
        (landscape, seascape, peaks, portrait)[variant // 2 % 4](rng, c, variant // 2)
        c.box(0.05, 0.82, 0.6, 0.92, (0.1, 0.15, 0.3), 0.8)
        c.box(0.08, 0.85, rng.uniform(0.3, 0.55), 0.89, (0.95, 0.95, 0.97))
        return c.pixels
    c = Canvas(96, 160, 1)
    above, below, *bars = tones(rng, 4)
    c.gradient(above * 0.7, below * 0.9)
    for i, icon in enumerate(tones(rng, 5, pale=0.3)):
        c.box(0.03, 0.06 + 0.15 * i, 0.08, 0.14 + 0.15 * i, icon)
    corners = (0.14, rng.uniform(0.08, 0.2)), (rng.uniform(0.4, 0.5), rng.uniform(0.25, 0.4))
    for (left, top), bar in zip(corners, bars, strict=True):
        right, bottom = left + 0.44, top + 0.52
        c.box(left, top, right, bottom, (0.96, 0.97, 0.98))
        c.box(left, top, right, top + 0.08, bar)
        for y in np.arange(top + 0.13, bottom - 0.05, 0.08):
            c.box(left + 0.03, y, rng.uniform(left + 0.15, right - 0.03), y + 0.035, (0.5, 0.55, 0.62))
    c.box(-1, 0.93, 2, 2, (0.12, 0.14, 0.2))
    return c.pixels


def label(rng: Rng, variant: int) -> np.ndarray:
    """A bottle's or box's label: bands of color, an emblem, bars for words."""
    ink, other = tones(rng, 2)
    ground, ink = (LIGHT, ink) if variant % 3 else (ink, LIGHT)
    c = Canvas(96, 96, ground)
    c.box(-1, -1, 2, 0.16, other)
    c.box(-1, 0.84, 2, 2, other)
    if variant % 4 == 0:
        c.disc(0.5, 0.4, 0.18, ink)
    elif variant % 4 == 1:
        c.box(0.1, 0.25, 0.9, 0.55, ink)
    elif variant % 4 == 2:
        c.paint(0.22 - np.abs(c.x - 0.5) - np.abs(c.y - 0.4), ink)
    else:
        c.line((0.3, 0.5), (0.7, 0.3), 0.16, ink)
    c.disc(0.5, 0.4, 0.08, other)
    c.box(0.18, 0.63, 0.82, 0.69, ink)
    c.box(0.3, 0.74, 0.7, 0.78, ink)
    return c.pixels


def printed_page(rng: Rng, variant: int) -> np.ndarray:
    """A page of text: a headline, a photograph, columns of grey lines."""
    c = Canvas(160, 120, (0.94, 0.93, 0.89))
    c.box(0.08, 0.05, 0.92, 0.12, (0.2, 0.2, 0.22))
    columns = 2 + variant % 2
    wide, photograph = 0.84 / columns, int(rng.integers(columns))
    for column in range(columns):
        left, top = 0.08 + column * wide, 0.18
        if column == photograph:
            c.box(left, top, left + wide - 0.04, top + 0.24, np.array([0.6, 0.64, 0.68]) * rng.uniform(0.8, 1.1))
            top += 0.29
        for y in np.arange(top, 0.94, 0.0375):
            c.box(left, y, left + wide - (0.04 if rng.random() < 0.8 else 0.12), y + 0.018, (0.5, 0.5, 0.51))
    return c.pixels


def cover(rng: Rng, variant: int) -> np.ndarray:
    """A book's cover: cloth, a title bar, an emblem or a picture, the author's line."""
    cloth, second = tones(rng, 2)
    cloth = cloth * rng.uniform(0.6, 1.0)
    c = Canvas(128, 96, cloth)
    if variant % 4 == 0:
        c.disc(0.5, 0.58, 0.2, second, 0.75)
    elif variant % 4 == 1:
        (landscape, seascape, peaks, circles)[variant // 4 % 4](rng, c, variant // 8)
        c.box(-1, 0.06, 2, 0.34, cloth)
    elif variant % 4 == 2:
        c.box(0.1, 0.06, 0.94, 0.08, LIGHT)
        c.box(0.1, 0.92, 0.94, 0.94, LIGHT)
    else:
        c.paint(c.x + c.y - 1.05, second)
    c.box(0.14, 0.12, 0.9, 0.19, LIGHT)
    c.box(0.14, 0.23, rng.uniform(0.5, 0.8), 0.28, LIGHT)
    c.box(0.3, 0.82, 0.74, 0.855, LIGHT)
    c.paint(0.045 - c.x, cloth * 0.6)
    return c.pixels


HOURS = np.array([[0, -1], [0.5, -0.866], [0.866, -0.5], [1, 0], [0.866, 0.5], [0.5, 0.866]])
"""Where the hours from twelve to five are; the others lie opposite."""


def dial(rng: Rng, variant: int) -> np.ndarray:
    """A clock's face with its hands; odd variants are dark."""
    face, ink = ((0.12, 0.14, 0.2), LIGHT) if variant % 2 else ((0.97, 0.96, 0.92), DARK)
    c = Canvas(128, 128, face)
    c.ring(0.5, 0.5, 0.465, 0.03, ink)
    hours = np.concatenate([HOURS, -HOURS])
    for i, hour in enumerate(hours):
        inner = 0.34 if i % 3 == 0 else 0.375
        c.line(0.5 + inner * hour, 0.5 + 0.415 * hour, 0.035 if i % 3 == 0 else 0.022, ink)
    hour, minute = hours[rng.integers(12)], hours[rng.integers(12)]
    c.line((0.5, 0.5), 0.5 + 0.2 * hour, 0.045, ink)
    c.line((0.5, 0.5), 0.5 + 0.32 * minute, 0.03, ink)
    c.disc(0.5, 0.5, 0.035, (0.75, 0.15, 0.12))
    return c.pixels


def keys(rng: Rng, variant: int) -> np.ndarray:
    """A keyboard (0 dark, 1 light), or a telephone's or remote's buttons (2 dark, 3 light)."""
    dark = variant % 2 == 0
    case, key = ((0.13, 0.13, 0.15), (0.33, 0.34, 0.37)) if dark else ((0.72, 0.73, 0.75), (0.96, 0.96, 0.97))
    if variant < 2:
        c = Canvas(96, 256, case)
        for row, inset in enumerate((0, 0.25, 0.4, 0.6)):
            for column in range(14):
                left = 0.02 + (column + inset) * 0.066
                c.box(left, 0.05 + 0.18 * row, min(left + 0.054, 0.98), 0.19 + 0.18 * row, key)
        for left, right in ((0.02, 0.2), (0.24, 0.72), (0.76, 0.98)):
            c.box(left, 0.78, right, 0.93, key)
        return c.pixels
    c = Canvas(128, 64, case)
    c.box(0.15, 0.06, 0.85, 0.2, (0.55, 0.68, 0.6))
    for i in range(15):
        x, y = 0.22 + 0.28 * (i % 3), 0.31 + 0.145 * (i // 3)
        c.disc(x, y, 0.095, (0.8, 0.25, 0.2) if i == 0 else (0.3, 0.65, 0.35) if i == 2 else key, 0.5)
    return c.pixels
