"""The ladder climbed for real: a call that may have acted is settled by a repeat, the service, or a person."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import replay
import runner
from replay.events import LookupAnswered
from tests.engine.climbing import ACT, HOUR, Killed, Once, keyed
from tests.support import stage


def test_found_is_the_calls_result(runs: Path) -> None:
    """The service knows; the call is not made again."""
    once = Once(1, runner.Found({"issue": 7}))
    assert stage.finished(stage.start(ACT, once.tool, runs=runs, clock=stage.Ticking())) == "over"
    result = stage.results(runs)["1.0"]
    assert (result.how, result.text, once.tries, once.looks) == ("found", '{"issue": 7}', 1, 1)


def test_missing_runs_the_call_again(runs: Path) -> None:
    """The service is certain that nothing happened."""
    once = Once(1, runner.Missing())
    assert stage.finished(stage.start(ACT, once.tool, runs=runs, clock=stage.Ticking())) == "over"
    assert (stage.results(runs)["1.0"].text, once.tries) == ("did 1", 2)


def test_unsure_asks_a_person(runs: Path) -> None:
    """The service passes the question up."""
    once = Once(1, runner.Unsure("two of that name"))
    (question,) = stage.asked(stage.start(ACT, once.tool, runs=runs))
    assert (question.kind, question.arguments, once.looks) == ("settle", '{"x": 1}', 1)
    assert question.why == "the service can't say whether it happened: two of that name"


def test_a_lookup_that_recovers_is_believed(runs: Path) -> None:
    """One failure says nothing."""
    once = Once(1, ConnectionError("down"), runner.Found("it"))
    assert stage.finished(stage.start(ACT, once.tool, runs=runs, clock=stage.Ticking())) == "over"
    assert stage.results(runs)["1.0"].text == "it"


@pytest.mark.parametrize(("asks_for", "waits"), [(100.0, 100.0), (1.0, 4.0), (1e6, 3600.0)])
def test_a_lookup_is_asked_again_when_the_service_wants_it(runs: Path, asks_for: float, waits: float) -> None:
    """One that is busy, as after its own crash, would be asked three times in vain, and then a person."""
    once, clock = Once(1, runner.ToolFailed("busy", retry_after=asks_for), runner.Found("it")), stage.Ticking()
    assert stage.finished(stage.start(ACT, once.tool, runs=runs, clock=clock)) == "over"
    assert sum(clock.slept) == waits


def test_a_lookup_that_returns_something_else_counts_as_raising(runs: Path) -> None:
    """A bare value is a slip, and must not become a result."""
    once = Once(1, "found it")  # type: ignore[arg-type] # the slip
    stage.asked(stage.start(ACT, once.tool, runs=runs, clock=stage.Ticking()))
    assert "str" in str(stage.events(runs, LookupAnswered)[0].error)


def test_a_lookup_may_be_async_and_sees_the_call(runs: Path) -> None:
    """It asks by key or by arguments."""
    seen: list[runner.Call] = []

    @runner.tool
    def act(x: int) -> str:
        raise runner.OutcomeUnknown(f"no reply to {x}")

    @act.lookup
    async def find(call: runner.Call) -> runner.Found:
        seen.extend([call, runner.current_call()])
        return runner.Found("it")

    assert stage.finished(stage.start(ACT, act, runs=runs)) == "over"
    assert seen[0] is seen[1]
    assert (seen[0].key, seen[0].arguments) == (stage.key(runs, "1.0"), {"x": 1})


def test_a_lookup_that_ends_the_program_has_answered_nothing(runs: Path) -> None:
    """It travels on; the next life asks again."""
    once = Once(1, SystemExit(), runner.Found("it"))
    with pytest.raises(SystemExit):
        stage.start(ACT, once.tool, runs=runs)
    assert stage.finished(runner.resume_sync("r", stage.agent(ACT, once.tool), runs=runs)) == "over"
    assert (stage.results(runs)["1.0"].text, once.looks) == ("it", 2)


def test_a_person_says_done_and_what_they_found(runs: Path) -> None:
    """Which becomes the call's result; nothing runs again."""
    once = Once(1)
    (question,) = stage.asked(stage.start(ACT, once.tool, runs=runs))
    runner.settle("r", question.id, "olga", "done", "issue 7\ud800", runs=runs)
    assert stage.finished(runner.resume_sync("r", stage.agent(ACT, once.tool), runs=runs)) == "over"
    result = stage.results(runs)["1.0"]
    assert (result.how, result.text, once.tries) == ("stated", "issue 7\ufffd", 1)


def test_a_hook_that_has_a_lost_call_run_again_each_time_is_asked_five_times(runs: Path) -> None:
    """Then a person decides: without a wait between them, hundreds of attempts would act in a few seconds."""
    once = Once(100)

    def again(_: runner.Question) -> runner.Answer:
        return runner.Answer("rerun", "a program")

    (question,) = stage.asked(stage.start(ACT, once.tool, runs=runs, on_question=again))
    assert (question.id, once.tries) == ("1.0-settle-6", 6)
    runner.settle("r", question.id, "olga", "done", "issue 7", runs=runs)
    agent = stage.agent(ACT, once.tool)
    assert stage.finished(runner.resume_sync("r", agent, runs=runs, on_question=again)) == "over"


def harmless(x: int) -> str:
    """A body that would do it again."""
    raise AssertionError(f"ran again with {x}")


def renamed(y: int) -> str:
    """A body that takes other arguments."""
    raise AssertionError(f"ran again with {y}")


@pytest.mark.fault("upgrade")
@pytest.mark.parametrize(
    ("current", "why"),
    [
        ([runner.tool(effect="idempotent", name="act")(harmless)], "declares the effect idempotent"),
        ([runner.tool(effect="reads", name="act")(harmless)], "declares the effect reads"),
        ([], "no such tool"),
        ([runner.tool(effect="keyed", key_ttl=HOUR, name="act")(renamed)], "can't take its arguments"),
    ],
    ids=["idempotent", "reads", "removed", "schema"],
)
def test_an_open_call_whose_tool_changed_goes_to_a_person(runs: Path, current: Sequence[runner.Tool], why: str) -> None:
    """What was true of the tool that ran is not known of the current one; a person may still say what happened."""
    seen: list[str] = []
    old = runner.tool(effect="keyed", key_ttl=HOUR, name="act")(keyed(seen))
    with pytest.raises(KeyboardInterrupt):
        stage.start(ACT, old, runs=runs, clock=Killed())
    agent = stage.agent(ACT, *current)
    (question,) = stage.asked(runner.resume_sync("r", agent, runs=runs, clock=stage.Ticking()))
    assert why in question.why
    runner.settle("r", question.id, "olga", "done", "it is there", runs=runs)
    assert stage.finished(runner.resume_sync("r", agent, runs=runs)) == "over"
    assert stage.results(runs)["1.0"].how == "stated"
    assert seen == ["1"]


def test_a_read_that_raised_has_failed_even_when_an_earlier_attempt_of_it_died(runs: Path) -> None:
    """Nothing that reads has acted: there is nothing to ask a person about."""

    @runner.tool(effect="reads")
    def act(x: int) -> str:
        raise SystemExit(x)

    @runner.tool(name="act", effect="reads")
    def broken(x: int) -> str:
        message = f"no such file: {x}"
        raise FileNotFoundError(message)

    class Died(BaseException):
        """Whatever ends the process."""

    def die(state: replay.State, _events: object) -> None:
        if state.calls and state.calls[0].in_flight:
            raise Died

    with pytest.raises(Died):
        stage.start(ACT, act, runs=runs, watch=die)
    assert runner.read_state("r", runs).in_doubt == ("1.0",)
    assert stage.finished(runner.resume_sync("r", stage.agent(ACT, broken), runs=runs)) == "over"
    assert stage.results(runs)["1.0"].how == "failed"
