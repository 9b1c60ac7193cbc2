"""Walk at random through two rooms at once, and save what both agents see."""

import numpy as np
from PIL import Image

import scrubjay

rng = np.random.default_rng(0)

with scrubjay.World(["kitchen-81723", "FloorPlan201"], size=224) as world:
    moved = np.zeros(len(world), int)
    for _ in range(50):
        # Every method takes one number per world, -1 for nothing, and returns who succeeded.
        world.rotate(rng.choice([-1, -1, 0, 1], len(world)))
        moved += world.move(np.zeros(len(world), int))
    images = world.view(("rgb",)).rgb.cpu().numpy()

Image.fromarray(np.concatenate(images, axis=1)).save("random_walk.png")
print(f"steps that succeeded, of 50: {moved.tolist()}; the last view is in random_walk.png")
