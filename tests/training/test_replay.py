"""The buffer of visual dynamics replay and its losses."""

from functools import partial

import numpy as np
import pytest
import torch
from helpers import check_without_values

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.agent.visual_dynamics import DynamicsOutput, image_sizes
from scrubjay.game.actions import NAMES, Stage, action_index
from scrubjay.game.observation import Observation
from scrubjay.training.dynamics_losses import PREDICTABLE, WEIGHTS, dynamics_losses, replay_losses
from scrubjay.training.replay import BATCH, GROUPS, Replay, Triplets, sample_by_group, sample_triplets
from scrubjay.training.rollout import Rollout

AHEAD, OPEN = action_index("MoveAhead"), action_index("OpenAt|1,1")


def triplets(first: int, count: int, action: int = AHEAD) -> Triplets:
    """Images whose pixels all hold the triplet's number."""
    numbers = torch.arange(first, first + count, dtype=torch.uint8)
    image = numbers[:, None, None, None].expand(count, 8, 8, 3)
    done = numbers % 2 == 0
    return Triplets(image, torch.full((count,), action), image + 1, done)


def numbers_of(batch: Triplets | None) -> list[int]:
    assert batch is not None
    return batch.before[:, 0, 0, 0].tolist()


def test_a_pass_yields_every_triplet_once_and_continues_over_updates():
    """Of 200 triplets in batches of 64, three batches are a pass; new triplets wait for the next one."""
    replay = Replay(8, size=256)
    replay.add(triplets(0, 200))
    batches = [replay.next_batch(), replay.next_batch()]
    replay.add(triplets(200, 50))
    batches.append(replay.next_batch())
    numbers = [number for batch in batches for number in numbers_of(batch)]
    assert len(set(numbers)) == len(numbers) == 3 * BATCH and max(numbers) < 200
    again = [number for _ in range(3) for number in numbers_of(replay.next_batch())]
    assert len(set(again)) == len(again) == 3 * BATCH and max(again) >= 200
    assert again != numbers and replay.mean_uses == pytest.approx(6 * BATCH / 250)
    for batch in batches:
        assert (batch.after == batch.before + 1).all() and (batch.success == (batch.before[:, 0, 0, 0] % 2 == 0)).all()


def test_a_pass_reads_slots_as_they_are_and_skips_expired_ones():
    replay = Replay(8, size=40, max_age=2, batch_size=10)
    replay.add(triplets(0, 20))
    replay.add(triplets(20, 20))
    used = numbers_of(replay.next_batch())
    # The ring overwrites the first twenty, used or not.
    replay.add(triplets(100, 20))
    rest = [number for _ in range(3) for number in numbers_of(replay.next_batch())]
    slots = [number - 100 if number >= 100 else number for number in used + rest]
    assert sorted(slots) == list(range(40)) and not set(rest) & set(range(20))
    for _ in range(3):
        replay.add(triplets(0, 0))
    assert len(replay) == 0 and replay.next_batch() is None


def test_no_group_of_actions_exceeds_its_share():
    rng = np.random.default_rng(0)
    action = np.r_[np.full(90, AHEAD), np.full(5, OPEN), [action_index("OpenAt|7,7")] * 3, [action_index("Crouch")] * 2]
    kept = action[sample_by_group(action, rng, 100, 0.2)]
    assert (kept == AHEAD).sum() == 20 and len(kept) == 30, "a fifth of a hundred; the other groups are smaller"
    assert len(sample_by_group(action, rng, 10, 1.0)) == 10
    assert GROUPS[OPEN] == GROUPS[action_index("OpenAt|7,7")] != GROUPS[AHEAD]
    assert len(set(GROUPS[[action_index("MoveHandUp"), action_index("MoveHandBack")]])) == 1


def test_old_triplets_expire_and_a_full_buffer_wraps_around():
    replay = Replay(8, size=64, max_age=3)
    replay.add(triplets(0, 2))
    for _ in range(3):
        replay.add(triplets(100, 1))
    assert len(replay) == 5
    replay.add(triplets(100, 1))
    assert len(replay) == 4, "the first ones are four rollouts old"
    for _ in range(200):
        replay.add(triplets(0, 5))
    assert len(replay) == 4 * 5, "of this rollout and of the three before"
    with pytest.raises(ValueError, match="at least one batch"):
        Replay(8, size=10)
    with pytest.raises(ValueError, match="do not fit"):
        replay.add(triplets(0, 65))


def test_rollouts_with_enough_actions_fill_the_buffer_and_keep_it_full():
    """200 slots and an age of 20 rollouts: 40 a rollout until it is full, then 10."""
    replay, rng = Replay(8, size=200, max_age=20), np.random.default_rng(0)
    walking = [AHEAD, action_index("RotateLeft"), action_index("Crouch"), action_index("Stand"), OPEN]
    filled = []
    for _ in range(100):
        action = rng.choice(walking, 300, p=[0.6, 0.1, 0.1, 0.1, 0.1])
        chosen = sample_by_group(action, rng, replay.wanted, 0.2)
        replay.add(triplets(0, len(chosen)))
        filled.append(len(replay))
    assert filled[:5] == [40, 80, 120, 160, 200] and min(filled[5:]) >= 190
    assert set(filled[60:]) == {200}


def dynamics_output(images: tuple[torch.Tensor, ...], size: int) -> DynamicsOutput:
    return DynamicsOutput(
        images, torch.zeros(2, size, size), torch.zeros(2, size, size), torch.tensor([np.log(3.0), 0.0]),
        torch.zeros(2, len(NAMES)),
    )  # fmt: skip


def test_the_five_losses_by_hand():
    """Two triplets: MoveAhead, half of whose image gets brighter by 51 of 255, and OpenAt, which is not predicted."""
    size = SMALL.image_size
    before = torch.zeros(2, size, size, 3, dtype=torch.uint8)
    after = before.clone()
    after[0, : size // 2] = 51
    black = tuple(torch.zeros(2, 3, n, n) for n in image_sizes(SMALL))
    losses = dynamics_losses(
        dynamics_output(black, size), before, torch.tensor([AHEAD, OPEN]), after, torch.tensor([True, False]), SMALL
    )
    assert losses["inverse"].item() == pytest.approx(np.log(219))
    # Errors of 0.2 in the half that changed, which counts four times: 0.2 * 4 / (4 + 1). At 7 rows the halves blur.
    exact = 0.2 * 4 / 5
    middle = 3.5 / 7
    blurred = (3 * 4 * 0.2 + (1 + 3 * 0.5) * 0.1) / (3 * 4 + (1 + 3 * 0.5) + 3)
    assert middle == 0.5 and losses["forward"].item() == pytest.approx(4 * exact + blurred, rel=1e-4)
    assert losses["pixel_difference"].item() == pytest.approx(np.log(2))
    assert losses["pixel_quality"].item() == pytest.approx(0.5 * 0.2**2, rel=1e-4)
    assert losses["action_success"].item() == pytest.approx((-np.log(0.75) + np.log(2)) / 2)


def test_replay_never_looks_at_values(monkeypatch):
    """A CUDA graph of it can be captured."""
    agent, size = Agent(SMALL).to("meta"), SMALL.image_size
    images = torch.zeros(2, 4, size, size, 3, dtype=torch.uint8)
    batch = Triplets(images[0], torch.full((4,), AHEAD), images[1], torch.ones(4, dtype=torch.bool))
    check_without_values(agent, partial(replay_losses, agent), WEIGHTS, batch, monkeypatch)


def test_unpredictable_actions_are_those_the_paper_lists():
    out = {name.split("|")[0] for number, name in enumerate(NAMES) if not PREDICTABLE[number]}
    assert out == {
        "RotateLeft", "RotateRight", "OpenAt", "CloseObjects", "PlaceAt", "ReadyForSeeker", "ClaimVisible",
    }  # fmt: skip


def make_rollout(steps: list[tuple[Stage, str, bool, bool, bool]]) -> Rollout:
    """A game's steps: stage, action, success, whether the stage ended with it, and whether it is a game's first.

    The pixels of the image before each step hold its number.
    """
    stage, action, success, ended, is_first = (torch.tensor(values)[:, None] for values in zip(
        *((int(stage), action_index(name), *flags) for stage, name, *flags in steps), strict=True
    ))  # fmt: skip
    image = torch.arange(len(steps), dtype=torch.uint8)[:, None, None, None, None].expand(-1, 1, 2, 2, 3)
    unused = torch.zeros_like(stage)
    observation = Observation(image, unused, success, success, unused, stage, unused, unused, unused, unused.float())
    others = {name: unused for name in Rollout.__dataclass_fields__}
    return Rollout(**{
        **others, "observation": observation, "action": action, "success": success, "dones": ended,
        "is_first": is_first,
    })  # fmt: skip


def test_transitions_across_games_and_stages_are_left_out():
    rollout = make_rollout([
        (Stage.EM, "MoveAhead", True, False, True),
        (Stage.EM, "RotateLeft", True, True, False),  # The last step of exploring: the hider is moved.
        (Stage.PS, "MoveAhead", True, True, False),
        (Stage.OH, "PlaceAt|0,1,1", True, False, False),
        (Stage.OM, "MoveHandUp", False, False, False),
        (Stage.OM, "DropObject", True, True, False),
        (Stage.OH, "PlaceAt|0,1,1", True, False, False),
        (Stage.OM, "MoveHandUp", True, True, False),  # The manipulation's last step: the object is gone afterwards.
        (Stage.OH, "ReadyForSeeker", True, True, False),
        (Stage.S, "ClaimVisible", False, False, False),
        (Stage.S, "ClaimVisible", True, True, False),
        (Stage.EM, "MoveAhead", False, False, True),
        (Stage.EM, "MoveAhead", True, False, False),  # Its next image is not in the rollout.
    ])  # fmt: skip
    sample = sample_triplets(rollout, np.random.default_rng(0), count=100, group_share=1.0)
    rows = sorted(zip(*(t[:, 0, 0, 0].tolist() for t in (sample.before, sample.after)), strict=True))
    # Successful claims and ReadyForSeeker change no pixel.
    assert rows == [(0, 1), (3, 4), (4, 5), (5, 6), (6, 7), (8, 8), (9, 10), (10, 10), (11, 12)]
    assert all(sample.success[i] == rollout.success[sample.before[i, 0, 0, 0].int(), 0] for i in range(len(sample)))
    assert all(sample.action[i] == rollout.action[sample.before[i, 0, 0, 0].int(), 0] for i in range(len(sample)))
