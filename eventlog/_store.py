"""A store: the place where runs live, and what can be done with it.

`runs=` of a public function is a path, a URL or a store; `store` makes one value of it, once, and below that door only
the store travels. What a store must do itself is abstract here, and little: create a run of given lines, open one, read
one, list names, say who holds one. Everything else is written once for all stores.
"""

import abc
import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from eventlog import _listing, _new_run, _verify
from eventlog._create import copy_run, named
from eventlog._disk import DISK, Disk
from eventlog._dispatch import Dispatch
from eventlog._files import Files
from eventlog._inbox import Unread
from eventlog._line import Header, Line, Parent
from eventlog._listing import TornCopy
from eventlog._log import Log
from eventlog._new_run import Beginning
from eventlog._scan import Reading
from eventlog._snapshot import Snapshot
from eventlog._tail import Tail
from eventlog._verify import Verdict
from eventlog.errors import DiskFailed, NoSuchRun, NotARunsDirectory

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Store(Dispatch):
    """A place where runs live.

    `disk` is the file system of this machine, on which the workspaces of its runs are, and `shared_workspace` tells
    whether whoever may carry a run on finds them there.
    """

    disk: Disk = DISK
    shared_workspace: bool = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @abc.abstractmethod
    def create_run(self, begin: Beginning, *, ready: Callable[[], None] | None = None) -> Log:
        """Make a run, and open it, after `ready` as in `fork`."""

    @abc.abstractmethod
    def open(self, run: str, *, accept: Callable[[Snapshot], bool] | None = None) -> Log:
        """Open a run for writing, after everything that was acknowledged.

        Args:
            run: The run's id.
            accept: Asked about each snapshot that the log confirms, the newest first. Once it accepts one, `lines` are
                only those after it, and `snapshot` says which one that is. A snapshot that is missing, damaged or
                another run's is passed over.

        Raises:
            BadRunId: The id can't be one; nothing was touched.
            NoSuchRun: There is no such run; `RunPruned` if there was one.
            RunLocked: Another writer holds the run.
            LogDamaged: Something durable is gone or changed; nothing was touched.
            OtherFormat: Another edition wrote the log; nothing was touched.
            ReadOnly, NetworkStorage, DiskFull, DiskFailed: The place can't be used.
        """

    @abc.abstractmethod
    def scan(self, run: str, *, accept: Callable[[Snapshot], bool] | None = None) -> Reading:
        """Read a run like `read`, but give damage back in `.damage`, with the good lines before it in `.lines`."""

    @abc.abstractmethod
    def written(self, run: str, segment: int, offset: int, seq: int) -> bytes | None:
        """Give what stands in a segment from a byte on, where line `seq` has its newline; None if it is not there.

        At most the bytes after the first NUL may be missing. Raises `LogError`, `OSError`.
        """

    def tail(self, reading: Reading) -> Tail:
        """Give the place at the end of a reading: its `more` reads on from there."""
        return Tail(self.written, reading)

    @abc.abstractmethod
    def files(self, run: str) -> Files:
        """Give the files of a run, read only. Raises `BadRunId`, `NotARunsDirectory`, `NoSuchRun`."""

    @abc.abstractmethod
    def post(self, run: str, name: str, request: bytes) -> bool:
        """Leave a request in the inbox of a run, whoever holds it, and return once it is durable.

        Args:
            run: The run's id.
            name: What identifies the request: at most 200 of `a-z 0-9 . _ -`, a letter first.
            request: At most 8 MiB.

        Returns:
            Whether it was left; False when a request of this name lies there already.

        Raises:
            NotStorable: The name or the request can't be one.
            BadRunId, NoSuchRun, NotARunsDirectory, ReadOnly, DiskFull, DiskFailed, Untrusted: It can't be left there.
        """

    @abc.abstractmethod
    def inbox(self, run: str) -> Unread:
        """List the requests that nobody took yet, and what lies among them and is none. Raises what `files` raises."""

    @abc.abstractmethod
    def request(self, run: str, name: str) -> bytes | str | None:
        """Read a request without taking it: its bytes, a sentence why it is none, or None when it is gone."""

    def now(self) -> datetime:
        """Give the time of day (UTC) by the clock that all holders share: this machine's, or a server's."""
        return datetime.now(UTC)

    def host(self) -> tuple[str, int]:
        """Give the name of this machine and the id of this process, as a holder is named."""
        return self.disk.host(), self.disk.pid()

    def create(self, run: str, *, at: datetime, events: Sequence[bytes], parent: Parent | None = None) -> Log:
        """Make a run that begins with a header (line 0) and, if there are `events`, an opening line; open it.

        Args:
            run: The new run's id.
            at: The time of its first lines; it must know its zone.
            events: The events of the opening line, each the bytes of one JSON object.
            parent: What a fork comes from.

        Raises:
            BadRunId: The id can't be one; nothing was touched.
            RunExists: The id is taken.
            RunPruned: The id is that of a run that was pruned.
            RunLocked: Another process is making it.
            NotStorable: The events could not be read back as they were given.
            ReadOnly, NotARunsDirectory, NetworkStorage, DiskFull, DiskFailed: The place can't be used.
        """
        return self.create_run(_new_run.opening(run, at=at, events=events, parent=parent))

    def fork(
        self,
        lines: Sequence[Line],
        new: str,
        *,
        keep: int,
        at: datetime,
        events: Sequence[bytes],
        ready: Callable[[], None] | None = None,
    ) -> Log:
        """Make the run `new` of another run's `lines`, from its first to the last they share, and open it.

        Whoever forks a log that may be written holds its lock.

        Args:
            lines: The lines that both share.
            new: The new run's id.
            keep: How many events of the last shared line are taken.
            at: The time of the line that follows.
            events: The events of that line, which begins a life of its own.
            ready: Called when the fork is durable and does not exist yet; what it raises leaves no fork.

        Raises:
            LogError: What `create` raises.
        """
        return self.create_run(_new_run.forked(lines, new, keep=keep, at=at, events=events), ready=ready)

    def salvage(self, run: str, new: str, *, follows: Callable[[Line], bool] = lambda _: True) -> Log:
        """Copy what is good of `run` into a new run, and open that. Its header's `salvaged` names every gap.

        Takes no lock on `run` and writes nothing there.

        Args:
            run: The damaged run.
            new: The new run's id.
            follows: Asked about each line in order, as it stands in the damaged run; ends the copy by saying no.

        Raises:
            NoSuchRun: There is no such run, or not one line of events in it can be copied.
            OtherFormat, DiskFailed: It can't be read.
            LogError: What `create` raises.
        """
        begin = _new_run.salvaged(self.files(run), self.scan(run), new, follows)
        if begin is None:
            raise NoSuchRun(run, str(self), "not one line of events in it can be copied")
        return self.create_run(begin)

    def read(self, run: str, *, accept: Callable[[Snapshot], bool] | None = None) -> Reading:
        """Read a run, live or not. Takes no lock, creates nothing, works in a read-only directory.

        Args:
            run: The run's id.
            accept: As in `open`; without it every line is read.

        Raises:
            LogDamaged: Something durable is gone or changed.
            NoSuchRun, BadRunId, NotARunsDirectory, OtherFormat, DiskFailed: It can't be read.
        """
        reading = self.scan(run, accept=accept)
        if reading.damage is not None:
            raise reading.damage
        return reading

    def raw(self, reading: Reading) -> Iterator[bytes]:
        """Give the bytes of the good lines that were read, in pieces, exactly as they stand."""
        files = self.files(reading.run)
        for segment in reading.segments:
            yield from files.pieces(segment.file, 0, segment.end)

    def verify(self, run: str, *, expect: str | None = None) -> Verdict:
        """Verify a run, live or not, without lock. `expect` is a `sum` kept elsewhere, of any line of the run.

        Raises `BadRunId`, `NoSuchRun`, `NotARunsDirectory`, `OtherFormat`, `DiskFailed`; damage is in the verdict.
        """
        with self._there(run):
            return _verify.verify(self.files(run), run, expect)

    def copy(self, run: str, to: str | Path) -> None:
        """Copy a run, live or not, into a directory of runs, where it can be read and not be opened.

        Raises what `read` raises, `RunExists`, and what `create` raises of the directory.
        """
        found = self.read(run)
        with self._there(run):
            copy_run(self.files(run), found, self.disk, named(self.disk, to))

    def runs(self) -> list[str]:
        """List the ids of the runs, newest first. Raises `NotARunsDirectory`.

        A run whose beginning cannot be read comes last: it is still a run, and whoever opens it is told what is wrong.
        """
        found = [name for name in self.names() if self._is_run(name)]
        found.sort(key=lambda name: (self.began(name) or _NEVER, name), reverse=True)
        return found

    def began(self, run: str) -> datetime | None:
        """Give the time in a run's first line, read alone; None when it cannot be read. Raises `BadRunId`."""
        line = self._first(run)
        return line.at if line is not None else None

    def header(self, run: str) -> Header | None:
        """Read what the first line of a run says, and no more of it; None where there is no such line.

        Raises `BadRunId`.
        """
        line = self._first(run)
        return line.header if line is not None else None

    def parents(self) -> dict[str, str]:
        """Give every fork, pruned ones too, with the run it was forked from. Raises `NotARunsDirectory`."""
        headers = ((run, self.header(run)) for run in self.names())
        return {run: parent for run, header in headers if header is not None and (parent := header.forked_from)}

    def torn(self, run: str) -> list[TornCopy]:
        """Give the copies of unfinished saves that openers cut off. Raises what `files` raises, `DiskFailed`."""
        return _listing.torn(self.files(run))

    @contextlib.contextmanager
    def _there(self, run: str) -> Iterator[None]:
        """Tell whoever could not go on with a run that it was pruned meanwhile."""
        try:
            yield
        except DiskFailed:
            self.files(run)
            raise

    def _first(self, run: str) -> Line | None:
        """Read the first line of a run; None where there is none to read."""
        try:
            return _listing.first_line(self.files(run), 1)
        except (NoSuchRun, NotARunsDirectory, DiskFailed):
            return None

    def _is_run(self, name: str) -> bool:
        """Tell whether a name is a run's; one that cannot be looked into counts, and says why when it is opened."""
        with contextlib.suppress(DiskFailed):
            try:
                self.files(name)
            except (NoSuchRun, NotARunsDirectory):
                return False
        return True


Runs = str | Path | Store
"""Where runs live, as a caller may say it: a path, a URL, or a store."""
