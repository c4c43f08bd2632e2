"""What is said to a run on a full disk: `DiskFull` means that nothing was said, and what was taken is taken once."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path

import pytest

import eventlog
import runner
import runner.testing
from replay.events import MessageReceived
from tests.runs import scenes
from tests.runs.scenes import Shop
from tests.support.faulty_disk import Fault, FaultyDisk

TAKES_ROOM = ("open", "write_some", "sync", "mkdir", "link")


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from there on"])
def test_a_message_that_found_no_room_for_its_line_lies_in_the_inbox_and_is_no_error(
    tmp_path: Path, *, lasting: bool
) -> None:
    """Whoever is told of an error says it again: it was then in the run twice."""
    came: set[str] = set()
    for nth in itertools.count(1):
        runs = tmp_path / f"{nth}"
        scenes.start(Shop(), runner.testing.tool_calls(("sign", {"what": "a"})), runs=runs)
        disk = FaultyDisk(eventlog.DISK, Fault(verbs=TAKES_ROOM, nth=nth, error=errno.ENOSPC, lasting=lasting))
        try:
            receipt = runner.send("p", "Hurry.", "Ada", runs=eventlog.Directory(runs, disk=disk))
        except eventlog.DiskFull:
            came.add("refused")
            assert eventlog.store(runs).inbox("p").requests == []
            runner.send("p", "Hurry.", "Ada", runs=runs)
        else:
            came.add("written" if receipt.written else "left")
            assert receipt.holder is None
        runner.send("p", "Now.", "Ada", runs=runs)  # whoever opens the run takes what lies there
        said = [event.text for event in scenes.events(runs, "p") if isinstance(event, MessageReceived)]
        assert sorted(said) == ["Hurry.", "Now."], nth
        if not disk.hit:
            break
    assert came == {"refused", "left", "written"}
