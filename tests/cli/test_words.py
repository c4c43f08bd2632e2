"""Every event can be said, and says what a person needs of it."""

import io
import re
import types
import typing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

import replay
import runner
from replay import NEW, CallState, State, events
from replay.messages import CostBound, Reply, ToolCall
from replay.state import Ask, Attempt, Lookups, Spent
from replay.values import Limits, Wait
from runner._cli._io import live, logging_setup, progress
from runner._cli._render import event_text
from tests.cli import scenes
from tests.cli.conftest import Agent, Refold

AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
STATE = State(run="a-run", turns=3, calls=(CallState(call=ToolCall(tool="pay", id="3.0")),), at=AT)


def _kinds() -> set[type]:
    found: set[type] = {events.UnknownEvent}
    waiting: list[type] = [replay.Event]
    while waiting:
        below: list[type] = waiting.pop().__subclasses__()
        waiting += below
        found |= set(below)
    return found


def test_there_are_words_for_every_event_there_is() -> None:
    """An event that is added later must be sayable before it is written."""
    assert set(event_text.SAID) == _kinds()
    assert typing.get_args(replay.AnyEvent)[-1] is events.UnknownEvent


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (events.RunForked(run="b", parent="a", seq=4, host="h", pid=1), "b is forked from a at line 4"),
        (events.LimitsChanged(limits=Limits(turns=5)), "limits are now turns 5, resumes 10"),
        (events.ModelFailed(error="down", transient=True), "the model failed: down"),
        (events.ModelFailed(error="down", transient=False), "the model failed: down; asking again is pointless"),
        (events.ReplySaved(reply=Reply(text="")), "turn 3: says nothing (0 + 0 tokens, $0.0000)"),
        (events.AttemptEnded(call="3.0", n=2, did="unknown", error="cut"), "3.0 pay: attempt 2 may have acted: cut"),
        (
            events.AttemptEnded(call="3.0", n=2, did="nothing", error="no"),
            "3.0 pay: attempt 2 certainly did nothing: no",
        ),
        (events.AttemptEnded(call="9.9", n=1, did="nothing"), "9.9: attempt 1 certainly did nothing: "),
        (events.LookupAsked(call="3.0", n=1, believes=True), "3.0 pay: asks the service whether it happened"),
        (events.LookupAnswered(call="3.0", said="missing"), "3.0 pay: the service says missing"),
        (events.LookupAnswered(call="3.0", said="unsure", error="503"), "3.0 pay: the service says unsure (503)"),
        (events.WaitUntil(until=AT, why="model"), "waits until 12:00:00 UTC (model)"),
        (events.WaitUntil(until=AT, why="visible", call="3.0"), "3.0 pay: waits until 12:00:00 UTC (visible)"),
        (events.FileIntended(call="3.0", path="a", sha256=None, before=None), "3.0 pay: writes a"),
        (events.RequestRefused(request="stop", who="bob", why="late"), "refused stop, by bob: late"),
        (events.RuleAdded(tool="pay", arguments={"to": '"ann"'}, who="bob"), 'bob allows pay with to "ann"'),
        (events.MessageReceived(id="m", who="bob", text="Hurry."), "bob writes: Hurry."),
        (
            events.RunStopped(reason="StoppedByPerson", final=True, detail="ann"),
            "stopped for good (StoppedByPerson): ann",
        ),
        (events.StepRecorded(name="now", n=2, raw="5"), "step now 2: 5"),
        (events.StepRecorded(name="now", n=2, raw="", error="OSError: x"), "step now 2 failed: OSError: x"),
        (events.StepRecorded(name="now", n=2, raw=""), "step now 2 ended the program, and is tried again"),
        (events.PhaseChanged(phase="paused"), "paused, waits for a person"),
        (events.PhaseChanged(phase="tools"), "goes on"),
        (events.UnknownEvent("later", b"{}", ignorable=True), "later, an event of a later version"),
        (events.ResultRecorded(call="3.0", how="ran", text="x" * 200), f"3.0 pay: ran: {'x' * 100}..."),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_an_event_is_said_in_a_line(event: replay.AnyEvent, said: str) -> None:
    """Named by its call and tool where the state knows it, and short however long its payload is."""
    assert event_text.event(event, STATE) == said


def test_what_was_spent_is_said_with_lost_asks_apart() -> None:
    """The bounds count, and are shown apart."""
    state = State(spent=Spent(input_tokens=1000, output_tokens=234, dollars=0.5, lost_dollars=0.25, lost_asks=2))
    assert event_text.spent(state.spent) == "$0.7500, $0.2500 of it the bounds of 2 lost asks; 1,234 tokens"
    assert event_text.money(None) == "unpriced"


def test_a_line_without_a_time_is_said_all_the_same() -> None:
    """A state that was never saved has none."""
    assert progress.said(NEW, events.PhaseChanged(phase="tools")) == "goes on"


def _drawn(state: State | None, seconds: float = 0.0) -> str:
    """What the view shows so many seconds after it was told of a state."""
    clock, shown = types.SimpleNamespace(monotonic=lambda: 0.0), live.Live()
    console = Console(width=200, color_system=None, force_terminal=False, file=io.StringIO())
    with pytest.MonkeyPatch.context() as patch, console.capture() as drawn:
        patch.setattr(live, "time", clock)
        if state is not None:
            shown(state, ())
        clock.monotonic = lambda: seconds
        console.print(shown.page())
    return drawn.get()


def test_the_live_view_says_what_it_waits_for() -> None:
    """The model, the service, a time, a person: each with what a death now would mean."""
    asked = Ask(purpose="turn", n=1, upto=0, bound=CostBound(dollars=0.05))
    drawn = _drawn(State(run="a-run", phase="model", ask=asked), seconds=7)
    assert "asks the model 7 s, at most $0.0500" in drawn
    assert "this bound counts as spent" in drawn
    attempt = Attempt(n=1, key="k", effect="non_idempotent", key_ttl=None, intent=None, marked=AT, did="unknown")
    call = CallState(call=ToolCall(tool="pay", id="3.0"), attempts=(attempt,), lookups=Lookups(asked=1, in_flight=True))
    drawn = _drawn(State(run="a-run", phase="tools", calls=(call,)))
    assert "3.0 asks the service about pay 0 s" in drawn
    assert "a repeat could do it twice" in drawn
    drawn = _drawn(State(run="a-run", phase="tools", wait=Wait(until=AT, why="backoff", call="3.0")))
    assert "waits until 12:00:00 UTC (backoff)" in drawn
    question = replay.Question(
        id="q", kind="settle", call="3.0", tool="pay", arguments='{"x": 1}', digest="", why="unclear", at=AT
    )
    drawn = _drawn(State(run="a-run", phase="paused", questions={"q": question}))
    assert "q: did pay happen?" in drawn
    assert '{"x":1}' in drawn
    assert "nothing is lost" in drawn


def test_before_anything_is_saved_the_live_view_says_so() -> None:
    """Opening a long log takes a moment."""
    assert _drawn(None) == "opening the run\n"


def test_the_libraries_are_quiet_until_they_are_asked(refold: Refold, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's failure is logged at level info: seen with --verbose and with $REFOLD_LOG, not otherwise."""

    def logged(*options: str) -> bool:
        return (
            re.search(r"info model failed .*error=no such model", refold(*options, "run", "x", Agent("silent")).err)
            is not None
        )

    assert not logged()
    assert logged("--verbose")
    monkeypatch.setenv("REFOLD_LOG", "INFO")
    assert logged()
    monkeypatch.setenv("REFOLD_LOG", "warning")
    assert not logged()


def test_a_log_level_that_is_none_is_a_usage_error(refold: Refold, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence would look like a quiet library."""
    monkeypatch.setenv("REFOLD_LOG", "loudly")
    refold("ls").ends(2, err="The levels are: debug, info, warning, error.")
    assert set(logging_setup.LEVELS) == {"debug", "info", "warning", "error"}


def test_a_page_names_waits_limits_and_later_events(
    refold: Refold, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that a run seldom has, and that matter when it has them."""
    run = scenes.finished(runs)
    state = State(
        run=run,
        phase="tools",
        wait=Wait(until=AT, why="visible", call="1.0"),
        unknown=("later",),
        at=AT,
        calls=STATE.calls,
    )
    monkeypatch.setattr(runner, "read_state", lambda *_: state)
    page = refold("show", run).out
    assert "2026-11-29 12:00:00 UTC (visible)" in page
    assert "events of a later version: later" in page
    assert "not tried" in page
