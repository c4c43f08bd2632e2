"""LangChain on a log: each story in two lives, of which the second executes nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    ToolRetryMiddleware,
    human_in_the_loop,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

import eventlog
import replay
import runner
from replay.events import AttemptMarked
from runner import errors
from runner.langchain import middleware

GO: Any = {"messages": [("user", "go")]}


class Scripted(BaseChatModel):
    """A model that replies to what its calls came to."""

    replies: Callable[[list[str]], AIMessage]
    log: Any  # the very list: pydantic would copy one that it checks

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        """Take any tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.log.append("ask")
        said = self.replies([str(m.text) for m in messages if isinstance(m, ToolMessage)])
        return ChatResult(generations=[ChatGeneration(message=said)])


def calls(*wanted: tuple[str, dict[str, Any]]) -> AIMessage:
    """A reply that orders calls."""
    return AIMessage(
        "", tool_calls=[ToolCall(name=name, args=args, id=f"{name}-{n}") for n, (name, args) in enumerate(wanted)]
    )


def once(name: str, **args: Any) -> Callable[[list[str]], AIMessage]:
    """Replies that order one call, and then tell what it came to."""
    return lambda said: calls((name, args)) if not said else AIMessage(str(said))


async def lives(agent: Any, log: list[str], runs: Path, *, sync: bool = False) -> list[tuple[str, list[str]]]:
    """The last message and what was executed, of two lives of one run."""
    seen = []
    for _ in range(2):
        log.clear()
        async with runner.durable("go", runs=runs, run="r", framework="langchain"):
            out = await (asyncio.to_thread(agent.invoke, GO) if sync else agent.ainvoke(GO))
        seen.append((str(out["messages"][-1].text), [*log]))
    return seen


@pytest.mark.parametrize("sync", [False, True])
async def test_a_finished_run_is_replayed_with_nothing_executed(tmp_path: Path, sync: bool) -> None:
    """Sync code runs in a thread beside the run's loop."""
    log: list[str] = []

    @tool
    def get(x: int) -> int:
        """Get it."""
        log.append(f"get {x}")
        return x * 10

    model = Scripted(
        log=log, replies=lambda said: calls(("get", {"x": 1}), ("get", {"x": 2})) if not said else AIMessage(str(said))
    )
    agent = create_agent(model, [get], middleware=middleware(tools={"get": "reads"}))
    first, again = await lives(agent, log, tmp_path, sync=sync)
    assert (first[0], sorted(first[1])) == ("['10', '20']", ["ask", "ask", "get 1", "get 2"])
    assert again == (first[0], [])
    assert runner.read_state("r", runs=tmp_path).answer == first[0]


async def test_outside_of_a_block_an_agent_is_as_before() -> None:
    """The middleware does nothing there."""
    agent = create_agent(Scripted(log=[], replies=lambda _: AIMessage("hello")), middleware=middleware())
    assert (await agent.ainvoke(GO))["messages"][-1].text == "hello"


async def test_structured_output_is_made_again_of_the_recorded_reply(tmp_path: Path) -> None:
    """So are its retries; the structured response is the run's answer."""

    class City(BaseModel):
        people: int

    log: list[str] = []
    model = Scripted(log=log, replies=lambda said: calls(("City", {"people": 7 if said else "many"})))
    agent = create_agent(model, response_format=ToolStrategy(City), middleware=middleware())
    outs = []
    for _ in range(2):
        async with runner.durable("go", runs=tmp_path, run="r"):
            outs.append((await agent.ainvoke(GO))["structured_response"])
    assert (outs, log) == ([City(people=7)] * 2, ["ask", "ask"])
    assert runner.read_state("r", runs=tmp_path).answer == '{"people": 7}'


async def test_a_command_of_a_tool_updates_the_state_in_both_lives(tmp_path: Path) -> None:
    """Its messages and its update come back from the log."""
    log: list[str] = []

    @tool
    def note() -> Command[Any]:
        """Note it."""
        log.append("note")
        return Command(update={"messages": [ToolMessage("noted", tool_call_id="note-0")]})

    agent = create_agent(
        Scripted(log=log, replies=once("note")), [note], middleware=middleware(tools={"note": "reads"})
    )
    assert await lives(agent, log, tmp_path) == [("['noted']", ["ask", "note", "ask"]), ("['noted']", [])]


async def test_an_object_of_a_command_that_looks_like_a_mark_of_ours_is_none(tmp_path: Path) -> None:
    """Its one field has the name by which the log marks messages."""

    class Noted(AgentState):
        noted: Any

    class Note(BaseModel):
        message: str

    @tool
    def note() -> Command[Any]:
        """Note it."""
        return Command(update={"noted": Note(message="hi"), "messages": [ToolMessage("ok", tool_call_id="note-0")]})

    model = Scripted(log=[], replies=once("note"))
    agent = create_agent(model, [note], state_schema=Noted, middleware=middleware(tools={"note": "reads"}))
    found = []
    for _ in range(2):
        async with runner.durable("go", runs=tmp_path, run="r"):
            found.append((await agent.ainvoke(GO))["noted"])
    assert found == [Note(message="hi"), {"message": "hi"}]


async def test_what_another_middleware_retries_belongs_to_one_attempt(tmp_path: Path) -> None:
    """Only what it comes to in the end is recorded."""
    log: list[str] = []

    @tool
    def get() -> str:
        """Get it."""
        log.append("get")
        if log.count("get") == 1:
            raise OSError("not now")
        return "got"

    retry = ToolRetryMiddleware(initial_delay=0, jitter=False)
    agent = create_agent(
        Scripted(log=log, replies=once("get")), [get], middleware=middleware(retry, tools={"get": "idempotent"})
    )
    assert await lives(agent, log, tmp_path) == [("['got']", ["ask", "get", "get", "ask"]), ("['got']", [])]


async def test_a_person_edits_what_a_tool_gets(tmp_path: Path) -> None:
    """Approvals are the run's, by what the tool declares."""
    log: list[str] = []

    @tool
    def wire(cents: int) -> str:
        """Wire it."""
        return f"wired {cents}"

    wire.metadata = {"effect": "idempotent", "approval": True}
    agent = create_agent(Scripted(log=log, replies=once("wire", cents=5)), [wire], middleware=middleware())
    with pytest.raises(runner.NeedsDecision) as asked:
        await lives(agent, log, tmp_path)
    runner.edit("r", asked.value.questions[0], "boss", {"cents": 3}, runs=tmp_path)
    assert [text for text, _ in await lives(agent, log, tmp_path)] == ["['wired 3']"] * 2


def reviewed(runs: Path, tools: list[Any], replies: Callable[[list[str]], AIMessage], **terms: Any) -> Any:
    """Opens one run again and again, with an agent whose wires a reviewer looks at: each gives the last message."""
    human = HumanInTheLoopMiddleware(interrupt_on={"wire": True})
    made = middleware(human, tools=dict.fromkeys(("wire", "mail"), "idempotent") | terms)
    agent: Any = create_agent(Scripted(log=[], replies=replies), tools, middleware=made, checkpointer=InMemorySaver())

    async def go(given: Any = GO) -> str:
        async with runner.durable("go", runs=runs, run="r"):
            out = await agent.ainvoke(given, {"configurable": {"thread_id": "t"}})
        return str(out["messages"][-1].text)

    return go


def edit_to(name: str, **args: Any) -> Command[Any]:
    """A reviewer's answer that makes one call another one."""
    return Command(resume={"decisions": [{"type": "edit", "edited_action": {"name": name, "args": args}}]})


async def test_arguments_that_a_reviewer_in_the_framework_edits_are_what_the_tool_gets(tmp_path: Path) -> None:
    """LangChain's own middleware has the last word there, and the log says what ran."""

    @tool
    def wire(cents: int) -> str:
        """Wire it."""
        return f"wired {cents}"

    go = reviewed(tmp_path, [wire], once("wire", cents=5))
    await go()
    assert "wired 3" in await go(edit_to("wire", cents=3))
    events = [replay.decode(raw) for line in eventlog.store(tmp_path).read("r").lines for raw in line.events]
    marked = [json.loads(event.arguments or "") for event in events if isinstance(event, AttemptMarked)]
    assert marked == [{"cents": 3}]


async def test_an_edit_of_a_call_that_is_on_its_way_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """The attempt was logged with other arguments: nothing runs, and the model reads why."""

    class Edits(AgentMiddleware):
        interrupt_mode = "per_call"

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(tool_call={**request.tool_call, "args": {"cents": 3}}))

    @tool
    def wire(cents: int) -> str:
        """Wire it."""
        return f"wired {cents}"

    model = Scripted(log=[], replies=once("wire", cents=5))
    agent = create_agent(model, [wire], middleware=middleware(Edits(), tools={"wire": "idempotent"}))
    for text, _ in await lives(agent, [], tmp_path):
        assert "'batched'" in text


async def test_an_edit_in_the_framework_of_a_call_that_needs_a_yes_here_is_refused(tmp_path: Path) -> None:
    """A yes of the run covers the arguments that it showed, and no others."""
    log: list[str] = []

    @tool
    def wire(cents: int) -> str:
        """Wire it."""
        log.append(f"wire {cents}")
        return "wired"

    go = reviewed(tmp_path, [wire], once("wire", cents=5), wire={"effect": "idempotent", "approval": True})
    await go()
    with pytest.raises(errors.BadAgent, match="in its question"):
        await go(edit_to("wire", cents=3))
    assert log == []


@pytest.mark.parametrize("approval", [False, True])
async def test_a_call_that_a_reviewer_makes_one_of_another_tool_is_made_instead(tmp_path: Path, approval: bool) -> None:
    """By what that tool declares; a call beside it runs once, too, and the log says what became of each."""
    log: list[str] = []

    @tool
    def wire(cents: int) -> str:
        """Wire it."""
        log.append(f"wire {cents}")
        return "wired"

    @tool
    def mail(to: str) -> str:
        """Mail it."""
        log.append(f"mail {to}")
        return f"mailed {to}"

    both = calls(("wire", {"cents": 5}), ("mail", {"to": "b"}))
    go = reviewed(
        tmp_path,
        [wire, mail],
        lambda said: both if not said else AIMessage(str(said)),
        mail={"effect": "idempotent", "approval": approval},
    )
    await go()
    answer: Any = edit_to("mail", to="a")
    if approval:
        with pytest.raises(runner.NeedsDecision):
            await go(answer)
        assert log == []
        asked = {json.loads(one.arguments)["to"]: one.id for one in runner.read_state("r", tmp_path).waiting}
        runner.edit("r", asked["a"], "boss", {"to": "c"}, runs=tmp_path)
        runner.approve("r", asked["b"], "boss", runs=tmp_path)
        answer = None
    text, to = await go(answer), "c" if approval else "a"
    assert sorted(log) == sorted([f"mail {to}", "mail b"])
    assert f"mailed {to}" in text
    assert "mailed b" in text
    told = [(one.tool, one.how) for one in replay.audit(eventlog.store(tmp_path).read("r").lines).calls]
    assert told == [("wire", "invalid"), ("mail", "invalid"), ("mail", "ran"), ("mail", "ran")]


@pytest.mark.skipif(
    not hasattr(human_in_the_loop, "_EDITED_TOOL_CALLS_KEY"), reason="this LangChain answers it with a message"
)
async def test_a_reviewers_edit_to_a_tool_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """Nothing runs."""

    @tool
    def wire(cents: int) -> str:
        """Wire it."""
        return f"wired {cents}"

    go = reviewed(tmp_path, [wire], once("wire", cents=5))
    await go()
    with pytest.raises(errors.BadAgent, match="which is no tool"):
        await go(edit_to("fax", cents=5))


@pytest.mark.parametrize("cents", [3, 4])
async def test_after_the_first_try_a_call_keeps_its_arguments(tmp_path: Path, cents: int) -> None:
    """The try may have happened: the same edit goes on, and another one is refused."""
    log: list[int] = []

    @tool
    def wire(cents: int) -> str:
        """Wire it."""
        log.append(cents)
        if len(log) == 1:
            raise OSError("connection lost")
        return f"wired {cents}"

    replies, saver = once("wire", cents=5), InMemorySaver()
    human = HumanInTheLoopMiddleware(interrupt_on={"wire": True})
    model = Scripted(log=[], replies=replies)

    async def life(given: Any, thread: str) -> Any:
        agent: Any = create_agent(model, [wire], middleware=middleware(human), checkpointer=saver)
        async with runner.durable("go", runs=tmp_path, run="r"):
            return await agent.ainvoke(given, {"configurable": {"thread_id": thread}})

    await life(GO, "first")
    with pytest.raises(runner.NeedsDecision) as asked:
        await life(edit_to("wire", cents=3), "first")
    runner.settle("r", asked.value.questions[0], "me", "rerun", runs=tmp_path)
    await life(GO, "second")  # a conversation that knows nothing of the edit, and is reviewed anew
    if cents == 3:
        assert "wired 3" in str((await life(edit_to("wire", cents=cents), "second"))["messages"][-1].text)
        assert log == [3, 3]
    else:
        with pytest.raises(errors.BadAgent, match="was tried with other arguments"):
            await life(edit_to("wire", cents=cents), "second")
        assert log == [3]


@pytest.mark.parametrize("where", ["in the tool", "before it"])
async def test_an_interrupted_agent_goes_on_in_its_run(tmp_path: Path, where: str) -> None:
    """The call is still due: in the next life the framework, which remembers, makes it once."""
    log: list[str] = []

    @tool
    def wire(cents: int) -> str:
        """Wire it."""
        if where == "in the tool" and interrupt("may I?") != "yes":
            return "no"
        log.append("wire")
        return f"wired {cents}"

    human = [HumanInTheLoopMiddleware(interrupt_on={"wire": True})] if where == "before it" else []
    model = Scripted(log=log, replies=once("wire", cents=5))
    agent: Any = create_agent(model, [wire], middleware=middleware(*human), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    yes: Any = "yes" if where == "in the tool" else {"decisions": [{"type": "approve"}]}
    async with runner.durable("go", runs=tmp_path, run="r"):
        assert "__interrupt__" in await agent.ainvoke(GO, config)
    assert runner.read_state("r", runs=tmp_path).phase == "tools"
    async with runner.durable("go", runs=tmp_path, run="r"):
        out = await agent.ainvoke(Command(resume=yes), config)
    assert (out["messages"][-1].text, log) == ("['wired 5']", ["ask", "wire", "ask"])
    assert runner.read_state("r", runs=tmp_path).phase == "done"


async def test_a_thread_that_is_remembered_goes_on_after_a_death(tmp_path: Path) -> None:
    """The framework begins at its checkpoint, at a request that the log does not hold."""
    log: list[str] = []

    class Died(BaseException):
        """An end that nothing catches."""

    class Dies(AgentMiddleware):
        def before_model(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
            if log == ["ask", "get"]:
                log.append("died")
                raise Died

    @tool
    def get() -> str:
        """Get it."""
        log.append("get")
        return "got"

    model = Scripted(log=log, replies=once("get"))
    mine = middleware(Dies(), tools={"get": "reads"})
    agent: Any = create_agent(model, [get], middleware=mine, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    with pytest.raises(Died):
        async with runner.durable("go", runs=tmp_path, run="r"):
            await agent.ainvoke(GO, config)
    async with runner.durable("go", runs=tmp_path, run="r"):
        out = await agent.ainvoke(None, config)
    assert (out["messages"][-1].text, log) == ("['got']", ["ask", "get", "died", "ask"])


async def test_another_prompt_is_another_way(tmp_path: Path) -> None:
    """The request says so before anything happens."""
    agent: Any = create_agent(Scripted(log=[], replies=lambda _: AIMessage("hello")), middleware=middleware())
    await lives(agent, [], tmp_path)
    with pytest.raises(replay.Diverged):
        async with runner.durable("go", runs=tmp_path, run="r"):
            await agent.ainvoke({"messages": [("user", "another")]})


async def test_a_tool_that_declares_nothing_and_raises_asks_a_person(tmp_path: Path) -> None:
    """It may have acted; what the person says is what the model reads."""
    log: list[str] = []

    @tool
    def send() -> str:
        """Send it."""
        raise OSError("connection lost")

    agent = create_agent(Scripted(log=log, replies=once("send")), [send], middleware=middleware())
    with pytest.raises(runner.NeedsDecision) as asked:
        await lives(agent, log, tmp_path)
    runner.settle("r", asked.value.questions[0], "me", "done", "it was sent", runs=tmp_path)
    assert [text for text, _ in await lives(agent, log, tmp_path)] == ["['it was sent']"] * 2


async def test_streamed_messages_are_there_in_both_lives(tmp_path: Path) -> None:
    """A recorded reply comes as one piece."""
    log: list[str] = []
    agent: Any = create_agent(Scripted(log=log, replies=lambda _: AIMessage("hello")), middleware=middleware())
    texts = []
    for _ in range(2):
        async with runner.durable("go", runs=tmp_path, run="r"):
            texts.append("".join([m.text async for m, _ in agent.astream(GO, stream_mode="messages")]))
    assert (texts, log) == (["hello"] * 2, ["ask"])


async def test_sync_code_in_the_runs_own_loop_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """It would wait for itself forever."""
    agent: Any = create_agent(Scripted(log=[], replies=lambda _: AIMessage("hello")), middleware=middleware())
    with pytest.raises(errors.BadAgent, match="to_thread"):
        async with runner.durable("go", runs=tmp_path, run="r"):
            agent.invoke(GO)
