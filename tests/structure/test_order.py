"""The order in which tests run: every process begins with some of the longest."""

from __future__ import annotations

import pytest

from tests.support.order import spread


def test_every_process_begins_with_some_of_the_longest_tests() -> None:
    """The shares are those that pytest-xdist makes; within each the rest keeps its order."""
    assert spread([*"abcd"], [*"12345678"], 3) == [*"ad12", *"b345", *"c678"]


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
@pytest.mark.parametrize("early", range(6))
@pytest.mark.parametrize("rest", range(6))
def test_no_test_is_lost_or_run_twice(early: int, rest: int, processes: int) -> None:
    """Also where there are fewer tests than processes."""
    first, others = list(range(early)), list(range(10, 10 + rest))
    assert sorted(spread(first, others, processes)) == [*first, *others]
