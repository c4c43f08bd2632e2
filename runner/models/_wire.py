"""The way to a provider: through its own SDK, one attempt at a time, with the body's bytes as they were written.

The SDK's retries are off, because each attempt is the runner's to log, count and space (spec row 3). A client of ours
lives for one ask, so no connection outlives its event loop; a client of the user's is used as it is, retries apart. A
client that rewrites what it sends (Azure, Bedrock, Vertex) is given the body's values, which keep their order and lose
their spelling.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.errors import ModelError
from runner.models import _errors, _json

MOST = 64 << 20
"""The most bytes of one stream: more than any reply that a log can hold."""

Take = Callable[[str], bool]
"""Takes the data of one event of a stream; True says that the reply is complete."""

_ends = re.compile(rb"\r\n|\n|\r(?!\Z)")


def sdk(package: str, extra: str) -> Any:
    """A package that an extra brings, imported when it is used. Raises `NotInstalled`."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise _errors.NotInstalled(package, extra) from None


class Events:
    """Server-sent events out of bytes that come in any pieces; an event that was not ended is never given."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The data of each event that `chunk` completes. Raises `UnicodeDecodeError`."""
        *lines, self._rest = _ends.split(self._rest + chunk)
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


def opener(package: Any, client: str, base_url: str | None) -> Callable[[], Any]:
    """What opens a client of an SDK's for one ask, its retries off."""

    def opened() -> Any:
        http = package.DefaultAsyncHttpxClient(verify=_certificates())
        return getattr(package, client)(max_retries=0, base_url=base_url, http_client=http)

    return opened


@dataclass(frozen=True)
class Wire:
    """One vendor's door. `make` opens a client; `given` is the user's own; `options` go with each request."""

    path: str
    client: type[Any]
    make: Callable[[], Any]
    given: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    async def ask(self, body: bytes, take: Take | None) -> str | None:
        """Send `body`; the response's text, or None when it was a stream, whose events `take` was given.

        Raises `ModelError`.
        """
        secrets: list[str] = []
        try:
            async with self._open() as client:
                secrets += _secrets(client)
                return await self._exchange(client, body, take)
        except ModelError as error:
            raise _retold(error, secrets) from error
        except UnicodeDecodeError as error:
            raise _errors.incomplete(f"the reply is not UTF-8: {error}") from error
        except Exception as error:
            known = _errors.failure(error, secrets)
            if known is None:
                raise
            raise known from error

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[Any]:
        if self.given is not None:
            yield self.given.with_options(max_retries=0)
            return
        async with self.make() as client:
            yield client

    async def _exchange(self, client: Any, body: bytes, take: Take | None) -> str | None:
        exact = type(client) is self.client
        sent = {"content": body} if exact else {"body": _json.value(body.decode())}
        kind = importlib.import_module("httpx2").Response
        if take is None:
            response = await client.post(self.path, cast_to=kind, options=dict(self.options), **sent)
            return bytes(response.content).decode()
        got = await client.post(
            self.path, cast_to=kind, options=dict(self.options), stream=True, stream_cls=_stream_class(client), **sent
        )
        response = getattr(got, "response", got)
        try:
            if "text/event-stream" not in response.headers.get("content-type", ""):
                return bytes(await response.aread()).decode()
            await _follow(response, take)
        finally:
            await response.aclose()
        return None


async def _follow(response: Any, take: Take) -> None:
    """Give each event to `take` until the reply is complete, or the stream ends."""
    events = Events()
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MOST:
            raise ModelError(f"the stream is longer than {MOST} bytes", transient=False, billed=True)
        for data in events.feed(chunk):
            if take(data):
                return


def _stream_class(client: Any) -> Any:
    return importlib.import_module(f"{_package(client)}").AsyncStream


def _package(client: Any) -> str:
    """The SDK that a client comes from, also when its class is the user's own."""
    names = [kind.__module__.partition(".")[0] for kind in type(client).__mro__]
    return next(name for name in names if name in ("anthropic", "openai"))


def _secrets(client: Any) -> list[str]:
    found = [getattr(client, name, None) for name in ("api_key", "auth_token", "admin_api_key")]
    return [key for key in found if isinstance(key, str) and key]


def _retold(error: ModelError, secrets: list[str]) -> ModelError:
    why = _errors.masked(error.why, secrets)
    return ModelError(why, transient=error.transient, billed=error.billed, retry_after=error.retry_after)
