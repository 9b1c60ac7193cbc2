"""An agent's steps, recorded or not: the same numbers, and what is kept stays as it was."""

import numpy as np
import pytest
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.game.augment import Augmentation
from scrubjay.game.observation import Observation
from scrubjay.learning.acting import Acting

GAMES = 3


def observed(seed: int, device: str) -> Observation:
    rng = torch.Generator().manual_seed(seed)

    def below(most: int, *shape: int) -> torch.Tensor:
        return torch.randint(most, (GAMES, *shape), generator=rng).to(device)

    image = below(256, SMALL.image_size, SMALL.image_size, 3).byte()
    return Observation(
        image, below(7), below(2).bool(), below(2).bool(), below(5), torch.zeros(GAMES, dtype=torch.int64).to(device),
        below(2, 4), below(7), below(1, 3),
    )  # fmt: skip


def acting(device: str, recorded: bool) -> Acting:
    torch.manual_seed(0)
    agent = Agent(SMALL).to(device)
    half = lambda: torch.autocast(device, torch.bfloat16, enabled=False)  # noqa: E731
    return Acting(agent, GAMES, half, Augmentation(GAMES, 0, device), recorded)


def test_a_step_that_is_not_remembered_leaves_the_memory():
    player, nothing = acting("cpu", False), torch.zeros(GAMES, dtype=torch.bool)
    with torch.no_grad():
        player(observed(0, "cpu"), ~nothing)
        before = player.remembered()
        first, said = player(observed(1, "cpu"), nothing, remember=False)
        assert player.remembered() is before
        again, same = player(observed(1, "cpu"), nothing)
    assert torch.equal(first.image, again.image) and torch.equal(said.decision.logits, same.decision.logits)
    assert not torch.equal(player.remembered().now.output, before.now.output)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="recording needs a GPU")
def test_recorded_steps_are_the_same_steps():
    plain, recorded = acting("cuda", False), acting("cuda", True)
    kept = []
    with torch.no_grad():
        for step in range(5):
            begins = torch.tensor([step == 0, step in (0, 3), step == 0], device="cuda")
            if step == 2:
                for each in (plain, recorded):
                    each.augmentation.renew(np.array([True, False, True]))
                    with torch.no_grad():
                        each.agent.heads.stages["EM"].actor.weight += 0.1
            expected = plain(observed(step, "cuda"), begins)
            found = recorded(observed(step, "cuda"), begins)
            assert torch.equal(expected[0].image, found[0].image)
            torch.testing.assert_close(found[1].decision.logits, expected[1].decision.logits, rtol=1e-4, atol=1e-4)
            kept.append((found[0].image, expected[0].image, recorded.remembered(), plain.remembered()))
    for mine, its, state, same in kept:
        assert torch.equal(mine, its)
        torch.testing.assert_close(state.now.output, same.now.output, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(state.metric_map.values, same.metric_map.values, rtol=1e-4, atol=1e-4)
