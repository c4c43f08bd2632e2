"""Several agents in one run: those that call no tools may go side by side, any others have runs of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from pydantic_ai import Agent

import runner
from runner.errors import BadAgent, Interrupted
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


class Said(TypedDict, total=False):
    """What each agent of a graph said."""

    cid: str
    dan: str
    eve: str


@pytest.mark.parametrize("place", ["before dan", "after dan", "before eve"])
async def test_a_graph_that_remembers_goes_on_at_the_agent_that_it_has_come_to(tmp_path: Path, place: str) -> None:
    """What its checkpoint holds is not missed; what it asks for again is handed back."""
    log: list[str] = []
    go, dies = of_langchain(log, acts=False), [place]

    def die(now: str) -> None:
        if now in dies:
            dies.clear()
            raise ConnectionResetError

    def node(name: str) -> Any:
        async def talk(_: Said) -> Said:
            die(f"before {name}")
            said = await go(name)
            die(f"after {name}")
            return {name: said}  # type: ignore[misc] # one of the three

        return talk

    graph: Any = StateGraph(Said)
    for name in ("cid", "dan", "eve"):
        graph.add_node(f"ask {name}", node(name))
    for edge in ((START, "ask cid"), (START, "ask dan"), (["ask cid", "ask dan"], "ask eve"), ("ask eve", END)):
        graph.add_edge(*edge)
    graph = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    with pytest.raises((ConnectionResetError, Interrupted)):  # one that cuts off the other
        async with runner.durable("all", runs=tmp_path, run="all"):
            await graph.ainvoke({}, config)
    async with runner.durable("all", runs=tmp_path, run="all") as run:
        run.remembered()
        assert await graph.ainvoke(None, config) == {"cid": "done", "dan": "done", "eve": "done"}
    assert log.count("ask") == 3
