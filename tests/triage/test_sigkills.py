"""The triage jobs under real SIGKILL: at named points of the small one, at random moments of the larger ones."""

from __future__ import annotations

import pytest

from runner import crashtest, triage

pytestmark = pytest.mark.full


def test_at_a_sample_of_the_points_of_the_task_sweep() -> None:
    """Agent and tracker die together, once and twice; nothing is repeated, lost, or asked."""
    swept = triage.killed(points=4)
    print(swept)  # noqa: T201 (the long tests print what they counted)
    assert swept.failures == ()
    (row,) = swept.rows
    assert row.scenarios >= 6
    assert (row.duplicates, row.lost, row.unfinished, row.questions) == (0, 0, 0, 0)


def test_at_random_moments_of_the_larger_tasks() -> None:
    """Whatever falls, every check of the catalogue passes in the end, and nobody is asked."""
    passed: list[float] = []
    failures: list[str] = []
    rows = triage.random_kills(8.0, seed=1, progress=passed.append, failed=failures.append)
    print(crashtest.table(rows))  # noqa: T201 (as above)
    assert failures == []
    assert passed == sorted(passed)
    assert [row.mode for row in rows] == ["random m1-done-after-delete", "random batch"]
    for row in rows:
        assert row.scenarios > 0
        assert (row.duplicates, row.lost, row.unfinished, row.questions, row.failures) == (0, 0, 0, 0, 0)
