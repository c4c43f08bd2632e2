"""What went wrong with an ask, in the runner's words: may it be asked again, may it have been paid, when.

1. Nothing was sent (no connection): transient, certainly free.
2. The provider refused it (4xx): permanent, except 408, 409, 425 and 429. Refused is free, except 408.
3. The provider broke (5xx): transient. It may have worked before it broke, so it may be billed; 503 and 529 say that it
   did not begin.
4. The connection broke after the request left, or a stream ended before the provider said that the reply is complete:
   transient, spend unknown.

A provider that says otherwise (`x-should-retry`, a used-up quota) is believed. `Retry-After` counts from the response's
own `Date`. Keys never reach a message, and so no log (spec row 12).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from runner.errors import ModelError, RunError
from runner.models import _json

BROKE = 500
"""From this status on the provider says that the fault is its own."""
TIMED_OUT = 408
NOT_BEGUN = frozenset({503, 529})
PASSING = frozenset({TIMED_OUT, 409, 425, 429})
SPENT = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})
"""Refusals that look passing (429) and last until somebody pays."""
PASSING_KINDS = frozenset({
    "api_error", "overloaded_error", "rate_limit_error", "rate_limit_exceeded", "server_error", "timeout_error",
    "vector_store_timeout",
})  # fmt: skip
"""What a provider calls an error in the middle of a reply when asking again may help."""
NOT_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"})
NEVER_SENT = frozenset({"UnsupportedProtocol", "LocalProtocolError", "InvalidURL"})
"""The address or the request itself is wrong: asking again sends the same."""

MOST_WORDS = 600
_keys = re.compile(r"\bsk-[A-Za-z0-9_*.-]{6,}")


class NotInstalled(RunError):
    """A package that an extra brings is missing."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra
        self.hint = f"Install it: pip install 'refold[{extra}]'"

    def __str__(self) -> str:
        return f"the package {self.package} is not installed"


def incomplete(why: str) -> ModelError:
    """No complete reply came, though the request was sent: the tokens spent are unknown."""
    return ModelError(why, transient=True, billed=True)


def said(body: str, headers: Mapping[str, str] | None = None, secrets: Iterable[str] = ()) -> ModelError:
    """An error that the provider reported where a reply, or the rest of one, should have been."""
    kind, words = _words(body)
    why = f"the provider reported an error{kind and f' ({kind})'}: {words}"
    return ModelError(
        masked(why, secrets), transient=kind in PASSING_KINDS, billed=True, retry_after=retry_after(headers or {})
    )


def failure(error: Exception, secrets: Iterable[str] = ()) -> ModelError | None:
    """What an exception of a vendor's SDK means, or None when it is no such exception."""
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    if isinstance(status, int) and response is not None:
        return _refused(status, response, secrets)
    causes = {type(cause).__name__ for cause in _causes(error)}
    why = masked(f"no answer came: {_told(error)}", secrets)
    if causes & NEVER_SENT:
        return ModelError(why, transient=False)
    if causes & NOT_SENT:
        return ModelError(why, transient=True)
    if any(_of(cause, "httpx", "httpx2", "httpcore", "httpcore2") for cause in _causes(error)):
        return incomplete(why)
    if _of(error, "anthropic", "openai") or (isinstance(error, TypeError) and "authentication" in str(error)):
        return ModelError(masked(f"it can't be asked: {error}", secrets), transient=False)
    return None


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without the keys, whole or as providers abbreviate them."""
    for secret in secrets:
        text = text.replace(secret, "[secret]") if secret else text
    return _keys.sub("[secret]", text)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds a provider asked to be left alone, or None."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        return max(0.0, float(headers["retry-after"]))
    except KeyError:
        return None
    except ValueError:
        return _until(headers)


def _until(headers: Mapping[str, str]) -> float | None:
    try:
        since = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return max(0.0, (parsedate_to_datetime(headers["retry-after"]) - since).total_seconds())
    except (KeyError, TypeError, ValueError):
        return None


def _refused(status: int, response: Any, secrets: Iterable[str]) -> ModelError:
    kind, words = _words(response.text)
    headers = response.headers
    transient = (status in PASSING or status >= BROKE) and kind not in SPENT
    transient = {"true": True, "false": False}.get(headers.get("x-should-retry", ""), transient)
    known = headers.get("request-id") or headers.get("x-request-id")
    why = f"the provider answered {status}{kind and f' ({kind})'}: {words}{f' [request {known}]' if known else ''}"
    return ModelError(
        masked(why, secrets),
        transient=transient,
        billed=status == TIMED_OUT or (status >= BROKE and status not in NOT_BEGUN),
        retry_after=retry_after(headers),
    )


def _words(body: str) -> tuple[str, str]:
    """The kind and the message of an error, wherever in its body the provider put them."""
    try:
        found = _json.value(body)
    except _json.NotJson:
        found = None
    inner = found.get("error") if isinstance(found, dict) else None
    inner = inner if isinstance(inner, dict) else found
    if not isinstance(inner, dict):
        return "", body.strip()[:MOST_WORDS] or "it said nothing"
    names = [str(inner[field]) for field in ("code", "type") if isinstance(inner.get(field), str | int)]
    kind = next((name for name in names if name in SPENT | PASSING_KINDS), names[0] if names else "")
    words = inner.get("message")
    return kind, (words if isinstance(words, str) and words else body.strip())[:MOST_WORDS]


def _causes(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _of(error: BaseException, *packages: str) -> bool:
    return any(kind.__module__.partition(".")[0] in packages for kind in type(error).__mro__)


def _told(error: BaseException) -> str:
    return " from ".join(f"{type(cause).__name__}: {cause}" for cause in _causes(error))
