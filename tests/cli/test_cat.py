"""`refold cat`: the bytes of a log, and nothing that only looks like them."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from tests.cli import scenes
from tests.cli.conftest import Refold, environment


def _sums(text: str) -> list[str]:
    """The sum of each line, worked out from its bytes, after holding it against the one that it carries."""
    sums = []
    for line in text.encode().split(b"\n")[:-1]:
        body, _, rest = line.rpartition(b',"sum":')
        made = hashlib.sha256(body).hexdigest()[:32]
        assert rest == f'"{made}"}}'.encode()
        sums.append(made)
    return sums


def test_every_line_comes_as_it_stands_on_disk_so_that_its_sum_holds(refold: Refold, runs: Path) -> None:
    """Whoever distrusts us can work the chain out with any SHA-256."""
    run = scenes.finished(runs)
    said = refold("cat", run)
    assert (said.status, said.err) == (0, "")
    assert said.out.encode() == scenes.segment(runs, run).read_bytes()
    sums = _sums(said.out)
    assert [json.loads(line)["prev"] for line in said.out.splitlines()][1:] == sums[:-1]


def test_the_zeros_a_writer_laid_ahead_are_left_out(refold: Refold, runs: Path) -> None:
    """A log whose process died ends in zeros, and jq must not meet them."""
    run = scenes.killed(runs, "stumbling", "stumbling-run")
    stored = scenes.segment(runs, run).read_bytes()
    assert stored.endswith(b"\0")
    said = refold("cat", run)
    assert (said.status, said.err) == (0, "")
    assert said.out.encode() == stored.rstrip(b"\0")


def test_a_save_that_never_finished_is_said_and_not_printed(refold: Refold, runs: Path) -> None:
    """It was never acknowledged, so it never happened; a program that reads stdout must not see it."""
    run = scenes.killed(runs, "stumbling", "stumbling-run")
    good = refold("cat", run).out
    scenes.tear(runs, run)
    refold("cat", run).ends(0, good, err="7 bytes of a save that has not finished")


def test_of_a_damaged_log_what_holds_is_printed_and_the_status_is_five(refold: Refold, runs: Path) -> None:
    """The good lines are evidence; the damage is on stderr, with where it is."""
    run = scenes.finished(runs)
    before = refold("cat", run).out
    scenes.damage(runs, run)
    said = refold("cat", run).ends(5)
    assert said.out
    assert before.startswith(said.out)
    assert "seg-000001.jsonl" in said.err
    assert "damaged" in said.err


def test_a_reader_that_goes_away_is_no_error(runs: Path) -> None:
    """`refold cat RUN | head -1` is the commonest use there is."""
    run = scenes.finished(runs)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "runner._cli", "cat", run, "--runs", str(runs)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(timeout=90) == 1
