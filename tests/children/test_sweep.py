"""A crash at every point of a parent and its two children, of which one asks a person, and of their resumes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from runner import testing
from runner.testing._history import IMAGES
from tests.support import sampled
from tests.support.figures import FIGURES
from tests.testing import family


def swept(mode: testing.Mode, *, every: int = 1, pairs: int = 1) -> testing.SweepReport:
    """Sweep the office in one mode."""
    return testing.sweep(
        environment=family.Post,
        agent=family.office,
        task=family.TASK,
        effects=family.Post.counts,
        modes=[mode],
        every=every,
        pairs=pairs,
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


@pytest.mark.fault("lease lost")
def test_a_family_whose_process_lost_its_leases_goes_on_in_another_one() -> None:
    """Parent and children have a lease each, and a process that is frozen or cut off loses them all."""
    sweep = swept("lease", every=61, pairs=0)
    assert not sweep.failures, str(sweep)
    assert {one.first.rpartition(", ")[2] for one in sweep.scenarios} == {"frozen", "cut"}


def test_a_power_cut_is_tried_with_a_bounded_number_of_images_of_the_disk() -> None:
    """A family has many directories, and each name in them that is not durable doubles what a cut may leave."""
    sweep = swept("power", every=91, pairs=0)
    assert not sweep.failures, str(sweep)
    images = Counter(one.id.partition("~")[0] for one in sweep.scenarios)
    assert max(images.values()) == IMAGES


@pytest.mark.full
@pytest.mark.early
@pytest.mark.fault("killed between two operations of a parent or its child")
@pytest.mark.parametrize("mode", testing.MODES)
def test_no_trouble_of_any_mode_and_no_second_death_do(
    mode: testing.Mode, record_property: Callable[[str, object], None]
) -> None:
    """Each mode, with second crashes; a person who is wrong costs what they were wrong about."""
    sweep = swept(mode, every=sampled(15, mode))
    record_property(FIGURES, f"{sweep.rows[0].scenarios:,} scenarios")
    assert not sweep.failures, str(sweep)
    (row,) = sweep.rows
    assert row.scenarios > 0
    if mode != "person":
        assert (row.duplicates, row.lost, row.questions, row.unfinished) == (0, 0, 0, 0)
