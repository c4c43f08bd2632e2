"""A death at every point of programs with a loop of their own: nothing twice, nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import runner
from runner import testing
from runner.adapters import Durable
from tests.durable.looping import Framework
from tests.support import sampled
from tests.support.figures import FIGURES

pytestmark = [pytest.mark.fault("a death at any point of a program with a loop of its own")]


class Bank:
    """What is outside, and survives."""

    def __init__(self, _folder: Path) -> None:
        self.charged, self.mails, self.drawn = set[str](), list[str](), 0

    def counts(self) -> dict[str, int]:
        """The effects."""
        return {"charge": len(self.charged), "mail": len(self.mails)}

    def charge(self, call: runner.Call) -> str:
        """Charge a card once for each key."""
        self.charged.add(call.key)
        return "charged"

    def mail(self, call: runner.Call) -> str:
        """Send a mail each time."""
        self.mails.append(call.key)
        return "mailed"

    def mailed(self, call: runner.Call) -> runner.Found | runner.Missing:
        """Whether a mail was sent."""
        return runner.Found("mailed") if call.key in self.mails else runner.Missing()

    def draw(self) -> int:
        """Another number each time."""
        self.drawn += 1
        return self.drawn


TERMS: dict[str, Any] = {
    "look": "reads",
    "charge": {"effect": "keyed", "key_ttl": timedelta(days=1)},
    "mail": {"approval": True, "visible_within": 0},
}


def plain(bank: Bank) -> runner.Agent[Any, Any, Any]:
    """A program without a model."""

    @runner.tool(**TERMS["charge"])
    async def charge(call: runner.Call, amount: int) -> str:  # noqa: ARG001 (the bank is told elsewhere)
        return bank.charge(call)

    @runner.tool(approval=True)
    async def mail(call: runner.Call, to: str) -> str:  # noqa: ARG001 (as above)
        return bank.mail(call)

    mail.lookup(visible_within=0)(bank.mailed)

    @runner.durable_main(name="order", tools=[charge, mail])
    async def order(run: Durable, _task: str, _inputs: None) -> str:
        await run.act("charge", {"amount": await run.step("amount", bank.draw)})
        try:
            return await run.act(mail, {"to": "ada"})
        except runner.ToolFailed as refused:
            return refused.why

    return order


def framework(bank: Bank) -> runner.Agent[Any, Any, Any]:
    """A framework's agent, with two reads side by side and two effects."""

    async def look(call: runner.Call) -> str:
        return f"saw {call.arguments['x']}"

    async def charge(call: runner.Call) -> str:
        return bank.charge(call)

    looks = testing.tool_calls(("look", {"x": 1}), ("look", {"x": 2}))
    acts = testing.tool_calls(("charge", {"n": 9}), ("mail", {"to": "ada"}))
    replies = [looks, acts, runner.Reply(text="done")]
    terms = {**TERMS, "mail": {**TERMS["mail"], "lookup": bank.mailed}}
    forty = Framework(replies, {"look": look, "charge": charge, "mail": bank.mail}, terms)

    @runner.durable_main(name="order", framework="forty")
    async def order(run: Durable, task: str, _inputs: None) -> str:
        return await forty.run(run, task)

    return order


def swept(main: Any, **how: Any) -> testing.SweepReport:
    """The report of a sweep."""
    return testing.sweep(environment=Bank, agent=main, task="Order.", effects=Bank.counts, **how)


@pytest.mark.parametrize("main", [plain, framework])
def test_a_death_at_a_few_points_does_nothing_twice(main: Any) -> None:
    """Some modes of the sweep, at some of their points."""
    report = swept(main, every=41, pairs=0, modes=("memory", "service", "cancel"))
    assert not report.failures, report


@pytest.mark.full
@pytest.mark.early
@pytest.mark.parametrize("mode", testing.MODES)
@pytest.mark.parametrize("main", [plain, framework])
def test_a_death_at_a_point_of_any_mode_and_one_in_the_resume_do_nothing_twice(
    main: Any, mode: testing.Mode, record_property: Callable[[str, object], None]
) -> None:
    """The same in every mode, each with a second death."""
    report = swept(main, modes=[mode], every=sampled(13, mode), pairs=1)
    record_property(FIGURES, f"{report.rows[0].scenarios:,} scenarios")
    assert not report.failures, report
