"""What every benchmark shares: arms run in turns, the statistics, and the checks that keep a figure honest.

The rule: absolute times move by 40 % from run to run, so only ratios of arms that took turns in one process are table.
In each round every arm does all its saves, in an order that moves on with the round; its p50 is compared with that of
the first arm in the same round, and the median over the rounds is reported. The first arm takes part twice: how far its
second time is from 1 says what the other ratios are worth. A directory that no power cut could survive is refused:
there a flush costs nothing, and nothing would be measured.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import eventlog

ROOT = Path(__file__).parent
WHERE = Path(os.environ.get("BENCH_DIR", ROOT / ".work"))
"""Where the arms write: a real disk. `BENCH_DIR` names another one."""

ROUNDS = 11
"""Rounds of a comparison; a short one has fewer."""
AGAIN = ", again"
"""What the name of an arm ends in that is the first one once more."""
Save = Callable[[int], None]
Arm = Callable[[Path], contextlib.AbstractContextManager[Save]]


@dataclass
class Timed:
    """What an arm took: the p50 and p99 of each round, and of the first and last tenth of its saves, in seconds."""

    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)

    def add(self, took: Sequence[float]) -> None:
        """Take a round."""
        tenth = max(len(took) // 10, 1)
        self.p50.append(statistics.median(took))
        self.p99.append(quantile(took, 0.99))
        self.first.append(statistics.median(took[:tenth]))
        self.last.append(statistics.median(took[-tenth:]))


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which this part of them lies."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def middle(values: Sequence[float]) -> float:
    """The median over rounds."""
    return statistics.median(values)


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """How many times `one` is `other`: the median of the rounds' own ratios."""
    return statistics.median([a / b for a, b in zip(one, other, strict=True)])


def turns(names: Iterable[str], count: int) -> Iterator[str]:
    """Each name once in every round, in an order that moves on with the round."""
    order = list(names)
    for n in range(count):
        yield from order[n % len(order) :] + order[: n % len(order)]


@contextlib.contextmanager
def room() -> Iterator[Path]:
    """An empty directory on the disk that is measured."""
    WHERE.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(dir=WHERE))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


_SPINS = """
import os, sys
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
parent = os.getppid()
print(flush=True)
while os.getppid() == parent:
    pass
"""


@contextlib.contextmanager
def awake() -> Iterator[None]:
    """Keep every processor busy with what gives way to anything else, so that none sleeps while a flush is waited for.

    Code that goes on after a sleep runs slower for a while: what is measured here and not otherwise is that.
    """
    with contextlib.ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            command = [sys.executable, "-c", _SPINS]
            spins = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))  # noqa: S603 (our own)
            stack.callback(spins.kill)
            assert spins.stdout is not None
            spins.stdout.readline()
        yield


def storage() -> eventlog.Reading:
    """What the log says it stands on; ends the program where a power cut would not be survived."""
    with room() as path:
        eventlog.store(path).create("r", at=datetime.now(UTC), events=[]).close()
        reading = eventlog.store(path).read("r")
    assert reading.storage is not None
    if reading.storage.survives != "power loss":
        sys.exit(f"{WHERE} is on {reading.storage.kind}, where a flush proves nothing; set BENCH_DIR to a real disk")
    return reading


def rounds(
    arms: dict[str, Arm], saves: Mapping[str, Sequence[int]], count: int, *, pause: float = 0
) -> dict[str, Timed]:
    """Run every arm `count` times, taking turns; `saves` are the numbers of the saves that an arm is timed at."""
    timed = {name: Timed() for name in arms}
    for name in turns(arms, count):
        with room() as path, arms[name](path) as save:
            gc.collect()
            timed[name].add([one(save, number, pause) for number in saves[name]])
    return timed


def one(save: Save, number: int, pause: float = 0) -> float:
    """The seconds of one save, after so many seconds of thinking."""
    if pause:
        time.sleep(pause)
    begun = time.perf_counter()
    save(number)
    return time.perf_counter() - begun


def machine() -> dict[str, str]:
    """Machine, versions and file system: what stands beside every table."""
    found = storage().storage
    assert found is not None
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        "machine": f"{os.cpu_count()} cores, {_processor()}, {platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "file system": found.kind,
        "load": " ".join(f"{part:.2f}" for part in os.getloadavg()),
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def us(seconds: float) -> str:
    """Seconds as microseconds."""
    return f"{seconds * 1e6:,.0f}"


@dataclass(frozen=True)
class Calls:
    """What a program asked of the system: flushes, and bytes handed to write."""

    flushes: int
    written: int


def traced(module: str, *arguments: str) -> Calls | None:
    """Run `python -m module` under strace and count; None where strace is missing or may not trace.

    Counted is what happens between the two marks that `marked` sets around the saves.
    """
    strace = shutil.which("strace")
    if strace is None:
        return None
    with room() as path:
        out = path / "strace"
        command = [
            strace,
            "-f",
            "-y",
            "-o",
            str(out),
            "-e",
            "trace=fsync,fdatasync,/^p?writev?(64)?2?$,access,faccessat",
        ]
        command += [sys.executable, "-m", module, *arguments, str(path / "place")]
        (path / "place").mkdir()
        done = subprocess.run(command, cwd=ROOT.parent, check=False, capture_output=True, text=True)  # noqa: S603 (our own module)
        if done.returncode:
            print(done.stderr[-400:], file=sys.stderr)
            return None
        return _counted(out, str(path / "place"))


MARK = "/saves-are-counted-"


@contextlib.contextmanager
def marked() -> Iterator[None]:
    """Mark where the counting of `traced` begins and ends."""
    os.access(f"{MARK}from-here", os.F_OK)
    yield
    os.access(f"{MARK}up-to-here", os.F_OK)


def _counted(out: Path, place: str) -> Calls:
    counting, flushes, written = False, 0, 0
    with out.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if MARK in line:
                counting = "from-here" in line
            elif counting and place in line:
                head, _, result = line.rpartition("= ")
                if "sync(" in head:
                    flushes += 1
                elif "write" in head and result.strip().isdigit():
                    written += int(result)
    return Calls(flushes, written)
