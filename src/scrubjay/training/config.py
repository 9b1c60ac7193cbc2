"""The config of a training run, and its presets. Every field is a flag of `scrubjay train`."""

from __future__ import annotations

import json
from dataclasses import asdict, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from scrubjay.agent.config import CHECKED, PAPER, SMALL, AgentConfig, check_hides, explain_errors
from scrubjay.envs.tasks import TASKS, Manipulate, Seek, Task
from scrubjay.errors import explain
from scrubjay.game.actions import Stage
from scrubjay.game.stages import LIMITS
from scrubjay.rooms.generate import check_scene, expand_scenes
from scrubjay.training.hiding_learner import HidingObjective
from scrubjay.training.learner import Objective

TRAIN, VALIDATION = expand_scenes(["train"]), expand_scenes(["validation"])
"""The 80 train rooms and the 20 validation rooms, of four types."""
MAX_ELEMENTS = 2**31
"""Elements of one tensor: GPU kernels index with 32 bits."""
MAX_GAMES = 2**16

TRAINABLE = tuple(name for name, task in TASKS.items() if task.trainable)
if TYPE_CHECKING:
    TaskName = str
else:
    TaskName = Literal[TRAINABLE]
Difficulty = Literal["easy", "medium", "hard"]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Beta = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(gt=0, le=1)]
PartShare = Annotated[float, Field(ge=0, le=1)]


def _count_rooms(default: str) -> str:
    """How the help shows the default scenes, which may be eighty."""
    return f"(default: {len(default.split())} rooms)"


Scenes = Annotated[
    tuple[str, ...], AfterValidator(expand_scenes), tyro.conf.arg(help_behavior_hint=_count_rooms, metavar="SCENE")
]
"""Rooms; splits such as `train` or `train:kitchen` are expanded when a config is made."""


@explain_errors
@dataclass(frozen=True, config=CHECKED)
class TrainConfig:
    """Everything that determines a run, except the machine. Defaults are the paper's, and ours where it gives none."""

    task: TaskName = "explore"
    """What is learned: E&M (explore), OM (manipulate) or S (seek) alone, or whole games (cache)."""
    scenes: Scenes = TRAIN
    """Rooms to train in: FloorPlan12, a type and a seed such as kitchen-81723, a split (train) or its rooms of one type
    (train:kitchen)."""
    copies: PositiveInt = 12
    """Games in each room."""
    unroll_length: Annotated[int, Field(ge=2)] = 32
    """Steps of a rollout."""
    minibatch_games: PositiveInt = 320
    """Games whose rollouts make one step of the optimizer."""
    updates: PositiveInt = 20_000
    """Rollouts in all, if `max_games` does not end training before."""
    max_games: NonNegativeInt = 0
    """Games after which training ends even if updates are left; 0 for no limit."""
    epochs: PositiveInt = 1
    """Passes over each rollout; more than one needs the objective's clip."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Random seed; on a CPU the same seed trains the same agent."""

    learning_rate: PositiveFloat = 1e-4
    """Adam's learning rate for everything that is learned from play."""
    learning_rate_schedule: Literal["constant", "linear", "adaptive"] = "constant"
    """All learning rates are constant, fall linearly to 0 over the run, or adapt: a common factor, 1 at most,
    keeps the policy's change between playing and learning near `target_kl`. That of perspective simulation, which
    changes no policy, does not adapt."""
    target_kl: PositiveFloat = 0.02
    """Adaptive learning rates: the KL divergence aimed at, a mean over the stages."""
    cooldown: PartShare = 0.0
    """Last share of the run in which all learning rates fall linearly to 0, whatever their schedule. A run that is
    stopped before its last update or game, as by `--minutes`, has not cooled down."""
    betas: tuple[Beta, Beta] = (0.99, 0.999)
    """Adam's betas."""
    head_lr_scale: PositiveFloat = 1.0
    """Factor on the learning rate of the output layers of actors and critics."""
    dynamics_learning_rate: PositiveFloat = 1e-3
    """Learning rate of visual dynamics replay."""
    perspective_learning_rate: PositiveFloat = 5e-4
    """Learning rate of perspective simulation."""
    max_grad_norm: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 10.0
    """Gradients are clipped to this norm; 0 for no clipping."""

    batch_rule: Literal["global", "process", "scaled"] = "global"
    """Several processes: games and batches are those of all processes together (`global`), whatever their number; or of
    each (`process`), so that batches grow with their number, the learning rate stays; or that, and
    learning rates are multiplied by the square root of their number (`scaled`)."""
    overlap: bool = False
    """Learn from a rollout while the next one is collected, which keeps a GPU and the CPU busy at once. The policy then
    changes while it acts, and runs are not reproducible."""

    replay_batches: NonNegativeInt = 4
    """Batches of visual dynamics replay after each rollout; 0 switches replay off."""
    replay_size: PositiveInt = 20_000
    """Capacity of the replay buffer in triplets."""
    replay_batch_size: PositiveInt = 64
    """Triplets of a batch of visual dynamics replay."""
    replay_max_age: PositiveInt = 50
    """Rollouts after which a triplet is dropped. Each rollout adds as many triplets as fill the buffer in this time."""
    replay_group_share: Share = 0.2
    """Largest share of one group of actions, such as OpenAt, in the triplets that a rollout adds."""
    hiding_minibatch: PositiveInt = 64
    """Whole games: finished games that are learned from at once, when there are so many."""
    hiding_splits: PositiveInt = 1
    """Whole games: parts of these games, each of which makes one step of the optimizers of hiding and of perspective
    simulation; passes of hiding over them are as many as over rollouts if it has PPO's clip range, else one."""
    mental_replays: NonNegativeInt = 0
    """Whole games: further steps after each such minibatch, of as many games as a part has, in which the mental seeker
    learns from finished games again. Outcomes and the ranking of places are learned from every game once: they would
    be learned by heart."""
    mental_games: NonNegativeInt = 0
    """Whole games: newest finished games that these steps are drawn from; a minibatch at least."""
    think_every: PositiveInt = 16
    """Whole games: every so many steps all games that have reached PS run perspective simulation in one batch. Until
    then they wait, which takes no environment step; with 1 they never do."""
    manipulation_minibatch: PositiveInt = 64
    """Whole games: manipulations, from first to last step, that make one step of the optimizer."""
    stage_limits: Annotated[tuple[PositiveInt, ...], Field(min_length=len(Stage), max_length=len(Stage))] = tuple(
        LIMITS.tolist()
    )
    """Maximum steps of E&M, PS, OH, OM and S; PS is always one."""
    explore_reward_rotations: bool = True
    """The extrapolated set that exploring is rewarded for counts a place once per rotation, as printed; else once, as
    coverage+ does."""
    augment: bool = True
    """Crop, color and rotate each game's images a little."""
    rotate_grid: bool = True
    """Rotate every other game's grid by a random angle."""

    spots: str = ""
    """Seeking: a folder filled by `scrubjay spots`. Without one the run makes its own first."""
    spot_candidates: PositiveInt = 40
    """Seeking: settled places tried for each room and goal object when the run makes its own spots."""
    validation_spot_candidates: PositiveInt = 400
    """The same in validation rooms: what is reported is measured in the paper's spots."""
    difficulties: Annotated[tuple[Difficulty, ...], Field(min_length=1)] = ("easy", "medium", "hard")
    """Seeking: which spots to hide the object in."""

    near_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Seeking in given or practiced spots: share of the searches that begin in front of the object. A search from
    anywhere shows it at one step in thirty, too seldom to learn what it looks like. Not in the paper."""
    seek_like_explore: bool = False
    """S's actor begins with the weights of E&M's, of the agent that the run starts with, so that seeking begins as
    exploring. Not in the paper."""
    practice: tuple[PartShare, PartShare, PartShare] = (0.0, 0.0, 0.0)
    """Shares of the episodes that are E&M, OM (see `placements`) and S (see `spots`) alone; the others are the task's.
    Whole games have all three, which is not in the paper; among manipulations E&M is rehearsed, as in the paper."""
    pretraining_updates: NonNegativeInt = 0
    """Whole games: first updates in which nothing but practice is played, in its shares; the paper pretrains E&M and OM
    before its first game. The agent after them is the milestone of 0 games."""
    placements: str = ""
    """Manipulating: a folder filled by `scrubjay placements`. Without one targets are uniform, most impossible."""
    demonstration_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Manipulating: share of the episodes that are played with the actions that are known to lead to the placement, and
    imitated; needs placements. Not in the paper."""

    hidden_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Manipulating: share of the episodes in which the object in the hand is not drawn for some steps, as if something
    stood in front of it, so that memory learns to go on where nothing is seen. Not in the paper."""

    displaced_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Manipulating: share of the practiced episodes that begin with the hand anywhere in view and not at its default
    position, so that memory looks where it is. Demonstrations begin as ever. Not in the paper."""

    shadow_classifier: bool = False
    """Train a second encoder beside the agent's, from the same start, on the same images and with as many updates, to
    classify the visible objects: the paper's classification baseline. Studies call it class@RUN."""

    checkpoint_interval: PositiveInt = 200
    """Rollouts between checkpoints. Each checkpoint restarts all games, so that a resumed run is exact."""
    milestones: tuple[NonNegativeInt, ...] = (0, 1_000_000, 4_500_000)
    """Numbers of games after which the agent is kept for ever, in the run's folder `milestones`."""
    validation_games: NonNegativeInt = 0
    """Games in each validation room after every checkpoint; 0 for none."""
    validation_scenes: Scenes = VALIDATION
    """Rooms to validate in, named like `scenes`."""

    agent: AgentConfig = PAPER
    """Sizes of the networks."""
    objective: Objective = field(default_factory=Objective)
    """Losses of E&M, OM and S."""
    hiding: HidingObjective = field(default_factory=HidingObjective)
    """Losses of OH and PS."""

    def __post_init__(self) -> None:
        for name, scenes in (("scenes", self.scenes), ("validation_scenes", self.validation_scenes)):
            if not scenes:
                raise ValueError(f"{name}: at least one room is needed")
            for scene in scenes:
                check_scene(scene)
        if self.replay_batches and self.replay_size < self.replay_batch_size:
            raise ValueError(f"replay_size: at least one batch of {self.replay_batch_size}, not {self.replay_size}")
        if self.games > MAX_GAMES:
            raise ValueError(f"copies: at most {MAX_GAMES:,} games in all, not {self.games:,}")
        if self.objective.openable and not self.agent.heads_read_cells:
            raise ValueError(
                "objective.openable: heads that do not read cells predict no success of OpenAt: "
                "set it to 0, or agent.heads_read_cells"
            )
        if self.objective.visible and not self.agent.heads_read_cells:
            raise ValueError(
                "objective.visible: heads that do not read cells have no filters for the object: set it to 0, or "
                "agent.heads_read_cells"
            )
        if sum(self.practice) > 1 + 1e-6:
            raise ValueError(f"practice: shares of the episodes, at most 1 in all, not {self.practice}")
        can_practice = {"cache": 3, "manipulate": 1}.get(self.task, 0)
        if any(self.practice[can_practice:]):
            raise ValueError(
                f"practice: E&M, OM and S among whole games, or E&M among manipulations, not {self.practice} in "
                f"{self.task}"
            )
        if self.pretraining_updates and not (self.task == "cache" and any(self.practice)):
            raise ValueError("pretraining_updates: whole games are pretrained with what is practiced: set practice")
        manipulates = issubclass(TASKS[self.task], Manipulate) or self.practice[1] > 0
        if self.demonstration_share and not (manipulates and self.placements):
            raise ValueError("demonstration_share: placements are demonstrated: manipulate, and name their folder")
        if self.hidden_share and not (manipulates or self.task == "cache"):
            raise ValueError("hidden_share: hands are hidden in OM: manipulate, practice it, or play whole games")
        if self.displaced_share and not manipulates:
            raise ValueError("displaced_share: manipulations alone begin elsewhere: manipulate, or practice it")
        if self.near_share and not (issubclass(TASKS[self.task], Seek) or self.practice[2]):
            raise ValueError("near_share: searches of hiding spots begin near: seek, or practice it")
        if self.shadow_classifier and (self.agent.encoder != "cnn" or self.agent.freeze_encoder):
            raise ValueError(
                "shadow_classifier: it shadows the encoder cnn while that is trained: leave out --encoder and "
                "--freeze-encoder"
            )
        if self.agent.memory == "navigation" and self.replay_batches:
            raise ValueError("replay_batches: a navigation agent has no visual dynamics: set it to 0")
        if self.task == "cache":
            check_hides(self.agent)
        if self.epochs > 1 and not self.objective.clip_coef:
            raise ValueError(f"epochs: {self.epochs} passes need PPO's clipping: set objective.clip_coef")
        if self.stage_limits[Stage.PS] != 1:
            raise ValueError(f"stage_limits: PS takes one step, not {self.stage_limits[Stage.PS]}")
        largest = (MAX_ELEMENTS - 1) // (self.unroll_length * self._image_elements)
        if self.minibatch_games > largest:
            raise ValueError(
                f"minibatch_games: at most {largest} with unrolls of {self.unroll_length}, not {self.minibatch_games}"
            )
        largest = (MAX_ELEMENTS - 1) // (self.stage_limits[Stage.OH] * self._image_elements)
        if self.hiding_minibatch > largest:
            raise ValueError(f"hiding_minibatch: at most {largest}, not {self.hiding_minibatch}")

        largest = (MAX_ELEMENTS - 1) // (self.stage_limits[Stage.OM] * self._image_elements)
        if self.task == "cache" and self.manipulation_minibatch > largest:
            raise ValueError(f"manipulation_minibatch: at most {largest}, not {self.manipulation_minibatch}")

    @property
    def games(self) -> int:
        return len(self.scenes) * self.copies

    def next_checkpoint(self, update: int) -> int:
        """The update after which the games of the one now restart and a checkpoint is written."""
        due = (update // self.checkpoint_interval + 1) * self.checkpoint_interval
        return min(due, self.pretraining_updates) if update < self.pretraining_updates else due

    def is_done(self, update: int, games: int) -> bool:
        """Do so many updates and games complete a run?"""
        return self.share_left(update, games) == 0

    def share_left(self, update: int, games: int) -> float:
        """The share of a run that is left after so many updates and games: of its updates, or of its games if less."""
        played = games / self.max_games if self.max_games else 0.0
        return max(0.0, 1 - max(update / self.updates, played))

    @property
    def _image_elements(self) -> int:
        """Elements of the encoder's largest activation for one image."""
        return self.agent.encoder_channels[0] * (self.agent.image_size // 2) ** 2

    @classmethod
    def preset(cls, name: str, numbers: str = "ours", **changes: Any) -> TrainConfig:
        """A preset with some fields changed, after its numbers are set: `ours`, or the `paper`'s.

        Of an `agent` among the changes the paper's numbers take the sizes; whether networks have what is not the
        paper's, such as norms, they decide. `replace` changes that afterwards.
        """
        if name not in PRESETS:
            raise ValueError(f"unknown preset {name!r}; choose from {', '.join(PRESETS)}")
        if numbers not in NUMBERS:
            raise ValueError(f"unknown numbers {numbers!r}; choose from {', '.join(NUMBERS)}")
        if numbers == "ours":
            return replace(PRESETS[name], **changes)
        sized = replace(PRESETS[name], agent=changes.pop("agent", PRESETS[name].agent))
        return replace(sized, agent=replace(sized.agent, **PAPER_AGENT), **PAPER_NUMBERS | changes)

    def make_manipulate_task(self) -> Manipulate:
        """Manipulating as environments know it, its files not read yet."""
        return Manipulate(turned=self.rotate_grid, placements=self.placements)

    def make_task(self) -> Task | None:
        """The task as environments know it, its files not read yet; None for seeking, which needs spots first."""
        task = TASKS[self.task]
        if issubclass(task, Manipulate):
            return self.make_manipulate_task()
        return None if issubclass(task, Seek) else task(turned=self.rotate_grid)


CLIPPED = Objective(
    clip_coef=0.2, normalize_advantages=True, gae_lambda=0.95, bootstrap_time_limits=True, openable=0.1,
    openable_everywhere=True, open_closed=0.1, visible=0.5, hand=0.1,
)  # fmt: skip
OPENING: dict[str, Any] = {"separate_openable_head": True, "openable_hidden": 64, "open_at_prior": True}
"""Networks that know what opens before they decide to open it, with what `CLIPPED` teaches about it: without either an
agent learns to walk, and no longer tries to open anything; see results/learning.md."""
FEW_STEPS: dict[str, Any] = {
    "minibatch_games": 80, "epochs": 2, "learning_rate": 2e-4, "betas": (0.9, 0.999), "head_lr_scale": 3.0,
    "validation_games": 1, "objective": CLIPPED,
    "agent": replace(PAPER, **OPENING, hand_head=True, hiding_priors=True, mental_offsets=True),
}  # fmt: skip
"""What learns most from a few million steps; the defaults are the paper's, meant for hundreds of millions."""

WHOLE_GAMES: dict[str, Any] = {
    "task": "cache", "scenes": expand_scenes(["train:kitchen", "train:living_room"]), "copies": 24,
    "validation_scenes": expand_scenes(["validation:kitchen", "validation:living_room"]),
    "checkpoint_interval": 400, "explore_reward_rotations": False, **FEW_STEPS,
    # The paper's last milestone ends a run; at some 700 steps a game that is half as many updates.
    "max_games": 4_500_000, "updates": 200_000,
    # They start from an agent that can do something, which constant rates shook; see results/learning.md.
    "learning_rate_schedule": "adaptive",
    # Games are rare: 64 of them make eight steps of hiding's optimizer, as do two passes over 320 games of a rollout,
    # and sixteen of the mental seeker's.
    "hiding_splits": 4, "mental_replays": 12, "mental_games": 1024, "perspective_learning_rate": 1e-3,
    "hiding": HidingObjective(clip_coef=0.2, normalize_advantages=True, center_percentile=True),
}  # fmt: skip

PRESETS = {
    "demo": TrainConfig(
        "explore", ("FloorPlan1", "FloorPlan201"), copies=4, unroll_length=16, updates=80, checkpoint_interval=20,
        replay_batches=1, replay_size=512, replay_batch_size=16, augment=False, rotate_grid=False,
        **{
            **FEW_STEPS, "minibatch_games": 8, "learning_rate": 1e-3, "validation_games": 0, "agent": SMALL,
            # In ten thousand steps, learning what opens everywhere costs more than it brings.
            "objective": Objective(clip_coef=0.2, normalize_advantages=True),
        },
    ),
    "explore": TrainConfig("explore", explore_reward_rotations=False, **FEW_STEPS),
    "manipulate": TrainConfig(
        # Exploring is rehearsed: the paper pretrains on 85,000 episodes of E&M and 1.8 million of OM.
        "manipulate", unroll_length=64, practice=(0.045, 0.0, 0.0),
        # An object must be dropped within OM's limit, which is therefore an end like any other.
        **{
            **FEW_STEPS, "minibatch_games": 40,
            "objective": replace(CLIPPED, hindsight=1.0, bootstrap_time_limits=False),
        },
    ),
    "seek": TrainConfig("seek", **{**FEW_STEPS, "objective": replace(CLIPPED, claiming=1.0)}),
    "navigate": TrainConfig(
        "seek", difficulties=("easy", "medium"), replay_batches=0,
        **{
            **FEW_STEPS, "agent": replace(PAPER, memory="navigation", heads_read_cells=False),
            "objective": Objective(clip_coef=0.2, normalize_advantages=True, claiming=1.0, openable=0.0),
        },
    ),
    # A quarter of the steps explore, a third manipulate, and the others seek: an episode of E&M takes 200 steps, a
    # manipulation about 20, a search about 300.
    "pretrain": TrainConfig(
        **{
            **WHOLE_GAMES, "practice": (0.06, 0.87, 0.07), "validation_games": 0,
            "objective": replace(CLIPPED, hindsight=1.0, claiming=1.0, claim_odds=4.0),
        },
    ),
    "cache": TrainConfig(**WHOLE_GAMES),
}  # fmt: skip
"""Whole games are played in kitchens and living rooms, as in the paper; the other tasks in all types."""

PAPER_NUMBERS: dict[str, Any] = {
    # A3C: one pass over what was just played, no clipping, and Adam with AMSGrad (C).
    "epochs": 1, "learning_rate": 1e-4, "learning_rate_schedule": "constant", "cooldown": 0.0, "betas": (0.99, 0.999),
    "head_lr_scale": 1.0, "max_grad_norm": 0.0,
    "dynamics_learning_rate": 1e-3, "perspective_learning_rate": 5e-4,
    "replay_size": 20_000, "replay_batch_size": 64, "hiding_splits": 1, "mental_replays": 0, "mental_games": 0,
    "objective": Objective(
        gamma=0.99, gae_lambda=1.0, entropy=0.01, clip_coef=0.0, normalize_advantages=False,
        bootstrap_time_limits=False, openable=0.0, openable_everywhere=False, open_closed=0.0,
        exploring=0.0, visible=0.0, hand=0.0, claim_odds=1.0,
    ),
    "hiding": HidingObjective(
        gamma=0.8, gae_lambda=1.0, entropy=0.01, clip_coef=0.0, normalize_advantages=False,
        bootstrap_time_limits=False, early=5000, center_percentile=False,
    ),
    "stage_limits": tuple(LIMITS.tolist()), "explore_reward_rotations": True, "augment": True, "rotate_grid": True,
    "near_share": 0.0, "seek_like_explore": False, "demonstration_share": 0.0, "hidden_share": 0.0,
    "displaced_share": 0.0,
    "milestones": (0, 1_000_000, 4_500_000),
}  # fmt: skip
"""What the paper prints, and none of what it does not mention; `docs/paper.md` lists them. Where it needs a number and
prints none, such as losses' weights, ours stay."""
PAPER_AGENT: dict[str, Any] = {
    "heads_read_cells": False, "running_norms": False, "gate_norm": False, "centered_filters": False,
    "separate_openable_head": False, "openable_hidden": 0, "open_at_prior": False, "critic_sees_time": False,
    "hand_head": False, "hiding_priors": False, "mental_offsets": False,
}  # fmt: skip
"""The same for the networks, whatever their sizes."""
NUMBERS = ("ours", "paper")


def to_json(config: TrainConfig) -> str:
    return json.dumps(asdict(config), indent=1) + "\n"


def from_json(text: str) -> TrainConfig:
    """A config as `to_json` wrote it; ValueError names the field that is wrong, missing or unknown."""
    try:
        config = TypeAdapter(TrainConfig).validate_json(text)
    except ValidationError as error:
        raise ValueError(explain(error)) from error
    if missing := _missing(json.loads(to_json(config)), json.loads(text)):
        raise ValueError(f"{missing}: missing")
    return config


def _missing(complete: dict[str, Any], given: dict[str, Any], path: str = "") -> str | None:
    """The first field that was filled in with a default: a run's config has them all."""
    for name, value in complete.items():
        if name not in given:
            return path + name
        if isinstance(value, dict) and (inside := _missing(value, given[name], f"{path}{name}.")):
            return inside
    return None
