"""A hider without networks: explores, and puts the object where, by what it saw, it is hard to see.

Best is what can be shut: a container that it opened itself. Next best is where it was seen from the fewest of the
places that it has been to.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, PLACE_ACTIONS, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.players.explorer import CLOSE, OPENINGS, ExploringMind, Minds
from scrubjay.players.manipulator import CONTAINED, ON_TOP, Hand, aim, drops
from scrubjay.players.perception import Sight, pixel_of, sights
from scrubjay.players.planning import Spot
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS
from scrubjay.sim.compile import GOAL_BOXES

READY = action_index("ReadyForSeeker")
RIM = 0.08
"""Metres by which a drawer's front is at least higher than its bottom."""
FEW, INSIDE = 20, 200
"""Points of the inside of a thing with fewer of which it is looked at again, and that are remembered at most."""
THOUGHT_OF = 1000
"""Open places, at most, that the hider weighs against each other."""
NEARER = 0.05
"""Metres by which something must be nearer than a point to hide it, or have been to have hidden it."""
TRUST = 2
"""Manipulations after which the hider gives up a container."""
ATTEMPTS = 4
"""Manipulations after which any placement will do."""
LAST_CALL = 4
"""Steps before the end at which any placement will do."""


@dataclass(frozen=True)
class Idea:
    """Where the object might be hidden, and from where."""

    place: Spot
    modality: int
    row: int
    column: int
    rest: np.ndarray
    """(3,): where its middle would be."""
    openable: int = NOTHING
    """What must be open for it, and shut afterwards."""

    @property
    def action(self) -> int:
        return int(PLACE_ACTIONS[actions.target_index(self.modality, self.row, self.column)])


class HidingMind(ExploringMind):
    """What the hider of one game knows and wants."""

    def __init__(self, goal: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.goal, self.rng = goal, rng
        self.shut: list[Idea] = []
        """In what can be shut."""
        self.bare: list[Idea] = []
        """In the open."""
        self.opened_at: dict[int, tuple[int, int]] = {}
        """Where the hider stood, not in their way, when it opened things."""
        self.insides: dict[int, np.ndarray] = {}
        """Points (n, 3) that were seen in openables."""
        self.looks: list[tuple[Sight, np.ndarray]] = []
        """What was seen on the way: cameras, and how far things were (n, n)."""
        self.ideas: list[Idea] = []
        """What is still to be tried where the hider is, the next one last."""
        self.idea: Idea | None = None
        self.hand: Hand | None = None
        self.again: list[int] = []
        """Movements of the hand to be repeated, the next one last."""
        self.attempts = 0
        self.fallback: tuple[int, list[int]] | None = None
        """A PlaceAt that will succeed, and the movements that make it."""
        self.placed = self.closed = False
        self._before: Sight | None = None

    # Exploring.

    def next(self, sight: Sight, success: bool) -> int:
        if success and self._aim[2] != NOTHING and self._before is not None:
            self.opened_at[self._aim[2]] = sight.place[:2]
            self._look_inside(sight, self._aim[2], _depth(sight) > _depth(self._before) + NEARER)
        for openable in self.opened:
            # Drawers are often opened from too low to see into them.
            if len(self.insides.get(openable, ())) < FEW:
                self._look_inside(sight, openable, np.zeros(sight.ids.shape, bool))
        found = drops(sight, self.goal)
        openable = sight.openable[*found.pixel.T]
        surface = sight.points[*found.pixel.T]
        for n, number in enumerate(openable.tolist()):
            at = (int(found.row[n]), int(found.column[n]), found.rest[n])
            if number == NOTHING:
                self.bare.append(Idea(sight.place, ON_TOP, *at))
            elif sight.is_open[*found.pixel[n]] and self._is_inside(number, surface[n]):
                self.shut.append(Idea(sight.place, CONTAINED, *at, openable=number))
        self.looks.append((sight, _depth(sight)[::2, ::2]))
        self._before = sight
        return super().next(sight, success)

    def _is_inside(self, openable: int, point: np.ndarray) -> bool:
        inside = self.insides.get(openable)
        return inside is not None and bool(np.linalg.norm(inside - point, axis=1).min() < NEARER)

    def _look_inside(self, sight: Sight, opened: int, behind: np.ndarray) -> None:
        """Finds the inside of what was opened: what lies `behind` (n, n) where its front was, or behind where that is.

        The one is a cupboard's, the other a drawer's. A door that opens downwards is neither.
        """
        shown = (sight.openable == opened) & sight.is_open
        # The highest that is seen of it in each column of the image, from the lowest row up.
        height = np.where(shown, sight.points[..., 2], -np.inf)
        below = np.maximum.accumulate(height[::-1], 0)[::-1] > height + RIM
        inside = sight.points[shown & (behind | below)]
        if len(inside) > len(self.insides.get(opened, ())):
            self.insides[opened] = inside[:: -(-len(inside) // INSIDE)]

    # Choosing a place.

    def choose(self, sight: Sight) -> np.ndarray:
        """The place (4,) to hide from: right and ahead of here, quarter turns from the start's heading, standing."""
        # What was opened from a position can also be shut from there.
        fitting = [idea for idea in self.shut if self._fits(idea.openable)]
        if shut := [idea for idea in fitting if idea.place[:2] == self.opened_at[idea.openable]] or fitting:
            # Where most of an inside is seen, it is easiest to put something there.
            counts = Counter(place for place, *_ in {(idea.place, idea.row, idea.column) for idea in shut})
            most = [place for place, count in counts.items() if count == max(counts.values())]
            place = most[self.rng.integers(len(most))]
        elif self.bare:
            some = self.rng.permutation(len(self.bare))[:THOUGHT_OF]
            share = self.exposure(np.array([self.bare[n].rest for n in some]))
            place = self.bare[some[int(share.argmin())]].place
        else:
            place = sight.place
        here = [idea for idea in self.bare if idea.place == place]
        share = self.exposure(np.array([idea.rest for idea in here]).reshape(-1, 3))
        self.ideas = _once([here[n] for n in np.argsort(-share, kind="stable")])
        self.ideas += _once(_middle_last([idea for idea in shut if idea.place == place]))
        return np.array([place[0] - sight.place[0], place[1] - sight.place[1], *place[2:]])

    def _fits(self, openable: int) -> bool:
        """Is the object shorter than what was seen of an inside is long?"""
        return bool(np.ptp(self.insides[openable][:, :2], axis=0).max() > max(GOAL_BOXES[GOALS[self.goal]][:3]))

    def exposure(self, points: np.ndarray) -> np.ndarray:
        """Of the places looked from whose images points (n, 3) fall into, the share that really showed them, (n,)."""
        seen, shown = np.full(len(points), 0.5), np.ones(len(points))
        for sight, depth in self.looks:
            at = pixel_of(sight, points)
            inside = (np.abs(at - 0.5) < 0.5).all(1)
            row, column = (at[inside] * len(depth)).astype(int).T
            away = -((points - sight.eye) @ sight.matrix)[:, 2]
            seen[inside] += away[inside] <= depth[row, column] + NEARER
            shown += inside
        return seen / shown

    # Hiding.

    def hide(self, sight: Sight, game: CacheGame, b: int) -> int:
        """The action of one step of hiding."""
        last, success, left = int(game.last_action[b]), bool(game.last_success[b]), _steps_left(game, b)
        if last != NOTHING and actions.PLACE_AT[last] != NOTHING:
            self.placed |= success
            if not self.placed and (again := self._failed(int(game.landed[b]), left)) is not None:
                return again
        if self.placed:
            if self.idea is not None and self.idea.openable != NOTHING and not self.closed:
                self.closed = True
                return CLOSE
            return READY
        return self._try(sight)

    def _failed(self, landed: int, left: int) -> int | None:
        """After a manipulation that missed its target: the object has landed somewhere, which can be aimed at."""
        assert self.hand is not None and self.idea is not None
        if landed != NOTHING:
            self.fallback = (landed, self.hand.done)
        if self.attempts >= TRUST:
            # It does not fit, or the hand does not get there.
            self.ideas = [idea for idea in self.ideas if idea.modality == ON_TOP]
        wanted = self.idea.modality == ON_TOP or actions.target_of(actions.PLACE_AT[landed])[0] == CONTAINED
        if self.fallback and (
            (landed != NOTHING and wanted) or left <= LAST_CALL or self.attempts >= ATTEMPTS or not self.ideas
        ):
            (action, movements), self.fallback = self.fallback, None
            self.again, self.attempts = movements[::-1], 0
            return action
        return None

    def _try(self, sight: Sight) -> int:
        while self.ideas and self.ideas[-1].place == sight.place:
            idea = self.ideas[-1]
            if idea.openable != NOTHING and not (sight.is_open & (sight.openable == idea.openable)).any():
                cells = np.argwhere(sight.at_cells == idea.openable)
                if len(cells) and idea.openable not in self.refused:
                    self.refused[idea.openable] = {sight.place}
                    return int(OPENINGS[tuple(cells[0])])
                self.ideas.pop()
                continue
            self.ideas.pop()
            return self._begin(idea)
        return self._begin(self._makeshift(sight))

    def _begin(self, idea: Idea) -> int:
        self.idea, self.hand, self.again = idea, Hand(idea.rest, self.goal), []
        self.attempts += 1
        return idea.action

    def _makeshift(self, sight: Sight) -> Idea:
        """Where nothing was thought of: any level surface, or straight ahead and down."""
        found = drops(sight, self.goal)
        if len(found.row):
            n = int(self.rng.integers(len(found.row)))
            return Idea(sight.place, ON_TOP, int(found.row[n]), int(found.column[n]), found.rest[n])
        row, column = CELLS - 2, CELLS // 2
        return Idea(sight.place, ON_TOP, row, column, aim(sight, self.goal, np.array([ON_TOP, row, column])))

    def manipulate(self, sight: Sight, target: np.ndarray, success: bool) -> int:
        """The action of one step of manipulating; the target (3,) matters only if it was not the hider who chose it."""
        if self.hand is None:
            self.hand = Hand(aim(sight, self.goal, target), self.goal)
        return self.again.pop() if self.again else self.hand.next(sight, success)


def _middle_last(ideas: list[Idea]) -> list[Idea]:
    """Ideas in the order of how near they are to the middle of the image, the nearest last."""
    return sorted(ideas, key=lambda idea: -abs(idea.column - CELLS // 2) - 0.1 * abs(idea.row - CELLS // 2))


def _once(ideas: list[Idea]) -> list[Idea]:
    """The last idea for each target."""
    return list({idea.action: idea for idea in ideas}.values())


def _depth(sight: Sight) -> np.ndarray:
    """How far what is seen is along the camera's axis, (n, n)."""
    return -((sight.points - sight.eye) @ sight.matrix)[..., 2]


def _steps_left(game: CacheGame, b: int) -> int:
    return int(game.limits[Stage.OH] - game.time[b, Stage.OH])


class HeuristicHider:
    """Plays all stages but seeking."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self._minds = Minds(lambda game, b: HidingMind(int(game.goal[b]), rng))

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        action, place = np.full(len(game), NOTHING), np.zeros((len(game), 4), int)
        hiding = np.flatnonzero(games & (game.stage != Stage.S))
        for b, sight in zip(hiding.tolist(), sights(game, hiding), strict=True):
            mind, stage, success = self._minds.of(game, b), game.stage[b], bool(game.last_success[b])
            if stage == Stage.EM:
                action[b] = mind.next(sight, success)
            elif stage == Stage.PS:
                place[b] = mind.choose(sight)
            elif stage == Stage.OH:
                action[b] = mind.hide(sight, game, b)
            else:
                action[b] = mind.manipulate(sight, game.target[b], success)
        return action, place
