"""Scenes on a full disk: the system refuses to let a file grow, as it would without room (EFBIG for ENOSPC)."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import eventlog
import runner
import runner.testing
from tests.support import stage


def _full(directory: Path) -> None:
    """From here on no file of this process may grow beyond what the run's segment has now."""
    size = max(path.stat().st_size for path in directory.glob("seg-*"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _ended(run: Callable[[], runner.Outcome]) -> str:
    try:
        outcome = run()
    except eventlog.LogError as error:
        return type(error).__name__
    return outcome.answer if isinstance(outcome, runner.Finished) else type(outcome).__name__


def fills_the_disk(runs: str, ran: str, *, full: bool = True, each: int = 1, size: int = 6_000) -> str:
    """Results that fill the segment, on a disk without room for another one; `each` calls in a reply."""

    @runner.tool
    def act(call: runner.Call) -> str:
        if full and call.id == "3.0":
            _full(Path(runs) / "r")
        stage.note(ran, call.id)
        return "x" * size

    replies = [runner.testing.tool_calls(*[("act", {})] * each)] * 30
    return _ended(lambda: stage.on(runs, stage.agent([*replies, "over"], act)))


def returns_too_much(runs: str, *, full: bool = True) -> str:
    """A result larger than the room that was laid for it."""

    @runner.tool
    def act() -> str:
        if full:
            _full(Path(runs) / "r")
        return "x" * 500_000

    return _ended(lambda: stage.on(runs, stage.agent([runner.testing.tool_calls(("act", {})), "over"], act)))


def writes_too_much(runs: str, place: str) -> list[str]:
    """A tool whose coming write can't be logged; what it saw, and how the run ended."""
    seen: list[str] = []
    Path(place, "a.txt").write_text("old")

    @runner.tool
    def act(call: runner.Call) -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        try:
            call.workspace.write_text("a.txt", "new")
        except eventlog.DiskFull as error:
            seen.append(type(error).__name__)
            raise
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return "written"

    agent = stage.agent([runner.testing.tool_calls(("act", {})), "over"], act)
    ended = _ended(lambda: stage.on(runs, agent, workspace=place))
    return [*seen, ended]
