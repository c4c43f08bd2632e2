"""Killed on either side, at every point of a call, over stdio and over HTTP: one payment, and the run finishes."""

import threading
from pathlib import Path

import pytest

from tests.mcp import scenes
from tests.mcp.places import Shop
from tests.support import stage
from tests.support.forkserver import ForkServer

POINTS = [
    "client before",  # the marker is durable, nothing is sent
    "before client",  # the shop has the request, the client dies, then the shop acts
    "after client",  # the shop has acted, the client dies before it hears
    "client after",  # the client has heard, and dies before it saves
    "before shop",  # the shop dies with the request, having done nothing
    "after shop",  # the shop has acted and dies before it answers
]


@pytest.mark.fault("server or client killed")
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(
    ("transport", "effect"),
    [
        pytest.param("stdio", "keyed", id="stdio-keyed"),
        pytest.param("http", "non_idempotent", id="http-non_idempotent"),
        pytest.param("http", "keyed", id="http-keyed", marks=pytest.mark.full),  # each half is tried by the other two
    ],
)
def test_one_payment_wherever_either_side_dies(
    point: str, transport: str, effect: str, shop: Shop, runs: Path, forks: ForkServer
) -> None:
    """The key carries a keyed call over the death; the lookup one whose shop would pay twice."""
    where = shop.over_stdio() if transport == "stdio" else shop.over_http()
    moment, whom = point.split()
    if whom == "shop":
        shop.trouble(moment)
    place = where if isinstance(where, str) else where.model_dump(exclude_none=True)
    given = {"runs": runs, "where": place, "effect": effect}
    first = forks.begin(scenes.scene, **given, die=point if moment == "client" else "")
    if whom == "client":
        shop.trouble(moment, first.pid)
    with _restarted(shop):
        ended = first.end()
        if whom != "shop":
            assert ended.killed
            ended = forks.run(scenes.scene, **given)
    assert ended.value == "paid"
    assert shop.payments() == [(stage.key(runs, "1.0"), 5, "")]


class _restarted:  # noqa: N801 (used like a function)
    """While the block runs, a shop that listened and died is started again, as a supervisor does."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._over = threading.Event()
        self._watching = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._watching.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watching.join()

    def _watch(self) -> None:
        while self._shop.pid and not self._over.wait(0.05):
            self._shop.over_http()
