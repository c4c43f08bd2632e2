"""Ways to a server, watched to know what was sent and how HTTP answered it.

The SDK raises the same error, "the connection is closed", for a request that was never sent and for one whose answer
was lost. They differ here: a request that was not handed to the transport was not sent. Of most HTTP statuses it makes
one protocol error, which proves nothing; a status that a server gives before it reads a request proves that the call
did nothing.
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

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u(?P<half>[dD][89a-fA-F]..)|.)")
META = "dev.refold/"
KEY, CALL, ATTEMPT, RUN = (META + name for name in ("idempotency-key", "call", "attempt", "run"))


Leg = tuple[str, int]
"""A leg of a call in flight: its key, and the attempt."""
Legs = dict[Leg, int | None]
"""The legs in flight that were handed over, each with the HTTP status of its answer where that is known."""
FORGOTTEN: Leg = ("", 0)
"""Stands among the legs once the server does not know the session any more, whatever was asked in it."""


@asynccontextmanager
async def watched(
    transport: AbstractAsyncContextManager[Any], legs: Legs, ended: asyncio.Event
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a transport: they note which legs of calls were handed over, and when the connection ended."""
    async with transport as (read, write):
        try:
            yield _Read(read, ended), _Write(write, legs)
        finally:
            ended.set()


class _Stream:
    """Passes everything on to the stream that it wraps."""

    def __init__(self, inner: Any, noted: Any) -> None:
        self._inner, self._noted = inner, noted

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
            self._noted.set()
            raise


class _Write(_Stream):
    async def send(self, item: Any, /) -> None:
        params = getattr(getattr(item, "message", None), "params", None) or {}
        meta = params.get("_meta") or {}
        if KEY in meta:
            self._noted[meta[KEY], meta[ATTEMPT]] = None
        await self._inner.send(item)


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

TIMEOUT = httpx2.Timeout(30.0, read=300.0)
"""Seconds, as the SDK has them: a stream may be silent for long. A call's own timeout is the tool's."""


@asynccontextmanager
async def transport(url: str, legs: Legs) -> AsyncIterator[Any]:
    """The SDK's transport to `url`; it notes the status of each answer to a leg in flight."""

    async def note(response: httpx2.Response) -> None:
        if response.status_code == NO_SESSION and "mcp-session-id" in response.request.headers:
            legs[FORGOTTEN] = NO_SESSION
        with suppress(ValueError, KeyError, TypeError, httpx2.StreamError):
            meta = json.loads(response.request.content)["params"]["_meta"]
            if (leg := (meta[KEY], meta[ATTEMPT])) in legs:
                legs[leg] = response.status_code

    async with (
        httpx2.AsyncClient(timeout=TIMEOUT, event_hooks={"response": [note]}) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams
