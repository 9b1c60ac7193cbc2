"""What a training run is: its rooms, games, agent, and numbers. Presets are runs that make sense as they are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

from scrubjay.agent.config import PRESETS as AGENTS
from scrubjay.envs.tasks import Explore, Manipulate, Task
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSampler, RandomEpisodes
from scrubjay.game.stages import LIMITS
from scrubjay.rooms.generate import SCENES, check_scene
from scrubjay.spots.spots import DIFFICULTIES
from scrubjay.training.hiding_learner import HidingObjective
from scrubjay.training.learner import Objective

TRAIN = tuple(scene for start in range(0, 120, 30) for scene in SCENES[start : start + 20])
"""The 80 train rooms of four types."""
VALIDATION = tuple(scene for start in range(0, 120, 30) for scene in SCENES[start + 20 : start + 25])
"""The 20 validation rooms."""
MOST_NUMBERS = 2**31
"""In one tensor: GPU kernels count with 32 bits."""
MOST_GAMES = 2**16
"""At once: more would not fit into any machine's memory."""
TASKS = ("explore", "manipulate", "seek", "cache")
"""What is learned: E&M, OM or S alone, or whole games."""


@dataclass(frozen=True)
class WholeGames(Task):
    """All stages, from exploring to seeking, which is measured."""

    stage: ClassVar[Stage] = Stage.S

    def sampler(self, seed: int) -> EpisodeSampler:
        return RandomEpisodes(seed, self.goals, self.turned)


@dataclass(frozen=True)
class TrainConfig:
    """All that decides how a run goes, but for the machine."""

    task: str = "explore"
    agent: str = "paper"
    """A preset of the networks: paper or small."""
    scenes: tuple[str, ...] = TRAIN
    copies: int = 12
    """Games in each room, in all; they are played in two halves."""
    length: int = 32
    """Steps of a sequence."""
    chunk: int = 320
    """Games whose sequences make one step of the optimizer."""
    updates: int = 20_000
    """Rollouts after which the run is over."""
    interval: int = 200
    """Rollouts between checkpoints. Every checkpoint begins all games anew, so that a run can go on from it exactly."""
    seed: int = 0
    epochs: int = 1
    """How often each rollout is learned from; more than once needs PPO's band."""
    learning_rate: float = 1e-4
    betas: tuple[float, float] = (0.99, 0.999)
    """Of Adam: how much of the last mean gradient, and of its square, each step keeps."""
    last_layers: float = 1.0
    """How many times faster the last layers of actors and critics learn than all that is before them."""
    dynamics_rate: float = 1e-3
    """Of visual dynamics replay."""
    perspective_rate: float = 5e-4
    """Of perspective simulation."""
    finished: int = 64
    """For whole games: how many that are over make one step of the optimizers of hiding and perspective simulation."""
    limits: tuple[int, ...] = tuple(LIMITS.tolist())
    """The most steps of each stage: E&M, PS, OH, OM, S."""
    dynamics_batches: int = 4
    """Batches of 64 triplets that are replayed after each rollout; 0 leaves replay out."""
    replay_size: int = 20_000
    largest_gradient: float = 10.0
    """Gradients are scaled down to this norm."""
    augmented: bool = True
    """Images are cropped, colored and rotated a little, differently in each game."""
    turned: bool = True
    """Every other game's grid is turned."""
    spots: str = ""
    """For seeking: a folder that `scrubjay spots` filled. Without one a run makes its own before it begins."""
    candidates: int = 12
    """For seeking: hiding spots that a run looks for in each room and for each goal object."""
    difficulties: tuple[str, ...] = DIFFICULTIES
    """For seeking: in which of these spots."""
    examined: int = 0
    """Games in each validation room that the agent plays after every checkpoint, to be measured; 0 for none."""
    objective: Objective = field(default_factory=Objective)
    hiding: HidingObjective = field(default_factory=HidingObjective)

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task: one of {', '.join(TASKS)}, not {self.task!r}")
        if self.agent not in AGENTS:
            raise ValueError(f"agent: one of {', '.join(AGENTS)}, not {self.agent!r}")
        if not self.scenes:
            raise ValueError("scenes: at least one room is needed")
        for scene in self.scenes:
            check_scene(scene)
        for name in (
            "copies",
            "length",
            "chunk",
            "updates",
            "interval",
            "replay_size",
            "candidates",
            "finished",
            "epochs",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: at least 1, not {getattr(self, name)}")
        if self.games > MOST_GAMES:
            raise ValueError(f"copies: at most {MOST_GAMES:,} games in all, not {self.games:,}")
        for name in ("learning_rate", "dynamics_rate", "perspective_rate", "largest_gradient", "last_layers"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: a number above 0, not {getattr(self, name)}")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas: two numbers from 0 to below 1, not {self.betas}")
        if self.epochs > 1 and not self.objective.clip_coef:
            raise ValueError(f"epochs: {self.epochs} with the plain policy gradient; set the objective's clip_coef")
        if self.length < 2:
            raise ValueError("length: sequences have two steps at least")
        if len(self.limits) != len(Stage) or min(self.limits) < 1 or self.limits[Stage.PS] != 1:
            raise ValueError(f"limits: {len(Stage)} numbers of steps, one for PS, not {self.limits}")
        agent = AGENTS[self.agent]
        image = agent.encoder_channels[0] * (agent.image_size // 2) ** 2
        largest = self.chunk * self.length * image
        if largest >= MOST_NUMBERS:
            most = MOST_NUMBERS * self.chunk // largest
            raise ValueError(f"chunk: with sequences of {self.length} at most {most} games at once, not {self.chunk}")
        most = (MOST_NUMBERS - 1) // (self.limits[Stage.OH] * image)
        if self.finished > most:
            raise ValueError(f"finished: at most {most} games at once, not {self.finished}")
        if not self.difficulties or set(self.difficulties) - set(DIFFICULTIES):
            raise ValueError(f"difficulties: some of {', '.join(DIFFICULTIES)}, not {', '.join(self.difficulties)}")
        if min(self.dynamics_batches, self.examined) < 0 or not 0 <= self.seed < 2**63:
            raise ValueError("dynamics_batches, seed and examined: 0 or more; a seed is below 2^63")

    @property
    def games(self) -> int:
        return len(self.scenes) * self.copies

    def task_of(self) -> Task | None:
        """What is learned, as environments know it; seeking needs spots first."""
        return (
            {"explore": Explore, "manipulate": Manipulate, "cache": WholeGames}[self.task](turned=self.turned)
            if self.task != "seek"
            else None
        )


CLIPPED = Objective(clip_coef=0.2, normalize_advantages=True)
SOON: dict[str, Any] = {
    "chunk": 40, "epochs": 2, "learning_rate": 6e-4, "betas": (0.9, 0.999), "last_layers": 3.0, "examined": 1,
    "objective": CLIPPED,
}  # fmt: skip
"""What learns most from a few million steps. Without it, `TrainConfig` has the paper's numbers, meant for hundreds."""

PRESETS = {
    "demo": TrainConfig(
        "explore", "small", ("FloorPlan1", "FloorPlan201"), copies=4, length=16, updates=80, interval=20,
        dynamics_batches=1, replay_size=512, augmented=False, turned=False,
        **{**SOON, "chunk": 8, "learning_rate": 1e-3, "examined": 0},
    ),
    "explore": TrainConfig("explore", **{**SOON, "objective": replace(CLIPPED, entropy_coef=0.02)}),
    "manipulate": TrainConfig(
        "manipulate", length=64,
        **{**SOON, "chunk": 20, "objective": replace(CLIPPED, hindsight=1.0)},
    ),
    "seek": TrainConfig("seek", **{**SOON, "objective": replace(CLIPPED, claiming=1.0)}),
    "cache": TrainConfig(
        "cache", interval=400, **SOON, hiding=HidingObjective(clip_coef=0.2, normalize_advantages=True)
    ),
}  # fmt: skip


def to_json(training: TrainConfig) -> str:
    return json.dumps(asdict(training), indent=1) + "\n"


def from_json(data: Any) -> TrainConfig:
    """A run's numbers from what JSON gave; ValueError names the field that is wrong."""
    training: TrainConfig = _typed("everything", data, TrainConfig())
    return training


def _typed(name: str, data: Any, like: Any) -> Any:
    """What JSON gave, as something of the kind of `like`; ValueError with its name if it is another."""
    if is_dataclass(like) and not isinstance(like, type):
        known = {f.name: getattr(like, f.name) for f in fields(like)}
        if not isinstance(data, dict) or set(data) != set(known):
            odd = sorted(set(data) ^ set(known))[0] if isinstance(data, dict) else name
            raise ValueError(f"{odd}: not what a run's config has")
        return type(like)(**{key: _typed(key, data[key], value) for key, value in known.items()})
    if isinstance(like, tuple):
        if isinstance(data, list):
            return tuple(_typed(name, value, like[0]) for value in data)
    elif type(data) is type(like) or (isinstance(like, float) and type(data) is int):
        return data
    raise ValueError(f"{name}: not what a run's config has: {data!r}")


def changed(preset: str, **changes: Any) -> TrainConfig:
    """A preset with some numbers changed; None leaves one alone."""
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; there are {', '.join(PRESETS)}")
    return replace(PRESETS[preset], **{name: value for name, value in changes.items() if value is not None})
