"""What a connection's streams tell about what was sent, between the SDK and its transport.

The SDK answers "the connection is closed" alike for a request that was never sent and for one whose answer was lost.
The difference is everything (spec row 22), and it shows here: a request that was not handed to the transport was not
sent.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

META = "dev.refold/"
KEY, CALL, ATTEMPT, RUN = (META + name for name in ("idempotency-key", "call", "attempt", "run"))


class Wire:
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
        """Nothing comes any more."""
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
    """Everything as the stream it stands for does it."""

    def __init__(self, inner: Any, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

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
            return await self._inner.__anext__()
        except BaseException:  # whatever ends this leaves no process behind, and goes on up
            self._wire.end()
            raise


class _Write(_Stream):
    async def send(self, item: Any, /) -> None:
        self._wire.hand(item)
        await self._inner.send(item)
