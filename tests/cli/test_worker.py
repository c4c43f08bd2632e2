"""`refold worker`: a process that carries on what is due, and leaves when it is told to."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import runner
from tests.cli import agents, scenes
from tests.cli.conftest import Agent, Refold, environment
from tests.support.terminal import Terminal


def _done(runs: Path, run: str) -> bool:
    return runner.read_state(run, runs).phase == "done"


def test_a_worker_says_what_it_does_in_json_and_drains_at_a_signal(runs: Path, tmp_path: Path, refold: Refold) -> None:
    """The call in flight ends; its run is free and due, and the next worker finishes it."""
    runner.enqueue(agents.plain, "look", runs=runs, run="plain-run")
    runner.enqueue(agents.meeting, "meet", runs=runs, run="meeting-run")
    scenes.damage(runs, scenes.asking(runs, "bad-run"))
    words = ("worker", str(Agent("plain")), str(Agent("meeting")), "--grace", "20")
    with scenes.live(runs, tmp_path, *words) as (child, place):
        scenes.until(lambda: _done(runs, "plain-run"))
        child.send_signal(signal.SIGTERM)
        scenes.notice(child)
        (place / "go").touch()
        out, err = child.communicate(timeout=90)
    assert (child.returncode, err) == (0, "")
    said = [json.loads(line) for line in out.splitlines()]
    came = {line["run"]: line["outcome"] for line in said if line["event"] == "run rests"}
    assert came == {"plain-run": "finished", "meeting-run": "Interrupted"}
    assert (said[0]["event"], said[-1]["event"]) == ("worker began", "worker left")
    assert (said[0]["runs"], said[0]["agents"]) == (str(runs), ["plain", "meeting"]), "a misspelt directory shows"
    (problem,) = [line for line in said if line["event"] == "problem"]
    assert (problem["what"], "refold salvage" in problem["hint"]) == ("bad-run", True)
    state = runner.read_state("meeting-run", runs)
    assert (state.in_doubt, state.phase) == ((), "model")
    assert refold("resume", "meeting-run", Agent("meeting")).out == "We met.\n"


def test_a_second_signal_ends_a_worker_at_once(runs: Path, tmp_path: Path) -> None:
    """As Ctrl-C does everywhere."""
    runner.enqueue(agents.meeting, "meet", runs=runs, run="meeting-run")
    with scenes.live(runs, tmp_path, "worker", str(Agent("meeting")), "--grace", "60") as (child, _):
        assert scenes.insist(child) == 1


def test_a_second_signal_ends_a_worker_whose_output_nobody_reads(runs: Path, tmp_path: Path) -> None:
    """Its loop waits for room in the pipe."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(theirs, bytes(4096))
    os.set_blocking(theirs, True)
    words = (sys.executable, "-P", "-m", "runner._cli", "worker", str(Agent("plain")), "--runs", str(runs))
    with subprocess.Popen(words, cwd=tmp_path, stdout=theirs, env=environment()) as child:
        try:
            scenes.until(lambda: any((runs / ".workers").glob("*")))  # it is about to say that it began
            assert scenes.insist(child) == 1
        finally:
            child.kill()
            os.close(ours)
            os.close(theirs)


def test_a_tool_that_never_ends_does_not_hold_the_process(runs: Path, tmp_path: Path) -> None:
    """Its thread is left, and its call is in doubt."""
    runner.enqueue(agents.meeting, "meet", runs=runs, run="meeting-run")
    with scenes.live(runs, tmp_path, "worker", str(Agent("meeting")), "--grace", "0") as (child, _):
        child.send_signal(signal.SIGTERM)
        try:
            assert child.wait(timeout=60) == 0
        except subprocess.TimeoutExpired as error:
            raise AssertionError(child.communicate()) from error
    assert runner.read_state("meeting-run", runs).in_doubt == ("1.0",)


def test_on_a_terminal_a_worker_is_a_table(runs: Path, tmp_path: Path) -> None:
    """What runs now, and above it what each run came to; no JSON."""
    place = tmp_path / "meeting"
    place.mkdir()
    runner.enqueue(agents.meeting, "meet me", runs=runs, run="meeting-run")
    words = ("worker", Agent("meeting"), "--runs", runs)
    with Terminal(*words, cwd=tmp_path, columns=120, env={"MEETING": str(place)}) as terminal:
        terminal.until("1 runs")
        terminal.until("meeting-run  tools, turn 1  meet me")
        (place / "go").touch()
        terminal.until("meeting-run  done, turn 2  meet me")
        terminal.child.send_signal(signal.SIGINT)
        assert terminal.end() == 0
    assert "{" not in terminal.seen


def test_a_worker_on_a_terminal_that_can_show_no_table_prints_json(runs: Path, tmp_path: Path) -> None:
    """Silence would look like a worker that has nothing to do."""
    runner.enqueue(agents.plain, "look", runs=runs, run="plain-run")
    words = ("worker", Agent("plain"), "--runs", runs)
    with Terminal(*words, cwd=tmp_path, columns=200, env={"TERM": "dumb"}) as terminal:
        terminal.until('"event": "run rests"')
        terminal.child.send_signal(signal.SIGINT)
        assert terminal.end() == 0
    assert "\x1b" not in terminal.seen


def test_a_worker_for_a_place_that_can_not_be_made_says_so_and_ends(tmp_path: Path, process: Refold) -> None:
    """It would wait for runs that nobody can put there."""
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "runs", Path("/proc/runs")):
        process("worker", Agent("plain"), "--runs", place).ends(1, err=f"{place} is no place of runs")
