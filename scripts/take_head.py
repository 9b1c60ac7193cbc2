"""An agent with one stage's actor and critic from another: what the one has unlearned the other may still know.

    python scripts/take_head.py AGENT OTHER --stage OH --out out/both

Heads read the memory of the agent that they are put into, so the two should be of one run, not far apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import tyro

from scrubjay import load_agent
from scrubjay.agent.agent import save_agent
from scrubjay.game.actions import Stage


def main(
    agent: tyro.conf.Positional[str],
    other: tyro.conf.Positional[str],
    out: Path,
    stage: Literal["EM", "OH", "OM", "S"] = "OH",
) -> None:
    """See the top of this file.

    Args:
        agent: A run, a folder of weights or a released agent.
        other: The same; the one whose head is taken.
        out: Folder to write the new agent to.
        stage: Whose head.
    """
    changed, source = load_agent(agent), load_agent(other)
    changed.heads[Stage[stage]].load_state_dict(source.heads[Stage[stage]].state_dict())
    save_agent(changed, out)


if __name__ == "__main__":
    tyro.cli(main)
