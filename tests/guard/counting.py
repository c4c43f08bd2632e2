"""Instructions, counted by callgrind: the same on every machine and at every load, up to a few in a million.

Each kind of work is counted as the difference of doing it many times and once, so what a process takes to start, and to
do it for the first time, is not part of it. It is given as a ratio to a loop of plain Python that is counted so, too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support import ROOT
from tests.support.unmeasured import environment

TIMES = 400
VERSION = f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}"


def child(work: str, times: int, place: Path, *before: str) -> str:
    """Do one kind of work in a process; give what it said on stderr."""
    # The sum's fast paths depend on the processor: none of them is taken.
    env = {**environment(), "PYTHONHASHSEED": "0", "OPENSSL_ia32cap": "0", "PYTHONPATH": str(ROOT)}
    command = [*before, sys.executable, "-m", "tests.guard.child", work, str(times), str(place)]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=300).stderr


def instructions(work: str, times: int, place: Path) -> int:
    """The instructions of a process that does it so many times."""
    said = child(work, times, place, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    found = re.search(r"Collected : (\d+)", said)
    assert found is not None, said
    return int(found[1])


def ratios() -> dict[str, float]:
    """What an append, and the reading of a line, come to in turns of the calibration loop."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        child("append", 1, place / "warm")  # compiles what is not compiled yet
        for times in (1, TIMES):
            child("make", times, place / str(times))
        loop, append, read = (
            instructions(work, TIMES, place / to.format(TIMES)) - instructions(work, 1, place / to.format(1))
            for work, to in (("calibrate", "loop"), ("append", "append{}"), ("read", "{}"))
        )
    return {"append": append / loop, "read": read / loop}


def has_valgrind() -> bool:
    """Whether callgrind can be run here."""
    return shutil.which("valgrind") is not None
