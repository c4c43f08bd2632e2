"""A fork server: one clean process that forks a child for every function a test wants to run in a process of its own.

Deaths are tested with real processes and a real SIGKILL. A new interpreter for each would take most of a test's time,
and a test's own process has threads and must not be forked. So one process without threads imports what is needed once,
and forks. Each order comes over a connection of its own: the function's name, its arguments, and where output goes. The
answer is the child's pid at once and its exit status when it ends. A program that starts its server itself, as a client
of a stdio server does, is given `command`: it hands its stdin and stdout over to a fork.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support import ROOT
from tests.support.unmeasured import environment

PATIENCE = 300.0
"""Seconds that a child may take; one that takes longer is killed, which fails the test that waits for it."""
CONNECT = """
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    socket.send_fds(s, [sys.argv[2].encode() + b"\\n"], [0, 1])
    while s.recv(16):
        pass
"""


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit status, minus the signal's number when one killed it, and what it printed."""

    status: int
    output: str

    @property
    def value(self) -> Any:
        """What the function returned."""
        assert self.status == 0, self
        return json.loads(self.output.splitlines()[-1])

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.status == -signal.SIGKILL


class Child:
    """A child that runs, in process `pid`."""

    def __init__(self, connection: socket.socket, output: Path) -> None:
        self._answers = connection.makefile("r")
        self._output = output
        connection.close()
        self.pid = int(self._answers.readline())

    def end(self) -> Ended:
        """Wait until it ends."""
        with self._answers as answers:
            return Ended(int(answers.readline()), self._output.read_text())


class ForkServer:
    """Runs functions in forks. What they print goes to files in `folder`, as does what they return, in JSON."""

    def __init__(self, address: Path) -> None:
        self._address = str(address)
        self.folder = address.parent
        self._count = 0

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.support.forkserver", self._address]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE)

    def begin(self, function: Callable[..., Any], **given: Any) -> Child:
        """Run a function of a module in a fork, with arguments that JSON can hold; a path becomes text."""
        self._count += 1
        output = self.folder / f"child-{self._count}"
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE + 10)
        connection.connect(self._address)
        connection.sendall(_order(function, given, str(output)) + b"\n")
        return Child(connection, output)

    def run(self, function: Callable[..., Any], **given: Any) -> Ended:
        """Run a function in a fork and wait until it ends."""
        return self.begin(function, **given).end()

    def command(self, function: Callable[..., Any], **given: Any) -> list[str]:
        """A command whose stdin and stdout are those of a fork that runs the function."""
        return [sys.executable, "-S", "-E", "-c", CONNECT, self._address, _order(function, given, "").decode()]


def _order(function: Callable[..., Any], given: dict[str, Any], output: str) -> bytes:
    return json.dumps([function.__module__, function.__name__, given, output], default=str).encode()


class _Server:
    """The clean process."""

    def __init__(self, address: str) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen(64)
        self._callers: dict[int, socket.socket] = {}
        ended, self._wakeup = os.pipe2(os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakeup)
        self._selector = selectors.DefaultSelector()
        for file in (0, self._listening, ended):
            self._selector.register(file, selectors.EVENT_READ)
        self._ended = ended

    def serve(self) -> None:
        """Serve until stdin ends, then kill the children that are left."""
        os.write(1, b"ready\n")
        while True:
            ready = {key.fileobj for key, _ in self._selector.select(1.0)}
            if self._listening in ready:
                self._accept()
            if self._ended in ready:
                os.read(self._ended, 4096)
            self._reap()
            if 0 in ready:
                break
        for pid in self._callers:
            os.kill(pid, signal.SIGKILL)

    def _accept(self) -> None:
        caller, _ = self._listening.accept()
        order, files = b"", list[int]()
        while not order.endswith(b"\n"):
            part, passed, _, _ = socket.recv_fds(caller, 65_536, 2)
            order, files = order + part, files + passed
        module, name, given, output = json.loads(order)
        function = getattr(_imported(module), name)
        pid = os.fork()
        if pid == 0:
            for other in (self._listening, caller, *self._callers.values()):
                other.close()
            _child(function, given, files or [os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)])
        for file in files:
            os.close(file)
        self._callers[pid] = caller
        caller.sendall(b"%d\n" % pid)

    def _reap(self) -> None:
        while self._callers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            with self._callers.pop(pid) as caller, contextlib.suppress(OSError):
                caller.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _imported(name: str) -> Any:
    """A module, with what it wants done once before the first fork."""
    new = name not in sys.modules
    module = importlib.import_module(name)
    if new and hasattr(module, "warm"):
        module.warm()
    return module


def _child(function: Callable[..., Any], given: dict[str, Any], files: list[int]) -> None:
    status = 1
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(int(PATIENCE))
    try:
        for place, file in zip((0, 1) if len(files) > 1 else (1, 2), files * (3 - len(files)), strict=True):
            os.dup2(file, place)
        sys.stdin, sys.stdout = os.fdopen(0, "r"), os.fdopen(1, "w")
        found = function(**given)
        found = asyncio.run(found) if inspect.iscoroutine(found) else found
        if len(files) == 1:
            print(json.dumps(found))  # noqa: T201 (this is how a child answers)
        status = 0
    except BaseException:  # noqa: BLE001 (whatever a function raised is its answer)
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _Server(sys.argv[1]).serve()
