"""Runs that nobody holds are found, whatever their time or their mail says, and nothing of a past life is kept."""

import asyncio
import contextlib
import gc
import shutil
import weakref
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import eventlog
import runner
from replay.events import MessageReceived
from runner._engine import mailbox, opening
from runner._engine.loop import Life
from runner._service import due
from runner.testing import tool_calls
from tests.service import scenes
from tests.support import stage
from tests.support.disks import Quick

QUESTION = "1.0-approve"


def asking(*, hours: float | None = None) -> runner.Agent:
    """An agent whose only call must be approved, within some hours."""

    @runner.tool(approval=True)
    def act() -> str:
        return "done"

    within = timedelta(hours=hours) if hours is not None else None
    return stage.agent([scenes.CALL, "over"], act, answer_within=within)


def found(store: eventlog.Store) -> list[due.Due]:
    """What a worker finds, and no problem."""
    problems: dict[str, Exception] = {}
    runs = due.find(store, ["r"], ["agent"], problems.__setitem__)
    assert problems == {}
    return runs


def leave(runs: Path, name: str, **request: str) -> None:
    """Leave a request, and die before the lock is tried."""
    data = msgspec.json.encode({"who": "ann", "post": "ab", **request})
    assert eventlog.store(runs).post("r", name, data)


@pytest.mark.fault("mail waits for a run's time")
def test_an_answer_that_its_poster_only_left_makes_a_run_due_that_waits_for_hours(runs: Path) -> None:
    """Unread mail is due at once, whenever the question lapses."""
    runner.start_sync(asking(hours=5), stage.TASK, runs=runs, run="r")
    assert found(eventlog.store(runs))[0].when > datetime.now(UTC)
    leave(runs, f"answer-{QUESTION}", kind="answer", question=QUESTION, verdict="approve")
    assert found(eventlog.store(runs))[0].when <= datetime.now(UTC)


@pytest.mark.fault("a clock set back hides a run")
def test_a_run_is_due_at_once_also_when_the_clock_was_set_back_since_its_last_line(runs: Path) -> None:
    """The time of its last line lies ahead, and nobody waits for it."""
    ahead = stage.Ticking(datetime.now(UTC) + timedelta(hours=3))
    opening.create(asking(), stage.TASK, store=eventlog.store(runs), run="r", enqueued=True, clock=ahead).life.end()
    assert found(eventlog.store(runs))[0].when <= datetime.now(UTC)


@pytest.mark.fault("one run ends a look at all")
def test_a_run_that_is_removed_while_it_is_looked_at_ends_no_look(runs: Path) -> None:
    """A worker whose look raised would hear nothing more."""
    runner.start_sync(asking(), stage.TASK, runs=runs, run="r")

    class Removed(eventlog.Directory):
        def inbox(self, run: str) -> Any:
            """Remove the run first."""
            shutil.rmtree(runs / run)
            return super().inbox(run)

    assert found(Removed(runs)) == []


@pytest.mark.fault("an interrupted question never lapses")
def test_a_question_lapses_by_itself_also_when_its_process_was_cut_off_while_it_asked(runs: Path) -> None:
    """The run is due when the question lapses."""

    async def go() -> None:
        asked = asyncio.Event()

        async def hang(_: runner.Question) -> None:
            asked.set()
            await asyncio.Event().wait()

        agent = asking(hours=5)
        running = asyncio.ensure_future(runner.start(agent, stage.TASK, runs=runs, run="r", on_question=hang))
        await asked.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    asyncio.run(go())
    state = runner.read_state("r", runs)
    assert state.stopped is not None
    assert [run.when for run in found(eventlog.store(runs))] == [state.waiting[0].expires]


@pytest.mark.fault("a message keeps a run parked")
def test_a_resume_carries_a_parked_run_on_also_when_it_takes_a_message_first(runs: Path) -> None:
    """What comes with the mail holds it back only if it is a park."""
    agent = asking()
    runner.start_sync(agent, stage.TASK, runs=runs, run="r")
    runner.park("r", "bob", runs=runs)
    leave(runs, "message-ab", kind="message", text="hello")
    stage.asked(runner.resume_sync("r", agent, runs=runs))


@pytest.mark.fault("mail that cannot be removed")
def test_a_request_that_cannot_be_removed_is_taken_once_and_keeps_no_life_busy(runs: Path) -> None:
    """The run comes to its pause, and whoever opens it knows the request."""

    class Stuck(Quick):
        looks = 0

        def list(self, path: Path) -> list[str]:
            """Count the looks into the inbox."""
            self.looks += path.name == "inbox"
            assert self.looks < 100
            return super().list(path)

        def unlink(self, path: Path, **options: Any) -> None:
            """Fail at what a poster left."""
            if path.name.startswith("message-"):
                raise PermissionError
            super().unlink(path, **options)

    @runner.tool
    async def act() -> str:
        leave(runs, "message-ab", kind="message", text="hello")
        await asyncio.sleep(2 * mailbox.POLL)
        return "done"

    @runner.tool(approval=True)
    def then() -> str:
        return "done"

    agent = stage.agent([scenes.CALL, tool_calls(("then", {})), "over"], act, then)
    stage.asked(runner.start_sync(agent, stage.TASK, runs=eventlog.Directory(runs, disk=Stuck()), run="r"))
    assert len(stage.events(runs, MessageReceived)) == 1


@pytest.mark.fault("a pause without a question")
def test_a_pause_that_is_answered_while_its_log_is_closed_still_names_its_question(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody carries it on: the answer is in the log."""
    end = Life.end

    def answered(life: Life) -> None:
        if not life.closed.is_set():
            assert not runner.approve("r", QUESTION, "ann", runs=runs).written
        end(life)

    monkeypatch.setattr(Life, "end", answered)
    (question,) = stage.asked(runner.start_sync(asking(), stage.TASK, runs=runs, run="r"))
    assert question.id == QUESTION
    assert runner.read_state("r", runs).waiting == ()


@pytest.mark.fault("a life leaves something open")
def test_lives_one_after_another_leave_no_file_open_and_no_loop(runs: Path) -> None:
    """A queue's worker process has thousands of them."""
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    @runner.tool
    async def act() -> str:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await asyncio.sleep(1.5 * mailbox.POLL)
        return "done"

    agent = stage.agent([scenes.CALL, "over"], act)

    def life(number: int) -> int:
        runner.start_sync(agent, stage.TASK, runs=runs, run=f"r-{number}")
        gc.collect()
        return len(list(Path("/dev/fd").iterdir()))

    before = life(0)
    assert [life(1), life(2)] == [before, before]
    assert [loop() for loop in loops] == [None] * 3


@pytest.mark.fault("resources that end by themselves")
@pytest.mark.usefixtures("impatient")
def test_resources_that_end_by_themselves_are_a_problem_of_the_agent_and_are_entered_again(runs: Path) -> None:
    """A connection that breaks takes the task group with it that held it."""
    said: list[str] = []
    broken, left = asyncio.Event(), asyncio.Event()

    async def breaks() -> None:
        await broken.wait()
        raise ConnectionError

    @contextlib.asynccontextmanager
    async def connection() -> AsyncIterator[str]:
        said.append("entered")
        try:
            async with asyncio.TaskGroup() as group:
                held = group.create_task(breaks())
                yield f"connection {len(said)}"
                held.cancel()
        finally:
            left.set()

    @runner.tool
    def act(call: runner.Call) -> str:
        return str(call.resources)

    agent = stage.agent([scenes.CALL, "over"], act, resources=connection)

    async def main() -> None:
        async with runner.Worker([agent], runs=runs) as worker:
            await (await worker.start(agent, stage.TASK, run="r-1")).outcome()
            broken.set()
            await asyncio.wait_for(left.wait(), 5)
            broken.clear()
            await (await worker.start(agent, stage.TASK, run="r-2")).outcome()
            assert not worker.problems

    asyncio.run(main())
    assert [stage.results(runs, run)["1.0"].text for run in ("r-1", "r-2")] == ["connection 1", "connection 2"]
