"""Virtual time: an event loop that jumps to its next timer as soon as there is nothing else to do.

Sleeps, timeouts and waits pass at once and in order, so a sweep repeats exactly. The loop really waits for threads,
but not for one that waits itself; work for a thread pool runs at once, in the loop's own thread. What was sent before
its client gave up has waited already: in a context with `waited` set, sleeps take no time. A tool's thread that acts
late waits for its virtual time, or for the end of the process.

Processes that live at once have a thread and a loop each, and one of them runs at a time: the one whose next timer is
the earliest, until it waits for a later one. So they have one order, too.
"""

import asyncio
import contextlib
import contextvars
import functools
import math
import selectors
import threading
from asyncio import futures
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import runner
from eventlog.simdisk import Killed

_NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_PATIENCE: Final = 20.0
_MOMENT: Final = 1e-6
_SLEEP_ENDS: Final = futures._set_result_unless_cancelled  # type: ignore[attr-defined]  # noqa: SLF001 (by this callback a sleep is known from a timeout)
waited: Final[contextvars.ContextVar[bool]] = contextvars.ContextVar("refold_waited", default=False)


class Stuck(RuntimeError):
    """A simulated process waits for something that never comes."""


class VirtualTime:
    """The seconds that have passed, in all processes of one scenario; of those that live at once one runs at a time.

    `lingers` is how many real seconds threads get before each jump; none while one of them `waits` for a later time.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.lingers = 0.0
        self.waits = False
        self._turn = threading.Condition()
        self._waiting: dict[threading.Thread, float] = {}
        self._running = threading.current_thread()

    def wait(self, until: float) -> None:
        """Have others live until a time; at infinity, until `wake` or for as long as there are any."""
        if not self._waiting:  # nobody else lives
            self.now = max(self.now, until) if until < math.inf else self.now
            return
        me = threading.current_thread()
        with self._turn:
            self._waiting[me] = until
            self._pass_on()
            self._turn.wait_for(lambda: self._running is me)

    @property
    def is_one_process(self) -> bool:
        """Whether nothing can happen meanwhile but what the running process does in its own loop."""
        return not self._waiting and not self.lingers

    def wake(self, process: threading.Thread, at: float) -> None:
        """Have a process that waits go on at another time."""
        self._waiting[process] = at

    def beside(self, body: Callable[[], None]) -> threading.Thread:
        """Begin a process in a thread of its own, at its turn."""

        def live() -> None:
            with self._turn:
                self._turn.wait_for(lambda: self._running is thread)
            try:
                body()
            finally:
                with self._turn:
                    self._pass_on()

        thread = threading.Thread(target=live, name="refold-beside", daemon=True)
        self._waiting[thread] = self.now
        thread.start()
        return thread

    def _pass_on(self) -> None:
        """Have the process run whose time comes first."""
        self._running = min(self._waiting, key=lambda process: self._waiting[process])
        until = self._waiting.pop(self._running)
        self.now = max(self.now, until) if until < math.inf else self.now
        self._turn.notify_all()


class VirtualClock(runner.Clock):
    """The clocks of a simulated machine. `sleep` is asyncio's, so it passes at once in a `VirtualLoop`."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time

    def wall(self) -> datetime:
        return _NOON + timedelta(seconds=self._time.now)

    def monotonic(self) -> float:
        return self._time.now


class _Selector(selectors.DefaultSelector):
    """Waits for files, and never for timers."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if timeout is None:
            found = super().select(_PATIENCE)
            if not found:
                raise Stuck(f"nothing happened in {_PATIENCE:g} s, and no timer is set")
            return found
        found = super().select(0.0 if self._time.waits else min(timeout, self._time.lingers))
        if not found:
            self._time.wait(self._time.now + timeout)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop of one simulated process."""

    def __init__(self, time: VirtualTime) -> None:
        self._seconds = time
        self.over: dict[threading.Thread, threading.Event] = {}
        self._last: tuple[Callable[..., object], asyncio.TimerHandle] | None = None
        super().__init__(_Selector(time))

    def time(self) -> float:
        return self._seconds.now

    def call_later(  # type: ignore[override] # typeshed ties the arguments to the callback
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """As asyncio has it, except for a sleep whose time has passed already, and for looks that find nothing."""
        delay = 0.0 if callback is _SLEEP_ENDS and waited.get() else delay
        handle = super().call_later(delay * self._looks(delay, callback), callback, *args, context=context)
        self._last = callback, handle
        return handle

    def _looks(self, delay: float, callback: Callable[..., object]) -> int:
        """How many times at once a callback may wait that comes again and again.

        Where all that it did was to set itself a timer, it finds nothing before something else has happened.
        """
        now = self.time()
        if (
            self._last is None
            or self._last[0] != callback
            or abs(self._last[1].when() - now) > _MOMENT
            or self._ready  # type: ignore[attr-defined] # asyncio's own, as the next
            or not self._seconds.is_one_process
        ):
            return 1
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        others = min((timer.when() for timer in timers if not timer.cancelled()), default=now)
        return max(1, int((others - now) / delay) - 1)

    def call_soon_threadsafe(  # type: ignore[override] # typeshed ties the arguments to the callback
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """As asyncio has it. It is what a tool's thread does last, whether or not the loop is still open."""
        try:
            return super().call_soon_threadsafe(callback, *args, context=context)
        finally:
            if over := self.over.get(threading.current_thread()):
                over.set()

    def from_thread(self, callback: Callable[[], object]) -> None:
        """Have it called in the loop, from a thread that has not ended."""
        super().call_soon_threadsafe(callback)

    def run_in_executor(  # type: ignore[override] # it returns a finished future
        self,
        executor: object,  # noqa: ARG002 (asyncio's own signature)
        func: Callable[..., Any],
        *args: Any,
    ) -> asyncio.Future[Any]:
        """Run it at once, so that everything has one order."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except BaseException as error:  # noqa: BLE001 (the future carries it)
            future.set_exception(error)
        return future


class Threads:
    """The threads of the tools of one process. Made in the process's own loop."""

    def __init__(self, time: VirtualTime) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._time, self._loop = time, loop
        self._wakeups: list[threading.Event] = []
        self._over = False

    def act_after(self, seconds: float, *, alone: bool = True) -> None:
        """In a tool's thread that is to act later: wait so long. `alone`: no other call runs beside it."""
        self._loop.over[threading.current_thread()] = threading.Event()
        if seconds:
            wakeup = threading.Event()
            self._wakeups.append(wakeup)
            with contextlib.suppress(RuntimeError):  # the process has ended, and `end` wakes it
                self._loop.from_thread(functools.partial(self._wait, wakeup, seconds, alone=alone))
            if self._over:
                wakeup.set()
            wakeup.wait(_PATIENCE)

    def _wait(self, wakeup: threading.Event, after: float, *, alone: bool) -> None:
        def wake() -> None:
            self._time.waits = False
            wakeup.set()

        self._time.waits = alone and not self._over
        self._loop.call_later(after, wake)

    def end(self) -> None:
        """Wake all threads that still wait, so that they act now; return when all have ended."""
        self._over = True
        self._time.waits = False
        for wakeup in self._wakeups:
            wakeup.set()
        for over in list(self._loop.over.values()):
            over.wait(_PATIENCE)


@contextlib.contextmanager
def quiet_deaths() -> Iterator[None]:
    """Report nothing for a thread that ends with its simulated process; report other errors as before."""
    said = threading.excepthook

    def ended(args: threading.ExceptHookArgs) -> None:
        if not issubclass(args.exc_type, Killed):
            said(args)

    threading.excepthook = ended
    try:
        yield
    finally:
        threading.excepthook = said
