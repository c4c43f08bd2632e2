from datetime import date

import pytest

from todo import repeat
from todo.service import Service


@pytest.mark.parametrize(
    ("due", "every", "then"),
    [
        (date(2026, 11, 28), "day", date(2026, 11, 29)),
        (date(2026, 11, 28), "week", date(2026, 12, 5)),
        (date(2026, 11, 28), "month", date(2026, 12, 28)),
        (date(2026, 12, 28), "month", date(2027, 1, 28)),
    ],
)
def test_the_date_that_follows(due, every, then):
    assert repeat.after(due, every) == then


def test_what_repeats_comes_back(tmp_path):
    service = Service(tmp_path / "list.json")
    service.add("water the plants", date(2026, 11, 28), "week")
    service.done(1)
    assert [str(item) for item in service.find()] == [
        "  1 [x] water the plants (due 2026-11-28, every week)",
        "  2 [ ] water the plants (due 2026-12-05, every week)",
    ]
