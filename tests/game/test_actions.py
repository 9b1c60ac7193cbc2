"""The 219 actions, against the paper's table."""

import numpy as np
import pytest
import torch

from scrubjay.game import actions
from scrubjay.game.actions import ALLOWED, NAMES, Stage, action_index


def test_there_are_219_actions_and_each_stage_has_its_own():
    assert len(NAMES) == len(set(NAMES)) == 219
    assert ALLOWED.sum(1).tolist() == [57, 0, 200, 62, 58]


def test_actions_shared_by_stages():
    em, seek = ALLOWED[Stage.EM], ALLOWED[Stage.S]
    assert [NAMES[i] for i in np.flatnonzero(seek & ~em)] == ["ClaimVisible"]
    assert not (em & ~seek).any()
    assert {NAMES[i].split("|")[0] for i in np.flatnonzero(ALLOWED[Stage.OH] & ALLOWED[Stage.OM])} == {"OpenAt"}


def test_names_and_indices():
    assert action_index("MoveAhead") == 0
    assert NAMES[action_index("PlaceAt|2,7,1")] == "PlaceAt|2,7,1"
    for wrong in ("Fly", "OpenAt|0,1", "OpenAt|8,1", "PlaceAt|3,1,1"):
        with pytest.raises(ValueError, match="unknown action"):
            action_index(wrong)


def test_actions_map_to_world_actions():
    assert actions.OPEN_CELL[action_index("OpenAt|2,3")] == 7 + 2
    assert actions.PLACE_AT[action_index("PlaceAt|1,7,7")] == 49 + 48
    assert actions.STAND[action_index("Crouch")] == 0 and actions.STAND[action_index("Stand")] == 1
    tables = [actions.MOVE, actions.ROTATE, actions.STAND, actions.OPEN_CELL, actions.CLOSE, actions.HAND_MOVE,
              actions.HAND_TURN, actions.DROP, actions.PLACE_AT, actions.READY, actions.CLAIM]  # fmt: skip
    assert all(table[-1] == -1 for table in tables)
    assert (sum((table[:-1] >= 0).astype(int) for table in tables) == 1).all()


def test_targets_have_indices_in_the_order_of_place_at():
    modality, row, column = (grid.ravel() for grid in np.meshgrid(range(3), range(7), range(7), indexing="ij"))
    index = actions.target_index(modality, row, column)
    assert (
        index.tolist() == list(range(147)) and actions.PLACE_AT[actions.PLACE_ACTIONS[index]].tolist() == index.tolist()
    )
    assert np.array_equal(np.stack(actions.target_of(index)), np.stack([modality, row, column]))
    there = actions.target_of(torch.from_numpy(index))
    assert torch.equal(torch.stack(there), torch.from_numpy(np.stack([modality, row, column])))
    assert actions.target_index(*actions.target_of(100)) == 100
