"""Real processes and SIGKILL: a parent with two children dies anywhere in any of them, and the next process goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import eventlog
import runner
from tests.children.scenes import children, spent
from tests.support import ROOT


def process(folder: Path, dies: int) -> subprocess.CompletedProcess[str]:
    """One process, to its end."""
    words = [sys.executable, "-m", "tests.children.killed", str(folder), str(dies)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.full
@pytest.mark.fault("SIGKILL in a child run")
def test_a_family_that_is_killed_at_any_moment_pays_each_order_once_and_counts_each_reply_once(tmp_path: Path) -> None:
    """Two deaths each time: the second one somewhere in the resume."""
    (tmp_path / "run-000").mkdir()
    whole = process(tmp_path / "run-000", -1)
    assert whole.returncode == 0, whole.stderr
    moments = int(whole.stdout)
    assert moments >= 16
    for dies in range(moments):
        folder = tmp_path / f"run-{dies + 1:03}"
        folder.mkdir()
        assert process(folder, dies).returncode == -signal.SIGKILL
        process(folder, dies % 5)  # it may be done before that
        last = process(folder, -1)
        assert last.returncode == 0, (dies, last.stderr)
        paid = (folder / "paid").read_text(encoding="utf-8").split()
        assert sorted(paid[1::2]) == ["a", "b"], dies
        runs = eventlog.Directory(folder / "runs")
        state = runner.read_state("p", runs)
        assert state.phase == "done"
        assert len(runs.runs()) == 3
        assert all(runs.verify(run).ok for run in runs.runs())
        replies = spent(runs, "p", *children(runs))
        assert state.spent.dollars == pytest.approx(replies), dies
        assert state.spent.lost_asks <= 4, "one for each run that asked when it died, twice"
