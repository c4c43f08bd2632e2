"""What a family of runs may use is what its root may use: no reply is paid for beyond that, and none counts twice."""

from __future__ import annotations

import contextlib
import gc
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import replay
import runner
from eventlog import Directory
from replay.events import ChildStarted, ResultRecorded
from replay.values import Limits
from runner import Reply, Usage
from runner._engine.flight import Drain
from runner.testing import ScriptedModel, tool_calls
from tests.children import scenes
from tests.children.scenes import PAID, children, events, lead, paying, resume, start
from tests.support import stage
from tests.support.disks import Quick

COST = 0.25
DONE = Reply(text="Done.", dollars=COST, usage=Usage(input_tokens=100, output_tokens=20))


def worker(turns: int, *, asks: bool) -> runner.Agent:
    """An agent that takes so many turns; in its first one it may need a person."""
    orders = ["ask x" if asks else "x", *["x"] * (turns - 2)]
    script = [tool_calls(("pay", {"order": order}), dollars=COST) for order in orders[: turns - 1]]
    return runner.Agent(name=f"w{turns}{asks}", model=ScriptedModel([*script, DONE]), tools=[scenes.pay])


def family(shape: Sequence[tuple[int, bool]], limits: Limits) -> runner.Agent:
    """A parent that gives each of its workers a task at once."""
    workers = {f"w{turns}{asks}": worker(turns, asks=asks) for turns, asks in shape}
    calls = tool_calls(*((f"w{turns}{asks}", {"task": "go"}) for turns, asks in shape), dollars=COST)
    return runner.Agent(
        name="lead",
        model=ScriptedModel([calls, DONE]),
        tools=[runner.as_tool(one) for one in workers.values()],
        limits=limits,
    )


def used(runs: Directory) -> tuple[float, int]:
    """Dollars and turns of all replies in the whole family."""
    names = ["p", *children(runs)]
    turns = sum(runner.read_state(name, runs).turns for name in names)
    return scenes.spent(runs, *names), turns


@settings(max_examples=6, deadline=None)
@example(shape=[(3, False), (3, False)], turns=[5, 24, 24], asks=[24, 24, 24])
@example(shape=[(3, False), (3, True)], turns=[24, 24, 24], asks=[5, 24, 24])
@given(
    shape=st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=4),
    turns=st.lists(st.integers(1, 24), min_size=3, max_size=3).map(sorted),
    asks=st.lists(st.integers(1, 24), min_size=3, max_size=3).map(sorted),
)
def test_a_family_never_uses_more_than_its_root_may_and_each_use_counts_once(
    shape: list[tuple[int, bool]], turns: list[int], asks: list[int]
) -> None:
    """Whatever the limits are raised to, however the children rest: totals are those of the replies in the logs."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Directory(Path(folder) / "runs", disk=Quick())
        for most, dollars in [*zip(turns, asks, strict=True), (1000, 1000)]:
            carried(family(shape, Limits(turns=most, dollars=dollars * COST, resumes=1000)), runs)
            spent, taken = used(runs)
            state = runner.read_state("p", runs)
            assert spent == pytest.approx(state.spent.total_dollars)
            assert taken == state.turns_used
            assert taken <= most
            assert spent < (dollars + len(shape)) * COST, "each may begin one request more than it had money for"
        assert runner.read_state("p", runs).phase == "done"


def carried(agent: runner.Agent, runs: Directory) -> None:
    """Carry the run on until it is done or at a limit, with a yes to whatever is asked."""
    with contextlib.suppress(runner.errors.TurnLimit, runner.errors.DollarLimit):
        outcome = resume(agent, runs) if "p" in runs.runs() else start(agent, runs)
        while isinstance(outcome, runner.Paused):
            for question in outcome.questions:
                runner.approve("p", question.id, "ann", runs=runs)
            outcome = resume(agent, runs)


def test_children_side_by_side_get_equal_shares_of_what_is_left(runs: Directory) -> None:
    """What can't be divided goes to the first; resumes are the parent's, and an agent's own limits stay."""
    clerk = paying(limits=Limits(dollars=0.5, turns=9))
    with pytest.raises(runner.errors.DollarLimit):
        start(lead("a", "b", "c", clerk=clerk, limits=Limits(turns=13, tokens=1120, dollars=1.0, resumes=4)), runs)
    started = [e.limits for e in events(runs) if isinstance(e, ChildStarted)][:3]
    assert [(one.turns, one.tokens, one.dollars, one.resumes) for one in started] == [
        (4, 334, 0.25, 4),
        (4, 333, 0.25, 4),
        (4, 333, 0.25, 4),
    ]


def test_a_child_that_used_its_share_gets_another_one_of_what_the_others_left(runs: Directory) -> None:
    """Nothing is lost by dividing."""
    agent = family([(2, False), (6, False)], Limits(dollars=9.5 * COST))
    start(agent, runs).finished()
    started = [(e.call, e.limits.dollars) for e in events(runs) if isinstance(e, ChildStarted)]
    assert started == [("1.0", 4.25 * COST), ("1.1", 4.25 * COST), ("1.1", pytest.approx(6.5 * COST))]


def test_a_child_that_reached_a_limit_of_its_own_agent_has_failed(runs: Directory) -> None:
    """The parent's model reads why, and may do something else."""
    start(lead("a", clerk=paying(limits=Limits(turns=1))), runs).finished()
    (failed,) = [e for e in events(runs) if isinstance(e, ResultRecorded)]
    assert (failed.how, "TurnLimit: 1 of 1 turns used" in failed.text) == ("failed", True)


def test_a_parent_whose_child_used_up_the_rest_stops_and_a_higher_limit_carries_both_on(
    runs: Directory,
) -> None:
    """The child's work is kept."""
    with pytest.raises(runner.errors.TurnLimit, match="2 of 2"):
        start(lead("a", limits=Limits(turns=2)), runs)
    assert PAID == ["a"]
    more = lead("a", limits=Limits(turns=9))
    resume(more, runs).finished()
    assert PAID == [], "it was paid before"
    assert len(children(runs)) == 1


class Died(BaseException):
    """The process ends here."""


def die(state: replay.State, _events: object) -> None:
    """When a child is done, and its parent's log does not say so yet."""
    if state.run != "p" and state.phase == "done":
        raise Died


@pytest.mark.parametrize(
    "limits",
    [Limits(turns=3, dollars=5.0), Limits(turns=3), Limits(tokens=350)],
    ids=["turns, dollars", "turns", "tokens"],
)
def test_a_child_that_used_up_all_before_its_process_died_gives_its_result_and_then_the_parent_stops(
    runs: Directory, limits: Limits
) -> None:
    """It was done, and its parent's log did not say so yet."""
    with pytest.raises(Died):
        start(family([(2, False)], limits), runs, watch=die)
    with pytest.raises((runner.errors.TurnLimit, runner.errors.TokenLimit)):
        resume(family([(2, False)], limits), runs)
    assert [e.text for e in events(runs) if isinstance(e, ResultRecorded)] == ["Done."]
    resume(family([(2, False)], Limits()), runs).finished()


@pytest.mark.parametrize(
    ("before", "since", "error"),
    [
        (Limits(turns=6), Limits(turns=0), runner.errors.TurnLimit),
        (Limits(tokens=900), Limits(tokens=1), runner.errors.TokenLimit),
        (Limits(dollars=5.0), Limits(dollars=0.0001), runner.errors.DollarLimit),
    ],
    ids=["turns", "tokens", "dollars"],
)
def test_a_limit_that_a_resume_set_below_what_is_used_keeps_no_child_that_is_done_from_giving_its_result(
    runs: Directory, before: Limits, since: Limits, error: type[runner.Stopped]
) -> None:
    """There is nothing left to share, not less than nothing."""
    with pytest.raises(Died):
        start(family([(2, False)], before), runs, watch=die)
    with pytest.raises(error):
        resume(family([(2, False)], since), runs)
    assert [e.text for e in events(runs) if isinstance(e, ResultRecorded)] == ["Done."]


def test_where_too_little_is_left_for_all_some_children_wait(runs: Directory) -> None:
    """A share of nothing would stop a child before its first request."""
    agent = lead("a", "b", "c", limits=Limits(turns=3))
    with pytest.raises(runner.errors.TurnLimit):
        start(agent, runs)
    first = next(e for e in events(runs) if isinstance(e, ChildStarted))
    assert first.limits.turns == 1
    assert len(children(runs)) == 2


@pytest.mark.fault("memory that grows with every child that ever was")
def test_nothing_of_a_child_that_ended_is_kept_by_its_parent(runs: Directory) -> None:
    """A lead may hand out tasks for days."""

    def lives() -> int:
        gc.collect()
        return sum(isinstance(one, Drain) for one in gc.get_objects())

    def answer(_: runner.Request) -> Reply:
        with contextlib.suppress(AssertionError):  # a model that raises it would be asked again
            stage.within(20, lambda: lives() <= before + 1)  # a thread may be about to let go of what it did
        kept.append(lives() - before)
        return DONE

    kept, before = list[int](), lives()
    start(lead("a", "b", "c", end=(answer,)), runs)
    assert len(kept) == 1
    assert kept[0] <= 1
