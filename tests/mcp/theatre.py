"""A process whose children play scenes and keep shops, and may die.

Importing the SDK takes a second, and a test process with threads must not be forked; so one clean process imports it
once and forks for each scene and each shop. It hears about scenes on stdin, and about shops on a socket: a shop over
stdio is started by whoever connects to it, with a small program that hands its stdin and stdout over and waits.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import mcp

ROOT = Path(__file__).parents[2]
PATIENCE = 40.0

CONNECT = """
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    socket.send_fds(s, [sys.argv[2].encode()], [0, 1])
    s.recv(16)
"""
"""What a client starts in place of a shop over stdio: it hands its pipes to a child of the clean process."""


class Playing:
    """A scene under way, in process `pid`."""

    def __init__(self, theatre: Theatre, pid: int, output: Path) -> None:
        self.pid = pid
        self._theatre = theatre
        self._output = output

    def end(self) -> tuple[int, str]:
        """Wait for its end: the exit status, minus the signal's number when one killed it, and what it said."""
        return self._theatre.say(wait=self.pid), self._output.read_text()


class Theatre:
    """Plays scenes and keeps shops. `address` is the socket at which it hears about shops."""

    def __init__(self, room: Path) -> None:
        self.address = room / "theatre"

    def __enter__(self) -> Self:
        """Start the clean process."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mcp.theatre", str(self.address)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert json.loads(self._process.stdout.readline()) == "ready"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE)

    def say(self, **order: Any) -> Any:
        """Tell the clean process something; what it answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def begin(self, runs: Path, where: str | mcp.StdioServerParameters, effect: str, die: str = "") -> Playing:
        """Let a scene begin."""
        output = runs.with_name(f"scene-{time.monotonic_ns()}")
        place = where if isinstance(where, str) else where.model_dump(exclude_none=True)
        return Playing(self, self.say(scene=[str(runs), place, effect, die], output=str(output)), output)

    def shop(self, file: Path, port: int) -> int:
        """Open a shop that listens on a port; the process that keeps it."""
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(self.address))
            asking.sendall(f"{file} {port}".encode())
            return int(asking.recv(16))

    def connector(self, file: Path) -> mcp.StdioServerParameters:
        """The way to a shop over stdio, one process for each connection."""
        return mcp.StdioServerParameters(
            command=sys.executable, args=["-S", "-E", "-c", CONNECT, str(self.address), str(file)]
        )


def _fork(body: Callable[[], object], *files: int) -> int:
    """A child that does `body`, with these files as its stdin and stdout."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        for place, file in zip((0, 1) if len(files) > 1 else (1, 2)[: len(files)], files, strict=True):
            os.dup2(file, place)
        sys.stdin, sys.stdout = os.fdopen(0, "r"), os.fdopen(1, "w")
        found = body()
        if found is not None:
            print(found)  # noqa: T201 (this is how a scene answers)
        status = 0
    except BaseException:  # noqa: BLE001 (whatever a child raised is what it has to say)
        traceback.print_exc(file=sys.stdout)
    finally:
        sys.stdout.flush()
        os._exit(status)


class _Keeper:
    """The clean process: forks when told to, and waits for its children."""

    def __init__(self, address: str) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen()
        self._ended: dict[int, int] = {}
        self._awaited: tuple[int, float] | None = None
        self._callers: dict[int, socket.socket] = {}

    def serve(self) -> None:
        """Until stdin ends; then kill what is left."""
        _answer("ready")
        while True:
            ready, _, _ = select.select([0, self._listening.fileno()], [], [], 0.005)
            if 0 in ready:
                line = sys.stdin.readline()
                if not line:
                    break
                self._order(json.loads(line))
            if self._listening.fileno() in ready:
                self._open_shop()
            self._reap()
        for pid in self._callers:
            os.kill(pid, signal.SIGKILL)

    def _order(self, order: dict[str, Any]) -> None:
        if "wait" in order:
            self._awaited = (order["wait"], time.monotonic() + PATIENCE)
            return
        from tests.mcp import scenes  # noqa: PLC0415 (imported before the first fork; the fixture's process needs it not)

        output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        _answer(_fork(lambda: asyncio.run(scenes.scene(*order["scene"])), output))
        os.close(output)

    def _open_shop(self) -> None:
        from tests.mcp import shop  # noqa: PLC0415 (the same)

        caller, _ = self._listening.accept()
        said, files, _, _ = socket.recv_fds(caller, 4096, 2)
        file, _, port = said.decode().partition(" ")
        pid = _fork(lambda: shop.serve(Path(file), int(port or 0)), *files)
        for open_ in files:
            os.close(open_)
        self._callers[pid] = caller
        if port:
            caller.sendall(str(pid).encode())

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            self._ended[pid] = os.waitstatus_to_exitcode(status)
            if pid in self._callers:
                self._callers.pop(pid).close()
        if self._awaited is None:
            return
        pid, deadline = self._awaited
        if pid in self._ended:
            self._awaited = None
            _answer(self._ended[pid])
        elif time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)


def _answer(found: object) -> None:
    print(json.dumps(found), flush=True)  # noqa: T201 (the protocol)


if __name__ == "__main__":
    from tests.mcp import scenes, shop  # noqa: F401 (imported once, here, for all children)

    _Keeper(sys.argv[1]).serve()
