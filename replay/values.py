"""The values that events and states are made of, other than those of the conversation."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, get_args

import msgspec

Effect = Literal["reads", "idempotent", "keyed", "non_idempotent"]
Phase = Literal["new", "model", "tools", "paused", "done"]
Kind = Literal["approve", "settle"]
Verdict = Literal["approve", "refuse", "edit", "respond", "rerun", "done", "failed"]
FITS: dict[Kind, tuple[Verdict, ...]] = {
    "approve": ("approve", "refuse", "edit", "respond"),
    "settle": ("rerun", "done", "failed"),
}
"""Which answers fit a question of each kind."""

Text = Annotated[str, msgspec.Meta(extra={"export": "mask"})]
"""Words of a model, a tool, a service or a person. An export masks the secrets in them."""
Local = msgspec.Meta(extra={"export": "drop"})
"""Marks what only the machine or the vendor of the run knows. No decision looks at it; an export leaves it out."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may use over all its resumes. None means no limit.

    Attributes:
        turns: Replies of the model that are no summaries.
        tokens: Input and output tokens together.
        dollars: US dollars.
        until: The deadline (UTC): nothing begins after it.
        resumes: Resumes that count; one directly after a person's answer does not.

    """

    turns: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    resumes: int = 10
    until: datetime | None = None


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """How a tool was declared, as values: so that drift says what changed.

    Attributes:
        digest: Of its description and its schema.
        effect: What a repeat does.
        key_ttl: Seconds for which its service keeps a key.
        once_per: The arguments that make an intent.
        approval: Whether a person is asked first.
        lookup: Whether its service can be asked if a call happened.
        visible_within: Seconds after which the lookup may be believed.
        timeout: Seconds an attempt may take.
        attempts: How many attempts may end in their own life.
        max_wait: Seconds that it may be asked to wait before another attempt.
        max_calls: How many calls of it may run in one run.
        parallel: Whether it runs side by side with other such calls of a reply.

    """

    digest: str
    effect: Effect
    key_ttl: float | None = None
    once_per: tuple[str, ...] = ()
    approval: Literal["never", "always", "predicate"] = "never"
    lookup: bool = False
    visible_within: float = 0.0
    timeout: float = 0.0
    attempts: int = 1
    max_wait: float = 3600.0
    max_calls: int | None = None
    parallel: bool = False

    def changes(self, was: ToolDefinition) -> str:
        """What it declares otherwise than before, in words."""
        pairs = ((name, getattr(was, name), getattr(self, name)) for name in self.__struct_fields__)
        return ", ".join(_change_of(*pair) for pair in pairs if pair[1] != pair[2])


def _change_of(name: str, was: object, now: object) -> str:
    if name == "digest":
        return "description or arguments"
    if name == "once_per":
        parts = (", ".join(value) if isinstance(value, tuple) and value else "nothing" for value in (was, now))
        return f"once_per {' -> '.join(parts)}, so what happened before is not recognised"
    return f"{name} {was} -> {now}"


DEFINED = ("instructions", "inputs", "output", "parameters", "context", "parallel")


class Definitions(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent was made of when a process began to work on the run. A change between two is drift.

    Texts stand as digests, the tools' declarations as values. `parallel`: how many calls may run side by side.
    """

    instructions: str
    tools: dict[str, ToolDefinition]
    parameters: str
    context: Text
    inputs: str = ""
    output: str = ""
    parallel: int = 8

    def changed(self, now: Definitions) -> list[tuple[str, str, str]]:
        """What differs in `now`: the name of the part, what it was, what it is.

        Of a tool, whose part is `tool NAME`, nothing and what changed, in words.
        """
        parts = [(part, str(getattr(self, part)), str(getattr(now, part))) for part in DEFINED]
        names = sorted(self.tools.keys() | now.tools.keys())
        parts += [(f"tool {name}", "", _change(self.tools.get(name), now.tools.get(name))) for name in names]
        return [part for part in parts if part[1] != part[2]]

    def drift(self, now: Definitions) -> list[str]:
        """What differs in `now`, each part in words; of a tool, every value that was declared otherwise."""
        return [f"{part} ({what})" if part.startswith("tool ") else part for part, _, what in self.changed(now)]


def _change(was: ToolDefinition | None, now: ToolDefinition | None) -> str:
    return "gone" if now is None else "new" if was is None else now.changes(was)


class Loosened(msgspec.Struct, frozen=True, kw_only=True):
    """What an earlier life of a run declared of a tool, where the current one protects less.

    Attributes:
        approval: Whether a person was asked.
        effect: The effect that allowed less, or None.

    """

    approval: bool = False
    effect: Effect | None = None

    def after(self, was: ToolDefinition | None, now: ToolDefinition | None) -> Loosened:
        """The same when a life that declared `was` is followed by one that declares `now`."""
        approval = self.approval or (was is not None and was.approval != "never")
        effect = max((self.effect, was.effect if was is not None else None), key=_strictness)
        if now is None:
            return Loosened(approval=approval, effect=effect)
        weaker = _strictness(now.effect) < _strictness(effect)
        return Loosened(approval=approval and now.approval == "never", effect=effect if weaker else None)


def _strictness(effect: Effect | None) -> int:
    return -1 if effect is None else get_args(Effect).index(effect)


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """Digests of the parts of one request. Requests themselves are not stored: a log would grow with their square."""

    instructions: str
    tools: str
    messages: str
    parameters: str


class FileHash(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a file: `sha256` in hex, or None if there is no such file."""

    path: Text
    sha256: str | None


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """An intent that has happened: the call that did it, and its result.

    `run` is whose call it is when that is another run: the one whose conversation this run continues.
    """

    call: str
    text: Text
    run: str = ""


class ParentEffect(msgspec.Struct, frozen=True, kw_only=True):
    """An effect of a fork's parent after the line of the fork. It has taken effect and must not be repeated.

    `run` and `call` say whose it is, `text` is its result. `happened` is False when nobody knows whether it did.
    `arguments` are those that ran, `written` those that its model wrote, without defaults.
    """

    tool: str
    intent: str | None
    arguments: Text
    call: str
    text: Text
    run: str = ""
    happened: bool = True
    written: Text = ""


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """The run does nothing before `until`. `rested`: nobody holds it meanwhile."""

    until: datetime
    why: str
    call: str | None
    rested: bool = False


class StopReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why the run goes no further; `final`: it can't be resumed either."""

    reason: str
    final: bool
    detail: str


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A person's standing yes to calls of a tool with these values of arguments, which are JSON.

    It holds as long as the tool is `declared` as it was: `State.declared` then.
    """

    tool: str
    arguments: dict[str, Text]
    who: Text
    declared: str = ""


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """A message that no request to the model has taken yet."""

    id: str
    who: Text
    text: Text


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A summary by the context policy, sent in place of the messages before `upto`.

    `asked_at`: how many messages there were when it was asked for.
    """

    text: str
    upto: int
    asked_at: int = 0


class Taken(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request that was accepted or refused: who made it, its random mark, and why it was refused."""

    who: str
    post: str
    why: str = ""


class Spent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a run has used in all its lives, its children's part included.

    `lost_*` are the bounds of requests whose reply never came. Dollars are US dollars. `unpriced` counts the requests
    of which no price is known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    lost_input_tokens: int = 0
    lost_output_tokens: int = 0
    lost_dollars: float = 0.0
    lost_asks: int = 0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Input and output tokens, lost bounds included. The token limit is compared with this."""
        return self.input_tokens + self.output_tokens + self.lost_input_tokens + self.lost_output_tokens

    @property
    def total_dollars(self) -> float:
        """US dollars for replies, and for the bounds of lost requests. The dollar limit is compared with this."""
        return self.dollars + self.lost_dollars

    def grown(self, was: Spent, now: Spent) -> Spent:
        """What is spent with what another run spent between two of its totals."""
        fields = self.__struct_fields__
        return Spent(**{name: getattr(self, name) + (getattr(now, name) - getattr(was, name)) for name in fields})


class ParentCall(msgspec.Struct, frozen=True, kw_only=True):
    """The call that a child run does: of the run `run`, whose identity is `uid`."""

    run: str
    uid: str
    call: str
