"""A worker carries on what is due, side by side, and gives everything back when it leaves."""

import asyncio
import contextlib
import errno
import logging
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Any

import pytest

import eventlog
import runner
import runner.testing
from replay.events import RunResumed, RunStarted
from runner._service import carrier
from tests.service import scenes
from tests.support import stage

pytestmark = pytest.mark.usefixtures("impatient")


async def until(ready: Callable[[], object]) -> None:
    """Let the loop run until something has happened."""
    async with asyncio.timeout(120):
        while not ready():  # noqa: ASYNC110 (it happens in files, too)
            await asyncio.sleep(0.01)


def test_a_worker_carries_on_whatever_is_due_and_nothing_else(runs: Path, tmp_path: Path) -> None:
    """Enqueued and interrupted runs of its agents; not those of others, nor what waits for a person."""
    agent = scenes.acting(tmp_path / "effects")
    for number in range(5):
        runner.enqueue(agent, stage.TASK, runs=runs, run=f"r-{number}")
    runner.enqueue(stage.agent([], name="other"), stage.TASK, runs=runs, run="theirs")
    with pytest.raises(runner.errors.TurnLimit):
        stage.start([], runs=runs, run="stopped", limits=runner.Limits(turns=0))
    others = [stage.written(runs, run) for run in ("theirs", "stopped")]

    async def main() -> None:
        async with runner.Worker([agent], runs=runs, at_once=3) as worker:
            await until(lambda: all(runner.read_state(f"r-{n}", runs).phase == "done" for n in range(5)))
            assert not worker.problems

    asyncio.run(main())
    assert sorted(scenes.effects_of(tmp_path / "effects")) == [f"r-{number}" for number in range(5)]
    assert [stage.written(runs, run) for run in ("theirs", "stopped")] == others


def test_beyond_at_once_a_run_is_accepted_and_waits_for_its_turn(runs: Path) -> None:
    """Each is durable when `start` returns."""
    together, most = 0, 0
    accepted = asyncio.Event()

    @runner.tool
    async def act() -> None:
        nonlocal together, most
        together += 1
        most = max(most, together)
        await accepted.wait()
        together -= 1

    agent = stage.agent([scenes.CALL, "over"], act)

    async def main() -> None:
        async with runner.Worker([agent], runs=runs, at_once=4) as worker:
            started = await asyncio.gather(*(worker.start(agent, stage.TASK, run=f"r-{n}") for n in range(12)))
            assert all(stage.events(runs, RunStarted, f"r-{n}") for n in range(12))
            await until(lambda: together == 4)
            assert len(worker.active) == 4
            accepted.set()
            assert {stage.finished(await one.outcome()) for one in started} == {"over"}

    asyncio.run(main())
    assert most == 4


def test_two_workers_that_start_the_same_ids_share_the_runs(runs: Path, tmp_path: Path) -> None:
    """Each awaits every outcome, whoever carried it on; another task under a used id is refused."""
    agent = scenes.acting(tmp_path / "effects", lasts=0.02)

    async def one(worker: runner.Worker, run: str) -> str:
        return stage.finished(await (await worker.start(agent, stage.TASK, run=run)).outcome())

    async def main() -> None:
        async with (
            runner.Worker([agent], runs=runs) as first,
            runner.Worker([agent], runs=runs) as second,
        ):
            both = [one(worker, f"r-{number}") for worker in (first, second) for number in range(20)]
            assert set(await asyncio.gather(*both)) == {"over"}
            with pytest.raises(runner.RunExists, match="not with this task"):
                await first.start(agent, "another", run="r-1")

    asyncio.run(main())
    assert sorted(scenes.effects_of(tmp_path / "effects")) == sorted(f"r-{number}" for number in range(20))


def test_a_place_that_can_not_be_looked_at_is_told_once_and_not_with_each_look(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks for due runs, rings and other processes finds the same; a server away for an hour fills no log."""
    looks = list[str]()
    store = eventlog.store(runs)

    def gone(*_: object) -> list[str]:
        looks.append("gone")
        raise OSError(5, "gone")

    monkeypatch.setattr(carrier, "AGAIN", (3600.0,))
    monkeypatch.setattr(store, "due", gone)

    async def main() -> None:
        async with runner.Worker([stage.agent(["over"])], runs=store) as worker:
            await until(lambda: len(looks) >= 10)
            assert worker.problems["all runs"].times == 1

    asyncio.run(main())


def test_a_run_that_raises_is_a_problem_and_harms_no_other(runs: Path) -> None:
    """A model without a price today, a damaged log, a tool that exits: each is reported, the others finish."""

    class Unpriced(runner.testing.ScriptedModel):
        def bound(self, request: runner.Request) -> runner.CostBound:
            if request.turn == 2:
                message = "no price today"
                raise ValueError(message)
            return super().bound(request)

    @runner.tool
    def act() -> str:
        raise SystemExit

    sound = stage.agent(["over"])
    raising = runner.Agent(name="raising", model=Unpriced([scenes.CALL, "over"]), tools=[act])
    leaving = stage.agent([scenes.CALL, "over"], act, name="leaving")
    runner.enqueue(sound, stage.TASK, runs=runs, run="damaged")
    segment = next((runs / "damaged").glob("seg-*"))
    segment.write_bytes(segment.read_bytes().replace(b"run_started", b"run_stopped"))

    async def main() -> None:
        said = time.monotonic()
        async with runner.Worker([sound, raising, leaving], runs=runs) as worker:
            for agent in (raising, leaving):
                bad = await worker.start(agent, stage.TASK, run=agent.name)
                with pytest.raises((ValueError, SystemExit)):
                    await bad.outcome()
                assert agent.name in worker.problems  # until it is tried again, and waits for a person
            good = [await worker.start(sound, stage.TASK, run=f"r-{number}") for number in range(3)]
            assert {stage.finished(await one.outcome()) for one in good} == {"over"}
            await until(lambda: "damaged" in worker.problems)
            damaged = worker.problems["damaged"]
            assert type(damaged.error) is eventlog.LogDamaged
            await until(lambda: worker.problems["damaged"].times >= 3)  # said again with each try, not with each look
            assert time.monotonic() - said > 0.5
            shutil.rmtree(runs / "damaged")
            await until(lambda: "damaged" not in worker.problems)

    asyncio.run(main())


def test_a_worker_that_nobody_entered_is_drained_at_once(runs: Path, tmp_path: Path) -> None:
    """As by a program that drains whatever it has when something else failed at its start."""
    asyncio.run(runner.Worker([scenes.acting(tmp_path / "effects")], runs=runs).drain())


@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_worker_that_was_drained_is_not_entered(runs: Path, tmp_path: Path, *, meanwhile: bool) -> None:
    """It would carry nothing, and leaving it would wait for ever for tasks that nobody ends."""

    async def enter() -> None:
        worker = runner.Worker([scenes.acting(tmp_path / "effects")], runs=runs)
        if not meanwhile:
            await worker.drain()
        entering = asyncio.create_task(worker.__aenter__())
        await asyncio.sleep(0)
        await worker.drain()
        with pytest.raises(runner.errors.WorkerLeft):
            await entering

    asyncio.run(enter())


@pytest.mark.parametrize("together", [False, True])
def test_a_worker_is_entered_once(runs: Path, tmp_path: Path, *, together: bool) -> None:
    """What began with the first time would look for runs for ever, and no other process would miss the worker."""

    async def enter() -> None:
        worker = runner.Worker([scenes.acting(tmp_path / "effects")], runs=runs)
        if not together:
            await worker.__aenter__()
        came = await asyncio.gather(*(worker.__aenter__() for _ in range(1 + together)), return_exceptions=True)
        assert sorted(type(one).__name__ for one in came) == ["Worker", "WorkerLeft"][not together :]
        await worker.drain()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert [*(runs / ".workers").iterdir()] == []

    asyncio.run(enter())


def test_what_ends_within_the_grace_keeps_its_result_and_the_next_worker_goes_on(runs: Path, tmp_path: Path) -> None:
    """The run is interrupted, free, and due; nobody is asked anything."""
    agent = scenes.acting(tmp_path / "effects", lasts=0.3)

    async def leave() -> None:
        async with runner.Worker([agent], runs=runs, grace=120) as worker:
            run = await worker.start(agent, stage.TASK, run="r")
            await until(lambda: scenes.effects_of(tmp_path / "effects"))
            await worker.drain()
            with pytest.raises(runner.errors.Interrupted):
                await run.outcome()
            with pytest.raises(runner.errors.WorkerLeft):
                await worker.start(agent, stage.TASK)

    async def again() -> None:
        async with runner.Worker([agent], runs=runs) as worker:
            run = await worker.start(agent, stage.TASK, run="r")
            assert stage.finished(await run.outcome()) == "over"

    asyncio.run(leave())
    assert stage.results(runs)["1.0"].text == "done"
    assert eventlog.store(runs).holder("r") is None
    asyncio.run(again())
    assert scenes.effects_of(tmp_path / "effects") == ["r"]


def test_a_thread_that_outlives_the_grace_keeps_its_run_and_no_other(runs: Path) -> None:
    """The worker leaves without it; the lock goes when the thread ends."""
    begun, go = threading.Event(), threading.Event()

    @runner.tool
    def act() -> None:
        begun.set()
        go.wait(600)

    agent = stage.agent([scenes.CALL, "over"], act)

    async def main() -> None:
        async with asyncio.timeout(300), runner.Worker([agent], runs=runs, grace=0.1) as worker:
            await worker.start(agent, stage.TASK, run="r")
            await until(begun.is_set)

    asyncio.run(main())  # the thread waits for what follows
    assert eventlog.store(runs).holder("r") is not None
    go.set()
    stage.within(60, lambda: eventlog.store(runs).holder("r") is None)
    assert runner.read_state("r", runs).in_doubt == ("1.0",)


def test_a_long_wait_gives_its_slot_back(runs: Path) -> None:
    """`outcome` says until when; another run has its turn meanwhile."""

    @runner.tool
    def act() -> str:
        raise runner.ToolFailed("busy", retry_after=3600)

    waits, sound = stage.agent([scenes.CALL, "over"], act, name="waits"), stage.agent(["over"])

    async def main() -> None:
        async with runner.Worker([waits, sound], runs=runs, at_once=1) as worker:
            waiting = await (await worker.start(waits, stage.TASK, run="w")).outcome()
            assert isinstance(waiting, runner.Waiting)
            assert stage.finished(await (await worker.start(sound, stage.TASK, run="r")).outcome()) == "over"
            assert isinstance(await (await worker.start(waits, stage.TASK, run="w")).outcome(), runner.Waiting)

    asyncio.run(main())


def test_a_worker_refuses_what_it_could_never_carry_on(runs: Path) -> None:
    """Two agents of one name, and an agent that is not its own."""
    with pytest.raises(runner.BadAgent, match="two agents"):
        runner.Worker([stage.agent([]), stage.agent([])], runs=runs)

    async def main() -> None:
        async with runner.Worker([stage.agent([])], runs=runs) as worker:
            with pytest.raises(runner.BadAgent, match="other is none of this worker's"):
                await worker.start(stage.agent([], name="other"), stage.TASK)

    asyncio.run(main())


def test_a_life_that_cannot_decide_its_first_step_is_not_written_and_tried_again(runs: Path) -> None:
    """A model without a price today uses up no resume, however often it is tried."""
    prices: list[int] = []

    class Unpriced(runner.testing.ScriptedModel):
        def bound(self, request: runner.Request) -> runner.CostBound:
            prices.append(request.turn)
            if len(prices) < 4:
                message = "no price today"
                raise ValueError(message)
            return super().bound(request)

    runner.enqueue(stage.agent(["over"]), stage.TASK, runs=runs, run="r")

    async def main() -> None:
        async with runner.Worker([runner.Agent(name="agent", model=Unpriced(["over"]))], runs=runs):
            await until(lambda: runner.read_state("r", runs).phase == "done")

    asyncio.run(main())
    assert len(prices) >= 4
    assert [event.counted for event in stage.events(runs, RunResumed)] == [False]


@pytest.mark.usefixtures("impatient")
def test_a_store_that_knows_what_is_due_is_asked_for_no_more_than_there_is_room_and_for_no_list(runs: Path) -> None:
    """Not all runs are looked at; and an agent whose resources fail takes no room of another's."""
    waiting = {name: [f"{name}-{number}" for number in range(7)] for name in ("sound", "broken")}
    asked: list[int] = []

    class Knowing(eventlog.Directory):
        knows_due = True

        def names(self) -> list[str]:
            raise AssertionError

        def due(self, agents: Collection[str], limit: int) -> list[str]:
            asked.append(limit)
            found = [run for agent in agents for run in waiting[agent][:limit]]
            for agent in agents:
                del waiting[agent][:limit]
            return found

    @contextlib.asynccontextmanager
    async def resources() -> AsyncIterator[None]:
        raise ConnectionError
        yield

    @runner.tool
    async def act() -> str:
        await gate.wait()
        return "done"

    gate = asyncio.Event()
    sound = stage.agent([scenes.CALL, "over"], act, name="sound")
    broken = stage.agent(["over"], name="broken", resources=resources)
    for agent in (sound, broken):
        for run in waiting[agent.name]:
            runner.enqueue(agent, stage.TASK, runs=runs, run=run)

    async def main() -> None:
        async with runner.Worker([broken, sound], runs=Knowing(runs), at_once=2) as worker:
            await until(lambda: len(worker.active) == 2 and asked[-3:] == [0, 0, 0])
            assert len(waiting["sound"]) == 5
            gate.set()
            await until(lambda: all(runner.read_state(f"sound-{n}", runs).phase == "done" for n in range(7)))

    asyncio.run(main())
    assert max(asked) == 2
    assert waiting == {"sound": [], "broken": [f"broken-{number}" for number in range(2, 7)]}


@pytest.mark.fault("a log line that can't be written")
def test_a_line_that_no_log_takes_keeps_no_run(runs: Path) -> None:
    """A full disk or a closed pipe under a service's log: its runs go on, and none stays held."""

    class Full(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError(errno.ENOSPC, record.getMessage())

    log, handler = logging.getLogger("refold"), Full()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    agent = stage.agent(["over"])

    async def main() -> None:
        async with runner.Worker([agent], runs=runs) as worker:
            for number in range(3):
                await (await worker.start(agent, stage.TASK, run=f"r-{number}")).outcome()

    try:
        asyncio.run(asyncio.wait_for(main(), 120))
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    assert [(info.status.phase if info.status else None, info.live) for info in runner.list_runs(runs)] == 3 * [
        ("done", False)
    ]


@pytest.mark.fault("server hangs")
def test_what_rings_is_never_asked_for_in_the_loop_s_thread(runs: Path) -> None:
    """A database is connected to for that, and one that does not answer would hold up the whole program."""
    asked: set[int] = set()

    class Slow(eventlog.Directory):
        def bell(self) -> Any:
            bell = super().bell()
            heard = bell.heard

            def noted() -> list[str]:
                asked.add(threading.get_ident())
                return heard()

            bell.heard = noted  # type: ignore[method-assign]
            return bell

    async def main() -> None:
        async with runner.Worker([stage.agent(["over"])], runs=Slow(runs)):
            await until(lambda: asked)

    asyncio.run(main())
    assert threading.get_ident() not in asked
