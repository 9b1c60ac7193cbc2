"""Tiling textures: wood, stone, fabric, metal, food, walls. Each is light and takes its color from a tint.

All are drawn from periodic noise, which tiles seamlessly. Fine contrast is low, since not every renderer has mipmaps;
materials are recognizable by large features: streaks, joints, veins, blotches.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rng = np.random.Generator


def smooth(low: float, high: float, value: np.ndarray) -> np.ndarray:
    """Smoothstep: 0 below `low`, 1 above `high`."""
    t = np.clip((value - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def noise(rng: Rng, height: int, width: int, rows: int, columns: int) -> np.ndarray:
    """Periodic value noise in [0, 1], (height, width), from a rows x columns lattice."""
    lattice = rng.random((rows, columns))
    for axis, size in enumerate((height, width)):
        cells = lattice.shape[axis]
        position = np.arange(size) * (cells / size)
        before = position.astype(int)
        t = smooth(0, 1, position - before).reshape((-1, 1) if axis == 0 else (1, -1))
        start, end = lattice.take(before, axis), lattice.take((before + 1) % cells, axis)
        lattice = start + (end - start) * t
    return lattice


def clouds(rng: Rng, height: int, width: int, rows: int, columns: int, octaves: int = 3) -> np.ndarray:
    """Fractal noise: octaves of periodic noise, each half as strong and twice as fine, scaled to [0, 1]."""
    total = np.zeros((height, width))
    for i in range(octaves):
        total += noise(rng, height, width, rows << i, columns << i) / (1 << i)
    return (total - total.min()) / (total.max() - total.min())


def grey(value: np.ndarray) -> np.ndarray:
    """A brightness (h, w) as an image (h, w, 3)."""
    return np.repeat(value[..., None], 3, axis=-1)


def mix(first, second, share: np.ndarray) -> np.ndarray:
    """Blends colors or images by a share (h, w) in [0, 1]."""
    first, second = np.asarray(first, float), np.asarray(second, float)
    return first + (second - first) * share[..., None]


def mix_value(first, second, share: np.ndarray) -> np.ndarray:
    """Blends brightnesses by a share."""
    return first + (second - first) * share


def edges(size: int, count: int, width: float, shift: np.ndarray | int = 0) -> np.ndarray:
    """1 on the `count` joints of a row of `size` pixels, 0 between, with soft sides; `shift` in pixels."""
    period = size / count
    distance = (np.arange(size) + 0.5 + shift) % period
    return 1 - smooth(width / 2 - 0.5, width / 2 + 1, np.minimum(distance, period - distance))


def courses(
    rng: Rng, height: int, width: int, columns: int, joint: float, shifts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Courses of bricks or tiles, each offset by its entry of `shifts`, in bricks.

    Returns the joints' mask (h, w) and one random number per brick (h, w).
    """
    rows = len(shifts)
    row = np.arange(height) * rows // height
    offset = np.round(shifts * (width / columns)).astype(int)[:, None]
    upright = edges(width, columns, joint, offset)[row]
    brick = ((np.arange(width) + offset) % width * columns // width)[row]
    return np.maximum(edges(height, rows, joint)[:, None], upright), rng.random((rows, columns))[row[:, None], brick]


def grain(rng: Rng, height: int, width: int, rings: int) -> np.ndarray:
    """Streaks along the columns that swell around knots, 0 to 1."""
    profile = clouds(rng, 1, 1024, 1, rings, 2)[0]
    bend = 0.11 * noise(rng, height, width, 2, 3) + 0.012 * noise(rng, height, width, 5, 8)
    across = np.arange(width) / width + bend
    pores = noise(rng, height, width, 3, width // 3)
    return 0.8 * profile[(across * 1024).astype(int) % 1024] + 0.2 * pores


def plain(rng: Rng, variant: int) -> np.ndarray:
    """White."""
    return np.ones((4, 4, 3))


def wood(rng: Rng, variant: int) -> np.ndarray:
    """Furniture's grain, along v."""
    streaks = grain(rng, 128, 128, 15)
    return mix([0.7, 0.64, 0.59], [1, 1, 1], smooth(0, 0.75, streaks)) * grey(0.94 + 0.06 * noise(rng, 128, 128, 2, 2))


def planks(rng: Rng, variant: int) -> np.ndarray:
    """Floor boards of 20 cm along v, each with its own tone; variant 2 is narrower and shorter, 3 wider."""
    size, boards = 240, (10, 10, 12, 8)[variant]
    streaks = grain(rng, size, size, 32)
    ends = (rng.permutation(boards) + 0.5) / boards
    joints, tone = (board.T for board in courses(rng, size, size, 1 + (variant == 2), 3, ends))
    warm = mix([1, 1, 1], [1, 0.97, 0.92], tone)
    return warm * grey((0.83 + 0.17 * tone - 0.16 * (1 - streaks)) * (1 - 0.25 * joints))


def tiles(rng: Rng, variant: int) -> np.ndarray:
    """Square tiles of 20 cm; variant 1 is a checkerboard of 30 cm, 2 a mosaic of 10 cm, 3 a running bond."""
    size, (rows, columns) = 132, ((3, 3), (2, 2), (6, 6), (4, 2))[variant]
    joints, tone = courses(rng, size, size, columns, 3.5, np.arange(rows) % 2 * (0.5 if variant == 3 else 0))
    if variant == 1:
        half = np.arange(size) * 2 // size
        tone = 3.0 * (half[:, None] == half) - 2.0
    face = 0.93 + 0.05 * tone + 0.04 * (clouds(rng, size, size, 3, 3) - 0.5)
    return grey(mix_value(face, 0.66, joints))


def marble(rng: Rng, variant: int) -> np.ndarray:
    """Pale stone with dark veins, long and short."""
    size = 192
    stone = 0.9 + 0.1 * clouds(rng, size, size, 3, 3)
    veins = np.zeros((size, size))
    for cells, width, strength in ((2, 0.045, 0.32), (3, 0.03, 0.2), (5, 0.03, 0.1)):
        field = clouds(rng, size, size, cells, cells, 4)
        swell = noise(rng, size, size, 4, 4)
        veins = np.maximum(veins, strength * swell * (1 - smooth(0, width * 2, np.abs(field - 0.5))))
    return mix([1, 0.99, 0.97], [0.96, 0.98, 1], noise(rng, size, size, 2, 2)) * grey(stone - veins)


def granite(rng: Rng, variant: int) -> np.ndarray:
    """Speckled stone: dark and light grains on blotches."""
    size = 128
    body = 0.78 + 0.14 * clouds(rng, size, size, 5, 5)
    dark = smooth(0.62, 0.85, noise(rng, size, size, 30, 30))
    light = smooth(0.66, 0.9, noise(rng, size, size, 24, 24))
    return mix([1, 1, 1], [0.94, 0.9, 0.88], noise(rng, size, size, 18, 18)) * grey(body - 0.24 * dark + 0.14 * light)


def brick(rng: Rng, variant: int) -> np.ndarray:
    """Bricks of 25 x 8 cm in light mortar."""
    return bricks(rng, 192, 128, 12, 4)


def bricks(rng: Rng, height: int, width: int, rows: int, columns: int) -> np.ndarray:
    """Courses of bricks that differ in tone and warmth."""
    joints, tone = courses(rng, height, width, columns, 3, np.arange(rows) % 2 / 2)
    body = 0.68 + 0.2 * tone + 0.12 * (clouds(rng, height, width, 12, 8) - 0.5)
    warm = mix([1, 0.95, 0.9], [1, 1, 1], (tone * 7) % 1)
    return mix(warm * grey(body), [0.98, 0.98, 0.97], 0.7 * joints)


def plaster(rng: Rng, variant: int) -> np.ndarray:
    """Painted plaster: faint clouds and trowel marks."""
    return grey(0.9 + 0.08 * clouds(rng, 96, 96, 3, 3, 4) + 0.02 * noise(rng, 96, 96, 30, 12))


def carpet(rng: Rng, variant: int) -> np.ndarray:
    """Pile that lies this way and that; odd variants are flecked."""
    pile = 0.74 + 0.2 * clouds(rng, 128, 128, 4, 4, 3) + 0.1 * (noise(rng, 128, 128, 42, 42) - 0.5)
    flecks = smooth(0.72, 0.9, noise(rng, 128, 128, 20, 20)) * (variant % 2)
    return mix(grey(pile), [1, 0.97, 0.9], 0.6 * flecks)


def woven(rng: Rng, variant: int) -> np.ndarray:
    """Threads over and under each other."""
    size, threads = 64, (4, 2, 6, 8)[variant]
    cell = np.arange(size) * threads / size
    bulge = 1 - (2 * (cell % 1) - 1) ** 2
    over = (cell.astype(int)[:, None] + cell.astype(int)) % 2 == 0
    thread = np.where(over, 0.96 * bulge[:, None] ** 0.5, 0.86 * bulge[None, :] ** 0.5)
    return grey(0.72 + 0.23 * thread + 0.06 * (noise(rng, size, size, 5, 5) - 0.5))


INKS = np.array(
    [[0.5, 0.62, 0.86], [0.86, 0.5, 0.48], [0.5, 0.74, 0.58], [0.9, 0.74, 0.42], [0.66, 0.54, 0.8], [0.5, 0.56, 0.6]]
)
"""Of printed fabrics; light, since the tint darkens them."""


def printed(rng: Rng, variant: int) -> np.ndarray:
    """Fabric with dots, stripes, flowers, checks, zigzags, diamonds, leaves or broad bands, in turn."""
    size = 128
    pattern = PATTERNS[variant % len(PATTERNS)]
    first, second = INKS[rng.permutation(len(INKS))[:2]]
    cloth = grey(0.97 + 0.03 * noise(rng, size, size, 30, 30))
    y, x = np.meshgrid(np.arange(size) + 0.5, np.arange(size) + 0.5, indexing="ij")
    for share, ink in zip(pattern(x / size, y / size), (first, second), strict=False):
        cloth = mix(cloth, ink, share)
    return cloth


def inside(signed: np.ndarray, soft: float = 0.012) -> np.ndarray:
    """A mask of where a signed distance is positive, with a soft border."""
    return smooth(-soft, soft, signed)


def staggered_offsets(x: np.ndarray, y: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets from the nearest point of a staggered grid, in cells, and which of the two sub-grids it belongs to."""
    a, b = x * count, y * count
    dx, dy = (a % 1) - 0.5, (b % 1) - 0.5
    ex, ey = (a + 0.5) % 1 - 0.5, (b + 0.5) % 1 - 0.5
    other = ex**2 + ey**2 < dx**2 + dy**2
    return np.where(other, ex, dx), np.where(other, ey, dy), other


def dots(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Round spots in two inks."""
    dx, dy, other = staggered_offsets(x, y, 3)
    spot = inside(0.24 - np.sqrt(dx**2 + dy**2), 0.04)
    return spot * ~other, spot * other


def stripes(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Broad stripes with thin ones between, along v."""
    return inside(0.25 - np.abs(x * 4 % 1 - 0.5), 0.04), inside(0.04 - np.abs((x * 4 + 0.5) % 1 - 0.5), 0.03)


def flowers(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Five petals around a heart."""
    dx, dy, other = staggered_offsets(x, y, 2)
    radius = np.sqrt(dx**2 + dy**2)
    cosine = dx / np.maximum(radius, 1e-6)
    # The fifth Chebyshev polynomial is cos of five times the angle: five petals without an arc tangent.
    petals = 16 * cosine**5 - 20 * cosine**3 + 5 * cosine
    size = np.where(other, 0.2, 0.26)
    return inside(size * (1 + 0.3 * petals) - radius, 0.03), inside(0.09 - radius, 0.03)


def checks(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Gingham."""
    across, down = inside(0.25 - np.abs(x * 4 % 1 - 0.5), 0.03), inside(0.25 - np.abs(y * 4 % 1 - 0.5), 0.03)
    return (0.45 * (across + down),)


def zigzags(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Broad and thin zigzags."""
    wave = y * 4 + 0.45 * np.abs(x * 4 % 2 - 1)
    return inside(0.2 - np.abs(wave % 1 - 0.5), 0.05), inside(0.05 - np.abs((wave + 0.5) % 1 - 0.5), 0.03)


def diamonds(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Diamonds in diamonds."""
    far = np.abs(x * 3 % 1 - 0.5) + np.abs(y * 3 % 1 - 0.5)
    return inside(0.36 - far, 0.04), inside(0.12 - far, 0.04)


def leaves(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Leaves that lean left and right."""
    dx, dy, other = staggered_offsets(x, y, 3)
    lean = np.where(other, 0.5, -0.5)
    along, across = dy + lean * dx, dx - lean * dy
    blade = inside(0.13 - 0.9 * along**2 - np.abs(across), 0.03)
    return blade * ~other, blade * other


def bands(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Two broad and thin bands across."""
    return inside(0.16 - np.abs(y - 0.5), 0.01), inside(0.045 - np.abs((y + 0.18) % 0.5 - 0.25), 0.01)


PATTERNS: tuple[Callable, ...] = (dots, stripes, flowers, checks, zigzags, diamonds, leaves, bands)


def metal(rng: Rng, variant: int) -> np.ndarray:
    """Brushed along v, with broad soft reflections."""
    brush = noise(rng, 128, 128, 2, 40)
    return grey(0.74 + 0.2 * noise(rng, 128, 128, 1, 5) + 0.08 * (brush - 0.5) + 0.05 * noise(rng, 128, 128, 2, 18))


def leather(rng: Rng, variant: int) -> np.ndarray:
    """Grain between fine creases, worn in places."""
    field = noise(rng, 128, 128, 20, 26)
    creases = 1 - smooth(0, 0.16, np.abs(field - 0.5))
    return grey(0.84 + 0.14 * clouds(rng, 128, 128, 3, 3) - 0.1 * creases)


def paper(rng: Rng, variant: int) -> np.ndarray:
    """Nearly even, with fibres."""
    return grey(0.94 + 0.04 * clouds(rng, 64, 64, 4, 4) + 0.02 * noise(rng, 64, 64, 8, 24))


def leaf(rng: Rng, variant: int) -> np.ndarray:
    """A plant's green: light and dark patches, yellower where it is light."""
    patch = clouds(rng, 96, 96, 4, 3)
    ribs = 1 - smooth(0, 0.12, np.abs(noise(rng, 96, 96, 8, 8) - 0.5))
    return mix([0.6, 0.68, 0.66], [1, 1, 0.9], patch) * grey(0.94 + 0.06 * ribs)


def bread(rng: Rng, variant: int) -> np.ndarray:
    """Crust, browner in patches and dusted with flour."""
    baked = clouds(rng, 96, 96, 3, 3, 3)
    flour = smooth(0.6, 0.9, clouds(rng, 96, 96, 6, 6, 2))
    return mix(mix([1, 0.96, 0.9], [0.68, 0.58, 0.5], smooth(0.2, 0.95, baked)), [1, 1, 1], 0.45 * flour)


def skin(rng: Rng, variant: int) -> np.ndarray:
    """Fruit and vegetables: a blush, and small pale freckles."""
    blush = clouds(rng, 96, 96, 2, 2)
    freckles = smooth(0.75, 0.92, noise(rng, 96, 96, 16, 16))
    return mix([0.8, 0.78, 0.76], [1, 1, 0.97], blush) * grey(0.95 + 0.05 * freckles)


def shade(rng: Rng, variant: int) -> np.ndarray:
    """A lampshade's cloth, pleated along v."""
    pleats = np.abs(np.arange(96) / 96 * 12 % 1 - 0.5) * 2
    return grey(0.88 + 0.1 * smooth(0, 1, pleats)[None, :] + 0.02 * noise(rng, 96, 96, 24, 24))


WALL = (256, 128)
"""Pixels of a wall's 2.5 m x 1 m."""


def wall(rng: Rng, variant: int) -> np.ndarray:
    """A wall from the ceiling to the floor: 0 paint, 1 wainscot, 2 striped paper, 3 half tiles, 4 all tiles, 5 brick.

    Includes a skirting board, and shade above it and below the ceiling, since rooms have no cast shadows.
    """
    height = np.linspace(2.5, 0, WALL[0])[:, None] + np.zeros(WALL)
    drawn = WALLS[variant](rng, height)
    shade = 0.2 * np.clip(1 - height / 0.7, 0, 1) ** 2 + 0.14 * np.clip(1 - (2.5 - height) / 0.5, 0, 1) ** 2
    drawn = drawn * grey(1 - shade)
    if variant in (3, 4):
        return drawn
    skirting = mix_value(0.97, 0.6, inside(height - 0.092, 0.01) + inside(0.012 - height, 0.01))
    return mix(drawn, grey(skirting), inside(0.105 - height, 0.006))


def painted(rng: Rng, height: np.ndarray) -> np.ndarray:
    """Plaster under paint."""
    return grey(0.9 + 0.04 * clouds(rng, *WALL, 5, 2, 4))


def wainscot(rng: Rng, height: np.ndarray) -> np.ndarray:
    """Panels up to a rail at 95 cm, darker paint above."""
    u = np.arange(WALL[1]) / WALL[1] * 2 % 1
    frame = np.minimum((0.5 - np.abs(u - 0.5))[None, :] * 0.5, np.minimum(height - 0.16, 0.84 - height))
    groove = inside(0.014 - np.abs(frame - 0.06), 0.012)
    panel = mix_value(0.97, 0.92, inside(frame - 0.06)) - 0.22 * groove
    rail = inside(0.03 - np.abs(height - 0.92), 0.008)
    lower = mix_value(mix_value(panel, 1.0, rail), 0.68, inside(0.012 - np.abs(height - 0.88), 0.01))
    return mix(grey(lower), painted(rng, height) * [0.88, 0.9, 0.92], inside(height - 0.95, 0.008))


def wallpaper(rng: Rng, height: np.ndarray) -> np.ndarray:
    """Stripes of two widths."""
    u = np.arange(WALL[1]) / WALL[1] * 6 % 1
    broad, thin = inside(0.25 - np.abs(u - 0.5), 0.04), inside(0.035 - np.abs((u + 0.5) % 1 - 0.5), 0.04)
    return painted(rng, height) * mix([1.04, 1.04, 1.04], [0.84, 0.83, 0.84], broad + 0.5 * thin)


def tiled(rng: Rng, height: np.ndarray) -> np.ndarray:
    """Tiles of 20 x 20 cm."""
    joints, tone = courses(rng, *WALL, 5, 3, np.zeros(12))
    return grey(mix_value(0.95 + 0.04 * tone, 0.79, joints))


def half_tiled(rng: Rng, height: np.ndarray) -> np.ndarray:
    """Tiles up to a dark border at 1.35 m, paint above."""
    lower = mix(tiled(rng, height), [0.55, 0.6, 0.66], inside(0.035 - np.abs(height - 1.3), 0.01))
    return mix(lower, painted(rng, height) * [0.93, 0.93, 0.92], inside(height - 1.345, 0.008))


def brick_wall(rng: Rng, height: np.ndarray) -> np.ndarray:
    """Bricks of 25 x 10 cm."""
    return bricks(rng, *WALL, 24, 4)


WALLS: tuple[Callable, ...] = (painted, wainscot, wallpaper, half_tiled, tiled, brick_wall)
