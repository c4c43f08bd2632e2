"""Ways to a server, watched to know when a connection ended and how HTTP answered.

Of most HTTP statuses the SDK makes one protocol error, which proves nothing. A status that a server gives before it
reads a request proves that the call did nothing, and so does an error from before there was a connection. Such an error
ends its call alone: the SDK, which would end every request of the connection with it, is given an answer to that one.
"""

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Self

import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from runner.web import BodyLimit

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u(?P<half>[dD][89a-fA-F]..)|.)")
META = "dev.refold/"
KEY, CALL, ATTEMPT, RUN = (META + name for name in ("idempotency-key", "call", "attempt", "run"))


Leg = tuple[Any, ...]
"""A leg of a call in flight: its key, if the call acts, with the run, the call and the attempt."""
Legs = dict[Leg, httpx2.Response | Exception | None]
"""The legs in flight, each with what HTTP answered, or why it did not, where that is known."""
FORGOTTEN: Leg = ()
"""Stands among the legs once the server does not know the session any more, whatever was asked in it."""


def leg_of(meta: Mapping[str, Any]) -> Leg:
    """The leg that is sent with this `_meta`."""
    return tuple(meta.get(name) for name in (KEY, RUN, CALL, ATTEMPT))


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

MOST = 16 << 20
"""Bytes of one HTTP answer, or of one event of a stream: the bound of newer SDKs is less than a picture may have."""
TIMEOUT = httpx2.Timeout(30.0, read=300.0)
"""Seconds, as the SDK has them: a stream may be silent for long. A call's own timeout is the tool's."""


_bounded = BodyLimit(MOST)


class _Client(httpx2.AsyncClient):
    """It notes what came of each leg in flight."""

    def __init__(self, legs: Legs) -> None:
        super().__init__(timeout=TIMEOUT)
        self._legs = legs

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        call, failed = _tool_call(request), None
        try:
            response = await super().send(request, **options)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                await _bounded(response)
        except httpx2.RequestError as error:
            if call is None:
                raise
            failed, response = error, _answer(call, error)
        if response.status_code == NO_SESSION and "mcp-session-id" in request.headers:
            self._legs[FORGOTTEN] = response
        if call is not None and (leg := leg_of(call["params"].get("_meta") or {})) in self._legs:
            self._legs[leg] = failed or response
        return response


def _tool_call(request: httpx2.Request) -> Any:
    """The message of a request that calls a tool, or None."""
    with suppress(ValueError, KeyError, TypeError, httpx2.StreamError):
        message = json.loads(request.content)
        return message if message["method"] == "tools/call" else None
    return None


def _answer(call: Any, error: Exception) -> httpx2.Response:
    """An error as the answer to this call."""
    said = {"code": mcp.types.CONNECTION_CLOSED, "message": " ".join(f"{type(error).__name__}: {error}".split())}
    return httpx2.Response(502, json={"jsonrpc": "2.0", "id": call["id"], "error": said})


@asynccontextmanager
async def transport(url: str, legs: Legs) -> AsyncIterator[Any]:
    """The SDK's transport to `url`, over a client that fills in `legs`."""
    is_bounded = "max_sse_event_size" in inspect.signature(streamable_http_client).parameters
    sizes: dict[str, Any] = {"max_sse_event_size": MOST} if is_bounded else {}
    async with _Client(legs) as client, streamable_http_client(url, http_client=client, **sizes) as streams:
        yield streams
