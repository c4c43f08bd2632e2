"""A history has the manners of a value though its copies share one list: nobody ever sees another's future."""

from __future__ import annotations

from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay._history import History

pytestmark = [pytest.mark.fault("a state that sees the future of another")]

T = TypeVar("T")
STEPS = st.lists(st.tuples(st.integers(0, 100), st.integers()), max_size=25)


def grown(history: History[T], item: T) -> History[T]:
    """A copy of a history, with one item more."""
    longer = history.copy()
    longer.grow(item)
    return longer


@given(st.lists(st.integers(), max_size=4), STEPS)
def test_every_history_stays_what_it_was_whatever_is_appended_to_it_or_to_its_kin(
    begin: list[int], steps: list[tuple[int, int]]
) -> None:
    """A fold keeps old states; a branch of one must not write into another (a retrace folds both)."""
    family = [(History(begin), tuple(begin))]
    for which, item in steps:
        history, items = family[which % len(family)]
        family.append((grown(history, item), (*items, item)))
    for history, items in family:
        assert history[:] == tuple(history) == items
        assert len(history) == len(items)
        assert list(reversed(history)) == list(reversed(items))


@given(st.lists(st.integers(), max_size=8), st.integers(-10, 10), st.slices(8))
def test_a_history_is_indexed_and_sliced_like_a_tuple_although_its_list_is_longer(
    items: list[int], index: int, part: slice
) -> None:
    """The shared list may hold what came later elsewhere: no index reaches it."""
    history = History(items)
    grown(grown(history, 99), 100)
    assert history[part] == tuple(items)[part]
    if -len(items) <= index < len(items):
        assert history[index] == items[index]
    else:
        with pytest.raises(IndexError):
            history[index]


def test_histories_with_equal_items_are_equal_and_hash_alike() -> None:
    """States are compared, and a shared list is no part of what they say."""
    one = grown(History([1]), 2)
    other = History([1, 2])
    grown(one, 3)
    assert one == other
    assert hash(one) == hash(other)
    assert one != History([1, 2, 3])
    assert one != (1, 2)
    assert repr(one) == "History([1, 2])"


def test_a_history_does_not_keep_the_list_it_was_made_from() -> None:
    """Whoever changes that list later must not change the history."""
    items = [1]
    history = History(items)
    items.append(2)
    assert history[:] == (1,)


def test_a_copy_of_the_newest_grows_in_the_same_list() -> None:
    """Ten thousand messages must not be copied ten thousand times."""
    history: History[int] = History()
    first = history
    for item in range(10_000):
        history = grown(history, item)
    assert len(history) == 10_000
    assert history._items is first._items  # noqa: SLF001 (the promise is about the list that is shared)
