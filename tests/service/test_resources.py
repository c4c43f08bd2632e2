"""What an agent's runs share: made by its `resources`, read as `call.resources`."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import runner
import runner.testing
from tests.service import scenes
from tests.support import stage

LOOP = runner.testing.tool_calls(("act", {}))


class Database:
    """A resource that notes how it was used; while `fails` is left, it can't be entered."""

    def __init__(self, fails: int = 0, error: type[BaseException] = ConnectionError) -> None:
        self.said: list[str] = []
        self.read: list[object] = []
        self.fails, self._error = fails, error

    @contextlib.asynccontextmanager
    async def __call__(self) -> AsyncIterator[str]:
        """One connection."""
        task = asyncio.current_task()
        if self.fails:
            self.fails -= 1
            self.said.append("failed")
            raise self._error
        self.said.append("entered")
        try:
            yield "connection"
        finally:
            self.said.append("left" if asyncio.current_task() is task else "left in another task")

    def agent(self, name: str = "agent") -> runner.Agent:
        """An agent whose tool and lookup read the resource."""

        @runner.tool
        def act(call: runner.Call) -> str:
            self.read.append(call.resources)
            raise runner.OutcomeUnknown("the connection broke")

        @act.lookup(visible_within=0)
        def acted(call: runner.Call) -> runner.Found:
            self.read.append(call.resources)
            return runner.Found("done")

        return stage.agent([LOOP, "over"], act, name=name, resources=self)


def test_a_run_alone_has_its_resources_from_its_begin_to_its_end(runs: Path) -> None:
    """Tools and lookups read them; a run that is done needs none."""
    database = Database()
    assert stage.finished(runner.start_sync(database.agent(), stage.TASK, runs=runs, run="r")) == "over"
    assert (database.said, database.read) == (["entered", "left"], ["connection"] * 2)
    runner.run_sync(database.agent(), stage.TASK, runs=runs, run="r")
    runner.resume_sync("r", database.agent(), runs=runs)
    assert database.said == ["entered", "left"]


def test_resources_that_cannot_be_entered_leave_no_run_and_no_lock(runs: Path) -> None:
    """What raises is raised before a line is written."""
    with pytest.raises(ConnectionError):
        runner.start_sync(Database(fails=1).agent(), stage.TASK, runs=runs, run="r")
    assert not (runs / "r").exists()
    runner.enqueue(Database().agent(), stage.TASK, runs=runs, run="r")
    before = stage.written(runs)
    with pytest.raises(ConnectionError):
        runner.resume_sync("r", Database(fails=1).agent(), runs=runs)
    assert stage.written(runs) == before
    assert stage.finished(runner.resume_sync("r", Database().agent(), runs=runs)) == "over"


@pytest.mark.usefixtures("impatient")
def test_a_worker_enters_an_agents_resources_once_and_leaves_them_in_the_same_task(runs: Path) -> None:
    """At its first run and not before; a task group in them could not be left from another task."""
    database, idle = Database(), Database()

    async def main() -> None:
        async with runner.Worker([database.agent(), idle.agent("idle")], runs=runs) as worker:
            started = [await worker.start(database.agent(), stage.TASK, run=f"r-{n}") for n in range(5)]
            for one in started:
                assert stage.finished(await one.outcome()) == "over"
            assert database.said == ["entered"]

    asyncio.run(main())
    assert database.said == ["entered", "left"]
    assert set(database.read) == {"connection"}
    assert idle.said == []


@pytest.mark.fault("resources that fail")
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("error", [ConnectionError, asyncio.CancelledError])
def test_a_factory_that_raises_stops_its_agents_runs_and_no_other(runs: Path, error: type[BaseException]) -> None:
    """It is a problem of the agent; its runs stay due, uncounted, and go on when it is back."""
    broken, sound = Database(1_000, error), Database()

    async def main() -> None:
        for number in range(3):
            runner.enqueue(broken.agent("broken"), stage.TASK, runs=runs, run=f"b-{number}")
        before = [stage.written(runs, f"b-{number}") for number in range(3)]
        async with runner.Worker([broken.agent("broken"), sound.agent("sound")], runs=runs, at_once=1) as worker:
            good = await worker.start(sound.agent("sound"), stage.TASK, run="g")
            assert stage.finished(await good.outcome()) == "over"
            async with asyncio.timeout(120):
                while "agent broken" not in worker.problems:  # noqa: ASYNC110 (whose turn comes first is open)
                    await asyncio.sleep(0.01)
            problem = worker.problems["agent broken"]
            assert (type(problem.error), broken.said.count("entered")) == (error, 0)
            assert [stage.written(runs, f"b-{number}") for number in range(3)] == before
            broken.fails = 1
            for number in range(3):
                again = await worker.start(broken.agent("broken"), stage.TASK, run=f"b-{number}")
                assert stage.finished(await again.outcome()) == "over"
            assert not worker.problems

    asyncio.run(main())
    assert broken.said[-4:] == ["failed", "failed", "entered", "left"]
    assert broken.said.count("entered") == 1
    assert scenes.effects_of(runs / "none") == []
