"""Tools: functions with a declaration of what a repeat does.

A tool that says nothing is `once`: a repeat may do it twice, because unknown is unsafe (spec row 20). A key must
outlast the tool's timeout, or an attempt could still be in flight when the service has forgotten its key.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar, overload

from replay import Effect
from runner import _arguments, _schemas
from runner._call import Call
from runner._door import Secret
from runner.errors import BadTool

Approval = bool | Callable[[Mapping[str, Any]], bool]
F = TypeVar("F", bound=Callable[..., object])

TIMEOUT = 60.0
ATTEMPTS = 3


class Tool:
    """A function an agent may call, made by `runner.tool`. Calling it calls the function.

    `effect`, `remembers` (seconds or None), `approval`, `once_per`, `timeout` (seconds), `attempts`, `lands_within`
    (seconds) and `secret` are as declared; `schema` is the JSON schema of its arguments, `description` what the model
    reads; `find` is its lookup or None.
    """

    def __init__(  # each argument is one declared fact
        self,
        function: Callable[..., object],
        *,
        effect: Effect,
        remembers: timedelta | None,
        approval: Approval,
        once_per: Sequence[str],
        timeout: float,
        attempts: int,
        secret: Sequence[Secret],
        name: str | None,
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        self.name: str = name or str(getattr(function, "__name__", "tool"))
        self.function = function
        self.effect = effect
        self.remembers = remembers.total_seconds() if remembers is not None else None
        self.approval = approval
        self.once_per = tuple(once_per)
        self.timeout = timeout
        self.attempts = attempts
        self.secret = tuple(secret)
        self.given = schema is not None
        self.signature = (
            _arguments.signature(self.name, function, Call)
            if schema is None
            else _arguments.given(self.name, function, Call, dict(schema))
        )
        self.description = str((schema or {}).get("description") or _arguments.description(function))
        self.find: Callable[[Call], object] | None = None
        self.lands_within = timeout
        self._last: tuple[str, str | None] | None = None
        self._check()

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return self.signature.schema

    def _check(self) -> None:
        if self.effect not in ("reads", "idempotent", "keyed", "once"):
            raise BadTool(self.name, f"effect {self.effect!r} is none of reads, idempotent, keyed, once")
        if (self.effect == "keyed") != (self.remembers is not None):
            raise BadTool(self.name, "`remembers` belongs to effect keyed: how long the service keeps a key")
        if self.timeout <= 0 or self.attempts < 1:
            raise BadTool(self.name, "its timeout must be above 0 s, its attempts at least 1")
        if self.remembers is not None and self.remembers <= self.timeout:
            raise BadTool(self.name, "the key must be remembered for longer than the timeout (spec row 20)")
        unknown = set(self.once_per) - set(self.schema["properties"])
        if unknown:
            raise BadTool(self.name, f"once_per names no argument: {', '.join(sorted(unknown))}")
        if self.effect == "reads" and self.once_per:
            raise BadTool(self.name, "a call that reads has no intent to protect with once_per")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}, {self.effect}>"

    @overload
    def lookup(self, find: F, /) -> F: ...
    @overload
    def lookup(self, /, *, lands_within: float | None = ...) -> Callable[[F], F]: ...
    def lookup(self, find: F | None = None, /, *, lands_within: float | None = None) -> F | Callable[[F], F]:
        """Declare how the service is asked whether a call happened: the ladder's second rung (spec row 23).

        The function takes a `Call` and returns `Found(result)`, `Missing()` (only when certain) or `Unsure()`; it may
        be async. `lands_within`: seconds after which an effect that was on its way has landed or never will; default
        the tool's timeout, 0 for a tool that acts only inside this process.
        """

        def declare(function: F) -> F:
            if lands_within is not None and lands_within < 0:
                raise BadTool(self.name, "lands_within can't be negative")
            self.find = function
            self.lands_within = self.timeout if lands_within is None else lands_within
            return function

        return declare if find is None else declare(find)

    def around(self, wrapper: Callable[[Callable[..., object]], Callable[..., object]]) -> Tool:
        """A copy whose body is `wrapper(function)`: same name, schema, effect and lookup. For tests and instruments."""
        other = copy.copy(self)
        other.function = wrapper(self.function)
        return other

    @property
    def is_async(self) -> bool:
        """Whether the body is a coroutine function; any other runs in a thread."""
        return inspect.iscoroutinefunction(self.function)

    def problem(self, arguments: str) -> str | None:
        """Why these raw arguments can't be used, or None. Deciding on a call asks twice, so the last answer is kept."""
        last = self._last
        if last is None or last[0] != arguments:
            last = self._last = (arguments, self._problem(arguments))
        return last[1]

    def _problem(self, arguments: str) -> str | None:
        try:
            parsed = _arguments.parse(arguments)
            _arguments.bind(self.signature.type, parsed)
        except _arguments.InvalidArguments as invalid:
            return str(invalid)
        return _schemas.problem(self.schema, parsed) if self.given else None


@overload
def tool(function: Callable[..., object], /) -> Tool: ...
@overload
def tool(
    *,
    effect: Effect = ...,
    remembers: timedelta | None = ...,
    approval: Approval = ...,
    once_per: Sequence[str] = ...,
    timeout: float = ...,
    attempts: int = ...,
    secret: Sequence[Secret] = ...,
    name: str | None = ...,
    schema: Mapping[str, Any] | None = ...,
) -> Callable[[Callable[..., object]], Tool]: ...
def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    effect: Effect = "once",
    remembers: timedelta | None = None,
    approval: Approval = False,
    once_per: Sequence[str] = (),
    timeout: float = TIMEOUT,
    attempts: int = ATTEMPTS,
    secret: Sequence[Secret] = (),
    name: str | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a function a tool. The schema comes from its type hints, the description from its docstring.

    effect      what a repeat does: `reads`, `idempotent`, `keyed`, or `once` (may do it twice; the default) (row 20)
    remembers   for `keyed`: how long the service remembers a key; must outlast the timeout
    approval    ask a person first: always, or when the predicate on the arguments says so (row 25)
    once_per    the arguments that make the call's intent: a second call with them is refused (row 24)
    timeout     seconds an attempt may take; attempts: how many that ended in their own life (row 23)
    secret      names of result fields, or patterns in its text, that are masked before anything is logged (row 12)
    schema      a JSON schema of the arguments, for a service that describes its own: the function then takes a `Call`
                alone and reads `call.arguments`. Its `description` is what the model reads

    Raises `BadTool` when the declaration contradicts itself.
    """

    def declare(body: Callable[..., object]) -> Tool:
        return Tool(
            body,
            effect=effect,
            remembers=remembers,
            approval=approval,
            once_per=once_per,
            timeout=timeout,
            attempts=attempts,
            secret=secret,
            name=name,
            schema=schema,
        )

    return declare if function is None else declare(function)
