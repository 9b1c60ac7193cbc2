"""An agent's steps with and without a CUDA graph: the same outputs, and snapshots that stay valid."""

import numpy as np
import pytest
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import PAPER, SMALL, AgentConfig
from scrubjay.game.observation import Observation
from scrubjay.training.actor import Actor
from scrubjay.training.augmentation import Augmentation

GAMES = 3


def make_observation(seed: int, device: str, games: int = GAMES, config: AgentConfig = SMALL) -> Observation:
    rng = torch.Generator().manual_seed(seed)

    def below(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(high, (games, *shape), generator=rng).to(device)

    image = below(256, config.image_size, config.image_size, 3).byte()
    return Observation(
        image, below(7), below(2).bool(), below(2).bool(), below(5), torch.zeros(games, dtype=torch.int64).to(device),
        below(2, 4), below(7), below(1, 3), torch.ones(games, device=device),
    )  # fmt: skip


def make_actor(
    device: str, captured: bool, games: int = GAMES, config: AgentConfig = SMALL, bfloat16: bool = False
) -> Actor:
    torch.manual_seed(0)
    agent = Agent(config).to(device)
    context = lambda: torch.autocast(device, torch.bfloat16, enabled=bfloat16)  # noqa: E731
    return Actor(agent, games, context, Augmentation(games, 0, device), captured)


def test_peeking_leaves_the_recurrent_state_unchanged():
    player, nothing = make_actor("cpu", False), torch.zeros(GAMES, dtype=torch.bool)
    with torch.no_grad():
        player(make_observation(0, "cpu"), ~nothing)
        before = player.state_snapshot()
        first, step = player(make_observation(1, "cpu"), nothing, update_state=False)
        assert player.state_snapshot() is before
        again, repeated = player(make_observation(1, "cpu"), nothing)
    assert torch.equal(first.image, again.image) and torch.equal(step.decision.logits, repeated.decision.logits)
    assert not torch.equal(player.state_snapshot().recurrent.hidden, before.recurrent.hidden)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_captured_steps_equal_plain_ones():
    plain, captured = make_actor("cuda", False), make_actor("cuda", True)
    kept = []
    with torch.no_grad():
        for step in range(5):
            is_first = torch.tensor([step == 0, step in (0, 3), step == 0], device="cuda")
            if step == 2:
                for each in (plain, captured):
                    each.augmentation.resample(np.array([True, False, True]))
                    with torch.no_grad():
                        each.agent.heads.stages["EM"].actor.weight += 0.1
            expected = plain(make_observation(step, "cuda"), is_first)
            actual = captured(make_observation(step, "cuda"), is_first)
            assert torch.equal(expected[0].image, actual[0].image)
            torch.testing.assert_close(actual[1].decision.logits, expected[1].decision.logits, rtol=1e-4, atol=1e-4)
            kept.append((actual[0].image, expected[0].image, captured.state_snapshot(), plain.state_snapshot()))
    for mine, its, state, same in kept:
        assert torch.equal(mine, its)
        torch.testing.assert_close(state.recurrent.hidden, same.recurrent.hidden, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(state.metric_map.values, same.metric_map.values, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_concurrent_steps_of_two_worlds_do_not_interfere():
    """Each graph has its own memory, down to the workspace of matrix products."""
    games, steps = 48, 40
    seen = [make_observation(seed, "cuda", games, PAPER) for seed in range(4)]
    first, never = (
        torch.ones(games, dtype=torch.bool, device="cuda"),
        torch.zeros(games, dtype=torch.bool, device="cuda"),
    )

    def play(players: list[Actor], streams: list[torch.cuda.Stream]) -> list[list[torch.Tensor]]:
        logits: list[list[torch.Tensor]] = [[], []]
        torch.cuda.synchronize()
        with torch.no_grad():
            for step in range(steps):
                for which, (player, stream) in enumerate(zip(players, streams, strict=True)):
                    with torch.cuda.stream(stream):
                        decision = player(seen[(step + which) % 4], never if step else first)[1].decision
                        logits[which].append(decision.logits.clone())
        torch.cuda.synchronize()
        return logits

    main = torch.cuda.current_stream()
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    alone = play([make_actor("cuda", True, games, PAPER, bfloat16=True) for _ in range(2)], [main, main])
    together = play([make_actor("cuda", True, games, PAPER, bfloat16=True) for _ in range(2)], streams)
    for mine, its in zip(together, alone, strict=True):
        for a, b in zip(mine, its, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-2)
