"""Flushes that the kernel carries on by itself, so that a thread with many logs need not stand still for each.

Linux's io_submit(2) takes an fdatasync(2) and tells by an eventfd that it is over, with its error. A thread that waits
in fdatasync costs its process two changes of threads; this costs none. What a kernel or a container refuses is done
without: nothing here raises for that.

A flush is over once somebody has collected what the kernel says of it. One thread collects at a time, any thread may,
and it collects for all: so whoever needs one flush can wait for it, also where the loop that began it stands still. A
signal handler may need one while its own thread collects, so the locks let that thread in again.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import struct
import sys
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NUMBERS: Final = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
"""The numbers of io_setup, io_destroy, io_getevents and io_submit; the C library has no functions for them."""
_FDSYNC: Final = 3
_TELL: Final = 1
_ROOM: Final = 1024
"""Flushes under way at once."""
_MANY: Final = 256
"""Flushes collected at a time."""
_ORDER: Final = struct.Struct("<QIiHhIQQqQII")
"""The kernel's `iocb`: our number, 0, 0, what to do, 0, the file, 0, 0, 0, 0, tell an eventfd, which one."""
_EVENT: Final = struct.Struct("<QQqq")
"""The kernel's `io_event`: our number, where the order was, the result, 0."""


class Flush:
    """One flush that was ordered."""

    def __init__(self, of: Flushes, number: int) -> None:
        """Belong to those of one thread. `error` is the system's number for what went wrong, once it is `over`."""
        self._of, self.number = of, number
        self.over, self.taken, self.error = False, True, 0

    def wait(self) -> bool:
        """Return once the file's bytes and size are durable, raise `OSError` when they are not; False: nobody tried."""
        self._of.wait(self)
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        return self.taken


class Flushes:
    """The flushes that one thread orders. When some are over, `fileno` can be read. `refuses`: the kernel took none."""

    refuses = False

    def __init__(self, ctypes: Any, call: Callable[..., int], context: Any, event: int) -> None:
        """Take over a context of the kernel's, what calls it, and the eventfd that it tells."""
        self._ctypes, self._call, self._context, self._event = ctypes, call, context, event
        self._under_way: dict[int, Flush] = {}
        self._numbers = itertools.count(1)
        self._orders: list[tuple[Flush, Any]] = []
        self._ordering, self._collecting = threading.RLock(), threading.RLock()
        self._over: deque[Flush] = deque()
        self._found = ctypes.create_string_buffer(_EVENT.size * _MANY)
        given_back = weakref.finalize(self, _destroyed, functools.partial(call, 1, context), self._event)
        given_back.atexit = False  # the kernel does it when the process ends, and a second Ctrl-C can't interrupt that

    def fileno(self) -> int:
        """Give the descriptor that can be read when a flush is over."""
        return self._event

    def begin(self, fd: int) -> Flush:
        """Order a file's bytes and size to be made durable, from `submit` on."""
        flush = Flush(self, next(self._numbers))
        order = _ORDER.pack(flush.number, 0, 0, _FDSYNC, 0, fd, 0, 0, 0, 0, _TELL, self._event)
        with self._ordering:
            self._under_way[flush.number] = flush
            self._orders.append((flush, self._ctypes.create_string_buffer(order)))
        return flush

    def submit(self) -> bool:
        """Hand what was ordered to the kernel, all at once; False when it does not take all: the rest is over then."""
        with self._ordering:
            orders = [order for order in self._orders if not order[0].over]
            if not orders:
                return True
            places = [self._ctypes.addressof(order) for _, order in orders]
            taken = self._call(3, self._context, len(places), (self._ctypes.c_void_p * len(places))(*places))
            if taken < 0:
                self.refuses, taken = self._ctypes.get_errno() != errno.EAGAIN, 0
            for flush, _ in orders[taken:]:
                flush.taken = False
                self._end(flush)
            self._orders = []
        return taken == len(orders)

    def ended(self) -> Iterator[Flush]:
        """Give those that are over, each once."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._event)
        with self._collecting:
            while self._collect(0) == _MANY:
                pass
        while self._over:
            yield self._over.popleft()

    def wait(self, flush: Flush) -> None:
        """Return once this one is over."""
        if not flush.over:
            self.submit()
        while not flush.over:
            with self._collecting:
                if not flush.over:
                    self._collect(1)

    def _collect(self, least: int) -> int:
        """Note what the kernel says of flushes. It stays in `_found` until it is noted: an interrupt loses none."""
        many = self._noted()
        if not many:
            told = self._call(2, self._context, least, _MANY, self._found, None)
            if told < 0 and (error := self._ctypes.get_errno()) != errno.EINTR:
                raise OSError(error, os.strerror(error))
            many = self._noted()
        return many

    def _noted(self) -> int:
        many = 0
        while many < _MANY:
            number, _, result, _ = _EVENT.unpack_from(self._found, many * _EVENT.size)
            if not number:
                break
            flush = self._under_way.get(number)
            if flush is not None:
                flush.error = -result
                self._end(flush)
            many += 1
        self._ctypes.memset(self._found, 0, many * _EVENT.size)
        return many

    def _end(self, flush: Flush) -> None:
        self._over.append(flush)
        flush.over = True
        self._under_way.pop(flush.number, None)


def made() -> Flushes | None:
    """Give a place for flushes, or None where the system has nothing of the kind, or refuses it."""
    numbers = NUMBERS.get(os.uname().machine) if sys.platform == "linux" and sys.maxsize > 1 << 32 else None
    if numbers is None:
        return None
    try:
        import ctypes  # noqa: PLC0415 - few processes need it, and every import of the package would wait for it

        event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    except (ImportError, OSError):  # a Python may be built without ctypes; or no descriptor is left
        return None
    syscall, context = ctypes.CDLL(None, use_errno=True).syscall, ctypes.c_ulong(0)
    syscall.restype = ctypes.c_long

    def call(what: int, *given: Any) -> int:
        done: int = syscall(*(ctypes.c_long(one) if isinstance(one, int) else one for one in (numbers[what], *given)))
        return done

    if call(0, _ROOM, ctypes.byref(context)) == 0:
        if call(2, context, 0, 0, None, None) == 0:  # one that orders must be able to collect
            return Flushes(ctypes, call, context, event)
        call(1, context)
    os.close(event)
    return None


def _destroyed(destroy: Callable[[], int], event: int) -> None:
    destroy()
    os.close(event)
