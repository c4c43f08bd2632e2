"""Audit of a run on disk: what no event says and the bytes do, and how far a damaged log can be told."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import eventlog
import replay
import runner
from replay import Finding
from replay.events import UnknownEvent
from tests.review.audit import stories
from tests.runs.test_status import Counting
from tests.support.disks import Quick
from tests.support.story import BEGIN

STUB = b'{"seq":4,"life":1,"at":"2026-01-01T00:00'


class Nowhere(Quick):
    """A disk on which nobody knows what a sync is worth."""

    def mounts(self) -> str:
        """An empty table."""
        return ""


def kind(audited: runner.review.Audited, name: str) -> list[Finding]:
    """The findings of one kind."""
    return [finding for finding in audited.story.findings if finding.kind == name]


def segment(runs: Path) -> Path:
    """The one segment of the run."""
    return runs / stories.RUN / "seg-000001.jsonl"


def tear(runs: Path, stub: bytes) -> None:
    """Leave the beginning of a save behind the last line of a run that was not closed."""
    data = segment(runs).read_bytes()
    end = data.rindex(b"\n") + 1
    segment(runs).write_bytes(data[:end] + stub + b"\0" * (len(data) - end - len(stub)))


def shelved(runs: Path, *, close: bool = False) -> str:
    """A short run: lines 0 to 5, its call's result in line 4."""
    return stories.shelf(stories.plain(), runs, close=close, disk=Quick())


def reopened(runs: Path) -> None:
    """Another life, which cuts what is torn."""
    with eventlog.Directory(runs, disk=Quick()).open(stories.RUN) as log:
        log.append(
            BEGIN,
            [replay.encode(UnknownEvent("noted", b'{"type":"noted","ignorable":true}', ignorable=True))],
        )


def test_a_torn_tail_that_was_cut_is_found_with_the_line_whose_first_try_it_was(runs: Path) -> None:
    """Its copy stands beside the log, and enough of it is left to say which save it was."""
    run = shelved(runs)
    tear(runs, STUB)
    reopened(runs)
    (found,) = kind(runner.review.audit(run, runs), "torn")
    (copy,) = (path.name for path in (runs / run).glob("torn-*"))
    assert found.seqs == (4,)
    assert f"{len(STUB)} bytes, was cut off segment 1 and kept as {copy}; nothing acknowledged is missing" in found.says
    assert found.says.endswith("is missing")


def test_a_torn_tail_too_short_to_say_its_line_is_placed_before_the_lives_it_may_belong_to(runs: Path) -> None:
    """A finding names lines even then."""
    run = shelved(runs)
    tear(runs, b'{"se')
    reopened(runs)
    audited = runner.review.audit(run, runs)
    (found,) = kind(audited, "torn")
    assert found.seqs == (audited.story.lives[1].seq,)
    assert "before one of these lines" in found.says


def test_a_copy_of_a_torn_tail_that_was_changed_since_says_so(runs: Path) -> None:
    """Evidence that anyone may have edited proves nothing."""
    run = shelved(runs)
    tear(runs, STUB)
    reopened(runs)
    (copy,) = (runs / run).glob("torn-*")
    copy.write_bytes(b"edited")
    (found,) = kind(runner.review.audit(run, runs), "torn")
    assert found.says.endswith("the copy has changed since")


@pytest.mark.fault("link, FIFO or replaced file")
def test_a_pipe_in_the_place_of_evidence_makes_no_reader_wait(runs: Path) -> None:
    """What is no plain file is not opened."""
    run = shelved(runs, close=True)
    os.mkfifo(runs / run / f"torn-000001-{'0' * 64}")
    (found,) = kind(runner.review.audit(run, runs), "torn")
    assert "0 bytes" in found.says


def test_a_torn_tail_that_still_stands_is_found_behind_the_last_line(runs: Path) -> None:
    """A reader cuts nothing, and says what the next opening will."""
    run = shelved(runs)
    tear(runs, STUB)
    audited = runner.review.audit(run, runs)
    (found,) = kind(audited, "torn")
    assert found.seqs == (audited.story.seq,)
    assert f"{len(STUB)} bytes of a save that is being written or never finished" in found.says


def test_storage_that_may_lose_lines_in_a_power_cut_is_found(runs: Path) -> None:
    """The header holds what the log stood on when it was created; good storage is no finding."""
    run = stories.shelf(stories.plain(), runs, disk=Nowhere())
    audited = runner.review.audit(run, runs)
    (found,) = kind(audited, "storage")
    assert "survives a killed process, but perhaps not a power cut" in found.says
    assert audited.storage is not None
    header = eventlog.store(runs).read(run).lines[0].header
    assert header is not None
    assert header.storage == audited.storage


def test_a_salvaged_run_names_its_gaps(runs: Path) -> None:
    """What is missing may have acted, and the new log is whole."""
    run = shelved(runs, close=True)
    data = segment(runs).read_bytes()
    segment(runs).write_bytes(data.replace(b'"result_recorded"', b'"RESULT_recorded"'))
    eventlog.Directory(runs, disk=Quick()).salvage(run, "saved", follows=lambda line: line.seq < 4).close()
    audited = runner.review.audit("saved", runs)
    source, *gaps = kind(audited, "salvaged")
    assert audited.problem is None
    assert source.says == "the log was salvaged from run r, of which 3 lines could be read"
    assert [gap.says.partition(" is missing: ")[0] for gap in gaps] == [
        "what came after line 3 and before line 5 of run r",
        "what came after line 3 of run r",
    ]


@pytest.mark.parametrize("spot", [b'"model_asked"', b'"result_recorded"'])
def test_a_damaged_log_is_told_up_to_its_damage(runs: Path, spot: bytes) -> None:
    """An auditor wants to know what still holds, and up to where."""
    run = shelved(runs, close=True)
    whole = runner.review.audit(run, runs)
    data = segment(runs).read_bytes()
    segment(runs).write_bytes(data.replace(spot, spot.swapcase(), 1))
    audited = runner.review.audit(run, runs)
    assert isinstance(audited.problem, eventlog.LogDamaged)
    last = audited.problem.expected_seq - 1
    assert audited.story.seq == last
    (found,) = kind(audited, "damaged")
    assert found.seqs == (last,)
    assert found.says.startswith(f"lines 0 to {last} are good and stand here; run r is damaged in seg-000001.jsonl")
    assert audited.lines == whole.lines[: last + 1]


def test_a_history_that_no_fold_allows_is_told_up_to_the_line_before(runs: Path) -> None:
    """Its bytes hold, and its events are none that this run can have written."""
    story = stories.plain()
    story.lines.append(story.lines[0])  # a run starts once
    run = stories.shelf(story, runs, disk=Quick())
    audited = runner.review.audit(run, runs)
    assert isinstance(audited.problem, replay.IllegalEvent)
    assert audited.problem.seq == audited.story.seq + 1 == len(story.lines)
    assert audited.story.phase == "done"


def test_a_log_without_one_good_line_is_told_as_that(runs: Path) -> None:
    """Nothing is known of it but its name and its damage."""
    run = shelved(runs, close=True)
    segment(runs).write_bytes(b"x" + segment(runs).read_bytes()[1:])
    audited = runner.review.audit(run, runs)
    (found,) = audited.story.findings
    assert (found.kind, audited.story.seq, audited.storage) == ("damaged", -1, None)
    assert found.says.startswith("no line of it is good; ")


def test_an_audit_that_goes_on_from_an_earlier_one_reads_only_what_was_written_since(runs: Path) -> None:
    """And is the audit that anybody else would make, whatever was done between the two."""
    run, disk = shelved(runs), Counting()
    store = eventlog.Directory(runs, disk=disk)
    audited = runner.review.audit(run, store)
    log = eventlog.Directory(runs, disk=Quick()).open(run)

    def grow() -> None:
        noted = UnknownEvent("noted", b'{"type":"noted","ignorable":true}', ignorable=True)
        log.append(log.at, [replay.encode(noted)])

    def damage() -> None:
        data = segment(runs).read_bytes()
        segment(runs).write_bytes(data.replace(b'"ok"', b'"no"'))

    changes: list[Callable[[], object]] = [lambda: None, grow, grow, log.abandon, lambda: tear(runs, STUB)]
    for change in (*changes, lambda: reopened(runs), damage):
        change()
        disk.whole = 0
        audited = runner.review.audit(run, store, before=audited)
        assert disk.whole == 0 or change is not grow
        if change is damage:  # it lies before what was read on, so only who reads from the start finds it
            audited = runner.review.audit(run, store)
        fresh = runner.review.audit(run, runs)
        assert (audited.story, audited.state, audited.lines) == (fresh.story, fresh.state, fresh.lines)
        assert str(audited.problem) == str(fresh.problem)
