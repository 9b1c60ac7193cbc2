"""Read an agent's representations while it plays, and probe one: does the LSTM know whether the agent is standing?"""

import numpy as np
import torch

import scrubjay
from scrubjay.agent.config import SMALL

torch.manual_seed(0)
# An untrained agent; `scrubjay.load_agent("out/run")` loads a trained one.
agent = scrubjay.Agent(SMALL)

vectors, labels = [], []
with scrubjay.World(["FloorPlan401", "FloorPlan301"], copies=4, size=agent.config.image_size) as world, torch.no_grad():
    game, player = scrubjay.CacheGame(world), scrubjay.RandomPlayer(seed=0)
    state, is_first = agent.initial_state(len(game)), torch.ones(len(game), dtype=torch.bool)
    for _ in range(24):
        observation = scrubjay.observe(game)
        output = agent.act(state, observation, is_first)
        state, is_first = output.state, torch.zeros_like(is_first)
        features = output.features()
        vectors.append(features["dir"])
        labels.append(observation.standing)
        game.step(*player(game, np.ones(len(game), bool)))

print({name: tuple(tensor.shape) for name, tensor in features.items()})
x, y = torch.cat(vectors), torch.cat(labels).float() * 2 - 1
half = len(x) // 2
solution = torch.linalg.lstsq(torch.cat([x, torch.ones(len(x), 1)], 1)[:half], y[:half, None], driver="gelsd").solution
guess = torch.cat([x, torch.ones(len(x), 1)], 1)[half:] @ solution
print(f"a linear probe tells standing from crouching in {(guess.sign()[:, 0] == y[half:]).float().mean():.0%} of steps")
np.savez("representations.npz", dir=x.numpy(), standing=y.numpy() > 0)
