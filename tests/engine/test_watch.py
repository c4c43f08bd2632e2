"""Whoever watches sees each save, and can't disturb it; log lines are the application's choice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import structlog

import replay
import runner
import runner.testing
from tests.support import ROOT, stage

SCRIPT = [runner.testing.tool_calls(("look", {}), ("look", {})), "over"]


@runner.tool(effect="reads")
def look() -> str:
    """Look."""
    return "x"


def test_a_watcher_sees_every_line_in_its_order(runs: Path) -> None:
    """With the state that has the line in it."""
    seen: list[tuple[int, list[str]]] = []

    def watch(state: runner.State, events: Sequence[replay.Event]) -> None:
        seen.append((state.seq, [type(event).__name__ for event in events]))
        assert runner.read_state("r", runs).seq == state.seq

    assert stage.finished(stage.start(SCRIPT, look, runs=runs, watch=watch)) == "over"
    assert [kinds for _, kinds in seen] == [[type(e).__name__ for e in line] for line in stage.lines(runs)]
    assert [seq for seq, _ in seen] == sorted({seq for seq, _ in seen})


def test_a_watcher_that_raises_disturbs_nothing(runs: Path) -> None:
    """In its first line as in its last."""
    seen = 0

    def watch(_state: runner.State, _events: Sequence[replay.Event]) -> None:
        nonlocal seen
        seen += 1
        raise ZeroDivisionError

    assert stage.finished(stage.start(SCRIPT, look, runs=runs, watch=watch)) == "over"
    assert seen == len(stage.lines(runs))
    with pytest.raises(runner.errors.TurnLimit):
        stage.start(SCRIPT, look, runs=runs, run="s", watch=watch, limits=runner.Limits(turns=1))
    assert stage.finished(runner.resume_sync("s", stage.agent(SCRIPT, look), runs=runs, watch=watch)) == "over"


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_watcher_that_exits_leaves_no_lock(runs: Path, nth: int) -> None:
    """At the first line of a run as at any other; this process, too, can carry the run on."""
    saves: list[int] = []

    def watch(state: runner.State, _events: Sequence[replay.Event]) -> None:
        saves.append(state.seq)
        if len(saves) == nth:
            raise SystemExit

    with pytest.raises(SystemExit):
        stage.start(SCRIPT, look, runs=runs, watch=watch)
    assert stage.finished(runner.resume_sync("r", stage.agent(SCRIPT, look), runs=runs)) == "over"


LOUD = """
import asyncio, tempfile, threading
import runner
import runner.testing

@runner.tool(timeout=0.01)
def slow():
    threading.Event().wait(0.05)
    raise ValueError("x")

@runner.tool(effect="reads")
async def fails(): raise ValueError("y")

def flaky(request):
    if request.n == 1: raise ConnectionError
    return "over"

class Clock(runner.Clock):
    async def sleep(self, seconds): pass
    ticks = 0
    def monotonic(self):
        self.ticks += 60
        return self.ticks

with tempfile.TemporaryDirectory() as runs:
    both = runner.testing.tool_calls(("fails", {}), ("slow", {}))
    model = runner.testing.ScriptedModel([both, lambda r: runner.Reply(text="over")])
    agent = runner.Agent(name="agent", model=model, tools=[slow, fails])
    outcome = runner.start_sync(agent, "x", runs=runs, clock=Clock())
    assert isinstance(outcome, runner.Paused)
"""


def test_a_program_that_configured_no_logging_prints_nothing() -> None:
    """Not even where something is worth a warning: a library has no business on a user's stderr."""
    ended = subprocess.run([sys.executable, "-c", LOUD], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


SECRET = "ghp_" + "a1B2" * 9


@pytest.mark.fault("a secret in a line of a log collector")
def test_a_program_that_configured_structlog_gets_the_lines(runs: Path) -> None:
    """Bound to the call they are about, without what looks like a secret: they may go anywhere."""

    @runner.tool(effect="reads")
    def fails() -> None:
        raise ValueError(SECRET)

    try:
        with structlog.testing.capture_logs() as lines:  # it configures structlog
            stage.start([runner.testing.tool_calls(("fails", {})), "over"], fails, runs=runs)
    finally:
        structlog.reset_defaults()
    (line,) = [line for line in lines if line["event"] == "attempt ended"]
    assert (line["call"], line["did"], line["error"]) == ("1.0", "nothing", "ValueError: [secret]")
    assert SECRET not in str(lines)


@pytest.mark.fault("a secret in a line of a log collector")
def test_a_program_that_configured_the_standard_logging_gets_the_lines(
    runs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Under the name `refold`, with their facts in the text."""

    @runner.tool(effect="reads")
    def fails() -> None:
        raise ValueError(SECRET)

    caplog.set_level("INFO", logger="refold")
    stage.start([runner.testing.tool_calls(("fails", {})), "over"], fails, runs=runs)
    (record,) = [record for record in caplog.records if record.name == "refold"]
    assert record.getMessage().startswith("attempt ended call='1.0' key=")
    assert "error='ValueError: [secret]'" in record.getMessage()
    assert SECRET not in record.getMessage()


IMPORTED = "import sys, runner; print(*sorted({name.partition('.')[0] for name in sys.modules}))"


def test_importing_runner_imports_no_application() -> None:
    """A program that embeds it pays for nothing else (numbers: the import)."""
    ended = subprocess.run([sys.executable, "-c", IMPORTED], cwd=ROOT, capture_output=True, text=True, check=True)
    names = set(ended.stdout.split())
    assert {"runner", "replay", "eventlog", "msgspec"} <= names
    assert not names & {
        "structlog",
        "click",
        "rich",
        "httpx",
        "starlette",
        "uvicorn",
        "anyio",
        "pytest",
        "openai",
        "anthropic",
    }
