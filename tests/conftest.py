"""Fixtures that several folders share."""

from __future__ import annotations

import signal

import pytest
import torch
from helpers import drawer_chest, hut
from hypothesis import HealthCheck, settings

from scrubjay.sim.compile import CompiledRoom, compile_room

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in the background so, and children inherit it: tests of Ctrl-C would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests measure no times: a busy machine is no failure.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# Small networks on busy machines are many times slower with two threads, and the same bits need the same number.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def chest() -> CompiledRoom:
    return compile_room(hut(*drawer_chest()))


@pytest.fixture(scope="session")
def empty() -> CompiledRoom:
    return compile_room(hut())
