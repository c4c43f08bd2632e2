"""`refold approve`, `refuse`, `settle` and `stop`: a person's word, once, from any process."""

from __future__ import annotations

import os
import pwd
import time
from pathlib import Path

import runner
from tests.cli import agents, scenes
from tests.cli.conftest import Agent, Refold


def _who(runs: Path, run: str) -> str:
    """Who answered the run's approval."""
    answer = runner.read(run, runs).questions["1.0-approve"].answer
    assert answer is not None
    return answer.who


def test_a_yes_lets_the_run_finish_at_its_next_resume(refold: Refold, runs: Path) -> None:
    """The first process has gone; the answer and the rest of the run come from two others."""
    run = scenes.asking(runs)
    said = refold("approve", run, "1.0-approve", "--by", "ann")
    assert said.status == 0
    assert "approved by ann" in said.out
    assert _who(runs, run) == "ann"
    resumed = refold("resume", run, Agent("paying"))
    assert (resumed.status, resumed.out) == (0, "Ann has it.\n")


def test_a_no_reaches_the_model_with_its_reason(refold: Refold, runs: Path) -> None:
    """The call never runs; the model reads why."""
    run = scenes.asking(runs)
    assert refold("refuse", run, "1.0-approve", "--by", "ann", "--reason", "too much").status == 0
    said = refold("resume", run, Agent("paying"))
    assert said.status == 0
    assert "refused: ann refused this call: too much" in said.err


def test_the_account_is_named_when_nobody_else_is(process: Refold, runs: Path) -> None:
    """It needs no HOME and no USER, and believes neither."""
    run = scenes.asking(runs)
    assert process("approve", run, "1.0-approve", env={"HOME": "", "USER": "mallory", "LOGNAME": "mallory"}).status == 0
    assert _who(runs, run) == pwd.getpwuid(os.getuid()).pw_name


def test_an_answer_says_which_questions_are_still_open(refold: Refold, runs: Path) -> None:
    """A run goes on only when every question has its answer."""
    run = scenes.asking(runs, agent=agents.paying_twice)
    assert "Still open: 1.1-approve" in refold("approve", run, "1.0-approve").out
    assert "goes on at its next resume" in refold("refuse", run, "1.1-approve").out


def test_the_first_answer_wins(refold: Refold, runs: Path) -> None:
    """Two people may type at the same time; the second is told, and nothing changes."""
    run = scenes.asking(runs)
    refold("approve", run, "1.0-approve", "--by", "ann")
    said = refold("refuse", run, "1.0-approve", "--by", "bob")
    assert said.status == 1
    assert "answered before: approve, by ann" in said.err


def test_an_answer_of_the_wrong_kind_or_to_no_question_is_refused(refold: Refold, runs: Path) -> None:
    """An approval is no statement about what happened."""
    run = scenes.asking(runs)
    said = refold("settle", run, "1.0-approve", "rerun")
    assert said.status == 1
    assert "of kind approve" in said.err
    said = refold("approve", run, "9.9-approve")
    assert said.status == 1
    assert "has no question 9.9-approve" in said.err
    assert runner.read(run, runs).waiting


def _unsettled(refold: Refold, runs: Path) -> tuple[str, str]:
    """A run whose call may have happened and can't be looked up, and the ladder's question about it."""
    run = scenes.killed(runs, "unsure", "unsure-run")
    said = refold("resume", run, Agent("unsure"))
    assert said.status == 3
    (question,) = runner.read(run, runs).waiting
    assert f"refold settle {run} {question.id} --runs {runs} rerun" in said.out
    return run, question.id


def test_what_a_person_found_becomes_the_calls_result(refold: Refold, runs: Path) -> None:
    """The call is not run again: it happened."""
    run, question = _unsettled(refold, runs)
    assert refold("settle", run, question, "done", "--found", "it is up there").status == 0
    said = refold("resume", run, Agent("unsure"))
    assert (said.status, said.out) == (0, "It flies.\n")
    assert "told: it is up there" in said.err


def test_a_persons_rerun_runs_the_call_again(refold: Refold, runs: Path) -> None:
    """They say that every attempt so far did nothing."""
    run, question = _unsettled(refold, runs)
    assert refold("settle", run, question, "rerun").status == 0
    said = refold("resume", run, Agent("unsure"))
    assert (said.status, said.out) == (0, "It flies.\n")
    assert "ran: launched" in said.err


def test_done_needs_what_was_found_and_rerun_has_nothing(refold: Refold, runs: Path) -> None:
    """A result that nobody gave must not be made up."""
    run, question = _unsettled(refold, runs)
    assert refold("settle", run, question, "done").status == 2
    assert refold("settle", run, question, "rerun", "--found", "x").status == 2
    assert refold("settle", run, question, "perhaps").status == 2
    assert runner.read(run, runs).waiting


def test_stop_is_for_good_and_lists_the_open_calls(refold: Refold, runs: Path) -> None:
    """What may have happened is the one thing a person must still look after."""
    run = scenes.killed(runs, "unsure", "unsure-run")
    said = refold("stop", run, "--by", "ann")
    assert said.status == 0
    assert "open: 1.0 launch may have happened" in said.out
    assert runner.key(run, "1.0") in said.out
    again = refold("resume", run, Agent("unsure"))
    assert again.status == 1
    assert "StoppedByPerson" in again.err
    assert "by ann" in again.err


def test_stop_says_when_nothing_is_open_and_refuses_what_is_over(refold: Refold, runs: Path) -> None:
    """Stopping twice, or what is done, would only hide what happened."""
    run = scenes.stopped(runs)
    assert "No call is open" in refold("stop", run).out
    assert refold("stop", run).status == 1
    said = refold("stop", scenes.finished(runs))
    assert said.status == 1
    assert "it is done" in said.err


def test_on_a_live_run_an_answer_waits_two_seconds_and_names_the_holder(
    refold: Refold, runs: Path, tmp_path: Path
) -> None:
    """The log has one writer; whoever must wait is told for whom."""
    with scenes.live(runs, tmp_path) as (child, _):
        (run,) = (path.name for path in runs.iterdir())
        for words in (("approve", run, "1.0-approve"), ("stop", run)):
            began = time.monotonic()
            said = refold(*words)
            assert said.status == 4
            assert f"process {child.pid}" in said.err
            assert time.monotonic() - began >= 2
        assert runner.read(run, runs).stopped is None


def test_an_answer_is_taken_when_the_holder_ends_within_the_wait(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """A run that is about to pause is the usual case."""
    with scenes.live(runs, tmp_path) as (child, place):
        (run,) = (path.name for path in runs.iterdir())
        (place / "go").touch()
        said = refold("stop", run)
        assert child.wait(timeout=20) == 0
    assert said.status == 1
    assert "it is done" in said.err
