"""The score of a person's game, and how it compares with other games.

Every search has a length: its steps, or 500 if the object was not found in 500. A seeker scores 100 for no steps and 0
for 500; a hider scores the rest, so that the two always add up to 100.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from scrubjay.game.stages import SEEKER_STEPS
from scrubjay.web.database import Database
from scrubjay.web.trial import HIDE

COMPARED = 100
"""The most games to compare with, the latest."""
SCRIPTED = {
    "random": {"heuristic": 440, "random": 242}, "frontier": {"heuristic": 64, "random": 13},
    "bfs": {"heuristic": 48, "random": 6}, "oracle": {"heuristic": 33, "random": 3},
}  # fmt: skip
"""By seeker, then hider: the mean length of a search in the 20 test rooms, 40 games each (results/game.md)."""


def score_game(database: Database, row: sqlite3.Row) -> dict[str, Any]:
    """What the page says about a finished trial outside studies.

    `search` is its length, `games` the number of people's other games in this role with the same opponent, `beaten` how
    many of them this one beats, `scripted` the search lengths of scripted hiders.
    """
    hiding = row["role"] == HIDE
    length = search_length(row)
    others = database.all(
        "SELECT role, found, steps, record FROM trials WHERE study IS NULL AND ended IS NOT NULL AND role = ? "
        "AND opponent = ? AND id != ? ORDER BY ended DESC LIMIT ?",
        row["role"], row["opponent"], row["id"], COMPARED,
    )  # fmt: skip
    lengths = [search_length(other) for other in others]
    return {
        "search": length, "score": score(length, hiding), "games": len(lengths),
        "beaten": sum(length > other if hiding else length < other for other in lengths),
        "scripted": SCRIPTED.get(row["opponent"], {}) if hiding else {},
    }  # fmt: skip


def score(length: int, hiding: bool) -> int:
    """Points from 0 to 100 for a search of this length."""
    hidden = round(100 * length / SEEKER_STEPS)
    return hidden if hiding else 100 - hidden


def search_length(row: sqlite3.Row) -> int:
    """Of a finished trial that was sought."""
    if not row["found"]:
        return SEEKER_STEPS
    if row["role"] != HIDE:
        return min(row["steps"], SEEKER_STEPS)
    # A person's hiding ends with ReadyForSeeker; the seeker's steps follow.
    return json.loads(row["record"])["actions"][::-1].index("ReadyForSeeker")
