"""Errors and exports: typed data that survives pickling, words for a person, and a face that is what it says."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime

import pytest

import eventlog

SINCE = datetime(2026, 11, 29, tzinfo=UTC)
ERRORS = [
    eventlog.LogDamaged("r", "seg-000001.jsonl", 812, 4, 2, "a whole line has a wrong sum"),
    eventlog.OtherFormat("r", 2),
    eventlog.OtherSchema("postgresql://db/app", "has no tables of refold"),
    eventlog.RunLocked("r", 7, "host", SINCE),
    eventlog.RunLocked("r", 7, "host", None),
    eventlog.RunLocked("r", None, "", None),
    eventlog.LockLost("r"),
    eventlog.LogBusy("r"),
    eventlog.LogDead("r", "a save failed"),
    eventlog.DiskFull("r", "No space left on device"),
    eventlog.DiskFailed("/runs", "Input/output error"),
    eventlog.NoSuchRun("r", "/runs", ""),
    eventlog.NoSuchRun("r", "/runs", "what has that name is not a directory"),
    eventlog.RunPruned("r", "/runs", "", SINCE, "ab" * 16, {"uid": "1f"}),
    eventlog.RunExists("r", "/runs"),
    eventlog.BadRunId("A" * 200, "it is longer than 128 characters"),
    eventlog.NotStorable("r", "an event holds a raw newline"),
    eventlog.NetworkStorage("/net", "nfs4"),
    eventlog.Untrusted("/srv/runs", "everybody may write there"),
    eventlog.ReadOnly("/runs/r", "Read-only file system"),
    eventlog.NotARunsDirectory("/file", "it is not a directory"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling_and_speak(error: eventlog.LogError) -> None:
    """An error crosses processes with its data; its message says what is true, its hint what to do."""
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert type(other) is type(error)
        assert other.args == error.args
        assert vars(other) == vars(error)
        assert str(other) == str(error)
    assert list(vars(error).values()) == list(error.args)
    assert 10 < len(str(error)) < 300
    assert len(error.hint) > 10
    assert error.hint != eventlog.LogError.hint


def test_every_error_is_tested_here_and_has_one_root() -> None:
    """A new error joins the list above, or this fails."""
    public = {getattr(eventlog, name) for name in eventlog.__all__}
    errors = {each for each in public if isinstance(each, type) and issubclass(each, BaseException)}
    assert errors - {eventlog.LogError} == {type(error) for error in ERRORS}
    assert all(issubclass(each, eventlog.LogError) for each in errors)


def test_facts_passed_by_name_are_facts_all_the_same() -> None:
    """`args` is what pickle, a log of exceptions and a debugger look at."""
    error = eventlog.RunExists(runs="/runs", run="r")
    assert error.args == ("r", "/runs", ())
    assert pickle.loads(pickle.dumps(error)).args == error.args  # noqa: S301 - our own bytes


def test_an_error_of_a_user_keeps_its_own_init() -> None:
    """Whoever derives from ours writes an exception as everywhere else in Python."""

    class Mine(eventlog.LogError):
        def __init__(self, code: int) -> None:
            super().__init__()
            self.code = code

    assert Mine(7).code == copy.copy(Mine(7)).code == 7


def test_the_face_exports_what_it_lists_and_every_export_is_documented() -> None:
    """What a reader of the package can use is in `__all__`, has a docstring, and nothing private is offered."""
    assert eventlog.__all__ == sorted(eventlog.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    for name in eventlog.__all__:
        value = getattr(eventlog, name)
        assert isinstance(value, int) or value.__doc__
