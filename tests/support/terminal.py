"""A person at a terminal: a pseudo-terminal of a given width with the command on the other side."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.cli.conftest import environment

# Ctrl-C reaches those whose controlling terminal it is typed on, and a new session has none until it takes one.
_BEGIN = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-P", "-m", "runner._cli", *sys.argv[1:]])
"""


class Terminal:
    """The command running on a terminal; `seen` is everything it has shown so far."""

    def __init__(self, *words: object, cwd: Path, columns: int = 80, env: Mapping[str, str] | None = None) -> None:
        self._near, far = pty.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.child = subprocess.Popen(
            [sys.executable, "-c", _BEGIN, *(str(word) for word in words)],
            cwd=cwd,
            env=environment(**{"TERM": "xterm", **(env or {})}),
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
        )
        os.close(far)
        self._bytes = b""

    @property
    def seen(self) -> str:
        """What was shown, controls included."""
        return self._bytes.decode(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.wait()
        os.close(self._near)

    def until(self, text: str | re.Pattern[str], seconds: float = 90.0) -> None:
        """Read on until `text`, or what fits it, was shown; fail after `seconds`."""
        deadline = time.monotonic() + seconds
        wanted = text if isinstance(text, re.Pattern) else re.compile(re.escape(text))
        while not wanted.search(self.seen):
            assert self._read(deadline), f"{wanted.pattern!r} was not shown: {self.seen!r}"

    def type(self, text: str) -> None:
        """Type on the keyboard."""
        os.write(self._near, text.encode())

    def end(self, seconds: float = 90.0) -> int:
        """Read on until the command ended; its status."""
        deadline = time.monotonic() + seconds
        while self._read(deadline):
            pass
        return self.child.wait(timeout=max(deadline - time.monotonic(), 0.1))

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._near], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return False
        try:
            more = os.read(self._near, 1 << 16)
        except OSError:  # Linux says that the other side has closed
            return False
        self._bytes += more
        return bool(more)
