"""SIGINT and SIGTERM drain the runs of this process: the call in flight may end, then the run stops.

Signals are taken only in the main thread, only while a run is active, and only when nobody else has taken them: a
program with handlers of its own keeps them, and stops a run by cancelling it. A handler with a true attribute `drains`
gives way to the runs, and is called next.

A child that a tool forks inherits the handlers and none of the runs: there a signal means what it always means, or
`Process.terminate()` would do nothing, and a child that outlived its parent could not be ended.
"""

import asyncio
import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Iterator

from runner._engine.flight import Drain

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_active: weakref.WeakKeyDictionary[Drain, asyncio.AbstractEventLoop] = weakref.WeakKeyDictionary()
"""What a signal drains. It keeps no run alive, nor its lock, whose loop was left before the run had ended."""
_before: dict[int, object] = {}


def _ours_to_take(number: int) -> bool:
    now = signal.getsignal(number)
    if now in (signal.SIG_DFL, signal.default_int_handler) or getattr(now, "drains", False):
        return True
    owner = getattr(getattr(now, "func", now), "__qualname__", "")
    return owner == "Runner._on_sigint"  # asyncio.run's own, which would cancel instead of letting the call end


def _handle(number: int, frame: object) -> None:
    active = [(drain, loop) for drain, loop in _active.items() if not loop.is_closed()]
    if all(drain.signalled for drain, _ in active):  # the second time: stop at once, as if nobody had taken it
        signal.signal(number, signal.SIG_DFL)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        signal.raise_signal(number)
        return
    for drain, loop in active:
        drain.signalled = True
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(drain.ask)
    before = _before.get(number)
    if callable(before) and getattr(before, "drains", False):
        before(number, frame)


def draining() -> bool:
    """Whether a signal has asked the runs of this process to stop, and what is in flight may still end."""
    return any(drain.signalled for drain in _active)


@contextlib.contextmanager
def drains(drain: Drain) -> Iterator[None]:
    """While this lasts, a signal requests `drain`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not _active:
        for number in SIGNALS:
            if _ours_to_take(number):
                _before[number] = signal.signal(number, _handle)
    _active[drain] = asyncio.get_running_loop()
    try:
        yield
    finally:
        _active.pop(drain, None)
        if not _active and threading.current_thread() is threading.main_thread():  # one that was left may end anywhere
            for taken, handler in _before.items():
                if signal.getsignal(taken) is _handle:
                    signal.signal(taken, handler)  # type: ignore[arg-type] # as signal.signal returned it
            _before.clear()


def _in_child() -> None:
    """Give a forked child the system's own answer to the signals that were taken here."""
    for number in _before:
        if signal.getsignal(number) is _handle:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    _active.clear()
    _before.clear()


os.register_at_fork(after_in_child=_in_child)
