"""An error is not a no: what comes out of a tool, and what it says about its effect."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import runner
import runner.testing
from replay.events import AttemptEnded, WaitUntil
from tests.support import stage


def raising(*errors: BaseException | str) -> tuple[Callable[[], str], list[str]]:
    """A body that raises or returns one of these at each call, and the keys it was called with."""
    keys: list[str] = []

    def body() -> str:
        keys.append(runner.current_call().key)
        what = errors[min(len(keys), len(errors)) - 1]
        if isinstance(what, BaseException):
            raise what
        return what

    return body, keys


def declared(body: Callable[[], str], **options: Any) -> runner.Tool:
    """A tool named `act`."""
    return runner.tool(name="act", **options)(body)


ONCE = [runner.testing.tool_calls(("act", {})), "over"]


def test_toolfailed_is_a_result_that_the_model_reads(runs: Path) -> None:
    """The tool is certain that nothing happened, and trying again is pointless."""
    body, keys = raising(runner.ToolFailed("no such customer"))
    assert stage.finished(stage.start(ONCE, declared(body), runs=runs)) == "over"
    result = stage.results(runs)["1.0"]
    assert (result.how, len(keys)) == ("failed", 1)
    assert "no such customer" in result.text


def test_toolfailed_with_a_time_is_tried_again_after_it(runs: Path) -> None:
    """The service asked for 90 s, which is longer than the schedule's 4 s; the wait is logged before it is waited."""
    clock = stage.Ticking()
    body, keys = raising(runner.ToolFailed("busy", retry_after=90), "done")
    assert stage.finished(stage.start(ONCE, declared(body), runs=runs, clock=clock)) == "over"
    assert stage.results(runs)["1.0"].how == "ran"
    assert len(keys) == 2
    assert len(set(keys)) == 1
    (wait,) = stage.events(runs, WaitUntil)
    assert (wait.until, wait.why) == (stage.NOON + timedelta(seconds=90), "backoff")
    assert clock.at == wait.until


@pytest.mark.parametrize(
    "error", [ValueError("x"), TimeoutError(), runner.OutcomeUnknown("no reply"), asyncio.CancelledError()]
)
def test_anything_else_leaves_a_call_open(runs: Path, error: BaseException) -> None:
    """Broken connections, bugs and a tool's own cancellation say nothing about the effect: a person is asked."""
    body, keys = raising(error)
    (question,) = stage.asked(stage.start(ONCE, declared(body), runs=runs))
    assert (question.kind, question.call, len(keys)) == ("settle", "1.0", 1)
    assert runner.read_state("r", runs).in_doubt == ("1.0",)
    assert stage.results(runs) == {}


def test_a_read_that_raised_has_failed(runs: Path) -> None:
    """It changed nothing, whatever it raised, so nobody is asked."""
    body, keys = raising(ValueError("no such table"))
    assert stage.finished(stage.start(ONCE, declared(body, effect="reads"), runs=runs)) == "over"
    result = stage.results(runs)["1.0"]
    assert (result.how, len(keys)) == ("failed", 1)
    assert "ValueError: no such table" in result.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("effect", ["reads", "non_idempotent"])
def test_what_must_travel_on_is_raised_after_the_outcome_is_saved(
    runs: Path, error: type[BaseException], effect: str
) -> None:
    """A tool that ends the program still leaves a log that says how its attempt ended."""
    body, _ = raising(error())
    with pytest.raises(error):
        stage.start(ONCE, declared(body, effect=effect), runs=runs)
    (ended,) = stage.events(runs, AttemptEnded)
    assert ended.did == ("nothing" if effect == "reads" else "unknown")
    assert runner.read_state("r", runs).in_doubt == (() if effect == "reads" else ("1.0",))


def test_an_async_tool_that_ends_the_program_is_saved_too(runs: Path) -> None:
    """The same for a coroutine, whose task would carry the error past everybody."""

    @runner.tool
    async def act() -> str:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        stage.start(ONCE, act, runs=runs)
    assert [event.did for event in stage.events(runs, AttemptEnded)] == ["unknown"]


def test_stopiteration_from_a_thread_does_not_hang_the_run(runs: Path) -> None:
    """`next()` of nothing is a common slip, and the one exception that no future can carry."""
    body, _ = raising(StopIteration())
    assert stage.finished(stage.start(ONCE, declared(body, effect="reads"), runs=runs)) == "over"
    assert "StopIteration" in stage.results(runs)["1.0"].text


class Nameless(Exception):
    """An error that can't say what it is."""

    def __str__(self) -> str:
        """Fail."""
        raise RuntimeError


def test_an_error_without_a_text_is_named_by_its_type(runs: Path) -> None:
    """Whatever a tool raises, its outcome can be saved."""
    body, _ = raising(Nameless())
    assert stage.finished(stage.start(ONCE, declared(body, effect="reads"), runs=runs)) == "over"
    assert "Nameless" in stage.results(runs)["1.0"].text


@pytest.mark.parametrize(
    ("seconds", "waits"), [(math.nan, 4), (-1.0, 4), ("5", 4), (True, 4), (math.inf, 3600), (1e300, 3600), (32e6, 3600)]
)
def test_a_time_that_nobody_can_wait_is_still_a_word_for_another_attempt(runs: Path, seconds: Any, waits: int) -> None:
    """A header parsed carelessly is no reason to give up, nor to fail a save, nor for a wait that no calendar holds."""
    body, keys = raising(runner.ToolFailed("busy", retry_after=seconds), "again")
    clock = stage.Ticking()
    assert stage.finished(stage.start(ONCE, declared(body), runs=runs, clock=clock)) == "over"
    assert (stage.results(runs)["1.0"].text, len(keys)) == ("again", 2)
    assert sum(clock.slept) == waits


@pytest.mark.parametrize("error", [runner.ToolFailed, runner.OutcomeUnknown, ValueError])
def test_a_secret_is_masked_in_an_error_before_it_is_logged(runs: Path, error: type[Exception]) -> None:
    """An exception's text often holds the request that failed."""
    body, _ = raising(error("401 for token tok-12345"))
    stage.start(ONCE, declared(body, secret=(re.compile(r"tok-\d+"),)), runs=runs)
    assert b"tok-12345" not in stage.written(runs)
    assert b"401 for token [secret]" in stage.written(runs)


def test_a_secret_field_of_a_result_is_masked_before_it_is_logged(runs: Path) -> None:
    """Neither the log nor the model ever sees it."""

    @runner.tool(effect="reads", secret=("password",))
    def account() -> dict[str, str]:
        return {"name": "olga", "password": "hunter2"}

    stage.start([runner.testing.tool_calls(("account", {})), "over"], account, runs=runs)
    assert b"hunter2" not in stage.written(runs)
    assert "olga" in stage.results(runs)["1.0"].text


@pytest.mark.parametrize("slow", [False, True])
def test_a_plain_function_may_return_a_coroutine(runs: Path, slow: bool) -> None:
    """A wrapper around an async tool does; it is awaited, within the timeout."""

    @runner.tool(effect="reads", timeout=0.05)
    async def act() -> str:
        await asyncio.sleep(60 if slow else 0)
        return "done"

    def plain(body: Callable[..., object]) -> Callable[[], object]:
        def call() -> object:
            return body()

        return call

    wrapped = act.around(plain)
    assert stage.finished(stage.start(ONCE, wrapped, runs=runs, clock=stage.Ticking())) == "over"
    result = stage.results(runs)["1.0"]
    assert (result.how, result.text == "done") == (("failed", False) if slow else ("ran", True))


def test_a_tool_sees_its_call(runs: Path) -> None:
    """The key travels beside the arguments, the same in a parameter, in the context and in a thread."""
    seen: list[runner.Call] = []

    @runner.tool(name="act")
    def act(x: int, call: runner.Call) -> str:
        assert x == 1
        seen.extend([call, runner.current_call()])
        return call.subkey(1)

    stage.start([runner.testing.tool_calls(("act", {"x": 1})), "over"], act, runs=runs)
    call = seen[0]
    assert seen[1] is call
    assert (call.run, call.id, call.tool, call.n, call.arguments) == ("r", "1.0", "act", 1, {"x": 1})
    assert call.key == stage.key(runs, "1.0")
    assert stage.results(runs)["1.0"].text == call.subkey(1) != call.key
    assert act.schema["properties"].keys() == {"x"}
    with pytest.raises(runner.errors.NotInACall):
        runner.current_call()
    with pytest.raises(runner.errors.NoWorkspace):
        call.workspace.exists("a")
