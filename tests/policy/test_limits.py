"""Deadlines, calls per tool, and approvals that nobody gives in time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import runner
from runner.testing import ScriptedModel, tool_calls

RUN = "r1"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RAN: list[str] = []


class Clock(runner.Clock):
    """A clock that a test sets; sleeping moves it."""

    def __init__(self) -> None:
        self.at = NOON

    def wall(self) -> datetime:
        """The time that was set."""
        return self.at

    def monotonic(self) -> float:
        """The same, in seconds."""
        return (self.at - NOON).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Move on."""
        self.at += timedelta(seconds=seconds)
        await asyncio.sleep(0)


@runner.tool(effect="reads", max_calls=3)
def look(order: str) -> str:
    """Look."""
    RAN.append(order)
    return order


@runner.tool(effect="idempotent", approval=True)
def pay(order: str) -> str:
    """Pay."""
    RAN.append(f"pay {order}")
    return "paid"


def agent(*script: Any, **options: Any) -> runner.Agent:
    """An agent whose model says this."""
    RAN.clear()
    return runner.Agent(name="a", model=ScriptedModel(script), tools=[look, pay], **options)


@pytest.mark.fault("a tool is called more often than it may")
def test_a_tool_is_called_so_often_and_no_more(tmp_path: Path) -> None:
    """In one reply, side by side, and in later ones; what is refused takes no attempt, and the model is told."""
    orders = [("look", {"order": str(n)}) for n in range(2)]
    made = agent(tool_calls(*orders), tool_calls(*orders), tool_calls(*orders), "Done.")
    done = runner.start_sync(made, "go", runs=tmp_path, run=RUN).finished()
    assert sorted(RAN) == ["0", "0", "1"]
    told = [r.text for m in done.state.messages[:] for r in getattr(m, "results", ()) if r.how == "refused"]
    assert told == ["Not run: look may be called 3 times in a run, and was."] * 3
    assert not runner.review.retrace(RUN, made, runs=tmp_path).drift
    more = made.replace(tools=[runner.Tool(lambda order: order, effect="reads", name="look", max_calls=9), pay])
    found = runner.review.retrace(RUN, more, runs=tmp_path)
    assert found.divergence is not None
    assert "max_calls 3 -> 9" in repr(found.drift)
    forked = runner.fork(RUN, at=4, runs=tmp_path, new="f1", who="ada")
    assert forked.tried["look"] >= 2


@pytest.mark.fault("something begins after the deadline")
@pytest.mark.parametrize("phase", ["model", "tools", "paused"])
def test_nothing_begins_after_the_deadline_and_a_later_one_goes_on(phase: str, tmp_path: Path) -> None:
    """Whatever comes next: an ask, a call, or an answer. A resume without another deadline changes nothing."""
    clock = Clock()

    def late(request: runner.Request) -> runner.Reply:
        clock.at += timedelta(hours=2)
        return tool_calls(("look", {"order": str(request.turn)}))

    calls = {"model": "look", "tools": "look", "paused": "pay"}[phase]
    script = [tool_calls((calls, {"order": "o"})) if phase == "paused" else late, "Done."]
    made = agent(*script, limits=runner.Limits(until=NOON + timedelta(hours=1)))
    if phase == "paused":
        assert isinstance(runner.start_sync(made, "go", runs=tmp_path, run=RUN, clock=clock), runner.Paused)
        clock.at += timedelta(hours=2)
        with pytest.raises(runner.errors.Deadline):
            runner.resume_sync(RUN, made, runs=tmp_path, clock=clock)
    else:
        with pytest.raises(runner.errors.Deadline, match="it was to be done by 2026-01-01 13:00:00 UTC"):
            runner.start_sync(made, "go", runs=tmp_path, run=RUN, clock=clock)
    assert RAN == []
    seq = runner.read_state(RUN, tmp_path).seq
    for same in (made, made.replace(limits=runner.Limits())):
        with pytest.raises(runner.errors.Deadline):
            runner.resume_sync(RUN, same, runs=tmp_path, clock=clock)
    assert runner.read_state(RUN, tmp_path).seq == seq
    more = made.replace(limits=runner.Limits(until=clock.at + timedelta(hours=9)), approve="off")
    assert runner.resume_sync(RUN, more, runs=tmp_path, clock=clock).finished().answer == "Done."


def test_an_answer_that_stands_is_no_matter_of_the_deadline(tmp_path: Path) -> None:
    """The run is done with it."""
    clock = Clock()

    def late(_: runner.Request) -> runner.Reply:
        clock.at += timedelta(hours=2)
        return runner.Reply(text="Done.")

    made = agent(late, limits=runner.Limits(until=NOON + timedelta(hours=1)))
    assert runner.start_sync(made, "go", runs=tmp_path, clock=clock).finished().answer == "Done."


@pytest.mark.fault("an approval stays open for ever")
def test_an_approval_that_nobody_gives_in_time_is_refused_in_the_policys_name(tmp_path: Path) -> None:
    """Whoever opens the run then goes on; the time stands in the question."""
    clock = Clock()
    made = agent(tool_calls(("pay", {"order": "o"})), "Not paid.", answer_within=timedelta(hours=1))
    paused = runner.start_sync(made, "go", runs=tmp_path, run=RUN, clock=clock)
    assert isinstance(paused, runner.Paused)
    assert paused.questions[0].expires == NOON + timedelta(hours=1)
    assert runner.list_runs(tmp_path)[0].status is not None
    assert isinstance(runner.resume_sync(RUN, made, runs=tmp_path, clock=clock), runner.Paused)
    clock.at += timedelta(hours=1)
    done = runner.resume_sync(RUN, made, runs=tmp_path, clock=clock).finished()
    assert RAN == []
    assert "policy: nobody answered in time, which refused this call" in repr(done.state.messages[:])
    assert not runner.review.retrace(RUN, made, runs=tmp_path).drift
    other = runner.review.retrace(RUN, made.replace(answer_within=timedelta(hours=2)), runs=tmp_path)
    assert other.divergence is not None
    assert "expires" in other.divergence.why


@pytest.mark.fault("a worker leaves a question that lapsed")
def test_a_worker_is_woken_when_a_question_lapses(tmp_path: Path) -> None:
    """The run's status says when."""
    clock = Clock()
    made = agent(tool_calls(("pay", {"order": "o"})), "Not paid.", answer_within=timedelta(hours=1))
    runner.start_sync(made, "go", runs=tmp_path, run=RUN, clock=clock)
    (info,) = runner.list_runs(tmp_path)
    assert info.status is not None
    assert info.status.wake == NOON + timedelta(hours=1)

    async def serve() -> str:
        async with runner.Worker([made], runs=tmp_path) as worker:  # by now it is long past
            return (await (await worker.start(made, "go", run=RUN)).outcome()).finished().answer

    assert asyncio.run(serve()) == "Not paid."


def test_limits_that_can_not_work_are_refused() -> None:
    """A time without its zone is one of another machine."""
    for options in (
        {"limits": runner.Limits(until=datetime(2026, 1, 1))},  # noqa: DTZ001 (what is refused)
        {"answer_within": timedelta(0)},
        {"answer_within": 5},
    ):
        with pytest.raises(runner.BadAgent):
            agent(**options)
    with pytest.raises(runner.BadTool):
        runner.tool(max_calls=-1)(str.upper)
