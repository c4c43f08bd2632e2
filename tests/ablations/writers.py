"""Two writers of one run: what must hold of them, as one sentence when it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import eventlog
from runner import crashtest
from tests.powerloss.story import AT, OPENING, RUN, RUNS, content

if TYPE_CHECKING:
    from tests.powerloss.sweep import Wrap


def a_second_opener(wrap: Wrap) -> str:
    """Hazard 23: while one process holds a run, another is refused."""
    machine = crashtest.Machine()
    eventlog.create(RUNS, RUN, at=AT, events=[OPENING], disk=wrap(crashtest.Process(machine, 1)))
    try:
        eventlog.open(RUNS, RUN, disk=wrap(crashtest.Process(machine, 2)))
    except eventlog.RunLocked:
        return ""
    return "a second process opened a run that another one holds"


def a_writer_that_lost_its_lock(wrap: Wrap) -> str:
    """Hazard 24: after its lock file was removed and another process opened the run, a writer acknowledges nothing."""
    machine = crashtest.Machine()
    first = eventlog.create(RUNS, RUN, at=AT, events=[OPENING], disk=wrap(crashtest.Process(machine, 1)))
    machine.unlink(RUNS / RUN / "lock")
    eventlog.open(RUNS, RUN, disk=wrap(crashtest.Process(machine, 2)))
    try:
        first.append(AT, [b'{"n":1}'])
    except eventlog.LogError:
        return ""
    found = eventlog.read(RUNS, RUN, disk=crashtest.Process(machine, 3)).lines
    return (
        "" if content(found[-1]) == (b'{"n":1}',) else "a save was acknowledged, and no reader will ever see its line"
    )
