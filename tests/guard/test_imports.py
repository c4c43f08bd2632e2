"""What a start brings in: counted in modules, because seconds depend on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.unmeasured import environment

OTHERS = """
import sys, sysconfig
before = {*sys.modules}
%s
import importlib.metadata as metadata
new = {name.partition(".")[0] for name in {*sys.modules} - before} - {"eventlog", "replay", "runner"}
print(*sorted(new & {*metadata.packages_distributions()}))
"""
"""Prints what of installed packages, ours aside, some code imports."""


def imported(code: str) -> set[str]:
    """The installed packages, ours aside, that some code imports in a new process."""
    command = [sys.executable, "-c", OTHERS % code]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True, timeout=300)
    return {*done.stdout.split()}


def test_a_program_that_imports_runner_waits_for_one_package_alone() -> None:
    """typing_extensions comes with msgspec, where it is installed. Lock and log need the standard library alone."""
    assert imported("import runner") - {"typing_extensions"} == {"msgspec"}


@pytest.mark.parametrize(
    "module",
    [
        "runner.review",
        "runner._runs.listing",
        "runner._service",
        "runner._durable",
        "replay.stories",
        "eventlog._independent_reader",
        "email.utils",
        "http",
        "structlog",
    ],
)
def test_what_only_some_runs_need_is_imported_when_it_is_used(module: str) -> None:
    """Each of these takes longer than a directory of runs takes to list."""
    code = f"import runner, sys; sys.exit({module!r} in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment(), check=False, timeout=300).returncode
        == 0
    )


def test_a_start_imports_no_more_modules_of_ours_than_it_did() -> None:
    """Each costs a start a fraction of a millisecond, also in every short process; what is needed later comes later."""
    code = (
        "import runner, sys; print(sum(name.split('.')[0] in ('eventlog', 'replay', 'runner') for name in sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True, timeout=300)
    assert int(done.stdout) <= 119


def test_a_process_that_gives_up_its_rights_after_the_import_can_start_a_run(tmp_path: Path) -> None:
    """It may be able to read no file of Python's any more: all that a run needs is there, also for a mistaken call."""
    code = """
import sys, runner
from runner.testing import ScriptedModel, tool_calls
class Unreadable:
    def find_spec(self, name, path=None, target=None):
        raise ModuleNotFoundError(name)
@runner.tool(effect="reads")
def look(at: str) -> str:
    return at
sys.meta_path.insert(0, Unreadable())
model = ScriptedModel([tool_calls(("look", {"att": "x"})), tool_calls(("look", {"at": "x"})), "done"])
print(runner.start_sync(runner.Agent(name="a", model=model, tools=[look]), "go", runs=sys.argv[1]).answer)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "done\n"


def test_reviews_are_there_for_whoever_names_them() -> None:
    """A name that is imported late looks like any other."""
    code = "import runner, sys; assert 'runner.review' not in sys.modules; print(runner.review.audit.__name__)"
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert said.stdout == "audit\n"


def test_the_command_lists_runs_with_click_alone() -> None:
    """rich, structlog and whatever they find installed are for the commands that use them."""
    assert imported("import runner._cli.main") - {"typing_extensions"} == {"msgspec", "click"}


def test_a_command_imports_itself_and_no_other() -> None:
    """A list of runs waits for nothing that only a worker, an export or a command of another package needs."""
    code = """
import sys
from runner._cli import main
main(["ls", "--help"], standalone_mode=False)
ours = {name for name in sys.modules if name.startswith("runner._cli._commands.")}
sys.exit(str(ours) if ours != {"runner._cli._commands.ls"} or "importlib.metadata" in sys.modules else 0)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
