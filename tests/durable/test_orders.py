"""Requests and calls of tasks side by side: each is handed back, in whichever order the tasks come in another life."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runner
from replay.messages import ToolCall
from runner import durable
from runner.adapters import Durable
from tests.durable.looping import digests

TASKS = st.lists(st.lists(st.sampled_from(["ask", "act"]), min_size=1, max_size=3), min_size=2, max_size=3)
"""What each task does, one thing after another."""
AGENT = st.lists(st.sampled_from(["agent", "ask", "act"]), min_size=1, max_size=3)
"""What the first task does: it may be an agent that calls tools, beside others that act."""
PAUSES = st.lists(st.integers(0, 5), min_size=2, max_size=5)
"""Passes of the loop before each thing."""
FREE = runner.CostBound(dollars=0.0)


class Cut(Exception):
    """The process dies here."""


def calling(name: str) -> runner.Reply:
    """A reply that orders a call, of an id that other replies have as well."""
    return runner.Reply(calls=(ToolCall(tool="pay", arguments=json.dumps({"what": name}), provider_id="c0"),))


async def passes(count: int) -> None:
    """Let others go on."""
    for _ in range(count):
        await asyncio.sleep(0)


class World:
    """What was asked and done outside."""

    def __init__(self) -> None:
        self.happened: list[str] = []

        @runner.tool(effect="idempotent")
        async def pay(what: str) -> str:
            self.happened.append(what)
            return what

        self.pay = pay

    def reply(self, name: str) -> runner.Reply:
        """Ask a model."""
        self.happened.append(name)
        return runner.Reply(text=name)

    async def ask(self, run: Durable, name: str, _late: int = 0) -> str:
        """Make a request."""
        return (await run.ask(digests(name), FREE, functools.partial(self.reply, name))).text

    async def act(self, run: Durable, name: str, _late: int = 0) -> str:
        """Make a call of the program's own."""
        return await run.act(self.pay, {"what": name})

    async def agent(self, run: Durable, name: str, late: int = 0) -> str:
        """Make a request, and the call of its reply a little later, as adapters do."""
        await run.ask(digests(name), FREE, functools.partial(calling, name))
        await passes(late * 9)
        if not run.orders(("c0", "pay")):
            await run.adopt(calling(name))
        return (await run.call("c0", "pay", lambda call: self.pay(**call.arguments))).text

    async def task(self, run: Durable, number: int, kinds: list[str], pauses: list[int], ends: int) -> list[str]:
        """One thing after another, and what came of each, until so many things have happened in the world."""
        came = []
        for n, kind in enumerate(kinds):
            await passes(pauses[(number + n) % len(pauses)])
            if len(self.happened) >= ends:
                raise Cut
            came.append(await getattr(self, kind)(run, f"{kind} {number}.{n}", pauses[0]))
        return came

    async def live(self, runs: Path, tasks: Sequence[list[str]], pauses: list[int], ends: int) -> list[list[str]]:
        """One life of a program: what its tasks were given."""
        async with durable("t", runs=runs, run="r", tools=[self.pay]) as run:
            going = (self.task(run, n, kinds, pauses, ends) for n, kinds in enumerate(tasks))
            came: list[Any] = await asyncio.gather(*going, return_exceptions=True)
            for one in came:
                if isinstance(one, BaseException):
                    raise one
            run.answer = "done"
        return came


@given(
    tasks=TASKS | st.tuples(AGENT, st.lists(st.just("act"), min_size=1, max_size=3)),
    lives=st.lists(st.tuples(PAUSES, st.integers(1, 6)), min_size=1, max_size=3),
    last=PAUSES,
)
@settings(max_examples=30, deadline=None)
def test_requests_and_calls_side_by_side_happen_once_whichever_comes_first_in_another_life(
    tasks: Sequence[list[str]], lives: list[tuple[list[int], int]], last: list[int]
) -> None:
    """One that comes before a recorded one of another task leaves that one to its task."""
    world = World()
    with tempfile.TemporaryDirectory() as runs:
        for pauses, ends in lives:
            try:
                asyncio.run(world.live(Path(runs), tasks, pauses, ends))
            except Cut:
                continue
        came = asyncio.run(world.live(Path(runs), tasks, last, 99))
    names = [[f"{kind} {number}.{n}" for n, kind in enumerate(kinds)] for number, kinds in enumerate(tasks)]
    assert came == names
    assert sorted(world.happened) == sorted(name for task in names for name in task)


async def test_what_is_new_waits_for_a_task_that_asks_somebody_first_and_then_comes_to_what_is_recorded(
    tmp_path: Path,
) -> None:
    """Not only for one that is a few passes of the loop behind."""
    world = World()

    async def asks_first(run: Durable) -> str:
        await (await asyncio.create_subprocess_exec(sys.executable, "-c", "")).wait()
        return await world.ask(run, "x")

    async with durable("t", runs=tmp_path, run="r") as run:
        run.keep_open = True
        await asyncio.gather(world.ask(run, "a"), world.ask(run, "x"))
    async with durable("t", runs=tmp_path, run="r") as run:
        run.keep_open = True
        await asyncio.gather(world.ask(run, "b"), world.ask(run, "a"), asks_first(run))
    assert world.happened == ["a", "x", "b"]


async def test_a_call_of_a_framework_that_comes_after_the_program_has_gone_on_is_refused(tmp_path: Path) -> None:
    """It is not told that nothing ran as if that were the call's result."""
    world = World()

    async def life() -> None:
        async with durable("t", runs=tmp_path, run="r", tools=[world.pay]) as run:
            await run.ask(digests("a"), FREE, lambda: calling("late"))
            await world.act(run, "act")
            await run.call("c0", "pay", lambda call: world.pay(**call.arguments))

    for _ in range(2):
        with pytest.raises(runner.BadAgent, match="an agent's call and an act go side by side in one run"):
            await life()
    assert world.happened == ["act"]


async def test_an_agent_that_comes_after_a_later_one_in_the_next_life_has_its_calls_handed_back(tmp_path: Path) -> None:
    """They are not adopted, as those of a conversation from before the run would be."""
    world = World()
    for order in ((world.agent, world.ask), (world.ask, world.agent)):
        async with durable("t", runs=tmp_path, run="r", tools=[world.pay]) as run:
            run.keep_open = True
            for one in order:
                await one(run, one.__name__)
    assert world.happened == ["agent", "ask"]


async def test_a_request_that_is_new_waits_for_a_task_that_has_just_come_to_a_call_in_doubt(tmp_path: Path) -> None:
    """The call is not passed over: its task is about to make it."""
    world, began = World(), asyncio.Event()

    async def life(*, hangs: bool) -> list[str]:
        async def body(_: runner.Call) -> str:
            began.set()
            await (asyncio.Event().wait() if hangs else asyncio.sleep(0))
            return "paid"

        async with durable("t", runs=tmp_path, run="r", tools=[world.pay]) as run:
            asked = [] if hangs else [world.ask(run, "new")]
            return await asyncio.gather(*asked, run.act(world.pay, {"what": "x"}, body))

    task = asyncio.create_task(life(hangs=True))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await life(hangs=False) == ["new", "paid"]
