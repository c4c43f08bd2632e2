"""`refold show`: where a run stands, for programs and for people."""

from __future__ import annotations

from pathlib import Path

import runner
from tests.cli import scenes
from tests.cli.conftest import Refold


def test_a_killed_run_shows_its_call_open_with_the_marker_that_was_durable(refold: Refold, runs: Path) -> None:
    """That is what the log knows after a SIGKILL: an attempt with its key, and no result."""
    run = scenes.killed(runs, "unsure", "unsure-run")
    shown = refold("show", run, "--json").json
    assert (shown["run"], shown["phase"], shown["stopped"], shown["turns"], shown["resumes"]) == (
        run,
        "tools",
        None,
        1,
        0,
    )
    assert shown["open"] == ["1.0"]
    attempt = shown["attempts"]["1.0"]
    assert (attempt["tool"], attempt["n"], attempt["effect"]) == ("launch", 1, "once")
    assert attempt["key"] == runner.key(run, "1.0")
    assert (shown["answer"], shown["waiting"]) == (None, [])


def test_a_finished_run_shows_its_answer_and_its_spend(refold: Refold, runs: Path) -> None:
    """The spend is the log's own sum, so that a bill can be held against it."""
    run = scenes.finished(runs)
    shown, spent = refold("show", run, "--json").json, runner.read(run, runs).spent
    assert (shown["phase"], shown["answer"], shown["open"]) == ("done", "It is one.", [])
    assert shown["spent"]["input_tokens"] == spent.input_tokens > 0
    assert shown["spent"]["output_tokens"] == spent.output_tokens > 0
    assert shown["spent"]["dollars"] == spent.dollars
    assert shown["spent"]["lost_dollars"] == 0
    assert shown["seq"] == runner.read(run, runs).seq


def test_a_paused_run_shows_its_question_with_the_exact_arguments(refold: Refold, runs: Path) -> None:
    """An answer covers only the arguments that were shown, so they are shown as the model wrote them."""
    run = scenes.asking(runs)
    (question,) = refold("show", run, "--json").json["waiting"]
    assert (question["id"], question["kind"], question["tool"], question["call"]) == (
        "1.0-approve",
        "approve",
        "pay",
        "1.0",
    )
    assert question["arguments"] == '{"amount": 7, "to": "ann"}'


def test_the_page_for_people_says_what_to_type(refold: Refold, runs: Path) -> None:
    """Whoever reads the page must be able to answer without another page."""
    run = scenes.asking(runs)
    page = refold("show", run).out
    assert "paused" in page
    assert f"refold approve {run} 1.0-approve --runs {runs}" in page
    assert f"refold refuse {run} 1.0-approve --runs {runs}" in page
    assert '{"amount": 7, "to": "ann"}' in page


def test_the_page_says_why_a_run_stopped_and_which_call_is_open(refold: Refold, runs: Path) -> None:
    """These are the two things a person looks a run up for."""
    assert "1 of 1 turns used" in refold("show", scenes.stopped(runs)).out
    page = refold("show", scenes.killed(runs, "unsure", "unsure-run")).out
    assert "open: it may have happened" in page
    assert runner.key("unsure-run", "1.0") in page


def test_the_page_names_the_files_a_run_wrote(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """A resume holds the workspace against them, so a person may want to know them."""
    (tmp_path / "work").mkdir()
    run = scenes.killed(runs, "noting", "noting-run", workspace=str(tmp_path / "work"))
    assert "note.txt" in refold("show", run).out
    assert refold("show", run, "--json").json["files"][0]["path"] == "note.txt"


def test_the_page_names_who_holds_a_live_run(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """A reader takes no lock, and sees that somebody else has it."""
    with scenes.live(runs, tmp_path) as (child, _):
        (row,) = refold("ls", "--json").json
        assert f"process {child.pid}" in refold("show", row["run"]).out
        assert refold("show", row["run"], "--json").json["open"] == ["1.0"]


def test_following_a_finished_run_prints_all_its_events_and_ends(refold: Refold, runs: Path) -> None:
    """Nobody writes it any more, so there is nothing to wait for."""
    run = scenes.finished(runs)
    lines = refold("show", run, "--follow").out.splitlines()
    assert "starts: look at one" in lines[0]
    assert lines[-1].endswith("done")
    rows = refold("show", run, "--follow", "--json").out.splitlines()
    assert len(rows) == len(lines)
    assert '"type": "run_started"' in rows[0]


def test_following_a_live_run_prints_what_comes_until_its_process_ends(runs: Path, tmp_path: Path) -> None:
    """The follower started while the call was running and must still see its result."""
    with scenes.live(runs, tmp_path) as (child, place):
        (run,) = (path.name for path in runs.iterdir())
        with scenes.live(runs, tmp_path, "show", run, "--follow") as (follower, _):
            assert follower.stdout is not None
            first = follower.stdout.readline()
            (place / "go").touch()
            rest, _ = follower.communicate(timeout=20)
        assert child.wait(timeout=20) == 0
    assert "starts: meet me" in first
    assert "1.0 meet: ran: met" in rest
    assert rest.splitlines()[-1].endswith("done")
