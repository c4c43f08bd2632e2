"""Opening and closing a run while others share its loop: they do not stand still for its disk."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import eventlog
import replay
import runner
from runner.testing import ScriptedModel, tool_calls

Threads = set[threading.Thread]


class Seen(eventlog.Disk):
    """A disk that notes which threads flush directories: only whoever makes or closes a run does."""

    def __init__(self) -> None:
        self.threads: Threads = set()

    def sync(self, fd: int) -> None:
        """Note the thread."""
        self.threads.add(threading.current_thread())
        super().sync(fd)


def agent(*script: str | runner.Reply, tools: Sequence[runner.Tool] = ()) -> runner.Agent:
    """An agent that says this."""
    return runner.Agent(name="a", model=ScriptedModel(script), tools=tools)


async def begun(run: str, runs: Path, disk: Seen, watchers: Threads) -> Threads:
    """Start a run and resume one that is done: the threads that its directory was flushed in."""
    disk.threads.clear()
    store = eventlog.Directory(runs, disk=disk)

    def watch(_state: replay.State, _events: Sequence[replay.Event]) -> None:
        watchers.add(threading.current_thread())

    outcome = await runner.start(agent("over"), "go", runs=store, run=run, watch=watch)
    again = await runner.resume(outcome.finished().run, agent(), runs=store)
    assert again.finished().answer == "over"
    return {*disk.threads}


def test_a_run_that_begins_beside_others_is_made_and_closed_off_the_loop(runs: Path) -> None:
    """Making one takes many flushes, for which every other run would wait. A lone one is made where it is."""
    disk, watchers, loop = Seen(), set[threading.Thread](), threading.current_thread()

    async def both() -> None:
        is_in, may_end = asyncio.Event(), asyncio.Event()

        @runner.tool(effect="reads")
        async def wait() -> str:
            is_in.set()
            await may_end.wait()
            return "waited"

        assert await begun("alone", runs, disk, watchers) == {loop}
        waits = agent(tool_calls(("wait", {})), "over", tools=[wait])
        other = asyncio.ensure_future(runner.start(waits, "go", runs=runs, run="other"))
        await is_in.wait()
        beside = await begun("beside", runs, disk, watchers)
        assert beside
        assert loop not in beside
        may_end.set()
        assert (await other).finished().answer == "over"

    asyncio.run(asyncio.wait_for(both(), 120))
    assert watchers == {loop}
