"""A worker carries parents on, and their children in the same slots."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import eventlog
import runner
from replay.events import RunResumed
from tests.children.scenes import PAID, children, events, lead, paying
from tests.service.conftest import impatient

__all__ = ["impatient"]
pytestmark = pytest.mark.usefixtures("impatient")
SECONDS = 60


@pytest.mark.fault("a child waits for a slot that its parent holds")
def test_one_slot_is_enough_for_any_number_of_parents_and_children(tmp_path: Path) -> None:
    """A child needs none of its own, so nobody waits for anybody."""
    runs, agent = eventlog.Directory(tmp_path / "runs"), lead("a", "b", "c")

    async def main() -> list[str]:
        async with asyncio.timeout(SECONDS), runner.Worker([agent], runs=runs, at_once=1) as worker:
            started = [await worker.start(agent, "Have them paid.", run=f"p{n}") for n in range(3)]
            return [(await one.outcome()).finished().answer for one in started]

    assert asyncio.run(main()) == ["All is done."] * 3
    assert sorted(PAID) == sorted(["a", "b", "c"] * 3)


def test_an_answer_to_a_child_has_its_parent_carried_on_and_not_the_child_alone(tmp_path: Path) -> None:
    """Also by a worker that has the child's agent, too."""
    runs, agent = eventlog.Directory(tmp_path / "runs"), lead("ask a", "b")

    async def main() -> str:
        async with asyncio.timeout(SECONDS), runner.Worker([agent, paying()], runs=runs, at_once=1) as worker:
            run = await worker.start(agent, "Have them paid.", run="p")
            paused = await run.outcome()
            assert isinstance(paused, runner.Paused)
            runner.approve(children(runs)[0], "1.0-approve", "ann", runs=runs)
            while True:
                outcome = await run.outcome()
                if isinstance(outcome, runner.Finished):
                    return outcome.answer
                await asyncio.sleep(0.05)

    assert asyncio.run(main()) == "All is done."
    assert sorted(PAID) == ["ask a", "b"]
    assert not any(e.counted for run in ("p", *children(runs)) for e in events(runs, run) if isinstance(e, RunResumed))


def test_a_worker_that_leaves_gives_a_parent_and_its_children_back_and_the_next_one_goes_on(tmp_path: Path) -> None:
    """What runs in a child drains with its parent; nothing of it counts as a resume."""
    runs, begun = eventlog.Directory(tmp_path / "runs"), asyncio.Event()

    @runner.tool(effect="idempotent", name="pay")
    async def slow(order: str) -> str:
        begun.set()
        await asyncio.sleep(0.2)
        PAID.append(order)
        return "paid"

    agent = lead("a", clerk=paying().replace(tools=[slow]))

    async def leaves() -> None:
        async with runner.Worker([agent], runs=runs, grace=SECONDS) as worker:
            await worker.start(agent, "Have them paid.", run="p")
            await begun.wait()

    async def main() -> str:
        async with asyncio.timeout(SECONDS), runner.Worker([agent], runs=runs) as worker:
            return (await (await worker.start(agent, "Have them paid.", run="p")).outcome()).finished().answer

    asyncio.run(leaves())
    assert [runner.read_state(run, runs).stopped is not None for run in ("p", *children(runs))] == [True, True]
    assert asyncio.run(main()) == "All is done."
    assert PAID == ["a"]
    assert not any(e.counted for run in ("p", *children(runs)) for e in events(runs, run) if isinstance(e, RunResumed))


def test_a_child_of_a_stopped_parent_is_stopped_by_the_worker_that_finds_it(tmp_path: Path) -> None:
    """It was interrupted with its parent, and nobody will carry it on."""
    runs, begun = eventlog.Directory(tmp_path / "runs"), asyncio.Event()

    @runner.tool(effect="idempotent", name="pay")
    async def slow(order: str) -> str:
        begun.set()
        await asyncio.sleep(3600)
        return f"paid {order}"

    agent = lead("a", clerk=paying().replace(tools=[slow]))

    async def main() -> None:
        async with asyncio.timeout(SECONDS), runner.Worker([agent], runs=runs, grace=0.1) as worker:
            run = await worker.start(agent, "Have them paid.", run="p")
            await begun.wait()
            await run.stop("mae")
            with pytest.raises(runner.errors.StoppedByPerson):
                await run.outcome()
            while not runner.read_state(children(runs)[0], runs).over:  # noqa: ASYNC110 (it happens in a file)
                await asyncio.sleep(0.05)

    asyncio.run(main())
    stopped = runner.read_state(children(runs)[0], runs).stopped
    assert stopped is not None
    assert stopped.reason == "ParentClosed"
