"""SIGINT and SIGTERM park the runs of this process (spec row 9): the call in flight may end, then the run stops.

Signals are taken only in the main thread, only while a run is active, and only when nobody else has taken them: a
program with handlers of its own keeps them, and parks a run by cancelling it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator

from runner._work import Parking

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_active: list[tuple[asyncio.AbstractEventLoop, Parking]] = []
_before: dict[int, object] = {}


def _ours_to_take(number: int) -> bool:
    now = signal.getsignal(number)
    if now in (signal.SIG_DFL, signal.default_int_handler):
        return True
    owner = getattr(getattr(now, "func", now), "__qualname__", "")
    return owner == "Runner._on_sigint"  # asyncio.run's own, which would cancel instead of letting the call end


def _ring(number: int, _frame: object) -> None:
    if all(parking.rung for _, parking in _active):  # the second time: stop at once, as if nobody had taken it
        signal.signal(number, signal.SIG_DFL)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        signal.raise_signal(number)
        return
    for loop, parking in _active:
        parking.rung = True
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(parking.ask)


def parking() -> bool:
    """Whether a signal has asked the runs of this process to park, and what is in flight is still let end."""
    return any(entry.rung for _, entry in _active)


@contextlib.contextmanager
def parks(parking: Parking) -> Iterator[None]:
    """While this lasts, a signal asks `parking`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    entry = (asyncio.get_running_loop(), parking)
    if not _active:
        for number in SIGNALS:
            if _ours_to_take(number):
                _before[number] = signal.signal(number, _ring)
    _active.append(entry)
    try:
        yield
    finally:
        _active.remove(entry)
        if not _active:
            for taken, handler in _before.items():
                if signal.getsignal(taken) is _ring:
                    signal.signal(taken, handler)  # type: ignore[arg-type] # as signal.signal returned it
            _before.clear()
