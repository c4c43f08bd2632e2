"""Every branch of `decide` that a history takes is turned the other way: the retrace names the right first place.

The list of branches comes from the history itself, so it grows with the code. What a turned branch must lead to is
found out by asking the turned `decide` at each place, without the retrace.
"""

import json
import subprocess
import sys
from collections import defaultdict

import pytest

from tests.review.retrace.branches import Branch, Wired
from tests.review.retrace.histories import History, walk
from tests.review.retrace.mutations import Study
from tests.support import ROOT, unmeasured

pytestmark = [pytest.mark.fault("code that decides otherwise after a deploy")]

WALKS = (-1, -3, 10)
"""Seeds of walks that together tell apart what the batch does not; below zero, of tools that are `parallel`."""

ALIKE = {
    ("policy is None", False): "the policies here ask for summaries, and leave nothing out",
    ("call.tool is not None", True): "no tool here says how often it may be called",
    ("summary is None", True): "no run here has a message waiting",
    ("summary is None", False): "no run here has a message waiting",
    ("request.instructions == agent.instructions", True): "the digest made anew is the one that was kept",
    ("request.tools == agent.specs", True): "the digest made anew is the one that was kept",
    (
        "request.parameters == agent.parameters and request.output is None",
        True,
    ): "the digest made anew is the one that was kept",
    (
        "state.summary is None and less.drop <= 1 >= less.blank and (messages[:1] == (UserMessage(state.task),))",
        True,
    ): "a conversation of which nothing is left out is the same, made part by part or at once",
    ("summary is None and state.queue", False): "no run here has a message waiting",
    ("agent.answers is None", True): "no call here is the answer of an agent with an output type",
    ("rebuilt_upto > state.rebuilt_upto", False): "nothing here is rebuilt",
    ("state.rebuilt_upto", False): "a conversation of which nothing is rebuilt is the same conversation",
    ("intent is not None", False): "nothing happened under the intent None",
    ("tool is not None", True): "read with its tool or without: the texts here are the same values, or no JSON at all",
    ("call.call.tried", True): "what let the first attempt pass lets the next one, in the same code",
    ("call.gate is None", False): "what the gates said is what they say when they are asked again",
    ("not call.state.fork_guard", True): "in an empty fork guard no effect is found",
    ("attempts", True): "the key made anew is the one in the marker",
    ("self.call.attempts", True): "what was logged and what is bound now are one text, in the same code",
    ("self.call.attempts", False): "what was logged and what is bound now are one text, in the same code",
    ("state.summary is None", False): "every summary here makes room, so none waits",
    ("attempt.lease_lost", False): "the tools here are visible later than they time out",
    ("tool.find is not None", True): "how late an attempt lands matters only when its key is about to be forgotten",
    ("not (is_fresh or state.framework)", True): "no reply here has more calls than run side by side",
    ("not (is_fresh or state.framework)", False): "no wave is longer than the calls that are looked at",
    ("is_fresh", False): "what needed a yes was asked before the first call",
    ("not said", True): "of no questions there is no order, and no answer",
}
"""Branches whose other way comes to the same on these histories, each with the reason."""


def _is_alike(branch: Branch) -> bool:
    return (branch.site.text, branch.way) in ALIKE


@pytest.fixture(scope="session")
def of_batch(whole_batch: History) -> Study:
    """The batch under every branch it takes."""
    return Study(whole_batch).run()


@pytest.fixture(scope="session")
def of_walks() -> list[Study]:
    """Random walks, which take what the batch does not: deaths, lookups, people."""
    return [Study(walk(seed)).run() for seed in WALKS]


def test_each_branch_of_decide_turned_on_the_batch_diverges_at_the_first_line_where_it_matters(of_batch: Study) -> None:
    """Not earlier, which would blame what is right, and not later, where the history is another one already."""
    assert len(of_batch.branches) > 80
    assert of_batch.found == of_batch.expected
    early = [str(b) for b, line in of_batch.found.items() if line is not None and line < of_batch.wired.switch.taken[b]]
    assert early == []


def test_the_same_holds_on_walks_that_climb_the_ladder(of_walks: list[Study]) -> None:
    """A batch that nothing interrupts never asks a service or a person."""
    for study in of_walks:
        assert study.found == study.expected


@pytest.mark.full
def test_the_same_holds_when_each_part_of_a_condition_is_turned(whole_batch: History) -> None:
    """Finer than branches: a condition of three parts has three ways to be wrong."""
    for history in (whole_batch, *(walk(seed) for seed in WALKS)):
        study = Study(history, Wired(operands=True)).run()
        assert len(study.branches) > 120
        assert study.found == study.expected


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 140))
def test_the_same_holds_on_many_more(seed: int) -> None:
    """Walks that nobody chose."""
    study = Study(walk(seed)).run()
    assert study.found == study.expected


def test_what_no_history_tells_apart_is_listed_with_its_reason(of_batch: Study, of_walks: list[Study]) -> None:
    """A branch that could be turned without anybody noticing must be one where both ways are the same."""
    studies = [of_batch, *of_walks]
    seen = {branch for study in studies for branch in study.branches if branch not in study.unseen()}
    unseen = {branch for study in studies for branch in study.branches} - seen
    assert [str(branch) for branch in sorted(unseen) if not _is_alike(branch)] == []
    assert set(ALIKE) <= {(branch.site.text, branch.way) for study in studies for branch in study.branches}


@pytest.mark.full
def test_the_list_holds_every_branch_that_coverage_sees_the_batch_take(of_batch: Study) -> None:
    """A list of our own making could leave out what is hard; another tool's can't."""
    command = [sys.executable, "-m", "tests.review.retrace.covered"]
    done = subprocess.run(command, cwd=ROOT, env=unmeasured.environment(), capture_output=True, text=True, check=True)
    ways: dict[tuple[str, int], int] = defaultdict(int)
    for branch in of_batch.wired.switch.taken:
        ways[branch.site.file, branch.site.line] += 2 if branch.site.loop else 1  # entered, and left at its end
    covered = [(file, line, taken) for file, line, taken in json.loads(done.stdout) if taken]
    assert len(covered) > 30
    assert [row for row in covered if ways[row[0], row[1]] < row[2]] == []
