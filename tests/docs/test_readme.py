"""What the README says is true: its example runs, its lists are complete."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import eventlog
import replay
import runner
from runner import triage
from runner._cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)[0]


def _commands() -> list[tuple[str, click.Command]]:
    context = click.Context(main)
    return [(name, command) for name in main.list_commands(context) if (command := main.get_command(context, name))]


def test_the_example_is_twenty_lines_long_or_shorter() -> None:
    """It is called twenty lines."""
    code = [line for line in EXAMPLE.splitlines() if line.strip()]
    assert len(code) <= 20


def test_the_example_runs_as_it_stands_and_is_carried_on_by_another_process(tmp_path: Path) -> None:
    """A reader types it in; what it left is a finished run that answers again."""
    (tmp_path / "example.py").write_text(EXAMPLE, encoding="utf-8")
    command = [sys.executable, "example.py", "first"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("Invoice i-7 is paid.\n", "", 0)
    state = runner.read("first", tmp_path / "runs")
    assert state.phase == "done"
    again = runner.resume_sync("first", runner.Agent(model=runner.ScriptedModel([])), runs=tmp_path / "runs")
    assert isinstance(again, runner.Finished)
    assert again.answer == "Invoice i-7 is paid."


def _first_agent() -> tuple[str, list[str]]:
    section = README[README.index("## Your first durable agent") :]
    blocks = re.findall(r"^```(?:python|sh)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return blocks[0], blocks[1].splitlines()


def test_the_first_agent_takes_forty_lines_at_most() -> None:
    """Somebody who has never seen refold types it in."""
    code, commands = _first_agent()
    assert len([line for line in (*code.splitlines(), *commands) if line.strip()]) <= 40


def test_the_first_agent_is_killed_and_resumed_as_the_readme_says(tmp_path: Path) -> None:
    """Every command as it stands there, one after another."""
    code, commands = _first_agent()
    (tmp_path / "post.py").write_text(code, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = [
        subprocess.run(
            ["bash", "-c", f"exec env {command}"],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        for command in commands
    ]
    assert [each.returncode for each in done] == [-9, 0, 0, 0], [each.stderr for each in done]
    assert " tools " in done[1].stdout
    assert done[2].stdout.endswith("  done\n")
    assert "Ada has her letter." in done[2].stderr
    assert len(done[3].stdout.split()) == 1


def test_the_sixteen_checks_are_listed_in_their_order() -> None:
    """A reader can tell what 16/16 means."""
    listed = re.findall(r"^\d+\. `([a-z-]+)` \(the (world|log)\): (.+)$", README, re.MULTILINE)
    catalogue = triage.CATALOGUE["m1-done-after-delete"]
    assert [tuple(row) for row in listed] == [(c.name, c.looks, c.sentence) for c in catalogue]
    assert len(catalogue) == 16
    assert sum(c.looks == "world" for c in catalogue) >= 10


@pytest.mark.parametrize(("name", "command"), _commands(), ids=[name for name, _ in _commands()])
def test_every_command_is_documented_and_says_what_it_and_its_options_do(name: str, command: click.Command) -> None:
    """The README names it; its help says the rest."""
    assert re.search(rf"(`refold |· `){name}\b", README)
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"


def test_every_exit_status_is_documented() -> None:
    """A script can rely on them."""
    section = README[README.index("Exit status:") : README.index("## The triage job")]
    assert [int(n) for n in re.findall(r"\*\*(\d)\*\*", section)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("package", [eventlog, replay, runner], ids=lambda p: p.__name__)
def test_every_public_name_has_a_docstring(package: object) -> None:
    """What is promised stands where an editor shows it."""
    for name in package.__all__:  # type: ignore[attr-defined] # each package has one
        thing = getattr(package, name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            assert thing.__doc__, name
