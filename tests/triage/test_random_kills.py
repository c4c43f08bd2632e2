"""The triage jobs under real SIGKILL: at named points of the small one, at random moments of the larger ones.

Nothing of a test session is shared with them: a process that dies while it waits for a shared answer would leave that
answer to the next one.
"""

import pytest

from runner import testing, triage

pytestmark = [pytest.mark.full, pytest.mark.early]


def test_at_a_sample_of_the_points_of_the_task_sweep_nothing_is_repeated_lost_or_asked() -> None:
    """Agent and tracker die together, once and twice."""
    swept = triage.killed(points=4)
    print(swept)  # noqa: T201 (the long tests print what they counted)
    assert swept.failures == ()
    (row,) = swept.rows
    assert row.scenarios >= 6
    assert (row.duplicates, row.lost, row.unfinished, row.questions) == (0, 0, 0, 0)


def test_killed_at_random_moments_every_check_passes_and_nobody_is_asked() -> None:
    """The agent, the tracker or both, dozens of times: keys and lookups make up for all of it."""
    passed: list[float] = []
    failures: list[str] = []
    rows = triage.random_kills(60.0, seed=1, progress=passed.append, failed=failures.append)
    print(testing.table(rows))  # noqa: T201 (as above)
    assert failures == []
    assert passed == sorted(passed)
    assert [row.mode for row in rows] == ["random m1-done-after-delete", "random batch"]
    for row in rows:
        assert row.scenarios > 20
        assert (row.duplicates, row.lost, row.unfinished, row.questions, row.failures) == (0, 0, 0, 0, 0)
