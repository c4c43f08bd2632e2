"""An exception in a tool can be found: its type, its message and its traceback stand in the log, in show and audit."""

import functools
from pathlib import Path

import pytest

import eventlog
import replay
import runner
from replay.events import AttemptEnded
from runner._agent import sanitize
from runner.testing import ScriptedModel, tool_calls
from tests.cli.conftest import Refold

pytestmark = [pytest.mark.fault("a bug in a tool that nobody can find")]

KEY = "sk-" + "proj-abcdefghijklmnop0123"


class Odd(LookupError):
    """An error of a library."""


def _deep(key: str) -> str:
    message = f"no such order, asked with {key}"
    raise Odd(message)


@runner.tool
def ship(order: int) -> str:
    """Ship an order."""
    return _deep(KEY) + str(order)


@pytest.fixture
def ended(runs: Path) -> AttemptEnded:
    """How the attempt ended of a run whose tool raised."""
    agent = runner.Agent(name="a", model=ScriptedModel([tool_calls(("ship", {"order": 7})), "over"]), tools=[ship])
    runner.start_sync(agent, "ship", runs=runs, run="r")
    events = [replay.decode(raw) for line in eventlog.store(runs).read("r").lines for raw in line.events]
    return next(event for event in events if isinstance(event, AttemptEnded))


def test_the_log_holds_type_message_and_the_tools_own_frames(ended: AttemptEnded) -> None:
    """The frames of the runner say nothing to whoever wrote the tool."""
    assert ended.error_type == "Odd"
    assert "no such order" in ended.error
    assert "in _deep" in ended.traceback
    assert "in ship" in ended.traceback
    assert "perform.py" not in ended.traceback


def test_no_secret_stands_in_it(ended: AttemptEnded) -> None:
    """Libraries quote what they were given."""
    assert KEY not in ended.traceback
    assert "[secret]" in ended.traceback


@pytest.mark.parametrize("command", ["show", "audit"])
def test_a_person_finds_the_place(command: str, ended: AttemptEnded, refold: Refold) -> None:
    """Without reading the log."""
    said = refold(command, "r").out
    assert ended.error_type in said
    assert "in _deep" in said


def test_a_traceback_is_bounded() -> None:
    """However deep, however long its message, whatever its text raises."""

    def fall(depth: int) -> None:
        if not depth:
            raise ValueError("x" * 1_000_000)
        fall(depth - 1)

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def mute() -> None:
        raise Mute

    deep, shallow = functools.partial(fall, 500), functools.partial(fall, 0)
    for raises in (deep, shallow, mute):
        with pytest.raises((ValueError, Mute)) as raised:
            raises()
        assert 0 < len(sanitize.trace(raised.value).encode()) <= sanitize.MAX_TRACE
