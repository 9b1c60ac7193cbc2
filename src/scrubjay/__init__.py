"""Scrubjay: agents that learn to see by hiding and finding objects in household rooms.

The public API. Names load on first use, so `import scrubjay` imports neither PyTorch nor MuJoCo.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scrubjay.envs.registration import register as _register

if TYPE_CHECKING:
    from scrubjay.agent.agent import Agent, load_agent, save_agent
    from scrubjay.agent.config import AgentConfig
    from scrubjay.agent.released import load_card
    from scrubjay.api import evaluate, play, replay, train
    from scrubjay.envs.cache import cache_env
    from scrubjay.errors import ScrubjayError
    from scrubjay.game.actions import Stage, action_index
    from scrubjay.game.cache import CacheGame, StepResult
    from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
    from scrubjay.game.observation import Observation, observe
    from scrubjay.game.record import Record, load_records, save_records
    from scrubjay.players.base import Player, RandomPlayer
    from scrubjay.rooms.generate import SCENES, make_room
    from scrubjay.rooms.room import GOALS, Room, Thing, load_room, save_room
    from scrubjay.sim.pose import AgentPose
    from scrubjay.sim.world import World
    from scrubjay.study.encoders import load_encoder
    from scrubjay.training.agent_player import AgentPlayer
    from scrubjay.training.config import TrainConfig

__version__ = "0.2.0.dev0"

_MODULES = {
    "scrubjay.agent.agent": ("Agent", "load_agent", "save_agent"),
    "scrubjay.agent.config": ("AgentConfig",),
    "scrubjay.agent.released": ("load_card",),
    "scrubjay.api": ("evaluate", "play", "replay", "train"),
    "scrubjay.envs.cache": ("cache_env",),
    "scrubjay.errors": ("ScrubjayError",),
    "scrubjay.game.actions": ("Stage", "action_index"),
    "scrubjay.game.cache": ("CacheGame", "StepResult"),
    "scrubjay.game.episode": ("EpisodeSpec", "RandomEpisodes"),
    "scrubjay.game.observation": ("Observation", "observe"),
    "scrubjay.game.record": ("Record", "load_records", "save_records"),
    "scrubjay.players.base": ("Player", "RandomPlayer"),
    "scrubjay.rooms.generate": ("SCENES", "make_room"),
    "scrubjay.rooms.room": ("GOALS", "Room", "Thing", "load_room", "save_room"),
    "scrubjay.sim.pose": ("AgentPose",),
    "scrubjay.sim.world": ("World",),
    "scrubjay.study.encoders": ("load_encoder",),
    "scrubjay.training.agent_player": ("AgentPlayer",),
    "scrubjay.training.config": ("TrainConfig",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = [
    "GOALS", "SCENES", "Agent", "AgentConfig", "AgentPlayer", "AgentPose", "CacheGame", "EpisodeSpec", "Observation",
    "Player", "RandomEpisodes", "RandomPlayer", "Record", "Room", "ScrubjayError", "Stage", "StepResult", "Thing",
    "TrainConfig", "World", "__version__", "action_index", "cache_env", "evaluate", "load_agent", "load_card",
    "load_encoder", "load_records", "load_room", "make_room", "observe", "play", "replay", "save_agent", "save_records",
    "save_room", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'scrubjay' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_register()
