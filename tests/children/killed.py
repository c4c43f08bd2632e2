"""One process of a parent and its children, which ends itself by SIGKILL at a chosen moment: `python -m ... FOLDER N`.

Moments are before and after every request to a model and every effect, in whichever run. Effects are lines of a file.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import runner
from runner import Found, Missing
from runner.testing import ScriptedModel, tool_calls


class Moments:
    """Counts moments, and dies at one of them; never where that is negative."""

    def __init__(self, dies: int) -> None:
        self.dies, self.passed = dies, 0

    def at(self) -> None:
        """One more."""
        if self.passed == self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed += 1


class Asked(ScriptedModel):
    """A model with a moment before and after each reply."""

    moments: Moments

    async def ask(self, request: runner.Request) -> runner.Reply:
        """The reply of the script."""
        self.moments.at()
        reply = await super().ask(request)
        self.moments.at()
        return reply


def agent(folder: Path, moments: Moments) -> runner.Agent:
    """A lead, and a clerk that pays two orders at once, one of which a person approves."""
    book = folder / "paid"

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=1), approval=lambda given: given["order"] == "a")
    async def pay(order: str, call: runner.Call) -> str:
        moments.at()
        known = book.read_text(encoding="utf-8") if book.exists() else ""
        if call.key not in known:
            with book.open("a", encoding="utf-8") as file:
                file.write(f"{call.key} {order}\n")
        moments.at()
        return f"paid {order}"

    @pay.lookup(visible_within=0)
    def find(call: runner.Call) -> Found | Missing:
        return Found("paid") if book.exists() and call.key in book.read_text(encoding="utf-8") else Missing()

    def model(*script: Any) -> Asked:
        made = Asked(script)
        made.moments = moments
        return made

    clerk = runner.Agent(
        name="clerk",
        model=model(lambda request: tool_calls(("pay", {"order": request.messages[0].text})), "Paid."),
        tools=[pay],
    )
    both = tool_calls(("clerk", {"task": "a"}), ("clerk", {"task": "b"}))
    return runner.Agent(name="lead", model=model(both, "All is paid."), tools=[runner.as_tool(clerk)])


def main(folder: Path, dies: int) -> None:
    """Start the run, or carry it on; say how many moments there were."""
    moments = Moments(dies)
    yes = runner.Answer("approve", "ann")
    given: dict[str, Any] = {"runs": folder / "runs", "on_question": lambda _: yes}
    asyncio.run(runner.run(agent(folder, moments), "Have both paid.", run="p", **given))
    sys.stdout.write(str(moments.passed))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
