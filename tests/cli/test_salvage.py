"""`refold salvage`: what is good of a damaged run can be read under another name, and is never carried on."""

from pathlib import Path

import pytest

import eventlog
import replay
import runner
from tests.cli import agents, scenes
from tests.cli.conftest import Agent, Refold


def test_what_is_good_of_a_damaged_run_is_copied_and_stopped_for_good(refold: Refold, runs: Path) -> None:
    """What is missing may have acted in the world: nobody may go on as if it had not."""
    run = scenes.finished(runs)
    scenes.damage(runs, run)
    before = scenes.segment(runs, run).read_bytes()
    said = refold("salvage", run, "copy", "--by", "ann")
    assert said.status == 0, said
    assert "gap" in said.out
    assert scenes.segment(runs, run).read_bytes() == before
    assert refold("show", run).status == 5
    assert refold("verify", "copy").status == 0
    facts = refold("show", "copy", "--json").json
    assert (facts["run"], facts["parent"], facts["stopped"], facts["final"]) == ("copy", run, "StoppedByPerson", True)
    assert "by ann" in facts["stopped_detail"]
    assert facts["turns"] == 0
    with pytest.raises(runner.errors.StoppedByPerson):
        runner.resume_sync("copy", agents.plain, runs=runs)
    assert refold("resume", "copy", Agent("plain")).status == 1


def test_only_lines_that_make_a_history_with_those_before_are_copied(refold: Refold, runs: Path) -> None:
    """Good lines behind a gap may contradict what is before it; then the copy ends at the gap."""
    run = scenes.finished(runs)
    scenes.damage(runs, run)
    assert refold("salvage", run, "copy").status == 0
    lines = eventlog.store(runs).read("copy").lines
    assert replay.load(lines).stopped is not None
    whole = eventlog.store(runs).scan(run).damage
    assert whole is not None
    assert whole.good_after > 0
    assert "make no history" in refold("verify", "copy").out


def test_a_run_whose_lines_are_good_and_make_no_history_is_salvaged_too(refold: Refold, runs: Path) -> None:
    """`verify` calls it damaged; what came before is good."""
    run = scenes.asking(runs)
    with eventlog.store(runs).open(run) as log:
        log.append(log.at, [b'{"type":"reply_saved","reply":{"text":"again"}}'])
    assert refold("verify", run).status == 5
    assert refold("salvage", run, "copy").status == 0
    assert refold("show", "copy").status == 0
    assert refold("verify", "copy").status == 0


def test_a_done_run_stays_done(refold: Refold, runs: Path) -> None:
    """A stray byte behind its end is damage, and takes nothing from its answer."""
    run = scenes.finished(runs)
    with scenes.segment(runs, run).open("ab") as file:
        file.write(b"x")
    assert refold("salvage", run, "copy").status == 0
    assert refold("show", "copy", "--json").json["answer"] == "It is one."


def test_a_run_that_is_whole_is_not_salvaged(refold: Refold, runs: Path) -> None:
    """Two runs of one history would both go on."""
    run = scenes.finished(runs)
    refold("salvage", run, "copy").ends(1, err="is not damaged")
    refold("salvage", run, "copy").ends(1, err=f"`refold show {run}` says how far it came")  # nothing carries it on
    assert not (runs / "copy").exists()
    assert refold("salvage", "nobody", "copy").status == 1
    assert refold("salvage", run, "../copy").status in {1, 2}
