"""The sweep can be trusted: it names the mistake of each of 40 wrong agents, and accuses none of 20 right ones."""

import os
import re
from typing import Any

import pytest

from runner import testing
from tests.testing.agents import RIGHT, WRONG, Case, Post


def swept(case: Case, **options: Any) -> testing.SweepReport:
    """A sweep of this agent."""
    return testing.sweep(
        environment=case.environment, agent=case.agent, task="Send letters.", effects=Post.counts, pairs=0, **options
    )


def test_there_are_forty_wrong_agents_and_twenty_right_ones() -> None:
    """Nobody takes one away unseen."""
    assert (len(WRONG), len(RIGHT)) == (40, 20)


UNMEASURED = {mode: [] if mode == "late" else [pytest.mark.unmeasured] for mode in testing.MODES}
"""Only here a sync tool acts late, in a thread."""
PAIRS = [
    pytest.param(
        case,
        mode,
        id=f"{name}-{mode}",
        marks=[*UNMEASURED[mode], *([] if (place + turn) % 4 == 0 else [pytest.mark.full])],
    )
    for place, (name, case) in enumerate(RIGHT.items())
    for turn, mode in enumerate(testing.MODES)
]
"""Each right agent with each mode; every run of the tests tries a quarter, so that each agent and mode has its turn."""


@pytest.mark.fault("false alarm of the sweep")
@pytest.mark.parametrize(("case", "mode"), PAIRS)
def test_no_right_agent_is_accused(case: Case, mode: testing.Mode) -> None:
    """In any mode; one that waits before it acts, or has no lookup, is no worse."""
    report = swept(case, modes=[mode], every=9 if mode in ("memory", "power") else 1)
    assert not report.failures, str(report)


@pytest.mark.unmeasured
@pytest.mark.fault("mistake in a tool")
@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_every_wrong_agent_is_found_with_its_cause(case: Case) -> None:
    """The report names the call, the tool and what went wrong, and the id plays it again."""
    every = 1 if case.mode == "cancel" else 2 if case.sync else 4
    report = swept(case, modes=[case.mode], every=every)
    told = str(report)
    assert re.search(case.cause, told), told
    first = next(one for one in report.failures if re.search(case.cause, " ".join(one.why)))
    assert swept(case, only=first.id).failures == (first,)


@pytest.mark.fault("sweep of nothing")
def test_a_sweep_of_nothing_fails() -> None:
    """No tool was called, or nothing was counted: every scenario would pass."""
    for case, effects, what in (
        (Case(turns=()), Post.counts, "no tool that acts was called"),
        (Case(), lambda _: {}, "no effect was counted"),
        (Case(), lambda _: {"a": 0}, "no effect was counted"),
    ):
        with pytest.raises(testing.NothingToCount, match=what):
            testing.sweep(environment=case.environment, agent=case.agent, task="x", effects=effects)


@pytest.mark.fault("false alarm of the sweep")
def test_a_person_who_looks_sees_what_lands_at_this_very_moment() -> None:
    """Its time had come, and its task had not yet had its turn: the person said that it never happened."""
    report = swept(RIGHT["looked up, unsure"], only="late:1.0#1/45")
    assert [one.second for one in report.scenarios] == ["45 sync seg-000001.jsonl, after"]
    assert not report.failures, str(report)


@pytest.mark.fault("refused approval")
def test_a_refused_approval_is_tried_with_every_death() -> None:
    """Nothing may happen then, whenever the process dies; an agent that needs no approval has no such scenario."""
    report = swept(RIGHT["keyed, approved"], modes=["person"])
    assert any(one.first.endswith("refuses") for one in report.scenarios)
    assert all(one.lost == one.duplicates == 0 for one in report.scenarios if one.first.endswith("refuses"))
    assert not any(one.first.endswith("refuses") for one in swept(RIGHT["asks a person"], modes=["person"]).scenarios)


@pytest.mark.fault("flood of failures")
def test_a_report_names_each_cause_once_and_single_deaths_first() -> None:
    """A mistake that shows at forty points is one mistake."""
    case = WRONG["keys forgotten"]
    lines = str(
        testing.sweep(
            environment=case.environment, agent=case.agent, task="x", effects=Post.counts, modes=["memory"], pairs=2
        )
    ).splitlines()
    causes = [line for line in lines if line.startswith("failed: ")]
    assert len(causes) == len(set(causes))
    assert causes[0] == "failed: 1.0 send ran again: the service took its key twice"
    assert ", then " not in lines[lines.index(causes[0]) + 2]
    assert len(lines) < 40


@pytest.mark.fault("library frames in a report")
def test_an_error_of_a_worker_shows_the_lines_of_the_user_s_own_code() -> None:
    """Of ours there are twenty, and none of them helps."""
    ours = os.getpid()

    def effects(post: Post) -> dict[str, int]:
        if os.getpid() != ours:
            raise ZeroDivisionError
        return post.counts()

    with pytest.raises(testing.WorkerFailed) as failed:
        testing.sweep(environment=Post, agent=Case().agent, task="x", effects=effects, modes=["memory"], jobs=2)
    assert "test_trust.py" in failed.value.trace
    assert "runner/testing" not in failed.value.trace
