"""What no log and no later request can hold as it came: both lives of an agent see the same, and none gets stuck."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

import runner
from runner.langchain import middleware
from runner.pydantic_ai import Refold
from tests.frameworks import test_langchain, test_pydantic_ai
from tests.frameworks.test_pydantic_ai import scripted

pytestmark = pytest.mark.fault("unstorable content")
HALF = "\ud83d"
"""Half of a character, as a reply has it that was cut there."""
LARGE = "x" * (5 << 20)
"""More than is kept of a framework's own words."""


@pytest.mark.parametrize("inside", [HALF, LARGE], ids=["half a character", "too large"])
async def test_an_agent_of_pydantic_ai_goes_on_after_what_can_not_be_kept(tmp_path: Path, inside: str) -> None:
    """In a reply, the id of a call, a tool's result, and the answer."""
    log: list[str] = []
    ordered = ModelResponse(parts=[TextPart(inside), ToolCallPart("get", {}, f"id{inside[:1]}")])
    model = scripted(log, lambda said: ordered if not said else test_pydantic_ai.text(f"{said[0][:9]}{inside}"))
    agent = Agent(model, name="a", capabilities=[Refold(tools={"get": "reads"})])

    @agent.tool_plain
    async def get() -> str:
        log.append("get")
        return f"it is {inside}"

    first, again = await test_pydantic_ai.lives(agent, log, tmp_path)
    assert (first[1], again) == (["ask", "get", "ask"], (first[0], []))
    assert first[0].startswith("it is ")
    assert runner.read_state("r", runs=tmp_path).answer == first[0]


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("inside", [HALF, LARGE], ids=["half a character", "too large"])
async def test_an_agent_of_langchain_goes_on_after_what_can_not_be_kept(
    tmp_path: Path, inside: str, sync: bool
) -> None:
    """In a reply, the id of a call, a tool's result, and the answer."""
    log: list[str] = []
    ordered = AIMessage(inside, tool_calls=[{"name": "get", "args": {}, "id": f"id{inside[:1]}"}])
    replies = lambda said: ordered if not said else AIMessage(f"{said[0][:9]}{inside}")  # noqa: E731

    @tool
    def get() -> str:
        """Get it."""
        log.append("get")
        return f"it is {inside}"

    model = test_langchain.Scripted(log=log, replies=replies)
    agent = create_agent(model, [get], middleware=middleware(tools={"get": "reads"}))
    first, again = await test_langchain.lives(agent, log, tmp_path, sync=sync)
    assert (first[1], again) == (["ask", "get", "ask"], (first[0], []))
    assert first[0].startswith("it is ")
    assert runner.read_state("r", runs=tmp_path).answer == first[0]


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("name", ["functions.get", "", "x" * 65])
async def test_a_name_that_no_tool_can_have_is_answered_as_any_unknown_one(
    tmp_path: Path, name: str, sync: bool
) -> None:
    """The model reads it, and may call another tool."""
    log: list[str] = []
    called = test_langchain.calls((name, {}), ("get", {}))

    @tool
    def get() -> str:
        """Get it."""
        log.append("get")
        return "it"

    model = test_langchain.Scripted(log=log, replies=lambda said: called if not said else AIMessage(" ".join(said)))
    agent = create_agent(model, [get], middleware=middleware(tools={"get": "reads"}))
    first, again = await test_langchain.lives(agent, log, tmp_path, sync=sync)
    assert first == (f"Error: {name} is not a valid tool, try one of [get]. it", ["ask", "get", "ask"])
    assert again == (first[0], [])
