"""Running a workspace's tests: really, in a process of their own, bounded, leaving nothing behind in the workspace.

The tests are written by a model, so they may loop, fork or print without end. Whatever they do, they end when their
time is up or when the process that asked for them dies.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

SECONDS = 50.0
"""The most time a run of tests may take: less than the tool's timeout, so that the tool can still say so."""

_SHOWN = 4_000
_SHOWN_EACH = 40_000
_SCRIPT = Path(__file__).with_name("_suite_process.py")
_OURS = ("COV", "PYTEST", "PYTHON")


class Suite(msgspec.Struct, frozen=True):
    """What pytest said. `status` is its exit status: 0 all passed, 1 some failed, 5 there were none; -9 out of time."""

    passed: bool
    status: int
    output: str


def run(folder: Path, path: str = "", *, seconds: float = SECONDS, each: bool = False) -> Suite:
    """Run the tests of `folder`, or those of `path` in it; at most `seconds`. `each`: with a line for each test."""
    command = [sys.executable, "-P", str(_SCRIPT), str(seconds + 5), *words(folder, path, each=each)]
    ours, theirs = os.pipe()
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(  # noqa: S603 (our interpreter, our script, and a path that the caller has checked)
                command,
                cwd=folder,
                env=environment(),
                stdin=ours,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            os.close(ours)
            status = _wait(process, seconds)
        finally:
            os.close(theirs)
        return said(status, output, folder, each=each)


def words(folder: Path, path: str = "", *, each: bool = False) -> list[str]:
    """What pytest is told."""
    told = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "--color=no", f"--rootdir={folder}"]
    return [*told, *(["-rA"] if each else []), *([path] if path else [])]


def said(status: int, output: IO[bytes], folder: Path, *, each: bool = False) -> Suite:
    """What pytest's status and its output come to; a negative status is a signal's."""
    return Suite(status == 0, status, _tail(output, folder, _SHOWN_EACH if each else _SHOWN, timed_out=status < 0))


def environment() -> dict[str, str]:
    """The environment, less what would make pytest or the interpreter behave as in a test run of our own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS) or name == "PYTHONPATH"}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL
    finally:
        with suppress(ProcessLookupError, PermissionError):  # whoever is left of its group, its own children too
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _tail(output: IO[bytes], folder: Path, shown: int, *, timed_out: bool) -> str:
    """The end of what it printed, without what differs from one run to the next: how long it took, and where."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - shown))
    text = output.read().decode("utf-8", "replace").replace(f"{folder}/", "")
    text = re.sub(r" in \d+\.\d+s( \(\d+:\d\d:\d\d\))?", "", text).strip()
    cut = "[the beginning is cut off]\n" if size > shown else ""
    return f"{cut}{text}" + ("\n[out of time: the tests were stopped]" if timed_out else "")
