"""Sweeps: a story, a power cut after each of its operations, every image judged, every violation kept.

The same image under the same promise is judged once. Counted are distinct images: disks that differ in more than the
content of a lock or of a temporary file.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TYPE_CHECKING, Literal, NamedTuple

import eventlog
from eventlog import simdisk
from eventlog._disk import SECTOR
from eventlog.simdisk import Image, Killed
from tests.eventlog.powerloss.kept import keep
from tests.eventlog.powerloss.oracle import judge
from tests.eventlog.powerloss.story import PAGE, STEPS, Broken, Promise, Story
from tests.support.faulty_disk import EMPTY, Fault, FaultyDisk, Machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from eventlog.simdisk import Cut, Model
    from tests.support.faulty_disk import Pages

Since = Literal["start", "last step", "fault"]
Wrap = Callable[[eventlog.Disk], eventlog.Disk]
"""Puts a disk before each process's own."""
RECOVERY = 24
"""Changes that an opening makes after an unclean end, and a save after it, at most."""
INSIDE = 8
"""Images of one cut inside a recovery."""
SYNCS = ("datasync", "sync")


class Found(NamedTuple):
    """A disk that a story begins on, and what was promised of it."""

    image: Image
    promise: Promise


NOTHING = Found(EMPTY, Promise())


@dataclass
class Tally:
    """What sweeps found: distinct `images`, `cuts` generated, `faults` met, and `violations` as sentences.

    The first violation's image is kept under `place`.
    """

    place: Path | None = None
    images: set[bytes] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    cuts: int = 0
    faults: int = 0
    _judged: set[tuple[bytes, tuple[Promise, ...]]] = field(default_factory=set)

    def judge(self, cut: Cut, promises: tuple[Promise, ...], story: Story, name: str) -> bool:
        """Judge an image unless it was judged under those promises before; tell whether it is new and good."""
        self.cuts += 1
        key = cut.image.key
        if (key, promises) in self._judged:
            return False
        self.images.add(key)
        self._judged.add((key, promises))
        if not (why := judge(cut.image, promises)):
            return True
        if self.place is not None and not self.violations:
            repeat = f"python -m tests.eventlog.powerloss {name}"
            name += f", kept in {keep(cut, self.place, why=why, trace=story.machine.trace, repeat=repeat)}"
        self.violations.append(f"{name}, cut {cut.after}: {why}")
        return False

    def forget(self) -> None:
        """Drop what only further judging needs, so that little is sent to another process."""
        self._judged.clear()

    def add(self, other: Tally) -> None:
        """Take in what another tally found."""
        self.images |= other.images
        self.violations += other.violations
        self.cuts += other.cuts
        self.faults += other.faults

    def __str__(self) -> str:
        """Give the figures."""
        return (
            f"{len(self.images)} distinct images of {self.cuts} cuts, {self.faults} stories with a fault, "
            f"{len(self.violations)} violations"
        )


def plain(disk: eventlog.Disk) -> eventlog.Disk:
    """Put nothing before a disk."""
    return disk


def power(
    tally: Tally,
    steps: Sequence[str],
    model: Model = "posix",
    *,
    since: Since = "start",
    on: Found = NOTHING,
    faults: Sequence[Fault] = (),
    limit: int = 64,
    inside: int = 0,
    wrap: Wrap = plain,
    name: str = "",
) -> None:
    """Play `steps`, each process meeting its own of `faults`, and cut the power after each operation from `since` on.

    After a fault the next step goes on as a caller would, in another process if the fault killed the first. Of the new
    and good images one in `inside` is swept on: opened, written to, and the power cut again on the way. `name` repeats
    the sweep as the arguments of `tests.eventlog.powerloss`; it is made of the others unless the
    sweep is within another one.
    """
    name = name or _arguments(steps, model, faults, limit, inside)
    story = Story(Machine(on.image, seed=int(on is not NOTHING)), on.promise, faults=faults, wrap=wrap)
    first = 0
    try:
        for step in steps:
            if since == "last step" or (since == "fault" and len(story.refused) < len(faults)):
                first = len(story.machine.trace)
            story.play([step])
    except Broken as broken:
        tally.violations.append(f"{name}: {broken}")
        return
    tally.faults += bool(story.refused)
    for cut in simdisk.cuts(story.machine.trace, model, start=on.image, first=first, limit=limit):
        found = story.at(cut.after)
        good = tally.judge(cut, found, story, name)
        if good and inside and int.from_bytes(cut.image.key[:4], "big") % inside == 0:
            again = ("reopen", "two") if found[-1].held else ("create", "two")
            power(tally, again, model, on=Found(cut.image, found[-1]), limit=INSIDE, name=name)


def _arguments(steps: Sequence[str], model: Model, faults: Sequence[Fault], limit: int, inside: int) -> str:
    given = [
        ",".join(steps),
        f"--model {model}",
        f"--limit {limit}",
        *(f"--fault {written(fault)}" for fault in faults),
    ]
    return " ".join([*given, f"--inside {inside}"] if inside else given)


def sequences(longest: int) -> Iterator[tuple[str, ...]]:
    """Give every sequence of steps up to a length, after a `create`; closing a closed log is left out."""
    yield ("create",)
    for length in range(1, longest + 1):
        for steps in product(STEPS, repeat=length):
            if ("close", "close") not in pairwise(steps):
                yield ("create", *steps)


def deaths(steps: Sequence[str], wrap: Wrap = plain) -> Iterator[Fault]:
    """Give a SIGKILL before each change that the first process makes in `steps`, and ones in the middle of a write."""
    for nth, (verb, _) in enumerate(changes(steps, wrap), start=1):
        yield Fault(nth=nth, error=Killed)
        if verb == "write_some":
            for takes in (1, SECTOR, PAGE):
                yield Fault(nth=nth, error=Killed, takes=takes)


def two_deaths(steps: Sequence[str]) -> Iterator[tuple[Fault, Fault]]:
    """Give a SIGKILL in the middle of each save's write, and one at each change of the process that goes on from it."""
    for first in deaths(steps):
        if first.takes == SECTOR:
            for nth in range(1, RECOVERY + 1):
                yield first, Fault(nth=nth, error=Killed)


def failing_syncs(steps: Sequence[str], wrap: Wrap = plain) -> Iterator[Fault]:
    """Give an EIO of each sync of a file in `steps`, with each state that it may leave the page cache in."""
    count = sum(verb in SYNCS for verb, _ in changes(steps, wrap))
    pages: tuple[Pages, ...] = ("clean", "back", "dirty")
    for nth, left in product(range(1, count + 1), pages):
        yield Fault(verbs=SYNCS, nth=nth, error=errno.EIO, pages=left)


def changes(steps: Sequence[str], wrap: Wrap = plain) -> list[tuple[str, str]]:
    """Play steps without a fault and give the changes that their first process makes."""
    never = Fault(nth=1_000_000)
    found: list[FaultyDisk] = []

    def watched(disk: eventlog.Disk) -> eventlog.Disk:
        if isinstance(disk, FaultyDisk):
            found.append(disk)
        return wrap(disk)

    Story(Machine(), faults=[never], wrap=watched).play(steps)
    return [step for step in found[0].steps if step[0] in simdisk.CHANGES]


def written(fault: Fault) -> str:
    """Give a fault as the command line of `tests.eventlog.powerloss` takes it."""
    if fault.error is Killed:
        return f"kill:{fault.nth}:{-1 if fault.takes is None else fault.takes}"
    return f"sync:{fault.nth}:{fault.pages}" if fault.verbs == SYNCS else f"full:{fault.nth}:{fault.takes}"


def understood(text: str) -> Fault:
    """Read a fault given on the command line: kill:NTH:BYTES, sync:NTH:PAGES, full:NTH:BYTES."""
    kind, nth, how = text.split(":")
    if kind == "kill":
        return Fault(nth=int(nth), error=Killed, takes=None if how == "-1" else int(how))
    if kind == "full":
        return no_room(int(nth), int(how))
    pages: dict[str, Pages] = {"dirty": "dirty", "clean": "clean", "back": "back"}
    return Fault(verbs=SYNCS, nth=int(nth), error=errno.EIO, pages=pages[how])


def no_room(nth: int, takes: int) -> Fault:
    """Give ENOSPC at the `nth` write into a segment that has its name, after so many bytes."""
    return Fault(verbs=("write_some",), name="seg-", nth=nth, error=errno.ENOSPC, takes=takes)
