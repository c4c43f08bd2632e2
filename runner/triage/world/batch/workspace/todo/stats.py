"""How far one has come."""

from collections.abc import Iterable

from todo.item import Item


def summary(items: Iterable[Item]) -> str:
    """How many items there are, how many are done, and how much that is."""
    items = list(items)
    done = sum(item.done for item in items)
    return f"{done} of {len(items)} done ({100 * done // len(items)} %)"
