"""A death at every point of agents of frameworks: nothing twice, nothing lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import runner
from runner import testing
from tests.frameworks.orders import ORDERS
from tests.support import sampled
from tests.support.figures import FIGURES

pytestmark = [pytest.mark.fault("a death at any point of a framework's agent")]
KINDS = pytest.mark.parametrize("kind", [kind for kind in ORDERS if kind != "plain"])


class Services:
    """What is outside, and survives: a bank that knows keys, a post that can be asked, a wire that can't."""

    def __init__(self, _folder: Path) -> None:
        self.keys: dict[str, list[str]] = {"charge": [], "mail": [], "wire": []}
        self.replies = Counter[int]()

    def counts(self) -> dict[str, int]:
        """The effects."""
        return {name: len(keys) for name, keys in self.keys.items()}

    def asked(self, turn: int) -> int:
        """How often a reply was asked for before: another one has calls with other ids."""
        self.replies[turn] += 1
        return self.replies[turn] - 1

    async def did(self, tool: str, call: runner.Call) -> str:
        """Act; the bank charges once for each key."""
        if tool in self.keys and not (tool == "charge" and call.key in self.keys[tool]):
            self.keys[tool].append(call.key)
        return f"{tool} {call.arguments['n']}"

    def mailed(self, call: runner.Call) -> runner.Found | runner.Missing:
        """Whether a mail was sent."""
        return runner.Found("mail 4") if call.key in self.keys["mail"] else runner.Missing()


def swept(kind: str, **how: Any) -> testing.SweepReport:
    """The report of a sweep; a model that is asked for a reply again words it differently by itself."""
    order = ORDERS[kind]
    return testing.sweep(
        environment=Services, agent=order, task="Order.", effects=Services.counts, reword=lambda reply: reply, **how
    )


@KINDS
def test_a_death_at_a_few_points_does_nothing_twice(kind: str) -> None:
    """Two modes of the sweep, at some of their points."""
    report = swept(kind, every=41, pairs=0, modes=("memory", "cancel"))
    assert not report.failures, report


@pytest.mark.full
@pytest.mark.early
@pytest.mark.parametrize("mode", testing.MODES)
@KINDS
def test_a_death_at_a_point_of_any_mode_and_one_in_the_resume_do_nothing_twice(
    kind: str, mode: testing.Mode, record_property: Callable[[str, object], None]
) -> None:
    """The same in every mode, each with a second death; `SWEEP_EVERY=1` tries all points."""
    report = swept(kind, modes=[mode], every=sampled(29, mode), pairs=1)
    record_property(FIGURES, f"{report.rows[0].scenarios:,} scenarios")
    assert report.rows[0].scenarios > 0
    assert not report.failures, report
