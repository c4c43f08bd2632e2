"""Calls of tools that are declared `parallel`: side by side, each saved when it ends, each settled for itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import replay
import runner
import runner.testing
from replay.events import (
    AttemptEnded,
    AttemptMarked,
    FileIntended,
    FileWritten,
    LookupAsked,
    QuestionAsked,
    ResultRecorded,
    RunStopped,
    WaitUntil,
)
from tests.support import stage, tools
from tests.support.story import BEGIN, Story

PATIENCE = 30.0


def payments(count: int) -> list[Any]:
    """A model that pays so many invoices at once."""
    return [runner.testing.tool_calls(*(("pay", {"invoice": n}) for n in range(count))), "over"]


def marked(runs: Path) -> list[list[str]]:
    """The calls that each line marks."""
    lines = ([e.call for e in line if isinstance(e, AttemptMarked)] for line in stage.lines(runs))
    return [line for line in lines if line]


def meeting(count: int) -> runner.Tool:
    """A payment that ends once so many others are under way."""
    barrier = threading.Barrier(count)

    @runner.tool(parallel=True)
    def pay(invoice: int) -> str:
        barrier.wait(PATIENCE)
        return f"paid {invoice}"

    return pay


def test_parallel_calls_are_marked_in_one_line_and_run_side_by_side(runs: Path) -> None:
    """Threads meet at a barrier that only all eight together can pass."""
    assert stage.finished(stage.start(payments(8), meeting(8), runs=runs)) == "over"
    assert marked(runs) == [[f"1.{n}" for n in range(8)]]
    assert [r.text for r in stage.results(runs).values()] == [f"paid {n}" for n in range(8)]


def test_an_agent_says_how_many_run_side_by_side(runs: Path) -> None:
    """A service may take only so many requests at a time."""
    assert stage.finished(stage.start(payments(6), meeting(3), runs=runs, parallel=3)) == "over"
    assert [len(line) for line in marked(runs)] == [3, 3]


@pytest.mark.parametrize("parallel", [0, -1, 1.5, "8"])
def test_a_limit_that_is_none_is_refused(parallel: object) -> None:
    """In a sentence that says what to write."""
    with pytest.raises(runner.BadAgent, match="not a whole number from 1"):
        stage.agent([], parallel=parallel)


def test_tools_that_say_nothing_run_alone(runs: Path) -> None:
    """Nobody knows what they would do to each other, and a call may rely on the one before."""
    order: list[int] = []

    @runner.tool(parallel=True)
    def pay(invoice: int) -> str:
        order.append(invoice)
        return "paid"

    @runner.tool
    def close(book: str) -> str:
        order.append(-1)
        return f"closed {book}"

    calls: list[tuple[str, dict[str, object]]] = [
        ("pay", {"invoice": 1}),
        ("pay", {"invoice": 2}),
        ("close", {"book": "b"}),
        ("pay", {"invoice": 3}),
    ]
    script = [runner.testing.tool_calls(*calls), "over"]
    assert stage.finished(stage.start(script, pay, close, runs=runs)) == "over"
    assert marked(runs) == [["1.0", "1.1"], ["1.2"], ["1.3"]]
    assert order[2:] == [-1, 3]


def test_each_is_saved_when_it_ends_while_the_others_are_in_flight(runs: Path) -> None:
    """What has returned is not in doubt, however long the others take."""
    go = [asyncio.Event() for _ in range(4)]
    go[2].set()

    @runner.tool(parallel=True)
    async def pay(invoice: int) -> str:
        await asyncio.wait_for(go[invoice].wait(), PATIENCE)
        return "paid"

    def watch(_: object, events: Sequence[object]) -> None:
        if {e.call for e in events if isinstance(e, ResultRecorded)} == {"1.2"}:
            for other in go:
                other.set()

    assert stage.finished(stage.start(payments(4), pay, runs=runs, watch=watch)) == "over"
    assert [len([e for e in line if isinstance(e, ResultRecorded)]) for line in stage.lines(runs)][3] == 1


def test_a_wave_ends_before_a_call_whose_intent_is_in_it(runs: Path) -> None:
    """Two payments of one invoice, side by side, would both be made before either is known."""
    paid: list[int] = []

    @runner.tool(parallel=True, once_per=["invoice"])
    def pay(invoice: int, note: str = "") -> str:
        paid.append(invoice)
        return f"paid {note}"

    calls: list[dict[str, object]] = [{"invoice": 1}, {"invoice": 2}, {"invoice": 1, "note": "again"}, {"invoice": 3}]
    script = [runner.testing.tool_calls(*(("pay", call) for call in calls)), "over"]
    assert stage.finished(stage.start(script, pay, runs=runs)) == "over"
    assert marked(runs) == [["1.0", "1.1"], ["1.3"]]
    assert sorted(paid) == [1, 2, 3]
    assert stage.results(runs)["1.2"].how == "refused"


def test_a_wait_of_one_call_holds_up_no_other(runs: Path) -> None:
    """Each tries again when its own time has come: the run sleeps until the earliest."""
    tried: list[int] = []

    @runner.tool(parallel=True, effect="idempotent")
    async def pay(invoice: int) -> str:
        tried.append(invoice)
        if tried.count(invoice) == 1:
            raise runner.ToolFailed("busy", retry_after=1000.0 - invoice)
        return "paid"

    clock = stage.Ticking()
    assert stage.finished(stage.start(payments(3), pay, runs=runs, clock=clock)) == "over"
    assert tried == [0, 1, 2, 2, 1, 0]
    assert stage.events(runs, WaitUntil)[0].call == "1.2"
    assert clock.at == stage.NOON + timedelta(seconds=1000)


def test_a_call_tries_again_while_another_is_in_flight(runs: Path) -> None:
    """A slow one makes no other wait."""
    again = asyncio.Event()
    tried: list[int] = []

    @runner.tool(parallel=True, effect="idempotent")
    async def pay(invoice: int) -> str:
        tried.append(invoice)
        if invoice == 0:
            await asyncio.wait_for(again.wait(), PATIENCE)
        elif tried.count(1) == 1:
            raise runner.ToolFailed("busy", retry_after=5.0)
        else:
            again.set()
        return "paid"

    assert stage.finished(stage.start(payments(2), pay, runs=runs, clock=stage.Ticking())) == "over"
    assert tried == [0, 1, 1]
    assert stage.events(runs, WaitUntil) == []  # the process was up anyway
    runner.review.retrace("r", stage.agent([], pay), runs=runs).check()  # whatever order the outcomes were saved in


def test_after_the_deadline_nothing_begins_and_what_is_in_flight_may_end() -> None:
    """Neither another attempt nor the next wave; the run stops when the last of them has ended."""
    limits = runner.Limits(until=BEGIN + timedelta(seconds=60))
    story = Story(tools.parallel().replace(limits=limits))
    story.reply(*(("push", f'{{"cause": "{n}"}}') for n in range(4)))
    story.tick(61)
    assert story.ended("nothing", retry_after=0.0, call="1.1") == []
    assert story.ran(call="1.0") == []
    assert [e.reason for e in story.ran(call="1.2") if isinstance(e, RunStopped)] == ["Deadline"]


@pytest.mark.parametrize("says", [runner.park, runner.stop])
def test_a_person_who_parks_or_stops_lets_what_is_in_flight_end(runs: Path, says: Callable[..., object]) -> None:
    """What ended in time is recorded, and nothing else begins: no lookup of what is in doubt, no further wave."""
    go = asyncio.Event()

    @runner.tool(parallel=True)
    async def pay(invoice: int) -> str:
        if invoice == 1:
            says("r", "ann", runs=runs)
            raise ConnectionError
        await asyncio.wait_for(go.wait(), PATIENCE)
        return "paid"

    @pay.lookup
    def paid(_: runner.Call) -> runner.Missing:
        return runner.Missing()

    def watch(_: object, events: Sequence[object]) -> None:
        if any(isinstance(event, AttemptEnded) for event in events):
            go.set()

    agent = stage.agent(payments(4), pay, parallel=3)
    with pytest.raises(runner.Stopped):
        runner.start_sync(agent, stage.TASK, runs=runs, run="r", watch=watch, grace=PATIENCE)
    state = runner.read_state("r", runs)
    assert state.stopped is not None
    assert state.stopped.reason in ("Parked", "StoppedByPerson")
    assert marked(runs) == [["1.0", "1.1", "1.2"]]
    assert set(stage.results(runs)) == {"1.0", "1.2"}
    assert state.in_doubt == ("1.1",)
    assert stage.events(runs, LookupAsked) == []


def test_a_write_that_another_call_replaced_is_expected_no_more_in_whichever_order_their_calls_end() -> None:
    """The log has them in the order of the writes; results come in any."""
    for ends in (("1.0", "1.1"), ("1.1", "1.0")):
        story = Story(tools.parallel())
        story.reply(*(("push", f'{{"cause": "{n}"}}') for n in range(2)))
        story.write(FileIntended(call="1.0", path="f", sha256="a", before=None))
        story.write(FileIntended(call="1.1", path="f", sha256="b", before="a"))
        for call in ends:
            story.write(FileWritten(call=call, path="f", sha256={"1.0": "a", "1.1": "b"}[call]))
            assert "b" in story.state.files["f"]
        assert story.state.files["f"] == ("b",)


def test_what_is_declared_otherwise_is_named(runs: Path) -> None:
    """A deploy that changes what runs side by side: as drift, before it, and where it decides otherwise."""
    stage.start(payments(4), meeting(4), runs=runs)

    @runner.tool
    def pay(invoice: int) -> str:
        return f"paid {invoice}"

    told = runner.review.retrace("r", stage.agent([], pay, parallel=2), runs=runs)
    assert {part.part: (part.was, part.now) for part in told.drift if part.tag == "run_started"} == {
        "tool pay": ("", "parallel True -> False"),
        "parallel": ("8", "2"),
    }
    assert told.divergence is not None
    assert runner.review.retrace("r", stage.agent([], meeting(4), parallel=2), runs=runs).divergence is not None

    @runner.tool(parallel=True, approval=True)
    def ask(invoice: int) -> str:
        return f"paid {invoice}"

    script = [runner.testing.tool_calls(("ask", {"invoice": 1}))]
    stage.asked(stage.start(script, ask, runs=runs, run="open"))
    (found,) = runner.review.preflight(runs, stage.agent([], ask, parallel=2))
    assert [issue.says for issue in found.issues] == ["2 calls of a reply may run side by side, not 8"]


def test_its_guarantee_says_that_it_runs_beside_others() -> None:
    """In the words that a person reads before a crash."""
    (said,) = runner.review.guarantees(stage.agent([], meeting(1)))
    assert str(said) == "asks a person; beside others, each settled for itself; may ask: yes; may repeat: no"


def test_after_a_death_each_is_settled_for_itself_and_a_person_is_asked_about_the_rest_at_once() -> None:
    """A key is sent again, a service is asked, and only what has neither needs a person."""
    options = {"pay": "keyed", "patch": "non_idempotent", "send": "non_idempotent", "push": "non_idempotent"}
    made = [
        runner.Tool(
            tools.make(name, "non_idempotent", lookup=name == "patch").function,
            effect=effect,  # type: ignore[arg-type] # a literal
            key_ttl=tools.KEPT if effect == "keyed" else None,
            name=name,
            parallel=True,
        )
        for name, effect in options.items()
    ]
    made[1].lookup(visible_within=0)(lambda _: runner.Missing())
    story = Story(tools.agent(*made))
    story.reply(*((name, '{"cause": "x"}') for name in options))
    story.ran(call="1.3")
    story.die()
    assert [type(e).__name__ for e in story.go()] == ["AttemptMarked", "LookupAsked"]
    assert story.ran(call="1.0") == []
    asked = story.go(ResultRecorded(call="1.1", how="found", text="done"))
    assert [e.call for e in asked if isinstance(e, QuestionAsked)] == ["1.2"]
    assert story.state.phase == "paused"


def test_a_park_records_what_returned_in_time_and_leaves_each_of_the_others_in_doubt(runs: Path) -> None:
    """What is cut off has no outcome; what returned has one, saved before the stop."""
    never = asyncio.Event()

    @runner.tool(parallel=True)
    async def pay(invoice: int) -> str:
        if invoice == 1:
            await never.wait()
        return "paid"

    saved = asyncio.Event()

    def watch(state: replay.State, _: object) -> None:
        if state.in_doubt == ("1.1",):
            saved.set()

    async def cut() -> None:
        agent = stage.agent(payments(3), pay)
        run = asyncio.ensure_future(runner.start(agent, stage.TASK, runs=runs, run="r", watch=watch))
        await asyncio.wait_for(saved.wait(), PATIENCE)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(cut())
    assert set(stage.results(runs)) == {"1.0", "1.2"}
    assert runner.read_state("r", runs).in_doubt == ("1.1",)
    assert [e.reason for e in stage.events(runs, RunStopped)] == ["Interrupted"]


def test_two_calls_that_write_one_file_leave_it_explained(runs: Path, tmp_path: Path) -> None:
    """Whichever wrote last, a resume finds in the file what the log expects there."""
    barrier = threading.Barrier(2)

    @runner.tool(parallel=True)
    def pay(invoice: int, call: runner.Call) -> str:
        for n in range(8):
            call.workspace.write_text("ledger", f"{invoice} {n}")
        barrier.wait(PATIENCE)
        return "paid"

    place = tmp_path / "place"
    place.mkdir()
    script = [payments(2)[0], KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        stage.start(script, pay, runs=runs, workspace=place)
    assert len(stage.events(runs, FileWritten)) == 2
    assert stage.finished(runner.resume_sync("r", stage.agent(["", "over"], pay), runs=runs)) == "over"
