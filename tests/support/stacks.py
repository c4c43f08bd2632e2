"""What a process of a test is doing, told by itself: the stacks of its threads and tasks, on its standard error."""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import IO, Any, Final

ASKED: Final = signal.SIGUSR1
PATIENCE: Final = 10.0
_ENDS: Final = "-- these are all tasks --\n"


def tell_when_asked() -> None:
    """From now on tell what the threads and the running loop's tasks do, whenever somebody asks by a signal.

    The threads are told also while none of them runs Python; the tasks once the main thread does.
    """
    loop = asyncio.get_running_loop()

    def tell(_number: int, _frame: FrameType | None) -> None:
        for task in asyncio.all_tasks(loop):
            sys.stderr.write("\n".join([f"{task!r}", *_awaits(task.get_coro())]) + "\n")
        sys.stderr.write(_ENDS)
        sys.stderr.flush()

    signal.signal(ASKED, tell)
    faulthandler.register(ASKED, all_threads=True, chain=True)


def asked(process: subprocess.Popen[Any], errors: IO[str]) -> str:
    """What a process said so far and does now. `errors`, which is appended to, is what its standard error goes to."""
    before = _said(errors)
    process.send_signal(ASKED)
    deadline = time.monotonic() + PATIENCE
    while not (said := _said(errors))[len(before) :].endswith(_ENDS) and time.monotonic() < deadline:
        time.sleep(0.05)
    return said


def _said(errors: IO[str]) -> str:
    errors.seek(0)
    return errors.read()


def _awaits(waiting: Any) -> list[str]:
    """The lines in which a coroutine waits, down to what it waits for."""
    said = []
    while waiting is not None:
        frame: FrameType | None = _first(waiting, "cr_frame", "gi_frame", "ag_frame")
        if frame is None:
            said.append(f"    for {waiting!r}")
            break
        said.append(f'    "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_qualname}')
        waiting = _first(waiting, "cr_await", "gi_yieldfrom", "ag_await")
    return said


def _first(thing: object, *names: str) -> Any:
    return next((found for name in names if (found := getattr(thing, name, None)) is not None), None)
