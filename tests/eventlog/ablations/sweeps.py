"""The sweeps that an ablation must turn red: small ones, each about one kind of trouble, until the first violation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.eventlog.powerloss.sweep import Tally, deaths, failing_syncs, no_room, plain, power

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from eventlog.simdisk import Model
    from tests.eventlog.powerloss.sweep import Wrap

    class Sweep(Protocol):
        """Sweeps in steps, so that whoever counts can stop."""

        def __call__(self, tally: Tally, wrap: Wrap) -> Iterator[None]:
            """Sweep."""


MODELS: tuple[Model, ...] = ("ext4", "posix")
LIMIT = 8


def a_power_cut(tally: Tally, wrap: Wrap) -> Iterator[None]:
    """Cut the power at any moment of a short life."""
    for model in MODELS:
        for steps in (("create", "two", "one"), ("create", "one", "close", "two", "close")):
            power(tally, steps, model, wrap=wrap)
            yield


def a_death_and_then_a_power_cut(tally: Tally, wrap: Wrap) -> Iterator[None]:
    """Kill the writer anywhere; another process goes on with what the page cache shows; then the power goes."""
    steps = ("create", "two", "one")
    for fault in reversed(list(deaths(steps, wrap))):  # the later ones tell more
        power(tally, steps, "posix", since="fault", faults=[fault], limit=LIMIT, wrap=wrap)
        yield


def a_failed_sync_and_then_a_power_cut(tally: Tally, wrap: Wrap) -> Iterator[None]:
    """Fail a sync, which leaves the page cache telling lies; open again, go on; then the power goes."""
    steps = ("create", "two", "two", "one")
    for fault in failing_syncs(steps, wrap):
        power(tally, steps, "ext4", since="fault", faults=[fault], limit=LIMIT, wrap=wrap)
        yield


def a_full_disk_and_then_a_power_cut(tally: Tally, wrap: Wrap) -> Iterator[None]:
    """Refuse a line in its middle for want of room; go on; then the power goes."""
    steps = ("create", "two", "one")
    for nth in (1, 2):
        power(tally, steps, "ext4", since="fault", faults=[no_room(nth, takes=600)], wrap=wrap)
        yield


def a_roll_and_then_a_power_cut(tally: Tally, wrap: Wrap) -> Iterator[None]:
    """Roll and make snapshots; the power goes at any moment of it."""
    for steps in (("create", "two", "roll", "one"), ("create", "one", "snapshot", "one")):
        power(tally, steps, "posix", limit=LIMIT, wrap=wrap)
        yield


def first_violation(sweep: Sweep, wrap: Wrap = plain, tally: Tally | None = None) -> str:
    """Sweep until something is violated, and say what; "" when nothing is."""
    tally = tally or Tally()
    for _ in sweep(tally, wrap):
        if tally.violations:
            return tally.violations[0]
    return ""
