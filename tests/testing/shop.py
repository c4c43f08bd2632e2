"""A small shop with every kind of effect, and an agent that works there: what the sweep is tried on.

Its services are honest: the till remembers keys, the post office can be asked, and each writes down what it did.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import replay.messages
import runner
import runner.testing

TASK = "Sell one teapot."


class Shop:
    """What is outside: the till, the post office, the printer. Everything that ever happened is in `did`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.did: list[str] = []
        self._keys: dict[str, str] = {}

    @cached_property
    def tools(self) -> list[runner.Tool]:
        """What the clerk can do here: the same in every life, because making tools takes time."""
        return tools(self)

    def pay(self, key: str, cents: int) -> str:
        """Take money, once for each key."""
        if key not in self._keys:
            self.did.append(f"pay {key}")
            self._keys[key] = f"paid {cents}"
        return self._keys[key]

    def has(self, what: str, key: str) -> bool:
        """Whether this was done under a key."""
        return f"{what} {key}" in self.did


def effects(shop: Shop) -> dict[str, int]:
    """How often each thing happened."""
    return {what: sum(line.startswith(f"{what} ") for line in shop.did) for what in ("pay", "mail", "print", "ship")}


def again_if_failed(name: str, arguments: dict[str, Any]) -> Any:
    """A model's turn: what it was told has failed it tries again, as models do."""

    def reply(request: runner.Request) -> runner.Reply:
        last = request.messages[-1]
        failed = isinstance(last, replay.messages.ToolResults) and any(
            "failed" in result.text for result in last.results
        )
        return (
            runner.testing.tool_calls((name, arguments))
            if failed
            else runner.testing.tool_calls(("look", {"shelf": 3}))
        )

    return reply


PAYS = runner.testing.tool_calls(("pay", {"cents": 900}))
MAILS = runner.testing.tool_calls(("mail", {"to": "Ada"}))
PRINTS = runner.testing.tool_calls(("print_label", {"what": "teapot"}))
SHIPS = runner.testing.tool_calls(("ship", {"to": "Ada"}))
DAY = (
    runner.testing.tool_calls(("look", {"shelf": 1}), ("look", {"shelf": 2}), ("note", {"text": "a teapot"})),
    runner.testing.tool_calls(("pay", {"cents": 900}), ("mail", {"to": "Ada"})),
    again_if_failed("pay", {"cents": 900}),
    PRINTS,
    "sold",
)


def clerk(*script: Any) -> Callable[[Shop], runner.Agent]:
    """Make an agent of the shop whose model says this."""
    return lambda shop: runner.Agent(model=runner.testing.ScriptedModel(script), tools=shop.tools, name="clerk")


def swept(*script: Any) -> dict[str, Any]:
    """What a sweep is given of a clerk whose model says this."""
    return {"environment": Shop, "agent": clerk(*script), "task": TASK, "effects": effects}


def agent(shop: Shop) -> runner.Agent:
    """The clerk on an ordinary day."""
    return clerk(*DAY)(shop)


def tools(shop: Shop) -> list[runner.Tool]:
    """What the clerk can do."""

    @runner.tool(effect="reads")
    def look(shelf: int) -> str:
        """What stands on a shelf."""
        return f"a teapot on shelf {shelf}"

    @runner.tool(effect="idempotent")
    def note(text: str, call: runner.Call) -> str:
        """Write the day's note."""
        call.workspace.write_text("notes/today.txt", text)
        return "noted"

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=24), approval=True, timeout=30)
    async def pay(cents: int, call: runner.Call) -> str:
        """Take money."""
        await asyncio.sleep(0)
        paid = shop.pay(call.key, cents)
        await asyncio.sleep(0)
        return paid

    @pay.lookup(visible_within=10)
    def paid(call: runner.Call) -> runner.Found | runner.Missing:
        return runner.Found("paid") if shop.has("pay", call.key) else runner.Missing()

    @runner.tool(effect="non_idempotent", timeout=30)
    async def mail(to: str, call: runner.Call) -> str:
        """Send a parcel."""
        shop.did.append(f"mail {call.key}")
        await asyncio.sleep(0)
        return f"sent to {to}"

    @mail.lookup(visible_within=60)
    async def mailed(call: runner.Call) -> runner.Found | runner.Missing:
        await asyncio.sleep(0)
        return runner.Found("sent") if shop.has("mail", call.key) else runner.Missing()

    @runner.tool(effect="non_idempotent", timeout=20, once_per=("what",))
    def print_label(what: str, call: runner.Call) -> str:
        """Print a label."""
        shop.did.append(f"print {call.key}")
        return f"printed {what}"

    @print_label.lookup(visible_within=0)
    def printed(call: runner.Call) -> runner.Found | runner.Missing:
        return runner.Found("printed") if shop.has("print", call.key) else runner.Missing()

    return [look, note, pay, mail, print_label]


class Harbour(Shop):
    """A shop that ships: what it does takes longer than a lease lasts, and is seen at once."""

    @cached_property
    def tools(self) -> list[runner.Tool]:
        """One tool."""

        @runner.tool(effect="non_idempotent", timeout=30)
        async def ship(to: str, call: runner.Call) -> str:
            """Hand a parcel over, after a while."""
            await asyncio.sleep(25)
            self.did.append(f"ship {call.key}")
            return f"shipped to {to}"

        @ship.lookup(visible_within=1)
        def shipped(call: runner.Call) -> runner.Found | runner.Missing:
            return runner.Found("shipped") if self.has("ship", call.key) else runner.Missing()

        return [ship]
