"""Reads that fail: repeated where that is worth it, and said to the model at once where it is not."""

from __future__ import annotations

import urllib.error
from email.message import Message
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

import runner
from runner.testing import tool_calls
from tests.engine.climbing import ACT
from tests.support import stage


class Answered(Exception):
    """What clients raise for a status: they keep the response, each in its own class."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(status)
        self.response = SimpleNamespace(
            status_code=status, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )


WORTH_REPEATING: list[tuple[Exception, float]] = [
    (ConnectionRefusedError("refused"), 4),
    (TimeoutError("no answer"), 4),
    (httpx.ConnectError("refused"), 4),
    (httpx.ReadTimeout("no answer"), 4),
    (Answered(503), 4),
    (Answered(429, retry_after="9"), 9),
    (urllib.error.HTTPError("http://x", 502, "bad gateway", Message(), None), 4),
    (urllib.error.URLError(ConnectionRefusedError("refused")), 4),
    (runner.ToolFailed("busy", retry_after=7), 7),
    (runner.OutcomeUnknown("no answer"), 4),
]
POINTLESS: list[Exception] = [
    ValueError("no such place"), FileNotFoundError("a.txt"), Answered(404), Answered(400),
    httpx.UnsupportedProtocol("ftp"), runner.ToolFailed("no such place"),
]  # fmt: skip


def _reading(error: Exception, times: int) -> tuple[runner.Tool, list[int]]:
    tried: list[int] = []

    @runner.tool(effect="reads")
    def act(x: int) -> str:
        tried.append(x)
        if len(tried) <= times:
            raise error
        return "read"

    return act, tried


@pytest.mark.fault("a read that fails once")
@pytest.mark.parametrize(("error", "after"), WORTH_REPEATING, ids=[repr(error) for error, _ in WORTH_REPEATING])
def test_a_failed_read_that_is_worth_repeating_is_repeated(error: Exception, after: float, runs: Path) -> None:
    """As a write is; the model would pay a turn to say the same again."""
    act, tried = _reading(error, times=1)
    clock = stage.Ticking()
    stage.start(ACT, act, runs=runs, clock=clock)
    assert (stage.results(runs)["1.0"].text, tried, clock.slept) == ("read", [1, 1], [after])


def test_a_read_that_fails_each_time_is_tried_as_often_as_its_tool_says(runs: Path) -> None:
    """Then the model reads the reason."""
    act, tried = _reading(ConnectionRefusedError("refused"), times=9)
    stage.start(ACT, act, runs=runs, clock=stage.Ticking())
    assert (stage.results(runs)["1.0"].how, len(tried)) == ("failed", 3)


@pytest.mark.parametrize("error", POINTLESS, ids=repr)
def test_a_read_that_failed_for_good_is_not_repeated(error: Exception, runs: Path) -> None:
    """The same arguments would fail again; the model can give others."""
    act, tried = _reading(error, times=1)
    stage.start(ACT, act, runs=runs, clock=stage.Ticking())
    assert (stage.results(runs)["1.0"].how, len(tried)) == ("failed", 1)


@pytest.mark.fault("an error that is its own cause hangs the run")
def test_an_error_whose_causes_go_in_a_circle_ends(runs: Path) -> None:
    """A library that keeps and raises one error again may make such a circle."""
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    act, _ = _reading(first, times=1)
    stage.start(ACT, act, runs=runs, clock=stage.Ticking())
    assert stage.results(runs)["1.0"].how == "failed"


@pytest.mark.fault("an effect that became weaker between lives is believed")
def test_a_tool_that_acted_in_an_earlier_life_does_not_come_to_read(runs: Path) -> None:
    """Its error says nothing about what it did, so a person is asked; and it takes its key."""

    def act(call: runner.Call) -> None:
        raise ConnectionRefusedError(call.acts)

    acted = runner.tool(act)
    script = [tool_calls(("act", {})), "over"]
    with pytest.raises(runner.errors.TurnLimit):
        stage.start(script, acted, runs=runs, limits=runner.Limits(turns=0))
    agent = stage.agent(script, runner.tool(effect="reads")(act))
    outcome = runner.resume_sync("r", agent, runs=runs, clock=stage.Ticking())
    (question,) = stage.asked(outcome)
    assert (
        question.why
        == "the call was marked as reads, and an earlier life of this run declared the effect non_idempotent"
    )
    assert runner.read_state("r", runs).calls[0].attempts[0].error == "ConnectionRefusedError: True"
