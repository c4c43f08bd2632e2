"""`refold ls`: all runs of a directory, whatever state they and the directory are in."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import runner
from runner._cli._render import audit_text
from tests.cli import agents, scenes
from tests.cli.conftest import Agent, Refold
from tests.support import stage


class Fixed(runner.Clock):
    """A clock whose wall stands still at a moment."""

    def __init__(self, at: datetime) -> None:
        super().__init__()
        self._at = at

    def wall(self) -> datetime:
        """That moment."""
        return self._at


def test_runs_are_listed_newest_first_with_what_a_program_needs(refold: Refold, runs: Path) -> None:
    """The order is that of their beginnings, which never changes."""
    names = [scenes.finished(runs, "zz-first"), scenes.asking(runs, "aa-second"), scenes.stopped(runs, "mm-third")]
    rows = refold("ls", "--json").json
    assert [row["run"] for row in rows] == names[::-1]
    assert [row["phase"] for row in rows] == ["model", "paused", "done"]
    assert [row["stopped"] for row in rows] == ["TurnLimit", None, None]
    assert [row["turns"] for row in rows] == [1, 1, 2]
    assert [row["waiting"] for row in rows] == [[], ["1.0-approve"], []]
    assert rows[2]["task"] == "look at one"
    assert all(row["problem"] is None and row["resumes"] == 0 for row in rows)


def test_the_list_for_people_has_a_line_for_each_run(refold: Refold, runs: Path) -> None:
    """Without a terminal it is plain columns, fit for grep."""
    scenes.finished(runs)
    scenes.stopped(runs)
    lines = refold("ls").out.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("stopped-run  model, stopped (TurnLimit)")
    assert lines[2].startswith("done-run")
    assert lines[2].endswith("look at one")


def test_a_damaged_run_is_listed_with_its_problem_among_the_others(refold: Refold, runs: Path) -> None:
    """One bad log must not hide the good ones."""
    scenes.finished(runs, "good-run")
    scenes.damage(runs, scenes.finished(runs, "bad-run"))
    said = refold("ls", "--json").ends(0)
    bad, good = said.json
    assert (bad["run"], bad["phase"]) == ("bad-run", None)
    assert "damaged" in bad["problem"]
    assert (good["run"], good["phase"], good["problem"]) == ("good-run", "done", None)
    assert "unreadable" in refold("ls").out


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        (["--phase", "done"], ["done-run"]),
        (["--phase", "done", "--phase", "paused"], ["asking-run", "done-run"]),
        (["--task", "pay"], ["asking-run"]),
        (["--task", "nothing like it"], []),
        (["--stopped"], ["stopped-run"]),
        (["--stopped", "TurnLimit"], ["stopped-run"]),
        (["--stopped", "DollarLimit"], []),
        (["--stopped", "--phase", "done"], []),
        (["--older-than", "1h"], []),
        (["--newer-than", "1h"], ["stopped-run", "asking-run", "done-run"]),
    ],
)
def test_filters_leave_the_runs_that_fit_all_of_them(
    refold: Refold, runs: Path, filters: list[str], left: list[str]
) -> None:
    """A damaged run fits no filter: nothing is known of what the filter asks."""
    scenes.damage(runs, scenes.finished(runs, "bad-run"))
    scenes.finished(runs)
    scenes.asking(runs)
    scenes.stopped(runs)
    assert [row["run"] for row in refold("ls", "--json", *filters).json] == left


def test_runs_are_found_by_their_labels(refold: Refold, runs: Path) -> None:
    """All that are asked for must fit; a label without a value, or twice the sign, is what it says."""
    for tenant in ("acme", "a=b"):
        refold("run", "look", Agent("plain"), "--label", f"tenant={tenant}", "--label", "kind=test")
    scenes.finished(runs)
    found = refold("ls", "--json", "--label", "tenant=a=b", "--label", "kind=test").json
    assert [row["labels"] for row in found] == [{"kind": "test", "tenant": "a=b"}]
    assert refold("ls", "--json", "--label", "tenant=").json == []
    assert "is not a name, =, and a value" in refold("ls", "--label", "tenant").err


def test_the_list_says_who_is_live_and_what_the_others_wait_for(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """A person sees at a glance where something is to be done."""
    scenes.asking(runs)
    with scenes.live(runs, tmp_path):
        live, asks = refold("ls", "--json").json
        assert (live["live"], live["phase"], asks["live"]) == (True, "tools", False)
        lines = refold("ls").out.splitlines()
        assert ("tools, live" in lines[1], "paused, asks 1.0-approve" in lines[2]) == (True, True)


@pytest.mark.parametrize(("seconds", "said"), [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (172_800, "2d")])
def test_an_age_is_said_in_one_unit(seconds: int, said: str) -> None:
    """The console says it in the same words."""
    assert audit_text.ago(datetime.now(UTC) - timedelta(seconds=seconds)) == f"{said} ago"


def test_age_is_counted_from_the_last_save(refold: Refold, runs: Path) -> None:
    """A run that was started long ago and saved a moment ago is at work."""
    then = datetime.now(UTC) - timedelta(days=3)
    runner.start_sync(agents.paying, "pay", runs=runs, run="old-run", clock=Fixed(then))
    assert [row["run"] for row in refold("ls", "--json", "--older-than", "2d").json] == ["old-run"]
    assert refold("ls", "--json", "--newer-than", "2d").json == []
    runner.approve("old-run", "1.0-approve", "ann", runs=runs)
    assert [row["run"] for row in refold("ls", "--json", "--newer-than", "2d").json] == ["old-run"]
    assert "old-run" in refold("ls").out


def test_an_age_that_makes_no_sense_is_a_usage_error(refold: Refold) -> None:
    """The message shows how an age is written."""
    refold("ls", "--older-than", "yesterday").ends(2, err="90s, 15m, 2h or 7d")


def test_a_run_whose_model_is_down_says_when_a_worker_asks_again(refold: Refold, runs: Path) -> None:
    """It is stopped, and yet nobody need do anything."""
    clock = stage.Ticking(datetime.now(UTC))
    with pytest.raises(runner.errors.ModelUnavailable):
        stage.start([runner.ModelError("the service is down")], runs=runs, clock=clock)
    assert re.search(r"model, stopped \(ModelUnavailable\), waits \d+[sm] ", refold("ls").out)


def test_no_runs_are_an_empty_list_and_a_sentence(refold: Refold, runs: Path) -> None:
    """A directory that does not exist yet holds no runs; that is no error."""
    assert refold("ls", "--json").json == []
    refold("ls").ends(0, "", err=str(runs))


def test_a_directory_entry_that_is_no_run_is_left_out(refold: Refold, runs: Path) -> None:
    """Whoever keeps a note among the runs is not punished for it."""
    scenes.finished(runs)
    (runs / "readme").write_text("hello")
    (runs / "empty-dir").mkdir()
    assert [row["run"] for row in refold("ls", "--json").json] == ["done-run"]
