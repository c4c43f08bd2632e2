"""`refold run`: a user's own agent from the command line."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import eventlog
from runner._policy import ladder
from tests.cli.conftest import AGENTS, Agent, Refold
from tests.support.terminal import Terminal


def test_a_run_prints_its_answer_on_stdout_and_its_way_there_on_stderr(refold: Refold) -> None:
    """A script reads the answer from stdout; whatever else is said must not be in its way."""
    said = refold("run", "look at one", Agent("plain")).ends(0, "It is one.\n")
    lines = said.err.splitlines()
    assert "starts: look at one" in lines[0]
    assert any("1.0 look: ran: {" in line for line in lines)
    assert lines[-1].endswith("done")


def test_a_run_that_stopped_says_why_and_how_to_go_on(refold: Refold) -> None:
    """A limit is a decision of somebody's: the sentence names it and the option that raises it."""
    refold("run", "look", Agent("short")).ends(
        1,
        "",
        err=["TurnLimit", "1 of 1 turns used", "refold resume short-", f"--agent {AGENTS}:short", "--max-turns N"],
    )


def test_limits_on_the_command_line_win_over_the_agents(refold: Refold) -> None:
    """Whoever starts the run pays for it."""
    assert refold("run", "look", Agent("short"), "--max-turns", 5).status == 0
    assert refold("run", "look", Agent("plain"), "--max-turns", 1).status == 1
    refold("run", "look", Agent("plain"), "--max-dollars", 0).ends(1, err="DollarLimit")


def test_a_deadline_on_the_command_line_stops_the_run(refold: Refold) -> None:
    """The hint names the option that sets another one."""
    said = refold("run", "look", Agent("plain"), "--until", "2020-01-01 12:00")
    assert said.status == 1
    assert "Deadline" in said.err
    assert "--until TIME" in said.err
    for later in ("2999-01-01T12:00:00+0000", "2999-01-01T12:00Z", "2999-01-01"):
        assert refold("run", "look", Agent("plain"), "--until", later).status == 0
    for wrong in ("tomorrow", "0001-01-01"):
        refold("run", "look", Agent("plain"), "--until", wrong).ends(2, err=["write 2026-01-31, '2026-01-31 18:00' or"])
    assert "'2026-01-31 18:00'" in " ".join(refold("run", "--help").out.split())


def test_a_model_that_can_not_be_asked_stops_the_run(refold: Refold) -> None:
    """The model's own words must reach the person who can do something about it."""
    refold("run", "look", Agent("silent")).ends(1, err=["ModelUnavailable", "no such model"])


def test_a_run_continues_a_finished_one_in_a_new_run(refold: Refold, run_of: Callable[[str], str]) -> None:
    """The conversation goes on, the finished run stays as it is."""
    refold("run", "first", Agent("plain"))
    first = run_of("plain")
    assert refold("run", "second", Agent("paying"), "--after", first, "--max-turns", 0).status == 1
    assert refold("show", run_of("paying"), "--json").json["after"] == first


def test_an_unfinished_run_can_not_be_continued_in_a_new_one(refold: Refold, run_of: Callable[[str], str]) -> None:
    """There is nothing to continue before it has an answer."""
    refold("run", "look", Agent("short"))
    refold("run", "more", Agent("plain"), "--after", run_of("short")).ends(1, err="is not done")


def test_the_inputs_of_a_run_are_json_of_the_agents_type(refold: Refold, run_of: Callable[[str], str]) -> None:
    """They are read as the agent declares, shown again, and refused in a sentence where they do not fit."""
    refold("run", "look", Agent("given"), "--inputs", '{"tenant": "acme"}').ends(0, "You work for acme.\n")
    assert '{"tenant":"acme"}' in refold("show", run_of("given")).out
    assert refold("show", run_of("given"), "--json").json["inputs"] == '{"tenant": "acme"}'
    for agent, words, says in (
        ("given", ("--inputs", '{"tenant": 5}'), "tenant: Expected `str`, got `int`"),
        ("given", ("--inputs", "{"), "they are not valid JSON"),
        ("given", (), "the run has none"),
        ("plain", ("--inputs", "{}"), "agent plain declares no inputs"),
    ):
        refused = refold("run", "look", Agent(agent), *words)
        assert refused.status in (1, 2)
        assert says in refused.err


def test_the_workspace_of_a_run_must_be_a_directory(refold: Refold, tmp_path: Path) -> None:
    """A mistyped path must not become a run that can't write."""
    refold("run", "note", Agent("noting"), "--workspace", tmp_path / "nowhere").ends(2, err="nowhere")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nowhere_at_all:agent", "name its directory in PYTHONPATH"),
        ("tests.cli.needing:agent", "No module named 'nowhere_at_all'"),
        ("tests.cli.needing:agent", "Install what it needs in the environment of refold."),
        ("tests.nowhere_at_all:agent", "there is no module tests.nowhere_at_all"),
        (f"{AGENTS}:nobody", "has no nobody"),
        (f"{AGENTS}:NOT_AN_AGENT", "is of type str, not a runner.Agent"),
        (AGENTS, "names no attribute"),
        (f"{AGENTS}.py:agent", f"--agent {AGENTS}:agent"),
        (f"./{AGENTS.replace('.', '/')}.py:agent", f"--agent {AGENTS}:agent"),
        (f":{AGENTS}", "names no attribute"),
        ("runner:agent", "The module runner is refold's own"),
        ("replay.mine:agent", "The module replay is refold's own"),
    ],
)
def test_an_agent_that_is_not_there_is_a_sentence(refold: Refold, spec: str, says: str) -> None:
    """A spelling mistake is the commonest error there is; it must not look like a crash."""
    said = refold("run", "look", f"--agent={spec}").ends(2, err=says)
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
    said = process("run", "look", "--agent=mine:agent").ends(2, err=[says, "mine.py"])
    assert "Traceback" not in said.err


def test_an_agent_in_the_current_directory_is_found(process: Refold, tmp_path: Path) -> None:
    """That is where a user's first agent lies."""
    (tmp_path / "mine.py").write_text(
        "import runner, runner.testing\n"
        "agent = runner.Agent(name='agent', model=runner.testing.ScriptedModel(['Hello.']))\n"
    )
    process("run", "greet", "--agent=mine:agent").ends(0, "Hello.\n")


def test_an_empty_task_is_refused(refold: Refold, runs: Path) -> None:
    """A run that was asked nothing must not exist."""
    refold("run", "", Agent("plain")).ends(2, err="the task is empty")
    assert not runs.exists()


@pytest.mark.fault("a module beside the agent that shadows an installed one")
def test_a_module_beside_the_agent_does_not_replace_an_installed_one(runs: Path, tmp_path: Path) -> None:
    """The live view imports rich after the agent was loaded. The agent's own modules are found all the same."""
    (tmp_path / "rich.py").write_text("raise SystemExit('the wrong one was imported')")
    (tmp_path / "mine.py").write_text("from tests.cli.agents import plain as agent")
    with Terminal("run", "look", "--agent", "mine:agent", "--runs", runs, cwd=tmp_path) as terminal:
        assert terminal.end() == 0, terminal.seen
    assert "It is one." in terminal.seen


@pytest.mark.fault("a result loses a part in silence")
def test_a_run_with_a_result_that_was_not_kept_as_it_came_is_no_clean_success(refold: Refold) -> None:
    """Its answer stands on what a model did not see whole; a script must be able to tell."""
    said = refold("run", "x", Agent("photographing"), "--run", "photo").ends(6, "Seen.\n")
    assert "the results of 1.0 could not be kept as they came" in said.err
    assert refold("resume", "photo", Agent("photographing")).status == 6


@pytest.mark.fault("a model endpoint that is down")
@pytest.mark.parametrize(
    ("agent", "shown", "tried"),
    [
        ("silent", 1, r"a request failed for good"),
        ("unreachable", 2, r"6 requests in a row failed, tried for \d+(\.\d)? s"),
    ],
)
def test_a_dead_model_s_error_is_the_last_thing_said_and_shown_at_once_where_it_may_pass(
    refold: Refold, monkeypatch: pytest.MonkeyPatch, agent: str, shown: int, tried: str
) -> None:
    """Who waits for five minutes wants to know why; six times the same page of text says no more than once."""
    monkeypatch.setattr(ladder, "backoff", lambda *_: timedelta(milliseconds=1))
    said = refold("run", "x", Agent(agent)).ends(1)
    assert said.err.count("no such model") == shown
    *_, stopped, last, hint = said.err.splitlines()
    assert stopped.endswith(" stopped (ModelUnavailable)")
    assert re.search(rf"^refold: .*: {tried}: no such model$", last)
    assert "a wrong key" in hint
    assert hint.count("refold resume") == 1


def test_with_an_id_the_same_command_again_goes_on(refold: Refold, runs: Path) -> None:
    """It gives the answer of a done run; another task under that id is refused."""
    for _ in range(2):
        refold("run", "look at one", Agent("plain"), "--run", "mine").ends(0, "It is one.\n")
    refold("run", "look at two", Agent("plain"), "--run", "mine").ends(
        1, "", err=["mine exists already", "not with this task"]
    )
    assert eventlog.store(runs).names() == ["mine"]


def test_an_enqueued_run_is_named_and_left_alone(refold: Refold) -> None:
    """`run --run` takes its turn as a worker would."""
    said = refold("enqueue", "look at one", Agent("plain"), "--label", "tenant=acme")
    assert (said.status, said.err) == (0, "")
    (row,) = refold("ls", "--json").json
    assert (row["run"], row["turns"], row["labels"]) == (said.out.strip(), 0, {"tenant": "acme"})
    assert refold("run", "look at one", Agent("plain"), "--run", row["run"]).out == "It is one.\n"
