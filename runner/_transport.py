"""What an HTTP client's error, or a status, proves about a request. `runner.web`, `models` and `mcp` share it.

Client errors: one raised before there was a connection proves that nothing was sent. Any other error proves nothing:
the server may have acted before the connection broke.

status                      meaning
2xx                         done
425, 429                    wait: it was not processed, and may be sent again later (RFC 8470, RFC 6585)
408, 409, 1xx, 3xx, 5xx     unknown
any other 4xx               refused: it was not carried out, and sending it again is no use
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, Literal

Meaning = Literal["done", "refused", "wait", "unknown"]

NOT_CONNECTED: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"})
"""Errors of httpx and httpx2 before a connection existed; another try may get one."""
NEVER_SENT: Final = NOT_CONNECTED | {"UnsupportedProtocol"}
WAIT: Final = frozenset({425, 429})
SOON: Final = 1.0
"""Seconds to wait when the server does not say how long."""
LONGEST_WAIT: Final = 3600.0
"""Seconds: a server that asks for more is asked again after this long."""

_PASSING: Final = frozenset({"ConnectionError", "TimeoutError", "TransportError", "Timeout", "ClientConnectionError"})
"""Errors of Python, httpx, requests and aiohttp after which another try may get an answer."""
FOR_GOOD: Final = frozenset({"UnsupportedProtocol", "LocalProtocolError", "InvalidURL"})
"""Errors of httpx that say that the address or the request itself is wrong: asking again sends the same."""

_BY_CLASS: Final[Mapping[int, Meaning]] = {2: "done", 4: "refused"}
_UNCLEAR: Final = frozenset({408, 409})


def meaning(status: int) -> Meaning:
    """What the table above says about a status."""
    if status in WAIT:
        return "wait"
    if status in _UNCLEAR:
        return "unknown"
    return _BY_CLASS.get(status // 100, "unknown")


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was raised from, each once: a cause may come round in a circle."""
    seen: list[BaseException] = []
    while error is not None and not any(error is one for one in seen):
        seen.append(error)
        yield error
        reason = error.__cause__ or getattr(error, "reason", None)  # urllib keeps it there
        error = reason if isinstance(reason, BaseException) else None


def client_error(error: object) -> str | None:
    """The name of the class of httpx, httpx2 or httpcore that an error is of; None for any other error."""
    for kind in type(error).__mro__:
        if kind.__module__.startswith(("httpx", "httpcore")):
            return kind.__name__
    return None


def worth_repeating(error: BaseException | None) -> float | None:
    """Seconds after which a request that only reads is worth repeating after this error; None when it is pointless.

    The response counts where the error has one, whichever client raised it, else the kind of error.
    """
    for cause in causes(error):
        response = getattr(cause, "response", cause)
        status = getattr(response, "status_code", None) or getattr(response, "status", None)
        if isinstance(status, int):
            headers = getattr(response, "headers", None) or {}
            return (retry_after(headers) or SOON) if meaning(status) in ("wait", "unknown") else None
        kinds = {kind.__name__ for kind in type(cause).__mro__}
        if kinds & _PASSING and not kinds & FOR_GOOD:
            return SOON
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks to be left alone (RFC 9110, 10.2.3), at most `LONGEST_WAIT`, or None.

    A date counts from the response's own `Date`, so that a wrong clock on this side does not matter.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            return _bounded(float(headers[name].encode("ascii")) / unit)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 (few answers have a date, and it takes long to import)

    with suppress(TypeError, ValueError):
        until = parsedate_to_datetime(headers.get("retry-after", ""))
        since = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return _bounded((until - since).total_seconds())
    return None


def _bounded(seconds: float) -> float | None:
    return None if math.isnan(seconds) else min(max(0.0, seconds), LONGEST_WAIT)
