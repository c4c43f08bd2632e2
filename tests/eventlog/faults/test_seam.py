"""The Nth operation fails, for every N and every error: dead or rolled back as designed, nothing acknowledged lost.

A story is played once for each operation of the disk that it makes, reads included, with that operation failing. What a
caller may see is a `LogError`; what a later opener must see is what the caller was promised
(`tests.eventlog.powerloss.story`).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable

import pytest

import eventlog
from eventlog import simdisk
from eventlog.simdisk import Process
from tests.eventlog.powerloss.story import RUN, RUNS, Broken, Story, content
from tests.eventlog.powerloss.sweep import Wrap, plain
from tests.support.faulty_disk import VERBS, Fault, FaultyDisk, Machine
from tests.support.figures import FIGURES

LIFE = ("create", "one", "room", "close", "two", "roll", "one", "snapshot", "two", "snapshot", "snapshot", "close")
HEADS_WRITE = 6
"""Which write of a life is the head's first in place, after lock, segment, zeros, the new head and a line."""
RECOVERY = ("reopen", "one", "close")
NAMES = ("EIO", "ENOSPC", "EDQUOT", "EFBIG", "EMFILE", "EROFS", "EINTR")


def begun(steps: tuple[str, ...], *faults: Fault, wrap: Wrap = plain) -> Story:
    """Begin a life on an empty machine, or a recovery on one whose last writer was killed in the middle of a save."""
    machine = Machine()
    if steps == LIFE:
        return Story(machine, faults=faults, wrap=wrap)
    torn = Story(machine, faults=[Fault(verbs=("write_some",), name="seg-", nth=1, error=simdisk.Killed, takes=300)])
    torn.play(["create", "two"])
    return Story(machine, torn.promise, faults=faults, wrap=wrap)


def operations(steps: tuple[str, ...]) -> list[tuple[str, str]]:
    """Give what the first process asks of the disk in a story."""
    found: list[FaultyDisk] = []

    def watched(disk: eventlog.Disk) -> eventlog.Disk:
        if isinstance(disk, FaultyDisk):
            found.append(disk)
        return disk

    begun(steps, Fault(verbs=VERBS, nth=1_000_000), wrap=watched).play(steps)
    return found[0].steps


def wrong(fault: Fault, steps: tuple[str, ...] = LIFE) -> str:
    """Play a story with a fault, then see what a process without one finds; "" when it is what was promised."""
    story = begun(steps, fault)
    try:
        story.play(steps)
        story.die()
        if said := _unlike(story):
            return said
        story.refused.clear()
        story.play(["reopen", "one", "close"] if story.promise.held else ["create", "one", "close"])
        if any(isinstance(error, eventlog.RunExists) for error in story.refused):
            story.refused.clear()  # the run is there although its create was refused, and the promise allows that
            story.play(["reopen", "one", "close"])
    except (Broken, OSError) as error:
        return f"{type(error).__name__}: {error}"
    last = eventlog.Directory(RUNS, disk=Process(story.machine, 99)).verify(RUN)
    good = last.ok and last.seq == len(story.promise.held) - 1 and last.head == "closed" and not story.refused
    return "" if good else f"{story.refused} {last}"


def _unlike(story: Story) -> str:
    """Say how a reader finds something else than what was promised."""
    before = len(story.machine.trace)
    try:
        reading = eventlog.Directory(RUNS, disk=story.disk).read(RUN)
    except eventlog.NoSuchRun:
        return "the run is gone" if story.promise.held else ""
    except eventlog.LogDamaged as damaged:
        return str(damaged)
    if not story.promise.allows([content(line) for line in reading.lines]):
        return f"a reader finds {len(reading.lines)} lines, promised were {len(story.promise.held)}"
    return "a reader wrote" if len(story.machine.trace) != before else ""


def each(faults: Iterable[Fault], steps: tuple[str, ...] = LIFE) -> list[str]:
    """Try faults one by one and give what was wrong."""
    return [f"{fault}: {said}" for fault in faults if (said := wrong(fault, steps))]


@pytest.mark.fault("failing system call")
@pytest.mark.parametrize("steps", [LIFE, RECOVERY], ids=["life", "recovery"])
@pytest.mark.parametrize("name", ["EIO", "ENOSPC"])
def test_an_operation_fails(name: str, steps: tuple[str, ...]) -> None:
    """Every third operation, so that a mistake shows soon; the long run takes all of them."""
    asked = range(1, len(operations(steps)) + 1, 3)
    assert each((Fault(verbs=VERBS, nth=nth, error=getattr(errno, name)) for nth in asked), steps) == []


@pytest.mark.fault("failing system call")
@pytest.mark.full
@pytest.mark.parametrize("steps", [LIFE, RECOVERY], ids=["life", "recovery"])
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("name", NAMES)
def test_every_operation_fails(
    name: str, lasting: bool, steps: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    """Whichever operation fails, a caller sees one of our errors and no promise is broken."""
    asked = len(operations(steps))
    number = getattr(errno, name)
    assert asked > 40
    assert (
        each((Fault(verbs=VERBS, nth=nth, error=number, lasting=lasting) for nth in range(1, asked + 1)), steps) == []
    )
    record_property(FIGURES, f"{asked} operations failed by {name}, 0 broken promises")


@pytest.mark.fault("interrupted save")
@pytest.mark.parametrize("steps", [LIFE, RECOVERY], ids=["life", "recovery"])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.full)])
def test_an_interrupt_at_every_operation(stride: int, late: bool, steps: tuple[str, ...]) -> None:
    """KeyboardInterrupt goes through, and the writer is dead, or was not touched at all."""
    asked = range(1, len(operations(steps)) + 1, stride)
    assert each((Fault(verbs=VERBS, nth=nth, error=KeyboardInterrupt, late=late) for nth in asked), steps) == []


def test_the_stories_ask_everything_of_the_disk() -> None:
    """A verb that no story uses would never fail here. Who posts a request makes a link, who prunes removes folders."""
    assert {verb for steps in (LIFE, RECOVERY) for verb, _ in operations(steps)} >= set(VERBS) - {"link", "rmdir"}


def size_of(step: str) -> int:
    """Give the bytes of the line that a step writes first."""
    machine = Machine()
    Story(machine).play(["create", step])
    writes = [
        op
        for op in machine.trace
        if isinstance(op, simdisk.Wrote) and op.file == machine.find(RUNS / RUN / "seg-000001.jsonl")
    ]
    return len(writes[-1].data)


@pytest.mark.fault("failing system call")
@pytest.mark.parametrize("name", ["ENOSPC", "EDQUOT", "EFBIG"])
@pytest.mark.parametrize("step", ["one", pytest.param("two", marks=pytest.mark.full)])
def test_no_room_at_each_byte_of_a_line(name: str, step: str) -> None:
    """The line is taken back whole, the caller hears `DiskFull`, the log is alive and as it was."""
    for takes in range(0, size_of(step) + 1, 1 if name == "ENOSPC" else 13):
        machine = Machine()
        full = Fault(verbs=("write_some",), name="seg-", nth=1, error=getattr(errno, name), takes=takes)
        story = Story(machine, faults=[full])
        story.play(["create", step, "one"])
        assert [type(error) for error in story.refused] == [eventlog.DiskFull]
        found = eventlog.Directory(RUNS, disk=Process(machine, 2)).scan(RUN)
        assert [content(line) for line in found.lines] == list(story.promise.held)
        assert (len(found.lines), found.torn, found.damage) == (3, None, None)


@pytest.mark.fault("failing system call")
def test_a_quota_that_shows_only_at_the_sync() -> None:
    """EDQUOT from fdatasync is a failed sync like any other: dead, the line's fate unknown, no retry."""
    story = Story(Machine(), faults=[Fault(verbs=("datasync",), error=errno.EDQUOT, pages="clean")])
    story.play(["create", "two"])
    assert [type(error) for error in story.refused] == [eventlog.LogDead]
    assert len(story.promise.maybe) == 1


@pytest.mark.fault("short write")
def test_short_writes_of_every_length() -> None:
    """Whatever part of a line the system takes, the rest follows in its place."""
    for takes in range(1, size_of("one")):
        story = Story(Machine(), faults=[Fault(verbs=("write_some",), name="seg-", nth=1, takes=takes)])
        story.play(["create", "one", "close", "two"])
        assert story.refused == []
        found = eventlog.Directory(RUNS, disk=Process(story.machine, 2)).read(RUN)
        assert [content(line) for line in found.lines] == list(story.promise.held)


@pytest.mark.fault("short write")
@pytest.mark.parametrize("takes", [1000, 4096, 50_000])
def test_every_write_is_short(takes: int) -> None:
    """The same, in every write of a run's life: zeros, heads, recoveries."""
    assert wrong(Fault(verbs=("write_some",), takes=takes, lasting=True)) == ""


@pytest.mark.fault("short write")
@pytest.mark.parametrize("claims", [1, 4096, 2**40])
@pytest.mark.parametrize("nth", range(1, 8))
def test_a_write_that_claims_more_than_it_was_given(claims: int, nth: int) -> None:
    """An impossible count means that nothing is known: no promise is made on it. A head's is a warning."""
    story = Story(Machine(), faults=[Fault(verbs=("write_some",), nth=nth, claims=claims)])
    story.play(["create", "one", "two"])
    if nth != HEADS_WRITE:
        assert isinstance(story.refused[0], eventlog.LogDead | eventlog.DiskFailed)
    assert wrong(Fault(verbs=("write_some",), nth=nth, claims=claims)) == ""


def test_a_write_that_takes_nothing() -> None:
    """A count of zero would be tried for ever; it is an error at once."""
    story = Story(Machine(), faults=[Fault(verbs=("write_some",), name="seg-", nth=1, takes=0)])
    story.play(["create", "one"])
    assert [type(error) for error in story.refused] == [eventlog.LogDead]
