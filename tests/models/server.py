"""A server that gives prepared answers to model requests over a real socket, and cuts connections on order.

It is written on bare sockets, because no server that keeps the rules of HTTP would break off in the middle of a body.
"""

import asyncio
import contextlib
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream; charset=utf-8"}


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """What its body means."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What one request is answered.

    `cut` breaks the connection off after so many bytes of the body; -1 before a byte of the answer. A `streamed` body
    is sent event by event, and its end is not known beforehand; with a header `x-hang` it does not come. `held` keeps
    the answer back until somebody lets it go.
    """

    body: bytes | Sequence[bytes] = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON))
    cut: int | None = None
    held: threading.Event | None = None

    @property
    def streamed(self) -> bool:
        """Whether the body comes in events."""
        return not isinstance(self.body, bytes)


class Server:
    """Answers requests in the order of `answers`; more requests than answers are an error 418."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.seen: list[Seen] = []
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        """Listen."""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening, whatever is under way."""
        for answer in self.answers:
            if answer.held is not None:
                answer.held.set()
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(60)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._talk(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = await _request(reader)
        self.seen.append(seen)
        place = len(self.seen) - 1
        answer = self.answers[place] if place < len(self.answers) else Answer(b"no more answers", 418)
        if answer.held is not None:
            await asyncio.to_thread(answer.held.wait, 20)
        if answer.cut == -1:
            return
        body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        head = {"connection": "close", **answer.headers}
        if not answer.streamed:
            head["content-length"] = str(len(body))
        lines = [f"HTTP/1.1 {answer.status} As Told", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + body[: answer.cut])
        await writer.drain()
        if "x-hang" in head:  # neither another byte nor an end
            await self._over.wait()
        writer.close()
        await writer.wait_closed()


async def _request(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *rest = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
    return Seen(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))
