"""Tasks side by side: each is handed back its own steps, in whichever order the tasks come in another life."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runner
from runner import durable
from runner.adapters import Durable

Tree = list[Any]
"""What a task does after its first step: a step of this name, or a task of its own that does this."""

STEPS = st.sampled_from(["fetch", "parse"])
BRANCHES = st.lists(STEPS | st.lists(STEPS, min_size=1, max_size=3), min_size=1, max_size=3)
TREES: st.SearchStrategy[Tree] = st.lists(BRANCHES, min_size=2, max_size=3)


class Cut(Exception):
    """The process dies here."""


def cut(*, now: bool) -> None:
    """Die, if it is time."""
    if now:
        raise Cut


class Life:
    """One life of a program that grows tasks. `pauses` are passes of the loop before each step; `ends` is the last."""

    def __init__(self, run: Durable, pauses: list[int], ends: int) -> None:
        self.run, self.pauses, self.ends = run, pauses, ends
        self.taken, self.wrong = 0, list[str]()

    async def grow(self, path: str, tree: Tree) -> None:
        """Take a first step of its own, and then whatever the tree says; a value is the place where it belongs."""
        await self.step(path, path)
        children = []
        try:
            for n, what in enumerate(tree):
                if isinstance(what, str):
                    await self.step(what, f"{path} {n}")
                else:
                    children.append(asyncio.create_task(self.grow(f"{path}/{n}", what)))
        finally:
            ended = await asyncio.gather(*children, return_exceptions=True)
        cut(now=any(ended))

    async def step(self, name: str, value: str) -> None:
        """Take a step, and note it if its value is another's."""
        for _ in range(self.pauses[self.taken % len(self.pauses)]):
            await asyncio.sleep(0)
        cut(now=self.taken >= self.ends)
        self.taken += 1
        got = await self.run.step(name, lambda: value)
        if got != value:
            self.wrong.append(f"{value} was given {got}")


@pytest.mark.fault("a kill")
@settings(max_examples=40)
@given(TREES, st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), min_size=2, max_size=3), st.data())
def test_no_task_is_handed_back_the_step_of_another(tree: Tree, lives: list[list[int]], data: st.DataObject) -> None:
    """Wherever a life ends, and whichever way the next one's tasks come past each other."""

    async def program(folder: str, pauses: list[int], ends: int) -> list[str]:
        life = None
        try:
            async with durable("t", runs=folder, run="r") as run:
                life = Life(run, pauses, ends)
                await life.grow("top", tree)
        except Cut:
            pass
        assert life is not None
        return life.wrong

    with tempfile.TemporaryDirectory() as folder:
        for n, pauses in enumerate(lives):
            ends = data.draw(st.integers(4, 16)) if n < len(lives) - 1 else 1000
            assert asyncio.run(program(folder, pauses, ends)) == []


async def twice(tmp_path: Path, program: Callable[[Durable], Awaitable[object]]) -> tuple[object, object]:
    """What a program comes to in a life that ends there, and in the next."""
    came = []

    async def life(*, ends: bool) -> None:
        async with durable("t", runs=tmp_path, run="r") as run:
            came.append(await program(run))
            cut(now=ends)

    with pytest.raises(Cut):
        await life(ends=True)
    await life(ends=False)
    return came[0], came[1]


async def test_what_the_body_of_a_step_asks_for_is_handed_to_nothing_after_it(tmp_path: Path) -> None:
    """The body does not run again: the first step of that name is then the one after it."""

    async def program(run: Durable) -> list[object]:
        async def outer() -> object:
            return await run.step("now", lambda: "within")

        return [await run.step("outer", outer), await run.step("now", lambda: "after")]

    first, second = await twice(tmp_path, program)
    assert first == second == ["within", "after"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_what_the_body_of_a_call_asks_for_is_handed_to_nothing_after_it(
    tmp_path: Path, *, is_async: bool
) -> None:
    """Nor to the body of a later call: none of them runs again."""

    async def program(run: Durable) -> list[str]:
        came = []
        for name in ("a", "b"):

            async def body(_call: runner.Call, name: str = name) -> object:
                return await run.step("now", lambda: name)

            def in_thread(call: runner.Call, body: Any = body) -> object:
                return run.wait(body(call))

            came.append(await run.act("look", {"n": name}, body if is_async else in_thread))
        return [*came, await run.step("now", lambda: "after")]

    first, second = await twice(tmp_path, program)
    assert first == second == ["a", "b", "after"]


async def test_a_task_is_known_by_a_call_as_well(tmp_path: Path) -> None:
    """Its steps are its own from there on."""
    slow = "ann"

    async def order(run: Durable, name: str) -> str:
        for _ in range(9 if name == slow else 0):
            await asyncio.sleep(0)

        async def look(_call: runner.Call) -> str:
            return name

        await run.act("look", {"at": name}, look)
        return str(await run.step("fetch", lambda: name))

    async def program(run: Durable) -> list[str]:
        nonlocal slow
        came = list(await asyncio.gather(order(run, "ann"), order(run, "bob")))
        slow = "bob"
        return came

    first, second = await twice(tmp_path, program)
    assert first == second == ["ann", "bob"]
