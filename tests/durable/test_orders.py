"""Requests and calls of tasks side by side: each is handed back, in whichever order the tasks come in another life."""

from __future__ import annotations

import asyncio
import functools
import sys
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import runner
from runner import durable
from runner.adapters import Durable
from tests.durable.looping import digests

TASKS = st.lists(st.lists(st.sampled_from(["ask", "act"]), min_size=1, max_size=3), min_size=2, max_size=3)
"""What each task does, one thing after another."""
PAUSES = st.lists(st.integers(0, 5), min_size=2, max_size=5)
"""Passes of the loop before each thing."""


class Cut(Exception):
    """The process dies here."""


class World:
    """What was asked and done outside."""

    def __init__(self) -> None:
        self.happened: list[str] = []

    def reply(self, name: str) -> runner.Reply:
        """Ask a model."""
        self.happened.append(name)
        return runner.Reply(text=name)

    async def live(self, runs: Path, tasks: list[list[str]], pauses: list[int], ends: int) -> list[list[str]]:
        """One life of a program: what its tasks were given. `ends`: they end once so many things have happened."""

        async def task(run: Durable, number: int, kinds: list[str]) -> list[str]:
            given_back = []
            for n, kind in enumerate(kinds):
                for _ in range(pauses[(number + n) % len(pauses)]):
                    await asyncio.sleep(0)
                if len(self.happened) >= ends:
                    raise Cut
                name = f"{kind} {number}.{n}"
                if kind == "ask":
                    body = functools.partial(self.reply, name)
                    given_back.append((await run.ask(digests(name), runner.CostBound(dollars=0.0), body)).text)
                else:
                    given_back.append(await run.act(pay, {"what": name}))
            return given_back

        @runner.tool(effect="idempotent")
        async def pay(what: str) -> str:
            self.happened.append(what)
            return what

        async with durable("t", runs=runs, run="r", tools=[pay]) as run:
            came = await asyncio.gather(*(task(run, n, kinds) for n, kinds in enumerate(tasks)), return_exceptions=True)
            for one in came:
                if isinstance(one, BaseException):
                    raise one
            run.answer = "done"
        return came  # type: ignore[return-value] # none is an error


@given(tasks=TASKS, lives=st.lists(st.tuples(PAUSES, st.integers(1, 6)), min_size=1, max_size=3), last=PAUSES)
@settings(max_examples=30, deadline=None)
def test_requests_and_calls_side_by_side_happen_once_whichever_comes_first_in_another_life(
    tasks: list[list[str]], lives: list[tuple[list[int], int]], last: list[int]
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

    async def task(run: Durable, names: str, *, asks: bool) -> None:
        if asks:
            await (await asyncio.create_subprocess_exec(sys.executable, "-c", "")).wait()
        for name in names:
            await run.ask(digests(name), runner.CostBound(dollars=0.0), functools.partial(world.reply, name))

    for one, other in (("a", "x"), ("ab", "x")):
        async with durable("t", runs=tmp_path, run="r") as run:
            await asyncio.gather(task(run, one, asks=False), task(run, other, asks=one == "ab"))
            run.keep_open = True
    assert world.happened == ["a", "x", "b"]
