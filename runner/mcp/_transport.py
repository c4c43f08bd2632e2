"""Ways to a server, watched to know what was sent and how HTTP answered it.

The SDK raises the same error, "the connection is closed", for a request that was never sent and for one whose answer
was lost. They differ here: a request that was not handed to the transport was not sent. Of most HTTP statuses it makes
one protocol error, which proves nothing; a status that a server gives before it reads a request proves that the call
did nothing.
"""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u(?P<half>[dD][89a-fA-F]..)|.)")
META = "dev.refold/"
KEY, CALL, ATTEMPT, RUN = (META + name for name in ("idempotency-key", "call", "attempt", "run"))


class WatchedTransport:
    """A transport that notes which legs of calls were handed over, and when the connection ended."""

    def __init__(self, transport: AbstractAsyncContextManager[Any], on_end: Callable[[], None]) -> None:
        self._transport = transport
        self._on_end = on_end
        self.ended = False
        self.handed: set[tuple[str, int]] = set()

    async def __aenter__(self) -> tuple[Any, Any]:
        """The transport's streams, watched."""
        read, write = await self._transport.__aenter__()
        return _Read(read, self), _Write(write, self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self.end()
        return await self._transport.__aexit__(kind, error, trace)

    def end(self) -> None:
        """Note that the connection has ended."""
        if not self.ended:
            self.ended = True
            self._on_end()

    def hand(self, item: Any) -> None:
        """Note the leg that this message carries, if it carries one."""
        params = getattr(getattr(item, "message", None), "params", None) or {}
        meta = params.get("_meta") or {}
        if KEY in meta:
            self.handed.add((meta[KEY], meta[ATTEMPT]))


class _Stream:
    """Passes everything on to the stream that it wraps."""

    def __init__(self, inner: Any, transport: WatchedTransport) -> None:
        self._inner = inner
        self._watched = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> bool | None:
        left: bool | None = await self._inner.__aexit__(*error)
        return left


class _Read(_Stream):
    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return _read(await self._inner.__anext__())
        except BaseException:  # whatever ends the stream ends the connection
            self._watched.end()
            raise


def _is_answer(error: ValidationError) -> bool:
    """Whether what could not be read was an answer, and not a line that a server printed for people."""
    for problem in error.errors():
        raw = problem["input"]
        if isinstance(raw, dict) and "id" in raw and "jsonrpc" in raw and "method" not in raw:
            return True
        text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
        if text.lstrip().startswith('{"') and '"jsonrpc"' in text and '"id"' in text and '"method"' not in text:
            return True
    return False


def _read(item: Any) -> Any:
    """A message, repaired if need be. Raises where an answer can't be read: no other comes for its request."""
    item = _repaired(item)
    if isinstance(item, ValidationError) and _is_answer(item):
        raise item
    return item


def _repaired(item: Any) -> Any:
    """A message that the SDK could not parse because half of a character is escaped in it, with U+FFFD there."""
    if isinstance(item, ValidationError):
        for problem in item.errors():
            raw = problem["input"]
            text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
            if problem["type"] == "json_invalid" and isinstance(text, str):
                whole = _ESCAPE.sub(lambda found: "\\ufffd" if found["half"] else found[0], text)
                with suppress(ValidationError):
                    return SessionMessage(mcp.types.jsonrpc_message_adapter.validate_json(whole, by_name=False))
    return item


class _Write(_Stream):
    async def send(self, item: Any, /) -> None:
        self._watched.hand(item)
        await self._inner.send(item)


REFUSED = frozenset({401, 403, 405, 413, 415})
NO_SESSION = 404
"""Of an older protocol, where a tool's own errors come with 200: the server does not know the session any more."""

TIMEOUT = httpx2.Timeout(30.0, read=300.0)
"""Seconds, as the SDK has them: a stream may be silent for long. A call's own timeout is the tool's."""


@asynccontextmanager
async def transport(url: str, statuses: dict[str, int]) -> AsyncIterator[Any]:
    """The SDK's transport to `url`; the status of each answer to a leg goes to `statuses`, by the leg's key."""

    async def note(response: httpx2.Response) -> None:
        with suppress(ValueError, KeyError, TypeError, httpx2.StreamError):
            statuses[json.loads(response.request.content)["params"]["_meta"][KEY]] = response.status_code

    async with (
        httpx2.AsyncClient(timeout=TIMEOUT, event_hooks={"response": [note]}) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams
