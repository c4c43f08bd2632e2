"""SIGINT and SIGTERM park: what is in flight may end within the grace time (spec row 9)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import replay
import runner
from tests.runner import stage
from tests.runner.stagehand import ROOT, Ended, Playing, Stagehand

BOTH = [signal.SIGINT, signal.SIGTERM]


class Parked:
    """A scene that is under way, has begun what it was to begin, and can be sent signals."""

    def __init__(self, stagehand: Stagehand, runs: Path, **given: object) -> None:
        self._stagehand = stagehand
        self._begun = runs.parent / "begun"
        self.playing: Playing = stagehand.begin("is_parked", runs=runs, begun=self._begun, **given)
        stage.within(10, self._begun.exists)

    def send(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.playing.pid, number)

    def end(self) -> Ended:
        """Wait for the end."""
        return self._stagehand.end(self.playing)


@pytest.mark.parametrize("number", BOTH)
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_call_that_ends_within_the_grace_keeps_its_result(
    stagehand: Stagehand, runs: Path, number: int, kind: str
) -> None:
    """The run stops after it, by a stop that is logged and raised, and a resume does not repeat it."""
    parked = Parked(stagehand, runs, what=kind, lasts=0.15, grace=10)
    parked.send(number)
    assert parked.end().value == "Interrupted"
    assert stage.results(runs)["1.0"].text == "done"
    state = runner.read("r", runs)
    assert state.stopped is not None
    assert state.stopped.reason == "Interrupted"
    assert stagehand.play("resume", runs=runs).value == ["Finished", "over"]


@pytest.mark.parametrize("kind", ["async", "stubborn", "sync", "ask", "wait", "hook"])
def test_what_does_not_end_within_the_grace_is_cut_off(stagehand: Stagehand, runs: Path, kind: str) -> None:
    """And the process can exit, even with a thread that never ends: the call is open, as at a death."""
    begun = time.monotonic()
    parked = Parked(stagehand, runs, what=kind, lasts=60, grace=0.1)
    parked.send(signal.SIGTERM)
    assert parked.end().value == ("Paused" if kind == "hook" else "Interrupted")
    assert time.monotonic() - begun < 10
    assert runner.read("r", runs).open == (("1.0",) if kind in ("async", "stubborn", "sync") else ())
    assert stage.results(runs) == {}


def test_a_wait_is_parked_at_once(stagehand: Stagehand, runs: Path) -> None:
    """Nothing is in flight, so there is nothing to be patient with."""
    begun = time.monotonic()
    parked = Parked(stagehand, runs, what="wait", lasts=60, grace=60)
    stage.within(10, lambda: stage.events(runs, replay.WaitUntil))
    parked.send(signal.SIGTERM)
    assert parked.end().value == "Interrupted"
    assert time.monotonic() - begun < 10
    assert [wait.why for wait in stage.events(runs, replay.WaitUntil)] == ["backoff"]


@pytest.mark.parametrize("kind", ["async", "sync", "ask", "blocking hook"])
def test_the_second_signal_stops_at_once(stagehand: Stagehand, runs: Path, kind: str) -> None:
    """As if nobody had taken it: the process dies, even where something blocks the loop; the log is none the worse."""
    parked = Parked(stagehand, runs, what=kind, lasts=60, grace=60)
    parked.send(signal.SIGTERM)
    time.sleep(0.05)  # the system merges two signals of one kind that come at once
    parked.send(signal.SIGTERM)
    assert parked.end().status == -signal.SIGTERM
    assert runner.read("r", runs).phase in ("model", "tools", "paused")


def test_the_second_interrupt_is_a_keyboardinterrupt(stagehand: Stagehand, runs: Path) -> None:
    """What a program does with Ctrl-C otherwise."""
    parked = Parked(stagehand, runs, what="async", lasts=60, grace=60)
    parked.send(signal.SIGINT)
    time.sleep(0.05)
    parked.send(signal.SIGINT)
    ended = parked.end()
    assert ended.status == 1
    assert "KeyboardInterrupt" in ended.said
    assert runner.read("r", runs).open == ("1.0",)


def test_a_program_with_a_handler_of_its_own_keeps_it(stagehand: Stagehand, runs: Path) -> None:
    """It decides itself what a signal means, and parks a run by cancelling it."""
    parked = Parked(stagehand, runs, what="async", lasts=0.3, grace=0, own=True)
    parked.send(signal.SIGTERM)
    ended = parked.end()
    assert ended.value == "Finished"
    assert "own handler" in ended.said


def test_one_signal_parks_every_run_of_the_process(stagehand: Stagehand, runs: Path) -> None:
    """They share the loop, and each has its own log to say so in."""
    begun = runs.parent / "begun"
    playing = stagehand.begin("two_are_parked", runs=runs, begun=begun)
    stage.within(10, lambda: all(begun.with_name(f"begun{n}").exists() for n in (1, 2)))
    os.kill(playing.pid, signal.SIGTERM)
    assert stagehand.end(playing).value == ["Interrupted", "Interrupted"]
    assert [runner.read(run, runs).open for run in ("r1", "r2")] == [("1.0",), ("1.0",)]


def test_handlers_are_given_back_after_the_run(stagehand: Stagehand, runs: Path) -> None:
    """A program's signals are its own again."""
    assert stagehand.play("handlers", runs=runs).value == [True, False, True]


def test_a_program_exits_although_a_thread_that_was_cut_off_still_runs(runs: Path) -> None:
    """The grace time is what a service manager waits for; the kernel drops the lock, and the call is open."""
    given = {"runs": str(runs), "begun": str(runs.parent / "begun"), "what": "sync", "lasts": 60, "grace": 0}
    plain = "import signal; signal.signal(signal.SIGTERM, signal.SIG_DFL)"  # as in a program that nobody measures
    program = f"{plain}; from tests.runner import scenes; print(scenes.is_parked(**{given}))"
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            stage.within(10, (runs.parent / "begun").exists)
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=10)[0] == "Interrupted\n"
        finally:
            process.kill()
    assert runner.read("r", runs).open == ("1.0",)
