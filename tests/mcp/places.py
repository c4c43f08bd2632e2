"""The shop as a test sees it: its file, its process, and the ways to reach it."""

import json
import os
import signal
import socket
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import mcp

from tests.mcp import shop
from tests.support.forkserver import ForkServer

PATIENCE = 90.0


class Shop:
    """A shop over one SQLite file. `over_http` opens it once; over stdio each connection opens one."""

    def __init__(self, forks: ForkServer, file: Path) -> None:
        self.file = file
        self.pid = 0
        self.port = 0
        self._forks = forks

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.open:
            os.kill(self.pid, signal.SIGKILL)

    def over_stdio(self) -> mcp.StdioServerParameters:
        """The way to it that starts a process."""
        command, *arguments = self._forks.command(shop.serve, file=self.file)
        return mcp.StdioServerParameters(command=command, args=arguments)

    @property
    def open(self) -> bool:
        """Whether a process listens for it."""
        with suppress(ProcessLookupError):
            if self.pid:
                os.kill(self.pid, 0)
                return True
        return False

    def over_http(self) -> str:
        """The way to the process that listens; it is started when there is none, on the same port as before."""
        if not self.open:
            self.port = self.port or _free_port()
            self.pid = self._forks.begin(shop.serve, file=self.file, port=self.port).pid
            _listening(self.port)
        return f"http://127.0.0.1:{self.port}/mcp"

    def trouble(self, when: str, pid: int = 0) -> None:
        """Order a death: of the shop itself, or of the process `pid`."""
        self.file.with_suffix(".trouble").write_text(f"{when} {pid}")

    def payments(self) -> list[tuple[str | None, int, str]]:
        """Every payment: its key, its cents and its note."""
        return self._all("SELECT key, cents, note FROM payment ORDER BY id")

    def seen(self) -> list[dict[str, Any]]:
        """What came beside the arguments of each request, without our prefix."""
        rows = [json.loads(meta) for (meta,) in self._all("SELECT meta FROM seen ORDER BY rowid")]
        return [{name.partition("/")[2]: value for name, value in row.items()} for row in rows]

    def _all(self, query: str) -> list[Any]:
        with closing(sqlite3.connect(self.file)) as db:
            return db.execute(query).fetchall()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def _listening(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        assert time.monotonic() < end, "the server does not listen"
        time.sleep(0.02)
