"""Frames: images rendered again from what was recorded are the same images."""

import numpy as np
import pytest
import torch
from helpers import renderers

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.rooms.room import GOALS
from scrubjay.sim.world import World
from scrubjay.training.augmentation import Augmentation
from scrubjay.training.frames import from_tensors, record_frames, render_frames, to_tensors
from scrubjay.training.rollout import Collector

SIZE = 56


def shuffle_state(world: World, rng: np.random.Generator) -> None:
    """Agents anywhere, things open or closed, goal objects before them or none."""
    s, count = world.state, len(world)
    s.position, s.rotation = rng.uniform(-1.0, 1.0, (count, 2)), rng.uniform(0, 360, count)
    s.standing, s.open = rng.random(count) < 0.5, rng.random(s.open.shape) < 0.5
    s.goal = rng.integers(-1, len(GOALS), count)
    s.pose = np.concatenate(
        [rng.uniform(-1, 1, (count, 2)), rng.uniform(0.3, 1.2, (count, 1)), rng.normal(size=(count, 4))], 1
    )
    s.pose[:, 3:] /= np.linalg.norm(s.pose[:, 3:], axis=1, keepdims=True)


@pytest.mark.parametrize("how", renderers())
@pytest.mark.parametrize("augmented", [False, True])
def test_frames_are_rendered_again_bit_by_bit(how, augmented, chest, empty):
    """In another order, other batches, and a world with another number of copies."""
    rng, frames, images = np.random.default_rng(0), [], []
    with World([chest, empty], copies=3, size=SIZE, **how) as world:
        augmentation = Augmentation(len(world), 1, how.get("device", "cpu")) if augmented else None
        for _ in range(8):
            shuffle_state(world, rng)
            frames.append(record_frames(world, augmentation))
            image = world.view().rgb
            images.append(image if augmentation is None else augmentation(image))
            if augmentation is not None:
                augmentation.resample(rng.random(len(world)) < 0.5)
    saved, expected = np.concatenate(frames), torch.cat(images)
    assert len({image.cpu().numpy().tobytes() for image in expected}) > 40, "the images differ"
    order = rng.permutation(len(saved))
    with World([chest, empty], copies=1, size=SIZE, **how) as world:
        again = from_tensors(to_tensors(saved), saved.shape, world)
        for part in np.array_split(order, (1, 2, 20)):
            assert torch.equal(render_frames(world, again[part], augmented), expected[part])


def test_a_rollouts_frames_give_its_images(chest, empty):
    """Whole games in two worlds, with new samples of augmentation where games end."""
    torch.manual_seed(0)
    worlds = [World([chest, empty], copies=2, size=SMALL.image_size) for _ in range(2)]
    games = [
        CacheGame(world, RandomEpisodes(k, turned=True), np.array([3, 1, 3, 2, 3])) for k, world in enumerate(worlds)
    ]
    collector = Collector(Agent(SMALL), games, seed=1, augmented=True, record_frames=True)
    collector.collect(5)
    rollout = collector.collect(24)
    assert collector.frames is not None and collector.frames.shape == rollout.action.shape == (24, 8)
    assert rollout.stages == {0, 1, 2, 3, 4} and rollout.is_first.sum() >= 8
    image = render_frames(worlds[1], collector.frames.flatten(), augmented=True)
    assert torch.equal(image, rollout.observation.image.flatten(0, 1))
    for world in worlds:
        world.close()


def test_frames_that_a_world_cannot_render_are_refused(chest, empty):
    with World([chest], size=SIZE) as world:
        frames = record_frames(world, None)
        good = to_tensors(frames)
        assert from_tensors(good, (1,), world) == frames
        for name, bad, message in (
            ("room", torch.tensor([1], dtype=torch.int32), "room is not from 0 to 0"),
            ("goal", torch.tensor([5], dtype=torch.int32), "goal is not from -1 to 4"),
            ("pose", torch.full((1, 7), torch.nan, dtype=torch.float64), "pose is not finite"),
            ("pose", torch.zeros(1, 6, dtype=torch.float64), "pose is float64"),
            ("rotation", torch.zeros(1), "rotation is float32"),
        ):
            with pytest.raises(ValueError, match=message):
                from_tensors(good | {name: bad}, (1,), world)
        with pytest.raises(ValueError, match="crop is missing"):
            from_tensors({name: tensor for name, tensor in good.items() if name != "crop"}, (1,), world)
    with World([empty], size=SIZE) as world, pytest.raises(ValueError, match="open is bool"):
        from_tensors(good, (1,), world)
