"""The context policy: a summary is asked once, saved, and never paid for twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

import replay.messages
import runner
import runner.testing
from replay.messages import Message, Usage
from replay.values import Summary
from tests.engine import scenes_deaths
from tests.support import stage
from tests.support.forkserver import ForkServer


@runner.tool(effect="reads")
def look(x: int = 0) -> int:
    """Look."""
    return x


class Listening(runner.testing.ScriptedModel):
    """A model that keeps what it was asked."""

    def __init__(self, *script: object, **options: object) -> None:
        super().__init__(script, **options)  # type: ignore[arg-type] # whatever a script holds
        self.requests: list[runner.Request] = []

    async def ask(self, request: runner.Request) -> runner.Reply:
        """Keep it and answer."""
        self.requests.append(request)
        return await super().ask(request)


TWO = runner.testing.tool_calls(("look", {"x": 1}), ("look", {"x": 2}))
SCRIPT = [TWO, TWO, TWO, TWO, "over"]


def summarise_at(length: int, upto: int) -> Callable[..., runner.Summarise | None]:
    """A policy that wants a summary of the first `upto` messages once there are `length`."""

    def policy(messages: Sequence[Message], summary: Summary | None, _usage: Usage) -> runner.Summarise | None:
        return runner.Summarise(upto, "In short.") if len(messages) >= length and summary is None else None

    return policy


def listening(policy: runner.Policy, *script: object, **options: object) -> tuple[Listening, runner.Agent]:
    """An agent with this policy, and its model."""
    model = Listening(*(script or SCRIPT), **options)
    return model, runner.Agent(name="agent", model=model, tools=[look], instructions="Look around.", context=policy)


def kinds(messages: Sequence[Message]) -> list[str]:
    """The kinds of messages."""
    return [type(message).__name__ for message in messages]


def test_a_summary_is_asked_once_and_stands_for_what_it_covers(runs: Path) -> None:
    """Its own instructions, no tools; what is sent after it is the task with the summary, then what came since."""
    model, agent = listening(summarise_at(5, 3), summaries=["We looked twice."])
    assert stage.finished(runner.start_sync(agent, stage.TASK, runs=runs, run="r")) == "over"
    asks = Counter(request.purpose for request in model.requests)
    assert asks == {"turn": 5, "summary": 1}
    at = next(i for i, request in enumerate(model.requests) if request.purpose == "summary")
    summary, after = model.requests[at : at + 2]
    assert (summary.instructions, summary.tools, kinds(summary.messages)) == (
        "In short.",
        (),
        ["UserMessage", "AssistantMessage", "ToolResults"],
    )
    assert kinds(after.messages) == ["UserMessage", "AssistantMessage", "ToolResults"]
    first = after.messages[0]
    assert isinstance(first, replay.messages.UserMessage)
    assert stage.TASK in first.text
    assert "We looked twice." in first.text
    assert after.instructions == "Look around."
    state = runner.read_state("r", runs)
    assert (state.turns, state.summary) == (5, Summary(text="We looked twice.", upto=3, asked_at=5))
    assert kinds(state.messages) == ["UserMessage", *["AssistantMessage", "ToolResults"] * 4, "AssistantMessage"]


@pytest.mark.parametrize(
    "bad",
    [runner.Reply(text=" "), runner.Reply(text="I can't.", stop="refusal"), runner.Reply(text="We", stop="length")],
    ids=["blank", "refused", "cut-off"],
)
def test_a_summary_that_is_none_is_asked_for_again(runs: Path, bad: runner.Reply) -> None:
    """It would stand for everything it left out; what it may have cost is spent."""

    class Poor(Listening):
        async def ask(self, request: runner.Request) -> runner.Reply:
            good = await super().ask(request)
            return bad if request.purpose == "summary" and request.n == 1 else good

    agent = runner.Agent(
        name="agent", model=Poor(*SCRIPT, summaries=["We looked."]), tools=[look], context=summarise_at(5, 3)
    )
    clock = stage.Ticking()
    assert stage.finished(runner.start_sync(agent, stage.TASK, runs=runs, run="r", clock=clock)) == "over"
    state = runner.read_state("r", runs)
    assert state.summary == Summary(text="We looked.", upto=3, asked_at=5)
    assert (state.spent.lost_asks, clock.slept) == (1, [4.0])


def test_a_policy_that_never_has_enough_cannot_stop_the_run(runs: Path) -> None:
    """Asking for the same summary again is not going on."""

    def greedy(messages: Sequence[Message], _summary: object, _usage: object) -> runner.Summarise:
        return runner.Summarise(len(messages))

    model, agent = listening(greedy)
    assert stage.finished(runner.start_sync(agent, stage.TASK, runs=runs, run="r")) == "over"
    assert len(model.requests) <= 10


class Counted(Listening):
    """A model whose requests are `stays` tokens long, and 100 more for each message."""

    stays = 0

    async def ask(self, request: runner.Request) -> runner.Reply:
        """Answer with the usage."""
        usage = Usage(input_tokens=self.stays + 100 * len(request.messages))
        return msgspec.structs.replace(await super().ask(request), usage=usage)


@pytest.mark.fault("a summary that does not shrink the conversation is paid for at each turn")
@pytest.mark.parametrize(("stays", "most"), [(0, 7), (1000, 4), (100_000, 1)])
def test_a_summary_that_shrinks_little_is_not_asked_for_again_at_once(runs: Path, stays: int, most: int) -> None:
    """What stays is above the threshold, so the policy wants one at every turn; an audit says so. Others go on."""
    model = Counted(*[TWO] * 14, "over", summaries=["short"] * 20)
    model.stays = stays
    agent = runner.Agent(name="agent", model=model, tools=[look], context=runner.SummariseAfter(tokens=800, keep=2))
    assert stage.finished(runner.start_sync(agent, stage.TASK, runs=runs, run="r")) == "over"
    asks = [request for request in model.requests if request.purpose == "summary"]
    assert 0 < len(asks) <= most
    kinds = Counter(finding.kind for finding in runner.review.audit("r", runs).story.findings)
    assert (kinds["summary-no-use"] > 0) == (stays > 0)
    if not stays:  # then each made room, and no request was much longer than the policy wants
        assert max(len(request.messages) for request in model.requests if request.purpose == "turn") <= 10


@pytest.mark.parametrize(("when", "paid"), [("before", 2), ("after", 1)])
def test_a_saved_summary_is_never_paid_for_twice(
    forks: ForkServer, runs: Path, tmp_path: Path, when: str, paid: int
) -> None:
    """A death before its save loses it, as it would any reply; after its save it is there for every later life."""
    asks = tmp_path / "asks"
    assert forks.run(scenes_deaths.dies_at_its_summary, runs=runs, asks=asks, when=when).killed
    assert forks.run(scenes_deaths.dies_at_its_summary, runs=runs, asks=asks, when="never").value == "over"
    assert Counter(asks.read_text().split()) == {"summary": paid, "turn": 5}
    assert (
        runner.read_state("r", runs).spent.lost_asks == 1
    )  # the summary, or the turn that was marked in the line that saved it


def test_a_policy_that_raises_loses_no_result(runs: Path) -> None:
    """The outcomes are saved first; then the caller gets the policy's own error."""

    def broken(messages: Sequence[Message], _summary: object, _usage: object) -> None:
        if len(messages) > 1:
            raise ZeroDivisionError

    _, agent = listening(broken)
    with pytest.raises(ZeroDivisionError):
        runner.start_sync(agent, stage.TASK, runs=runs, run="r")
    assert set(stage.results(runs)) == {"1.0", "1.1"}
    assert stage.finished(runner.resume_sync("r", agent.replace(context=None), runs=runs)) == "over"


def test_a_continued_run_begins_with_the_summary(runs: Path) -> None:
    """What the first run had put aside stays aside."""
    _, agent = listening(summarise_at(5, 3), summaries=["We looked twice."])
    runner.start_sync(agent, stage.TASK, runs=runs, run="r")
    model, agent = listening(lambda *_: None, "more")
    assert stage.finished(runner.start_sync(agent, "and now?", runs=runs, run="s", after="r")) == "more"
    first, last = model.requests[0].messages[0], model.requests[0].messages[-1]
    assert isinstance(first, replay.messages.UserMessage)
    assert "We looked twice." in first.text
    assert last == replay.messages.UserMessage("and now?")
