"""What a turn costs late in a conversation, in calls of functions, counted: seconds depend on the machine."""

import itertools
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import eventlog
import replay
import runner
from benchmarks import models
from replay.events import ModelAsked
from runner import testing
from tests.guard import counting
from tests.guard.test_counts import FIGURES, Counting, looks

TURNS = 300
MORE = 1.1


def usual(counts: Sequence[int]) -> int:
    """The calls of a turn, once a run is under way."""
    return round(statistics.median(counts[10:40]))


def calls_of_turns(path: Path, agent: runner.Agent | None = None) -> list[int]:
    """How often functions of Python were called in each turn of a run."""
    count = 0
    marks: list[int] = []

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    def watch(_state: replay.State, events: Sequence[replay.Event]) -> None:
        if any(isinstance(event, ModelAsked) for event in events):
            marks.append(count)

    agent = agent or models.agent(models.Model(TURNS, size=100), looks("reads"))
    before = sys.getprofile()
    sys.setprofile(called)
    try:
        runner.start_sync(agent, "go", runs=eventlog.Directory(path, disk=Counting()), run="r", watch=watch)
    finally:
        sys.setprofile(before)
    return [after - before for before, after in itertools.pairwise(marks)]


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """What the turns of one run called."""
    return calls_of_turns(tmp_path_factory.mktemp("turns"))


def test_a_late_turn_calls_as_many_functions_as_an_early_one(counts: list[int]) -> None:
    """A request holds the whole conversation; nothing may walk through it message by message, at each turn."""
    early, late = counts[10:40], counts[-30:]
    assert statistics.median(late) <= statistics.median(early) * MORE


def test_a_turn_calls_no_more_functions_than_before(counts: list[int]) -> None:
    """What the loop adds to its log is Python, a little in many places: this notices when it grows."""
    stored = FIGURES["calls"].get(counting.VERSION)
    if stored is None:
        pytest.skip(f"no figures are stored for {counting.VERSION}; `python -m tests.guard` stores them")
    assert usual(counts) <= stored * MORE


def test_a_reply_of_many_calls_costs_each_of_them_as_much_as_one_of_few(tmp_path: Path) -> None:
    """A model may order thousands of calls: looking through all of them for each would stand still for every run."""

    def each(calls: int) -> float:
        reply = testing.tool_calls(*[("unknown", {})] * calls)
        agent = runner.Agent(name="a", model=testing.ScriptedModel([reply, "done"]), tools=[looks("reads")])
        return calls_of_turns(tmp_path / str(calls), agent)[0] / calls

    assert each(400) <= each(100) * MORE
