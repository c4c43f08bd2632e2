"""The command at the edges of a shell: streams that are closed, narrow terminals, a directory that is not there."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import eventlog
import runner
from tests.cli import agents, scenes
from tests.cli.conftest import Agent, Refold, environment
from tests.support import ROOT
from tests.support.terminal import Terminal


@pytest.mark.fault("a closed standard stream")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_as_good_as_dev_null(runs: Path, tmp_path: Path, closed: str) -> None:
    """The log must not get a standard stream's number, nor what is printed."""
    command = f"exec {sys.executable} -P -m runner._cli run look {Agent('plain')} --runs {runs} {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"AttributeError" not in done.stderr
    assert (b"It is one.\n" in done.stdout) == (">&-" not in closed.replace("2>&-", ""))
    (run,) = eventlog.store(runs).names()
    assert runner.read_state(run, runs).phase == "done"


@pytest.mark.fault("an id or a command broken over two lines")
def test_at_sixty_columns_an_id_and_a_command_stand_on_one_line(runs: Path, tmp_path: Path) -> None:
    """They are there to be copied."""
    run = "a-run-with-a-long-name-of-the-kind-that-people-do-give"
    runner.start_sync(agents.paying, "pay ann", runs=runs, run=run)
    with Terminal("ls", "--runs", runs, cwd=tmp_path, columns=60) as terminal:
        assert terminal.end() == 0
    assert any(line.split()[:1] == [run] for line in terminal.seen.splitlines())
    with Terminal("ls", "--runs", runs, cwd=tmp_path, columns=120) as terminal:
        assert terminal.end() == 0
    assert "pay ann" in terminal.seen
    with Terminal("show", run, "--runs", runs, cwd=tmp_path, columns=60) as terminal:
        assert terminal.end() == 0
    assert any(f"refold approve {run} 1.0-approve --runs {runs}" in line for line in terminal.seen.splitlines())


def test_resume_all_of_a_directory_that_is_not_there_is_a_mistake_of_the_command_line(
    refold: Refold, runs: Path
) -> None:
    """A misspelt directory would look like one in which everything is done."""
    refold("resume", "--all", Agent("plain")).ends(2, err=f"there is no directory {runs}")


def test_resume_all_counts_the_runs_that_it_left_alone_and_says_why(refold: Refold, runs: Path) -> None:
    """Somebody must raise the limit or name the other agent; what is done needs nobody. `ls` names hundreds."""
    scenes.finished(runs)
    scenes.asking(runs)
    for n in range(5):
        scenes.stopped(runs, f"stopped-{n}")
    assert refold("resume", "--all", Agent("short")).ends(0).err.splitlines() == [
        "refold: left alone: 5 stopped (TurnLimit), 1 of agent paying"
    ]


def test_show_and_audit_say_the_same_of_what_was_spent(refold: Refold, runs: Path) -> None:
    """Two commands that disagree about money are worse than one."""
    run = scenes.killed(runs, "stumbling", "stumbled")
    rows = [
        next(line for line in refold(command, run).out.splitlines() if line.startswith("spent"))
        for command in ("show", "audit")
    ]
    assert rows[0].split() == rows[1].split()


def test_a_bad_model_says_what_to_write_on_the_command_line(refold: Refold) -> None:
    """`runner.Agent` is nothing that was typed."""
    said = refold("run", "x", Agent("plain"), "--model", "gpt").ends(
        2, err=["--model gpt: ", "Write --model anthropic:NAME, openai:NAME or chat:NAME."]
    )
    assert "runner.Agent" not in said.err


INTERRUPTED = """
import os, runpy, signal, sys

class AsTyped:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, AsTyped())
module, sys.argv[1:] = sys.argv[1], ["ls"]
runpy.run_path(os.environ["SCRIPT"])["main"]()
"""
"""The script of the command, with Ctrl-C typed while it imports the module that is named."""


@pytest.mark.parametrize(("module", "status"), [("eventlog", -signal.SIGINT), ("runner._cli._commands.ls", 1)])
def test_ctrl_c_while_the_command_is_imported_ends_it_without_a_traceback(
    tmp_path: Path, module: str, status: int
) -> None:
    """Nothing is begun yet. What a shell was told to ignore stays ignored."""
    script = {"SCRIPT": str(ROOT / "runner/_cli/_script.py")}
    command = [sys.executable, "-P", "-c", INTERRUPTED, module]
    done = subprocess.run(command, cwd=tmp_path, env=environment(**script), capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    deaf = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    done = subprocess.run(deaf, cwd=tmp_path, env=environment(**script), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "No runs in runs.\n")
