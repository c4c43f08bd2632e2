"""Ways to a server, watched to know when a connection ended and how HTTP answered.

Of most HTTP statuses the SDK makes one protocol error, which proves nothing. A status that a server gives before it
reads a request proves that the call did nothing, and so does an error from before there was a connection.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Self

import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from runner._transport import NEVER_SENT, client_error

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u(?P<half>[dD][89a-fA-F]..)|.)")
META = "dev.refold/"
KEY, CALL, ATTEMPT, RUN = (META + name for name in ("idempotency-key", "call", "attempt", "run"))


Leg = tuple[str, int]
"""A leg of a call in flight: its key, and the attempt."""
Legs = dict[Leg, int | None]
"""The legs in flight, each with the HTTP status of its answer where that is known."""
FORGOTTEN: Leg = ("", 0)
"""Stands among the legs once the server does not know the session any more, whatever was asked in it."""


@asynccontextmanager
async def watched(transport: AbstractAsyncContextManager[Any], ended: asyncio.Event) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a transport; they note when the connection ended."""
    async with transport as (read, write):
        try:
            yield _Read(read, ended), write
        finally:
            ended.set()


class _Read:
    """Passes everything on to the stream that it wraps."""

    def __init__(self, inner: Any, ended: asyncio.Event) -> None:
        self._inner, self._ended = inner, ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> bool | None:
        left: bool | None = await self._inner.__aexit__(*error)
        return left

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return _read(await self._inner.__anext__())
        except BaseException:  # whatever ends the stream ends the connection
            self._ended.set()
            raise


def _read(item: Any) -> Any:
    """A message; U+FFFD is in the place of half a character that is escaped in it, which the SDK can't parse.

    Raises where an answer can't be read: no other comes for its request.
    """
    for problem in item.errors() if isinstance(item, ValidationError) else ():
        raw = problem["input"]
        text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
        if problem["type"] == "json_invalid":
            whole = _ESCAPE.sub(lambda found: "\\ufffd" if found["half"] else found[0], text)
            with suppress(ValidationError):
                return SessionMessage(mcp.types.jsonrpc_message_adapter.validate_json(whole, by_name=False))
        if _is_answer(raw, text):
            raise item
    return item


def _is_answer(raw: object, text: str) -> bool:
    """Whether what could not be read was an answer, and not a line that a server printed for people."""
    if isinstance(raw, dict):
        return "id" in raw and "jsonrpc" in raw and "method" not in raw
    return text.lstrip().startswith('{"') and '"jsonrpc"' in text and '"id"' in text and '"method"' not in text


REFUSED = frozenset({401, 403, 405, 413, 415})
NO_SESSION = 404
"""Of an older protocol, where a tool's own errors come with 200: the server does not know the session any more."""
UNSENT = 0
"""In the place of a status: there was no connection."""

TIMEOUT = httpx2.Timeout(30.0, read=300.0)
"""Seconds, as the SDK has them: a stream may be silent for long. A call's own timeout is the tool's."""


class _Client(httpx2.AsyncClient):
    """It notes the status of each answer to a leg in flight."""

    def __init__(self, legs: Legs) -> None:
        super().__init__(timeout=TIMEOUT)
        self._legs = legs

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            if client_error(error) in NEVER_SENT:
                self._note(request, UNSENT)
            raise
        self._note(request, response.status_code)
        return response

    def _note(self, request: httpx2.Request, status: int) -> None:
        if status == NO_SESSION and "mcp-session-id" in request.headers:
            self._legs[FORGOTTEN] = NO_SESSION
        with suppress(ValueError, KeyError, TypeError, httpx2.StreamError):
            meta = json.loads(request.content)["params"]["_meta"]
            if (leg := (meta[KEY], meta[ATTEMPT])) in self._legs:
                self._legs[leg] = status


@asynccontextmanager
async def transport(url: str, legs: Legs) -> AsyncIterator[Any]:
    """The SDK's transport to `url`, over a client that fills in `legs`."""
    async with _Client(legs) as client, streamable_http_client(url, http_client=client) as streams:
        yield streams
