"""How fast the agent acts, learns and imagines, and the memory it takes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import torch
from rich.console import Console

from scrubjay.agent.agent import Agent, AgentOutput
from scrubjay.agent.config import PRESETS, AgentConfig
from scrubjay.agent.hiding_outcomes import OUTCOME_SAMPLES
from scrubjay.agent.metric_map import CAPACITY
from scrubjay.agent.perspective import CANDIDATES, SEEKERS_PER_OUTCOME, ExploredMaps, Uniforms
from scrubjay.bench.world import machine
from scrubjay.files import write_atomically
from scrubjay.game.actions import ALLOWED, Stage
from scrubjay.game.observation import Observation
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS
from scrubjay.training import actor_critic, losses

SIDE = 32
"""Positions along the maps that seekers are imagined in: rooms of 8 x 8 m."""
STAGES = (Stage.EM, Stage.S, Stage.OM, Stage.EM, Stage.S, Stage.EM, Stage.S, Stage.OH)
"""What the games of a batch are at, over and over."""
ACTING_FOR = (64, 256, 1024, 2048)
LEARNING_FROM = ((8, 256), (16, 256), (32, 64), (32, 128), (32, 256), (64, 128))
"""Lengths and numbers of sequences."""
IMAGINING_FOR = (8, 32, 64)
PER_GAME = CANDIDATES * OUTCOME_SAMPLES * SEEKERS_PER_OUTCOME


def measure(preset: str, device: str, games: int, seconds: float, compiled: bool, console: Console) -> dict:
    """All figures of the agent, by name."""
    config = PRESETS[preset]
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    agent = Agent(config).to(device)
    if compiled:
        agent.encoder.compile()
    console.print(f"acting for {games} games")
    figures: dict = {"act_images_per_s": round(acting(agent, games, device, seconds))}
    length, many = (32, 256) if device.startswith("cuda") else (8, 8)
    console.print(f"learning from {many} sequences of {length}")
    _forget_peak(device)
    speed = learning(agent, length, many, device, seconds)
    figures |= {"learn_images_per_s": round(speed), "learn_gpu_gib": _peak(device)}
    few = 64 if device.startswith("cuda") else 1
    console.print(f"imagining seekers in {few} games")
    figures |= {"imagine_games": few, "imagine_s": round(imagining(agent, few, device), 3)}
    parameters = sum(p.numel() for p in agent.parameters())
    return {
        **figures, "preset": preset, "games": games, "sequences": many, "length": length, "compiled": compiled,
        "parameters": parameters, "machine": machine(device), "torch": torch.__version__,
    }  # fmt: skip


def growth(preset: str, device: str, seconds: float, out: Path, console: Console) -> list[dict]:
    """How acting grows with games, and learning with sequences and their length; writes agent.jsonl and agent.md."""
    torch.backends.cudnn.benchmark = True
    agent = Agent(PRESETS[preset]).to(device)
    rows: list[dict] = []

    def note(what: str, games: int, length: int, images: float, seconds_each: float) -> None:
        row = {"what": what, "games": games, "length": length, "images_per_s": round(images)}
        rows.append(row | {"s": round(seconds_each, 4), "gpu_gib": _peak(device)})
        console.print(rows[-1])

    for games in ACTING_FOR:
        _forget_peak(device)
        speed = acting(agent, games, device, seconds)
        note("acting", games, 1, speed, games / speed)
    for length, many in LEARNING_FROM:
        _forget_peak(device)
        speed = learning(agent, length, many, device, seconds)
        note("learning", many, length, speed, length * many / speed)
    for games in IMAGINING_FOR:
        _forget_peak(device)
        note("imagining", games, 0, 0, imagining(agent, games, device))
    about = {"preset": preset, "machine": machine(device), "torch": torch.__version__}
    write_atomically(out / "agent.jsonl", "".join(json.dumps(row | about) + "\n" for row in rows))
    write_atomically(out / "agent.md", report(rows, about))
    return rows


def report(rows: list[dict], about: dict) -> str:
    """The rows as a table of Markdown."""
    text = [
        "# The agent's networks", "",
        f"Measured on {date.today()} with `scrubjay bench agent --out`: {about['machine']}, torch"
        f" {about['torch']}, preset `{about['preset']}`. All rows: [agent.jsonl](agent.jsonl).", "",
        "| what | games or sequences | steps | images/s | s a call | GPU memory, GiB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for row in rows:
        images = f"{row['images_per_s']:,}" if row["images_per_s"] else ""
        text.append(
            f"| {row['what']} | {row['games']:,} | {row['length'] or ''} | {images} | {row['s']} | {row['gpu_gib']} |"
        )
    text += [
        "",
        "Acting is a step of encoder, memory, map and heads. Learning is forward and backward over sequences, with the",
        f"auxiliary losses. Imagining is perspective simulation: {PER_GAME:,} seekers a game, of up to 100 steps.",
    ]
    return "\n".join(text) + "\n"


def acting(agent: Agent, games: int, device: str, seconds: float) -> float:
    """Images a second, with maps as full as half-way through seeking."""
    observation = seen(agent.config, (games,), device)
    state = agent.initial_state(games, CAPACITY // 2)
    begins = torch.zeros(games, dtype=torch.bool, device=device)

    def step() -> None:
        nonlocal state
        with torch.inference_mode(), _half(device):
            said = agent.act(state, observation, begins)
            state = said.state
            torch.distributions.Categorical(logits=said.decision.logits).sample()

    return games * _rate(step, device, seconds)


def learning(agent: Agent, length: int, games: int, device: str, seconds: float) -> float:
    """Images a second through forward and backward."""
    observation = seen(agent.config, (length, games), device)
    begins = torch.rand(length, games, device=device) < 0.01
    state = agent.initial_state(games, CAPACITY // 2)
    action = torch.multinomial(torch.from_numpy(ALLOWED).float().to(device)[observation.stage.flatten()].clamp(1e-9), 1)
    action = action.view(length, games)

    def step() -> None:
        with _half(device):
            said = agent.evaluate(state, observation, begins)
            total = _loss(agent, said, observation, action)
        total.backward()
        agent.zero_grad(set_to_none=True)

    return length * games * _rate(step, device, seconds)


def _loss(agent: Agent, said: AgentOutput, observation: Observation, action: torch.Tensor) -> torch.Tensor:
    """Actor and critic with the auxiliary losses that all stages share, and those of OH and OM that the heads make."""
    lead, stage = observation.stage.shape, observation.stage
    zeros, everything = torch.zeros(lead, device=stage.device), torch.ones(lead, dtype=torch.bool, device=stage.device)
    parts, _ = actor_critic.actor_critic_losses(
        said.decision.logits, said.decision.value, action, zeros + 1, zeros, stage != Stage.PS
    )
    total = torch.stack(list(parts.values())).sum()
    expected = agent.predict_sir(said.dirs.flat[:-1], action[:-1])
    recognized = agent.project_sir(said.encoded.sir).unflatten(0, lead)
    episode = torch.zeros(lead, dtype=torch.long, device=stage.device)
    total = total + losses.self_prediction(recognized, expected, episode, everything[:-1])
    first = said.encoded.skips[0].detach().unflatten(0, lead)
    changed = losses.changed_cells(first[:-1], first[1:])
    total = total + losses.change_localization(said.dirs.change[1:], changed, everything[1:])
    total = total + losses.attainable(said.decision.hittable, observation.target, everything, stage == Stage.OM)
    recalled = agent.recall_placements(said.dirs.flat)
    return total + losses.recall(recalled[..., 0, :], torch.zeros_like(stage), stage == Stage.OH)


def imagining(agent: Agent, games: int, device: str) -> float:
    """Seconds of perspective simulation: 10 places x 3 outcomes x 50 seekers of up to 100 steps in each game."""
    values = torch.randn(games, 4, 2, agent.config.map_value, SIDE, SIDE, device=device)
    visited = torch.rand(games, 4, 2, SIDE, SIDE, device=device) < 0.3
    visited[:, :, :, SIDE // 2] = True
    start = torch.tensor([SIDE // 2, SIDE // 2, 0, 1], device=device).expand(games, 4)
    explored = ExploredMaps(values * visited[:, :, :, None], visited, start)
    draws = Uniforms.sample(explored)

    def once() -> None:
        with torch.inference_mode(), _half(device):
            agent.perspective.choose_place(explored, draws)

    once()
    _wait(device)
    begin = time.perf_counter()
    once()
    _wait(device)
    return time.perf_counter() - begin


def seen(config: AgentConfig, lead: tuple[int, ...], device: str) -> Observation:
    """Random observations of games at all stages, at places within a room."""

    def whole(most: int, *more: int) -> torch.Tensor:
        return torch.randint(most, (*lead, *more), device=device)

    size = config.image_size
    stage = (
        torch.tensor(STAGES, device=device).repeat(-(-lead[-1] // len(STAGES)))[: lead[-1]].expand(lead).contiguous()
    )
    place = torch.stack([whole(SIDE) - SIDE // 2, whole(SIDE) - SIDE // 2, whole(4), whole(2)], -1)
    target = torch.stack([whole(3), whole(CELLS), whole(CELLS)], -1)
    image = torch.randint(256, (*lead, size, size, 3), dtype=torch.uint8, device=device)
    return Observation(
        image, whole(219), whole(2).bool(), whole(2).bool(), whole(len(GOALS)), stage, place, whole(220), target
    )


def _rate(step: Callable[[], None], device: str, seconds: float) -> float:
    """Calls a second, after three that warm up."""
    for _ in range(3):
        step()
    _wait(device)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        step()
        count += 1
        if count % 4 == 0:
            _wait(device)
    _wait(device)
    return count / (time.perf_counter() - start)


def _forget_peak(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def _peak(device: str) -> float:
    """GiB of GPU memory that were in use at most."""
    return round(torch.cuda.max_memory_allocated(device) / 2**30, 1) if device.startswith("cuda") else 0.0


def _half(device: str) -> torch.autocast:
    """bfloat16 where products are fast in it."""
    return torch.autocast(device.split(":")[0], torch.bfloat16, enabled=device.startswith("cuda"))


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
