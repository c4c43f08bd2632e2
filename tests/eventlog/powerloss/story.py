"""A story: steps on a log on a simulated disk, and what was promised to its callers at each moment.

A promise is made by a return: once `append` has returned, an effect may start, and no disk may ever again be without
that line. What is in flight may turn out either way, whole. So the promise is a list of lines that must be there and
one save that may be, and it is noted at the number of operations the disk had seen by then.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

import eventlog
from eventlog import simdisk
from eventlog._disk import SECTOR
from tests.eventlog.powerloss.kept import says
from tests.support.faulty_disk import Fault, FaultyDisk
from tests.support.file_logs import roll

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

RUNS, RUN = Path("/runs"), "r"
AT = datetime(2026, 11, 29, 15, 14, 58, 123456, tzinfo=UTC)
OPENING = b'{"type":"opened"}'
HEADER = "header"
PAGE = 4096

Content = str | tuple[bytes, ...]
"""What a line says: `HEADER`, or its events."""


class Broken(Exception):
    """A live writer or opener did what no return allows; the message says what."""


class Promise(NamedTuple):
    """Lines that callers were told of, and the save in flight (all of it or nothing). No line held: no run promised.

    `closed` from the return of a close until the next opening begins. `cut` names the evidence that openers told of.
    `snapshot` is the line that the last snapshot was made of, -1 without one.
    """

    held: tuple[Content, ...] = ()
    maybe: tuple[Content, ...] = ()
    closed: bool = False
    cut: tuple[str, ...] = ()
    snapshot: int = -1

    def allows(self, found: Sequence[Content]) -> bool:
        """Tell whether a log may hold exactly these lines."""
        return tuple(found) in {self.held, self.held + self.maybe}


class Story:
    """Plays steps. `marks` are (operations seen, promise), `refused` the errors that steps ended in.

    `wrap` puts another disk before each process's own: a safeguard taken out. The first process meets the first of
    `faults`, the one after its death the second.
    """

    def __init__(
        self,
        machine: simdisk.Machine,
        promise: Promise | None = None,
        *,
        faults: Sequence[Fault] = (),
        wrap: Callable[[eventlog.Disk], eventlog.Disk] = lambda disk: disk,
    ) -> None:
        """Begin on a machine that holds what `promise` says."""
        self.machine = machine
        self.marks = [(0, promise or Promise())]
        self.refused: list[BaseException] = []
        self.log: eventlog.Log | None = None
        self._wrap, self._number, self._pid = wrap, 0, 0
        self._faults = list(faults)
        self.disk: eventlog.Disk = self._boot()

    @property
    def promise(self) -> Promise:
        """The promise now."""
        return self.marks[-1][1]

    def at(self, operations: int) -> tuple[Promise, ...]:
        """Give every promise that was in force while the disk had seen exactly so many operations."""
        before = [promise for seen, promise in self.marks if seen < operations][-1:]
        return tuple(dict.fromkeys([*before, *(promise for seen, promise in self.marks if seen == operations)]))

    def play(self, steps: Iterable[str]) -> None:
        """Play steps by name; what a step is refused by is kept, and the next one goes on as a caller would."""
        for step in steps:
            try:
                self._step(step)
            except (eventlog.LogError, KeyboardInterrupt) as error:
                self.refused.append(error)
                if self.log is None or not self._may_go_on(error, step):
                    self._is_dead()
                    self._let_go()
            except simdisk.Killed as error:
                self.refused.append(error)
                self.die()

    def die(self) -> None:
        """End the process as by SIGKILL and begin another."""
        self._process.die()
        self.log = None
        self.disk = self._boot()

    def _boot(self) -> eventlog.Disk:
        self._pid += 1
        self._process = simdisk.Process(self.machine, self._pid)
        fault, self._faults = self._faults[:1], self._faults[1:]
        return self._wrap(FaultyDisk(self._process, *fault) if fault else self._process)

    def _step(self, step: str) -> None:
        if step == "create":
            self._note(maybe=(HEADER, (OPENING,)))
            self.log = eventlog.Directory(RUNS, disk=self.disk).create(RUN, at=AT, events=[OPENING])
            self._note(held=(HEADER, (OPENING,)))
        elif step == "close":
            if self.log is not None:
                log, self.log = self.log, None
                log.close()
                self._note(closed=True)
        elif step == "reopen":
            if self.log is not None:
                self.die()
            self._opened()
        elif step in {"roll", "snapshot"}:
            self._rolled(self._opened(), step)
        else:
            self._append(self._opened(), step)

    def _opened(self) -> eventlog.Log:
        if self.log is None:
            self._note(maybe=self.promise.maybe)
            self.log = eventlog.Directory(RUNS, disk=self.disk).open(RUN, accept=lambda _snapshot: True)
            whole = eventlog.Directory(RUNS, disk=simdisk.Process(self.machine, 999)).read(RUN).lines
            found = tuple(content(line) for line in whole)
            if not self.promise.allows(found):
                raise Broken(f"opened on {len(found)} lines, promised were {len(self.promise.held)}")
            if why := unlike(self.log, whole):
                raise Broken(why)
            self.log.status = status_of(found)
            self._note(held=found, cut=(self.log.cut.evidence,) if self.log.cut else ())
        return self.log

    def _append(self, log: eventlog.Log, step: str) -> None:
        self._number += 1
        event = self._event(log, step)
        self._note(maybe=((event,),))
        after = (*self.promise.held, (event,))
        room = 70_000 if step == "room" else 0
        log.append(AT + timedelta(seconds=self._number), [event], room=room, status=status_of(after))
        self._note(held=after)

    def _rolled(self, log: eventlog.Log, step: str) -> None:
        seq = log.seq
        self._note(maybe=(HEADER,))
        if step == "roll":
            roll(log)
            self._note(held=(*self.promise.held, HEADER))
        else:
            log.compact(state_of(self.promise.held), VERSION)
            self._note(held=(*self.promise.held, HEADER), snapshot=seq)

    def _may_go_on(self, error: BaseException, step: str) -> bool:
        """Tell whether an error leaves the log alive; then nothing is in flight."""
        rolls = step in {"roll", "snapshot"}
        alive = isinstance(error, eventlog.DiskFull) or (rolls and isinstance(error, eventlog.DiskFailed))
        if alive and step in STEPS:
            self._note(held=self._held())
        return alive

    def _held(self) -> tuple[Content, ...]:
        """Give the lines of a log that is alive after all: its roll may have been done before something went wrong."""
        rolled = self.log is not None and self.log.seq == len(self.promise.held)
        return (*self.promise.held, HEADER) if rolled else self.promise.held

    def _event(self, log: eventlog.Log, step: str) -> bytes:
        event = b'{"n":%d%d,"text":""}' % (log.life, self._number)
        frame = len(b'{"seq":%d,"life":%d,"at":"2026-11-29T15:14:58.123456Z","prev":"","events":[],"sum":""}\n')
        bare = frame - 4 + len(f"{log.seq + 1}{log.life}") + 64 + len(event)
        head = eventlog.Directory(RUNS, disk=simdisk.Process(self.machine, 999)).scan(RUN).head
        size = SIZES[step](bare, head.offset if head else 0)
        return event[:-2] + (b"%d." % self._number * size)[: size - bare] + b'"}'

    def _is_dead(self) -> None:
        """After a failed save the writer takes nothing more; one that an interrupt left alive goes on as if unasked."""
        if self.log is None:
            return
        seen, held = len(self.machine.trace), self._held()
        try:
            self.log.append(AT, [b'{"n":"again"}'])
        except eventlog.LogError:
            if len(self.machine.trace) != seen:
                raise Broken(f"a dead writer {says(self.machine.trace[-1], self.machine.directories)}") from None
        else:
            if not isinstance(self.refused[-1], KeyboardInterrupt):
                raise Broken(f"a writer went on after {self.refused[-1]}")
            self._note(held=(*held, (b'{"n":"again"}',)))

    def _let_go(self) -> None:
        if self.log is not None:
            self.log.abandon()
            self.log = None

    def _note(
        self,
        *,
        held: tuple[Content, ...] | None = None,
        maybe: tuple[Content, ...] = (),
        closed: bool = False,
        cut: tuple[str, ...] = (),
        snapshot: int | None = None,
    ) -> None:
        before = self.promise
        promise = Promise(
            before.held if held is None else held,
            maybe,
            closed,
            before.cut + cut,
            before.snapshot if snapshot is None else snapshot,
        )
        self.marks.append((len(self.machine.trace), promise))


def content(line: eventlog.Line) -> Content:
    """Give what a line says."""
    return HEADER if line.header else tuple(bytes(event) for event in line.events)


def state_of(lines: Sequence[Content]) -> bytes:
    """Make the state of a snapshot: how many lines there were, and a digest of what they said."""
    return b'{"lines":%d,"digest":"%b"}' % (
        len(lines),
        hashlib.sha256(repr(tuple(lines)).encode()).hexdigest().encode(),
    )


class Status(msgspec.Struct, frozen=True):
    """What a writer says of its run: a digest of the events in its lines."""

    digest: str


def status_of(lines: Sequence[Content]) -> Status:
    """Make the status of a run with these lines; headers say nothing."""
    return Status(state_of([line for line in lines if line != HEADER]).decode())


def unlike(log: eventlog.Log, whole: Sequence[eventlog.Line]) -> str:
    """Say how a log was not opened on the lines it holds: those after its snapshot, and that of those before it."""
    if [line.sum for line in log.lines] != [line.sum for line in whole[len(whole) - len(log.lines) :]]:
        return f"opened on {len(log.lines)} lines that are not the last ones"
    before = [content(line) for line in whole[: len(whole) - len(log.lines)]]
    if log.snapshot is None:
        return "opened on a part of the lines, and on no snapshot" if before else ""
    return "" if log.snapshot.state == state_of(before) else "opened on a snapshot of other lines"


def _to_edge(past: int) -> Callable[[int, int], int]:
    def size(bare: int, offset: int) -> int:
        return bare + -(offset + bare - past) % SECTOR

    return size


SIZES: dict[str, Callable[[int, int], int]] = {
    "one": lambda bare, _: bare + 20,
    "two": lambda bare, _: bare + SECTOR,
    "pages": lambda _bare, _: 5 * PAGE,
    "edge": _to_edge(0),
    "past": _to_edge(1),
    "room": lambda bare, _: bare + 20,
}
"""Bytes of a step's line, from those of the smallest line there and the place where it begins."""
STEPS = (*SIZES, "roll", "snapshot", "close", "reopen")
VERSION = 1
"""How the state of a snapshot is made, for a reader that could make others."""
