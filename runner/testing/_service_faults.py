"""Service faults: how a service may fail one call, as its client sees it.

*service*: it crashes before or after it acts, its reply is lost, it refuses the next connections, its lookup is down
for a while. *late*: the request is still under way when the client gives up, and takes effect within the time that the
tool declares. Tools that only read have no faults.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

Behavior = Literal["acts", "nothing", "refuses", "no", "late", "hang", "thread"]

SOON: Final = 0.01
HALF: Final = 0.5
LAST: Final = 0.99


@dataclass(frozen=True)
class Attempt:
    """One attempt of a call in the undisturbed run, and what its tool declares."""

    call: str
    tool: str
    effect: str
    asks_service: bool
    visible_within: float
    in_thread: bool


@dataclass(frozen=True)
class ServiceFault:
    """How the service treats a call's attempts in order; later attempts work. `down`: so many lookups fail first."""

    name: str
    call: str
    tool: str
    behaviors: tuple[Behavior, ...]
    down: int = 0
    lands: float = 0.0

    @property
    def in_thread(self) -> bool:
        """Whether the call acts in its thread, after its timeout."""
        return self.behaviors == ("thread",)


def service_faults(attempt: Attempt) -> Iterator[ServiceFault]:
    """The ways in which the service may fail this call at once."""
    again = attempt.effect in ("keyed", "idempotent")

    def made(name: str, *behaviors: Behavior, down: int = 0) -> ServiceFault:
        return ServiceFault(name, attempt.call, attempt.tool, behaviors, down)

    yield made("acts, its reply is lost", "acts")
    yield made("crashes before it acts", "nothing")
    yield made("refuses, and asks to come again", "refuses")
    if again:
        yield made("acts, its reply is lost, then it says no", "acts", "no")
    if attempt.asks_service:
        if again:
            yield made("acts, and no reply comes three times", "acts", "acts", "acts")
        else:
            yield made("acts, its reply is lost, its lookup is down", "acts", down=2)
            yield made("crashes before it acts, its lookup is down", "nothing", down=2)


def late_faults(attempt: Attempt) -> Iterator[ServiceFault]:
    """The ways in which this call may act after its client gave up."""
    if attempt.in_thread:
        yield ServiceFault("acts in its thread, after its timeout", attempt.call, attempt.tool, ("thread",))
    else:
        yield ServiceFault("hangs until its timeout", attempt.call, attempt.tool, ("hang",))
    if attempt.effect in ("keyed", "non_idempotent") and not (attempt.in_thread and attempt.visible_within == 0):
        parts = (("soon", SOON), ("half-way", HALF), ("at the last moment", LAST))
        for name, part in parts if attempt.visible_within > 0 else (("at once", 0.0),):
            lands = part * attempt.visible_within
            yield ServiceFault(f"lands {name}", attempt.call, attempt.tool, ("late",), lands=lands)
