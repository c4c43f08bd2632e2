"""`refold resume --all`: one command after a deploy."""

import signal
from pathlib import Path

import pytest

import eventlog
import runner
from tests.cli import agents, scenes
from tests.cli.conftest import Agent, Refold
from tests.support.unmeasured import SILENT


def test_every_interrupted_run_of_the_agent_is_carried_on_and_no_other(refold: Refold, runs: Path) -> None:
    """Another agent's runs, finished ones and those that stopped for a reason are left as they are."""
    mine = [scenes.killed(runs, "stumbling", f"mine-{number}") for number in range(2)]
    others = scenes.killed(runs, "unsure", "others-run")
    done = scenes.finished(runs)
    said = refold("resume", "--all", Agent("stumbling")).ends(0)
    assert sorted(said.out.splitlines()) == [f"{run}  done" for run in mine]
    assert runner.read_state(others, runs).resumes == 0
    assert runner.read_state(done, runs).resumes == 0


def test_a_run_that_a_signal_parked_is_interrupted_and_one_at_its_limit_is_not(
    refold: Refold, runs: Path, tmp_path: Path
) -> None:
    """A deploy ends processes by a signal: those runs are what the command is for."""
    with scenes.live(runs, tmp_path) as (child, place):
        child.send_signal(signal.SIGINT)
        scenes.notice(child)
        (place / "go").touch()
        child.communicate(timeout=90)
    said = refold("resume", "--all", Agent("meeting")).ends(0)
    assert said.out.endswith("  done\n")
    scenes.stopped(runs)
    refold("resume", "--all", Agent("short"), "--max-turns", 5).ends(0, "")


def test_a_locked_run_is_skipped_and_said_and_the_others_go_on(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """Another process is at work there already; that is worth status 4 and no more."""
    with scenes.live(runs, tmp_path) as (child, _):
        (held,) = eventlog.store(runs).names()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MEETING", str(tmp_path / "meeting"))
            runner_agent = agents.meeting.replace(limits=runner.Limits(turns=0))
            with pytest.raises(runner.errors.TurnLimit):
                runner.start_sync(runner_agent, "later", runs=runs, run="limited-run")
            said = refold("resume", "--all", Agent("meeting"))
        assert said.status == 4
        assert said.out == f"{held}  skipped\n"
        assert f"process {child.pid}" in said.err


def test_a_paused_run_waits_on_and_an_answered_one_finishes(refold: Refold, runs: Path) -> None:
    """The answers came while nobody ran it; three is the worst that happened."""
    scenes.asking(runs, "answered-run")
    scenes.asking(runs, "waiting-run")
    refold("approve", "answered-run", "1.0-approve")
    said = refold("resume", "--all", Agent("paying")).ends(3)
    assert said.out.splitlines() == ["waiting-run  waits for a person: 1.0-approve", "answered-run  done"]


def test_a_damaged_run_is_said_and_is_the_worst(refold: Refold, runs: Path) -> None:
    """The others are still carried on; a damaged run that names another agent is that agent's affair."""
    scenes.damage(runs, scenes.asking(runs, "bad-run"))
    scenes.asking(runs, "good-run")
    refold("resume", "--all", Agent("paying")).ends(5, out="good-run  waits", err="bad-run is damaged")
    assert refold("resume", "--all", Agent("stumbling")).status == 0


def test_a_damaged_beginning_leaves_no_owner_so_everybody_is_told(refold: Refold, runs: Path) -> None:
    """Nobody can say whose run it was; silence would be the wrong guess."""
    scenes.asking(runs, "bad-run")
    (runs / "bad-run" / "status").unlink()
    file = scenes.segment(runs, "bad-run")
    file.write_bytes(file.read_bytes().replace(b'"run_started"', b'"run_STARTED"'))
    assert refold("resume", "--all", Agent("stumbling")).status == 5


def test_one_run_that_fails_does_not_keep_the_others_waiting(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """The newest comes first and stops; the older one is finished all the same, and the worst status wins."""
    for run in ("older-run", "newer-run"):
        (tmp_path / run).mkdir()
        scenes.killed(runs, "noting", run, workspace=str(tmp_path / run))
    (tmp_path / "newer-run" / "note.txt").write_text("somebody else's")
    said = refold("resume", "--all", Agent("noting")).ends(1)
    assert said.out.splitlines() == ["newer-run  stopped or failed", "older-run  done"]
    assert "WorkspaceChanged" in said.err


def test_no_interrupted_run_is_nothing_to_do(refold: Refold, runs: Path) -> None:
    """A deploy script must not fail because all is well."""
    runs.mkdir()
    refold("resume", "--all", Agent("plain")).ends(0, "")


def test_a_signal_parks_the_run_at_work_and_no_other_is_begun(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """Whoever ends this process wants it to end, not to go on with the next run."""
    for _ in range(2):
        with scenes.live(runs, tmp_path) as (child, place):
            child.kill()
            child.communicate(timeout=90)
        (place / "began").unlink()
    second, first = (row["run"] for row in refold("ls", "--json").json)
    with scenes.live(runs, tmp_path, "resume", "--all", str(Agent("meeting"))) as (child, place):
        child.send_signal(signal.SIGINT)
        scenes.notice(child)
        (place / "go").touch()
        out, err = child.communicate(timeout=90)
        assert child.returncode == 1
    assert out == f"{second}  stopped or failed\n"
    assert f"not resumed: {first}\n" in err
    assert (runner.read_state(second, runs).life, runner.read_state(first, runs).life) == (2, 1)


def test_after_a_signal_no_other_run_is_begun_even_if_the_one_at_work_got_done(process: Refold, runs: Path) -> None:
    """The reply that was on its way was its answer; the signal is not forgotten for that."""
    for run in ("first-run", "second-run"):
        runner.enqueue(agents.ending, "end", runs=runs, run=run)
    said = process("resume", "--all", Agent("ending"), env=SILENT).ends(
        1, "second-run  done\n", err="not resumed: first-run\n"
    )
    assert "Interrupted" not in said.err


@pytest.mark.parametrize(("error", "status"), [(runner.BadAgent("why"), 1), (ZeroDivisionError("why"), 1)])
def test_an_error_of_the_agents_own_is_a_failure_and_never_nothing(
    refold: Refold, runs: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    """Whatever it would be elsewhere, here a run did not go on."""

    async def fail(*_: object, **__: object) -> None:
        raise error

    scenes.asking(runs)
    monkeypatch.setattr(runner, "resume", fail)
    refold("resume", "--all", Agent("paying")).ends(status, "asking-run  stopped or failed\n", err="why")


def test_with_jobs_runs_are_carried_on_side_by_side_in_one_event_loop(refold: Refold, runs: Path) -> None:
    """Neither goes on before the other has come; a client that belongs to a loop serves both."""
    for run in ("first-run", "second-run"):
        runner.enqueue(agents.gathering, "gather", runs=runs, run=run)
    said = refold("resume", "--all", "--jobs", 2, Agent("gathering"))
    assert (said.status, sorted(said.out.splitlines())) == (0, ["first-run  done", "second-run  done"])
