"""What several tests share: small rooms worked out by hand, the renderers that work here, an agent for whole games."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from scrubjay import tree
from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.agent.normalization import commit_norms
from scrubjay.cli.main import main
from scrubjay.errors import RendererError
from scrubjay.game.actions import action_index
from scrubjay.game.episode import RandomEpisodes
from scrubjay.rooms.room import Lamp, Room, Thing
from scrubjay.sim.compile import compile_room
from scrubjay.sim.render.make import make_renderer
from scrubjay.training.actor_critic import total_loss

LAMPS = (
    Lamp((0.35, 0.5, -0.8), (0.42, 0.41, 0.38)),
    Lamp((-0.6, -0.3, -0.5), (0.22, 0.23, 0.26)),
    Lamp((0.2, -0.7, -0.2), (0.12, 0.12, 0.12)),
)


def hut(*things: Thing, width: float = 4.0, depth: float = 4.0) -> Room:
    """A rectangular room about the origin with nothing but what is given."""
    x, y = width / 2, depth / 2
    size = (width, depth, 2.5)
    shell = tuple(Thing(name, name, (0, 0, 0), 0, size) for name in ("Floor", "Wall", "Ceiling"))
    return Room("hut", "foyer", ((-x, -y), (x, -y), (x, y), (-x, y)), 2.5, (*shell, *things), LAMPS)


def drawer_chest() -> tuple[Thing, ...]:
    """A drawer at the north wall, 0.6 to 0.85 m high, facing south, on a box-like table; and a cabinet beside it."""
    return (
        Thing("Drawer_0", "Drawer", (0.0, 1.7, 0.6), 180, (0.5, 0.5, 0.25)),
        Thing("Cabinet_0", "Cabinet", (0.8, 1.7, 0.0), 180, (0.5, 0.5, 0.85)),
    )


def renderers() -> list:
    """How worlds can be drawn, as parameters; what does not work here is skipped and says why."""
    room, found = compile_room(hut()), []
    for how in (dict(renderer="opengl"), dict(renderer="warp"), dict(renderer="warp", device="cuda")):
        name, device = how["renderer"], how.get("device", "cpu")
        marks = [pytest.mark.gpu] if device == "cuda" else []
        try:
            make_renderer(name, [room], 1, 28, device).close()
        except RendererError as error:
            marks.append(pytest.mark.skip(reason=str(error)))
        found.append(pytest.param(how, marks=marks, id=f"{name}-{device}"))
    return found


def drawn(name: str) -> bool:
    """Does a renderer on the CPU's side work here?"""
    return not any(mark.name == "skip" for how in renderers() if how.id == f"{name}-cpu" for mark in how.marks)


class Anywhere(RandomEpisodes):
    """Games in which every drop counts as a placement, so that random hiders succeed."""

    def __call__(self, world, number):
        return replace(super().__call__(world, number), anywhere=True)


def eager_agent() -> Agent:
    """An agent that drops, claims, closes and says it is ready more often than an untrained one."""
    torch.manual_seed(0)
    agent = Agent(SMALL)
    for stage, name in (("OM", "DropObject"), ("S", "ClaimVisible"), ("OH", "ReadyForSeeker"), ("OH", "CloseObjects")):
        head = agent.heads.stages[stage]
        with torch.no_grad():
            head.actor.bias[head.actions.tolist().index(action_index(name))] = 3.0
    return agent


class NoTransfers(TorchDispatchMode):
    """Refuses copies between devices."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten._to_copy.default:
            device = (kwargs or {}).get("device")
            assert device in (None, args[0].device), "a copy from another device"
        return function(*args, **kwargs or {})


def check_without_values(agent, losses, weights, batch, monkeypatch) -> None:
    """Computes losses and gradients of a batch on the meta device, for an agent that is there.

    Tensors have no values there, so that nothing can wait for them. Tables may be copied to the device once.
    """
    import torch._dynamo  # It looks PyTorch's functions up when it is first imported: not while one is replaced.

    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind: False)  # It does not know this device.
    batch = tree.map(lambda tensor: tensor.to("meta"), batch)
    losses(batch)
    with NoTransfers():
        terms, _ = losses(batch)
        total_loss(terms, weights).backward()
        commit_norms(agent)
    assert agent.encoder.stem.weight.grad is not None


def run_command(monkeypatch, capsys, *words: str) -> tuple[int, str, str]:
    """Runs a command in this process: its exit code, standard output, and standard error in one line."""
    monkeypatch.setattr("sys.argv", ["scrubjay", *words])
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    output = capsys.readouterr()
    return code, output.out, " ".join(output.err.split())
