"""A process whose children live one life of a run each, and may die in it.

Deaths are real: SIGKILL to a real process. Importing two SDKs takes longer than such a life, so one process imports
them and forks once for each; the test's own process has threads and can't be forked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import replay
import runner
from tests.models import cases
from tests.models.dialects import DIALECTS, KEY

ROOT = Path(__file__).parents[2]
PATIENCE = 20.0


@dataclass(frozen=True)
class Ended:
    """How a life ended: its exit status, minus the signal's number when one killed it, and what it said."""

    status: int
    said: str

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.status == -signal.SIGKILL

    @property
    def value(self) -> Any:
        """What it came to."""
        assert self.status == 0, self
        return json.loads(self.said.splitlines()[-1])


@dataclass(frozen=True)
class Living:
    """A life under way."""

    pid: int
    output: Path


class Theatre:
    """Plays lives; what they say goes to files in `room`."""

    room: Path

    def __enter__(self) -> Self:
        """Start the process."""
        keys = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.models.theatre"],
            cwd=ROOT,
            env=os.environ | keys,
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

    def begin(self, **given: Any) -> Living:
        """Let a life begin; see `live`."""
        output = self.room / f"said-{time.monotonic_ns()}"
        return Living(self._say(given=given, root=str(self.room), output=str(output)), output)

    def end(self, living: Living) -> Ended:
        """Wait for its end; one that takes longer than 20 s is killed, which fails whoever waits for it."""
        return Ended(self._say(wait=living.pid), living.output.read_text())

    def play(self, **given: Any) -> Ended:
        """A life from its beginning to its end."""
        return self.end(self.begin(**given))


class Dying:
    """A model whose process dies when a reply has arrived, before anybody saved it."""

    def __init__(self, model: Any) -> None:
        self.name = model.name
        self.bound = model.bound
        self._model = model

    async def ask(self, request: runner.Request) -> runner.Reply:
        """Die."""
        await self._model.ask(request)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def live(root: str, *, dialect: str, url: str, streamed: bool, resumed: bool, die: str = "", waits: int = 1) -> Any:
    """One life: start a run, or resume it.

    `die`: when the first reply has `arrived`, when it is `saved`, or in the middle of the `waits`-th `backoff`.
    """
    made = cases.model(DIALECTS[dialect], url, streamed=streamed)
    waited = 0

    def watch(_state: replay.State, events: Any) -> None:
        nonlocal waited
        waited += sum(isinstance(event, replay.WaitUntil) for event in events)
        saved = any(isinstance(event, replay.ReplySaved) for event in events)
        if (die == "saved" and saved) or (die == "backoff" and waited == waits):
            os.kill(os.getpid(), signal.SIGKILL)

    given = cases.agent(Dying(made) if die == "arrived" else made, Path(root) / "acts")
    options: Any = {"runs": Path(root) / "runs", "watch": watch, "clock": cases.Ticking()}
    try:
        came = (
            runner.resume_sync("r", given, **options)
            if resumed
            else runner.start_sync(given, cases.TASK, run="r", **options)
        )
    except runner.RunStopped as stopped:
        return {"stopped": stopped.reason, "detail": stopped.detail}
    assert isinstance(came, runner.Finished)
    return {"answer": came.answer}


def _child(order: dict[str, Any]) -> None:
    status = 1
    try:
        file = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(file, 1)
        os.dup2(file, 2)
        print(json.dumps(live(order["root"], **order["given"])))  # noqa: T201 (this is how a life answers)
        status = 0
    except BaseException:  # noqa: BLE001 (whatever it raised is what it has to say)
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


def _warm() -> None:
    """Import, before the first fork, what the SDKs import at their first request."""
    for dialect in DIALECTS.values():
        with contextlib.suppress(runner.ModelError):
            request = runner.Request(
                run="",
                purpose="turn",
                turn=1,
                n=1,
                instructions="",
                tools=(),
                messages=(replay.Said("x"),),
                parameters={},
            )
            asyncio.run(cases.model(dialect, "http://127.0.0.1:9", streamed=False).ask(request))


def _serve() -> None:
    _warm()
    for line in sys.stdin:
        order = json.loads(line)
        answer = _ended(order["wait"]) if "wait" in order else os.fork()
        if answer == 0 and "wait" not in order:
            _child(order)
        print(json.dumps(answer), flush=True)  # noqa: T201 (the protocol)


if __name__ == "__main__":
    _serve()
