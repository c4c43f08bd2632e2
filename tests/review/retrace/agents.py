"""Agents for `--agent tests.review.retrace.agents:NAME`: one that made a run, and what a deploy may have made of it."""

from datetime import timedelta
from typing import Literal

import runner
import runner.testing

HIDDEN = "sk-proj-abcdefghijklmnop0123"
"""What looks like a key: it must not get into a test that is made from a run."""


@runner.tool(effect="reads")
def look(x: int) -> dict[str, object]:
    """Look at a number."""
    return {"x": x, "api_key": HIDDEN, "password": "hunter22"}


@runner.tool(effect="keyed", key_ttl=timedelta(hours=24), approval=True, once_per=("token",))
def pay(cents: int, token: str) -> str:
    """Pay somebody."""
    return f"paid {cents} with token={token}"


@runner.tool(approval=True)
def tip(cents: int, token: str) -> str:
    """Tip somebody, as often as one likes."""
    return f"tipped {cents} with token={token}"


@runner.tool(effect="idempotent")
def open_door(password: Literal["abcd"]) -> str:
    """Open a door that knows one password."""
    return f"opened with {password}"


@runner.tool(effect="idempotent")
def note(text: str, call: runner.Call) -> str:
    """Write a file in the workspace."""
    call.workspace.write_text("note.txt", text)
    return "noted"


@runner.tool(effect="reads", timeout=5.5, name="look")
def look_longer(x: int) -> dict[str, object]:
    """Look at a number for a while."""
    return {"x": x}


@runner.tool(effect="idempotent")
def knock() -> str:
    """Knock on a door."""
    return "knocked"


TOOLS = (look, pay, tip, open_door, note)


def _agent(name: str, *replies: runner.Reply | str, limits: runner.Limits | None = None) -> runner.Agent:
    model = runner.testing.ScriptedModel([*replies])
    return runner.Agent(model=model, tools=TOOLS, name=name, limits=limits or runner.Limits(dollars=1))


looking = _agent("looking", runner.testing.tool_calls(("look", {"x": 1})), "It is one.")
looking_elsewhere = looking.replace(tools=[pay])
looking_in_other_words = looking.replace(instructions="Look well.")
looking_with_other_tools = looking.replace(tools=[look_longer, knock])
paying = _agent(
    "paying",
    runner.testing.tool_calls(("look", {"x": 1})),
    runner.testing.tool_calls(("pay", {"cents": 7, "token": HIDDEN})),
    runner.testing.tool_calls(("pay", {"cents": 7, "token": HIDDEN})),
    f"Paid, with {HIDDEN}.",
)
tipping = _agent(
    "tipping",
    runner.testing.tool_calls(("look", {"x": 1})),
    runner.testing.tool_calls(("tip", {"cents": 7, "token": HIDDEN})),
    "Tipped.",
)
noting = _agent("noting", runner.testing.tool_calls(("note", {"text": "one"})))
"""Its model has no second reply: the run stops there, unfinished."""


entering = _agent("entering", runner.testing.tool_calls(("open_door", {"password": "abcd"})), "In.")


class Holder:
    """Agents may be anywhere in a module."""

    inner = looking
