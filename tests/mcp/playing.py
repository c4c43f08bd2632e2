"""Runs in this process whose tools are a server's."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import eventlog
import runner
import runner.mcp
import runner.testing
from replay.events import AttemptEnded
from tests.support import stage

Outcome = runner.Outcome


def play(
    server: runner.mcp.Server,
    runs: Path,
    *turns: runner.Reply,
    after: Callable[[int], Awaitable[None]] | None = None,
    answers: runner.OnQuestion | None = None,
) -> Outcome:
    """Run, or resume, an agent that makes these calls and then says `done`. `after(n)` is awaited after turn n."""

    class Model(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            if after is not None:
                await after(request.turn - 1)
            return await super().ask(request)

    async def run() -> Outcome:
        async with server:
            agent = runner.Agent(name="agent", model=Model([*turns, "done"]), tools=await server.tools())
            try:
                return await runner.resume("r", agent, runs=runs, clock=stage.Ticking(), on_question=answers)
            except (eventlog.NoSuchRun, eventlog.NotARunsDirectory):
                return await runner.start(agent, "go", runs=runs, run="r", clock=stage.Ticking(), on_question=answers)

    return asyncio.run(run())


def text(runs: Path, call: str = "1.0") -> str:
    """What a call came to."""
    return stage.results(runs)[call].text


def ends(runs: Path) -> list[tuple[str, float | None, str]]:
    """How the attempts that gave no result ended."""
    return [(end.did, end.retry_after, end.error) for end in stage.events(runs, AttemptEnded)]


def one(tool: str, **arguments: Any) -> runner.Reply:
    """A turn that calls one tool."""
    return runner.testing.tool_calls((tool, arguments))
