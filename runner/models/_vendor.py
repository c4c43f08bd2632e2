"""What every vendor's model does alike: bound an ask, send it, read the reply, price it.

The bound of input is the request's bytes, since no token is shorter than a byte, and a little for what a vendor puts
in front of tools. What a request only points to (a file, a stored conversation, a page that a vendor's own tool
fetches) is not in it. The bound of output is the limit that is sent.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from replay import Bound, Reply, ToolCall, Usage
from runner._model import Request
from runner.errors import BadAgent
from runner.models import _errors, _json, _prices
from runner.models._prices import Price
from runner.models._wire import Wire

HIDDEN = 1024
"""Tokens that a vendor may add to a request: the instructions by which its model knows how to use tools."""
MAX_TOKENS = 16_384

OnText = Callable[[str], None]


class Assembly(Protocol):
    """Makes one reply out of a stream's events."""

    def take(self, data: str) -> bool:
        """Take an event's data; True when the provider said that the reply is complete."""
        ...

    def whole(self) -> tuple[str, Mapping[int, str]]:
        """The reply as the provider would have sent it in one piece, and raw arguments it has no place for.

        Raises `ModelError` when it is not complete.
        """
        ...


@dataclass(frozen=True)
class Parsed:
    """A vendor's reply, read. `usage` is None when the provider told none; `more` and `terms` are for its price."""

    text: str
    calls: tuple[ToolCall, ...]
    stop: Any
    model: str
    usage: Usage | None
    more: Mapping[str, int] = field(default_factory=dict)
    terms: Mapping[str, str] = field(default_factory=dict)


class Vendor(ABC):
    """A model that is reached over a wire. `name` is what the vendor calls it."""

    limits: tuple[str, ...]
    """The fields of a request that limit its output."""

    def __init__(
        self, model: str, wire: Wire, *, max_tokens: int, on_text: OnText | None, prices: Price | None, seller: str
    ) -> None:
        self.name = model
        self._wire = wire
        self._max_tokens = max_tokens
        self._on_text = on_text
        self._prices = prices
        self._seller = seller

    @abstractmethod
    def _fields(self, request: Request) -> dict[str, Any]:
        """The request's body. Pure."""

    @abstractmethod
    def _assembly(self) -> Assembly:
        """What takes a stream's events."""

    @abstractmethod
    def _read(self, raw: str, arguments: Mapping[int, str]) -> Parsed:
        """Read a complete reply. Raises `ModelError` when it says that it is not complete, or failed."""

    def bound(self, request: Request) -> Bound:
        """The most that `request` can cost; `dollars` is None when no price is known.

        Raises `BadAgent` when the agent's parameters can't be sent.
        """
        fields = self._fields(request)
        limits = [fields[name] for name in self.limits if name in fields]
        if not limits or any(type(limit) is not int or limit < 0 for limit in limits):
            message = f"{self.limits[0]} is no number of tokens: {limits}"
            raise BadAgent(message)
        tokens = len(_json.write(fields)) + HIDDEN
        terms = {
            "service_tier": fields.get("service_tier") or "auto",
            "speed": fields.get("speed") or "standard",
        }
        if terms["service_tier"] == "auto":
            terms["service_tier"] = "priority"  # what an account may have chosen for all that names no tier
        sale = _prices.Sale(self._seller, (self.name,), request.at, terms)
        return Bound(
            input_tokens=tokens,
            output_tokens=max(limits),
            dollars=_prices.most(self._prices, sale, tokens, max(limits)),
        )

    async def ask(self, request: Request) -> Reply:
        """One complete reply. Raises `ModelError` when there is none."""
        body = _json.write(self._fields(request))
        assembly = self._assembly() if self._on_text is not None else None
        try:
            text = await self._wire.ask(body, assembly.take if assembly is not None else None)
            raw, arguments = (text, dict[int, str]()) if text is not None or assembly is None else assembly.whole()
            return self._reply(request, raw or "", self._read(raw or "", arguments))
        except (_json.NotJson, LookupError, TypeError, AttributeError) as error:
            why = f"what came is no reply in the provider's own protocol: {type(error).__name__}: {error}"
            raise _errors.incomplete(why) from error

    def _reply(self, request: Request, raw: str, parsed: Parsed) -> Reply:
        usage, dollars = parsed.usage, None
        if usage is None:  # it counts as what it can have been at most
            bound = self.bound(request)
            usage, dollars = Usage(input_tokens=bound.input_tokens, output_tokens=bound.output_tokens), bound.dollars
        else:
            models = tuple(dict.fromkeys(name for name in (parsed.model, self.name) if name))
            sale = _prices.Sale(self._seller, models, request.at, parsed.terms)
            dollars = _prices.cost(self._prices, sale, usage, parsed.more)
        return Reply(
            text=parsed.text,
            calls=parsed.calls,
            usage=usage,
            dollars=dollars,
            stop=parsed.stop,
            model=parsed.model or self.name,
            raw=raw,
        )

    def _told(self, text: object) -> None:
        """Hand on a piece of text as it comes; whoever listens can't disturb what is heard."""
        if self._on_text is not None and isinstance(text, str) and text:
            with contextlib.suppress(Exception):
                self._on_text(text)


def count(value: object) -> int:
    """A number of tokens; what is none counts as 0."""
    return value if type(value) is int and value > 0 else 0


def refused(calls: Sequence[ToolCall], stop: str) -> tuple[ToolCall, ...]:
    """The calls of a reply, none when it was cut short by a refusal: what a model must not say is not run."""
    return () if stop == "refusal" else tuple(calls)


def texts(parts: Iterable[object]) -> str:
    """Pieces of text as one."""
    return "".join(part for part in parts if isinstance(part, str))
