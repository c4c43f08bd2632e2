"""Eight payments at once, to banks that know keys, that can be asked, and that know nothing; each invoice counted."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import runner
import runner.testing
from replay.events import AttemptMarked
from tests.support import stage

TASK = "Pay all invoices."
KINDS = ("keyed", "asked", "plain")
MIXED = ("keyed", "plain", "asked", "plain", "asked", "keyed", "plain", "keyed")


class Banks:
    """What is outside: a payment is one line of a book, `kind invoice call key`. In memory."""

    def __init__(self, _: Path) -> None:
        self._book: list[str] = []

    def book(self) -> list[list[str]]:
        """Every payment that was ever made."""
        return [line.split() for line in self._book]

    def note(self, line: str) -> None:
        """Make a payment."""
        self._book.append(line)

    def has(self, key: str) -> bool:
        """Whether a payment was made under this key."""
        return any(line[3] == key for line in self.book())

    @cached_property
    def tools(self) -> list[runner.Tool]:
        """The same in every life, because making tools takes time."""
        return [self._tool(kind) for kind in KINDS]

    def _tool(self, kind: str) -> runner.Tool:
        keyed = kind == "keyed"
        tool = runner.Tool(
            self.paying(kind),
            name=f"pay_{kind}",
            effect="keyed" if keyed else "non_idempotent",
            key_ttl=timedelta(days=1) if keyed else None,
            timeout=30,
            parallel=True,
        )
        if kind == "asked":
            tool.lookup(visible_within=5)(self._find)
        return tool

    def paying(self, kind: str) -> Callable[..., object]:
        """The body of a tool that pays."""

        async def pay(invoice: int, call: runner.Call) -> str:
            """Pay an invoice, sooner or later."""
            await asyncio.sleep(invoice / 100)
            self.pay(kind, invoice, call)
            await asyncio.sleep((8 - invoice) / 100)
            return f"paid {invoice}"

        return pay

    def pay(self, kind: str, invoice: int, call: runner.Call) -> None:
        """Pay, but for a key that is known."""
        if kind != "keyed" or not self.has(call.key):
            self.note(f"{kind} {invoice} {call.id} {call.key}")

    def _find(self, call: runner.Call) -> runner.Found | runner.Missing:
        return runner.Found("paid") if self.has(call.key) else runner.Missing()


class Ledger(Banks):
    """The same with a book on the disk, and bodies that run in threads."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "book"

    def book(self) -> list[list[str]]:
        """Every payment that was ever made."""
        return [line.split() for line in self._file.read_text().splitlines()] if self._file.exists() else []

    def note(self, line: str) -> None:
        """Make a payment."""
        stage.note(self._file, line)

    def paying(self, kind: str) -> Callable[..., object]:
        """The body of a tool that pays."""

        def pay(invoice: int, call: runner.Call) -> str:
            """Pay an invoice."""
            self.pay(kind, invoice, call)
            return f"paid {invoice}"

        return pay


def effects(banks: Banks) -> dict[str, int]:
    """How often each invoice was paid."""
    paid = [f"{kind} {invoice}" for kind, invoice, *_ in banks.book()]
    return {each: paid.count(each) for each in paid}


def payer(kinds: Sequence[str], **options: Any) -> Callable[[Banks], runner.Agent]:
    """An agent whose model pays one invoice to each of these, all at once."""
    calls = runner.testing.tool_calls(*((f"pay_{kind}", {"invoice": n}) for n, kind in enumerate(kinds)))
    model = runner.testing.ScriptedModel([calls, "paid"])
    return lambda banks: runner.Agent(model=model, tools=banks.tools, name="payer", **options)


class _Dying(Ledger):
    """A ledger whose process kills itself at a moment: before or after a payment, or after a save."""

    def __init__(self, folder: Path, at: int) -> None:
        super().__init__(folder)
        self._at = at
        self._mutex = threading.Lock()

    def moment(self) -> None:
        """One moment passes."""
        with self._mutex:
            self._at -= 1
            if self._at == -1:
                os.kill(os.getpid(), signal.SIGKILL)

    def note(self, line: str) -> None:
        """Make a payment."""
        self.moment()
        super().note(line)
        self.moment()


def pay_and_die(runs: str, folder: str, at: int) -> str:
    """Start the run in a process that dies at this moment; how it ended if it did not."""
    ledger = _Dying(Path(folder), at)
    agent = payer(MIXED)(ledger)
    outcome = runner.start_sync(agent, TASK, runs=runs, run="r", watch=lambda *_: ledger.moment())
    return type(outcome).__name__


def settle(runs: str, folder: str) -> list[str]:
    """Resume the run in another process, with a person who looks into the book; the calls they were asked about."""
    ledger, asked = Ledger(Path(folder)), list[str]()

    def answer(question: runner.Question) -> runner.Answer:
        asked.append(question.call)
        made = any(line[2] == question.call for line in ledger.book())
        return runner.Answer("done" if made else "rerun", "ann", "paid" if made else "")

    agent = payer(MIXED)(ledger)
    if (Path(runs) / "r").exists():
        runner.resume_sync("r", agent, runs=runs, on_question=answer, clock=stage.Ticking(datetime.now(UTC)))
    return asked


def marked(runs: Path) -> set[str]:
    """The calls that were marked."""
    return {event.call for event in stage.events(runs, AttemptMarked)}
