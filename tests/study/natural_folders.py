"""Small folders in the forms of SUN397, NYUv2 and ViRB, of noise."""

from pathlib import Path

import numpy as np
from PIL import Image
from torch import nn

from scrubjay.agent.encoder import Encoded
from scrubjay.study.encoders import StudyEncoder

CLASSES = ("a/abbey", "k/kitchen", "o/outhouse/outdoor")
FLOOR = 16
"""The row at which the floor of a `room` begins."""
FORMATS = ("JPEG", "PNG", "GIF", "BMP")
"""Of SUN397's pictures, whatever their names end in."""


class Means(nn.Module):
    """Features are the means of patches; the four finer scales are those of smaller ones."""

    def __init__(self, skips: bool = True) -> None:
        super().__init__()
        self.skips = skips

    def forward(self, image):
        pixels = image.permute(0, 3, 1, 2).float() / 255
        sir, *skips = (nn.functional.adaptive_avg_pool2d(pixels, size) for size in (7, 112, 56, 28, 14))
        return Encoded(image, sir, sir.mean((2, 3)), tuple(skips) if self.skips else ())


def means(name: str = "means", skips: bool = True) -> StudyEncoder:
    return StudyEncoder(name, Means(skips), "none", kind=name)


def noise(seed: int, height: int = 30, width: int = 40, block: int = 5) -> np.ndarray:
    """A coarse picture: noise of blocks of pixels."""
    coarse = np.random.default_rng(seed).integers(0, 256, (height // block, width // block, 3), dtype=np.uint8)
    return coarse.repeat(block, 0).repeat(block, 1)


def room(seed: int) -> np.ndarray:
    """A picture of 7 x 7 random blocks, whose lower part, the floor, is green."""
    picture = noise(seed, 28, 28, 4)
    picture[..., 1] = 20
    picture[FLOOR:, :, 1] = 230
    return picture


def write_sun(folder: Path, train: int = 2, test: int = 2) -> Path:
    """SUN397 of three classes."""
    lists: dict[str, list[str]] = {"Training_01.txt": [], "Testing_01.txt": []}
    for label, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for number in range(train + test):
            path = f"/{name}/sun_{number}.jpg"
            picture = Image.fromarray(noise(100 * label + number, 30 + 5 * number))
            picture.save(f"{folder}{path}", FORMATS[number % len(FORMATS)])
            lists["Training_01.txt" if number < train else "Testing_01.txt"].append(path)
    for name, lines in lists.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def write_nyu(folder: Path, depth: np.ndarray, train=(1,), test=(2, 3, 4)) -> Path:
    """The labelled .mat file of as many pictures as there are depths (n, height, width), and splits.mat."""
    import h5py
    from scipy.io import savemat

    folder.mkdir(parents=True)
    count, height, width = depth.shape
    with h5py.File(folder / "nyu_depth_v2_labeled.mat", "w") as file:
        file["images"] = np.stack([noise(number, height, width).transpose(2, 1, 0) for number in range(count)])
        file["depths"] = depth.transpose(0, 2, 1).astype(np.float32)
    savemat(folder / "splits.mat", {"trainNdxs": np.array(train)[:, None], "testNdxs": np.array(test)[:, None]})
    return folder


def write_virb(folder: Path, train: int = 2, test: int = 4) -> Path:
    """ViRB's folders of `room`s: depth is 1 to 2 meters, the more the redder."""
    for split, count in (("train", train), ("test", test)):
        for part in ("images", "depths", "walkable"):
            (folder / split / part).mkdir(parents=True)
        for number in range(count):
            image, name = room(number + 10 * (split == "test")), f"{number:06d}"
            depth = 1 + image[..., 0].astype(np.float32) / 255
            walkable = np.zeros(image.shape[:2], np.uint8)
            walkable[FLOOR:] = 255
            Image.fromarray(image).save(folder / split / "images" / f"{name}.png")
            Image.fromarray(depth).save(folder / split / "depths" / f"{name}.tiff")
            Image.fromarray(walkable).save(folder / split / "walkable" / f"{name}.png")
    return folder
