"""Agents for `--agent tests.cli.agents:NAME`: each brings a run to one place that the command must cope with.

Where two processes have to meet they do so in the directory that $MEETING names.
"""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import runner

LOUD = "\x1b[31mred\x1b[0m \x9b2J \u202eturned\u202c \u4f60\u597d \U0001f600"
"""What a terminal would obey, and characters two cells wide."""


@runner.tool(effect="reads")
def look(x: int) -> dict[str, int]:
    """Look at a number."""
    return {"x": x}


@runner.tool(effect="keyed", remembers=timedelta(hours=24), approval=True, once_per=("to",))
def pay(amount: int, to: str) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


@runner.tool(effect="once")
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
def shout() -> str:
    """Return what a terminal would obey."""
    return LOUD


class Silent:
    """A model that can't be asked."""

    name = "silent"

    def bound(self, _request: runner.Request) -> runner.Bound:
        """Nothing is asked, nothing is spent."""
        return runner.Bound()

    async def ask(self, _request: runner.Request) -> runner.Reply:
        """Say so."""
        message = "no such model"
        raise runner.ModelError(message, transient=False)


def _agent(name: str, *replies: runner.Reply | str, limits: runner.Limits | None = None) -> runner.Agent:
    tools = [look, pay, launch, stumble, note, meet, shout]
    model = runner.ScriptedModel([*replies])
    return runner.Agent(model=model, tools=tools, name=name, limits=limits or runner.Limits())


plain = _agent("plain", runner.calls(("look", {"x": 1})), "It is one.")
paying = _agent("paying", runner.calls(("pay", {"amount": 7, "to": "ann"})), "Ann has it.")
paying_twice = _agent(
    "twice", runner.calls(("pay", {"amount": 7, "to": "ann"}), ("pay", {"amount": 8, "to": "bob"})), "Both have it."
)
unsure = _agent("unsure", runner.calls(("launch", {})), "It flies.")
stumbling = _agent("stumbling", runner.calls(("stumble", {})), "Up again.")
noting = _agent("noting", runner.calls(("note", {"text": "one"})), runner.calls(("stumble", {})), "Noted.")
meeting = _agent("meeting", runner.calls(("meet", {})), "We met.")
meeting_then_paying = _agent(
    "meetpay", runner.calls(("meet", {})), runner.calls(("pay", {"amount": 7, "to": "ann"})), "Ann has it not."
)
short = _agent("short", runner.calls(("look", {"x": 1})), "Too late.", limits=runner.Limits(turns=1))
loud = _agent("loud", runner.calls(("shout", {})), LOUD)
loud_asking = _agent("loudask", runner.calls(("pay", '{"amount": 1, "to": "\x9b2J\u202eturned\u202c"}')), "Done.")
silent = runner.Agent(model=Silent(), name="silent")
NOT_AN_AGENT = "a string"
