"""A shop whose every effect is counted, agents that use it, and a person who always tells the truth."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import eventlog
import replay
import runner
import runner.testing

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Still(runner.Clock):
    """A clock that moves only when somebody sleeps, and then at once."""

    def __init__(self) -> None:
        self.at = NOON

    def wall(self) -> datetime:
        """The time it stands at."""
        return self.at

    def monotonic(self) -> float:
        """The same in seconds."""
        return (self.at - NOON).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Move on."""
        self.at += timedelta(seconds=seconds)


class Shop:
    """The outside systems. `done` counts effects by what they are; `keys` has what a service heard by key."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.keys: dict[str, str] = {}
        self.subkeys: list[str] = []
        self.silent: set[str] = set()
        """Effects whose reply is lost: they happen, and nobody is told."""

    def act(self, what: str, key: str = "") -> str:
        """An effect, once a key if there is one."""
        if key in self.keys:
            return self.keys[key]
        self.done[what] += 1
        if key:
            self.keys[key] = f"did {what}"
        if what in self.silent:
            self.silent.discard(what)
            message = "the connection broke"
            raise runner.OutcomeUnknown(message)
        return f"did {what}"

    def tools(self) -> tuple[runner.Tool, ...]:
        """One tool of each effect; `bell` has no lookup, `send` has one, `pay` is once per invoice."""

        @runner.tool(effect="reads")
        def look(what: str) -> str:
            """Look."""
            return f"saw {what}"

        @runner.tool(effect="keyed", key_ttl=timedelta(hours=24), once_per=("invoice",))
        def pay(invoice: str, ref: str, call: runner.Call) -> str:
            """Pay."""
            assert ref
            self.subkeys.append(call.subkey(1))
            return self.act(f"pay {invoice}", call.key)

        @runner.tool(effect="idempotent")
        def put(what: str) -> str:
            """Put."""
            return self.act(f"put {what}")

        @runner.tool(effect="non_idempotent", attempts=1)
        def send(to: str, call: runner.Call) -> str:
            """Send."""
            return self.act(f"send {to}", call.key)

        @send.lookup(visible_within=0)
        def sent(call: runner.Call) -> runner.Found | runner.Missing:
            return runner.Found(self.keys[call.key]) if call.key in self.keys else runner.Missing()

        @runner.tool(effect="non_idempotent")
        def bell(times: int = 1) -> str:
            """Ring."""
            return self.act(f"bell {times}")

        @runner.tool(effect="non_idempotent", approval=True)
        def sign(what: str) -> str:
            """Sign."""
            return self.act(f"sign {what}")

        return look, pay, put, send, bell, sign

    def agent(self, *script: Any, **options: Any) -> runner.Agent:
        """An agent that plays a script."""
        return runner.Agent(model=runner.testing.ScriptedModel(script), tools=self.tools(), name="shopper", **options)

    def truth(self, question: runner.Question) -> runner.Answer:
        """What a person who can see everything answers."""
        if question.kind == "approve":
            return runner.Answer("approve", "ann")
        first = next(iter(json.loads(question.arguments).values()), 1)
        happened = self.done[f"{question.tool} {first}"] > 0
        return runner.Answer("done" if happened else "rerun", "ann")


def start(shop: Shop, *script: Any, runs: Path, run: str = "p", **options: Any) -> Any:
    """Start a run of the shop's agent."""
    return runner.start_sync(shop.agent(*script), "do it", runs=runs, run=run, clock=Still(), **options)


def lines(runs: Path, run: str) -> Sequence[eventlog.Line]:
    """The lines of a run."""
    return eventlog.store(runs).read(run).lines


def events(runs: Path, run: str) -> list[replay.AnyEvent]:
    """Every event of a run."""
    return [replay.decode(raw) for line in lines(runs, run) for raw in line.events]


def seq_of(runs: Path, run: str, kind: type[replay.Event], nth: int = 0) -> int:
    """The line that holds the nth event of this kind."""
    found = [line.seq for line in lines(runs, run) for raw in line.events if isinstance(replay.decode(raw), kind)]
    return found[nth]
