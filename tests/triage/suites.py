"""A workspace's tests are really run once for each content of the workspace, in all of a test session.

What pytest says of a folder depends on the files in it alone, and saying it takes half a second, most of it an import.
The jobs under test pass through the same contents again and again, killed here and there, so each content's answer is
kept in a folder that the session's processes share; and pytest runs in forks of one process that has imported it. The
tests of `_suite` itself use neither.
"""

import contextlib
import hashlib
import io
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from runner.triage import _suite
from runner.triage._task import files
from tests.support import ROOT

_REAL = _suite.run
_SERVER = "import sys; sys.path.insert(0, sys.argv[1]); from tests.triage.suites import main; main()"


class Order(msgspec.Struct):
    """The arguments of `_suite.run`."""

    folder: str
    path: str
    seconds: float
    each: bool


class Forks:
    """`_suite.run` by forks of a process that has imported pytest."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-c", _SERVER, str(ROOT)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, folder: Path, path: str = "", *, seconds: float = _suite.SECONDS, each: bool = False) -> _suite.Suite:
        """See `_suite.run`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(Order(str(folder), path, seconds, each)) + b"\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=_suite.Suite)

    def close(self) -> None:
        """No more runs."""
        self._process.communicate()


class Remembered:
    """`_suite.run` with a memory: results are kept in `folder`, but for those that ran out of time."""

    def __init__(self, folder: Path, real: Callable[..., _suite.Suite] = _REAL) -> None:
        self._folder = folder
        self._real = real

    def run(self, folder: Path, path: str = "", *, seconds: float = _suite.SECONDS, each: bool = False) -> _suite.Suite:
        """See `_suite.run`."""
        asked = hashlib.sha256(f"{path}\n{each}\n".encode())
        for name, place in files(folder):
            data = place.read_bytes()
            asked.update(f"{name}\n{len(data)}\n".encode() + data)
        kept = self._folder / asked.hexdigest()
        if kept.exists():
            return msgspec.json.decode(kept.read_bytes(), type=_suite.Suite)
        suite = self._real(folder, path, seconds=seconds, each=each)
        if suite.status >= 0:
            beside = kept.with_name(f".tmp-{secrets.token_hex(8)}")
            beside.write_bytes(msgspec.json.encode(suite))
            beside.replace(kept)
        return suite


def _fork(order: Order, output: int) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 70
    try:
        import pytest  # noqa: PLC0415 (the server has imported it)

        signal.setitimer(signal.ITIMER_REAL, order.seconds)  # kills, since nobody handles it
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        sys.dont_write_bytecode = True
        environment = _suite.environment()
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(order.folder)
        status = int(pytest.main(_suite.words(Path(order.folder), order.path, each=order.each)))
        sys.stdout.flush()
    finally:
        os._exit(status)


def main() -> None:
    """Orders in, one a line, and what came of each out."""
    import pytest  # noqa: PLC0415 (so that no fork has to)

    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--version"])  # loads what pytest loads only when it begins
    for line in sys.stdin.buffer:
        order = msgspec.json.decode(line, type=Order)
        with tempfile.TemporaryFile() as output:
            status = _fork(order, output.fileno())
            suite = _suite.said(status, output, Path(order.folder), each=order.each)
        sys.stdout.buffer.write(msgspec.json.encode(suite) + b"\n")
        sys.stdout.buffer.flush()
