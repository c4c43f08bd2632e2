"""The sweep has no holes: with any one safeguard of the runner taken out it finds what that one is there for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from runner import testing
from tests.testing import removed, shop


class Row(NamedTuple):
    """A safeguard: `out` takes it out, and a sweep of `script` in `mode` must find effects or words that say so.

    Every third point is enough for most: a call is open for longer.
    """

    safeguard: str
    out: Callable[[pytest.MonkeyPatch], None]
    mode: testing.Mode
    script: tuple[Any, ...]
    finds: str
    every: int = 3
    shop: type[shop.Shop] = shop.Shop


DUPLICATES = "duplicates"
TRIES_AGAIN = shop.again_if_failed("pay", {"cents": 900})

ROWS = (
    Row("an attempt is marked", removed.no_marker, "memory", (shop.MAILS, "sent"), DUPLICATES),
    Row("one key for all attempts", removed.a_key_per_attempt, "memory", (shop.PAYS, "paid"), DUPLICATES),
    Row("`Missing` waits", removed.missing_believed_at_once, "late", (shop.MAILS, "sent"), DUPLICATES),
    Row(
        "one unknown attempt keeps a call open",
        removed.a_no_settles_all,
        "service",
        (shop.PAYS, TRIES_AGAIN, "paid"),
        DUPLICATES,
    ),
    Row("a reply is saved first", removed.results_before_replies, "memory", (shop.PRINTS, "printed"), DUPLICATES),
    Row("a lost lease is noticed", removed.no_token, "lease", (shop.MAILS, "sent"), DUPLICATES, every=2),
    Row("a check before an effect", removed.no_check, "lease", (shop.MAILS, "sent"), DUPLICATES, every=2),
    Row(
        "a lost holder is waited for",
        removed.no_longer_wait,
        "lease",
        (shop.SHIPS, "shipped"),
        DUPLICATES,
        shop=shop.Harbour,
    ),
    Row("a holder reads its mail", removed.mail_only_at_open, "mail", (shop.MAILS, "sent"), "went on after somebody"),
    Row("no rerun overtakes a thread", removed.overtaken_threads, "late", (shop.PRINTS, "printed"), DUPLICATES),
)


def found(row: Row) -> str:
    """What a sweep of this row finds, in words."""
    swept = testing.sweep(
        environment=row.shop,
        agent=shop.clerk(*row.script),
        task=shop.TASK,
        effects=shop.effects,
        modes=[row.mode],
        every=row.every,
        pairs=0,
    )
    assert swept.rows[0].scenarios
    twice = sum(one.duplicates for one in swept.failures)
    return f"{DUPLICATES if twice else ''} {[one.why for one in swept.failures] or ''}"


@pytest.mark.unmeasured
@pytest.mark.fault("safeguard removed")
@pytest.mark.parametrize("row", ROWS, ids=[row.safeguard for row in ROWS])
def test_without_it_the_sweep_finds_something(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each safeguard is there because leaving it out repeats an effect or never ends, and the sweep sees that."""
    row.out(monkeypatch)
    assert re.search(row.finds, found(row))


CONTROLS = {f"{row.mode} {row.script[0].calls[0].tool} {len(row.script)}": row for row in reversed(ROWS)}


@pytest.mark.unmeasured
@pytest.mark.parametrize("row", CONTROLS.values(), ids=CONTROLS)
def test_with_it_the_same_sweep_finds_nothing(row: Row) -> None:
    """The control: the same sweeps of the runner as it is."""
    assert found(row).strip() == ""
