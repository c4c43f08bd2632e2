"""The page's axis and its cuts: every bar on it, every text within the budget."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runner._cli._render._page import _texts
from runner._cli._render._page._axis import Axis
from runner._cli._render._page._texts import Texts
from tests.support.story import BEGIN

SPANS = st.lists(st.floats(0, 1e6), min_size=2, max_size=40)


def moments(spans: list[float]) -> list[datetime]:
    """Times with these seconds between them."""
    at, found = BEGIN, [BEGIN]
    for span in spans:
        at += timedelta(seconds=span)
        found.append(at)
    return found


def percent(text: str) -> float:
    """A length on the page."""
    return float(text.removesuffix("%"))


@settings(max_examples=50)
@given(SPANS)
def test_the_axis_keeps_the_order_of_times_and_ends_at_its_edges(spans: list[float]) -> None:
    """What came later never stands before what came earlier."""
    times = moments(spans)
    axis = Axis(times)
    places = [axis.place(time) for time in times]
    assert all(before <= after for before, after in pairwise(places))
    assert places[0] == 0
    assert abs(places[-1] - 100) < 1e-6 or len(set(times)) == 1
    for before, after in pairwise(times):
        bar = axis.bar(before, after)
        assert percent(bar.x) >= 0
        assert percent(bar.x) + percent(bar.w) <= 100.01
        assert percent(bar.w) >= 0.4


def test_the_axis_is_linear_and_says_so() -> None:
    """Its ticks stand at equal distances and times, from the first line to the last."""
    axis = Axis(moments([1.0, 9.0]))
    assert axis.place(BEGIN + timedelta(seconds=1)) == 10
    assert [*axis.ticks()] == [(f"{20 * n}.00%", 2.0 * n) for n in range(6)]


def test_a_history_of_one_moment_has_a_scale() -> None:
    """And one of none."""
    axis = Axis([BEGIN, BEGIN])
    assert percent(axis.bar(BEGIN, BEGIN).w) > 0
    assert list(axis.ticks()) == []
    assert list(Axis([]).ticks()) == []


def texts_of(events: list[str]) -> Texts:
    """Texts under a tenth of every bound, so that a test need not make megabytes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, bound in (("EACH", 125), ("MOST", 25_000), ("MARGIN", 410)):
            patch.setattr(_texts, name, bound)
        return Texts((), events)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 6_000), min_size=10, max_size=30))
@example([6_000] * 30)
def test_all_texts_together_keep_within_the_budget(sizes: list[int]) -> None:
    """However they are spread, and however much an escape takes; and no escape is cut in two."""
    texts = ["<" * size for size in [*sizes, 30_000, 30_000, 30_000]]
    made = texts_of(texts)
    shown = [str(made.shown(text).html) for text in texts]
    assert sum(map(len, shown)) <= 125_000
    assert made.limit <= 25_000
    for text, html in zip(texts, shown, strict=True):
        assert html == "&lt;" * (len(html) // 4)
        assert len(html) == 4 * len(text) or made.limit - 4 < len(html) <= made.limit


def test_more_events_have_more_room_up_to_a_limit() -> None:
    """A long run's page may be larger, but a browser must still open it."""
    large = ["x" * 20_000] * 100
    found = [texts_of([*large, *[""] * (n - 100)]).limit for n in (100, 1_000, 2_000, 4_000, 9_000)]
    assert found == [781, 781, 1_562, 3_125, 3_125]
