"""One order for each kind of program: two looks side by side, a charge, a mail, a wire. What is outside is given.

The same programs are killed for real (`kills`) and swept (`test_sweeps`). Frameworks are imported when they are used.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol

import runner
from runner.adapters import Durable

TURNS: tuple[tuple[tuple[str, dict[str, Any]], ...], ...] = (
    (("look", {"n": 1}), ("look", {"n": 2})),
    (("charge", {"n": 3}),),
    (("mail", {"n": 4}),),
    (("wire", {"n": 5}),),
)
"""The calls of each reply of a model; the one after these is the answer."""
CALLS = tuple(tool for turn in TURNS for tool, _ in turn)
NAMES = tuple(dict.fromkeys(CALLS))
ANSWER = "all done"


class Outside(Protocol):
    """The services that an order uses."""

    def asked(self, turn: int) -> int:
        """Note that the model was asked for a reply; how often it was asked for that one before."""

    async def did(self, tool: str, call: runner.Call) -> str:
        """Do what a tool does."""

    def mailed(self, call: runner.Call) -> runner.Found | runner.Missing:
        """Whether a mail was sent."""


def terms(outside: Outside) -> dict[str, dict[str, Any]]:
    """What is declared of each tool: a bank that knows keys, a post that can be asked, a wire that can't."""
    return {
        "look": {"effect": "reads"},
        "charge": {"effect": "keyed", "key_ttl": timedelta(days=1)},
        "mail": {"effect": "non_idempotent", "lookup": outside.mailed, "visible_within": 0},
        "wire": {"effect": "non_idempotent"},
    }


def body(outside: Outside, name: str) -> Any:
    """A tool's function, as a framework takes it."""

    async def act(n: int) -> str:  # noqa: ARG001 (the framework shows the model what is in the signature)
        return await outside.did(name, runner.current_call())

    act.__name__ = name
    act.__doc__ = f"Do one {name}."
    return act


def plain(outside: Outside) -> Any:
    """Plain Python, without a model."""
    tools = []
    for name, said in terms(outside).items():
        find = said.pop("lookup", None)
        visible_within = said.pop("visible_within", 0)
        tool: runner.Tool = runner.tool(name=name, **said)(body(outside, name))
        if find is not None:
            tool.lookup(visible_within=visible_within)(find)
        tools.append(tool)

    @runner.durable_main(name="order", tools=tools)
    async def order(run: Durable, _task: str, _inputs: None) -> str:
        await run.step("drawn", lambda: 7)
        for turn in TURNS:
            for name, arguments in turn:
                await run.act(name, arguments)
        return ANSWER

    return order


def pydantic_ai(outside: Outside) -> Any:
    """An agent of pydantic-ai."""
    from pydantic_ai import Agent, messages  # noqa: PLC0415
    from pydantic_ai.models.function import FunctionModel  # noqa: PLC0415

    from runner.pydantic_ai import Refold  # noqa: PLC0415

    def model(said: list[Any], _: object) -> messages.ModelResponse:
        turn = sum(isinstance(message, messages.ModelResponse) for message in said)
        again = outside.asked(turn)
        if turn == len(TURNS):
            return messages.ModelResponse(parts=[messages.TextPart(ANSWER)])
        calls = [
            messages.ToolCallPart(name, wanted, f"{turn}-{n}-{again}") for n, (name, wanted) in enumerate(TURNS[turn])
        ]
        return messages.ModelResponse(parts=calls)

    agent = Agent(FunctionModel(model), name="order", capabilities=[Refold(tools=terms(outside))])
    for name in NAMES:
        agent.tool_plain(body(outside, name))

    @runner.durable_main(name="order", framework="pydantic-ai")
    async def order(task: str, _inputs: None) -> str:
        return (await agent.run(task)).output

    return order


def langchain(outside: Outside) -> Any:
    """An agent of LangChain."""
    from langchain.agents import create_agent  # noqa: PLC0415
    from langchain_core.language_models.chat_models import BaseChatModel  # noqa: PLC0415
    from langchain_core.messages import AIMessage, ToolCall  # noqa: PLC0415
    from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: PLC0415
    from langchain_core.tools import tool  # noqa: PLC0415

    from runner.langchain import middleware  # noqa: PLC0415

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

        def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
            turn = sum(isinstance(message, AIMessage) for message in messages)
            again = outside.asked(turn)
            wanted = TURNS[turn] if turn < len(TURNS) else ()
            calls = [ToolCall(name=name, args=args, id=f"{turn}-{n}-{again}") for n, (name, args) in enumerate(wanted)]
            said = AIMessage("" if calls else ANSWER, tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=said)])

        async def _agenerate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
            return self._generate(messages)

    tools = [tool(body(outside, name)) for name in NAMES]
    agent: Any = create_agent(Scripted(), tools, middleware=middleware(tools=terms(outside)))

    @runner.durable_main(name="order", framework="langchain")
    async def order(task: str, _inputs: None) -> str:
        return str((await agent.ainvoke({"messages": [("user", task)]}))["messages"][-1].text)

    return order


ORDERS = {"plain": plain, "pydantic-ai": pydantic_ai, "langchain": langchain}
"""The program of each kind, made of what is outside."""
