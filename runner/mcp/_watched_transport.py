"""Watches a connection's streams, between the SDK and its transport, to know what was sent.

The SDK raises the same error, "the connection is closed", for a request that was never sent and for one whose answer
was lost. They differ here: a request that was not handed to the transport was not sent.
"""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Any, Self

import mcp
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
        """Leave the transport."""
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
