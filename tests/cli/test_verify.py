"""`refold verify`: whether a log is whole, said so that a person and a program can act on it."""

from pathlib import Path

import eventlog
from tests.cli import scenes
from tests.cli.conftest import Refold


def test_a_whole_log_is_said_to_be_whole_and_its_sum_is_there_to_keep(refold: Refold, runs: Path) -> None:
    """The last sum is what shows tampering later."""
    run = scenes.finished(runs)
    last = eventlog.store(runs).verify(run).sum
    refold("verify", run).ends(0, out=["whole", last])
    verdict = refold("verify", run, "--json").json
    assert (verdict["ok"], verdict["sum"], verdict["damage"], verdict["head"]) == (True, last, None, "closed")


def test_damage_ends_with_five_and_names_the_place(refold: Refold, runs: Path) -> None:
    """A restore needs to know which file, and from where on."""
    run = scenes.finished(runs)
    scenes.damage(runs, run)
    refold("verify", run).ends(5, out="damaged")
    verdict = refold("verify", run, "--json").ends(5)
    assert verdict.json["damage"]["file"] == "seg-000001.jsonl"


def test_a_sum_kept_elsewhere_is_held_against_the_log(refold: Refold, runs: Path) -> None:
    """The chain alone can be rewritten by anybody; against a kept sum it can't."""
    run = scenes.asking(runs)
    kept = eventlog.store(runs).verify(run).sum
    refold("approve", run, "1.0-approve")
    assert refold("verify", run, "--expect", kept).status == 0
    assert "the expected sum" in refold("verify", run, "--expect", kept).out
    refold("verify", run, "--expect", "0" * 31 + "1").ends(5, out="not the log")


def test_a_torn_log_is_whole(refold: Refold, runs: Path) -> None:
    """Torn is normal: nothing that was acknowledged is missing."""
    run = scenes.killed(runs, "stumbling", "stumbling-run")
    scenes.tear(runs, run)
    refold("verify", run).ends(0, out="never finished")


def test_good_lines_that_make_no_history_are_damage(refold: Refold, runs: Path) -> None:
    """Every sum may hold while the events contradict each other: no version of refold wrote that."""
    run = scenes.finished(runs)
    with eventlog.store(runs).open(run) as log:
        log.append(log.lines[-1].at, [b'{"type":"reply_saved","reply":{"text":"again"}}'])
    refold("verify", run).ends(5, err="reply_saved is not legal")
    assert refold("show", run).status == 5
    assert "reply_saved is not legal" in refold("ls", "--json").json[0]["problem"]
