"""The agent's sizes: the paper's, and a narrow copy of the same structure for CPUs and tests."""

from __future__ import annotations

from dataclasses import dataclass, fields

IMAGE_SIZES = (112, 224)
"""Image sizes that four or five halvings bring to 7 x 7."""
SCALES = {"encoder_channels": 4, "decoder_channels": 5}
"""How many numbers the fields have that hold one for each scale."""


@dataclass(frozen=True)
class AgentConfig:
    """Sizes of the agent's networks; the defaults are the paper's, and ours where the paper names none."""

    image_size: int = 224
    """Height and width of the images, in pixels."""
    sir_channels: int = 128
    """Channels of the SIR, which is 7 x 7, and length of its pooled vector."""
    encoder_channels: tuple[int, ...] = (16, 32, 64, 192)
    """Channels of the encoder's four scales before the SIR, finest first; they are the decoder's skips."""
    decoder_channels: tuple[int, ...] = (128, 128, 64, 32, 16)
    """Channels of the visual dynamics decoder's five scales, coarsest first; the last is as large as the image."""
    action_embedding: int = 16
    """Length of the embedding of an action, or of an action and its success."""
    standing_embedding: int = 4
    """Length of the embedding of standing or crouching."""
    goal_embedding: int = 16
    """Length of the goal object's embedding."""
    target_embedding: int = 8
    """Channels of OM's target, cut from a larger learned tensor."""
    gru_channels: int = 256
    """Channels of the convolutional GRU's state, without one more for the change map W."""
    lstm: int = 512
    """Length of the LSTM's output and cell: the flat DIR."""
    tiled: int = 256
    """How many of the LSTM's last outputs, the first ones, are tiled into the convolutional GRU's input."""
    map_read: int = 356
    """Length of what is read from the map at each step."""
    mental_channels: int = 128
    """Channels of the maps M^1 and M^e of perspective simulation."""
    mental_lstm: int = 256
    """Length of the mental seeker's LSTM state."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, count = getattr(self, field.name), SCALES.get(field.name)
            if count and not (isinstance(value, tuple) and len(value) == count):
                raise ValueError(f"{field.name}: a tuple of {count} numbers, not {value!r}")
            if not all(type(size) is int and size > 0 for size in (value if count else (value,))):
                raise ValueError(f"{field.name}: sizes are whole numbers above 0, not {value!r}")
        if self.image_size not in IMAGE_SIZES:
            raise ValueError(f"image_size: one of {IMAGE_SIZES}, not {self.image_size}")
        if self.tiled > self.lstm:
            raise ValueError(f"tiled: at most the LSTM's {self.lstm} outputs, not {self.tiled}")

    @property
    def map_value(self) -> int:
        """Length of what the map holds for a place: the pooled SIR and the goal's embedding."""
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
