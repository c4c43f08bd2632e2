"""What time it is for a family: the process that carries it says so, whoever writes into which log."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import runner
from eventlog import Directory
from replay.events import ChildStarted
from runner import Answer
from runner._service import due
from runner.testing import ScriptedModel, tool_calls
from tests.children.scenes import children, events, lead, paying, resume, start
from tests.support.stage import NOON, Ticking


class SetBack(Ticking):
    """A clock of which each look takes a tenth of a second, and that is set back by ten minutes when told so."""

    shift = timedelta(0)

    def wall(self) -> datetime:
        """The time of day, as the machine believes it."""
        self.at += timedelta(seconds=0.1)
        return self.at + self.shift

    def set_back(self, _: Any = None) -> Any:
        """Set it back; as a model, hand out the task besides."""
        self.shift = -timedelta(minutes=10)
        return tool_calls(("clerk", {"task": "ask a"}), dollars=0.25)


def test_what_a_hook_says_to_a_child_is_saved_at_the_time_of_the_run_that_asked(runs: Directory) -> None:
    """At another time the child's log would run ahead, and its parent would wait for what the child waits for."""
    clock = Ticking(NOON)

    def approved(_: object) -> Answer:
        return Answer("approve", "ann", always={"order": "ask a"})

    start(lead("ask a"), runs, clock=clock, on_question=approved).finished()
    (child,) = children(runs)
    assert {line.at for run in ("p", child) for line in runs.read(run).lines[1:]} == {NOON}


def test_a_child_is_not_opened_again_and_again_where_the_clock_was_set_back_under_its_parent(runs: Directory) -> None:
    """By its parent's time it was due at once, and by its own it was not: they went on like that for ten minutes."""
    clock = SetBack()
    clerk = paying(answer_within=timedelta(minutes=5))
    agent = runner.Agent(name="lead", model=ScriptedModel([clock.set_back]), tools=[runner.as_tool(clerk)])
    assert isinstance(start(agent, runs, clock=clock), runner.Paused)
    assert sum(isinstance(event, ChildStarted) for event in events(runs)) == 1


def test_a_clock_that_was_set_back_between_two_lives_lets_a_child_forget_its_keys_too(runs: Directory) -> None:
    """Nobody knows how old they are: so a person is asked, and the key is not sent again."""
    sent: list[int] = []

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=1), timeout=5, attempts=2)
    def charge(order: str, call: runner.Call) -> str:
        """Charge for an order."""
        sent.append(call.n)
        raise ConnectionError(order)

    clock = SetBack(NOON + timedelta(days=36_500))  # later than the day on which this is enqueued
    clerk = runner.Agent(name="clerk", model=ScriptedModel([tool_calls(("charge", {"order": "a"}))]), tools=[charge])
    agent = lead("charge a", clerk=clerk)
    runner.enqueue(agent, "Have it charged.", runs=runs, run="p")
    assert isinstance(resume(agent, runs, clock=clock, wait="return"), runner.Waiting)
    clock.set_back()
    outcome = resume(agent, runs, clock=clock)
    assert isinstance(outcome, runner.Paused)
    assert sent == [1]


def test_a_child_that_waits_for_a_person_is_carried_on_at_its_own_deadline(runs: Directory) -> None:
    """It stops, and its parent goes on with that: the parent, which knew of no deadline, waited for the person."""
    clock = Ticking(NOON + timedelta(days=36_500))
    until = clock.at + timedelta(minutes=1)
    agent = lead("ask a", clerk=paying(limits=runner.Limits(until=until)))
    runner.enqueue(agent, "Have it paid.", runs=runs, run="p")
    paused = resume(agent, runs, clock=clock)
    assert isinstance(paused, runner.Paused)
    assert paused.state.due == until
    assert not due.is_due(paused.state, until - timedelta(seconds=1))
    assert due.is_due(paused.state, until)
    before = len(events(runs))
    resume(agent, runs, clock=clock)
    assert len(events(runs)) == before
    clock.at = until
    assert resume(agent, runs, clock=clock).finished().answer == "All is done."
    assert sum(isinstance(event, ChildStarted) for event in events(runs)) == 2


def test_a_child_whose_deadline_comes_before_the_end_of_its_wait_is_carried_on_then(runs: Directory) -> None:
    """It stops, and its parent goes on with that: it waited for as long as the child would have."""

    @runner.tool
    def act() -> str:
        raise runner.ToolFailed("busy", retry_after=3600)

    clock = Ticking(NOON + timedelta(days=36_500))
    until = clock.at + timedelta(minutes=1)
    script = ScriptedModel([tool_calls(("act", {}))])
    clerk = runner.Agent(name="clerk", model=script, tools=[act], limits=runner.Limits(until=until))
    agent = lead("act", clerk=clerk)
    runner.enqueue(agent, "Have it done.", runs=runs, run="p")
    waiting: Any = resume(agent, runs, clock=clock, wait="return")
    assert waiting.until == until
    clock.at = until
    assert resume(agent, runs, clock=clock, wait="return").finished().answer == "All is done."
