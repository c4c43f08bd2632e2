"""What a forked child must not keep: descriptors that are its parent's too."""

import os
import weakref
from typing import Final, Protocol


class Holding(Protocol):
    """Holds descriptors that a forked child must not keep."""

    def close_copies(self) -> None:
        """Close them in the child, and write or unlock nothing: they are the parent's too."""


_HOLDING: Final[weakref.WeakSet[Holding]] = weakref.WeakSet()


def not_for_children(holding: Holding) -> None:
    """Have a forked child close its copies of what this holds, from now on as long as it lives."""
    _HOLDING.add(holding)


def _in_child() -> None:
    for holding in list(_HOLDING):
        holding.close_copies()


os.register_at_fork(after_in_child=_in_child)
