"""A process whose children play scenes and may die.

Deaths are tested with real processes and a real SIGKILL. Starting an interpreter for each would take most of a test's
time, and forking the test process would copy its threads; so one clean process is started, imports what scenes need,
and forks once for each scene. Scenes are the functions of the modules named in `SCENES`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
SCENES = ("tests.runner.scenes", "tests.runner.scenes_deaths", "tests.runner.scenes_disk")


@dataclass(frozen=True)
class Ended:
    """How a scene ended: its exit status (minus the signal's number when one killed it) and what it printed."""

    status: int
    said: str

    @property
    def value(self) -> Any:
        """What the scene returned."""
        assert self.status == 0, self
        return json.loads(self.said.splitlines()[-1])

    def killed(self) -> None:
        """Insist that SIGKILL ended it."""
        assert self.status == -signal.SIGKILL, self


@dataclass(frozen=True)
class Playing:
    """A scene under way."""

    pid: int
    output: Path


class Stagehand:
    """Plays scenes in processes of their own; what they print goes to files in `room`."""

    room: Path

    def __enter__(self) -> Self:
        """Start the clean process."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.runner.stagehand"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE)

    def _say(self, **order: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def begin(self, scene: str, **given: Any) -> Playing:
        """Let a scene begin."""
        output = self.room / f"scene-{time.monotonic_ns()}"
        plain = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
        return Playing(self._say(scene=scene, given=plain, output=str(output)), output)

    def end(self, playing: Playing) -> Ended:
        """Wait for a scene's end; one that does not end within a minute is killed, which fails whoever asked."""
        status = self._say(wait=playing.pid)
        return Ended(status, playing.output.read_text())

    def play(self, scene: str, **given: Any) -> Ended:
        """Play a scene from its beginning to its end."""
        return self.end(self.begin(scene, **given))


def _child(scene: Callable[..., Any], given: dict[str, Any], output: str) -> None:
    status = 1
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # what measures the tests may have taken it; a plain program has not
    try:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(file, 1)
        os.dup2(file, 2)
        print(json.dumps(scene(**given)))  # noqa: T201 (this is how a scene answers)
        status = 0
    except BaseException:  # noqa: BLE001 (whatever a scene raised is what it has to say)
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _ended(pid: int) -> int:
    end = time.monotonic() + PATIENCE
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _serve() -> None:
    scenes: dict[str, Callable[..., Any]] = {}
    for module in SCENES:  # imported once, here, for all children
        scenes |= vars(importlib.import_module(module))
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            answer = _ended(order["wait"])
        else:
            answer = os.fork()
            if answer == 0:
                _child(scenes[order["scene"]], order["given"], order["output"])
        print(json.dumps(answer), flush=True)  # noqa: T201 (the protocol)


if __name__ == "__main__":
    _serve()
