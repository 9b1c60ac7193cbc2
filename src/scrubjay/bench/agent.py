"""Benchmarks the agent: speed of acting, learning and perspective simulation, and GPU memory."""

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
from scrubjay.files import write_atomically
from scrubjay.game.actions import ALLOWED, Stage
from scrubjay.game.observation import Observation
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS
from scrubjay.study.record import machine
from scrubjay.training import actor_critic, losses

MAP_SIDE = 32
"""Side of the maps of perspective simulation, in positions: rooms of 8 x 8 m."""
STAGES = (Stage.EM, Stage.S, Stage.OM, Stage.EM, Stage.S, Stage.EM, Stage.S, Stage.OH)
"""The stages of a batch's games, repeated."""
ACTING_GAMES = (64, 256, 1024, 2048)
LEARNING_SHAPES = ((8, 256), (16, 256), (32, 64), (32, 128), (32, 256), (64, 128))
"""(length, number) of sequences."""
SIMULATED_GAMES = (8, 32, 64)
SEEKERS_PER_GAME = CANDIDATES * OUTCOME_SAMPLES * SEEKERS_PER_OUTCOME


def measure(preset: str, device: str, games: int, seconds: float, compiled: bool, console: Console) -> dict:
    """All figures of one configuration, by name."""
    config = PRESETS[preset]
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    agent = Agent(config).to(device)
    if compiled:
        agent.encoder.compile()
    console.print(f"acting for {games} games")
    figures: dict = {"act_images_per_s": round(acting_speed(agent, games, device, seconds))}
    length, sequences = (32, 256) if device.startswith("cuda") else (8, 8)
    console.print(f"learning from {sequences} sequences of {length}")
    _reset_peak_memory(device)
    speed = learning_speed(agent, length, sequences, device, seconds)
    figures |= {"learn_images_per_s": round(speed), "learn_gpu_gib": _peak_memory(device)}
    simulated = 64 if device.startswith("cuda") else 1
    console.print(f"imagining seekers in {simulated} games")
    figures |= {"imagine_games": simulated, "imagine_s": round(simulation_time(agent, simulated, device), 3)}
    parameters = sum(p.numel() for p in agent.parameters())
    return {
        **figures, "preset": preset, "games": games, "sequences": sequences, "length": length, "compiled": compiled,
        "parameters": parameters, "machine": machine(device), "torch": torch.__version__,
    }  # fmt: skip


def sweep(preset: str, device: str, seconds: float, out: Path, console: Console) -> list[dict]:
    """Sweeps acting over games and learning over sequences and their length; writes agent.jsonl and agent.md."""
    torch.backends.cudnn.benchmark = True
    agent = Agent(PRESETS[preset]).to(device)
    rows: list[dict] = []

    def add_row(what: str, games: int, length: int, images: float, seconds_each: float) -> None:
        row = {"what": what, "games": games, "length": length, "images_per_s": round(images)}
        rows.append(row | {"s": round(seconds_each, 4), "gpu_gib": _peak_memory(device)})
        console.print(rows[-1])

    for games in ACTING_GAMES:
        _reset_peak_memory(device)
        speed = acting_speed(agent, games, device, seconds)
        add_row("acting", games, 1, speed, games / speed)
    for length, sequences in LEARNING_SHAPES:
        _reset_peak_memory(device)
        speed = learning_speed(agent, length, sequences, device, seconds)
        add_row("learning", sequences, length, speed, length * sequences / speed)
    for games in SIMULATED_GAMES:
        _reset_peak_memory(device)
        add_row("imagining", games, 0, 0, simulation_time(agent, games, device))
    about = {"preset": preset, "machine": machine(device), "torch": torch.__version__}
    write_atomically(out / "agent.jsonl", "".join(json.dumps(row | about) + "\n" for row in rows))
    write_atomically(out / "agent.md", markdown_report(rows, about))
    return rows


def markdown_report(rows: list[dict], about: dict) -> str:
    """The rows as a Markdown table."""
    text = [
        "# The agent's networks", "",
        f"Measured on {date.today()} with `scrubjay bench agent --out`: {about['machine']}, torch"
        f" {about['torch']}, preset `{about['preset']}`. All rows: [agent.jsonl](agent.jsonl).", "",
        "| what | games or sequences | steps | images/s | s per call | GPU memory, GiB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for row in rows:
        images = f"{row['images_per_s']:,}" if row["images_per_s"] else ""
        text.append(
            f"| {row['what']} | {row['games']:,} | {row['length'] or ''} | {images} | {row['s']} | {row['gpu_gib']} |"
        )
    text += [
        "",
        "Acting: a step of encoder, memory, map and heads. Learning: forward and backward over sequences, with the",
        f"auxiliary losses. Imagining: perspective simulation with {SEEKERS_PER_GAME:,} seekers per game.",
    ]
    return "\n".join(text) + "\n"


def acting_speed(agent: Agent, games: int, device: str, seconds: float) -> float:
    """Images per second, with half-full maps."""
    observation = random_observations(agent.config, (games,), device)
    state = agent.initial_state(games, CAPACITY // 2)
    is_first = torch.zeros(games, dtype=torch.bool, device=device)

    def step() -> None:
        nonlocal state
        with torch.inference_mode(), _autocast(device):
            output = agent.act(state, observation, is_first)
            state = output.state
            torch.distributions.Categorical(logits=output.decision.logits).sample()

    return games * _rate(step, device, seconds)


def learning_speed(agent: Agent, length: int, games: int, device: str, seconds: float) -> float:
    """Images per second through forward and backward."""
    observation = random_observations(agent.config, (length, games), device)
    is_first = torch.rand(length, games, device=device) < 0.01
    state = agent.initial_state(games, CAPACITY // 2)
    action = torch.multinomial(torch.from_numpy(ALLOWED).float().to(device)[observation.stage.flatten()].clamp(1e-9), 1)
    action = action.view(length, games)

    def step() -> None:
        with _autocast(device):
            output = agent.evaluate(state, observation, is_first)
            total = _loss(agent, output, observation, action)
        total.backward()
        agent.zero_grad(set_to_none=True)

    return length * games * _rate(step, device, seconds)


def _loss(agent: Agent, output: AgentOutput, observation: Observation, action: torch.Tensor) -> torch.Tensor:
    """Actor-critic losses, the auxiliary losses of all stages, and those of OH and OM that use the heads."""
    lead, stage = observation.stage.shape, observation.stage
    zeros, everything = torch.zeros(lead, device=stage.device), torch.ones(lead, dtype=torch.bool, device=stage.device)
    parts, _ = actor_critic.actor_critic_losses(
        output.decision.logits, output.decision.value, action, zeros + 1, zeros, stage != Stage.PS
    )
    total = torch.stack(list(parts.values())).sum()
    expected = agent.predict_sir(output.dirs.flat[:-1], action[:-1])
    recognized = agent.project_sir(output.encoded.sir).unflatten(0, lead)
    episode = torch.zeros(lead, dtype=torch.long, device=stage.device)
    total = total + losses.self_prediction(recognized, expected, episode, everything[:-1])
    first = output.encoded.skips[0].detach().unflatten(0, lead)
    changed = losses.changed_cells(first[:-1], first[1:])
    total = total + losses.change_localization(output.dirs.change[1:], changed, everything[1:])
    total = total + losses.attainable(output.decision.hittable, observation.target, everything, stage == Stage.OM)
    recalled = agent.recall_placements(output.dirs.flat)
    return total + losses.recall(recalled[..., 0, :], torch.zeros_like(stage), stage == Stage.OH)


def simulation_time(agent: Agent, games: int, device: str) -> float:
    """Seconds per perspective simulation: 10 places x 3 outcomes x 50 seekers of up to 100 steps in each game."""
    values = torch.randn(games, 4, 2, agent.config.map_value, MAP_SIDE, MAP_SIDE, device=device)
    visited = torch.rand(games, 4, 2, MAP_SIDE, MAP_SIDE, device=device) < 0.3
    visited[:, :, :, MAP_SIDE // 2] = True
    start = torch.tensor([MAP_SIDE // 2, MAP_SIDE // 2, 0, 1], device=device).expand(games, 4)
    explored = ExploredMaps(values * visited[:, :, :, None], visited, start)
    uniforms = Uniforms.sample(explored)

    def simulate() -> None:
        with torch.inference_mode(), _autocast(device):
            agent.perspective.choose_place(explored, uniforms)

    simulate()
    _synchronize(device)
    begin = time.perf_counter()
    simulate()
    _synchronize(device)
    return time.perf_counter() - begin


def random_observations(config: AgentConfig, lead: tuple[int, ...], device: str) -> Observation:
    """Random observations (*lead, ...) of games at all stages, at places within a room."""

    def randint(high: int, *more: int) -> torch.Tensor:
        return torch.randint(high, (*lead, *more), device=device)

    size = config.image_size
    stage = (
        torch.tensor(STAGES, device=device).repeat(-(-lead[-1] // len(STAGES)))[: lead[-1]].expand(lead).contiguous()
    )
    place = torch.stack(
        [randint(MAP_SIDE) - MAP_SIDE // 2, randint(MAP_SIDE) - MAP_SIDE // 2, randint(4), randint(2)], -1
    )
    target = torch.stack([randint(3), randint(CELLS), randint(CELLS)], -1)
    image = torch.randint(256, (*lead, size, size, 3), dtype=torch.uint8, device=device)
    return Observation(
        image,
        randint(219),
        randint(2).bool(),
        randint(2).bool(),
        randint(len(GOALS)),
        stage,
        place,
        randint(220),
        target,
        torch.rand(lead, device=device),
    )


def _rate(step: Callable[[], None], device: str, seconds: float) -> float:
    """Calls per second, after three warm-up calls."""
    for _ in range(3):
        step()
    _synchronize(device)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        step()
        count += 1
        if count % 4 == 0:
            _synchronize(device)
    _synchronize(device)
    return count / (time.perf_counter() - start)


def _reset_peak_memory(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def _peak_memory(device: str) -> float:
    """Peak GPU memory in GiB."""
    return round(torch.cuda.max_memory_allocated(device) / 2**30, 1) if device.startswith("cuda") else 0.0


def _autocast(device: str) -> torch.autocast:
    """bfloat16 on GPUs."""
    return torch.autocast(device.split(":")[0], torch.bfloat16, enabled=device.startswith("cuda"))


def _synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
