"""The code tools: a patch that can tell whether it happened, and tests that are really run and really end."""

import ast
import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import runner
import runner.testing
from runner.triage import _code_tools, _suite
from runner.triage._task import Task
from tests.support import stage
from tests.support.forkserver import ForkServer
from tests.triage.worlds import TASK, is_locked


def play(folder: Path, *calls: tuple[str, dict[str, str]], tools: Sequence[runner.Tool] = ()) -> list[str]:
    """The results of these calls, made one after another in a run of their own."""
    model = runner.testing.ScriptedModel([*map(runner.testing.tool_calls, calls), "done"])
    agent = runner.Agent(name="agent", model=model, tools=tools or _code_tools.tools(Task(TASK)))
    (folder / "workspace").mkdir(exist_ok=True)
    result = asyncio.run(runner.start(agent, "t", runs=folder / "runs", workspace=folder / "workspace"))
    assert isinstance(result, runner.Finished)
    return [one.text for message in result.state.messages for one in getattr(message, "results", ())]


STARTS_A_SLEEPER = """
import subprocess, sys
def test_sleep():
    subprocess.run([sys.executable, "-c", {sleep!r}, {file!r}])
"""
STARTS_A_DAEMON = """
import pathlib, subprocess, sys, time
def test_daemon():
    middle = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2]], "
    middle += "start_new_session=True)"
    subprocess.run([sys.executable, "-c", middle, {sleep!r}, {file!r}], start_new_session=True)
    while not pathlib.Path({file!r}).exists():
        time.sleep(0.01)
    time.sleep({seconds})
"""
SLEEP = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
time.sleep(60)
"""


def sleeps(file: Path) -> bool:
    """Whether the process that locked this file lives."""
    return file.exists() and is_locked(file)


def ends(workspace: Path, sleeper: Path) -> _suite.Suite:
    """What is said of tests that do not end, which have had the time to begin: more of it on a busy machine."""
    for seconds in (3, 12):
        suite = _suite.run(workspace, seconds=seconds)
        if sleeper.exists():
            return suite
    return _suite.run(workspace, seconds=48)


def write(folder: Path, path: str, text: str) -> Path:
    """A file of the workspace."""
    place = folder / "workspace" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def test_the_most_frequent_crash_comes_first_with_its_real_traceback(tmp_path: Path) -> None:
    """The model reads what users met, in the order in which it matters."""
    (text,) = play(tmp_path, ("crash_list", {}))
    crashes = json.loads(text)
    assert [crash["id"] for crash in crashes] == ["T-101", "T-102", "T-103", "T-104"]
    assert 'File "todo/store.py", line 49, in mark_done' in crashes[0]["traceback"]


def test_a_file_is_read_and_without_a_path_the_files_are_listed(tmp_path: Path) -> None:
    """Reading starts with knowing what there is."""
    write(tmp_path, "todo/a.py", "text")
    write(tmp_path, "todo/__pycache__/a.pyc", "")
    assert play(tmp_path, ("code_read", {"path": "todo/a.py"}), ("code_read", {})) == ["text", "todo/a.py"]


@pytest.mark.parametrize("path", ["absent.py", "../secret", "/etc/hostname", "todo", "bytes.bin", "link"])
def test_what_can_not_be_read_is_a_result_the_model_can_read(tmp_path: Path, path: str) -> None:
    """No path leads out of the workspace, and none ends the run."""
    write(tmp_path, "todo/a.py", "")
    (tmp_path / "workspace" / "bytes.bin").write_bytes(b"\xff\xfe")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "workspace" / "link").symlink_to(tmp_path / "secret")
    for tool, more in (("code_read", {}), ("code_patch", {"old": "a", "new": "b"}), ("test_run", {})):
        (text,) = play(tmp_path, (tool, {"path": path, **more}))
        assert "can't be read" in text


def test_lines_are_found_with_their_places(tmp_path: Path) -> None:
    """At most a hundred, and none of a huge file."""
    write(tmp_path, "a.py", "x = 1\n  find(x)\n")
    write(tmp_path, "huge.txt", "find me\n" * 30_000)
    assert play(tmp_path, ("code_search", {"text": "find"}), ("code_search", {"text": "absent"})) == [
        "a.py:2: find(x)",
        "no line contains it",
    ]
    write(tmp_path, "many.txt", "find\n" * 200)
    assert play(tmp_path, ("code_search", {"text": "find"}))[0].count("\n") == 99


def test_a_patch_replaces_the_one_place(tmp_path: Path) -> None:
    """And nothing else in the file."""
    place = write(tmp_path, "a.py", "one\ntwo\n")
    assert play(tmp_path, ("code_patch", {"path": "a.py", "old": "two", "new": "three"})) == ["a.py is patched"]
    assert place.read_text() == "one\nthree\n"


@pytest.mark.parametrize(("text", "old", "new"), [("b", "a", "c"), ("a a", "a", "c"), ("a", "", "c"), ("a", "a", "a")])
def test_a_patch_without_one_place_changes_nothing(tmp_path: Path, text: str, old: str, new: str) -> None:
    """Absent, twice, empty or the same: the model is told, and nothing was done for certain."""
    place = write(tmp_path, "a.py", text)
    (said,) = play(tmp_path, ("code_patch", {"path": "a.py", "old": old, "new": new}))
    assert "was not changed" in said
    assert place.read_text() == text


@pytest.mark.parametrize(
    ("text", "old", "new", "answer"),
    [
        ("x old y", "old", "new", runner.Missing),
        ("x new y", "old", "new", runner.Found),
        ("x y", "old", "new", runner.Unsure),
        ("old new", "old", "new", runner.Unsure),
        ("call()", "call()", "call()\nmore()", runner.Missing),
        ("call()\nmore()", "call()", "call()\nmore()", runner.Found),
        ("call()\nmore()", "call()\nmore()", "call()", runner.Missing),
        ("call()", "call()\nmore()", "call()", runner.Found),
        ("x old y", "old", "", runner.Missing),
        ("x  y", "old", "", runner.Unsure),
        (None, "old", "new", runner.Missing),
    ],
)
def test_the_lookup_reads_the_file(tmp_path: Path, text: str | None, old: str, new: str, answer: type) -> None:
    """One text may contain the other: an insertion's old text still stands in the patched file."""
    if text is not None:
        write(tmp_path, "a.py", text)
    answers: list[object] = []

    @runner.tool(effect="reads")
    def look(path: str, old: str, new: str, call: runner.Call) -> str:  # noqa: ARG001 (the lookup reads them from the call)
        """Ask the lookup."""
        answers.append(_code_tools.find_patch(call))
        return ""

    play(tmp_path, ("look", {"path": "a.py", "old": old, "new": new}), tools=[look])
    assert isinstance(answers[0], answer)


def test_a_test_is_written_among_the_tests_only(tmp_path: Path) -> None:
    """A tool that may be repeated freely must not be a way to overwrite the code."""
    good, *bad = play(
        tmp_path,
        ("test_write", {"path": "tests/test_a.py", "text": "def test_a(): pass\n"}),
        ("test_write", {"path": "todo/store.py", "text": ""}),
        ("test_write", {"path": "tests/helper.py", "text": ""}),
        ("test_write", {"path": "tests/../../test_a.py", "text": ""}),
    )
    assert good == "tests/test_a.py is written"
    assert all("was not written" in text or "not a path inside" in text for text in bad)
    assert [place.name for place in tmp_path.rglob("*.py")] == ["test_a.py"]


def test_tests_are_really_run_and_leave_nothing_behind(tmp_path: Path) -> None:
    """A red and a green file, and no cache or compiled module beside them."""
    write(tmp_path, "tests/test_red.py", "def test_red():\n    assert 1 == 2\n")
    write(tmp_path, "tests/test_green.py", "def test_green():\n    assert True\n")
    red, green = map(json.loads, play(tmp_path, ("test_run", {}), ("test_run", {"path": "tests/test_green.py"})))
    assert (red["passed"], red["status"], green["passed"], green["status"]) == (False, 1, True, 0)
    assert "assert 1 == 2" in red["output"]
    assert green["output"].endswith("1 passed")
    assert sorted(p.name for p in (tmp_path / "workspace").rglob("*")) == ["test_green.py", "test_red.py", "tests"]


@pytest.mark.fault("secrets in the environment of a model's tests")
def test_tests_see_no_variable_that_is_not_on_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model writes them: keys of services are none of their business, and our own pytest's options neither."""
    for name in (
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "PYTEST_ADDOPTS",
        "COVERAGE_PROCESS_START",
        "SSH_AUTH_SOCK",
    ):
        monkeypatch.setenv(name, "--collect-only")
    write(tmp_path, "test_env.py", "import os\ndef test_env():\n    print(sorted(os.environ))\n    assert False\n")
    output = _suite.run(tmp_path / "workspace").output
    (seen,) = (line for line in output.splitlines() if line.startswith("["))
    allowed = {*_suite.environment(), "PYTEST_CURRENT_TEST", "PYTEST_VERSION", "LC_CTYPE"}
    assert set(ast.literal_eval(seen)) <= allowed
    assert not {"OPENAI_API_KEY", "SSH_AUTH_SOCK", "PYTEST_ADDOPTS"} & allowed


@pytest.mark.fault("a child that leaves its session")
@pytest.mark.parametrize("ending", ["it passes", "out of time"])
def test_a_child_of_a_test_that_left_the_session_is_ended_too(tmp_path: Path, ending: str) -> None:
    """It would live on, read what it likes, and write into the workspace of the next session."""
    sleeper = tmp_path / "sleeper"
    text = STARTS_A_DAEMON.format(sleep=SLEEP, file=str(sleeper), seconds=0 if ending == "it passes" else 60)
    write(tmp_path, "test_daemon.py", text)
    suite = ends(tmp_path / "workspace", sleeper) if ending != "it passes" else _suite.run(tmp_path / "workspace")
    assert suite.passed == (ending == "it passes"), suite
    assert sleeper.exists()
    stage.within(90, lambda: not sleeps(sleeper))


def test_a_test_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    """A model writes the tests, so they may loop and start programs; neither outlives the time they have."""
    sleeper = tmp_path / "sleeper"
    write(tmp_path, "test_loop.py", STARTS_A_SLEEPER.format(sleep=SLEEP, file=str(sleeper)))
    suite = ends(tmp_path / "workspace", sleeper)
    assert not suite.passed
    assert "out of time" in suite.output
    assert sleeper.exists()
    stage.within(90, lambda: not sleeps(sleeper))


def test_the_process_of_the_tests_follows_its_starter(tmp_path: Path) -> None:
    """It runs pytest while the pipe is open, and is gone when it closes, which no death of the starter prevents."""
    write(tmp_path, "test_quick.py", "def test_quick():\n    pass\n")
    write(tmp_path, "test_slow.py", "import time\ndef test_slow():\n    time.sleep(60)\n")
    command = [sys.executable, "-P", _suite.__file__.replace(".py", "_process.py"), "50", "-q"]
    for path, closes in (("test_quick.py", False), ("test_slow.py", True)):
        process = subprocess.Popen(
            [*command, path],
            cwd=tmp_path / "workspace",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None
        if closes:
            process.stdin.close()
        assert process.wait(90) == (128 + signal.SIGKILL if closes else 0)
        process.stdin.close()


def test_much_output_is_cut_at_its_beginning(tmp_path: Path) -> None:
    """The end says what failed; the log must not hold a megabyte of the rest."""
    write(tmp_path, "test_loud.py", "def test_loud():\n    print('x' * 50_000)\n    assert False\n")
    output = _suite.run(tmp_path / "workspace").output
    assert output.startswith("[the beginning is cut off]")
    assert len(output) < 5_000


def run_tests(workspace: str) -> None:
    """Run them in a process of its own."""
    _suite.run(Path(workspace))


def test_the_tests_die_with_whoever_started_them(tmp_path: Path, forks: ForkServer) -> None:
    """A SIGKILL of the agent must not leave a test run that writes into the workspace of its next life."""
    sleeper = tmp_path / "sleeper"
    write(tmp_path, "test_sleep.py", STARTS_A_SLEEPER.format(sleep=SLEEP, file=str(sleeper)))
    starter = forks.begin(run_tests, workspace=tmp_path / "workspace")
    stage.within(90, lambda: sleeps(sleeper))
    os.kill(starter.pid, signal.SIGKILL)
    assert starter.end().killed
    stage.within(90, lambda: not sleeps(sleeper))
