"""Snapshots being read: a cache that can be missing, rotten or foreign, and a witness that a log can not contradict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

import eventlog
from eventlog import _head, _snapshot
from tests.eventlog.making import AT, event, files, head, lines_of, numbers, segment
from tests.support import sample_logs
from tests.support.disks import Quick
from tests.support.file_logs import roll

if TYPE_CHECKING:
    from collections.abc import Callable

NEWEST, OLDER = "snap-8.json", "snap-5.json"


def laid(place: Path) -> Path:
    """Lay out a log that was compacted three times; its snapshots are of lines 5 and 8, its last line is 10."""
    return sample_logs.lay(place / "r", sample_logs.log("compacted"))


def opened(
    runs: Path, accept: Callable[[eventlog.Snapshot], bool] = lambda _: True
) -> tuple[int, list[int], list[str]]:
    """Open a log; give the line of its snapshot (-1 for none), its lines' numbers, and the findings."""
    with eventlog.Directory(runs, disk=Quick()).open("r", accept=accept) as log:
        return log.snapshot.seq if log.snapshot else -1, [line.seq for line in log.lines], log.findings


def test_an_opener_begins_behind_the_newest_snapshot(tmp_path: Path) -> None:
    """And is told which one that is; whoever does not ask gets every line."""
    runs = laid(tmp_path)
    assert opened(runs) == (8, [9, 10], [])
    with eventlog.Directory(runs, disk=Quick()).open("r", accept=lambda _: True) as log:
        assert log.snapshot is not None
        assert (log.snapshot.state, log.snapshot.version) == (sample_logs.STATE % 2, 1)
    with eventlog.Directory(runs, disk=Quick()).open("r") as log:
        assert (log.snapshot, len(log.lines)) == (None, 11)
    assert eventlog.store(runs).read("r", accept=lambda _: True).lines == eventlog.store(runs).read("r").lines[9:]


def test_the_segments_before_a_snapshot_are_not_read(tmp_path: Path) -> None:
    """That is the point of it; and `read`, `scan` and `verify` read them all the same."""
    runs = laid(tmp_path)
    path = segment(runs, number=2)
    path.write_bytes(path.read_bytes().replace(b"noted", b"NOTED", 1))
    assert opened(runs)[0] == 8
    with pytest.raises(eventlog.LogDamaged):
        eventlog.store(runs).read("r")
    assert not eventlog.store(runs).verify("r").ok
    with pytest.raises(eventlog.LogDamaged):
        eventlog.store(runs).open("r")


def _rot(data: bytes) -> bytes:
    return data.replace(b"a state", b"A state")


def _other_run(_: bytes) -> bytes:
    return _snapshot.encode("s", 8, "0" * 32, 1, b"{}")


def _other_line(_: bytes) -> bytes:
    return _snapshot.encode("r", 7, "0" * 32, 1, b"{}")


@pytest.mark.fault("bad snapshot")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda _: b"", "is empty"),
        (lambda data: data[:-1], "unreadable"),
        (lambda data: data[1:], "unreadable"),
        (lambda data: data + b"\n", "unreadable"),
        (_rot, "unreadable"),
        (_other_run, "of run 's'"),
        (_other_line, "of line 7"),
    ],
)
def test_a_snapshot_that_is_empty_rotten_or_foreign_is_passed_over(
    tmp_path: Path, change: Callable[[bytes], bytes], says: str
) -> None:
    """The run opens from the one before, or from its first line, and says why."""
    runs = laid(tmp_path)
    for snapshots, found in (((NEWEST,), 5), ((NEWEST, OLDER), -1)):
        for name in snapshots:
            path = runs / "r" / name
            path.write_bytes(change(path.read_bytes()))
        if found == -1 and change is _other_line:
            break
        at, lines, findings = opened(runs)
        assert at == found
        assert lines == list(range(found + 1, 11))
        assert says in findings[0]
        verdict = eventlog.store(runs).verify("r")
        assert verdict.ok
        assert sum(bool(cache.why) for cache in verdict.snapshots) == len(snapshots)
        assert any("counts for nothing" in finding for finding in verdict.findings)


@pytest.mark.fault("bad snapshot")
def test_a_missing_snapshot_is_no_loss(tmp_path: Path) -> None:
    """The log alone rebuilds the state."""
    runs = laid(tmp_path)
    (runs / "r" / NEWEST).unlink()
    assert opened(runs) == (5, [6, 7, 8, 9, 10], [])
    (runs / "r" / OLDER).unlink()
    assert opened(runs) == (-1, list(range(11)), [])
    assert eventlog.store(runs).verify("r").ok


@pytest.mark.fault("bad snapshot")
def test_a_snapshot_of_another_version_is_passed_over_by_whoever_says_so(tmp_path: Path) -> None:
    """It was made by a fold that no longer means the same; the caller knows, the log does not."""
    runs = laid(tmp_path)
    at, lines, findings = opened(runs, lambda snapshot: snapshot.seq < 8)
    assert (at, lines) == (5, list(range(6, 11)))
    assert findings == ["the snapshot of line 8 (version 1) was passed over"]
    at, lines, findings = opened(runs, lambda _: False)
    assert (at, lines, len(findings)) == (-1, list(range(11)), 2)


@pytest.mark.fault("link, FIFO or replaced file")
def test_a_directory_with_the_name_of_a_snapshot_is_passed_over(tmp_path: Path) -> None:
    """Never followed, never a hang."""
    runs = laid(tmp_path)
    (runs / "r" / NEWEST).unlink()
    (runs / "r" / NEWEST).mkdir()
    at, _, findings = opened(runs)
    assert (at, findings) == (5, [f"{NEWEST} is not a regular file, and was passed over"])
    assert eventlog.store(runs).verify("r").ok


def test_a_valid_snapshot_beyond_the_log_is_damage(tmp_path: Path) -> None:
    """It was written when its line was durable, so that line was lost: with or without a head to say so."""
    runs = laid(tmp_path)
    head(runs).unlink()
    segment(runs, number=4).unlink()
    path = segment(runs, number=3)
    path.write_bytes(b"".join(lines_of(path)[:-1]))
    for accept in (None, lambda _: True):
        with pytest.raises(eventlog.LogDamaged, match="snapshot of line 8 was made"):
            eventlog.store(runs).open("r", accept=accept)
    assert (runs / "r" / NEWEST).exists()
    verdict = eventlog.store(runs).verify("r")
    assert verdict.damage is not None
    assert (verdict.damage.file, verdict.damage.expected_seq) == ("seg-000003.jsonl", 8)


@pytest.mark.fault("forged snapshot")
@pytest.mark.parametrize("place", ["of the last one", "after a roll"])
def test_a_forged_state_is_never_gone_on_from(tmp_path: Path, place: str) -> None:
    """Its check is right and it names the right line: only the chain tells that the lines did not make this state."""
    if place == "after a roll":
        log = eventlog.Directory(tmp_path, disk=Quick()).create("r", at=AT, events=[event(0)])
        roll(log)
        log.close()
        runs, seq = tmp_path, 1
    else:
        runs, seq = laid(tmp_path), 8
    line = eventlog.store(runs).read("r").lines[seq]
    forged = _snapshot.encode("r", seq, line.sum, 1, b'{"approved":true}')
    (runs / "r" / f"snap-{seq}.json").write_bytes(forged)
    with pytest.raises(eventlog.LogDamaged, match="its state is not the one"):
        eventlog.store(runs).open("r", accept=lambda _: True)
    verdict = eventlog.store(runs).verify("r", expect=line.sum)
    assert not verdict.ok
    assert verdict.damage is not None
    assert verdict.damage.file == f"snap-{seq}.json"


@pytest.mark.fault("lost line")
def test_a_snapshot_proves_the_header_that_came_before_it(tmp_path: Path) -> None:
    """It was written only after the next segment was durable: with that segment gone, and the head, it still tells."""
    sample_logs.compacted(tmp_path, times=1)
    content = files(tmp_path / "r")
    last = max(name for name in content if name.startswith("seg-"))
    for name in (last, "head"):
        (tmp_path / "r" / name).unlink()
    for act in ("read", "open"):
        with pytest.raises(eventlog.LogDamaged, match="line 3 was durable"):
            getattr(eventlog.store(tmp_path), act)("r")
    damage = eventlog.store(tmp_path).verify("r").damage
    assert damage is not None
    assert damage.expected_seq == 3


def test_a_valid_snapshot_with_another_sum_at_its_line_is_damage(tmp_path: Path) -> None:
    """A log that was rewritten whole, its head too, is shown by a snapshot of the one before."""
    runs = laid(tmp_path)
    old = (runs / "r" / NEWEST).read_bytes()
    for path in (runs / "r").iterdir():
        path.unlink()
    (runs / "r").rmdir()
    log = eventlog.Directory(runs, disk=Quick()).create("r", at=AT, events=[b"{}"])
    for number in range(12):
        log.append(AT, [event(number)])
    log.close()
    (runs / "r" / NEWEST).write_bytes(old)
    for accept in (None, lambda _: True):
        with pytest.raises(eventlog.LogDamaged, match="another line 8"):
            eventlog.store(runs).open("r", accept=accept)
    verdict = eventlog.store(runs).verify("r")
    assert verdict.damage is not None
    assert (verdict.damage.file, verdict.damage.good_after) == (NEWEST, 5)


@pytest.mark.parametrize("name", ["seg-000001.jsonl", "seg-000003.jsonl", "seg-000004.jsonl"])
def test_damage_is_found_beside_a_snapshot(tmp_path: Path, name: str) -> None:
    """A missing segment is missing, be it before the snapshot or after it."""
    runs = laid(tmp_path)
    (runs / "r" / name).unlink()
    with pytest.raises(eventlog.LogDamaged):
        eventlog.store(runs).open("r", accept=lambda _: True)


def test_a_line_behind_a_snapshot_is_read_as_any_other(tmp_path: Path) -> None:
    """A snapshot hides nothing of what stands after it."""
    runs = laid(tmp_path)
    path = segment(runs, number=4)
    path.write_bytes(path.read_bytes().replace(b"noted", b"NOTED", 1))
    with pytest.raises(eventlog.LogDamaged) as plain:
        eventlog.store(runs).open("r")
    with pytest.raises(eventlog.LogDamaged) as after:
        eventlog.store(runs).open("r", accept=lambda _: True)
    assert after.value.args == plain.value.args


def test_an_older_head_is_no_reason_to_begin_at_the_beginning(tmp_path: Path) -> None:
    """After a power cut the head is older than the log; a closed one that is older is damage as ever."""
    log = eventlog.Directory(tmp_path, disk=Quick()).create("r", at=AT, events=[b"{}"])
    log.append(AT, [event(0)])
    kept = head(tmp_path).read_bytes()
    log.append(AT, [event(1)])
    log.compact(b"1", 1)
    log.append(AT, [event(2)])
    log.abandon()
    head(tmp_path).write_bytes(kept)
    assert opened(tmp_path) == (3, [4, 5], [])
    assert numbers(tmp_path) == [0, 1, 2, 3, 4, 5]
    was = _head.decode(kept)
    assert was is not None
    head(tmp_path).write_bytes(_head.encode(msgspec.structs.replace(was, closed=True)))
    with pytest.raises(eventlog.LogDamaged, match="closed head"):
        eventlog.store(tmp_path).open("r", accept=lambda _: True)


def test_the_torn_end_of_a_compacted_log_is_cut_and_kept(tmp_path: Path) -> None:
    """Opening after a snapshot recovers as opening from the first line does."""
    runs = sample_logs.lay(tmp_path / "r", sample_logs.log("dead after a roll"))
    path = segment(runs, number=4)
    lines = lines_of(path)
    path.write_bytes(b"".join(lines) + lines[-1][:50] + bytes(600))
    with eventlog.Directory(runs, disk=Quick()).open("r", accept=lambda _: True) as log:
        assert log.snapshot is not None
        assert log.cut is not None
        assert (runs / "r" / log.cut.evidence).read_bytes() == lines[-1][:50]
        log.append(AT, [event(9)])
    assert eventlog.store(runs).verify("r").ok
    assert numbers(runs) == list(range(12))


def test_the_first_damage_is_named_although_an_opener_begins_behind_it(tmp_path: Path) -> None:
    """What stands after a snapshot is damaged, and something before it too: then a person wants the whole story."""
    runs = laid(tmp_path)
    for number in (2, 4):
        path = segment(runs, number=number)
        path.write_bytes(path.read_bytes().replace(b"noted", b"NOTED", 1))
    with pytest.raises(eventlog.LogDamaged) as caught:
        eventlog.store(runs).open("r", accept=lambda _: True)
    assert caught.value.file == segment(runs, number=2).name


def test_nobody_is_asked_about_a_snapshot_that_the_log_does_not_confirm(tmp_path: Path) -> None:
    """A state of another log with the same name and the same line numbers is not even looked at."""
    runs = laid(tmp_path)
    other = eventlog.Directory(tmp_path / "other", disk=Quick()).create("r", at=AT, events=[b'{"another":1}'])
    for number in range(3):
        other.append(AT, [event(number)])
        other.compact(b'"another"', 1)
        other.append(AT, [event(100 + number)])
    other.close()
    (runs / "r" / NEWEST).write_bytes((tmp_path / "other" / "r" / NEWEST).read_bytes())
    asked: list[int] = []

    def accept(snapshot: eventlog.Snapshot) -> bool:
        asked.append(snapshot.seq)
        return True

    with pytest.raises(eventlog.LogDamaged, match="another line 8"):
        eventlog.store(runs).open("r", accept=accept)
    assert asked == []


def test_a_head_that_names_another_line_than_the_snapshot_is_damage(tmp_path: Path) -> None:
    """The two witnesses contradict each other about one line."""
    runs = laid(tmp_path)
    end = segment(runs, number=3).stat().st_size
    for total, is_good in ((eventlog.store(runs).read("r").lines[8].sum, True), ("0" * 32, False)):
        head(runs).write_bytes(_head.encode(_head.Head(8, total, 3, end, closed=False)))
        if is_good:
            assert eventlog.store(runs).read("r", accept=lambda _: True).snapshot is not None
            continue
        with pytest.raises(eventlog.LogDamaged, match="the head names another line 8"):
            eventlog.store(runs).open("r", accept=lambda _: True)
