"""A crash at every point of a parent and its two children, of which one asks a person, and of their resumes."""

from __future__ import annotations

import pytest

from runner import testing
from tests.support import long_sweep, sampled
from tests.testing import family

MODES: tuple[testing.Mode, ...] = tuple(mode for mode in testing.MODES if mode != "lease")
"""A lease holds one run of a sweep; that of a child would be another one."""


def swept(mode: testing.Mode, *, every: int = 1, pairs: int = 1, jobs: int = 1) -> testing.SweepReport:
    """Sweep the office in one mode."""
    return testing.sweep(
        environment=family.Post,
        agent=family.office,
        task=family.TASK,
        effects=family.Post.counts,
        modes=[mode],
        every=every,
        pairs=pairs,
        jobs=jobs,
    )


@pytest.mark.fault("killed between two operations of a parent or its child")
def test_no_death_of_a_family_repeats_or_loses_what_its_members_do() -> None:
    """Some of the points, for time; all lives of parent and children are on one simulated disk."""
    sweep = swept("memory", every=67, pairs=0)
    assert not sweep.failures, str(sweep)
    (row,) = sweep.rows
    assert row.scenarios >= 4
    assert (row.duplicates, row.lost, row.questions, row.unfinished) == (0, 0, 0, 0)
    names = " ".join(sweep.points)
    for part in ("model turn 1,", "model turn 1.0:1,", "tool send_ann 1.0:1.0", "question 1.0:1.0-approve"):
        assert part in names


@long_sweep
@pytest.mark.full
@pytest.mark.fault("killed between two operations of a parent or its child")
@pytest.mark.parametrize("mode", MODES)
def test_no_trouble_of_any_mode_and_no_second_death_do(mode: testing.Mode) -> None:
    """Each mode, with second crashes; a person who is wrong costs what they were wrong about."""
    sweep = swept(mode, every=sampled(45 if mode == "power" else 15), jobs=2)
    assert not sweep.failures, str(sweep)
    (row,) = sweep.rows
    assert row.scenarios > 0
    if mode != "person":
        assert (row.duplicates, row.lost, row.questions, row.unfinished) == (0, 0, 0, 0)
