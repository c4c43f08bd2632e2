"""`refold run`: a user's own agent from the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import AGENTS, Agent, Refold


def test_a_run_prints_its_answer_on_stdout_and_its_way_there_on_stderr(refold: Refold) -> None:
    """A script reads the answer from stdout; whatever else is said must not be in its way."""
    said = refold("run", "look at one", Agent("plain"))
    assert (said.status, said.out) == (0, "It is one.\n")
    lines = said.err.splitlines()
    assert "starts: look at one" in lines[0]
    assert any("1.0 look: ran: {" in line for line in lines)
    assert lines[-1].endswith("done")


def test_a_run_that_stopped_says_why_and_how_to_go_on(refold: Refold) -> None:
    """A limit is a decision of somebody's: the sentence names it and the option that raises it."""
    said = refold("run", "look", Agent("short"))
    assert (said.status, said.out) == (1, "")
    assert "TurnLimit" in said.err
    assert "1 of 1 turns used" in said.err
    assert "refold resume short-" in said.err
    assert f"--agent {AGENTS}:short" in said.err
    assert "--max-turns N" in said.err


def test_limits_on_the_command_line_win_over_the_agents(refold: Refold) -> None:
    """Whoever starts the run pays for it."""
    assert refold("run", "look", Agent("short"), "--max-turns", 5).status == 0
    assert refold("run", "look", Agent("plain"), "--max-turns", 1).status == 1
    said = refold("run", "look", Agent("plain"), "--max-dollars", 0)
    assert said.status == 1
    assert "DollarLimit" in said.err


def test_a_model_that_can_not_be_asked_stops_the_run(refold: Refold) -> None:
    """The model's own words must reach the person who can do something about it."""
    said = refold("run", "look", Agent("silent"))
    assert said.status == 1
    assert "ModelUnavailable" in said.err
    assert "no such model" in said.err


def test_a_run_continues_a_finished_one_in_a_new_run(refold: Refold, run_of: Callable[[str], str]) -> None:
    """Spec row 32: the conversation goes on, the finished run stays as it is."""
    refold("run", "first", Agent("plain"))
    first = run_of("plain")
    assert refold("run", "second", Agent("paying"), "--after", first, "--max-turns", 0).status == 1
    assert refold("show", run_of("paying"), "--json").json["after"] == first


def test_an_unfinished_run_can_not_be_continued_in_a_new_one(refold: Refold, run_of: Callable[[str], str]) -> None:
    """There is nothing to continue before it has an answer."""
    refold("run", "look", Agent("short"))
    said = refold("run", "more", Agent("plain"), "--after", run_of("short"))
    assert said.status == 1
    assert "is not done" in said.err


def test_the_workspace_of_a_run_must_be_a_directory(refold: Refold, tmp_path: Path) -> None:
    """A mistyped path must not become a run that can't write."""
    said = refold("run", "note", Agent("noting"), "--workspace", tmp_path / "nowhere")
    assert said.status == 2
    assert "nowhere" in said.err


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nowhere_at_all:agent", "there is no module nowhere_at_all"),
        ("tests.nowhere_at_all:agent", "there is no module tests.nowhere_at_all"),
        (f"{AGENTS}:nobody", "has no nobody"),
        (f"{AGENTS}:NOT_AN_AGENT", "is a str, not a runner.Agent"),
        (AGENTS, "names no attribute"),
        (f":{AGENTS}", "names no attribute"),
        ("runner:agent", "the module runner is refold's own"),
        ("replay.mine:agent", "the module replay is refold's own"),
    ],
)
def test_an_agent_that_is_not_there_is_a_sentence(refold: Refold, spec: str, says: str) -> None:
    """A spelling mistake is the commonest error there is; it must not look like a crash."""
    said = refold("run", "look", f"--agent={spec}")
    assert said.status == 2
    assert says in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import nothing_of_this_name\n", "No module named 'nothing_of_this_name'"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("agent = (\n", "SyntaxError"),
        ("raise SystemExit(7)\n", "SystemExit"),
    ],
)
def test_a_module_that_fails_to_import_says_where(process: Refold, tmp_path: Path, source: str, says: str) -> None:
    """The mistake is in the user's own file: its place is what they need, not our frames."""
    (tmp_path / "mine.py").write_text(source)
    said = process("run", "look", "--agent=mine:agent")
    assert said.status == 2
    assert says in said.err
    assert "mine.py" in said.err
    assert "Traceback" not in said.err


def test_an_agent_in_the_current_directory_is_found(process: Refold, tmp_path: Path) -> None:
    """That is where a user's first agent lies."""
    (tmp_path / "mine.py").write_text("import runner\nagent = runner.Agent(model=runner.ScriptedModel(['Hello.']))\n")
    said = process("run", "greet", "--agent=mine:agent")
    assert (said.status, said.out) == (0, "Hello.\n")


def test_an_empty_task_is_refused(refold: Refold, runs: Path) -> None:
    """A run that was asked nothing must not exist."""
    said = refold("run", "", Agent("plain"))
    assert said.status == 2
    assert "the task is empty" in said.err
    assert not runs.exists()
