"""Sizes of the agent's networks: the paper's, and a narrow version of the same architecture for CPUs and tests."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal, TypeVar

import tyro
from pydantic import ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError
from pydantic.dataclasses import dataclass

from scrubjay.errors import explain

CHECKED = ConfigDict(extra="forbid", strict=True)
"""Pydantic settings of all configs: no unknown fields, no silent conversions."""

FourSizes = Annotated[tuple[PositiveInt, ...], Field(min_length=4, max_length=4)]
FiveSizes = Annotated[tuple[PositiveInt, ...], Field(min_length=5, max_length=5)]

Config = TypeVar("Config", bound=type)


def explain_errors(cls: Config) -> Config:
    """Decorates a pydantic dataclass: a wrong value raises a ValueError of one sentence, not pydantic's report."""
    config: Any = cls  # For mypy, which takes `__init__` of a type for unsound.
    check = config.__init__

    @functools.wraps(check)
    def init(self: Any, *args: Any, **values: Any) -> None:
        try:
            check(self, *args, **values)
        except ValidationError as error:
            raise ValueError(explain(error)) from None

    config.__init__ = init
    return cls


@explain_errors
@dataclass(frozen=True, config=CHECKED)
class AgentConfig:
    """Sizes of the agent's networks, by default the paper's, and ours where the paper gives none; and what the networks
    have beside the paper's parts."""

    image_size: Literal[112, 224] = 224
    """Height and width of the images in pixels; four or five halvings bring them to 7 x 7."""
    encoder: Annotated[str, tyro.conf.arg(prefix_name=False)] = "cnn"
    """Image encoder: cnn (the paper's), efficientnet-lite0, ours@FOLDER (the encoder of a run or of saved weights) or
    python:package.module:Class (any class that takes this config)."""
    freeze_encoder: Annotated[bool, tyro.conf.arg(prefix_name=False)] = False
    """Keep the encoder's weights fixed; of a pretrained backbone the projection to the SIR is still learned."""
    sir_channels: PositiveInt = 128
    """Channels of the static image representation (SIR), which is 7 x 7, and length of its pooled vector."""
    encoder_channels: FourSizes = (16, 32, 64, 192)
    """Channels of the encoder's four scales before the SIR, finest first; they are the decoder's skip connections."""
    decoder_channels: FiveSizes = (128, 128, 64, 32, 16)
    """Channels of the visual dynamics decoder's five scales, coarsest first."""
    action_embedding: PositiveInt = 16
    """Length of the embedding of an action, or of an action and its success."""
    standing_embedding: PositiveInt = 4
    """Length of the embedding of standing or crouching."""
    goal_embedding: PositiveInt = 16
    """Length of the goal object's embedding."""
    target_embedding: PositiveInt = 8
    """Channels of OM's target, cut from a larger learned tensor."""
    memory: Literal["full", "navigation"] = "full"
    """full: a convolutional GRU, an LSTM and the metric map. navigation: the convolutional GRU alone, whose state is
    averaged over cells with learned weights to the flat DIR, and no visual dynamics: the paper's navigation baseline,
    which plays single stages but no whole games."""
    gru_channels: PositiveInt = 256
    """Channels of the conv-GRU's state, without the one of the change map W."""
    lstm: PositiveInt = 512
    """Size of the LSTM's output and cell; its output is the flat dynamic representation (DIR)."""
    tiled: PositiveInt = 256
    """How many of the LSTM's previous outputs are tiled into the conv-GRU's input."""
    map_read: PositiveInt = 356
    """Length of the vector read from the map at each step."""
    mental_channels: PositiveInt = 128
    """Channels of the maps M^1 and M^e of perspective simulation."""
    mental_lstm: PositiveInt = 256
    """Size of the mental seeker's LSTM."""
    mental_offsets: bool = False
    """Let imagined maps tell every position where, from there, the object was hidden, normalize them, and let mental
    seekers predict success from them directly. False: the hiding is told at the hider's place alone, and mental seekers
    do not find out where objects are in thousands of games."""
    separate_openable_head: bool = False
    """Predict where OpenAt succeeds with a filter of its own, whose output is added to OpenAt's logits detached. False:
    one filter serves both, so that the openable loss also moves the policy."""
    openable_hidden: NonNegativeInt = 0
    """Hidden units of that separate filter at each cell; 0 makes it linear."""
    open_at_prior: bool = False
    """Let OpenAt's logits hold the whole logit of its success, base rate included: cells where nothing opens, most of
    49, then take little of the policy's probability. False: what the cell adds to the base rate."""
    hiding_priors: bool = False
    """Let OH's logits hold what other stages have learned: PlaceAt where OM would succeed, OpenAt where E&M would. A
    hider makes 15 decisions a game, too few to learn either by trying. False: it does."""
    hand_head: bool = False
    """Predict in OM, from each cell of the DIR grid, whether the object in the hand is there, seen or not."""
    critic_sees_time: bool = False
    """Give critics, and only critics, the share of the stage's steps that are left."""
    heads_read_cells: bool = True
    """Let heads read, beside the flat DIR, the cells of the SIR and of the DIR grid, and OM's head its target. False:
    the flat DIR alone, as in the paper."""
    running_norms: bool = True
    """Standardize SIRs, the LSTM's inputs and returns by running statistics; the paper names no normalization."""
    gate_norm: bool = True
    """Layer-normalize the LSTM's gates; False is a plain LSTM with biases."""
    centered_filters: bool = True
    """Center the filters of the encoder's scales to mean 0; False are plain convolutions."""

    def __post_init__(self) -> None:
        if self.separate_openable_head and not self.heads_read_cells:
            raise ValueError("separate_openable_head: its filter reads cells: set heads_read_cells too")
        if self.openable_hidden and not self.separate_openable_head:
            raise ValueError("openable_hidden: they are those of the separate head: set separate_openable_head too")
        if self.open_at_prior and not self.heads_read_cells:
            raise ValueError("open_at_prior: success is predicted from cells: set heads_read_cells too")
        if self.hiding_priors and not self.heads_read_cells:
            raise ValueError("hiding_priors: what opens is predicted from cells: set heads_read_cells too")
        if self.tiled > self.lstm:
            raise ValueError(f"tiled: at most the LSTM's {self.lstm} outputs, not {self.tiled}")

    @property
    def dir_length(self) -> int:
        """Length of the flat DIR, which heads read."""
        return self.lstm if self.memory == "full" else self.gru_channels

    @property
    def map_value(self) -> int:
        """Length of a map entry: the pooled SIR and the goal's embedding."""
        return self.sir_channels + self.goal_embedding


PAPER = AgentConfig()
SMALL = AgentConfig(
    image_size=112,
    sir_channels=32,
    encoder_channels=(8, 16, 32, 64),
    decoder_channels=(32, 32, 16, 16, 8),
    gru_channels=64,
    lstm=128,
    tiled=64,
    map_read=96,
    mental_channels=32,
    mental_lstm=64,
)
PRESETS = {"paper": PAPER, "small": SMALL}


def check_hides(config: AgentConfig) -> None:
    """Raises ValueError if an agent lacks what choosing a hiding place needs."""
    if config.memory != "full":
        raise ValueError(
            "agent.memory: a navigation agent has no map to choose hiding places from: it plays single stages, such as "
            "seeking, and no whole games"
        )


def preset_name(config: AgentConfig) -> str:
    """The preset that a config is, or "custom"."""
    return next((name for name, preset in PRESETS.items() if preset == config), "custom")
