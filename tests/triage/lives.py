"""Lives of a job that may die: real processes, forked from one that has imported everything already.

A fresh interpreter takes longer to import than a short life to live. So one process without threads waits for orders
on its standard input and forks a life for each; what kills that life kills a process, and its locks go with it. Where
the command itself is meant, start the command.
"""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

ROOT = Path(__file__).parents[2]


class Order(msgspec.Struct):
    """A life to live: which job, and where its errors go."""

    task: str
    runs: str
    options: dict[str, Any]
    errors: str


class Ended(NamedTuple):
    """How a life ended: as `subprocess` says it, and what it said."""

    returncode: int
    stderr: str


class Lives:
    """Starts lives, one after another. `suites` is the folder of `tests.triage.suites.Remembered`."""

    def __init__(self, suites: Path) -> None:
        self._errors = suites / f"stderr-{os.getpid()}"
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(ROOT), str(suites)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def start(self, task: str, runs: Path, **options: Any) -> int:
        """The process id of a life that has begun; `options` are those of `Job.of`, `resumes` its limit on them."""
        self._errors.write_bytes(b"")
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(Order(task, str(runs), options, str(self._errors))) + b"\n")
        self._process.stdin.flush()
        return self._read()

    def over(self) -> bool:
        """Whether the life that was started last has ended."""
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def wait(self) -> Ended:
        """How the life that was started last ended, once it has."""
        return Ended(self._read(), self._errors.read_text(encoding="utf-8"))

    def run(self, task: str, runs: Path, **options: Any) -> Ended:
        """A whole life."""
        self.start(task, runs, **options)
        return self.wait()

    def close(self) -> None:
        """No more lives."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _read(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def _live(order: Order) -> None:
    """One life, in this process."""
    import runner  # noqa: PLC0415 (the path to it comes with the command line)
    from runner import triage  # noqa: PLC0415

    resumes = order.options.pop("resumes", None)
    job = triage.Job.of(order.task, order.runs, **order.options)
    if resumes is not None:
        limits = triage.LIMITS
        job = job.replace(limits=runner.Limits(turns=limits.turns, dollars=limits.dollars, resumes=resumes))
    asyncio.run(job.run())


def _fork(order: Order) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        errors = os.open(order.errors, os.O_WRONLY | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(errors, descriptor)
        _live(order)
        status = 0
    except BaseException:  # noqa: BLE001 (whatever it is, this process ends here)
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Orders in, one a line; for each the life's process id, and when it has ended its status."""
    sys.path.insert(0, sys.argv[1])
    import httpx  # noqa: F401, PLC0415 (what every life would import)

    from runner.triage import _suite  # noqa: PLC0415
    from tests.triage.suites import Remembered  # noqa: PLC0415

    _suite.run = Remembered(Path(sys.argv[2])).run
    for line in sys.stdin.buffer:
        child = _fork(msgspec.json.decode(line, type=Order))
        print(child, flush=True)  # noqa: T201 (its output is what it answers)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
