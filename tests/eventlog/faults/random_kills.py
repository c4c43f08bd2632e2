"""Writers that are forked one after another and killed at random moments, or watched while they write.

A fork costs a millisecond where an interpreter costs two hundred, so a thousand deaths are affordable.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import eventlog
from tests.eventlog.faults import child
from tests.support.file_logs import roll

LIVES = 40
"""Lives of one run; the next run begins small again."""
SHORT = 0.01
"""Seconds that a writer lives at most when it is killed by the clock: about two openings."""
ENOUGH = 20
"""Lines that must have been seen in one run before watching ends."""
LINES = 12
"""Lines that a writer tells of at most before it is killed otherwise."""


def opened(runs: Path, run: str) -> eventlog.Log:
    """Open a run, or make it."""
    try:
        return eventlog.store(runs).open(run)
    except eventlog.NoSuchRun:
        return eventlog.store(runs).create(run, at=child.AT, events=[b'{"type":"opened"}'])


def writer(runs: Path, run: str, told: int) -> None:
    """Save for ever, with a roll or a snapshot now and then, telling each acknowledged line's number through a pipe."""
    log = opened(runs, run)
    os.write(told, b"%d\n" % log.seq)
    while True:
        seq = log.seq + 1
        if seq % 29 == 0:
            roll(log)
        elif seq % 31 == 0:
            log.compact(b"{}", 1)
        else:
            log.append(child.AT, [child.event(seq, seq * 37 % 900)])
        os.write(told, b"%d\n" % seq)


def killed(runs: Path, run: str, rng: random.Random) -> int:
    """Let a writer live for a moment, or for some lines; give the last line that it told of, -1 if none."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reads)
        try:
            writer(runs, run, writes)
        finally:
            os._exit(1)  # a writer never ends by itself: whoever waits for it sees that it was not killed
    os.close(writes)
    with os.fdopen(reads, "rb") as told:
        first = b""
        if rng.random() < 0.3:  # most deaths among the saves, some before them
            time.sleep(rng.random() * SHORT)  # it waits for nothing: the moment of death is what is drawn
        else:
            first = b"".join(told.readline() for _ in range(rng.randint(1, LINES)))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        numbers = (first + told.read()).split()
    if os.WTERMSIG(status) != signal.SIGKILL:
        raise RuntimeError(f"a writer ended by itself, after telling of {numbers[-1:]}")
    return int(numbers[-1]) if numbers else -1


def deaths(runs: str, cycles: int, seed: int = 1) -> dict[str, int]:
    """Kill writers, each going on where the last one died, and look at the disk after every death."""
    place, rng = Path(runs), random.Random(seed)  # noqa: S311 - it picks moments; it protects nothing
    found = {"cycles": cycles, "told": 0, "lines": 0, "torn": 0, "wrong": 0}
    last = -1
    for cycle in range(cycles):
        run = f"r-{cycle // LIVES}"
        last = max(killed(place, run, rng), -1 if cycle % LIVES == 0 else last)
        try:
            reading = eventlog.store(place).read(run)
        except eventlog.NoSuchRun:
            found["wrong"] += last >= 0
            continue
        texts = {line.seq: bytes(line.events[0]) for line in reading.lines if line.seq > 1 and line.header is None}
        expected = {seq: child.event(seq, seq * 37 % 900) for seq in texts}
        found["wrong"] += len(reading.lines) - 1 < last or texts != expected
        found["torn"] += reading.torn is not None
        if cycle % LIVES == LIVES - 1 or cycle == cycles - 1:
            found["told"] += last + 1
            found["lines"] += len(reading.lines)
    return found


def lively(runs: Path) -> None:
    """Open, save, roll, close or forget to, again and again, in run after run, for ever."""
    number = 0
    while True:
        run = f"w-{number // LIVES}"
        log = opened(runs, run)
        for size in (20, 700, 20, 5000):
            log.append(child.AT, [child.event(log.seq + 1, size)])
        if number % 5 == 1:
            roll(log)
        elif number % 5 == 2:
            log.compact(b"{}", 1)
        (log.close, log.abandon)[number % 2]()
        number += 1


def watched(runs: str, looks: int) -> dict[str, int]:
    """Verify the newest run of a lively writer so many times, as fast as it goes."""
    place = Path(runs)
    pid = os.fork()
    if pid == 0:
        try:
            lively(place)
        finally:
            os._exit(1)
    found = {"looks": 0, "alarms": 0, "lines": 0}
    try:
        deadline = time.monotonic() + 180
        while (found["looks"] < looks or found["lines"] < ENOUGH) and time.monotonic() < deadline:
            for run in eventlog.store(place).runs()[:1]:
                verdict = eventlog.store(place).verify(run)
                found["looks"] += 1
                found["alarms"] += not verdict.ok
                found["lines"] = max(found["lines"], verdict.seq + 1)
    finally:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    if os.WTERMSIG(status) != signal.SIGKILL:
        raise RuntimeError("the writer ended by itself")
    return found
