"""A service made of raw sockets, which can fail in every way a service can, and remembers what reached it.

What it does with a connection is a *manner*: a function of the socket. A real server's library would hide the moment at
which it fails, and the moment is what these tests are about.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 10.0

Manner = Callable[["Connection"], None]


@dataclass(frozen=True)
class Seen:
    """A request that was read whole."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Connection:
    """One connection: its socket, and the service that accepted it."""

    socket: socket.socket
    service: Service

    def read(self) -> Seen | None:
        """Read one whole request, and remember it; None when the client went away."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.socket.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        while len(body) < int(headers.get("content-length", 0)):
            body += self.socket.recv(65536)
        method, path, _ = first.split(" ")
        seen = Seen(method, path, headers, body)
        self.service.seen.append(seen)
        return seen

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


@dataclass
class Service:
    """A listening service. `seen` are the requests that reached it, in order."""

    url: str
    seen: list[Seen] = field(default_factory=list)

    @property
    def keys(self) -> list[str | None]:
        """The key that came with each request."""
        return [seen.headers.get("idempotency-key") for seen in self.seen]


@contextlib.contextmanager
def service(*manners: Manner) -> Iterator[Service]:
    """Serve: the nth connection gets the nth manner, and later ones the last."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = Service(f"http://127.0.0.1:{listening.getsockname()[1]}")
        open_: list[socket.socket] = []
        over = threading.Event()

        def serve() -> None:
            for n in range(1000):
                with contextlib.suppress(OSError):
                    accepted, _ = listening.accept()
                    if over.is_set():
                        accepted.close()
                        return
                    accepted.settimeout(PATIENCE)
                    open_.append(accepted)
                    manner = manners[min(n, len(manners) - 1)]
                    threading.Thread(target=_one, args=(manner, Connection(accepted, found)), daemon=True).start()

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        try:
            yield found
        finally:
            over.set()
            with contextlib.suppress(OSError):
                socket.create_connection(listening.getsockname(), timeout=1).close()
            serving.join(PATIENCE)
            for one in open_:
                one.close()


def _one(manner: Manner, connection: Connection) -> None:
    with contextlib.suppress(OSError):
        manner(connection)


def answers(status: int, content: object = None, headers: Sequence[tuple[str, str]] = ()) -> Manner:
    """Answer every request of the connection with this status; what is not text goes as JSON."""
    kind = "text/plain" if isinstance(content, str) or content is None else "application/json"
    body = (content or "").encode() if isinstance(content, str) or content is None else json.dumps(content).encode()
    given = {"content-type": kind, "content-length": str(len(body)), **dict(headers)}
    head = "\r\n".join([f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in given.items())])

    def manner(connection: Connection) -> None:
        while connection.read() is not None:
            connection.socket.sendall(head.encode() + b"\r\n\r\n" + body)

    return manner


def says(data: bytes, *, reset: bool = False) -> Manner:
    """Read one request, say these bytes, and close."""

    def manner(connection: Connection) -> None:
        connection.read()
        connection.socket.sendall(data)
        if reset:
            connection.reset()
        else:
            connection.socket.close()

    return manner


def closes(connection: Connection) -> None:
    """Close at once, before anything is read."""
    connection.socket.close()


def hangs(connection: Connection) -> None:
    """Read one request and say nothing until the client goes."""
    connection.read()
    connection.socket.recv(1)


def breaks(connection: Connection) -> None:
    """Reset the connection after the first byte."""
    connection.socket.recv(1)
    connection.reset()


def deaf(connection: Connection) -> None:
    """Read nothing and keep the connection."""
    threading.Event().wait(PATIENCE / 4)
    connection.socket.close()


def nobody() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextlib.contextmanager
def full() -> Iterator[str]:
    """An address whose queue of connections is full: connecting takes for ever."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def sent(seen: Seen) -> Any:
    """The JSON of a request's body."""
    return json.loads(seen.body)
