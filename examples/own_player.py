"""A player of your own: a seeker that follows the wall, opens drawers, and claims whenever it may see the object."""

import numpy as np

import scrubjay
from scrubjay import action_index

AHEAD, RIGHT, OPEN, CLAIM = map(action_index, ("MoveAhead", "RotateRight", "OpenAt|4,4", "ClaimVisible"))


class WallFollower:
    """A player maps the games and a mask of those it plays to actions (B,) and, in PS, places (B, 4)."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def __call__(self, game, games):
        blocked = (game.last_action == AHEAD) & ~game.last_success
        action = np.where(blocked, RIGHT, AHEAD)
        action = np.where(self.rng.random(len(game)) < 0.2, OPEN, action)
        visible, near = game.in_sight()  # What the rules check for a claim; a fair player would look at the image.
        action = np.where(visible & near, CLAIM, action)
        return np.where(games, action, -1), np.zeros((len(game), 4), int)


record = scrubjay.play("random", WallFollower(), "FloorPlan401", "Plunger", size=112, limits=(10, 1, 5, 10, 60))
print(f"{record.goal} in {record.scene}: {'found' if record.found else 'not found'} after {len(record.actions)} steps")

# The same episodes for everyone: how does it compare with chance?
for name, seeker in {"wall follower": WallFollower(), "random": "random"}.items():
    scores = scrubjay.evaluate(seeker, "seek", scenes=["FloorPlan421"], games=2, size=112)
    print(f"{name:>14}: finds {scores['found'].mean:.0%} of {scores['found'].games} objects")
