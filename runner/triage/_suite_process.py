"""Runs pytest where it is started, and ends with whoever started it. A script: it must import nothing of ours.

Standard input is a pipe whose other end the starter holds: when it closes, because the starter closed it or died by
SIGKILL, this process group is killed. A second watch ends a test that blocks the interpreter itself.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading

_MOST_BYTES = 64 << 20
"""No file that a test writes, its captured output included, grows beyond this."""


def _follow(starter: int) -> None:
    os.read(starter, 1)
    os.killpg(0, signal.SIGKILL)


def main() -> int:
    """`_suite_process.py SECONDS [pytest's arguments]`; pytest's exit status."""
    import pytest  # noqa: PLC0415 (after the watches are set, in the process that needs it)

    return int(pytest.main(sys.argv[2:]))


if __name__ == "__main__":
    faulthandler.dump_traceback_later(float(sys.argv[1]), exit=True)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_BYTES, _MOST_BYTES))
    # pytest points descriptor 0 elsewhere while it captures, so the watch reads a copy.
    threading.Thread(target=_follow, args=(os.dup(0),), daemon=True).start()
    sys.exit(main())
