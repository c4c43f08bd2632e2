"""What every event says of itself, as keywords of its class.

- `decision`: whether `decide` chose it, so that a retrace compares it. Any other is an input: it came from outside, and
  a retrace is given it. Where this depends on a value, the class overrides `is_decision`.
- `legal`: the phases in which it may stand.
- `stopped`: whether it may follow a stop.
- `title`: what a person calls it, by default its tag.
- `words`: the field that only says why. The same decision in other words is drift, not a divergence.

The tag on disk is the name of the class: `RunStarted` is `run_started`. A class is never renamed, a tag is never used
again, the type of a field never changes, and a new field has a default.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import msgspec

EVENTS: dict[str, type[Event]] = {}
"""Every class of event, by its tag."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class EventType(msgspec.StructMeta):
    """Makes a class of events: a frozen struct that is known by its tag."""

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        body: dict[str, Any],
        *,
        legal: str = "",
        decision: bool = False,
        stopped: bool = False,
        words: str | None = None,
        title: str = "",
    ) -> Any:
        """The class `name`, noted in `EVENTS` if it is legal anywhere."""
        tag = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        made: Any = super().__new__(
            mcs,
            name,
            bases,
            body,
            tag=tag,
            tag_field="type",
            frozen=True,
            kw_only=True,
            gc=False,  # a frozen value holds no circle
        )
        made.legal, made.decision, made.stopped, made.words = frozenset(legal.split()), decision, stopped, words
        made.title = title or tag
        if legal:
            EVENTS[tag] = made
        return made


class Event(msgspec.Struct, metaclass=EventType):
    """One fact: the root of every event that this version knows."""

    legal: ClassVar[frozenset[str]]
    decision: ClassVar[bool]
    stopped: ClassVar[bool]
    words: ClassVar[str | None]
    title: ClassVar[str]

    if TYPE_CHECKING:

        def __init_subclass__(
            cls, *, legal: str, decision: bool = False, stopped: bool = False, words: str | None = None, title: str = ""
        ) -> None: ...

    @property
    def is_decision(self) -> bool:
        """Whether `decide` chose this event; every other one is an input that a retrace feeds."""
        return self.decision


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event of a later version, its JSON as it came. Unless it is `ignorable`, the run can only be read."""

    tag: str
    raw: bytes
    ignorable: bool

    @property
    def is_decision(self) -> bool:
        """Nobody knows, so it is never compared."""
        return False

    @property
    def title(self) -> str:
        """What a person calls it."""
        return self.tag
