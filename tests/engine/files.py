"""A run with one tool that works in its workspace: what the tests of files share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import runner
import runner.testing
from tests.support import stage

ACT = [runner.testing.tool_calls(("act", {})), "over"]
LIMIT = runner.Limits(turns=1)


def sha(text: str) -> str:
    """A content's hash as the log has it."""
    return hashlib.sha256(text.encode()).hexdigest()


def tool(
    body: Callable[[runner.Workspace], object], effect: Literal["reads", "idempotent"] = "idempotent"
) -> runner.Tool:
    """A tool named `act` that does something in the workspace."""

    def act(call: runner.Call) -> str:
        return str(body(call.workspace))

    return runner.tool(effect=effect)(act)


def parked(runs: Path, place: Path, body: Callable[[runner.Workspace], object]) -> None:
    """A run that did something in its workspace and stopped before its second turn."""
    with pytest.raises(runner.errors.TurnLimit):
        stage.start(ACT, tool(body), runs=runs, workspace=place, limits=LIMIT)


def two(files: runner.Workspace) -> None:
    """Write two files."""
    files.write_text("a.txt", "mine")
    files.write_text("b.txt", "mine")


def go_on(runs: Path, **options: Any) -> object:
    """Resume it under a higher limit."""
    return runner.resume_sync("r", stage.agent(ACT, tool(lambda _: "")), runs=runs, **options)
