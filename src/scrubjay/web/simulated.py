"""What simulated participants tell a study: platform parameters, answers to questionnaires, and their next step."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from scrubjay.web.platforms import PARAMETERS, PLATFORMS

NEXT_ACTION = {"consent": "agree", "before": "answer", "instructions": "begin", "trials": "next", "after": "answer"}
"""How a participant in each status proceeds; there is nothing to do in the others."""


def parameters(rng: random.Random, platform: str = "") -> dict[str, str]:
    """Parameters of a new person's link from a platform, or from all of them."""
    keys = PLATFORMS[platform].parameters if platform else PARAMETERS
    return {key: f"{rng.getrandbits(96):024x}" for key in keys}


def next_step(status: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """The request that takes a participant with this status further, with answers if it is a questionnaire."""
    step: dict[str, Any] = {"do": NEXT_ACTION[status["status"]]}
    return step | {"answers": answers(status["questions"], rng)} if step["do"] == "answer" else step


def answers(questions: Sequence[Mapping[str, Any]], rng: random.Random) -> dict[str, Any]:
    """A random answer to each question; one in three optional ones is left out."""
    return {q["name"]: None if not q["required"] and rng.random() < 1 / 3 else _answer(q, rng) for q in questions}


def _answer(question: Mapping[str, Any], rng: random.Random) -> str | int:
    if question["kind"] == "choice":
        return rng.choice(question["choices"])
    return rng.randint(1, question["points"]) if question["kind"] == "scale" else f"simulated {rng.randint(1, 99)}"
