"""`refold triage`: the demonstration, killed, answered and resumed by three processes, and what it refuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import eventlog
import runner
from replay import NEW
from runner import triage
from runner.commands import options
from runner.triage import _commands
from tests.cli.conftest import Refold
from tests.triage.worlds import end_trackers

TASK = "m1-done-after-delete"


@pytest.fixture(autouse=True)
def _no_tracker_left(tmp_path: Path) -> Iterator[None]:
    """A tracker outlives its starter by design; a test's must not."""
    yield
    end_trackers(tmp_path)


@pytest.mark.full
def test_killed_after_the_patch_it_is_resumed_finishes_and_prints_its_answer_again(
    process: Refold, refold: Refold
) -> None:
    """Through the command: SIGKILL, what is left, the rest, and a third time without a model."""
    words = ("triage", "--task", TASK, "--approve", "off")
    assert process(*words, "--die-after", "code_patch").status == -9
    (row,) = refold("ls", "--json").json
    shown = refold("show", row["run"], "--json").json
    assert (shown["phase"], shown["turns"], shown["in_doubt"]) == ("tools", 8, ["8.0"])
    attempt = shown["attempts"]["8.0"]
    assert (attempt["tool"], attempt["effect"], attempt["key"]) == (
        "code_patch",
        "non_idempotent",
        runner.key(shown["uid"], "8.0"),
    )
    finished = process(*words).ends(0)
    assert finished.out.splitlines()[-1] == "16/16"
    assert "8.0 code_patch: found: " in finished.err
    again = process(*words)
    assert (again.status, again.out, again.err) == (0, finished.out, "")


def test_without_a_terminal_it_parks_another_process_answers_and_a_third_resumes(
    process: Refold, refold: Refold, runs: Path
) -> None:
    """The commands that answer and go on are the ones it printed."""
    parked = process("triage").ends(3)
    (run,) = eventlog.store(runs).names()
    assert f"refold approve {run} 12.0-approve --runs {runs}" in parked.out
    assert f"Then go on: refold triage --task {TASK} --runs {runs} --approve ask" in parked.out
    assert refold("approve", run, "12.0-approve").status == 0
    finished = process("triage").ends(0)
    assert finished.out.splitlines()[-1] == "16/16"


Result = runner.Outcome | Exception


def _ends(monkeypatch: pytest.MonkeyPatch, result: Result, *outcomes: triage.Outcome) -> None:
    """Let the job come to `result`, and its checks to `outcomes`."""

    async def run(_: triage.Job, **__: object) -> runner.Outcome:
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(triage.Job, "run", run)
    monkeypatch.setattr(triage.Job, "check", lambda *_: list(outcomes))


GOOD = triage.Outcome("good", "All is well.", ok=True, why="")
BAD = triage.Outcome("bad", "All is well.", ok=False, why="it is not")
DONE = runner.Finished("Fixed.", "Fixed.", "a-run", NEW)


def test_a_check_that_fails_is_the_status(refold: Refold, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that the world does not bear out is a failure, whatever it says."""
    _ends(monkeypatch, DONE, GOOD, BAD)
    said = refold("triage").ends(1)
    assert said.out.splitlines() == ["Fixed.", "ok      good  All is well.", "FAILED  bad  it is not", "1/2"]
    _ends(monkeypatch, DONE, GOOD)
    assert refold("triage").status == 0


@pytest.mark.parametrize(
    ("result", "status"),
    [(DONE, 1), (runner.Paused((), "a-run", NEW), 3), (runner.errors.TurnLimit("a-run", "why"), 1)],
    ids=["finished", "paused", "stopped"],
)
def test_a_death_that_did_not_come_is_said(
    refold: Refold, monkeypatch: pytest.MonkeyPatch, result: Result, status: int
) -> None:
    """Whoever asked to be killed there built a test on it; a paused run may still come to it in another life."""
    _ends(monkeypatch, result, GOOD)
    refold("triage", "--die-after", "code_patch", "--die-before", "issue_file").ends(
        status, err=["no call of code_patch returned in this process", "this process did not call issue_file"]
    )


def test_limits_stop_it_and_the_sentence_names_the_command_that_goes_on(refold: Refold, tmp_path: Path) -> None:
    """A world of one's own stays named in that command; `--new` starts another run in it."""
    words = ("triage", "--approve", "off", "--world", tmp_path / "my world", "--max-turns", 1)
    refold(*words).ends(1, "", err=["1 of 1 turns used", f"--world '{tmp_path}/my world' --approve off --max-turns N"])
    assert refold(*words, "--new").status == 1
    assert len(refold("ls", "--json").json) == 2


def test_a_foreign_edit_stops_it_until_the_command_vouches(refold: Refold, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names the option, and the option tells the job who vouches."""
    vouched: list[object] = []

    async def run(_: triage.Job, *, accept_workspace: str | None, **__: object) -> runner.Finished:
        vouched.append(accept_workspace)
        if accept_workspace is None:
            raise runner.errors.WorkspaceChanged("a-run", "todo/store.py (changed)")
        return DONE

    _ends(monkeypatch, DONE, GOOD)
    monkeypatch.setattr(triage.Job, "run", run)
    said = refold("triage")
    assert (said.status, "todo/store.py" in said.err) == (1, True)
    assert f"refold triage --task {TASK}" in said.err
    assert "--accept-workspace" in said.err
    assert refold("triage", "--accept-workspace").status == 0
    assert vouched == [None, options.account()]


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["--task", "m9-nothing"], 2, TASK),
        (["--die-after", "code_patsh"], 2, "code_patch"),
        (["--die-before", ""], 2, "code_patch"),
        (["--approve", "perhaps"], 2, "'perhaps' is not one of"),
        (["--max-turns", "-1"], 2, "-1 is not in the range"),
        (["--max-dollars", "many"], 2, "'many' is not a valid float"),
    ],
)
def test_what_can_not_be_meant_is_refused_before_anything_starts(
    refold: Refold, runs: Path, words: list[str], status: int, says: str
) -> None:
    """The sentence names what there is instead."""
    refold("triage", *words).ends(status, err=says)
    assert not runs.exists()


def test_what_is_not_installed_is_named_with_the_extra_that_brings_it(
    refold: Refold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library itself needs none of it, so it may well be absent."""
    monkeypatch.setattr(_commands, "NEEDS", (*_commands.NEEDS, "nothing_of_this_name"))
    for command in ("triage", "tracker"):
        refold(command).ends(1, err=[f"refold {command} needs nothing_of_this_name", "pip install 'refold[triage]'"])


def test_a_world_that_is_held_is_another_processs(refold: Refold, tmp_path: Path) -> None:
    """Two jobs in one workspace would patch each other's files."""
    with triage.World(tmp_path / "world").held():
        said = refold("triage", "--world", tmp_path / "world")
    assert said.status == 4
    assert "is held by process" in said.err
