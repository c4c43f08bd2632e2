"""What a process that may die does: it runs or resumes one agent that pays once, in a shop reached over MCP."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import mcp

import eventlog
import runner
import runner.mcp
import runner.testing
from tests.support.stage import NOON

FASTER = 8
LANDS = 4.0


class Fast(runner.Clock):
    """A clock that runs eight times as fast: the ladder's waits are short, and still come after what they wait for."""

    def wall(self) -> Any:
        """A time that goes on from one process to the next."""
        return NOON + timedelta(seconds=FASTER * (time.time() - 1.7e9))

    def monotonic(self) -> float:
        """Seconds of it."""
        return time.monotonic() * FASTER

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds / FASTER)


def terms(server: Callable[[], runner.mcp.Server], effect: str) -> dict[str, Any]:
    """How `pay` is declared: keyed, or `non_idempotent` with a lookup that asks the shop for the key."""

    async def look(call: runner.Call) -> runner.Found | runner.Missing:
        found = await server().ask("find", {"key": call.key})
        return runner.Missing() if found["payment"] is None else runner.Found(found)

    if effect == "keyed":
        return {"effect": "keyed", "key_ttl": timedelta(days=365), "attempts": 10}
    return {"attempts": 10, "lookup": look, "visible_within": LANDS}


def dying(tool: runner.Tool, when: str) -> runner.Tool:
    """The tool, in a process that dies just before or just after its body; anything else leaves it alone."""

    def wrapper(body: Callable[..., Any]) -> Callable[..., Any]:
        async def dies(call: runner.Call) -> Any:
            if when == "client before":
                os.kill(os.getpid(), signal.SIGKILL)
            found = await body(call=call)
            if when == "client after":
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return dies

    return tool.around(wrapper)


async def scene(runs: str, where: Any, effect: str, die: str = "") -> str:
    """Carry the run on, or start it; its answer, or its questions."""
    place = mcp.StdioServerParameters(**where) if isinstance(where, dict) else where
    async with runner.mcp.Server(place, trust={"pay": terms(lambda: server, effect)}) as server:
        tools = [dying(tool, die) if tool.name == "pay" else tool for tool in await server.tools()]
        model = runner.testing.ScriptedModel([runner.testing.tool_calls(("pay", {"cents": 5})), "paid"])
        agent = runner.Agent(name="agent", model=model, tools=tools)
        try:
            result = await runner.resume("r", agent, runs=runs, clock=Fast())
        except (eventlog.NoSuchRun, eventlog.NotARunsDirectory):
            result = await runner.start(agent, "pay", runs=runs, run="r", clock=Fast())
    return result.answer if isinstance(result, runner.Finished) else str(result)
