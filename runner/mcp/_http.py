"""HTTP with the status of each answer kept, because the SDK makes one protocol error of most of them.

A status that a server gives before it reads a request proves that the call did nothing; the error that the SDK makes
of it proves nothing.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from runner.mcp._watched_transport import KEY

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
