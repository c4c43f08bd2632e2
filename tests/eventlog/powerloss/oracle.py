"""The oracle: what must hold of any disk that a power cut may leave, given what was promised before it.

Acknowledged lines are a prefix of the recovered ones, and those are the promise or the promise and the save that was in
flight. A status that is believed is about those lines. A pure crash is never called damage. Readers change nothing.
Recovering twice gives the same. What was cut is kept, byte for byte. Torn bytes exist only where a save was in flight.
A log whose close returned stays closed, without a byte after its end, until it is opened. The log goes on: one more
line, a proper close, and it verifies. Where no run was promised there may be none, and then its id is free.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

import eventlog
from eventlog import simdisk
from tests.eventlog.powerloss.kept import says
from tests.eventlog.powerloss.story import AT, HEADER, OPENING, RUN, RUNS, Promise, content, status_of, unlike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventlog.simdisk import Image, Machine

DIRECTORY = f"{RUNS}/{RUN}/"


def judge(image: Image, promises: Sequence[Promise]) -> str:
    """Say what is wrong with a disk under promises that were all in force, in one sentence; "" when nothing is."""
    try:
        return _judged(image, promises)
    except eventlog.LogError as error:
        return f"{type(error).__name__}: {error}"


def _judged(image: Image, promises: Sequence[Promise]) -> str:
    machine = simdisk.Machine(image, seed=1)
    try:
        reading = eventlog.Directory(RUNS, disk=simdisk.Process(machine)).scan(RUN)
    except eventlog.NoSuchRun:
        return "the run is gone" if any(promise.held for promise in promises) else _free(machine)
    ((_, status, _),) = eventlog.Directory(RUNS, disk=simdisk.Process(machine)).statuses([RUN])
    if machine.trace:
        return f"a reader {says(machine.trace[0], machine.directories)}"
    found = [content(line) for line in reading.lines]
    if status is not None and status != msgspec.json.encode(status_of(found)):
        return "a status of other lines is believed"
    for promise in promises:
        if wrong := _read(reading, found, promise):
            return wrong
    made_of = max(promise.snapshot for promise in promises)
    return _recovered(machine, image, reading, promises) or _goes_on(machine, found, made_of)


def _read(reading: eventlog.Reading, found: Sequence[object], promise: Promise) -> str:
    if reading.damage is not None:
        return f"false damage: {reading.damage}"
    if wrong := _lines(found, promise):
        return wrong
    if reading.torn is not None and not promise.maybe:
        return f"{reading.torn.size} torn bytes, and no save was in flight"
    if promise.closed and not reading.closed:
        return "a close returned, and the log is not closed: no closed head, or bytes after the end that it names"
    return ""


def _lines(found: Sequence[object], promise: Promise) -> str:
    held, most = len(promise.held), promise.held + promise.maybe
    if len(found) < held:
        return f"an effect was started on line {len(found)}, and the disk has only the lines before it"
    if tuple(found) != most[: len(found)]:
        return "a line says something else than was saved"
    if len(found) > len(most):
        return "a line that nobody tried to save"
    return "" if len(found) in {held, len(most)} else "a part of a save is there as if it were one"


def _recovered(machine: Machine, image: Image, reading: eventlog.Reading, promises: Sequence[Promise]) -> str:
    """Open twice, the first opener dying; both must find what the reader found, and keep what they cut."""
    told = {name for promise in promises for name in promise.cut}
    kept = {path: data for path, data in image.paths().items() if path.startswith(f"{DIRECTORY}torn-")}
    if not {DIRECTORY + name for name in told} <= kept.keys():
        return "evidence that an opener told of is gone"
    for pid in (2, 3):
        disk = simdisk.Process(machine, pid)
        log = eventlog.Directory(RUNS, disk=disk).open(RUN, accept=lambda _snapshot: True)
        if wrong := _opened(log, reading, promises, torn=pid == 2 and reading.torn is not None):
            return f"opening {pid - 1}: {wrong}"
        if log.cut is not None:
            kept[DIRECTORY + log.cut.evidence] = image.paths()[DIRECTORY + log.cut.file][log.cut.offset :][
                : log.cut.size
            ]
        disk.die()
    return _kept(machine, kept)


def _opened(log: eventlog.Log, reading: eventlog.Reading, promises: Sequence[Promise], *, torn: bool) -> str:
    made_of = max(promise.snapshot for promise in promises)
    after = reading.head is not None and reading.head.seq < made_of  # then everything is read, and no snapshot taken
    if not after and (log.snapshot.seq if log.snapshot else -1) < made_of:
        return f"a snapshot of line {made_of} was made, and it was not found"
    if (log.cut is not None) is not torn:
        return f"it cut {log.cut}, a reader saw {reading.torn}"
    return unlike(log, reading.lines)


def _kept(machine: Machine, kept: dict[str, bytes]) -> str:
    there = machine.directories[machine.find(DIRECTORY)]
    for path, cut in kept.items():
        name = path.removeprefix(DIRECTORY)
        if not name.endswith(hashlib.sha256(cut).hexdigest()):
            return "evidence does not hold what was cut"
        if name not in there or machine.files[there[name]] != cut:
            return "evidence is missing, or is not what was cut"
    return ""


def _goes_on(machine: Machine, found: Sequence[object], made_of: int) -> str:
    with eventlog.Directory(RUNS, disk=simdisk.Process(machine, 4)).open(RUN) as log:
        log.append(AT, [b'{"n":"more"}'])
    after = eventlog.Directory(RUNS, disk=simdisk.Process(machine, 5)).verify(RUN)
    if not after.ok or after.seq != len(found) or after.head != "closed" or after.torn:
        return f"the log did not go on: {after}"
    if made_of >= 0 and not any(cache.seq >= made_of and not cache.why for cache in after.snapshots):
        return f"the snapshot of line {made_of} is gone"
    return ""


def _free(machine: Machine) -> str:
    """Where there is no run, its id can be had."""
    log = eventlog.Directory(RUNS, disk=simdisk.Process(machine, 2)).create(RUN, at=AT, events=[OPENING])
    log.abandon()
    again = eventlog.Directory(RUNS, disk=simdisk.Process(machine, 3)).read(RUN)
    return "" if [content(line) for line in again.lines] == [HEADER, (OPENING,)] else "a run made anew is not as made"
