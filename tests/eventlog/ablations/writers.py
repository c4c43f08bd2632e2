"""Two writers of one run: what must hold of them, as one sentence when it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import eventlog
from eventlog import simdisk
from tests.eventlog.powerloss.story import AT, OPENING, RUN, RUNS, content

if TYPE_CHECKING:
    from tests.eventlog.powerloss.sweep import Wrap


def a_second_opener(wrap: Wrap) -> str:
    """While one process holds a run, another is refused."""
    machine = simdisk.Machine()
    eventlog.Directory(RUNS, disk=wrap(simdisk.Process(machine, 1))).create(RUN, at=AT, events=[OPENING])
    try:
        eventlog.Directory(RUNS, disk=wrap(simdisk.Process(machine, 2))).open(RUN)
    except eventlog.RunLocked:
        return ""
    return "a second process opened a run that another one holds"


def a_writer_that_lost_its_lock(wrap: Wrap) -> str:
    """After its lock file was removed and another process opened the run, a writer acknowledges nothing."""
    machine = simdisk.Machine()
    first = eventlog.Directory(RUNS, disk=wrap(simdisk.Process(machine, 1))).create(RUN, at=AT, events=[OPENING])
    machine.unlink(RUNS / RUN / "lock")
    eventlog.Directory(RUNS, disk=wrap(simdisk.Process(machine, 2))).open(RUN)
    try:
        first.append(AT, [b'{"n":1}'])
    except eventlog.LogError:
        return ""
    found = eventlog.Directory(RUNS, disk=simdisk.Process(machine, 3)).read(RUN).lines
    return (
        "" if content(found[-1]) == (b'{"n":1}',) else "a save was acknowledged, and no reader will ever see its line"
    )
