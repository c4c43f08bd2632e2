"""Damage in front of a snapshot: a resume may begin after it, but whoever judges a run must not."""

from collections.abc import Callable
from pathlib import Path

import pytest

import eventlog
import replay
import runner
from runner.testing import ScriptedModel
from tests.cli.conftest import Refold
from tests.review.retrace import agents
from tests.review.retrace.histories import calling, logged

pytestmark = [pytest.mark.fault("damage in front of a snapshot")]

CALL = ("look", '{"x": 1}')
AT = "--agent=tests.review.retrace.agents:looking"


@pytest.fixture
def run(runs: Path) -> Path:
    """A run of three segments: a snapshot begins each of the last two."""
    place = logged(calling(CALL, agent=agents.looking), runs)
    for _ in range(2):
        with eventlog.store(runs).open("r") as log:
            state = replay.load(log.lines)
            log.compact(replay.dump(state), replay.FOLD_VERSION)
    assert eventlog.store(runs).read("r", accept=lambda _: True).snapshot is not None
    return place


def _flip(run: Path) -> None:
    """One letter in the first segment."""
    segment = run / "seg-000001.jsonl"
    data = segment.read_bytes()
    assert b"run_started" in data
    segment.write_bytes(data.replace(b"run_started", b"run_startle"))


def _exported(run: Path) -> None:
    runner.review.export("r", agents.looking, runs=run.parent)


READS: dict[str, Callable[[Path], object]] = {
    "export": _exported,
    "retrace": lambda run: runner.review.retrace("r", agents.looking, runs=run.parent),
    "fork": lambda run: runner.fork("r", at=2, runs=run.parent),
}


@pytest.mark.parametrize("reads", READS.values(), ids=READS)
def test_what_compares_or_copies_a_run_reads_all_of_it(reads: Callable[[Path], object], run: Path) -> None:
    """A copy of a damaged history would be one that never was."""
    _flip(run)
    with pytest.raises(eventlog.LogDamaged):
        reads(run)


def test_the_audit_and_the_report_tell_the_damage(run: Path, refold: Refold, tmp_path: Path) -> None:
    """Up to where the history can be relied on."""
    _flip(run)
    assert isinstance(runner.review.audit("r", run.parent).problem, eventlog.LogDamaged)
    assert refold("audit", "r").status != 0
    page = tmp_path / "r.html"
    assert refold("report", "r", "--output", str(page)).status != 0
    assert "damaged" in page.read_text(encoding="utf-8")


def test_a_preflight_names_the_run_and_fails(run: Path, refold: Refold) -> None:
    """Its resume would go on from the snapshot, and its history is lost."""
    assert refold("preflight", AT).status == 0
    _flip(run)
    (found,) = runner.review.preflight(run.parent, agents.looking)
    assert (found.able, [issue.kind for issue in found.issues]) == (False, ["unreadable"])
    assert refold("preflight", AT).status == 1


def _gone(run: Path) -> None:
    (run / "seg-000001.jsonl").unlink()


def _empty(run: Path) -> None:
    (run / "seg-000001.jsonl").write_bytes(b"")


def _shorter(run: Path) -> None:
    segment = run / "seg-000001.jsonl"
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[:-1]))


def _cut(run: Path) -> None:
    segment = run / "seg-000001.jsonl"
    segment.write_bytes(segment.read_bytes()[:-1])


def _longer(run: Path) -> None:
    segment = run / "seg-000001.jsonl"
    segment.write_bytes(segment.read_bytes() + b"\0" * 512)


def _other_end(run: Path) -> None:
    segment = run / "seg-000001.jsonl"
    data = segment.read_bytes()
    at = data.rindex(b'"events"')
    segment.write_bytes(data[:at] + data[at:].replace(b"1.0", b"1.1", 1))


def _not_a_file(run: Path) -> None:
    (run / "seg-000001.jsonl").unlink()
    (run / "seg-000001.jsonl").mkdir()


@pytest.mark.parametrize("spoil", [_gone, _empty, _shorter, _cut, _longer, _other_end, _not_a_file])
def test_a_resume_sees_that_a_segment_is_missing_or_ends_otherwise(spoil: Callable[[Path], None], run: Path) -> None:
    """It looks at names, sizes and ends of the segments that it need not read."""
    spoil(run)
    with pytest.raises((eventlog.LogDamaged, eventlog.DiskFailed)):
        runner.resume_sync("r", agents.looking, runs=run.parent)


def test_a_resume_goes_on_from_a_snapshot_without_reading_what_lies_before(run: Path) -> None:
    """That is the point of a snapshot; `verify` reads everything."""
    _flip(run)
    outcome = runner.resume_sync("r", agents.looking.replace(model=ScriptedModel(["x"] * 9)), runs=run.parent)
    assert outcome.finished().answer
    assert not eventlog.store(run.parent).verify("r").ok
