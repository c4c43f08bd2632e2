"""Many runs beside each other: those that rest cost nothing, and those that hang or wait keep no other waiting."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import runner
import runner.testing
from tests.service import scenes
from tests.support import stage
from tests.support.figures import FIGURES
from tests.support.forkserver import ForkServer

Record = Callable[[str, object], None]


@pytest.mark.full
def test_a_thousand_paused_runs_cost_a_worker_next_to_nothing(
    runs: Path, forks: ForkServer, record_property: Record
) -> None:
    """At most a hundredth of a core and 60 MB; nothing is folded, for each has its status."""
    assert forks.run(scenes.paused, runs=runs, many=1000).value == ["Paused"]
    share, megabytes = forks.run(scenes.idle, runs=runs, seconds=35).value
    record_property(FIGURES, f"{share:.2%} of a core, {megabytes:.1f} MB")
    assert share <= 0.01
    assert megabytes <= 60


@pytest.mark.full
def test_runs_that_wait_back_off_or_hang_keep_no_other_waiting(runs: Path, record_property: Record) -> None:
    """Of two hundred, three do; the others finish."""

    @runner.tool
    def hour() -> str:
        message = "busy"
        raise runner.ToolFailed(message, retry_after=3600)

    @runner.tool
    async def hang() -> None:
        await asyncio.Event().wait()

    @runner.tool(effect="reads")
    async def look() -> str:
        await asyncio.sleep(0.01)
        return "seen"

    class Down(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            del request
            message = "overloaded"
            raise runner.ModelError(message)

    waits = stage.agent([runner.testing.tool_calls(("hour", {})), "over"], hour, name="waits")
    hangs = stage.agent([runner.testing.tool_calls(("hang", {})), "over"], hang, name="hangs")
    down = runner.Agent(name="down", model=Down([]))
    others = stage.agent([runner.testing.tool_calls(("look", {})), "over"], look, name="others")

    async def main() -> float:
        async with runner.Worker([waits, hangs, down, others], runs=runs, grace=0.1) as worker:
            for bad in (waits, hangs, down):
                await worker.start(bad, stage.TASK, run=bad.name)
            loop = asyncio.get_running_loop()
            began = loop.time()
            started = await asyncio.gather(*(worker.start(others, stage.TASK, run=f"r-{n}") for n in range(197)))
            assert {stage.finished(end) for end in await asyncio.gather(*(one.outcome() for one in started))} == {
                "over"
            }
            took = loop.time() - began
            assert {"hangs", "down"} >= set(worker.active)
            return took

    record_property(FIGURES, f"197 runs in {asyncio.run(main()):.1f} s")
    assert runner.read_state("waits", runs).wait is not None


def test_few_runs_of_one_agent_do_not_wait_for_all_of_another(runs: Path) -> None:
    """They came last, and take turns with those that came before."""
    order: list[str] = []

    class Notes(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            order.append(request.run.partition("-")[0])
            return await super().ask(request)

    many, few = (runner.Agent(name=name, model=Notes(["over"])) for name in ("many", "few"))
    for number, agent in enumerate([many] * 20 + [few] * 3):
        runner.enqueue(agent, stage.TASK, runs=runs, run=f"{agent.name}-{number}")

    async def main() -> None:
        async with runner.Worker([many, few], runs=runs, at_once=1), asyncio.timeout(60):
            while len(order) < 23:  # noqa: ASYNC110 (it happens in files, too)
                await asyncio.sleep(0.01)

    asyncio.run(main())
    assert order.index("few") < 3
    assert order[: order.index("few") + 6].count("few") == 3
