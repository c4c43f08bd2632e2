"""When an item that repeats is due again."""

from datetime import date, timedelta

EVERY = ("day", "week", "month")


def after(due: date, every: str) -> date:
    """The date that follows `due`."""
    if every == "day":
        return due + timedelta(days=1)
    if every == "week":
        return due + timedelta(days=7)
    year, month = (due.year + 1, 1) if due.month == 12 else (due.year, due.month + 1)
    return due.replace(year=year, month=month)
