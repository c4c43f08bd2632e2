"""Who may use a log that is open for writing: one thread at a time, of one process, until the writer is dead.

A signal handler that runs inside a save of its own thread is refused, because it would wait for itself. A forked child
may do nothing: two writers are one too many. What touched nothing on disk (`NotStorable`, `DiskFull`, `DiskFailed`)
leaves the writer alive; any other error leaves it dead. An interrupt leaves it dead as well, unless nothing had begun.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from eventlog._os_errors import pass_on, said
from eventlog.errors import DiskFailed, DiskFull, LockLost, LogBusy, LogDead, LogError, NotStorable

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventlog._disk import Disk
    from eventlog._flushes import Flush

_T = TypeVar("_T")
CUT_OFF: Final = "a save was cut off between its write and its return"


class Begun(Generic[_T]):
    """A thing of which the first part is done. The rest is done by whoever comes first: who began it, or the next.

    So nobody who wants the writer ever waits for a thread, or a loop, that may be waiting for them. `flush` is what the
    rest waits for.
    """

    def __init__(self, writer: Writer, what: str, flush: Flush | None, rest: Callable[[], _T]) -> None:
        self._writer, self.what, self.flush, self.rest = writer, what, flush, rest
        self.results: list[_T] = []
        self.error: LogError | None = None

    def end(self) -> _T:
        """Do the rest unless it was done, and give or raise what came of it."""
        if not self.results:
            with contextlib.suppress(LogError):  # this one's own error is kept, and another's is another's to hear
                self._writer.do(self.what, lambda: None)
        if not self.results:
            raise self.error or LogDead(self._writer.run, CUT_OFF)
        return self.results[0]


class Writer:
    """The one writer of a log. `dead` says why it writes nothing more, and is empty while it is alive.

    What is done sets `dead` while the disk is being changed, and says `done` when that is over.
    """

    def __init__(self, run: str, disk: Disk) -> None:
        self.dead = ""
        self.run, self._disk = run, disk
        self._pid = disk.pid()
        self._mutex = threading.RLock()
        self._inside = self._is_ending = False
        self._done = 0
        self._begun: Begun[Any] | None = None

    def do(self, what: str, act: Callable[[], _T]) -> _T:
        """Do one thing while no other thread does, and decide what an error leaves of the writer."""
        if self._disk.pid() != self._pid:
            raise LogDead(self.run, "this process was forked from the writer")
        before = self._done
        try:
            with self._mutex:
                self._refuse()
                return self._acted(what, act)
        except LogError:
            raise
        except BaseException:  # an interrupt too: it goes on up, and the writer must not outlive it unnoticed
            if self._done != before:  # an interrupt on the way out: the caller will never see this line
                self.dead = self.dead or CUT_OFF
            raise

    def _acted(self, what: str, act: Callable[[], _T]) -> _T:
        try:
            self._inside = True
            return act()
        except (NotStorable, DiskFull, DiskFailed):
            self.dead = ""
            raise
        except (LogDead, LockLost) as error:
            self.dead = error.why if isinstance(error, LogDead) else str(error)
            raise
        except OSError as error:
            pass_on(error)
            self.dead = f"{what} failed: {said(error)}"
            raise LogDead(self.run, self.dead) from error
        finally:
            self._inside = False

    def begin(self, what: str, act: Callable[[], tuple[Flush | None, Callable[[], _T]]]) -> Begun[_T] | None:
        """Do the first part of a thing, which gives a flush and the rest; None while another thread is at work.

        Until the rest is done the writer is dead for whoever does not know of it, so that nothing may cut it off.
        """
        if not self._mutex.acquire(blocking=False):
            return None
        try:
            self._begun = begun = Begun(self, what, *self.do(what, act))
        finally:
            self._mutex.release()
        return begun

    def done(self) -> None:
        """Live on after a change. It is counted first: an interrupt from here on still ends the writer."""
        self._done += 1
        self.dead = ""

    def end(self, act: Callable[[], None] | None, why: str, let_go: Callable[[], None]) -> None:
        """Do the last thing, if there is one and the writer is alive, and let go whatever comes of it.

        Nothing is done inside another end: a signal handler that let go there would have it write to files that are
        closed, whose numbers may be other files' by then.
        """
        if self._disk.pid() != self._pid:
            let_go()
            return
        with self._mutex:  # a save in flight must not find its files closed, and their numbers given to others
            if self._is_ending:
                return
            self._refuse(dead=False)
            try:
                self._is_ending = True
                self._last(act, why)
            finally:
                self._is_ending = False
                let_go()

    def _last(self, act: Callable[[], None] | None, why: str) -> None:
        try:
            if act is not None and not self.dead:
                act()
                self.dead = why
        except OSError as error:
            pass_on(error)
            raise LogDead(self.run, f"it could not be closed: {said(error)}") from error
        finally:
            self.dead = self.dead or why

    def _refuse(self, *, dead: bool = True) -> None:
        if self._inside:  # a signal handler that interrupted a save: the mutex is its own thread's already
            raise LogBusy(self.run)
        begun, self._begun = self._begun, None
        if begun is not None:
            try:
                begun.results.append(self._acted(begun.what, begun.rest))
            except LogError as error:
                begun.error = error
        if dead and self.dead:
            raise LogDead(self.run, self.dead)
