"""The inbox of a run: what was posted is there, the first of a name wins, and what is no request hurts nobody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import eventlog
from eventlog import simdisk
from tests.eventlog import making

RUNS = Path("/runs")


def _machine() -> simdisk.Machine:
    machine = simdisk.Machine()
    eventlog.Directory(RUNS, disk=simdisk.Process(machine)).create("r", at=making.AT, events=[making.OPENING]).close()
    return machine


def test_what_was_posted_lies_there_until_the_holder_acknowledges_it(tmp_path: Path) -> None:
    """Whoever holds the run, and also when nobody does."""
    store = eventlog.store(tmp_path)
    making.made(tmp_path)
    assert store.post("r", "stop", b"one")
    with store.open("r") as log:
        assert store.post("r", "answer-1.0", b"two")
        assert log.inbox() == ["answer-1.0", "stop"] == store.inbox("r").requests
        assert [log.request(name) for name in log.inbox()] == [b"two", b"one"]
        log.acknowledge(["stop"])
        assert log.inbox() == ["answer-1.0"]
        assert log.request("stop") is None
    log.acknowledge(["answer-1.0"])
    assert store.inbox("r").requests == ["answer-1.0"], "whoever holds no lock takes nothing"
    assert store.verify("r").ok
    assert oct((tmp_path / "r" / "inbox").stat().st_mode)[-3:] == "700"
    assert oct((tmp_path / "r" / "inbox" / "answer-1.0").stat().st_mode)[-3:] == "600"


@pytest.mark.fault("the second poster of a name wins")
def test_the_first_of_a_name_stays_and_the_second_is_told(tmp_path: Path) -> None:
    """A rename would let the last one win, after the first was told that it is left."""
    store = eventlog.store(tmp_path)
    making.made(tmp_path)
    assert store.post("r", "stop", b"one")
    assert not store.post("r", "stop", b"two")
    assert store.request("r", "stop") == b"one"
    assert [path.name for path in (tmp_path / "r" / "inbox").iterdir()] == ["stop"]


@pytest.mark.parametrize("name", ["", "Stop", "../stop", ".tmp-1", "a" * 201, "stop/x"])
def test_a_name_that_could_mean_another_file_is_refused(tmp_path: Path, name: str) -> None:
    """It becomes a file's name."""
    making.made(tmp_path)
    with pytest.raises(eventlog.NotStorable):
        eventlog.store(tmp_path).post("r", name, b"one")


@pytest.mark.fault("a hostile file in the inbox")
def test_what_is_no_regular_file_is_never_a_request(tmp_path: Path) -> None:
    """A link would read elsewhere, a FIFO would hang, a huge file would fill the memory."""
    store = eventlog.store(tmp_path)
    making.made(tmp_path)
    store.post("r", "answer-1", b"one")
    box = tmp_path / "r" / "inbox"
    (box / "link").symlink_to(making.segment(tmp_path))
    os.mkfifo(box / "pipe")
    (box / "folder").mkdir()
    (box / "Loud").write_bytes(b"x")
    with (box / "stop").open("wb") as huge:
        huge.truncate(1 << 30)
    assert store.inbox("r") == (["answer-1", "stop"], ["Loud", "folder", "link", "pipe"])
    assert isinstance(store.request("r", "stop"), str)
    with store.open("r") as log:
        log.acknowledge(["answer-1", "stop"])
    box.rename(tmp_path / "elsewhere")
    box.symlink_to(tmp_path / "elsewhere")
    assert store.inbox("r") == ([], ["inbox"])
    with pytest.raises(eventlog.DiskFailed):
        store.post("r", "stop", b"one")
    (tmp_path / "elsewhere/.tmp-theirs").touch()
    with store.open("r") as log:
        log.acknowledge(["link"])
    assert {path.name for path in (tmp_path / "elsewhere").iterdir()} >= {".tmp-theirs", "link"}


@pytest.mark.fault("power cut while a request is posted")
@pytest.mark.parametrize("model", ["ext4", "posix"])
def test_a_power_cut_leaves_a_posted_request_whole_or_none_and_keeps_one_that_was_left(model: simdisk.Model) -> None:
    """Once `post` returned it is durable, its directory included."""
    machine = _machine()
    began = len(machine.trace)
    assert eventlog.Directory(RUNS, disk=simdisk.Process(machine)).post("r", "stop", b"one" * 400)
    ended = len(machine.trace)
    seen = set()
    for cut in simdisk.cuts(machine.trace, model, start=machine.image, first=began, limit=64, seed=1):
        store = eventlog.Directory(RUNS, disk=simdisk.Process(simdisk.Machine(cut.image), pid=2))
        found = store.inbox("r").requests
        seen.add((bool(found), cut.after == ended))
        assert found in ([], ["stop"])
        assert not found or store.request("r", "stop") == b"one" * 400
        assert found or cut.after < ended
        store.open("r").close()
        assert store.inbox("r").requests == found
    assert {(False, False), (True, True)} <= seen


@pytest.mark.fault("the death of a poster")
def test_an_opener_removes_what_a_dead_poster_left_and_a_live_one_posts_all_the_same(tmp_path: Path) -> None:
    """The opener can't tell them apart, so the poster tries again."""
    store = eventlog.store(tmp_path)
    making.made(tmp_path)

    class Swept(eventlog.Disk):
        def link(self, source: Path, target: Path) -> None:
            if swept:
                swept.pop()
                store.open("r").close()
            super().link(source, target)

    swept = [1, 2]
    assert eventlog.Directory(tmp_path, disk=Swept()).post("r", "stop", b"one")
    assert not swept
    (tmp_path / "r" / "inbox" / ".tmp-dead").write_bytes(b"half")
    assert store.inbox("r") == (["stop"], [])
    store.open("r").close()
    assert [path.name for path in (tmp_path / "r" / "inbox").iterdir()] == ["stop"]
