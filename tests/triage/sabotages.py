"""Ways to break a finished job or its log: the check that must find it, what is wrong then, and how it is done."""

import shutil
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

import replay
from replay.events import AttemptMarked, ModelAsked, PhaseChanged, ReplySaved, ResultRecorded
from replay.messages import Usage
from runner import triage
from tests.triage.worlds import TASK, Done

(FIX,) = triage.Task(TASK).expected.fixes
PATCH, TEST = FIX.patch, FIX.test

E = TypeVar("E", bound=replay.Event)
Break = Callable[[Done], object]


class Sabotage(NamedTuple):
    """One way to break a job."""

    check: str
    what: str
    do: Break

    def __str__(self) -> str:
        return f"{self.check}: {self.what}"


def sql(statement: str, *values: object) -> Break:
    """Change the tracker's file."""
    return lambda done: done.sql(statement, *values)


def write(path: str, text: str) -> Break:
    """Put a file into the workspace."""
    return lambda done: done.file(path).write_text(text)


def add(path: str, text: str) -> Break:
    """Put a text behind a file of the workspace."""
    return lambda done: done.file(path).write_text(done.file(path).read_text() + text)


def edit(path: str, old: str, new: str) -> Break:
    """Replace a text in a file of the workspace."""
    return lambda done: done.file(path).write_text(done.file(path).read_text().replace(old, new))


def remove(path: str) -> Break:
    """Delete a file of the workspace."""
    return lambda done: done.file(path).unlink()


def drop(which: Callable[[replay.AnyEvent], bool]) -> Break:
    """Take events out of the log."""
    return lambda done: done.rewrite(lambda events: [event for event in events if not which(event)])


def change(kind: type[E], how: Callable[[E], E]) -> Break:
    """Change every event of a kind in the log."""
    return lambda done: done.rewrite(lambda events: [how(e) if isinstance(e, kind) else e for e in events])


def _unpatch(done: Done) -> None:
    done.file(PATCH.path).write_bytes(done.job.task.files[PATCH.path])


def _empty(done: Done) -> None:
    shutil.rmtree(done.job.world.workspace)
    done.job.world.workspace.mkdir()


def _cut_last_ask(done: Done) -> None:
    replies = [event for event in done.events() if isinstance(event, ReplySaved)]
    seen = 0

    def cut(events: list[replay.AnyEvent]) -> list[replay.AnyEvent]:
        nonlocal seen
        seen += sum(isinstance(event, ReplySaved) for event in events)
        return events if seen < len(replies) else []

    done.rewrite(cut)


def _flip_a_bit(done: Done) -> None:
    segment = done.job.runs / done.run / "seg-000001.jsonl"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)


_REFILE = "INSERT INTO issue (key, cause, title, body, created) SELECT {}, cause, title, body, created FROM issue"
_RENOTE = "INSERT INTO comment (issue, key, text, created) SELECT issue, {}, created FROM comment LIMIT 1"

ONE = [
    Sabotage("one-issue", "the same filed twice", sql(_REFILE.format("key"))),
    Sabotage("one-issue", "nothing filed", sql("DELETE FROM issue")),
    Sabotage("right-cause", "filed under another cause", sql("UPDATE issue SET cause = 'due-dates'")),
    Sabotage("right-cause", "nothing filed", sql("DELETE FROM issue")),
    Sabotage("names-crash", "the title names no crash", sql("UPDATE issue SET title = 'it crashes'")),
    Sabotage("names-crash", "the body names no place", sql("UPDATE issue SET body = 'IndexError somewhere'")),
    Sabotage("patched-once", "patched again further down", add(PATCH.path, PATCH.new)),
    Sabotage("patched-once", "not patched", _unpatch),
    Sabotage("only-intended-files", "a file that nobody meant to write", write("notes.txt", "look here")),
    Sabotage("only-intended-files", "the patched file changed elsewhere too", add(PATCH.path, "# reviewed\n")),
    Sabotage("only-intended-files", "a file gone", remove("README.md")),
    Sabotage("only-intended-files", "not patched", _unpatch),
    Sabotage("suite-green", "another module broken", edit("todo/service.py", "if not item.done", "if item.done")),
    Sabotage("test-present", "no test file", remove(TEST)),
    Sabotage("test-present", "a test file without a test", write(TEST, "def check():\n    assert False\n")),
    Sabotage("test-present", "a test that fails", write(TEST, "def test_done():\n    assert False\n")),
    Sabotage("test-bites", "a test that passes without the fix", write(TEST, "def test_done():\n    assert True\n")),
    Sabotage("test-bites", "a test that can't be collected", write(TEST, "import todo.fixed\ndef test_done(): ...\n")),
    Sabotage("crash-gone", "not patched", _unpatch),
    Sabotage("crash-gone", "the wrong item marked", edit(PATCH.path, "item.done = True", "self._items[0].done = True")),
    Sabotage("no-leftovers", "a half-written file", write("todo/.refold-tmp-0123456789abcdef", "half")),
    Sabotage("no-leftovers", "a compiled module", lambda done: done.file("todo/__pycache__").mkdir()),
    Sabotage("no-leftovers", "an empty workspace", _empty),
    Sabotage("same-key", "a key that the log does not hold", sql("UPDATE issue SET key = ?", "0" * 32)),
    Sabotage("same-key", "nothing filed", sql("DELETE FROM issue")),
    Sabotage("same-key", "no attempt in the log", drop(lambda e: isinstance(e, AttemptMarked) and e.call == "12.0")),
    Sabotage(
        "same-spend",
        "a dearer reply",
        change(ReplySaved, lambda e: replace(e, reply=replace(e.reply, dollars=(e.reply.dollars or 0.0) * 2))),
    ),
    Sabotage(
        "same-spend",
        "a longer reply",
        change(ReplySaved, lambda e: replace(e, reply=replace(e.reply, usage=Usage(input_tokens=9)))),
    ),
    Sabotage("lost-asks-accounted", "a log that ends in the last ask", _cut_last_ask),
    Sabotage("settled", "a call without a result", drop(lambda e: isinstance(e, ResultRecorded) and e.call == "8.0")),
    Sabotage(
        "settled",
        "calls with two results",
        lambda done: done.rewrite(lambda events: [e for e in events for _ in range(1 + isinstance(e, ResultRecorded))]),
    ),
    Sabotage("settled", "a run that is not done", drop(lambda e: isinstance(e, PhaseChanged))),
    Sabotage("chain-verified", "a bit flipped in the log", _flip_a_bit),
    Sabotage("answer-names-issue", "another number than the answer says", sql("UPDATE issue SET id = 12")),
]

BATCH = [
    Sabotage("one-issue", "one cause filed twice", sql(_REFILE.format("'k'") + " WHERE id = 3")),
    Sabotage("fix-noted", "a fix that nobody noted", sql("DELETE FROM comment WHERE text LIKE '%B-102%'")),
    Sabotage("same-cause", "filed, though its cause was", sql("UPDATE issue SET title = 'B-105 crashes' WHERE id = 6")),
    Sabotage("same-cause", "noted elsewhere", sql("UPDATE comment SET issue = 2 WHERE text LIKE '%B-105%'")),
    Sabotage("same-cause", "still crashing", edit("todo/store.py", "item.text = text", "item.text = text[1]")),
    Sabotage("comments-once", "a comment made twice", sql(_RENOTE.format("'k', text"))),
    Sabotage("comments-once", "a comment missing", sql("DELETE FROM comment WHERE id = 4")),
    Sabotage("unseen-left-alone", "filed unseen", sql("UPDATE issue SET title = 'B-108 crashes' WHERE id = 6")),
    Sabotage("unseen-left-alone", "crashing", edit("todo/files.py", "os.replace(beside, path)", "raise OSError(27)")),
    Sabotage("comments-same-key", "another key", sql("UPDATE comment SET key = 'k' WHERE id = 2")),
    Sabotage("comments-same-key", "two of one call", sql(_RENOTE.format("key, 'more'"))),
    Sabotage(
        "second-filing-refused",
        "made and not refused",
        change(ResultRecorded, lambda e: replace(e, how="ran") if e.how == "refused" else e),
    ),
    Sabotage(
        "second-filing-refused",
        "a refusal that names nothing",
        change(ResultRecorded, lambda e: replace(e, text="no") if e.how == "refused" else e),
    ),
    Sabotage(
        "corrected",
        "every test passed at once",
        change(ResultRecorded, lambda e: replace(e, text=e.text.replace('"passed": false', '"passed": true'))),
    ),
    Sabotage("summarised", "no summary", change(ModelAsked, lambda e: replace(e, purpose="turn"))),
    Sabotage("summarised", "nothing but summaries", change(ModelAsked, lambda e: replace(e, purpose="summary"))),
]
