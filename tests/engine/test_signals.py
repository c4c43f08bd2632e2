"""SIGINT and SIGTERM park: what is in flight may end within the grace time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import runner
import runner.testing
from replay.events import WaitUntil
from tests.engine import scenes
from tests.support import ROOT, stage
from tests.support.forkserver import Child, Ended, ForkServer

BOTH = [signal.SIGINT, signal.SIGTERM]


class Parked:
    """A run in a process of its own that has begun its call, and can be sent signals."""

    def __init__(self, forks: ForkServer, runs: Path, **given: object) -> None:
        self._begun = runs.parent / "begun"
        self.child: Child = forks.begin(scenes.is_parked, runs=runs, begun=self._begun, **given)
        stage.within(10, self._begun.exists)

    def send(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.child.pid, number)

    def end(self) -> Ended:
        """Wait for the end."""
        return self.child.end()


@pytest.mark.parametrize("number", BOTH)
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_call_that_ends_within_the_grace_keeps_its_result(
    forks: ForkServer, runs: Path, number: int, kind: str
) -> None:
    """The run stops after it, by a stop that is logged and raised, and a resume does not repeat it."""
    parked = Parked(forks, runs, what=kind, lasts=0.15, grace=10)
    parked.send(number)
    assert parked.end().value == "Interrupted"
    assert stage.results(runs)["1.0"].text == "done"
    state = runner.read_state("r", runs)
    assert state.stopped is not None
    assert state.stopped.reason == "Interrupted"
    assert forks.run(scenes.resume, runs=runs).value == ["Finished", "over"]


@pytest.mark.parametrize("kind", ["async", "stubborn", "sync", "ask", "wait", "hook"])
def test_what_does_not_end_within_the_grace_is_cut_off(forks: ForkServer, runs: Path, kind: str) -> None:
    """And the process can exit, even with a thread that never ends: the call is open, as at a death."""
    begun = time.monotonic()
    parked = Parked(forks, runs, what=kind, lasts=60, grace=0.1)
    parked.send(signal.SIGTERM)
    assert parked.end().value == ("Paused" if kind == "hook" else "Interrupted")
    assert time.monotonic() - begun < 10
    assert runner.read_state("r", runs).in_doubt == (("1.0",) if kind in ("async", "stubborn", "sync") else ())
    assert stage.results(runs) == {}


def test_a_wait_is_parked_at_once(forks: ForkServer, runs: Path) -> None:
    """Nothing is in flight, so there is nothing to be patient with."""
    begun = time.monotonic()
    parked = Parked(forks, runs, what="wait", lasts=60, grace=60)
    stage.within(10, lambda: stage.events(runs, WaitUntil))
    parked.send(signal.SIGTERM)
    assert parked.end().value == "Interrupted"
    assert time.monotonic() - begun < 10
    assert [wait.why for wait in stage.events(runs, WaitUntil)] == ["backoff"]


@pytest.mark.parametrize("kind", ["async", "sync", "ask", "blocking hook"])
def test_the_second_signal_stops_at_once(forks: ForkServer, runs: Path, kind: str) -> None:
    """As if nobody had taken it: the process dies, even where something blocks the loop; the log is none the worse."""
    parked = Parked(forks, runs, what=kind, lasts=60, grace=60)
    parked.send(signal.SIGTERM)
    time.sleep(0.05)  # the system merges two signals of one kind that come at once
    parked.send(signal.SIGTERM)
    assert parked.end().status == -signal.SIGTERM
    assert runner.read_state("r", runs).phase in ("model", "tools", "paused")


def test_the_second_interrupt_is_a_keyboardinterrupt(forks: ForkServer, runs: Path) -> None:
    """What a program does with Ctrl-C otherwise."""
    parked = Parked(forks, runs, what="async", lasts=60, grace=60)
    parked.send(signal.SIGINT)
    time.sleep(0.05)
    parked.send(signal.SIGINT)
    ended = parked.end()
    assert ended.status == 1
    assert "KeyboardInterrupt" in ended.output
    assert runner.read_state("r", runs).in_doubt == ("1.0",)


def test_a_program_with_a_handler_of_its_own_keeps_it(forks: ForkServer, runs: Path) -> None:
    """It decides itself what a signal means, and parks a run by cancelling it."""
    parked = Parked(forks, runs, what="async", lasts=0.3, grace=0, own=True)
    parked.send(signal.SIGTERM)
    ended = parked.end()
    assert ended.value == "Finished"
    assert "own handler" in ended.output


def test_one_signal_parks_every_run_of_the_process(forks: ForkServer, runs: Path) -> None:
    """They share the loop, and each has its own log to say so in."""
    begun = runs.parent / "begun"
    playing = forks.begin(scenes.two_are_parked, runs=runs, begun=begun)
    stage.within(10, lambda: all(begun.with_name(f"begun{n}").exists() for n in (1, 2)))
    os.kill(playing.pid, signal.SIGTERM)
    assert playing.end().value == ["Interrupted", "Interrupted"]
    assert [runner.read_state(run, runs).in_doubt for run in ("r1", "r2")] == [("1.0",), ("1.0",)]


def test_handlers_are_given_back_after_the_run(forks: ForkServer, runs: Path) -> None:
    """A program's signals are its own again."""
    assert forks.run(scenes.handlers, runs=runs).value == [True, False, True]


def test_a_program_exits_although_a_thread_that_was_cut_off_still_runs(runs: Path) -> None:
    """The grace time is what a service manager waits for; the kernel drops the lock, and the call is open."""
    given = {"runs": str(runs), "begun": str(runs.parent / "begun"), "what": "sync", "lasts": 60, "grace": 0}
    plain = "import signal; signal.signal(signal.SIGTERM, signal.SIG_DFL)"  # as in a program that nobody measures
    program = f"{plain}; from tests.engine import scenes; print(scenes.is_parked(**{given}))"
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            stage.within(10, (runs.parent / "begun").exists)
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=60)[0] == "Interrupted\n"
        finally:
            process.kill()
    assert runner.read_state("r", runs).in_doubt == ("1.0",)


@pytest.mark.fault("signal to a forked child")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("number", BOTH)
def test_a_child_that_a_tool_forked_ends_by_a_signal(runs: Path, number: int) -> None:
    """It inherits our handlers and runs nothing of ours: a signal that it swallowed would leave an orphan for ever."""
    ended: list[int] = []

    @runner.tool(effect="reads")
    def forks_a_child() -> str:
        ready, says = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(says, b"x")
                time.sleep(20)  # a signal that does nothing is waited for no longer than this
            except KeyboardInterrupt:
                os.kill(os.getpid(), signal.SIGKILL)
            finally:
                os._exit(7)
        os.read(ready, 1)
        while not (waited := os.waitpid(child, os.WNOHANG))[0]:
            os.kill(child, number)  # again: CPython 3.13.0 loses one that comes between two calls of such a child
            time.sleep(0.2)
        ended.append(waited[1])
        return "ended"

    script = [runner.testing.tool_calls(("forks_a_child", {})), "over"]
    assert stage.finished(stage.start(script, forks_a_child, runs=runs)) == "over"
    assert os.WTERMSIG(ended[0]) == (signal.SIGTERM if number == signal.SIGTERM else signal.SIGKILL)
