"""Ways to break a finished world or its log, each named by what is wrong then, and the check that must find it."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from msgspec.structs import replace

import replay
from runner import triage
from tests.triage.worlds import TASK, Done

(FIX,) = triage.Task(TASK).expected.fixes
PATCH, TEST = FIX.patch, FIX.test


def second_issue(done: Done) -> None:
    """The same filed twice."""
    done.sql("INSERT INTO issue (key, cause, title, body, created) SELECT key, cause, title, body, created FROM issue")


def no_issue(done: Done) -> None:
    """Nothing filed."""
    done.sql("DELETE FROM issue")


def other_cause(done: Done) -> None:
    """Filed under another cause."""
    done.sql("UPDATE issue SET cause = 'due-dates'")


def untitled(done: Done) -> None:
    """A title that does not say which crash."""
    done.sql("UPDATE issue SET title = 'it crashes'")


def vague(done: Done) -> None:
    """A body that does not say where."""
    done.sql("UPDATE issue SET body = 'IndexError somewhere'")


def patched_twice(done: Done) -> None:
    """The patch made again further down."""
    file = done.file(PATCH.path)
    file.write_text(file.read_text() + PATCH.new)


def unpatched(done: Done) -> None:
    """The original module."""
    shutil.copyfile(done.job.task.original / PATCH.path, done.file(PATCH.path))


def stray_file(done: Done) -> None:
    """A file nobody meant to write."""
    done.file("notes.txt").write_text("look here")


def stray_edit(done: Done) -> None:
    """The patched file changed elsewhere too."""
    file = done.file(PATCH.path)
    file.write_text(file.read_text() + "# reviewed\n")


def removed_file(done: Done) -> None:
    """A file of the project gone."""
    done.file("README.md").unlink()


def broken_module(done: Done) -> None:
    """Something else broken on the way."""
    file = done.file("todo/service.py")
    file.write_text(file.read_text().replace("if not item.done", "if item.done"))


def no_test(done: Done) -> None:
    """The new test missing."""
    done.file(TEST).unlink()


def empty_test(done: Done) -> None:
    """A new test file without a test in it."""
    done.file(TEST).write_text("def check():\n    assert False\n")


def failing_test(done: Done) -> None:
    """A new test that the fix does not satisfy."""
    done.file(TEST).write_text("def test_done():\n    assert False\n")


def toothless_test(done: Done) -> None:
    """A new test that passes with or without the fix."""
    done.file(TEST).write_text("def test_done():\n    assert True\n")


def unimportable_test(done: Done) -> None:
    """A new test that fails without the patch only because it can't be collected."""
    done.file(TEST).write_text("import todo.fixed\n\ndef test_done():\n    assert todo.fixed\n")


def wrong_item(done: Done) -> None:
    """No crash any more, but the wrong item marked."""
    file = done.file(PATCH.path)
    file.write_text(file.read_text().replace("item.done = True", "self._items[0].done = True"))


def half_made_file(done: Done) -> None:
    """What an interrupted write leaves."""
    done.file("todo/.refold-tmp-0123456789abcdef").write_text("half")


def compiled(done: Done) -> None:
    """What a careless interpreter leaves."""
    done.file("todo/__pycache__").mkdir()


def no_workspace(done: Done) -> None:
    """Nothing there at all: no leftovers, but not a world in order either."""
    shutil.rmtree(done.job.world.workspace)
    done.job.world.workspace.mkdir()


def other_key(done: Done) -> None:
    """Filed under a key that the log does not hold."""
    done.sql("UPDATE issue SET key = ?", "0" * 32)


def no_marker(done: Done) -> None:
    """A log without an attempt to file."""
    done.rewrite(lambda events: [e for e in events if not (isinstance(e, replay.AttemptMarked) and e.call == "12.0")])


def paid_twice(done: Done) -> None:
    """A reply that cost more than the recorded one."""

    def dearer(event: replay.AnyEvent) -> replay.AnyEvent:
        if not isinstance(event, replay.ReplySaved):
            return event
        return replace(event, reply=replace(event.reply, dollars=(event.reply.dollars or 0.0) * 2))

    done.rewrite(lambda events: [dearer(event) for event in events])


def more_tokens(done: Done) -> None:
    """A reply that took more tokens than the recorded one."""

    def longer(event: replay.AnyEvent) -> replay.AnyEvent:
        if not isinstance(event, replay.ReplySaved):
            return event
        return replace(event, reply=replace(event.reply, usage=replay.Usage(input_tokens=9)))

    done.rewrite(lambda events: [longer(event) for event in events])


def ask_without_reply(done: Done) -> None:
    """A log that ends in the middle of the last ask."""
    replies = len([e for e in _events(done) if isinstance(e, replay.ReplySaved)])
    seen = 0

    def cut(events: list[replay.AnyEvent]) -> list[replay.AnyEvent]:
        nonlocal seen
        seen += sum(isinstance(event, replay.ReplySaved) for event in events)
        return events if seen < replies else []

    done.rewrite(cut)


def lost_result(done: Done) -> None:
    """A call without a result."""
    done.rewrite(lambda events: [e for e in events if not (isinstance(e, replay.ResultRecorded) and e.call == "8.0")])


def doubled_result(done: Done) -> None:
    """A call with two results."""
    done.rewrite(lambda events: [e for e in events for _ in range(1 + isinstance(e, replay.ResultRecorded))])


def unfinished(done: Done) -> None:
    """Every call settled, and the run not done."""
    done.rewrite(lambda events: [e for e in events if not isinstance(e, replay.PhaseChanged)])


def flipped_bit(done: Done) -> None:
    """A log that the disk, or somebody, changed."""
    segment = done.job.runs / done.run / "seg-000001.jsonl"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)


def other_number(done: Done) -> None:
    """An issue under another number than the answer says."""
    done.sql("UPDATE issue SET id = 12")


SABOTAGES: list[tuple[str, Callable[[Done], None]]] = [
    ("one-issue", second_issue),
    ("one-issue", no_issue),
    ("right-cause", other_cause),
    ("right-cause", no_issue),
    ("names-crash", untitled),
    ("names-crash", vague),
    ("patched-once", patched_twice),
    ("patched-once", unpatched),
    ("only-intended-files", stray_file),
    ("only-intended-files", stray_edit),
    ("only-intended-files", removed_file),
    ("only-intended-files", unpatched),
    ("suite-green", broken_module),
    ("test-present", no_test),
    ("test-present", empty_test),
    ("test-present", failing_test),
    ("test-bites", toothless_test),
    ("test-bites", unimportable_test),
    ("crash-gone", unpatched),
    ("crash-gone", wrong_item),
    ("no-leftovers", half_made_file),
    ("no-leftovers", compiled),
    ("no-leftovers", no_workspace),
    ("same-key", other_key),
    ("same-key", no_issue),
    ("same-key", no_marker),
    ("same-spend", paid_twice),
    ("same-spend", more_tokens),
    ("lost-asks-accounted", ask_without_reply),
    ("settled", lost_result),
    ("settled", doubled_result),
    ("settled", unfinished),
    ("chain-verified", flipped_bit),
    ("answer-names-issue", other_number),
]


def _events(done: Done) -> list[replay.AnyEvent]:
    collected: list[replay.AnyEvent] = []

    def look(events: list[replay.AnyEvent]) -> list[replay.AnyEvent]:
        collected.extend(events)
        return events

    done.rewrite(look)
    return collected
