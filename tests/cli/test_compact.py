"""`refold compact`: a snapshot by hand; every event stays."""

from pathlib import Path

import eventlog
import replay
import runner
from tests.cli import scenes
from tests.cli.conftest import Refold


def test_a_snapshot_is_made_and_nothing_is_lost(refold: Refold, runs: Path) -> None:
    """The run answers as before, and its log holds every line and one more header."""
    run = scenes.asking(runs)
    before, state = eventlog.store(runs).read(run).lines, runner.read_state(run, runs)
    refold("compact", run).ends(0, out=f"{before[-1].seq}")
    after = eventlog.store(runs).read(run).lines
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1
    assert eventlog.store(runs).read(run, accept=lambda _: True).lines == after[-1:]
    read = runner.read_state(run, runs)
    assert (read.messages, read.questions) == (state.messages, state.questions)
    assert read == replay.load(after)
    assert f"snap-{before[-1].seq}.json" in refold("verify", run).out
    assert refold("approve", run, "1.0-approve").status == 0
    assert refold("verify", run).status == 0


def test_a_run_that_another_process_holds_is_not_compacted(refold: Refold, runs: Path) -> None:
    """Its own loop does that."""
    run = scenes.asking(runs)
    with eventlog.store(runs).open(run):
        assert refold("compact", run).status == 4


def test_a_damaged_run_is_not_compacted(refold: Refold, runs: Path) -> None:
    """A snapshot of a part would be taken for the whole; one of no history would be of nothing."""
    run = scenes.finished(runs)
    with eventlog.store(runs).open(run) as log:
        log.append(log.at, [b'{"type":"reply_saved","reply":{"text":"again"}}'])
    assert refold("compact", run).status == 5
    scenes.damage(runs, run)
    assert refold("compact", run).status == 5
    assert not list((runs / run).glob("snap-*"))
