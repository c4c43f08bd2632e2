"""Small agents for one sweep each: right ones, and wrong ones with a mistake that people make.

All send letters by a post office. What differs is how the tool is written, what it declares, and what the office does.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import runner
from runner import Found, Missing, Unsure
from runner.testing import ScriptedModel, tool_calls

_serial = itertools.count()
"""Numbers that differ in every process, as a random id does."""


@dataclass
class Post:
    """A post office. `remembers` whether it knows the keys of letters, `letters` the keys and texts of all it sent."""

    folder: Path
    remembers: bool = True
    letters: list[tuple[str, str]] = field(default_factory=list)
    processes: int = 0

    def send(self, key: str, text: str) -> str:
        """Send a letter, once for each key if the office remembers keys."""
        if not self.remembers or key not in dict(self.letters):
            self.letters.append((key, text))
        return f"sent {text}"

    def counts(self) -> dict[str, int]:
        """How often each text was sent."""
        return dict(Counter(text for _, text in self.letters))


@dataclass(frozen=True)
class Case:
    """One agent: how `send` is declared, what its body does around sending, and what its lookup says."""

    effect: Any = "non_idempotent"
    remembers: bool = False
    sync: bool = False
    turns: tuple[tuple[str, ...], ...] = (("a",),)
    body: Callable[[Post, str, runner.Call], Any] | None = None
    before: float = 0.0
    after: float = 0.0
    key: Callable[[runner.Call], str] = lambda call: call.key
    lookup: str = ""
    visible_within: float | None = None
    approval: Any = False
    once_per: tuple[str, ...] = ()
    timeout: float = 30.0
    later: dict[str, Any] = field(default_factory=dict)
    mode: Any = "memory"
    cause: str = ""

    def environment(self, folder: Path) -> Post:
        """The office of one scenario."""
        return Post(folder, self.remembers)

    def agent(self, post: Post) -> runner.Agent:
        """The agent of one process; `later` is what is declared otherwise in every process but the first."""
        post.processes += 1
        case = replace(self, **self.later) if post.processes > 1 else self
        script = [tool_calls(*(("send", {"text": text}) for text in texts)) for texts in case.turns]
        return runner.Agent(name="post", model=ScriptedModel([*script, "done"]), tools=case.tools(post))

    def tools(self, post: Post) -> list[runner.Tool]:
        """The one tool, with its lookup."""

        async def waits(text: str, call: runner.Call) -> str:
            """Send a letter."""
            await asyncio.sleep(self.before)
            found = self.body(post, text, call) if self.body is not None else post.send(self.key(call), text)
            found = await found if asyncio.iscoroutine(found) else found
            await asyncio.sleep(self.after)
            return str(found)

        def at_once(text: str, call: runner.Call) -> str:
            """Send a letter."""
            return str(self.body(post, text, call) if self.body is not None else post.send(self.key(call), text))

        declared: dict[str, Any] = (
            {"effect": "keyed", "key_ttl": timedelta(hours=1)} if self.effect == "keyed" else {"effect": self.effect}
        )
        made = runner.tool(
            name="send",
            **declared,
            approval=self.approval,
            once_per=self.once_per,
            timeout=self.timeout,
        )(at_once if self.sync else waits)
        if self.lookup:
            made.lookup(visible_within=self.visible_within)(lambda call: self._look(post, call))
        return [] if self.lookup == "gone" else [made]

    def _look(self, post: Post, call: runner.Call) -> Found | Missing | Unsure:
        text = call.arguments["text"]
        if self.lookup == "unsure":
            return Unsure()
        happened = {
            "key": any(key == call.key for key, _ in post.letters),
            "text": any(sent == text for _, sent in post.letters),
            "any": bool(post.letters),
            "missing": False,
            "found": True,
        }[self.lookup]
        return Found(f"sent {text}") if happened else Missing()


def refused_after(post: Post, text: str, call: runner.Call) -> str:
    """Send, and then say that nothing happened."""
    post.send(call.key, text)
    raise runner.ToolFailed("the answer could not be read")


async def swallows(post: Post, text: str, call: runner.Call) -> str:
    """Take the end of the time for the end of the work."""
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        return "sent"
    return post.send(call.key, text)


async def lets_go(post: Post, text: str, call: runner.Call) -> str:
    """Clean up after a cancellation, and let it pass."""
    try:
        await asyncio.sleep(1)
    finally:
        call.sent.clear()
    return post.send(call.key, text)


def twice(post: Post, text: str, call: runner.Call) -> str:
    """Send two letters, the second without a key of its own."""
    post.send(call.key, text)
    return post.send(f"copy {next(_serial)}", f"copy of {text}")


def with_subkey(post: Post, text: str, call: runner.Call) -> str:
    """Send two letters, each with a key."""
    post.send(call.key, text)
    return post.send(call.subkey(1), f"copy of {text}")


def per_attempt(call: runner.Call) -> str:
    """A key that changes with every attempt."""
    return f"{call.key} {call.n}"


def per_process(_: runner.Call) -> str:
    """A key that is drawn anew."""
    return f"{next(_serial)}"


TWO = (("a",), ("b",))
SIDE = (("a", "b"),)
SAME = (("a",), ("a",))
KEYED = Case(effect="keyed", remembers=True)
LOOKED = Case(lookup="key")
PUT = Case(effect="idempotent", remembers=True)

RIGHT: dict[str, Case] = {
    "keyed": KEYED,
    "keyed, sync": replace(KEYED, sync=True),
    "keyed, waits before": replace(KEYED, before=1),
    "keyed, waits after": replace(KEYED, after=5),
    "keyed, two turns": replace(KEYED, turns=TWO),
    "keyed, two calls": replace(KEYED, turns=SIDE),
    "keyed, with a lookup": replace(KEYED, lookup="key"),
    "keyed, approved": replace(KEYED, approval=True),
    "keyed, same text twice": replace(KEYED, turns=SAME),
    "keyed, once per text": replace(KEYED, turns=TWO, once_per=("text",)),
    "keyed, two requests": replace(KEYED, body=with_subkey),
    "looked up": LOOKED,
    "looked up, sync": replace(LOOKED, sync=True),
    "looked up, waits before": replace(LOOKED, before=1),
    "looked up, at once": replace(LOOKED, visible_within=0),
    "looked up, soon": replace(LOOKED, visible_within=5),
    "looked up, lets a cancellation pass": replace(LOOKED, body=lets_go),
    "asks a person": Case(),
    "looked up, unsure": Case(lookup="unsure"),
    "idempotent": PUT,
}

FORGETS = "1.0 send ran again: the service took its key twice"
REPEATS = "1.0 send ran again: it is declared idempotent, and it is not"
MISSED = "1.0 send ran again: its lookup said that it was missing"
UNTRUE = "is recorded as found, and it never happened"
DIFFERS = "send differs in a later process: its "
FORGETFUL = Case(effect="keyed", cause=FORGETS)
BLIND = Case(lookup="missing", cause=MISSED)
POSITIVE = Case(lookup="found", cause=UNTRUE)
UNEVEN = Case(effect="idempotent", cause=REPEATS)
STUBBORN = Case(body=swallows, mode="cancel", cause="1.0 is recorded as ran, and it never happened")

WRONG: dict[str, Case] = {
    "keys forgotten": FORGETFUL,
    "keys forgotten, sync": replace(FORGETFUL, sync=True),
    "keys forgotten, two turns": replace(FORGETFUL, turns=TWO),
    "keys forgotten, two calls": replace(FORGETFUL, turns=SIDE),
    "keys forgotten, waits before": replace(FORGETFUL, before=1),
    "keys forgotten, waits after": replace(FORGETFUL, after=1),
    "keys forgotten, approved": replace(FORGETFUL, approval=True),
    "keys forgotten, a reply is lost": replace(FORGETFUL, mode="service"),
    "keys forgotten, late": replace(FORGETFUL, mode="late"),
    "keys forgotten, power cut": replace(FORGETFUL, mode="power"),
    "a key for each attempt": replace(FORGETFUL, remembers=True, key=per_attempt),
    "a key for each attempt, sync": replace(FORGETFUL, remembers=True, key=per_attempt, sync=True),
    "a key for each process": replace(FORGETFUL, remembers=True, key=per_process),
    "a second request without a key": replace(FORGETFUL, remembers=True, body=twice, cause=r"copy of a \+1"),
    "no idempotent effect": UNEVEN,
    "no idempotent effect, sync": replace(UNEVEN, sync=True),
    "no idempotent effect, two turns": replace(UNEVEN, turns=TWO),
    "no idempotent effect, two calls": replace(UNEVEN, turns=SIDE),
    "no idempotent effect, a reply is lost": replace(UNEVEN, mode="service"),
    "no idempotent effect, cancelled": replace(UNEVEN, mode="cancel", before=1, after=1),
    "a lookup that always says missing": BLIND,
    "a lookup that always says missing, sync": replace(BLIND, sync=True),
    "a lookup that always says missing, two turns": replace(BLIND, turns=TWO),
    "a lookup that always says missing, a reply is lost": replace(BLIND, mode="service"),
    "a lookup that always says missing, late": replace(BLIND, mode="late"),
    "a lookup that always says found": POSITIVE,
    "a lookup that always says found, sync": replace(POSITIVE, sync=True),
    "a lookup that always says found, a crash of the service": replace(POSITIVE, mode="service"),
    "a lookup by text": replace(POSITIVE, lookup="text", turns=SAME),
    "a lookup of anything": replace(POSITIVE, lookup="any", turns=TWO),
    "failed after it acted": Case(body=refused_after, cause="1.0 is recorded as failed, and it happened"),
    "a cancellation swallowed": STUBBORN,
    "a cancellation swallowed, looked up": replace(STUBBORN, lookup="key"),
    "a lookup gone in the next process": replace(LOOKED, later={"lookup": ""}, cause=f"{DIFFERS}lookup"),
    "an approval gone in the next process": replace(
        KEYED, approval=True, later={"approval": False}, cause=f"{DIFFERS}approval was always"
    ),
    "an approval that a function drops": replace(
        KEYED,
        approval=lambda _: True,
        later={"approval": lambda _: False},
        cause="1.0 ran without the approval that it had",
    ),
    "an effect that changes": replace(PUT, later={"effect": "non_idempotent"}, cause=f"{DIFFERS}effect"),
    "a timeout that changes": replace(KEYED, later={"timeout": 7.0}, cause=f"{DIFFERS}timeout was 30.0, then 7.0"),
    "a lookup believed earlier": replace(
        LOOKED, visible_within=60, later={"visible_within": 1}, cause=f"{DIFFERS}visible_within"
    ),
    "a call once per text no more": replace(KEYED, once_per=("text",), later={"once_per": ()}, cause=f"{DIFFERS}once"),
}
