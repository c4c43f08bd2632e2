"""The same faults on the real system: strace makes the Nth call of the kernel fail, lie, or kill the process.

The seam says what the log asks of a disk; only the kernel says what Python makes of it. A fault is moved from the first
call of its kind to the last: when the Nth is not reached any more, all were tried.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

import eventlog
from tests.eventlog.faults import child
from tests.support import ROOT
from tests.support.figures import FIGURES
from tests.support.unmeasured import environment

KILLED = -9
RENAME, MKDIR = "/^rename", "/^mkdir"
"""Patterns: some machines have only the calls that end in `at`."""


class Inject(NamedTuple):
    """What strace does at a call; `only` names a file of the run when calls on others do not count.

    `stride` leaves calls out: 1 tries each, 4 every fourth.
    """

    call: str
    how: str
    only: str = ""
    stride: int = 1


QUICK = (
    Inject("fdatasync", "error=EIO", stride=4),
    Inject("pwrite64", "error=ENOSPC", stride=8),
    Inject("pwrite64", "retval=7", stride=9),
    Inject("fdatasync", "signal=SIGKILL", stride=5),
)
_ALIKE = 3
"""The stride for errors that the log treats as it treats one that is tried at every call."""
FULL = (
    *(inject._replace(stride=1) for inject in QUICK),
    *(Inject(call, f"error={error}") for call in ("fdatasync", "fsync") for error in ("EDQUOT", "ENOSPC", "EINTR")),
    Inject("fsync", "error=EIO"),
    Inject("pwrite64", "error=EIO"),
    *(Inject("pwrite64", f"error={error}", stride=_ALIKE) for error in ("EDQUOT", "EFBIG", "EROFS")),
    *(Inject("pwrite64", f"retval={count}") for count in (0, 100_000_000)),
    *(Inject(call, f"error={error}") for call in ("ftruncate", RENAME, MKDIR) for error in ("EIO", "ENOSPC", "EROFS")),
    *(Inject("openat", f"error={error}", "seg-000001.jsonl") for error in ("EMFILE", "EROFS", "EIO")),
    Inject("openat", "error=EMFILE", "head"),
    Inject("pread64", "error=EIO", "seg-000001.jsonl"),
    *(Inject("close", "error=EIO", name) for name in ("seg-000001.jsonl", "head", "lock")),
    *(Inject(call, "signal=SIGKILL") for call in ("pwrite64", "fsync", RENAME, "ftruncate", MKDIR)),
)


@pytest.fixture(scope="session")
def strace() -> str:
    """Give strace; without it fail under CI, and elsewhere say how to get it."""
    found = shutil.which("strace")
    works = (
        found and subprocess.run([found, "-o", os.devnull, "true"], check=False, capture_output=True).returncode == 0
    )
    if found and works:
        return found
    why = "strace is missing (apt-get install strace), or may not trace here (ptrace must be allowed)"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def traced(strace: str, runs: Path, inject: Inject, when: int) -> tuple[bool, list[int], str, int]:
    """Run the child with one call failing; give whether it was reached, what was told and refused, how it ended."""
    record = runs.parent / "strace"
    command = [strace, "-o", str(record), "-e", f"trace={inject.call}"]
    command += ["-e", f"inject={inject.call}:{inject.how}:when={when}"]
    if inject.only:
        command += [
            "-P",
            str(runs / child.RUN / inject.only),
            "-P",
            inject.only,
        ]  # also by its name in an open directory
    command += [sys.executable, "-m", "tests.eventlog.faults.child", str(runs)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=240
    )
    reached = "(INJECTED)" in record.read_text() or done.returncode == KILLED
    return reached, [int(line) for line in done.stdout.split()], done.stderr, done.returncode


def wrong(runs: Path, told: list[int], *, lied: bool) -> str:
    """Say what the disk holds against what was told; the system's lie may be found out, loudly, as damage."""
    try:
        reading = eventlog.store(runs).read(child.RUN)
    except eventlog.NoSuchRun:
        return "the run is gone" if told else ""
    except eventlog.LogDamaged as damaged:
        return "" if lied else str(damaged)
    saved = [line for line in reading.lines if line.seq > 1 and line.header is None]
    sizes = [*child.SIZES, 20][: len(saved)]
    if any(bytes(line.events[0]) != child.event(line.seq, size) for line, size in zip(saved, sizes, strict=True)):
        return "a line says something else than was saved"
    if len(reading.lines) - 1 < max(told, default=0):
        return f"line {max(told)} was told of, and the last is {len(reading.lines) - 1}"
    with eventlog.store(runs).open(child.RUN) as log:
        log.append(child.AT, [b"{}"])
    return "" if eventlog.store(runs).verify(child.RUN).ok else "it does not verify after it went on"


@pytest.mark.fault("failing system call")
@pytest.mark.fault("short write")
@pytest.mark.fault("killed between two operations")
@pytest.mark.parametrize(
    "inject",
    [*QUICK, *(pytest.param(inject, marks=pytest.mark.full) for inject in FULL)],
    ids=lambda inject: "-".join(filter(None, map(str, inject))),
)
def test_the_nth_call_goes_wrong(
    inject: Inject, strace: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Whatever the kernel answers, what was told is there, and refusals are ours."""
    tried = 0
    for when in count(1, inject.stride):
        runs = tmp_path / str(when) / "runs"
        runs.parent.mkdir()
        reached, told, refused, ended = traced(strace, runs, inject, when)
        assert "Traceback" not in refused, refused
        assert wrong(runs, told, lied="retval" in inject.how) == "", (when, told, refused)
        assert (ended == KILLED) == ("SIGKILL" in inject.how and reached)
        if not reached:
            assert (refused, ended, told) == ("", 0, list(range(1, 10)))
            break
        tried += 1
    assert tried > 0, "no call was reached: the injection does not work"
    record_property(FIGURES, f"{tried} calls")
