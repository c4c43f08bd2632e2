"""A model that fails, or answers what is no reply: retried, stopped, accounted, never a crash."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import runner
import runner.testing
from replay.events import ModelAsked, WaitUntil
from replay.messages import CostBound, Reply, ToolCall, Usage
from tests.engine import scenes_deaths
from tests.support import stage
from tests.support.forkserver import ForkServer

SCHEDULE = [4.0, 16.0, 60.0, 60.0, 60.0]


def failing(times: int, error: BaseException) -> Callable[[runner.Request], Reply]:
    """A turn that fails so many times in a row."""

    def turn(request: runner.Request) -> Reply:
        if request.n <= times:
            raise error
        return Reply(text="recovered")

    return turn


def test_a_transient_failure_is_asked_again_on_the_schedule(runs: Path) -> None:
    """Five retries, each wait logged before it is waited."""
    clock = stage.Ticking()
    turn = failing(5, runner.ModelError("overloaded"))
    assert stage.finished(stage.start([turn], runs=runs, clock=clock)) == "recovered"
    assert clock.slept == SCHEDULE
    assert [wait.why for wait in stage.events(runs, WaitUntil)] == ["model"] * 5
    assert [ask.n for ask in stage.events(runs, ModelAsked)] == [1, 2, 3, 4, 5, 6]
    spent = runner.read_state("r", runs).spent
    assert (spent.lost_asks, spent.lost_dollars) == (0, 0.0)


def test_the_sixth_failure_in_a_row_stops_the_run(runs: Path) -> None:
    """`ModelUnavailable`, with what the model said; a resume begins to count anew."""
    clock = stage.Ticking()
    with pytest.raises(runner.errors.ModelUnavailable, match="overloaded"):
        stage.start([failing(6, runner.ModelError("overloaded"))], runs=runs, clock=clock)
    assert clock.slept == SCHEDULE
    assert stage.finished(runner.resume_sync("r", stage.agent(["fine"]), runs=runs)) == "fine"


@pytest.mark.parametrize(
    "error", [ValueError("odd"), ConnectionError(), asyncio.CancelledError(), StopAsyncIteration()]
)
def test_an_exception_that_nobody_declared_is_transient_and_perhaps_billed(runs: Path, error: BaseException) -> None:
    """An adapter may let anything through, a library's own cancellation included; the run neither crashes nor ends."""
    clock = stage.Ticking()
    assert stage.finished(stage.start([failing(1, error)], runs=runs, clock=clock)) == "recovered"
    assert clock.slept == [4.0]
    assert runner.read_state("r", runs).spent.lost_asks == 1


@pytest.mark.parametrize("error", [TypeError("no len()"), AttributeError("x"), NameError("x"), AssertionError()])
def test_a_mistake_in_the_code_of_a_model_is_made_once(runs: Path, error: BaseException) -> None:
    """Asking again would come to the same, be paid again perhaps, and take minutes."""
    clock = stage.Ticking()
    with pytest.raises(runner.errors.ModelUnavailable, match=rf"failed for good: .*{type(error).__name__}: {error}"):
        stage.start([failing(1, error)], runs=runs, clock=clock)
    assert clock.slept == []
    assert runner.read_state("r", runs).spent.lost_asks == 1


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1, "10", 1e300])
def test_a_failures_time_that_nobody_can_wait_counts_as_none(runs: Path, seconds: Any) -> None:
    """The schedule's own stays."""
    clock = stage.Ticking()
    turn = failing(1, runner.ModelError("busy", retry_after=seconds))
    assert stage.finished(stage.start([turn], runs=runs, clock=clock)) == "recovered"
    assert clock.slept == [4.0]


def test_a_death_in_the_middle_of_the_backoff_goes_on_counting(forks: ForkServer, runs: Path) -> None:
    """Otherwise a run that dies while it waits would ask for ever."""
    assert forks.run(scenes_deaths.dies_in_its_backoff, runs=runs, failures=4).killed
    asked = len(stage.events(runs, ModelAsked))
    assert asked == 4
    clock = stage.Ticking(stage.NOON.replace(year=2100))
    with pytest.raises(runner.errors.ModelUnavailable):
        runner.resume_sync("r", stage.agent([runner.ModelError("busy")]), runs=runs, clock=clock)
    assert len(stage.events(runs, ModelAsked)) == 6


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_ask_that_ends_the_program_is_a_lost_one(runs: Path, error: type[BaseException]) -> None:
    """It travels on; the log says that the run was interrupted, and the next life asks again."""
    with pytest.raises(error):
        stage.start([error()], runs=runs)
    state = runner.read_state("r", runs)
    assert state.stopped is not None
    assert state.stopped.reason == "Interrupted"
    assert stage.finished(runner.resume_sync("r", stage.agent(["fine"]), runs=runs)) == "fine"
    assert runner.read_state("r", runs).spent.lost_asks == 1


DEEP: Any = []
for _ in range(100_000):
    DEEP = [DEEP]
GARBAGE: list[Any] = [
    None,
    "a text",
    {"text": "x"},
    Reply,
    Reply(text=None),  # type: ignore[arg-type]
    Reply(text=b"x"),  # type: ignore[arg-type]
    Reply(calls=None),  # type: ignore[arg-type]
    Reply(calls=(1,)),  # type: ignore[arg-type]
    Reply(calls=(ToolCall(tool=None),)),  # type: ignore[arg-type]
    Reply(calls=(ToolCall(tool="act", arguments=object()),)),  # type: ignore[arg-type]
    Reply(calls=(ToolCall(tool="act", arguments=DEEP),)),
    Reply(usage=None),  # type: ignore[arg-type]
    Reply(usage=Usage(input_tokens="many")),  # type: ignore[arg-type]
    Reply(dollars="1"),  # type: ignore[arg-type]
    Reply(stop="weird"),  # type: ignore[arg-type]
    Reply(model=None),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_what_is_no_reply_stops_the_run_with_a_sentence(runs: Path, garbage: Any) -> None:
    """The adapter has a bug, tokens were perhaps paid; asking again would not mend it."""
    with pytest.raises(runner.errors.ModelUnavailable, match="model") as stopped:
        stage.start([lambda _: garbage], runs=runs)
    assert stopped.value.hint
    state = runner.read_state("r", runs)
    assert (state.turns, state.spent.lost_asks) == (0, 1)
    assert stage.finished(runner.resume_sync("r", stage.agent(["fine"]), runs=runs)) == "fine"


def test_a_model_that_cannot_be_awaited_is_asked_once(runs: Path) -> None:
    """What it did may have been paid, and doing it again would come to the same."""
    asked = 0

    class Plain(runner.testing.ScriptedModel):
        def ask(self, request: runner.Request) -> Any:  # noqa: ARG002 (the fault)
            nonlocal asked
            asked += 1
            return Reply(text="paid")

    with pytest.raises(runner.errors.ModelUnavailable, match="`ask` gave Reply, and not in an `async def`"):
        runner.start_sync(runner.Agent(name="agent", model=Plain([])), stage.TASK, runs=runs)
    assert asked == 1


def test_a_script_with_what_is_no_reply_says_so_at_once(runs: Path) -> None:
    """A slip in a test makes it wait for no backoff."""
    with pytest.raises(runner.errors.ModelUnavailable, match=r"failed for good: .*turn 1 of the script is 5, no reply"):
        stage.start([5], runs=runs)
    with pytest.raises(runner.BadAgent, match="write a list of what is said"):
        runner.testing.ScriptedModel("done")


def test_a_reply_without_a_price_counts_as_the_most_its_ask_could_cost(runs: Path) -> None:
    """Nor does one whose price is no number, or below zero, come free: a dollar limit would never be reached."""

    @runner.tool(effect="reads")
    def look() -> str:
        return "x"

    unpriced = runner.testing.tool_calls(("look", {}))
    script = [
        Reply(calls=unpriced.calls, stop="tool_calls", dollars=None),
        Reply(calls=unpriced.calls, stop="tool_calls", dollars=math.nan),
        Reply(calls=unpriced.calls, stop="tool_calls", dollars=-5.0),
        Reply(text="over", dollars=0.5),
    ]
    assert stage.finished(stage.start(script, look, runs=runs)) == "over"
    spent = runner.read_state("r", runs).spent
    assert spent.unpriced == 3
    assert spent.dollars == pytest.approx(0.53)


class Bounded(runner.testing.ScriptedModel):
    """A model whose bound is what the test says."""

    bounds: Any = None

    def bound(self, request: runner.Request) -> CostBound:
        """Raise it or return it, from the second turn on."""
        if request.turn == 1:
            return CostBound()
        if isinstance(self.bounds, Exception):
            raise self.bounds
        answer: CostBound = self.bounds
        return answer


@pytest.mark.parametrize(
    "bound",
    [None, CostBound(dollars=math.nan), CostBound(input_tokens="x"), ValueError("no price")],  # type: ignore[arg-type]
)
def test_a_bound_that_cannot_be_logged_loses_no_result(runs: Path, bound: Any) -> None:
    """The result is saved before the error is raised: an effect that happened is not open for an adapter's bug."""
    ran = 0

    @runner.tool
    def act() -> str:
        nonlocal ran
        ran += 1
        return "done"

    model = Bounded([runner.testing.tool_calls(("act", {})), "over"])
    model.bounds = bound
    with pytest.raises(runner.BadAgent, match="bound"):
        runner.start_sync(runner.Agent(name="agent", model=model, tools=[act]), stage.TASK, runs=runs, run="r")
    assert stage.results(runs)["1.0"].text == "done"
    assert stage.finished(runner.resume_sync("r", stage.agent([None, "over"], act), runs=runs)) == "over"
    assert ran == 1


def test_a_request_is_built_from_the_log_alone(runs: Path) -> None:
    """The same bytes in every life, so a provider's prompt cache still hits."""

    @runner.tool(effect="reads")
    def look(x: int = 0) -> str:
        """Look at x."""
        return "x" * x

    seen: list[runner.Request] = []

    def second(request: runner.Request) -> Reply:
        seen.append(request)
        raise runner.ModelError("down", transient=False)

    script = [runner.testing.tool_calls(("look", {"x": 3})), second]
    options: dict[str, Any] = {"instructions": "be brief", "parameters": {"temperature": 0}}
    for _ in range(3):
        with pytest.raises(runner.errors.ModelUnavailable):
            stage.on(str(runs), stage.agent(script, look, **options))
    assert len(seen) == 3
    first, *others = (msgspec.structs.replace(request, at=stage.NOON) for request in seen)
    assert others == [first, first]
    assert (seen[0].instructions, seen[0].parameters, seen[0].turn) == ("be brief", {"temperature": 0}, 2)
    assert [(tool.name, tool.description) for tool in seen[0].tools] == [("look", "Look at x.")]
