"""What every store keeps: these tests know nothing of files, so that another store can be put under them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import eventlog
from eventlog import simdisk
from tests.eventlog.making import AT, OPENING, event
from tests.support.disks import Quick

STORES: dict[str, Callable[[pytest.FixtureRequest], eventlog.Store]] = {
    "a directory": lambda test: eventlog.Directory(test.getfixturevalue("tmp_path") / "runs", disk=Quick()),
    "a simulated disk": lambda _: eventlog.Directory("/runs", disk=simdisk.Process(simdisk.Machine())),
    "a database": lambda test: test.getfixturevalue("database_runs"),
}


USES: dict[str, Callable[[eventlog.Store, Any], object]] = {
    "statuses": lambda store, it: [words for _, words, _ in store.statuses([it])] == [None],
    "prune": lambda store, it: [type(error) for _, error in store.prune({it: {}})] == [eventlog.BadRunId],
    "request": lambda store, it: store.request("r", it) == "no request has such a name",
    "unnote": lambda store, it: _silent(store.unnote, [it]),
    "ring": lambda store, it: _silent(store.bell().ring, it),
    "note": lambda store, it: _refused(eventlog.BadRunId, store.note, it),
    "holder": lambda store, it: _refused(eventlog.BadRunId, store.holder, it),
    "copy": lambda store, it: _refused(eventlog.BadRunId, store.copy, it, "/copies"),
    "post": lambda store, it: _refused(eventlog.NotStorable, store.post, "r", it, b"{}"),
}


def _silent(use: Callable[..., object], *given: Any) -> bool:
    return use(*given) is None


def _refused(kind: type[Exception], use: Callable[..., object], *given: Any) -> bool:
    with pytest.raises(kind):
        use(*given)
    return True


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.full if "base" in name else ()) for name in STORES])
def store(request: pytest.FixtureRequest) -> eventlog.Store:
    """An empty store of each kind."""
    return STORES[request.param](request)


def made(store: eventlog.Store, run: str = "r", saves: int = 2, at: int = 0) -> None:
    """Make a run with some lines after its opening, begun `at` seconds after the first."""
    with store.create(run, at=AT + timedelta(seconds=at), events=[OPENING]) as log:
        for number in range(saves):
            log.append(AT + timedelta(seconds=at + number), [event(number)], room=100)


def test_lines_come_back_in_order_and_each_opening_is_a_life(store: eventlog.Store) -> None:
    """The header is line 0; whoever opens a run goes on after its last line."""
    made(store)
    with store.open("r") as log:
        assert (log.seq, log.lease_lost, log.lines) == (3, False, store.read("r").lines)
        log.append(AT, [event(7), event(8)])
    reading = store.read("r")
    assert [line.seq for line in reading.lines] == [0, 1, 2, 3, 4]
    assert [line.life for line in reading.lines] == [1, 1, 1, 1, 2]
    assert [bytes(raw) for raw in reading.lines[-1].events] == [event(7), event(8)]
    assert (reading.torn, reading.damage) == (None, None)


def test_the_bytes_of_a_run_are_its_lines(store: eventlog.Store) -> None:
    """Whoever has them can check every sum with any SHA-256."""
    made(store)
    data = b"".join(store.raw(store.scan("r")))
    assert data.count(b"\n") == 4
    assert [line[-35:-3].decode() for line in data.splitlines(keepends=True)] == [
        line.sum for line in store.read("r").lines
    ]


def test_a_run_is_found_by_its_id_and_its_beginning(store: eventlog.Store) -> None:
    """The newest comes first; what is not there is nothing, or an error where it is asked for by name."""
    assert (store.names(), store.runs()) == ([], [])
    made(store, "a")
    made(store, "b", at=60)
    assert (sorted(store.names()), store.runs()) == (["a", "b"], ["b", "a"])
    assert store.began("b") == AT + timedelta(seconds=60)
    assert (store.began("c"), store.header("c")) == (None, None)
    header = store.header("a")
    assert header is not None
    assert (header.run, header.format, header.parent) == ("a", eventlog.FORMAT, None)
    for act in (store.open, store.read, store.scan, store.verify, store.files, store.torn):
        with pytest.raises(eventlog.NoSuchRun):
            act("c")


def test_a_run_has_one_writer(store: eventlog.Store) -> None:
    """The second one is told at once; readers are not in its way."""
    log = store.create("r", at=AT, events=[OPENING])
    host, pid = store.host()
    holder = store.holder("r")
    assert holder is not None
    assert (holder.host, holder.pid) == (host, pid)
    with pytest.raises(eventlog.RunLocked):
        store.open("r")
    with pytest.raises(eventlog.RunExists):
        store.create("r", at=AT, events=[])
    assert store.read("r").lines == log.lines
    log.close()
    assert store.holder("r") is None


def test_a_reading_begins_after_a_snapshot_that_is_accepted(store: eventlog.Store) -> None:
    """Or at the first line, when none is."""
    made(store)
    with store.open("r") as log:
        assert log.compact(b'{"n":1}', 7) is not None
        log.append(AT, [event(9)])
    reading = store.read("r", accept=lambda snapshot: snapshot.version == 7)
    assert reading.snapshot is not None
    assert (reading.snapshot.seq, reading.snapshot.state) == (3, b'{"n":1}')
    assert reading.lines == store.read("r").lines[4:]
    assert store.read("r", accept=lambda _: False).lines == store.read("r").lines


def test_a_fork_shares_lines_and_goes_on_alone(store: eventlog.Store) -> None:
    """`ready` is called when it is durable and does not exist yet; what that raises leaves no fork."""
    made(store)
    lines = store.read("r").lines

    def stopped() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.fork(lines[:3], "f", keep=1, at=AT, events=[event(5)], ready=stopped)
    assert store.runs() == ["r"]
    store.fork(lines[:3], "f", keep=1, at=AT, events=[event(5)]).close()
    forked = store.read("f").lines
    assert [[bytes(raw) for raw in line.events] for line in forked] == [[], [OPENING], [event(0)], [event(5)]]
    header = store.header("f")
    assert header is not None
    assert header.parent == eventlog.Parent("r", 2, lines[2].sum)


def test_what_is_good_of_a_run_is_copied(store: eventlog.Store) -> None:
    """As far as the caller says that it makes sense."""
    made(store, saves=3)
    store.salvage("r", "s", follows=lambda line: line.seq < 3).close()
    assert [[bytes(raw) for raw in line.events] for line in store.read("s").lines] == [[], [OPENING], [event(0)]]
    verdict = store.verify("s")
    assert verdict.ok
    assert verdict.salvaged is not None


def test_a_verdict_knows_a_sum_that_was_kept(store: eventlog.Store) -> None:
    """And no other."""
    made(store)
    kept = store.read("r").lines[1].sum
    assert store.verify("r", expect=kept).ok
    assert not store.verify("r", expect="0" * 32).ok
    assert store.torn("r") == []


def test_a_store_is_made_of_a_path_and_is_one_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says the path that it was given."""
    monkeypatch.chdir(tmp_path)
    for given in ("runs", Path("runs")):
        runs = eventlog.store(given)
        assert isinstance(runs, eventlog.Directory)
        assert (str(runs), runs.path) == ("runs", tmp_path / "runs")
        assert eventlog.store(runs) is runs


@pytest.mark.parametrize(
    "place",
    [
        "mysql://me:secret@host/runs",
        "postgresql://me:secret@host/runs?nonsense=1",
        "postgresql:/me:secret@host/runs",
        Path("postgres://me:secret@host/runs"),
        "file:///runs",
        "S3://bucket",
    ],
)
def test_a_url_of_a_store_that_is_not_known_is_refused_without_its_password(place: str | Path) -> None:
    """It is no directory with a colon in its name."""
    with pytest.raises(eventlog.NotARunsDirectory, match="is no place of runs") as caught:
        eventlog.store(place)
    assert "secret" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("it", ["\ud800", "a\0b", "../runs/r", "R", "x" * 5000, 5])
@pytest.mark.parametrize("use", USES)
def test_a_name_that_no_run_and_no_request_has_is_refused_or_known_by_nobody(
    store: eventlog.Store, use: str, it: Any
) -> None:
    """It reaches no file and no query: half a surrogate pair, a NUL, a way out of the place, another spelling."""
    made(store)
    assert USES[use](store, it)
    assert store.runs() == ["r"]
    assert store.verify("r").ok


@pytest.mark.parametrize("path", ["\ud800", "a\0b"])
def test_a_path_that_no_directory_has_is_no_place_for_runs(tmp_path: Path, path: str) -> None:
    """Whatever asks for it is told so, and not by whichever call of the system came first."""
    store = eventlog.store(tmp_path)
    made(store)
    with pytest.raises(eventlog.NotARunsDirectory, match="no directory has such a name"):
        eventlog.store(path)
    with pytest.raises(eventlog.NotARunsDirectory, match="no directory has such a name"):
        store.copy("r", path)
