"""Scrubjay: agents that learn to see by hiding and finding things."""

import gymnasium

__version__ = "0.1.0"

for _task in ("Explore", "Hide", "Manipulate", "Seek"):
    # Named, not imported: whoever does not make one need not wait for the engines.
    gymnasium.register(
        f"scrubjay/{_task}-v0",
        entry_point="scrubjay.envs.stage:StageEnv",
        vector_entry_point="scrubjay.envs.stage:StageVectorEnv",
        kwargs={"task": _task},
    )
