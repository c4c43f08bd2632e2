"""pydantic-ai on a log: each story in two lives, of which the second executes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.transports import StdioTransport
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset, ModelRetry, RunContext
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls, Instrumentation, durable_operation
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved
from pydantic_ai.toolsets import DynamicToolset

import eventlog
import replay
import runner
from replay.events import AttemptMarked
from runner import errors
from runner.pydantic_ai import Refold

SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
shop = MCPServer("shop")
@shop.tool()
def get(x: int) -> int:
    open(sys.argv[1], "a").write("get ")
    return x + 1
shop.run("stdio")
"""
Replies = Callable[[list[Any]], ModelResponse]


def answers(messages: list[ModelMessage]) -> list[Any]:
    """What the model was told of its calls so far."""
    parts = [part for message in messages for part in message.parts]
    return [part.content for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)]


def text(said: object) -> ModelResponse:
    """A reply without calls."""
    return ModelResponse(parts=[TextPart(str(said))])


def calls(*wanted: tuple[str, dict[str, Any]]) -> ModelResponse:
    """A reply that orders calls."""
    return ModelResponse(parts=[ToolCallPart(name, args, f"id-{name}-{n}") for n, (name, args) in enumerate(wanted)])


def scripted(log: list[str], replies: Replies) -> FunctionModel:
    """A model that replies to what its calls came to."""

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        log.append("ask")
        return replies(answers(messages))

    return FunctionModel(model)


async def lives(
    agent: Agent[Any, Any], log: list[str], runs: Path, *, prompt: str = "go"
) -> list[tuple[Any, list[str]]]:
    """The output and what was executed, of two lives of one run."""
    seen = []
    for _ in range(2):
        log.clear()
        async with runner.durable("go", runs=runs, run="r", framework="pydantic-ai"):
            result = await agent.run(prompt)
        seen.append((result.output, [*log]))
    return seen


async def test_a_finished_run_is_replayed_with_nothing_executed(tmp_path: Path) -> None:
    """Its calls are read side by side; the log has the answer and the turns."""
    log: list[str] = []
    model = scripted(log, lambda said: calls(("get", {"x": 1}), ("get", {"x": 2})) if not said else text(said))
    agent = Agent(model, name="a", capabilities=[Refold(tools={"get": "reads"})])

    @agent.tool_plain
    async def get(x: int) -> int:
        log.append(f"get {x}")
        return x * 10

    assert await lives(agent, log, tmp_path) == [("[10, 20]", ["ask", "get 1", "get 2", "ask"]), ("[10, 20]", [])]
    state = runner.read_state("r", runs=tmp_path)
    assert (state.phase, state.answer, state.turns) == ("done", "[10, 20]", 2)


async def test_outside_of_a_block_an_agent_is_as_before(tmp_path: Path) -> None:
    """Nothing is written anywhere."""
    agent = Agent(scripted([], lambda _: text("hello")), name="a", capabilities=[Refold()])
    assert (await agent.run("go")).output == "hello"
    assert not eventlog.store(tmp_path / "runs").runs()


async def test_output_tools_are_asked_again_and_replayed(tmp_path: Path) -> None:
    """Output that does not fit is the framework's own matter: the model is asked again."""

    class City(BaseModel):
        name: str
        people: int

    log: list[str] = []
    model = scripted(log, lambda said: calls(("final_result", {"name": "Oslo", "people": 7 if said else "many"})))
    agent = Agent(model, name="a", output_type=City, capabilities=[Refold()])
    assert await lives(agent, log, tmp_path) == [
        (City(name="Oslo", people=7), ["ask", "ask"]),
        (City(name="Oslo", people=7), []),
    ]


async def test_a_validator_of_the_output_asks_again(tmp_path: Path) -> None:
    """A reply without calls that the framework does not take is no answer."""
    log: list[str] = []
    agent = Agent(scripted(log, lambda _: text("bad" if len(log) == 1 else "good")), name="a", capabilities=[Refold()])

    @agent.output_validator
    def check(said: str) -> str:
        if said == "bad":
            raise ModelRetry("Better, please.")
        return said

    assert await lives(agent, log, tmp_path) == [("good", ["ask", "ask"]), ("good", [])]


async def test_a_retry_says_that_the_attempt_did_nothing(tmp_path: Path) -> None:
    """The model reads the framework's own words, in both lives."""
    log: list[str] = []
    model = scripted(log, lambda said: calls(("pay", {"x": len(said)})) if len(said) < 2 else text(said))
    agent = Agent(model, name="a", capabilities=[Refold()])

    @agent.tool_plain(metadata={"effect": "keyed", "key_ttl": 3600})
    async def pay(x: int) -> str:
        log.append("pay")
        if x == 0:
            raise ModelRetry("x is 1")
        return runner.current_call().tool

    first, again = await lives(agent, log, tmp_path)
    assert first == ("['x is 1', 'pay']", ["ask", "pay", "ask", "pay", "ask"])
    assert again == (first[0], [])


async def test_arguments_that_do_not_fit_are_answered_by_the_framework(tmp_path: Path) -> None:
    """The call is closed without an attempt."""
    log: list[str] = []
    model = scripted(
        log, lambda said: calls(("get", {"x": "no" if not said else 1})) if len(said) < 2 else text("done")
    )
    agent = Agent(model, name="a", capabilities=[Refold(tools={"get": "reads"})])

    @agent.tool_plain(retries=2)
    async def get(x: int) -> int:
        log.append("get")
        return x

    assert await lives(agent, log, tmp_path) == [("done", ["ask", "ask", "get", "ask"]), ("done", [])]


@pytest.mark.parametrize("entry", ["run_stream", "iter", "run_sync"])
async def test_every_entry_is_replayed(tmp_path: Path, entry: str) -> None:  # noqa: C901 (one branch for each)
    """Streamed text is there in both lives; sync code in a thread has a loop of its own."""
    log: list[str] = []

    def plain(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        log.append("ask")
        return calls(("get", {"x": 1})) if not answers(messages) else text("a b")

    async def stream(messages: list[ModelMessage], _: AgentInfo) -> Any:
        log.append("ask")
        if not answers(messages):
            yield {0: DeltaToolCall("get", '{"x": 1}', tool_call_id="s")}
        else:
            yield "a "
            yield "b"

    agent = Agent(FunctionModel(plain, stream_function=stream), name="a", capabilities=[Refold(tools={"get": "reads"})])

    @agent.tool_plain
    def get(x: int) -> int:
        log.append("get")
        return x

    def in_a_loop_of_its_own() -> str:
        with contextlib.closing(asyncio.new_event_loop()) as loop:
            asyncio.set_event_loop(loop)
            try:
                return agent.run_sync("go").output
            finally:
                asyncio.set_event_loop(None)

    async def go() -> str:
        if entry == "run_sync":
            return await asyncio.to_thread(in_a_loop_of_its_own)
        if entry == "iter":
            async with agent.iter("go") as steps:
                async for _ in steps:
                    pass
            assert steps.result is not None
            return steps.result.output
        async with agent.run_stream("go") as streamed:
            return "".join([piece async for piece in streamed.stream_text(delta=True)])

    seen = []
    for _ in range(2):
        log.clear()
        async with runner.durable("go", runs=tmp_path, run="r"):
            seen.append((await go(), [*log]))
    assert seen == [("a b", ["ask", "get", "ask"]), ("a b", [])]


@pytest.mark.parametrize("kind", ["dynamic", pytest.param("mcp", marks=pytest.mark.full)])
async def test_tools_of_other_toolsets_are_calls(tmp_path: Path, kind: str) -> None:
    """What a server or a function lists is a step, what it does is a call."""
    log: list[str] = []
    model = scripted(log, lambda said: calls(("get", {"x": 1})) if not said else text(said))

    def get(x: int) -> int:
        log.append("get")
        return x + 1

    if kind == "mcp":
        server = tmp_path / "server.py"
        server.write_text(SERVER)
        toolset: Any = MCPToolset(StdioTransport(sys.executable, [str(server), str(tmp_path / "sold")]), id="shop")
    else:

        def chosen(_: RunContext[None]) -> FunctionToolset[None]:
            log.append("list")
            return FunctionToolset([get])

        toolset = DynamicToolset(chosen, id="chosen")
    agent = Agent(model, name="a", toolsets=[toolset], capabilities=[Refold(tools={"get": "reads"})])
    first, again = await lives(agent, log, tmp_path)
    assert (first[0], again[0]) == ("[2]", "[2]")
    sold = (tmp_path / "sold").read_text().split() if kind == "mcp" else first[1]
    assert (sold.count("get"), again[1].count("get")) == (1, 0)
    assert "ask" not in again[1]


async def test_another_prompt_is_another_way(tmp_path: Path) -> None:
    """The request says so before anything happens."""
    agent = Agent(scripted([], lambda _: text("done")), name="a", capabilities=[Refold()])
    await lives(agent, [], tmp_path)
    with pytest.raises(replay.Diverged, match="request to the model"):
        await lives(agent, [], tmp_path, prompt="another")


async def test_an_approval_is_the_runs_question(tmp_path: Path) -> None:
    """The block ends until somebody answers; then the tool runs once."""
    log: list[str] = []
    agent = Agent(
        scripted(log, lambda said: calls(("wire", {"cents": 5})) if not said else text(said)),
        name="a",
        capabilities=[Refold()],
    )

    @agent.tool_plain(requires_approval=True)
    async def wire(cents: int) -> str:
        log.append("wire")
        return f"wired {cents}"

    with pytest.raises(runner.NeedsDecision):
        await lives(agent, log, tmp_path)
    with pytest.raises(runner.NeedsDecision) as asked:
        await lives(agent, log, tmp_path)
    assert "wire" not in log
    runner.approve("r", asked.value.questions[0], "boss", runs=tmp_path)
    assert await lives(agent, log, tmp_path) == [("['wired 5']", ["wire", "ask"]), ("['wired 5']", [])]


async def test_edited_arguments_are_what_the_tool_gets(tmp_path: Path) -> None:
    """A person's arguments go through the tool's own validation."""
    agent = Agent(
        scripted([], lambda said: calls(("wire", {"cents": 5})) if not said else text(said)),
        name="a",
        capabilities=[Refold()],
    )

    @agent.tool_plain(metadata={"effect": "idempotent", "approval": True})
    async def wire(cents: int) -> str:
        return f"wired {cents}"

    with pytest.raises(runner.NeedsDecision) as asked:
        await lives(agent, [], tmp_path)
    runner.edit("r", asked.value.questions[0], "boss", {"cents": 3}, runs=tmp_path)
    assert [output for output, _ in await lives(agent, [], tmp_path)] == ["['wired 3']"] * 2


async def test_arguments_that_the_framework_overrides_are_what_the_tool_gets(tmp_path: Path) -> None:
    """Its own handler of approvals has the last word there; the log holds what the model wrote."""

    def approve(_: RunContext[None], requests: DeferredToolRequests) -> DeferredToolResults:
        said = {call.tool_call_id: ToolApproved(override_args={"cents": 3}) for call in requests.approvals}
        return DeferredToolResults(approvals=dict(said))

    agent = Agent(
        scripted([], lambda said: calls(("wire", {"cents": 5})) if not said else text(said)),
        name="a",
        capabilities=[HandleDeferredToolCalls(handler=approve), Refold(approvals=False, tools={"wire": "idempotent"})],
    )

    @agent.tool_plain(requires_approval=True)
    async def wire(cents: int) -> str:
        return f"wired {cents}"

    assert [output for output, _ in await lives(agent, [], tmp_path)] == ["['wired 3']"] * 2


async def test_deferred_calls_go_on_in_another_run_by_their_history(tmp_path: Path) -> None:
    """The second run takes over the call; both runs are replayed."""
    log: list[str] = []
    agent = Agent(
        scripted(log, lambda said: calls(("wire", {"cents": 5})) if not said else text(said)),
        name="a",
        output_type=[str, DeferredToolRequests],
        capabilities=[Refold(approvals=False)],
    )

    @agent.tool
    async def wire(ctx: RunContext[None], cents: int) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        log.append("wire")
        return f"wired {cents}"

    async def twice() -> tuple[str, list[str]]:
        log.clear()
        async with runner.durable("go", runs=tmp_path, run="first"):
            first = await agent.run("go")
        assert isinstance(first.output, DeferredToolRequests)
        said = DeferredToolResults(approvals={"id-wire-0": True})
        async with runner.durable("go on", runs=tmp_path, run="second"):
            second = await agent.run(message_history=first.all_messages(), deferred_tool_results=said)
        return second.output, [*log]

    assert await twice() == ("['wired 5']", ["ask", "wire", "ask"])
    assert await twice() == ("['wired 5']", [])
    assert runner.read_state("second", runs=tmp_path).turns == 1


async def test_an_agent_in_a_tool_is_a_run_of_its_own(tmp_path: Path) -> None:
    """Named after the call, it has its own log."""
    log: list[str] = []
    inner = Agent(scripted(log, lambda _: text("inner said")), name="inner", capabilities=[Refold()])
    outer = Agent(
        scripted(log, lambda said: calls(("ask_inner", {})) if not said else text(said)),
        name="outer",
        capabilities=[Refold(tools={"ask_inner": "idempotent"})],
    )

    @outer.tool_plain
    async def ask_inner() -> str:
        return (await inner.run("What?")).output

    assert await lives(outer, log, tmp_path) == [("['inner said']", ["ask", "ask", "ask"]), ("['inner said']", [])]
    assert sorted(name.partition("-")[0] for name in eventlog.store(tmp_path).runs()) == ["inner", "r"]


async def test_an_agent_in_a_tool_has_the_limits_of_its_caller_for_itself(tmp_path: Path) -> None:
    """Its turns are not counted among the caller's."""
    inner = Agent(scripted([], lambda _: text("inner said")), name="inner", capabilities=[Refold()])
    outer = Agent(
        scripted([], lambda said: calls(("ask", {})) if not said else text(said)), name="outer", capabilities=[Refold()]
    )

    @outer.tool_plain(metadata={"effect": "idempotent"})
    async def ask() -> str:
        return (await inner.run("What?")).output

    async with runner.durable("go", runs=tmp_path, run="r", limits=runner.Limits(turns=2)):
        await outer.run("go")
    states = {name.partition("-")[0]: runner.read_state(name, tmp_path) for name in eventlog.store(tmp_path).runs()}
    assert {name: (state.turns, state.limits.turns) for name, state in states.items()} == {"r": (2, 2), "inner": (1, 2)}


async def test_usage_counts_for_the_runs_limits(tmp_path: Path) -> None:
    """The limit stops the framework's loop."""
    log: list[str] = []
    agent = Agent(
        scripted(log, lambda said: calls(("get", {"x": len(said)}))),
        name="a",
        capabilities=[Refold(tools={"get": "reads"})],
    )

    @agent.tool_plain
    async def get(x: int) -> int:
        return x

    with pytest.raises(errors.TurnLimit):
        async with runner.durable("go", runs=tmp_path, run="r", limits=runner.Limits(turns=3)):
            await agent.run("go")
    assert log == ["ask"] * 3
    assert runner.read_state("r", runs=tmp_path).spent.output_tokens > 0


async def test_an_error_of_an_effect_asks_a_person(tmp_path: Path) -> None:
    """A tool that declares nothing may have acted."""
    agent = Agent(
        scripted([], lambda said: calls(("send", {})) if not said else text(said)), name="a", capabilities=[Refold()]
    )

    @agent.tool_plain
    async def send() -> str:
        raise OSError("connection lost")

    with pytest.raises(runner.NeedsDecision) as asked:
        await lives(agent, [], tmp_path)
    runner.settle("r", asked.value.questions[0], "me", "done", "it was sent", runs=tmp_path)
    assert [output for output, _ in await lives(agent, [], tmp_path)] == ["['it was sent']"] * 2


async def test_messages_and_usage_are_equal_in_both_lives(tmp_path: Path) -> None:
    """But for the times, which the framework notes."""
    agent = Agent(
        scripted([], lambda said: calls(("get", {"x": 1})) if not said else text("done")),
        name="a",
        capabilities=[Refold(tools={"get": "reads"})],
    )

    @agent.tool_plain
    async def get(x: int) -> dict[str, Any]:
        return {"x": [x, None]}

    results = []
    for _ in range(2):
        async with runner.durable("go", runs=tmp_path, run="r"):
            results.append(await agent.run("go"))
    first, again = (json.loads(result.all_messages_json()) for result in results)
    for message in [*first, *again]:
        message.pop("timestamp", None)
        for part in message["parts"]:
            part.pop("timestamp", None)
    assert first == again
    assert results[0].usage == results[1].usage


async def test_what_is_replayed_gives_no_span_again(tmp_path: Path) -> None:
    """The spans of the first life are all there are."""
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: PLC0415

    exported, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    settings = InstrumentationSettings(tracer_provider=provider)
    agent = Agent(
        scripted([], lambda said: calls(("get", {"x": 1})) if not said else text("done")),
        name="a",
        capabilities=[
            Refold(tools={"get": "reads"}),
            Instrumentation(settings),
        ],
    )

    @agent.tool_plain
    async def get(x: int) -> int:
        return x

    counts = []
    for _ in range(2):
        await lives(agent, [], tmp_path)
        counts.append(len(exported.get_finished_spans()))
    assert counts == [4, 4]  # the agent, two requests, a tool


async def test_arguments_that_somebody_gives_with_an_approval_are_in_the_log(tmp_path: Path) -> None:
    """pydantic-ai runs the call with those, and so the log says."""
    log: list[str] = []
    model = scripted(log, lambda said: calls(("wire", {"cents": 5})) if not said else text(said))
    output: Any = [str, DeferredToolRequests]
    agent = Agent(model, name="a", capabilities=[Refold(approvals=False)], output_type=output)

    @agent.tool_plain(requires_approval=True, metadata={"effect": "idempotent"})
    async def wire(cents: int) -> str:
        return f"wired {cents}"

    given = DeferredToolResults(approvals={"id-wire-0": ToolApproved(override_args={"cents": 3})})
    for _ in range(2):
        async with runner.durable("go", runs=tmp_path, run="r", framework="pydantic-ai"):
            waits = await agent.run("go")
            result = await agent.run(message_history=waits.all_messages(), deferred_tool_results=given)
        assert "wired 3" in str(result.output)
    events = [replay.decode(raw) for line in eventlog.store(tmp_path).read("r").lines for raw in line.events]
    marked = [json.loads(event.arguments or "") for event in events if isinstance(event, AttemptMarked)]
    assert marked == [{"cents": 3}]


async def test_a_model_that_one_run_is_given_needs_no_name(tmp_path: Path) -> None:
    """It stays in this process, so nothing has to be registered."""
    log: list[str] = []
    agent = Agent(scripted([], lambda _: text("mine")), name="a", capabilities=[Refold()])
    given = scripted(log, lambda said: calls(("get", {})) if not said else text(said))

    @agent.tool_plain(metadata={"effect": "reads"})
    async def get() -> str:
        log.append("get")
        return "got"

    outputs = []
    for _ in range(2):
        async with runner.durable("go", runs=tmp_path, run="r"):
            outputs.append((await agent.run("go", model=given)).output)
    assert (outputs, log) == (["['got']"] * 2, ["ask", "get", "ask"])


@pytest.mark.parametrize("error", [ModelRetry("again"), LookupError("odd")])
async def test_an_operation_that_raises_does_so_as_it_is_and_in_each_life(tmp_path: Path, error: Exception) -> None:
    """pydantic-ai goes on by its own error, so that must come again; any other reaches whoever called the agent."""
    judged, ends = list[str](), iter((True, False))

    class Judge(AbstractCapability[Any]):
        id = "judge"

        @durable_operation("judge")
        async def judge(self, ctx: RunContext[Any]) -> bool:  # noqa: ARG002 (it must have one)
            judged.append("judge")
            if len(judged) == 1:
                raise error
            return True

        async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:  # noqa: ARG002
            await self.judge(ctx)
            return response

    agent = Agent(scripted([], text), name="a", capabilities=[Judge(), Refold()])

    async def life() -> int:
        async with runner.durable("go", runs=tmp_path, run="r", framework="pydantic-ai"):
            result = await agent.run("go")
            if next(ends):
                raise ZeroDivisionError
        return len(result.all_messages())

    with pytest.raises((ZeroDivisionError, LookupError)) as raised:
        await life()
    if isinstance(error, ModelRetry):
        assert await life() == 4  # the reply that was asked again is in both lives
    else:
        assert raised.value is error
    assert judged == (["judge"] * 2 if isinstance(error, ModelRetry) else ["judge"])
