"""What each branch of `decide` means for a history: where it first matters, found out without the retrace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import replay
from replay import Event, State
from replay._retrace import Decide
from tests.review.retrace.branches import Branch, Wired
from tests.review.retrace.histories import History, Place, essence


@dataclass
class Study:
    """A history under every branch that it takes, turned one at a time.

    `expected` is the first line whose decision differs (None when none does), `found` what the retrace names, and
    `drifted` whether it listed drift.
    """

    history: History
    wired: Wired = field(default_factory=Wired)
    places: list[Place] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    expected: dict[Branch, int | None] = field(default_factory=dict)
    found: dict[Branch, int | None] = field(default_factory=dict)
    drifted: set[Branch] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.agent = self.wired.agent(self.history.agent)

    def run(self) -> Study:
        """Take the list of branches from a retrace, then try each."""
        told = replay.retrace(self.history.lines, self._noted)
        assert told.divergence is None
        # A loop over nothing has no other way.
        self.branches = [branch for branch in self.wired.switch.taken if branch.way or not branch.site.loop]
        for branch in self.branches:
            self.wired.switch.turn(branch)
            since = self.wired.switch.taken[branch]  # before, nothing can be different
            places = [place for place in self.places if place.line >= since]
            self.expected[branch] = _first_change(places, self._decide)
            told = replay.retrace(self.history.lines, self._decide)
            self.found[branch] = told.divergence.seq if told.divergence is not None else None
            if told.drift:
                self.drifted.add(branch)
        return self

    def unseen(self) -> set[Branch]:
        """The branches whose other way is neither a divergence nor drift on this history."""
        return {branch for branch in self.branches if self.found[branch] is None} - self.drifted

    def _decide(self, state: State, now: datetime) -> list[Event]:
        return self.wired.decide(self.agent, state, now)

    def _noted(self, state: State, now: datetime) -> list[Event]:
        decided = self._decide(state, now)
        self.places.append(Place(state, now, decided))
        return decided


def _first_change(places: Sequence[Place], decide: Decide) -> int | None:
    """The first line for which `decide` says something else than was decided, or raises."""
    for place in places:
        try:
            now = decide(place.state, place.now)
        except Exception:  # noqa: BLE001 (a mutation may raise anything, and that differs)
            return place.line
        if essence(now) != essence(place.decided):
            return place.line
    return None
