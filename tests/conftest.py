"""Fixtures that several folders share."""

from __future__ import annotations

import pytest
import torch
from helpers import drawer_chest, hut

from scrubjay.sim.compile import CompiledRoom, compile_room

# Small networks on busy machines are many times slower with two threads, and the same bits need the same number.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def chest() -> CompiledRoom:
    return compile_room(hut(*drawer_chest()))


@pytest.fixture(scope="session")
def empty() -> CompiledRoom:
    return compile_room(hut())
