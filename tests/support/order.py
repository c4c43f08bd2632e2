"""The order of tests: the longest begin before all others, so that no process works alone on one of them at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def spread(early: Sequence[T], rest: Sequence[T], processes: int) -> list[T]:
    """All tests, in an order whose even shares each begin with some of the early ones; the rest keeps its order.

    pytest-xdist gives each process such a share, and an idle process takes from the end of another one's.
    """
    found, left, rest = list[T](), len(early) + len(rest), list(rest)
    for process in range(processes):
        first, share = early[process::processes], left // (processes - process)
        others = max(0, share - len(first)) if process < processes - 1 else len(rest)
        found += [*first, *rest[:others]]
        left, rest = left - share, rest[others:]
    return found
