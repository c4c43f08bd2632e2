"""What an agent says of the loop that carries its runs on: the runner's own, unless its program has another one."""

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from replay import Divergence


class Loop:
    """The runner's own loop. A program with a loop of its own says otherwise."""

    @property
    def framework(self) -> str:
        """Whose loop it is; empty for the runner's."""
        return ""

    def carried(self, opened: Any, on_question: Any) -> Awaitable[Any] | None:  # noqa: ARG002 (a program's face)
        """Carry an open run on, if that is not the runner's loop."""
        return None

    def rehearsed(self, lines: Sequence[Any]) -> "tuple[Self, Divergence | None]":  # noqa: ARG002 (as above)
        """The agent as a history knew it, and where its program goes another way, if it has one."""
        return self, None
