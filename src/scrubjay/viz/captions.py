"""Actions and things in words: `Opens the drawer`, not `OpenAt|5,7`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from scrubjay.viz.episode import Episode, EpisodeStep

WHERE = ("on top of", "into", "behind")
"""Where PlaceAt wants the object, by its modality."""
VERBS = {
    "MoveAhead": ("Steps ahead", "Cannot step ahead"),
    "MoveLeft": ("Steps left", "Cannot step left"),
    "MoveRight": ("Steps right", "Cannot step right"),
    "RotateLeft": ("Turns left", "Cannot turn left"),
    "RotateRight": ("Turns right", "Cannot turn right"),
    "Stand": ("Stands up", "Stands already"),
    "Crouch": ("Crouches", "Crouches already"),
    "OpenAt": ("Opens something", "Finds nothing to open there"),
    "CloseObjects": ("Closes what is open", "Cannot close anything"),
    "RotateHand": ("Turns the {goal}", "Cannot turn the {goal}"),
    "DropObject": ("Drops the {goal}", "Cannot drop the {goal}"),
    "PlaceAt": ("Takes the {goal} to put it {where} something", "Cannot put the {goal} {where} something there"),
    "PS": ("Chooses where to hide the {goal} from", "Chooses where to hide the {goal} from"),
    "ReadyForSeeker": ("Is ready for the seeker", "Cannot end the hiding yet"),
    "ClaimVisible": ("Claims the {goal}, rightly", "Claims the {goal}, wrongly"),
}
"""What a player does, and what it fails to do, by the kind of the action."""


def caption(episode: Episode, step: EpisodeStep) -> str:
    """What a step did, in words, with the things that it opened."""
    if step.opened:
        things = [episode.compiled.room.things[episode.compiled.openables[n].thing].type for n in step.opened]
        return f"Opens {_list([f'the {words_of(each)}' for each in things])}"
    return action_words(step.action, step.success, episode.record.goal)


def action_words(action: str, success: bool, goal: str) -> str:
    """An action and whether it succeeded, in words; an empty one is doing nothing."""
    if not action:
        return "Does nothing"
    kind = re.split(r"[| ]", action)[0]
    if kind.startswith("MoveHand"):
        direction = kind.removeprefix("MoveHand").lower()
        return f"{'Moves' if success else 'Cannot move'} the {goal.lower()} {direction}"
    where = WHERE[int(action.split("|")[1][0])] if kind == "PlaceAt" else ""
    return VERBS[kind][0 if success else 1].format(goal=goal.lower(), where=where)


def choice_words(action: str) -> str:
    """An action that a policy may choose, in words, with the cell of the image that it is about."""
    kind, _, argument = action.partition("|")
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower().replace(" at", "")
    if kind == "PlaceAt":
        modality, row, column = argument.split(",")
        return f"place {WHERE[int(modality)]} row {row}, column {column}"
    if kind == "OpenAt":
        row, column = argument.split(",")
        return f"open row {row}, column {column}"
    return f"{words} {argument}".strip()


def words_of(name: str) -> str:
    """A type's or thing's name in words: `ShowerDoor_2` as `shower door`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.split("_")[0]).lower()


def with_article(name: str) -> str:
    """`Drawer_5` as `a drawer`."""
    words = words_of(name)
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def count_things(types: Iterable[str]) -> str:
    """Things in words, most frequent first: `3 drawers, 2 cabinets, a fridge`."""
    counts = Counter(types).most_common()
    plural = lambda words: words + ("es" if words.endswith(("s", "x", "ch", "sh")) else "s")  # noqa: E731
    return ", ".join(with_article(each) if n == 1 else f"{n} {plural(words_of(each))}" for each, n in counts)


def _list(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
