"""Runs a workspace's tests in a process of their own, with a time limit, leaving nothing in the workspace.

The tests are written by a model, so they may loop, fork or print without end. Whatever they do, they end with all that
they started when pytest ends, when their time is up, or when the process that asked for them dies. Of the environment
they see a few harmless variables: keys of models and services are among the others.
"""

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
_SEEN = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "TMPDIR", "TZ")
"""The variables of our environment that the tests see."""


class Suite(msgspec.Struct, frozen=True):
    """What pytest said. `status` is its exit status: 0 all passed, 1 some failed, 5 there were none; -9 out of time."""

    passed: bool
    status: int
    output: str


def run(folder: Path, path: str = "", *, seconds: float = SECONDS, each: bool = False) -> Suite:
    """Run the tests of `folder`, or those of `path` in it; at most `seconds`. `each`: with a line for each test."""
    told = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "--color=no", f"--rootdir={folder}"]
    words = [*told, *(["-rA"] if each else []), *([path] if path else [])]
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(  # noqa: S603 (our interpreter, our script, and a path that the caller has checked)
            [sys.executable, "-P", str(_SCRIPT), str(seconds), *words],
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:  # the watcher ends the tests in time; if it does not, it ends
            status = process.wait(seconds + 8)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        status = 128 - status if status > 128 else status  # noqa: PLR2004 (as a shell counts)
        return Suite(status == 0, status, _tail(output, folder, _SHOWN_EACH if each else _SHOWN, timed_out=status < 0))


def environment() -> dict[str, str]:
    """What the tests see of the environment, and two settings of ours."""
    kept = {name: os.environ[name] for name in _SEEN if name in os.environ}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _tail(output: IO[bytes], folder: Path, shown: int, *, timed_out: bool) -> str:
    """The end of what it printed, without what differs from one run to the next: how long it took, and where."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - shown))
    text = output.read().decode("utf-8", "replace").replace(f"{folder}/", "")
    text = re.sub(r" in \d+\.\d+s( \(\d+:\d\d:\d\d\))?", "", text).strip()
    cut = "[the beginning is cut off]\n" if size > shown else ""
    return f"{cut}{text}" + ("\n[out of time: the tests were stopped]" if timed_out else "")
