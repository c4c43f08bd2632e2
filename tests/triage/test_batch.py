"""The batch: what its recorded conversation is made of, and what its checks look at."""

from pathlib import Path

import pytest

import eventlog
import replay
import runner
import runner.testing
from replay.events import ModelAsked, ResultRecorded
from runner import triage
from runner.triage._tracker_store import Comment, Issue, stored
from tests.triage.worlds import BATCH, Done

pytestmark = pytest.mark.usefixtures("_suites_once")


def test_each_of_its_six_causes_has_checks_of_its_own(batch: Done) -> None:
    """Named after the crash group."""
    patched = batch.job.check(batch.run, "patched-once")
    assert [outcome.name for outcome in patched] == [f"B-10{n} patched-once" for n in (1, 2, 3, 4, 6, 7)]


def test_it_takes_142_saves_with_a_summary_in_the_middle(batch: Done) -> None:
    """The size of the job that the benchmarks speak of, and a conversation that was too long to be sent whole.

    The last result of a reply shares a line with what comes next. Those of reads that end together share it too; on a
    busy machine each that ended before has a line of its own, which is not counted.
    """
    state = runner.read_state(batch.run, batch.job.runs)
    assert state.turns == 60
    lines = eventlog.store(batch.job.runs).read(batch.run).lines[1:]
    saved = [[replay.decode(raw) for raw in line.events] for line in lines]
    early = [events for events in saved if all(isinstance(event, ResultRecorded) for event in events)]
    assert len(saved) - len(early) == 142
    assert state.summary is not None
    asked = [event.purpose for events in saved for event in events if isinstance(event, ModelAsked)]
    assert (asked.count("summary"), asked.index("summary")) == (1, 28)


def test_the_current_code_decides_what_a_batch_decided_that_was_just_run(batch: Done) -> None:
    """No decision differs, and not even a word: else a retrace of anybody's run would cry wolf."""
    found = runner.review.retrace(batch.run, batch.job.agent(), runs=batch.job.runs)
    assert (found.divergence, found.drift) == (None, ())


def test_its_groups_are_of_every_kind() -> None:
    """Six causes in five files, one met twice, one never seen again, and one patch that had to be corrected."""
    expected = triage.Task(BATCH).expected
    crashes = {crash.id for crash in triage.Task(BATCH).crashes()}
    parts = (expected.fixes, expected.same, expected.unseen)
    assert sorted(group.crash for part in parts for group in part) == sorted(crashes)
    assert len({fix.patch.path for fix in expected.fixes}) == 5
    assert {same.cause for same in expected.same} < {fix.cause for fix in expected.fixes}
    replies = runner.testing.RecordedModel(triage.Task(BATCH).recording).replies
    called = [call.tool for reply in replies.values() for call in reply.calls]
    assert called.count("issue_file") == len(expected.fixes) + len(expected.same)
    assert called.count("code_patch") == len(expected.fixes) + len(expected.corrected)
    assert called.count("issue_comment") == expected.comments


def test_each_cause_has_one_issue_and_the_second_filing_became_a_comment(batch: Done) -> None:
    """What a person finds in the tracker afterwards."""
    filed = stored(batch.job.world.tracker, Issue)
    assert [issue.cause for issue in filed] == [fix.cause for fix in batch.job.task.expected.fixes]
    assert [comment.issue for comment in stored(batch.job.world.tracker, Comment)] == [1, 1, 2, 3, 4, 5, 6]


def test_a_check_of_each_group_fails_for_the_group_that_is_wrong(batch: Done, tmp_path: Path) -> None:
    """And says which; the others stand."""
    done = batch.copy(tmp_path)
    done.sql("UPDATE issue SET title = 'it crashes' WHERE id = 2")
    assert done.failed("names-crash", "one-issue") == {"B-102 names-crash": "the title does not name B-102"}
