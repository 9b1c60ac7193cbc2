"""Random actions: nothing breaks, and the same seed and actions give the same events."""

import hashlib
import json
import random
from collections.abc import Iterator

import pytest
from thor.driver import Client
from thor.scripts.random_actions import random_action

SCENES = [f"FloorPlan{first + number}" for first in (0, 200, 300, 400) for number in (1, 8, 15, 22, 29)]


def play(client: Client, scene: str, actions: int, seed: int, **initialize) -> tuple[str, float]:
    """A digest of all events of random actions, and the share that succeeded."""
    rng, digest = random.Random(seed), hashlib.sha256()
    client.reset(scene, **initialize)
    succeeded = 0
    for _ in range(actions):
        action = random_action(rng, client.meta)
        meta = client.step(**action)
        assert "in the engine" not in meta["errorMessage"], (action, meta["errorMessage"])
        assert meta["lastActionSuccess"] == (meta["errorMessage"] == ""), action
        succeeded += meta["lastActionSuccess"]
        digest.update(json.dumps(client.event.message, sort_keys=True).encode())
        for kind in sorted(client.event.images):
            for image in client.event.images[kind]:
                digest.update(image.tobytes())
    return digest.hexdigest(), succeeded / actions


@pytest.fixture
def clients() -> Iterator[tuple[Client, Client]]:
    both = Client(), Client()
    yield both
    for client in both:
        client.engine.close()


@pytest.mark.parametrize("scene", ["FloorPlan28", "FloorPlan402"])
def test_the_same_actions_give_the_same_events(clients, scene):
    """In another engine, and in the same one after a reset."""
    (first, share), other = (play(client, scene, 50, seed=1) for client in clients)
    assert other == (first, share) == play(clients[0], scene, 50, seed=1)
    assert share > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_five_hundred_actions_in_each_of_twenty_rooms(clients, scene):
    kinds = dict(renderDepthImage=True, renderInstanceSegmentation=True)
    (first, share), other = (play(client, scene, 500, seed=2, **kinds) for client in clients)
    assert other == (first, share)
    assert share > 0.3
