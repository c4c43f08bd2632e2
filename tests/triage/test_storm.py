"""The batch under SIGKILLs at random moments: every check passes, and nobody is asked who need not be."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from runner import triage
from runner.triage._tracker_store import issues
from tests.triage.lives import Lives
from tests.triage.storm import Command, Forked, Storm, blows
from tests.triage.worlds import BATCH, Done


def holds(storm: Storm, run: str) -> None:
    """Everything that the batch promises, whatever fell on it."""
    done = Done(triage.Job.of(BATCH, storm.runs), run)
    assert done.failed() == {}
    causes = Counter(issue.cause for issue in issues(storm.world.tracker))
    assert causes == Counter(fix.cause for fix in done.job.task.expected.fixes)


@pytest.mark.usefixtures("_suites_once")
def test_five_sigkills(lives: Lives, tmp_path: Path) -> None:
    """The short version of the storm below."""
    storm = Storm(tmp_path / "runs", Forked(lives, tmp_path / "runs"))
    run = storm.rage(blows(5, seed=3))
    assert storm.struck["agent"] + storm.struck["tracker"] >= 5
    assert storm.questions == []
    holds(storm, run)


@pytest.mark.full
def test_fifty_sigkills(tmp_path: Path) -> None:
    """Agent and tracker die again and again; keys and lookups make up for all of it, so nobody is asked anything."""
    storm = Storm(tmp_path / "runs", Command(tmp_path / "runs"))
    run = storm.rage(blows(50, 1))
    assert sum(storm.struck.values()) >= 50
    assert min(storm.struck.values()) > 0
    assert storm.questions == []
    holds(storm, run)


@pytest.mark.full
def test_fifty_sigkills_with_a_tracker_that_neither_knows_keys_nor_can_be_asked(lives: Lives, tmp_path: Path) -> None:
    """Only a filing that was cut off is put to a person: one is, and the storm spares the others."""
    runs = tmp_path / "runs"
    storm = Storm(runs, Command(runs), spares_writes=True)
    triage.set_manners(storm.world.path, triage.Manners(ignore_keys=True, lookup_down=True))
    assert lives.run(BATCH, runs, approve="off", resumes=100, die_after="issue_file").returncode == -signal.SIGKILL
    run = storm.rage(blows(50, seed=4))
    assert [(question.kind, question.tool) for question in storm.questions] == [("settle", "issue_file")]
    holds(storm, run)
