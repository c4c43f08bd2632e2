"""Troubles: how a service may fail one call, as its client meets it.

*service*: it crashes before it acts or after, its reply is lost, it refuses the next connections, its lookup is down
for a while. *late*: the request is on its way while the client gives up, and lands within what the tool declares. A
service can't be blamed for a tool that only reads, so none of these are for those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from runner.crashtest._stage import Played

Does = Literal["acts", "nothing", "refuses", "no", "late", "thread"]

SOON: Final = 0.01
HALF: Final = 0.5
LAST: Final = 0.99


@dataclass(frozen=True)
class Trouble:
    """What a call's attempts meet, one after another; later ones meet nothing. `down`: so many lookups fail first."""

    name: str
    call: str
    tool: str
    does: tuple[Does, ...]
    down: int = 0
    lands: float = 0.0


def of_service(attempt: Played) -> Iterator[Trouble]:
    """The ways in which the service may fail this call at once."""
    again = attempt.effect in ("keyed", "idempotent")

    def made(name: str, *does: Does, down: int = 0) -> Trouble:
        return Trouble(name, attempt.call, attempt.tool, does, down)

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


def of_lateness(attempt: Played) -> Iterator[Trouble]:
    """The ways in which this call may act after its client gave up."""
    if attempt.in_thread:
        yield Trouble("acts in its thread, after its timeout", attempt.call, attempt.tool, ("thread",))
    if attempt.lands_within > 0 and attempt.effect in ("keyed", "once"):
        for name, part in (("soon", SOON), ("half-way", HALF), ("at the last moment", LAST)):
            lands = part * attempt.lands_within
            yield Trouble(f"lands {name}", attempt.call, attempt.tool, ("late",), lands=lands)
