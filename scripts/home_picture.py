"""Draws the home page's picture: an object dropped, shut away, and found. Run it from the repository's root."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from scrubjay.api import play
from scrubjay.files import write_atomically
from scrubjay.viz.episode import replay_episode
from scrubjay.viz.picture import encode_picture, shrink_picture
from scrubjay.viz.storyboard import hider_panels, seeker_panels

RENDERED, FRAME, GAP = 896, 400, 8
"""Pixels: frames are rendered larger, for antialiasing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", default="FloorPlan3")
    parser.add_argument("--goal", default="Tomato")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("src/scrubjay/web/static/home.webp"))
    args = parser.parse_args()
    record = play("heuristic", "frontier", args.scene, args.goal, seed=args.seed, size=448)
    episode = replay_episode(record, picture_size=RENDERED)
    steps = [step for step, _ in (*hider_panels(episode)[-2:], seeker_panels(episode)[-1])]
    picture = np.full((FRAME, 3 * FRAME + 2 * GAP, 4), 0, np.uint8)
    for column, step in enumerate(steps):
        left = column * (FRAME + GAP)
        picture[:, left : left + FRAME, :3] = shrink_picture(step.picture, FRAME)
        picture[:, left : left + FRAME, 3] = 255
    write_atomically(args.out, encode_picture(picture, "WEBP", quality=78))


if __name__ == "__main__":
    main()
