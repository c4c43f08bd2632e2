"""The way to a provider: its own SDK, one attempt at a time, with the body's bytes as they were written.

The SDK's retries are off, because the runner logs, counts and spaces every attempt. Our own client is open for one ask,
so no connection outlives its event loop. A user's client is used as it is, except for its retries. A client that
rewrites what it sends (Azure, Bedrock, Vertex) is given the body's values; they keep their order but not their bytes.
"""

import contextlib
import functools
import importlib
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from runner.errors import ModelError
from runner.models import _errors, _json
from runner.models._pieces import Assembly

MOST = 64 << 20
"""The most bytes of one reply: more than any reply that a log can hold."""
MOST_REFUSAL = 64 << 10
"""The most bytes of a refusal that are read: its words come first."""
REFUSED = 400

_ends = re.compile(rb"\r\n|\n|\r(?!\Z)")


class Events:
    """Server-sent events out of bytes that come in any pieces; an event that was not ended is never given."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The data of each event that `chunk` completes. Raises `UnicodeDecodeError`."""
        new = max(0, len(self._rest) - 1)  # what is known to hold no end of a line is not looked at again
        self._rest += chunk
        if _ends.search(self._rest, new) is None:
            return
        *lines, rest = _ends.split(bytes(self._rest))
        self._rest = bytearray(rest)
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                data, self._data = b"\n".join(self._data), []
                yield data.decode()


@functools.cache
def _certificates() -> Any:
    """The machine's certificates, read once: that takes longer than all else that opens a client."""
    return importlib.import_module("httpx2").create_ssl_context()


@functools.cache
def _refusals() -> Any:
    """What lets an SDK read the beginning of a refusal alone: it reads all that comes before it gives any of it."""
    http = importlib.import_module("httpx2")

    class Beginning(http.AsyncByteStream):  # type: ignore[name-defined,misc] # imported when it is used
        def __init__(self, whole: Any) -> None:
            self.aclose = whole.aclose
            self._whole = whole

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._whole:
                yield chunk
                if (size := size + len(chunk)) > MOST_REFUSAL:
                    return

    async def shorten(response: Any) -> None:
        if response.status_code >= REFUSED:
            response.stream = Beginning(response.stream)

    return shorten


class Wire:
    """The way to `path` by a client of an SDK, or by the user's own; `options` go with each request.

    Raises `NotInstalled` without the SDK.
    """

    def __init__(
        self, package: str, client: str, path: str, options: Mapping[str, Any], base_url: str | None, given: Any
    ) -> None:
        try:
            self._sdk = importlib.import_module(package)
        except ModuleNotFoundError as error:
            if error.name != package:
                raise
            raise _errors.NotInstalled(package, package) from None
        self._kind = getattr(self._sdk, client)
        self._path, self._options, self._base_url, self._given = path, options, base_url, given

    async def ask(self, body: bytes, assembly: Assembly | None) -> str:
        """Send `body`; the reply's text, of a stream as `assembly` puts it together. Raises `ModelError`."""
        secrets: list[str] = []
        try:
            async with self._open() as client:
                secrets += _secrets(client)
                return await self._exchange(client, body, assembly)
        except Exception as error:
            known = _errors.failure(error)
            if known is None:
                raise
            raise _errors.masked(known, secrets) from error

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[Any]:
        if self._given is not None:
            yield self._given.with_options(max_retries=0)
            return
        http = self._sdk.DefaultAsyncHttpxClient(verify=_certificates(), event_hooks={"response": [_refusals()]})
        async with self._kind(max_retries=0, base_url=self._base_url, http_client=http) as client:
            yield client

    async def _exchange(self, client: Any, body: bytes, assembly: Assembly | None) -> str:
        how: dict[str, Any] = {"cast_to": importlib.import_module("httpx2").Response, "options": dict(self._options)}
        exact = type(client) is self._kind
        how |= {"content": body} if exact else {"body": _json.value(body.decode())}
        got = await client.post(self._path, **how, stream=True, stream_cls=self._sdk.AsyncStream)
        response = getattr(got, "response", got)
        try:
            if assembly is None or "text/event-stream" not in response.headers.get("content-type", ""):
                return b"".join([chunk async for chunk in _chunks(response)]).decode()
            await _follow(response, assembly)
        finally:
            await response.aclose()
        return assembly.whole()


async def _follow(response: Any, assembly: Assembly) -> None:
    """Give each event to `assembly` until the reply is complete, or the stream ends."""
    events = Events()
    async for chunk in _chunks(response):
        for data in events.feed(chunk):
            if assembly.take(data):
                return


async def _chunks(response: Any) -> AsyncIterator[bytes]:
    """A response's body as it comes, as long as it is not longer than `MOST`."""
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MOST:
            raise ModelError(f"the reply is longer than {MOST} bytes", transient=False, billed=True)
        yield chunk


def _secrets(client: Any) -> list[str]:
    found = [getattr(client, name, None) for name in ("api_key", "auth_token", "admin_api_key")]
    return [key for key in found if isinstance(key, str) and key]
