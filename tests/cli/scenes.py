"""Runs brought to a certain place, and the ways to spoil one, for the tests of every command."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import eventlog
import runner
from tests.cli import agents
from tests.cli.conftest import Agent, environment


def finished(runs: Path, run: str = "done-run") -> str:
    """A run that is done."""
    runner.start_sync(agents.plain, "look at one", runs=runs, run=run)
    return run


def asking(runs: Path, run: str = "asking-run", agent: runner.Agent = agents.paying) -> str:
    """A run that waits for an approval, `1.0-approve`."""
    runner.start_sync(agent, "pay ann", runs=runs, run=run)
    return run


def stopped(runs: Path, run: str = "stopped-run") -> str:
    """A run that used its turns."""
    try:
        runner.start_sync(agents.short, "look", runs=runs, run=run)
    except runner.errors.TurnLimit:
        return run
    message = "the run did not stop"
    raise AssertionError(message)


def killed(runs: Path, agent: str, run: str, *, again: bool = False, **options: object) -> str:
    """A run whose process died by SIGKILL in its first deadly call; `again`: in a resume."""
    call = f"resume_sync(sys.argv[2], agents.{agent}" if again else f"start_sync(agents.{agent}, 'go', run=sys.argv[2]"
    code = f"import sys, runner; from tests.cli import agents; runner.{call}, runs=sys.argv[1], **{options!r})"
    done = subprocess.run([sys.executable, "-c", code, str(runs), run], env=environment(), check=False)
    assert done.returncode == -9
    return run


@contextmanager
def live(runs: Path, tmp_path: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process in the middle of a call of `meet`, and the directory where `go` lets it go on."""
    place = tmp_path / "meeting"
    place.mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "runner._cli", *(words or ("run", "meet me", str(Agent("meeting"))))],
        cwd=tmp_path,
        env=environment(MEETING=str(place), REFOLD_RUNS=str(runs)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            until(lambda: (place / "began").exists() or child.poll() is not None)
            assert child.poll() is None, child.communicate()
            yield child, place
        finally:
            child.kill()


def notice(child: subprocess.Popen[Any]) -> None:
    """Give a process that was sent a signal the time to notice it: nothing that can be seen from outside says when."""
    with suppress(subprocess.TimeoutExpired):
        child.wait(timeout=0.5)


def insist(child: subprocess.Popen[Any]) -> int:
    """Interrupt a process until it ends at once, and give its status: two signals may be noticed as one."""
    for patience in (0.5, 20, 20):
        child.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=patience)
    message = "it goes on"
    raise AssertionError(message)


def until(holds: Callable[[], bool], seconds: float = 90.0) -> None:
    """Wait for another process, and fail when it takes longer than `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def segment(runs: Path, run: str) -> Path:
    """The only segment of a short run."""
    return runs / run / "seg-000001.jsonl"


def damage(runs: Path, run: str) -> None:
    """Change one letter of an acknowledged line, of a run whose log must be read."""
    (runs / run / "status").unlink()
    file = segment(runs, run)
    data = file.read_bytes()
    spot = data.index(b'"reply_saved"')
    file.write_bytes(data[:spot] + b'"reply_SAVED"' + data[spot + 13 :])


def tear(runs: Path, run: str) -> None:
    """Leave the beginning of a save behind the last line, as a writer does that died in it."""
    with eventlog.store(runs).open(run) as log:
        end = segment(runs, run).read_bytes().rindex(b"}\n") + 2
        log.abandon()
    with segment(runs, run).open("r+b") as file:
        file.seek(end)
        file.write(b'{"seq":')
        os.fsync(file.fileno())
