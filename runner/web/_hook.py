"""The key hook: the call's idempotency key goes with what a tool sends, in a header.

Four rules, the first three each against a way to act twice:

1. Under one key a call sends one request. A service takes a second one for a repeat of the first, and the
   second effect is lost without a word; so a second request without a key of its own is an error, before it is sent.
2. A request that should carry a key never goes without one. A thread that did not inherit the call's context is the
   usual reason; that too is an error before anything is sent.
3. A lookup, and a tool that reads, sends no key: the service would remember it for the question, and the call's own
   request under that key would then be refused, or answered with the question's answer.
4. What a call does is not sent to another host because a service redirects it there: who answers is not the service
   that keeps the key. Nothing is sent, and what the first one did is unknown. A redirect to a page to read is followed,
   without the key.

The hook is the last thing before a client connects and sends, so it also asks whether this process still holds the run
(`Call.holding`): if not, nothing is sent. A client that waits long for a connection would send after the lease's end,
so its waits until the bytes are gone are shortened until all of them fit.

It serves sync and async clients alike, and asks of a request only what httpx and httpx2 have in common: `method`,
`headers` and `extensions`.
"""

import contextlib
import contextvars
import functools
import math
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final, ParamSpec, TypeVar

from eventlog import LockLost
from runner import Call, OutcomeUnknown, RunError, current_call
from runner.errors import NotInACall

P = ParamSpec("P")
T = TypeVar("T")

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
BEFORE_SENT: Final = ("pool", "connect", "write")
"""A client's waits until the bytes are gone, as its timeouts name them."""
LONGEST_WAITS: Final = (math.inf, 10.0, 3.0, 1.0, 0.3)
"""Seconds: the first of these that fits. A lock has no end, so nothing is shortened."""
MARK = "refold"
"""The name in a request's `extensions` under which the hook notes what it saw."""

_subkey: contextvars.ContextVar[int | None] = contextvars.ContextVar("refold_subkey", default=None)


class NeedsSubkey(RunError):
    """A second request of one call was about to go under a key that another has used; it was not sent."""

    sentence = "{method} {url} was not sent: call {call} of {tool} has used its key"
    hint = "Send it inside `with runner.web.subkey(n):`, n another number for each further request of the call."
    tool: str
    call: str
    method: str
    url: str


@dataclass
class Mark:
    """What the hook noted in a request: whether it took a key, and how often it went again (a redirect, a login).

    `acts`: a call that can change something sends it. `origin` is where it went first.
    """

    keyed: bool
    hops: int = 0
    acts: bool = False
    origin: str = ""


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
            self._stay(seen, request)
            _hold(request)
            return _Nothing()
        wanted = request.method in self.methods and (self.only is None or self.only(request))
        call = current_call() if wanted and self.required else calling()
        acts = call is not None and call.acts
        if call is not None and acts and wanted:
            self._take(call, request)
        request.extensions = {**request.extensions, MARK: Mark(wanted and acts, acts=acts, origin=_origin(request))}
        _hold(request)
        return _Nothing()

    def _stay(self, seen: Mark, request: Any) -> None:
        """Raise `OutcomeUnknown` when a redirect leads a call's own request to another service; no key goes there."""
        there = _origin(request)
        if there == seen.origin:
            return
        if request.method in SAFE:
            request.headers.pop(self.header, None)
        elif seen.acts:
            raise OutcomeUnknown(f"{seen.origin} redirected the request to {there}; nothing was sent there")

    def _take(self, call: Call, request: Any) -> None:
        own = request.headers.get(self.header)
        n = _subkey.get()
        key = own.strip('"') if own is not None else call.key if n is None else call.subkey(n)
        first: Any = call.sent.setdefault(key, request)  # one step, that no other thread can get between
        if first is not request:
            raise NeedsSubkey(call.tool, call.id, request.method, str(request.url))
        if own is None:
            request.headers[self.header] = f'"{key}"' if self.quoted else key


def calling() -> Call | None:
    """The call that this code belongs to, or None."""
    with contextlib.suppress(NotInACall):
        return current_call()
    return None


def _hold(request: Any) -> None:
    """Raise `LockLost` when a call's own request may not go any more; see that it goes before the lease ends."""
    call = calling()
    if request.method in SAFE or call is None or not call.acts:
        return
    for most in LONGEST_WAITS:
        try:
            call.holding(most * len(BEFORE_SENT))
            break
        except LockLost:
            if most == LONGEST_WAITS[-1]:
                raise
    if most < math.inf:
        given = request.extensions.get("timeout", {})
        waits = {name: min(most, given.get(name) or most) for name in BEFORE_SENT}
        request.extensions = {**request.extensions, "timeout": {**given, **waits}}


def _origin(request: Any) -> str:
    """The host and port that a request goes to; plain HTTP on its own port may become HTTPS on its own."""
    url = request.url
    standard = url.port is None or (url.scheme, url.port) in (("http", 80), ("https", 443))
    return str(url.host) if standard else f"{url.host}:{url.port}"


key_hook = KeyHook()
"""The hook for most services: `Idempotency-Key`, bare, on POST and PATCH."""


@contextlib.contextmanager
def subkey(n: int) -> Iterator[None]:
    """Requests inside carry the call's `n`-th sub-key instead of its key, the same in every attempt."""
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
