"""A model and an agent that cost nothing, so that what is measured is the runner."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence

import runner
from benchmarks import history

Think = Callable[[], Awaitable[None]]


async def at_once() -> None:
    """Think about nothing."""


class Model:
    """Calls `look` `calls` times in each of `turns` turns, then ends. Its texts are drawn from a few random ones."""

    name = "model"

    def __init__(
        self, turns: int, *, calls: int = 1, tool: str = "look", size: int = 860, think: Think = at_once
    ) -> None:
        self.turns, self.calls, self.tool, self.think = turns, calls, tool, think
        self.asked = 0
        self.texts = texts(size)

    def bound(self, _request: runner.Request) -> runner.CostBound:
        """A constant."""
        return runner.CostBound(input_tokens=900, output_tokens=900, dollars=0.0)

    async def ask(self, _request: runner.Request) -> runner.Reply:
        """The next reply."""
        await self.think()
        self.asked += 1
        if self.asked > self.turns:
            return runner.Reply(text="done")
        words = self.texts[self.asked % len(self.texts)]
        arguments = '{"at":"it"}'
        made = [runner.ToolCall(tool=self.tool, arguments=arguments, provider_id=f"c{n}") for n in range(self.calls)]
        return runner.Reply(text=words, calls=tuple(made), stop="tool_calls", model="model")


def texts(size: int, many: int = 16) -> Sequence[str]:
    """A few random texts of this size; taken in turn, none stands beside itself."""
    source = random.Random(size)
    return [history.text(source, size) for _ in range(many)]


def agent(model: Model, *tools: runner.Tool, **options: object) -> runner.Agent:
    """An agent that asks nobody and never reaches a limit."""
    return runner.Agent(name="agent", model=model, tools=tools, limits=runner.Limits(turns=model.turns + 5), **options)  # type: ignore[arg-type] # as Agent takes them
