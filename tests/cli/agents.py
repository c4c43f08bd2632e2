"""Agents for `--agent tests.cli.agents:NAME`: each brings a run to one place that the command must cope with.

Where two processes have to meet they do so in the directory that $MEETING names.
"""

import asyncio
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import runner
import runner.testing

LOUD = "\x1b[31mred\x1b[0m \x9b2J \u202eturned\u202c \u4f60\u597d \U0001f600\u200b\U000e0041"
"""What a terminal would obey, what nobody sees, and characters two cells wide."""


HERE: list[tuple[str, object]] = []


@runner.tool(effect="reads")
def look(x: int) -> dict[str, int]:
    """Look at a number."""
    return {"x": x}


@runner.tool(effect="reads")
def photo() -> bytes:
    """Take a photo: bytes, which a log keeps in another form."""
    return b"\x00\xff"


@runner.tool(effect="keyed", key_ttl=timedelta(hours=24), approval=True, once_per=("to",))
def pay(amount: int, to: str) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


@runner.tool(effect="non_idempotent")
def launch(call: runner.Call) -> str:
    """Die by SIGKILL: a repeat could do it twice."""
    if call.n == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "launched"


@runner.tool(effect="idempotent")
def stumble(call: runner.Call) -> str:
    """Die by SIGKILL once: a repeat does nothing new."""
    if call.n == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "stumbled"


@runner.tool(effect="idempotent", attempts=9)
def die() -> str:
    """Die by SIGKILL each time."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@runner.tool(effect="idempotent")
def note(text: str, call: runner.Call) -> str:
    """Write a file in the workspace."""
    call.workspace.write_text("note.txt", text)
    return "noted"


@runner.tool(effect="idempotent", timeout=60)
def meet() -> str:
    """Say that it began, and go on when told to."""
    meeting = Path(os.environ["MEETING"])
    (meeting / "began").touch()
    deadline = time.monotonic() + 30
    while not (meeting / "go").exists():
        if time.monotonic() > deadline:
            return "nobody came"
        time.sleep(0.01)
    return "met"


@runner.tool(effect="reads")
async def gather(call: runner.Call) -> str:
    """Wait until two runs are here, in one event loop."""
    HERE.append((call.run, asyncio.get_running_loop()))
    async with asyncio.timeout(20):
        while len({run for run, loop in HERE if loop is asyncio.get_running_loop()}) < 2:  # noqa: ASYNC110 (short)
            await asyncio.sleep(0.01)
    return "together"


@runner.tool(effect="reads")
def shout() -> str:
    """Return what a terminal would obey."""
    return LOUD


class Silent:
    """A model that can't be asked."""

    name = "silent"

    def __init__(self, *, transient: bool = False) -> None:
        self._transient = transient

    def bound(self, _request: runner.Request) -> runner.CostBound:
        """Nothing is asked, nothing is spent."""
        return runner.CostBound()

    async def ask(self, _request: runner.Request) -> runner.Reply:
        """Say so."""
        message = "no such model"
        raise runner.ModelError(message, transient=self._transient)


class Speaking(runner.testing.ScriptedModel):
    """A model that is heard, and goes on when told to."""

    async def ask(self, request: runner.Request) -> runner.Reply:
        """Say it as it would be printed, then what is scripted."""
        if request.heard is not None:
            request.heard("I think ")
            request.heard(LOUD)
            await asyncio.to_thread(meet.function)
        return await super().ask(request)


class Ending(runner.testing.ScriptedModel):
    """A model during whose reply somebody ends the process."""

    async def ask(self, request: runner.Request) -> runner.Reply:
        """Reply all the same."""
        os.kill(os.getpid(), signal.SIGTERM)
        return await super().ask(request)


def _agent(name: str, *replies: runner.Reply | str, limits: runner.Limits | None = None) -> runner.Agent:
    tools = [look, pay, launch, stumble, die, note, meet, gather, shout]
    model = runner.testing.ScriptedModel([*replies])
    return runner.Agent(model=model, tools=tools, name=name, limits=limits or runner.Limits())


plain = _agent("plain", runner.testing.tool_calls(("look", {"x": 1})), "It is one.")
paying = _agent("paying", runner.testing.tool_calls(("pay", {"amount": 7, "to": "ann"})), "Ann has it.")
paying_nobody = paying.replace(tools=[look])
paying_twice = _agent(
    "twice",
    runner.testing.tool_calls(("pay", {"amount": 7, "to": "ann"}), ("pay", {"amount": 8, "to": "bob"})),
    "Both have it.",
)
unsure = _agent("unsure", runner.testing.tool_calls(("launch", {})), "It flies.")
deadly = _agent("deadly", runner.testing.tool_calls(("die", {})))
stumbling = _agent("stumbling", runner.testing.tool_calls(("stumble", {})), "Up again.")
noting = _agent(
    "noting", runner.testing.tool_calls(("note", {"text": "one"})), runner.testing.tool_calls(("stumble", {})), "Noted."
)
meeting = _agent("meeting", runner.testing.tool_calls(("meet", {})), "We met.")
gathering = _agent("gathering", runner.testing.tool_calls(("gather", {})), "All are here.")
meeting_then_paying = _agent(
    "meetpay",
    runner.testing.tool_calls(("meet", {})),
    runner.testing.tool_calls(("pay", {"amount": 7, "to": "ann"})),
    "Ann has it not.",
)
short = _agent("short", runner.testing.tool_calls(("look", {"x": 1})), "Too late.", limits=runner.Limits(turns=1))
loud = _agent("loud", runner.testing.tool_calls(("shout", {})), LOUD)
loud_asking = _agent(
    "loudask", runner.testing.tool_calls(("pay", '{"amount": 1, "to": "\x9b2J\u202eturned\u202c"}')), "Done."
)
photographing = runner.Agent(
    name="photos",
    model=runner.testing.ScriptedModel([runner.testing.tool_calls(("photo", {})), "Seen."]),
    tools=[photo],
)
silent = runner.Agent(model=Silent(), name="silent")
speaking = runner.Agent(model=Speaking(["I said it."]), name="speaking")
ending = runner.Agent(model=Ending(["It is done."]), name="ending")
unreachable = runner.Agent(model=Silent(transient=True), name="unreachable")
NOT_AN_AGENT = "a string"


def _greets(inputs: dict[str, str]) -> str:
    return f"You work for {inputs['tenant']}."


given = runner.Agent(
    name="given",
    model=runner.testing.ScriptedModel([lambda request: runner.Reply(text=request.instructions)]),
    inputs=dict[str, str],
    instructions=_greets,
)
