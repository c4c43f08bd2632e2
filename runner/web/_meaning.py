"""What came back over HTTP, and what it says about this attempt (spec row 22: an error is not a no).

evidence                                                          says
connect errors, pool timeout, a proxy that did not connect        never sent: nothing happened, try again
2xx                                                               done
400 401 403 404 405 413 415 422 and the rest of 4xx               refused: nothing happened, and trying again is no use
425 429                                                           not now: nothing happened, wait
409                                                               unknown; wait when it came with a key
408, 5xx, 3xx, read, write and protocol errors, anything else     unknown
a refusal because of the key itself (mostly 422, also 400)        unknown

- A 409 under a key mostly means that an earlier request under it is in flight. That may be a copy of this very attempt,
  made by a proxy, so it is no proof that this attempt did nothing: unknown, and the ladder sends the same key again
  later, which is harmless.
- A service that keeps a key's answer replays a 500 as it replays a success, so a second 500 says no more than the
  first.
- A key mismatch says that another request came under this call's key, and the log does not know of it.
- A refusal proves nothing when another request of this attempt went out before it, or when a redirect was followed.
- Where nothing can have acted (a lookup, a tool that reads, a safe method) what is unknown above is a failure that is
  worth another try.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Literal, Self

from runner import Call, NotInACall, ToolFailed, Unknown, current_call
from runner.web._hook import MARK, Mark

Meaning = Literal["done", "refused", "wait", "unknown"]

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"})
SOON = 1.0
"""Seconds to wait when the service does not say how long; the ladder's own schedule is longer."""
MOST_TEXT = 500


def result(
    response: Any,
    *,
    done: Collection[int] = (),
    refused: Collection[int] = (),
    unknown: Collection[int] = (),
) -> Any:
    """What a response comes to: its JSON, or else its text, when the request was carried out.

    `done`, `refused` and `unknown` are statuses that this service uses in another sense than the table above: a 404
    that means "deleted already" is done, a 409 that is always a conflict of content is refused.

    Raises `ToolFailed` when the attempt certainly did nothing, `Unknown` otherwise.
    """
    call = _call()
    history = list(getattr(response, "history", ()))
    requests = [_request(r) for r in (*history, response)]
    redirected = any(300 <= r.status_code < 400 for r in history)  # noqa: PLR2004 (the table's own numbers, here and below)
    status = int(response.status_code)
    own: dict[int, Meaning] = {
        **dict.fromkeys(unknown, "unknown"),
        **dict.fromkeys(refused, "refused"),
        **dict.fromkeys(done, "done"),
    }
    keyed = any(_keyed(request, call) for request in requests)
    meaning = own.get(status) or _meaning(response, status, keyed=keyed)
    before = _acted_before(call, requests[0])
    _note(call, requests[0])
    if meaning == "done":
        return _content(response)
    said = f"the service said {status}: {_text(response)[:MOST_TEXT]}"
    after = _retry_after(response)
    if meaning == "wait" or (status == 409 and keyed and meaning == "unknown"):  # noqa: PLR2004 (the table's own number)
        after = after or SOON
    acts = (call is None or call.acts) and any(_acts(request) for request in requests)
    if acts and (meaning == "unknown" or before or redirected):
        raise Unknown(said, after)
    if meaning == "unknown":
        raise ToolFailed(said, after or SOON)
    raise ToolFailed(said, after if meaning == "wait" else None)


class sending:  # noqa: N801 (used like a function: `with sending():`)
    """A block that sends a request, where a client's error becomes what it says about this attempt.

    Each request of a call has a block of its own. Raises `ToolFailed` for a request that was never sent, `Unknown` for
    one that may have been; a `ToolFailed` of the block itself becomes `Unknown` when an earlier block of the same
    attempt has sent something. Every other error passes as it is. It works in sync and async code.
    """

    def __enter__(self) -> Self:
        self._own = _call()
        self._before = dict(self._own.sent) if self._own is not None else {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        call, before = self._own, self._before
        acts = call is None or call.acts
        if isinstance(error, ToolFailed):
            if acts and before:
                raise Unknown(f"{error.why} (an earlier request of this call was sent)", error.retry_after) from error
            return
        name = _client_error(error)
        if error is None or name is None:
            return
        if name == "HTTPStatusError":  # `raise_for_status()` said no more than the status
            result(error.response)  # type: ignore[attr-defined] # this class has it
        request = _request(error)
        said = f"{name}: {error}" if str(error) else name
        if acts and (before or _may_have_acted(name, request)):
            _note(call, request)
            raise Unknown(f"the request may have been carried out ({said})") from error
        raise ToolFailed(f"the request was not carried out ({said})", SOON) from error


def _meaning(response: Any, status: int, *, keyed: bool) -> Meaning:
    if 200 <= status < 300:  # noqa: PLR2004
        return "done"
    if status in (425, 429):
        return "wait"
    if not 400 <= status < 500 or status in (408, 409):  # noqa: PLR2004
        return "unknown"
    return "unknown" if keyed and _about_the_key(status, _text(response)) else "refused"


def _about_the_key(status: int, text: str) -> bool:
    """Whether a refusal is about the key: the words of Stripe, AWS and the IETF draft; a bare 422 is the draft's."""
    said = text.casefold()
    if "idempoten" in said:
        return True
    words = "".join(c if c.isalnum() else " " for c in said).split()
    return status == 422 and (not words or "key" in words)  # noqa: PLR2004


def _client_error(error: BaseException | None) -> str | None:
    """The name of the httpx or httpx2 class that this error is of, or None for an error of anything else."""
    for kind in type(error).__mro__:
        package = kind.__module__.partition(".")[0]
        if package.startswith("httpx") and kind.__name__ != "InvalidURL":
            return kind.__name__
    return None


def _may_have_acted(name: str, request: Any) -> bool:
    mark = request.extensions.get(MARK) if request is not None else None
    if name in NEVER_SENT:
        # Behind a redirect this is the error of a later hop. Without the hook's mark that can't be seen, but only a
        # redirect that turned the request into a safe one may follow something that acted.
        return mark.hops > 0 if isinstance(mark, Mark) else not _acts(request)
    return _acts(request) or not isinstance(mark, Mark) or mark.keyed or mark.hops > 0


def _call() -> Call | None:
    try:
        return current_call()
    except NotInACall:
        return None


def _request(of: Any) -> Any:
    """The request that a response or an error belongs to; both clients raise when it is not known."""
    with suppress(RuntimeError, AttributeError):
        return of.request
    return None


def _acts(request: Any) -> bool:
    return request is None or request.method not in SAFE


def _keyed(request: Any, call: Call | None) -> bool:
    if request is None:
        return False
    mark = request.extensions.get(MARK)
    if isinstance(mark, Mark):
        return mark.keyed
    return call is not None and any(call.key in value for value in request.headers.values())


def _acted_before(call: Call | None, request: Any) -> bool:
    """Whether this attempt sent another request before this one that may have acted."""
    return call is not None and any(sent is not request for sent in call.sent.values())


def _note(call: Call | None, request: Any) -> None:
    """Remember a request that went without the hook, so that a later one's refusal does not speak for both."""
    if call is None or not call.acts or not _acts(request):
        return
    if not any(sent is request for sent in call.sent.values()):
        call.sent[f"without a key, {len(call.sent)}"] = request


def _content(response: Any) -> Any:
    if "json" in response.headers.get("content-type", "").partition(";")[0]:
        with suppress(ValueError):
            return response.json()
    return response.text


def _text(response: Any) -> str:
    try:
        return str(response.text)
    except RuntimeError:  # a stream that nobody has read
        return ""


def _retry_after(response: Any) -> float | None:
    """The seconds of `Retry-After`; a date is held against the response's own, so that no clock of ours matters."""
    text = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    with suppress(ValueError):
        return max(0.0, (until - parsedate_to_datetime(response.headers.get("date", ""))).total_seconds())
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
