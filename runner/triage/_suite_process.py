"""Runs pytest where it is started, and ends with all that its tests started. A script: it must import nothing of ours.

pytest runs in a child, in a session of its own. This process only watches: its standard input is a pipe whose other end
the starter holds, and when that closes, because the starter closed it or died by SIGKILL, everything ends. So does it
when pytest ends or its time is up. On Linux this process is also the one that orphans of its descendants fall to, so a
test's child that left the group, or the session, is found and ended too.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

_MOST_BYTES = 64 << 20
"""No file that a test writes, its captured output included, grows beyond this."""

_SUBREAPER = 36
"""Linux: `prctl(PR_SET_CHILD_SUBREAPER, 1)`; see prctl(2)."""


def main(seconds: float, words: list[str]) -> int:
    """Run pytest with these arguments for at most `seconds`; its exit status, or 128 and a signal's number."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 (not on every system)

        resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_BYTES, _MOST_BYTES))
    command = [sys.executable, "-P", "-m", "pytest", *words]
    pytest = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 (our words)
    until = time.monotonic() + seconds
    while pytest.poll() is None and time.monotonic() < until and not select.select([0], [], [], 0.02)[0]:
        pass
    status = -signal.SIGKILL if pytest.returncode is None else pytest.returncode
    _end_all(pytest.pid)
    return status if status >= 0 else 128 - status


def _end_all(group: int) -> None:
    """Kill the group of the tests, then every child there is, until there is none: orphans come one by one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    until = time.monotonic() + 5
    while time.monotonic() < until:
        for child in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.005)
        except ChildProcessError:
            return


def _children() -> list[int]:
    """The processes whose parent this one is. Without /proc none are found, and the group must do."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid():
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
