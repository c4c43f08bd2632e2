"""Tools: functions with a declaration of what a repeat does.

A tool that says nothing is `non_idempotent`: a repeat may do it twice, because unknown is unsafe. A key must outlast
the tool's timeout, or an attempt could still be in flight when the service has forgotten its key.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, Unpack, cast, overload

import replay
from replay.values import Effect, ToolDefinition
from runner._agent import arguments as _arguments
from runner._agent import declaration
from runner._agent import signature as _signature
from runner._agent.arguments import Arguments, Validate
from runner._agent.call import Call, LookupAnswer
from runner._agent.declaration import ToolOptions
from runner._agent.generics import Defaults, TypeVar
from runner._agent.plain import Secret
from runner.errors import BadTool

P = ParamSpec("P")
Bound = ParamSpec("Bound")
Result = typing.TypeVar("Result")
Instance = typing.TypeVar("Instance")
Function_co = typing.TypeVar("Function_co", covariant=True)
Result_co = TypeVar("Result_co", covariant=True, default=Any)
Inputs = TypeVar("Inputs", default=object)
Resources = TypeVar("Resources", default=object)
Inputs_contra = TypeVar("Inputs_contra", contravariant=True, default=object)
Resources_contra = TypeVar("Resources_contra", contravariant=True, default=object)
Find = typing.TypeVar("Find", bound=Callable[..., LookupAnswer | Awaitable[LookupAnswer]])

Keyless = Literal["reads", "idempotent", "non_idempotent"]


class Tool(Defaults, Generic[Inputs_contra, Resources_contra]):
    """Something an agent may call: what a list of tools holds. `runner.tool` makes one of a function.

    Its options are attributes, `key_ttl` in seconds. `Tool[Inputs, Resources]` reads these of its `Call`; `Tool` alone
    fits every agent.

    Attributes:
        schema: The JSON schema of the arguments.
        description: What the model reads about it.
        find: Its lookup, or None.
        is_async: Whether the body is a coroutine function; any other runs in a thread.
        find_reads: The type of inputs that its lookup's `Call` names.
        visible_within: Seconds after which the lookup may be believed.
        validate: If set, says what else is wrong with arguments.
        unbound: Whether it is a method without its object.

    """

    def __init__(
        self,
        function: Callable[..., object],
        /,
        *,
        effect: Effect = "non_idempotent",
        key_ttl: timedelta | None = None,
        **options: Unpack[ToolOptions],
    ) -> None:
        if isinstance(function, Tool):
            raise BadTool(function.name, "it is a tool already")
        name = declaration.named(function)
        chosen = declaration.options(options.get("name") or name, {"effect": effect, "key_ttl": key_ttl, **options})
        schema = chosen["schema"]
        self.name: str = chosen["name"] or name
        self.undeclared = False
        self.function, self.is_async = function, inspect.iscoroutinefunction(function)
        self.effect = effect
        self.key_ttl = key_ttl.total_seconds() if key_ttl is not None else None
        self.approval: declaration.Approval = chosen["approval"]
        self.once_per: tuple[str, ...] = tuple(chosen["once_per"])
        self.timeout: float = chosen["timeout"]
        self.attempts: int = chosen["attempts"]
        self.max_wait: float = chosen["max_wait"]
        self.max_calls: int | None = chosen["max_calls"]
        self.parallel: bool = chosen["parallel"]
        self.secret: tuple[Secret, ...] = tuple(chosen["secret"])
        self.signature = (
            _signature.signature(self.name, function, Call)
            if schema is None
            else _signature.given(self.name, function, Call, dict(schema))
        )
        self.description = str((schema or {}).get("description") or _signature.description(function))
        self.find: Callable[[Call[Any, Any]], object] | None = None
        self.find_reads: Any = object
        self.visible_within = self.timeout
        self.validate: Validate | None = None
        self.unbound = _signature.unbound(function)
        self._check()

    @property
    def schema(self) -> dict[str, Any]:
        return self.signature.schema

    def _check(self) -> None:
        """Raise `BadTool` for options that contradict each other."""
        if not declaration.NAME.fullmatch(self.name):
            words = declaration.OPTIONS["name"].words
            raise BadTool(self.name, f"a name is {words}: give one with `name=`")
        if (self.effect == "keyed") != (self.key_ttl is not None):
            raise BadTool(self.name, "effect keyed needs `key_ttl`, how long keys are kept; no other effect has one")
        if self.key_ttl is not None and self.key_ttl <= self.timeout:
            raise BadTool(self.name, "the service must keep the key for longer than the timeout")
        unknown = set(self.once_per) - set(self.schema["properties"])
        if unknown:
            raise BadTool(self.name, f"once_per names no argument: {', '.join(sorted(unknown))}")
        if self.effect == "reads" and self.once_per:
            raise BadTool(self.name, "a call that reads has no intent to protect with once_per")

    def __repr__(self) -> str:
        return f"<tool {self.name}, {self.effect}>"

    @overload
    def lookup(self, find: Find, /) -> Find: ...
    @overload
    def lookup(self, /, *, visible_within: float | None = ...) -> Callable[[Find], Find]: ...
    def lookup(self, find: Any = None, /, *, visible_within: float | None = None) -> Any:
        """Declare how the service is asked whether a call happened: the ladder's second rung.

        Args:
            find: A function, async or not, of a `Call` that returns `Found(result)`, `Missing()` (only when certain)
                or `Unsure()`.
            visible_within: Seconds after which an effect that was on its way has landed or never will; default the
                tool's timeout, 0 for a tool that acts only inside this process. It must cover a program that the tool
                spawns and that outlives its run: only a forked child is noticed.

        """

        def declare(function: Find) -> Find:
            self.find_reads = _signature.reads(declaration.lookup(self.name, function, visible_within))
            self.find = function
            self.visible_within = self.timeout if visible_within is None else visible_within
            return function

        return declare if find is None else declare(find)

    def around(self, wrapper: Callable[[Callable[..., object]], Callable[..., object]]) -> Self:
        """A copy whose body is `wrapper(function)`: same name, schema, effect and lookup. For tests and instruments."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.function = wrapper(self.function)
        other.is_async = inspect.iscoroutinefunction(other.function)
        return other

    @property
    def definition(self) -> ToolDefinition:
        """How it is declared, as a log keeps it."""
        return ToolDefinition(
            digest=replay.digest_value([self.description, self.schema]),
            effect=self.effect,
            key_ttl=self.key_ttl,
            once_per=self.once_per,
            approval="predicate" if callable(self.approval) else "always" if self.approval else "never",
            lookup=self.find is not None,
            visible_within=self.visible_within,
            timeout=self.timeout,
            attempts=self.attempts,
            max_wait=self.max_wait,
            max_calls=self.max_calls,
            parallel=self.parallel,
        )

    def prepare(self, raw: str) -> Arguments:
        """Raw arguments as this tool takes them, or the reason why it can't."""
        return _arguments.prepare(raw, self.signature, self.validate)


class FunctionTool(Tool[Inputs_contra, Resources_contra], Generic[Function_co, Inputs_contra, Resources_contra]):
    """A tool made of a function: calling it calls the function, with the function's own type.

    That type is one variable, not its parameters: of two tools with different ones, mypy's list is one of objects.
    """

    @property
    def __call__(self) -> Function_co:
        return cast("Function_co", self.function)

    @overload
    def __get__(self, instance: None, owner: type, /) -> Self: ...
    @overload
    def __get__(
        self: FunctionTool[Callable[Concatenate[Instance, Bound], Result], Inputs, Resources],
        instance: Instance,
        owner: type | None = None,
        /,
    ) -> FunctionTool[Callable[Bound, Result], Inputs, Resources]: ...
    def __get__(self, instance: Any, owner: type | None = None, /) -> Any:
        """The tool itself on a class; on an instance, the tool of the bound method."""
        bind = getattr(self.function, "__get__", None)
        if instance is None or bind is None:
            return self
        bound = self.around(lambda _: bind(instance, owner))
        bound.unbound = False
        return bound


if TYPE_CHECKING:

    class CallTool(Tool[Inputs_contra, Resources_contra], Generic[Result_co, Inputs_contra, Resources_contra]):
        """What checkers know of a tool whose call is not its first parameter: its result, but not its arguments."""

        def __call__(self, *args: Any, **given: Any) -> Result_co: ...
        def __get__(self, instance: object, owner: type | None = None, /) -> Self: ...

    class _Anything:
        """No tool names it: only a first parameter of type `object` or `Any` takes it."""


class ToolDecorator(Protocol):
    """What `runner.tool` with options returns."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[_Anything, ...], Result], /
    ) -> CallTool[Result, object, object]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Call[Inputs, Resources], P], Result], /
    ) -> FunctionTool[Callable[Concatenate[Call[Inputs, Resources], P], Result], Inputs, Resources]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, Call[Inputs, Resources], ...], Result], /
    ) -> CallTool[Result, Inputs, Resources]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, Any, Call[Inputs, Resources], ...], Result], /
    ) -> CallTool[Result, Inputs, Resources]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, Any, Any, Call[Inputs, Resources], ...], Result], /
    ) -> CallTool[Result, Inputs, Resources]: ...
    @overload
    def __call__(self, function: Callable[P, Result], /) -> FunctionTool[Callable[P, Result], object, object]: ...


@overload
def tool(*, effect: Literal["keyed"], key_ttl: timedelta, **options: Unpack[ToolOptions]) -> ToolDecorator: ...
@overload
def tool(*, effect: Keyless = ..., **options: Unpack[ToolOptions]) -> ToolDecorator: ...
@overload
def tool(function: Callable[Concatenate[_Anything, ...], Result], /) -> CallTool[Result, object, object]: ...
@overload
def tool(
    function: Callable[Concatenate[Call[Inputs, Resources], P], Result], /
) -> FunctionTool[Callable[Concatenate[Call[Inputs, Resources], P], Result], Inputs, Resources]: ...
@overload
def tool(
    function: Callable[Concatenate[Any, Call[Inputs, Resources], ...], Result], /
) -> CallTool[Result, Inputs, Resources]: ...
@overload
def tool(
    function: Callable[Concatenate[Any, Any, Call[Inputs, Resources], ...], Result], /
) -> CallTool[Result, Inputs, Resources]: ...
@overload
def tool(
    function: Callable[Concatenate[Any, Any, Any, Call[Inputs, Resources], ...], Result], /
) -> CallTool[Result, Inputs, Resources]: ...
@overload
def tool(function: Callable[P, Result], /) -> FunctionTool[Callable[P, Result], object, object]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a tool. The schema comes from its type hints, the description from its docstring.

    Where the effect is computed, `Tool(function, effect=..., key_ttl=..., ...)` takes the same options.

    Args:
        function: What the tool does, async or not; one parameter may be a `runner.Call`.
        effect: What a repeat does: `reads`, `idempotent`, `keyed`, or `non_idempotent` (may do it twice; the default).
        key_ttl: For `keyed`: how long the service remembers a key; it must outlast the timeout.
        approval: Ask a person first: always, or when the function of the arguments says so. Default False.
        once_per: The arguments that make the call's intent: a second call with them gets the first one's result.
        timeout: Seconds an attempt may take. Default 60.
        attempts: How many attempts that ended in their own life there may be. Default 3.
        max_wait: Seconds that a service, or the tool, may ask to wait before another attempt. Default an hour.
        max_calls: How many calls of it may run in one run; the model reads that more are refused. Default no limit.
        parallel: Run consecutive calls of a reply side by side, with those of other such tools and of tools that read.
        secret: Names of result fields, or patterns in its text, that are masked before anything is logged.
        name: What the model calls it by. Default the function's name.
        schema: A JSON schema of the arguments, for a service that describes its own: the function then takes a `Call`
            alone and reads `call.arguments`. Its `description` is what the model reads.
        **options: The above.

    Raises:
        BadTool: The declaration contradicts itself.

    """
    return FunctionTool(function, **options) if function is not None else lambda body: FunctionTool(body, **options)
