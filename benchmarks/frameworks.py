"""What does a framework's turn cost more when it is durable? A turn is a request to the model and one call that reads.

The same agent runs with its capability or middleware, once outside of a durable run, where those do nothing, and once
inside. Processor time is compared: the machine may be busy. What the flushes take of it is measured in the same run,
and taken off. `--profile FRAMEWORK` prints instead where the time of one durable run goes.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pstats
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic_ai import Agent, UsageLimits, messages
from pydantic_ai.models.function import FunctionModel

import runner
import runner.langchain
from benchmarks import arms, models, table
from benchmarks.turns import Flushes
from runner.pydantic_ai import Refold

Run = Callable[[], Awaitable[object]]
TEXTS = models.texts(300)
EFFECTS = {"look": "reads"}


class TimedFlushes(Flushes):
    """Counts flushes, and the processor time that they take."""

    seconds = 0.0

    def _counting(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def counted(fd: int) -> None:
            self.count += 1
            begun = time.thread_time()
            real(fd)
            self.seconds += time.thread_time() - begun

        return counted


async def look(at: str) -> str:  # noqa: ARG001 (as a model calls it)
    """Look at it."""
    return TEXTS[0]


def pydantic_ai(turns: int) -> Run:
    """An agent of pydantic-ai that takes so many turns."""

    def model(said: list[Any], _: object) -> messages.ModelResponse:
        turn = len(said) // 2
        part = messages.ToolCallPart("look", {"at": "it"}, f"c{turn}") if turn < turns else messages.TextPart("done")
        return messages.ModelResponse(parts=[messages.TextPart(TEXTS[turn % len(TEXTS)]), part])

    agent = Agent(FunctionModel(model), name="agent", capabilities=[Refold(tools=EFFECTS)], tools=[look])
    return lambda: agent.run("go", usage_limits=UsageLimits(request_limit=None))


def langchain(turns: int) -> Run:
    """An agent of LangChain that takes so many turns."""

    class Model(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "model"

        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

        def _generate(self, said: list[Any], *_: Any, **__: Any) -> ChatResult:
            turn = len(said) // 2
            calls = [ToolCall(name="look", args={"at": "it"}, id=f"c{turn}")] if turn < turns else []
            return ChatResult(
                generations=[ChatGeneration(message=AIMessage(TEXTS[turn % len(TEXTS)], tool_calls=calls))]
            )

        async def _agenerate(self, said: list[Any], *_: Any, **__: Any) -> ChatResult:
            return self._generate(said)

    middleware = runner.langchain.middleware(tools=EFFECTS)
    agent: Any = create_agent(Model(), [tool(look)], middleware=middleware)
    return lambda: agent.ainvoke({"messages": [("user", "go")]}, {"recursion_limit": 10 * turns})


FRAMEWORKS = {"pydantic-ai": pydantic_ai, "langchain": langchain}


async def alone(run: Run) -> None:
    """The framework by itself."""
    await run()


async def durable(run: Run) -> None:
    """The same in a durable run."""
    with arms.room() as path:
        async with runner.durable("go", runs=path, run="r"):
            await run()


def took(arm: Callable[[Run], Awaitable[None]], run: Run) -> tuple[float, TimedFlushes]:
    """The processor time of one run without that of its flushes, and the flushes."""
    gc.collect()
    with TimedFlushes() as flushes:
        begun = time.process_time()
        asyncio.run(arm(run))  # type: ignore[arg-type] # a coroutine
        return time.process_time() - begun - flushes.seconds, flushes


def main() -> None:
    """Answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and turns; its figures are kept apart")
    parser.add_argument("--profile", choices=FRAMEWORKS, help="print where the time of one durable run goes")
    given = parser.parse_args()
    if given.profile:
        with cProfile.Profile() as profile:
            asyncio.run(durable(FRAMEWORKS[given.profile](200)))
        pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(40)
        return
    sizes, rounds = ((20, 50), 3) if given.quick else ((50, 200), 7)
    rows = []
    for name, make in FRAMEWORKS.items():
        for turns in sizes:
            run, seen = make(turns), list[tuple[float, float, TimedFlushes]]()
            took(durable, run)
            for _ in range(rounds):
                seen.append((took(alone, run)[0], *took(durable, run)))
            by_itself = arms.middle([one for one, _, _ in seen]) / turns * 1000
            more = arms.middle([ours - one for one, ours, _ in seen]) / turns * 1000
            flushes = min(counted.count for _, _, counted in seen) / turns
            rows.append([name, str(turns), f"{by_itself:.2f}", f"{more:.2f}", f"{flushes:.1f}"])
    head = ["framework", "turns", "ms a turn alone", "ms a turn more", "flushes a turn"]
    notes = ["milliseconds of processor time, all threads, without what the flushes take"]
    question = "What does a framework's turn cost more when it is durable?"
    table.report("frameworks", question, head, rows, notes=notes, short=given.quick)


if __name__ == "__main__":
    main()
