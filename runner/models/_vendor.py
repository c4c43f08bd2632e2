"""What every vendor's model does: bound an ask, send it, read the reply, price it.

The bound of input tokens is the number of the request's bytes, since no token is shorter than a byte, and a little for
the instructions that a vendor adds for tools. What a request only refers to (a file, a stored conversation, a page that
a vendor's own tool fetches) is not included. The bound of output tokens is the limit that is sent.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from msgspec.structs import replace

from replay.messages import CostBound, Reply, ToolCall, Usage
from runner._agent.model import Request, ToolSpec
from runner.errors import BadAgent
from runner.models import _errors, _json, _output, _prices, _turns
from runner.models._pieces import Assembly
from runner.models._prices import Price
from runner.models._wire import Wire

HIDDEN = 1024
"""Tokens that a vendor may add to a request: the instructions by which its model knows how to use tools."""
MAX_TOKENS = 16_384
MOST_TOKENS = 1 << 40
"""More than any request has: whoever says so does not count."""


@dataclass(frozen=True)
class Parsed:
    """A vendor's reply, read. `usage` is None when the provider gave none; `more` and `terms` are for its price."""

    text: str
    calls: Sequence[ToolCall]
    stop: Any
    usage: Usage | None
    more: Mapping[str, int] = field(default_factory=dict)
    terms: Mapping[str, str] = field(default_factory=dict)


class Vendor(ABC):
    """A model that is reached over a wire. `name` is what the vendor calls it."""

    limits: ClassVar[tuple[str, ...]]
    """The fields of a request that limit its output."""
    sdk: ClassVar[tuple[str, str]]
    """The SDK's package, which is the extra's name too, and its asynchronous client."""
    path: ClassVar[str]
    conversation: ClassVar[str]
    """The field of a request that holds the conversation."""
    taken: ClassVar[frozenset[str]]
    """The fields of a request that no parameter may set."""
    assembly: ClassVar[type[Assembly]]
    schema: ClassVar[str]
    """The field of a request that holds the schema of its answer, among other things."""
    dialect: ClassVar[_output.Dialect] = _output.OPENAI
    options: ClassVar[Mapping[str, Any]] = {}
    """What goes with each request to the SDK."""

    def __new__(cls, *_: object, **options: object) -> Self:
        """Refuse a name that is none of the options."""
        model, *known = cls.__signature__.parameters
        for name in options.keys() - {model, *known}:
            raise BadAgent(f"{cls.__name__} has no option {name}: there are {', '.join(known)}")
        return super().__new__(cls)

    def __init__(
        self,
        model: str,
        *,
        max_tokens: int = MAX_TOKENS,
        client: Any = None,
        base_url: str | None = None,
        prices: Price | None = None,
        schemas: bool = True,
    ) -> None:
        """Open nothing yet: each ask opens a client, unless one is given.

        Args:
            model: The name that the vendor gives it.
            max_tokens: The most tokens of one reply, reasoning included.
            client: An asynchronous client of the vendor's SDK, used instead of a new one for each ask. Its retries are
                turned off. A new client finds its key where the SDK does (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`).
            base_url: Where the model is served, if not where the SDK says.
            prices: The model's price, instead of the published list's.
            schemas: Whether the model is held to the schema of an agent's output. If not, and where its vendor can't
                express the schema, the answer comes by a tool.

        Raises:
            NotInstalled: The vendor's SDK is missing.
        """
        self.name = model
        self._wire = Wire(*self.sdk, self.path, self.options, base_url, client)
        self._max_tokens = max_tokens
        self._prices = prices
        self._schemas = schemas
        self._seller = self._sold_by(client, base_url)

    __signature__: ClassVar = inspect.Signature([*inspect.signature(__init__).parameters.values()][1:])
    """For `help` and editors, which would show that of `__new__`."""

    def _sold_by(self, client: Any, base_url: str | None) -> str:  # noqa: ARG002 (some vendors are known by address)
        """Who sells the model, as a list of prices names them."""
        return self.sdk[0]

    def _fields(self, request: Request) -> dict[str, Any]:
        """The request's body. Pure."""
        given = _turns.parameters(request, self.taken | {self.conversation, "model", "stream"})
        fields = {"model": self.name, **self._head(request, given)}
        fields |= _turns.tools([self._tool(tool) for tool in request.tools], given) | given
        if request.output is not None:
            fields[self.schema] = {**fields.get(self.schema, {}), **self._held(request.output)}
        fields[self.conversation] = list(self._messages(request))
        return fields if request.heard is None else fields | {"stream": True}

    @abstractmethod
    def _head(self, request: Request, given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields before the tools, which the parameters that are `given` may replace."""

    @abstractmethod
    def _held(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """What says that the answer is held to a schema."""

    @abstractmethod
    def _tool(self, tool: ToolSpec) -> dict[str, Any]:
        """A tool as the provider wants it declared."""

    @abstractmethod
    def _messages(self, request: Request) -> Iterable[Any]:
        """The conversation as the provider wants it."""

    @abstractmethod
    def _read(self, reply: Any, raw: str) -> Parsed:
        """Read a complete reply, whose text is `raw`. Raises `ModelError` when it is not complete, or failed."""

    def output_schema(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The schema of an answer as the vendor takes it, or None when it takes none such. Pure."""
        return _output.expressed(schema, self.dialect) if self._schemas else None

    def bound(self, request: Request) -> CostBound:
        """The most that `request` can cost; `dollars` is None when no price is known.

        Raises `BadAgent` when the agent's parameters can't be sent.
        """
        fields = self._fields(replace(request, heard=None))  # who listens changes no price
        limits = [fields[name] for name in self.limits if name in fields]
        if not limits or any(type(limit) is not int or limit < 0 for limit in limits):
            raise BadAgent(f"{self.limits[0]} is no number of tokens: {limits}")
        tokens = len(_json.write(fields)) + HIDDEN
        terms = {"service_tier": fields.get("service_tier") or "auto", "speed": fields.get("speed") or "standard"}
        if terms["service_tier"] == "auto":
            terms["service_tier"] = "priority"  # what an account may have chosen for all that names no tier
        sale = _prices.Sale(self._seller, (self.name,), request.at, terms)
        dollars = _prices.most(self._prices, sale, tokens, max(limits))
        return CostBound(input_tokens=tokens, output_tokens=max(limits), dollars=dollars)

    async def ask(self, request: Request) -> Reply:
        """One complete reply. Raises `ModelError` when there is none."""
        body = _json.write(self._fields(request))
        assembly = None if request.heard is None else self.assembly(request.heard)
        try:
            return self._reply(request, await self._wire.ask(body, assembly))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            why = f"what came is no reply in the provider's own protocol: {type(error).__name__}: {error}"
            raise _errors.incomplete(why) from error

    def _reply(self, request: Request, raw: str) -> Reply:
        reply = _json.value(raw)
        parsed = self._read(reply, raw)
        model = str(reply.get("model") or "")
        if parsed.usage is None:  # then it counts as the bound
            bound = self.bound(request)
            usage, dollars = Usage(input_tokens=bound.input_tokens, output_tokens=bound.output_tokens), bound.dollars
        else:
            models = tuple(dict.fromkeys(name for name in (model, self.name) if name))
            sale = _prices.Sale(self._seller, models, request.at, parsed.terms)
            usage, dollars = parsed.usage, _prices.cost(self._prices, sale, parsed.usage, parsed.more)
        return Reply(
            text=parsed.text,
            calls=() if parsed.stop == "refusal" else tuple(parsed.calls),  # what was refused to be finished is not run
            usage=usage,
            dollars=dollars,
            stop=parsed.stop,
            model=model or self.name,
            raw=raw,
        )


def count(value: object) -> int:
    """A number of tokens; anything else counts as 0."""
    return value if type(value) is int and 0 < value < MOST_TOKENS else 0


def tells(told: Mapping[str, Any], *names: str) -> bool:
    """Whether each of these is a number of tokens. An ask that is not counted costs as much as it may."""
    return all(type(told.get(name)) is int and 0 <= told[name] < MOST_TOKENS for name in names)


def part(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object in what a provider tells, empty where there is none."""
    found = told.get(name)
    return found if isinstance(found, Mapping) else {}


def usage(reply: Mapping[str, Any], sent: str, came: str) -> Usage | None:
    """What was used, as OpenAI's two APIs tell it: the tokens that were `sent`, with details, and those that `came`."""
    told = part(reply, "usage")
    details = part(told, f"{sent}_details")
    read, written = count(details.get("cached_tokens")), count(details.get("cache_write_tokens"))
    if not tells(told, sent, came) or read + written > told[sent]:
        return None
    return Usage(input_tokens=told[sent], output_tokens=told[came], cache_read_tokens=read, cache_write_tokens=written)


def terms(told: Mapping[str, Any], *names: str) -> dict[str, str]:
    """The terms on which an answer was given, as a list of prices names them."""
    return {name: told[name] for name in names if isinstance(told.get(name), str)}


def texts(parts: Iterable[object]) -> str:
    """Pieces of text as one."""
    return "".join(part for part in parts if isinstance(part, str))
