"""The key hook: the call's idempotency key goes with what a tool sends, in a header (spec row 19).

Three rules, each against a way to act twice:

1. Under one key a call sends one request. A service takes a second one under it for a repeat of the first, and the
   second effect is lost without a word; so a second request without a key of its own is an error, before it is sent.
2. A request that should carry a key never goes without one. A thread that did not inherit the call's context is the
   usual reason; that too is an error before anything is sent.
3. A lookup, and a tool that reads, sends no key: the service would remember it for the question, and the call's own
   request under that key would then be refused, or answered with the question's answer.

The hook serves sync and async clients alike, and asks of a request only what httpx and httpx2 have in common: `method`,
`headers` and `extensions`.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from runner import Call, NotInACall, RunError, current_call

P = ParamSpec("P")
T = TypeVar("T")

MARK = "refold"
"""The name in a request's `extensions` under which the hook notes what it saw."""

_subkey: contextvars.ContextVar[int | None] = contextvars.ContextVar("refold_subkey", default=None)


class NeedsSubkey(RunError):
    """A second request of one call was about to go under a key that another has used; it was not sent (spec row 19)."""

    hint = "Send it inside `with runner.web.subkey(n):`, n another number for each further request of the call."

    def __init__(self, tool: str, call: str, method: str, url: str) -> None:
        super().__init__(tool, call, method, url)
        self.tool = tool
        self.call = call
        self.method = method
        self.url = url

    def __str__(self) -> str:
        return f"{self.method} {self.url} was not sent: call {self.call} of {self.tool} has used its key"


@dataclass
class Mark:
    """What the hook noted in a request: whether it took a key, and how often it went again (a redirect, a login)."""

    keyed: bool
    hops: int = 0


class _Nothing:
    """What a hook returns: an async client awaits it, a sync one drops it."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


@dataclass(frozen=True)
class KeyHook:
    """A request hook that sends the key of the call it runs in.

    header    the header's name
    quoted    send it as an RFC 8941 string, in double quotes, as the IETF draft has it; services mostly want it bare
    methods   the methods that carry it: what HTTP calls neither safe nor idempotent
    only      a predicate on the request, for requests that must not carry it (a login in the same client, say)
    required  whether such a request outside of a call is an error (`NotInACall`), or just goes without a key

    A request that has the header already keeps it. Raises `NeedsSubkey` and `NotInACall`, both before anything is sent.
    """

    header: str = "Idempotency-Key"
    quoted: bool = False
    methods: Collection[str] = ("POST", "PATCH")
    only: Callable[[Any], bool] | None = None
    required: bool = True

    def __call__(self, request: Any) -> _Nothing:
        """Put the key on this request, if it is one to carry it."""
        seen = request.extensions.get(MARK)
        if isinstance(seen, Mark):
            seen.hops += 1
            return _Nothing()
        wanted = request.method in self.methods and (self.only is None or self.only(request))
        call = self._call() if wanted else None
        keyed = call is not None and call.acts
        if call is not None and keyed:
            self._take(call, request)
        request.extensions = {**request.extensions, MARK: Mark(keyed=keyed)}
        return _Nothing()

    def _call(self) -> Call | None:
        try:
            return current_call()
        except NotInACall:
            if self.required:
                raise
            return None

    def _take(self, call: Call, request: Any) -> None:
        own = request.headers.get(self.header)
        n = _subkey.get()
        key = own.strip('"') if own is not None else call.key if n is None else call.subkey(n)
        first: Any = call.sent.setdefault(key, request)  # one step, that no other thread can get between
        if first is not request:
            raise NeedsSubkey(call.tool, call.id, request.method, str(request.url))
        if own is None:
            request.headers[self.header] = f'"{key}"' if self.quoted else key


key_hook = KeyHook()
"""The hook for most services: `Idempotency-Key`, bare, on POST and PATCH."""


@contextlib.contextmanager
def subkey(n: int) -> Iterator[None]:
    """Requests inside carry the call's `n`-th sub-key instead of its key, the same in every attempt (spec row 19)."""
    token = _subkey.set(n)
    try:
        yield
    finally:
        _subkey.reset(token)


def carry(function: Callable[P, T]) -> Callable[P, T]:
    """`function` with the call of this moment, for an executor or a thread of your own.

    `asyncio.to_thread` and a sync tool's own thread carry the context by themselves; `loop.run_in_executor`, an
    executor's `submit` and `threading.Thread` do not.
    """
    context = contextvars.copy_context()

    @functools.wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> T:
        # A copy for each: one context can't be entered by two threads at once.
        return context.copy().run(function, *args, **kwargs)

    return carried
