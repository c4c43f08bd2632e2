"""How the tests of the command run it: in this process where that is enough, as a process where it is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click.testing
import pytest
import structlog

from runner._cli import main
from tests.support import ROOT

AGENTS = "tests.cli.agents"


class Output(NamedTuple):
    """What a command printed, and the status it ended with."""

    status: int
    out: str
    err: str

    def ends(
        self, status: int, exactly: str | None = None, *, out: str | Sequence[str] = (), err: str | Sequence[str] = ()
    ) -> Output:
        """Insist on the status, on all of stdout, or on what stands in either stream; the same output again."""
        assert self.status == status, self
        assert exactly in (None, self.out), self
        for printed, words in ((self.out, out), (self.err, err)):
            for word in [words] if isinstance(words, str) else words:
                assert word in printed, self
        return self

    @property
    def json(self) -> Any:
        """What it printed for programs."""
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    """The environment of this process with our tree on the path, and nothing that changes what is printed."""
    names = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "REFOLD_LOG", "REFOLD_RUNS")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


@pytest.fixture(autouse=True)
def _quiet_again() -> Iterator[None]:
    """The command configures logging for its process; here that process goes on to other tests."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory of runs that does not exist yet."""
    return tmp_path / "runs"


Refold = Callable[..., Output]


@pytest.fixture
def refold(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Refold:
    """The command in this process, for `runs` unless `--runs` is given."""
    monkeypatch.setenv("REFOLD_RUNS", str(runs))

    def invoke(*arguments: object, typed: str | None = None) -> Output:
        result = click.testing.CliRunner().invoke(main, [str(word) for word in arguments], input=typed)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Output(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def process(runs: Path, tmp_path: Path) -> Refold:
    """The command as a process of its own; `env` adds to its environment. A death by signal 9 is status -9."""

    def run(*arguments: object, env: dict[str, str] | None = None, cwd: Path = tmp_path) -> Output:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "runner._cli", *(str(word) for word in arguments)],
            cwd=cwd,
            env=environment(**{"REFOLD_RUNS": str(runs), **(env or {})}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=240,
            check=False,
        )
        return Output(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


class Agent(NamedTuple):
    """The words that name one of our agents on a command line."""

    name: str

    def __str__(self) -> str:
        return f"--agent={AGENTS}:{self.name}"


@pytest.fixture
def run_of(refold: Refold) -> Callable[[str], str]:
    """The id of the one run of an agent that was just started."""

    def newest(agent: str) -> str:
        return str(next(row["run"] for row in refold("ls", "--json").json if row["agent"] == agent))

    return newest
