"""Draws docs/images/play.jpg, the README's picture: one game of scripted players. Run it from the repository's root."""

from __future__ import annotations

import argparse
from pathlib import Path

from scrubjay.api import play
from scrubjay.viz.episode import replay_episode
from scrubjay.viz.picture import write_picture
from scrubjay.viz.storyboard import draw_storyboard

SIZE = 448
"""Rendered at twice the size of a frame, for antialiasing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", default="FloorPlan3")
    parser.add_argument("--goal", default="Tomato")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/images/play.jpg"))
    args = parser.parse_args()
    record = play("heuristic", "frontier", args.scene, args.goal, seed=args.seed, size=SIZE)
    write_picture(args.out, draw_storyboard(replay_episode(record, picture_size=SIZE)))


if __name__ == "__main__":
    main()
