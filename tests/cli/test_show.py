"""`refold show`: where a run stands, for programs and for people."""

from pathlib import Path
from typing import Any

import pytest

import eventlog
import runner
import runner.testing
from runner._cli._commands import show
from tests.cli import agents, scenes
from tests.cli.conftest import Refold
from tests.support import stage


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
    assert shown["in_doubt"] == ["1.0"]
    attempt = shown["attempts"]["1.0"]
    assert (attempt["tool"], attempt["n"], attempt["effect"]) == ("launch", 1, "non_idempotent")
    assert attempt["key"] == stage.key(runs, "1.0", run)
    assert (shown["answer"], shown["waiting"]) == (None, [])


def test_a_finished_run_shows_its_answer_and_its_spend(refold: Refold, runs: Path) -> None:
    """The spend is the log's own sum, so that a bill can be held against it."""
    run = scenes.finished(runs)
    shown, spent = refold("show", run, "--json").json, runner.read_state(run, runs).spent
    assert (shown["phase"], shown["answer"], shown["in_doubt"]) == ("done", "It is one.", [])
    assert shown["spent"]["input_tokens"] == spent.input_tokens > 0
    assert shown["spent"]["output_tokens"] == spent.output_tokens > 0
    assert shown["spent"]["dollars"] == spent.dollars
    assert shown["spent"]["lost_dollars"] == 0
    assert shown["seq"] == runner.read_state(run, runs).seq


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
    assert '{"amount":7,"to":"ann"}' in page


def test_messages_that_wait_and_standing_rules_are_named_with_who_gave_them(refold: Refold, runs: Path) -> None:
    """Only the beginning of a message stands on the page; a rule whose tool has changed since says that it ended."""
    run, long = scenes.asking(runs), "Hurry.\n" + "Please do. " * 20
    assert "for the next request" not in refold("show", run).out
    runner.send(run, long, "ada", runs=runs)
    runner.send(run, "No, wait.", "bob\x9b", runs=runs)
    runner.allow(run, "pay", "ada", {"to": "bob"}, runs=runs)
    runner.allow(run, "pay", "bob", {}, runs=runs)
    page, shown = refold("show", run).out, refold("show", run, "--json").json
    assert "2 for the next request\n" in page
    assert "ada: Hurry.\\nPlease do. " in page
    assert long.strip()[:80].replace("\n", "\\n") not in page
    assert "bob\\x9b: No, wait." in page
    assert 'pay with to="bob", by ada\n' in page
    assert "pay with any arguments, by bob\n" in page
    assert [(one["who"], one["text"]) for one in shown["messages"]] == [("ada", long), ("bob\x9b", "No, wait.")]
    assert shown["rules"] == [
        {"tool": "pay", "arguments": {"to": '"bob"'}, "who": "ada", "holds": True},
        {"tool": "pay", "arguments": {}, "who": "bob", "holds": True},
    ]

    @runner.tool(effect="non_idempotent", approval=True)
    def pay(to: str, amount: int, currency: str = "EUR") -> str:
        """Pay in some currency."""
        return f"{to} {amount} {currency}"

    runner.refuse(run, "1.0-approve", "ann", runs=runs)
    runner.resume_sync(run, agents.paying.replace(tools=[pay]), runs=runs)
    assert 'to="bob", by ada (no longer: the tool' in refold("show", run).out


def test_the_page_says_why_a_run_stopped_and_which_call_is_open(refold: Refold, runs: Path) -> None:
    """These are the two things a person looks a run up for."""
    assert "1 of 1 turns used" in refold("show", scenes.stopped(runs)).out
    page = refold("show", scenes.killed(runs, "unsure", "unsure-run")).out
    assert "in doubt: it may have happened" in page
    assert stage.key(runs, "1.0", "unsure-run") in page


def test_the_page_names_the_files_a_run_wrote(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """A resume holds the workspace against them, so a person may want to know them."""
    (tmp_path / "work").mkdir()
    run = scenes.killed(runs, "noting", "noting-run", workspace=str(tmp_path / "work"))
    assert "note.txt" in refold("show", run).out
    assert refold("show", run, "--json").json["files"][0]["path"] == "note.txt"


@pytest.mark.fault("an id or a command broken over two lines")
def test_the_name_of_a_file_makes_no_line_of_its_own(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """A model chooses the name, and a line of the page is ours."""

    @runner.tool(effect="idempotent")
    def write(call: runner.Call) -> str:
        """Write."""
        call.workspace.write_text("a\nphase    done", "x")
        return "written"

    model = runner.testing.ScriptedModel([runner.testing.tool_calls(("write", {})), "over"])
    agent = runner.Agent(name="a", model=model, tools=[write])
    runner.start_sync(agent, "x", runs=runs, run="r", workspace=tmp_path)
    assert "a\\nphase    done" in refold("show", "r").out


def test_the_page_names_who_holds_a_live_run(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """A reader takes no lock, and sees that somebody else has it."""
    with scenes.live(runs, tmp_path) as (child, _):
        (row,) = refold("ls", "--json").json
        assert f"process {child.pid}" in refold("show", row["run"]).out
        assert refold("show", row["run"], "--json").json["in_doubt"] == ["1.0"]


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
        (run,) = eventlog.store(runs).names()
        with scenes.live(runs, tmp_path, "show", run, "--follow") as (follower, _):
            assert follower.stdout is not None
            first = follower.stdout.readline()
            (place / "go").touch()
            rest, _ = follower.communicate(timeout=90)
        assert child.wait(timeout=90) == 0
    assert "starts: meet me" in first
    assert "1.0 meet: ran: met" in rest
    assert rest.splitlines()[-1].endswith("done")


def test_a_follower_reads_on_from_where_it_was_and_no_line_twice(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log is read whole once, however often the follower looks."""
    store = eventlog.store(runs)
    first, *coming = store.read(scenes.finished(runs)).lines
    log, read = store.create("live", at=first.at, events=[*map(bytes, first.events)]), eventlog.Directory.read
    reads = list[str]()

    def write_on(_seconds: float) -> None:
        if coming:
            line = coming.pop(0)
            log.append(line.at, [*map(bytes, line.events)])
        else:
            log.close()

    def counted(store: eventlog.Directory, run: str, **named: Any) -> eventlog.Reading:
        reads.append(run)
        return read(store, run, **named)

    monkeypatch.setattr("time.sleep", write_on)
    monkeypatch.setattr(eventlog.Directory, "read", counted)
    seen = list(show.follow_log(str(runs), "live"))
    assert [one.state.seq for one in seen] == sorted(one.state.seq for one in seen)
    assert [bytes(one.raw) for one in seen] == [bytes(raw) for line in store.read("live").lines for raw in line.events]
    assert reads == ["live", "live"]  # the follower's, and this test's
