"""`refold resume RUN`: any process carries a run on, and only one at a time."""

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path

import pytest

import eventlog
import runner
from tests.cli import scenes
from tests.cli.conftest import AGENTS, Agent, Refold


def test_a_killed_run_is_carried_on_and_a_done_one_gives_its_saved_answer(refold: Refold, runs: Path) -> None:
    """The second time nothing is asked and nothing is written."""
    run = scenes.killed(runs, "stumbling", "stumbling-run")
    refold("resume", run, Agent("stumbling")).ends(0, "Up again.\n", err=["resumed, process", "in doubt: 1.0"])
    seq = runner.read_state(run, runs).seq
    again = refold("resume", run, Agent("stumbling"))
    assert (again.status, again.out, again.err) == (0, "Up again.\n", "")
    assert runner.read_state(run, runs).seq == seq


def test_a_paused_run_without_an_answer_stays_paused(refold: Refold, runs: Path) -> None:
    """Looking does not wear a run out: nothing is written, and the questions are shown again."""
    run = scenes.asking(runs)
    seq = runner.read_state(run, runs).seq
    refold("resume", run, Agent("paying")).ends(
        3,
        out=[
            f"refold approve {run} 1.0-approve",
            f"Then go on: refold resume {run} --agent {AGENTS}:paying --runs {runs}",
        ],
    )
    assert runner.read_state(run, runs).seq == seq


def test_a_higher_limit_goes_on_where_the_lower_one_stopped(refold: Refold, runs: Path) -> None:
    """Today's limits win; under the same one the run stops again and writes nothing."""
    run = scenes.stopped(runs)
    assert refold("resume", run, Agent("short")).status == 1
    refold("resume", run, Agent("short"), "--max-turns", 2).ends(0, "Too late.\n")


def test_a_changed_file_stops_the_run_until_somebody_vouches_for_it(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """The sentence names the file and the option; the log names who accepted it."""
    work = tmp_path / "work"
    work.mkdir()
    run = scenes.killed(runs, "noting", "noting-run", workspace=str(work))
    (work / "note.txt").write_text("somebody else's")
    refold("resume", run, Agent("noting")).ends(1, err=["WorkspaceChanged", "note.txt", "--accept-workspace"])
    refold("resume", run, Agent("noting"), "--accept-workspace", "--by", "ann").ends(0, err="ann accepts note.txt")


def test_the_resume_limit_holds_across_processes(refold: Refold, runs: Path) -> None:
    """A run that dies again and again must end somewhere, and say how to go on."""
    run = scenes.killed(runs, "deadly", "deadly-run")
    scenes.killed(runs, "deadly", run, again=True)
    refold("resume", run, Agent("deadly"), "--max-resumes", 0).ends(1, err=["TooManyResumes", "--max-resumes N"])


def test_a_second_process_is_told_at_once_who_holds_the_run(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """Two writers would do everything twice."""
    with scenes.live(runs, tmp_path) as (child, place):
        (run,) = eventlog.store(runs).names()
        refold("resume", run, Agent("meeting")).ends(4, err=f"process {child.pid}")
        (place / "go").touch()
        assert child.wait(timeout=90) == 0


def test_a_damaged_run_is_refused_with_five(refold: Refold, runs: Path) -> None:
    """Nothing may be built on a log that lost something."""
    run = scenes.asking(runs)
    scenes.damage(runs, run)
    said = refold("resume", run, Agent("paying")).ends(5)
    assert refold("approve", run, "1.0-approve").status == 5
    assert "is damaged in seg-000001.jsonl" in said.err


@pytest.mark.parametrize("words", [["resume"], ["resume", "a-run", "--all"], ["resume", "a-run", "--no-such-option"]])
def test_what_can_not_be_meant_is_a_usage_error(refold: Refold, words: list[str]) -> None:
    """A run and --all at once, or neither, says nothing."""
    assert refold(*words, Agent("plain")).status == 2


def test_a_signal_parks_the_run_and_the_sentence_says_how_to_go_on(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """The call in flight may end: its result is kept and the run stops before the next step."""
    with scenes.live(runs, tmp_path) as (child, place):
        child.send_signal(signal.SIGINT)
        scenes.notice(child)
        (place / "go").touch()
        _, err = child.communicate(timeout=90)
        assert child.returncode == 1
    (run,) = eventlog.store(runs).names()
    assert "Interrupted" in err
    assert f"refold resume {run} --agent {AGENTS}:meeting --runs {runs}" in err
    assert runner.read_state(run, runs).calls[0].result is not None
    refold("resume", run, Agent("meeting")).ends(0, "We met.\n")


def test_two_interrupts_stop_at_once_and_leave_the_call_open(runs: Path, tmp_path: Path) -> None:
    """A person who types it twice means now, even if a thread of a tool never ends."""
    with scenes.live(runs, tmp_path) as (child, _):
        (run,) = eventlog.store(runs).names()
        assert scenes.insist(child) == 1
        _, err = child.communicate(timeout=60)
    assert "stopped at once" in err
    assert f"refold resume {run}" in err
    assert runner.read_state(run, runs).in_doubt == ("1.0",)


@pytest.mark.parametrize("saved", [True, False], ids=["saved", "nothing-saved"])
def test_stopping_at_once_says_what_is_true(monkeypatch: pytest.MonkeyPatch, refold: Refold, *, saved: bool) -> None:
    """Nothing is waited for, so what was running is open, and the person must know."""
    run = asyncio.run

    def interrupted(going: Coroutine[object, object, object]) -> None:
        if saved:
            run(going)
        going.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(asyncio, "run", interrupted)
    said = refold("run", "look", Agent("plain")).ends(1, "")
    assert ("Go on: refold resume plain-" in said.err) is saved
    assert ("refold ls --runs" in said.err) is not saved
