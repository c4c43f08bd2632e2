"""The service that the torture's tools call, and the only judge of what they did. It lives in the test's own process.

`/keyed` recognises a key, `/once` does not; each effect is an entry. A request says by the machine's own clock until
when it comes unless its sender, after its last check that it holds the run, or this service stands still (`x-until`):
so what is later is proven to be. At `/go` bodies ask whether they may go on.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Sent:
    """One request that may have acted: who sent it, by when it was to come, when it came, whether it acted."""

    kind: str
    key: str
    pid: int
    until: float
    came: float
    acted: bool

    @property
    def is_late(self) -> bool:
        """Whether it came when nobody could count on it any more."""
        return self.came > self.until


@dataclass
class Witness:
    """What happened. `begun` are the bodies that wait at `/go`, `looked` the keys that lookups asked for."""

    url: str = ""
    sent: list[Sent] = field(default_factory=list)
    begun: dict[str, int] = field(default_factory=dict)
    looked: Counter[str] = field(default_factory=Counter)
    open_gate: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def act(self, kind: str, key: str, pid: int, until: float) -> bool:
        """Take a request, and say whether it acted."""
        with self.lock:
            acted = kind != "keyed" or not any(one.key == key for one in self.sent)
            self.sent.append(Sent(kind, key, pid, until, time.monotonic(), acted))
            return acted

    def count(self, key: str) -> int:
        """How often a key has acted."""
        with self.lock:
            self.looked[key] += 1
            return sum(one.acted for one in self.sent if one.key == key)

    def effects(self, kind: str) -> Counter[str]:
        """How often each key has acted."""
        with self.lock:
            return Counter(one.key for one in self.sent if one.kind == kind and one.acted)

    def requests(self, key: str) -> list[Sent]:
        """What came under a key, in its order."""
        with self.lock:
            return [one for one in self.sent if one.key == key]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    witness: Witness

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """An effect, or a body that waits."""
        self.rfile.read(int(self.headers.get("content-length") or 0))
        kind, key = urlsplit(self.path).path[1:], self.headers["idempotency-key"]
        pid, until = int(self.headers["x-pid"]), float(self.headers["x-until"])
        if kind == "go":
            self.witness.begun[key] = pid
            self._say({"open": self.witness.open_gate.is_set()})
        else:
            self._say({"acted": self.witness.act(kind, key, pid, until)})

    def do_GET(self) -> None:
        """A lookup."""
        key = parse_qs(urlsplit(self.path).query)["key"][0]
        self._say({"n": self.witness.count(key)})

    def _say(self, content: object) -> None:
        data = json.dumps(content).encode()
        with contextlib.suppress(OSError):  # whoever asked may be dead
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    request_queue_size = 200
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that died mid-request is no news here."""


@contextlib.contextmanager
def witness() -> Iterator[Witness]:
    """A witness that serves until the end."""
    seen = Witness()
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"witness": seen}))
    seen.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
