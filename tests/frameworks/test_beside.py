"""Several agents in one run: those that call no tools may go side by side, any others have runs of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from pydantic_ai import Agent

import runner
from runner.errors import BadAgent
from runner.langchain import middleware
from runner.pydantic_ai import Refold
from tests.frameworks import test_langchain, test_pydantic_ai

Go = Callable[[str], Awaitable[str]]


def of_pydantic_ai(log: list[str], *, acts: bool) -> Go:
    """An agent that pays what it is told, or only talks."""
    replies = lambda said: test_pydantic_ai.calls(("pay", {})) if acts and not said else test_pydantic_ai.text("done")  # noqa: E731
    agent = Agent(test_pydantic_ai.scripted(log, replies), name="a", capabilities=[Refold(tools={"pay": "reads"})])

    @agent.tool_plain
    async def pay() -> str:
        log.append("pay")
        return "paid"

    async def go(name: str) -> str:
        return (await agent.run(name)).output

    return go


def of_langchain(log: list[str], *, acts: bool) -> Go:
    """The same."""

    @tool
    async def pay() -> str:
        """Pay."""
        log.append("pay")
        return "paid"

    replies = lambda said: test_langchain.calls(("pay", {})) if acts and not said else AIMessage("done")  # noqa: E731
    model = test_langchain.Scripted(log=log, replies=replies)
    agent: Any = create_agent(model, [pay], middleware=middleware(tools={"pay": "reads"}))

    async def go(name: str) -> str:
        return str((await agent.ainvoke({"messages": [("user", name)]}))["messages"][-1].text)

    return go


KINDS = pytest.mark.parametrize("kind", [of_pydantic_ai, of_langchain])


@KINDS
async def test_agents_that_call_tools_side_by_side_in_one_run_are_refused(tmp_path: Path, kind: Any) -> None:
    """One's request would end the calls of the other's reply, which nobody would run. Nothing is run."""
    log: list[str] = []
    go = kind(log, acts=True)
    for _ in range(2):
        with pytest.raises(BadAgent, match="side by side in one run: give each a run of its own"):
            async with runner.durable("both", runs=tmp_path, run="r"):
                await asyncio.gather(go("ann"), go("bob"))
    assert "pay" not in log


@KINDS
async def test_agents_side_by_side_may_each_have_a_run_or_call_no_tools_and_one_may_follow_another(
    tmp_path: Path, kind: Any
) -> None:
    """In both lives."""
    log: list[str] = []
    acting, talking = kind(log, acts=True), kind(log, acts=False)

    async def alone(name: str) -> str:
        async with runner.durable(name, runs=tmp_path, run=name):
            return str(await acting(name))

    for _ in range(2):
        assert [*await asyncio.gather(alone("ann"), alone("bob"))] == ["done"] * 2
        async with runner.durable("all", runs=tmp_path, run="all"):
            assert [*await asyncio.gather(talking("cid"), talking("dan"))] == ["done"] * 2
            assert [await acting("eve"), await acting("fay")] == ["done"] * 2
    assert (log.count("pay"), log.count("ask")) == (4, 10)
