"""Ways to break a finished batch or its log where a single crash has nothing to break; as `tests.triage.sabotages`."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

import replay
from tests.triage.worlds import Done


def second_filing(done: Done) -> None:
    """One cause filed twice."""
    done.sql(
        "INSERT INTO issue (key, cause, title, body, created) "
        "SELECT 'k', cause, title, body, created FROM issue WHERE id = 3"
    )


def untold_fix(done: Done) -> None:
    """A fix that nobody noted on its issue."""
    done.sql("DELETE FROM comment WHERE text LIKE '%B-102%'")


def filed_anyway(done: Done) -> None:
    """A group whose cause had an issue got one of its own."""
    done.sql("UPDATE issue SET title = 'B-105 crashes' WHERE id = 6")


def noted_elsewhere(done: Done) -> None:
    """The comment on the second group of a cause is on another cause's issue."""
    done.sql("UPDATE comment SET issue = 2 WHERE text LIKE '%B-105%'")


def rename_broken(done: Done) -> None:
    """The second group of the cause still crashes."""
    file = done.file("todo/store.py")
    file.write_text(file.read_text().replace("item.text = text", "item.text = text[1]"))


def said_twice(done: Done) -> None:
    """The same comment twice."""
    done.sql("INSERT INTO comment (issue, key, text, created) SELECT issue, 'k', text, created FROM comment LIMIT 1")


def unsaid(done: Done) -> None:
    """A comment missing."""
    done.sql("DELETE FROM comment WHERE id = 4")


def filed_unseen(done: Done) -> None:
    """An issue for a crash that nobody could reproduce."""
    done.sql("UPDATE issue SET title = 'B-108 crashes' WHERE id = 6")


def unsaved(done: Done) -> None:
    """An application that can't save."""
    file = done.file("todo/files.py")
    file.write_text(file.read_text().replace("os.replace(beside, path)", "raise OSError(27, 'File too large')"))


def other_comment_key(done: Done) -> None:
    """A comment under a key that the log does not hold."""
    done.sql("UPDATE comment SET key = 'k' WHERE id = 2")


def comments_under_one_key(done: Done) -> None:
    """Two comments that came from one call."""
    done.sql("INSERT INTO comment (issue, key, text, created) SELECT issue, key, 'more', created FROM comment LIMIT 1")


def filing_tried(done: Done) -> None:
    """A second filing that was not refused but made."""
    done.rewrite(
        lambda events: [
            replace(e, how="ran") if isinstance(e, replay.ResultRecorded) and e.how == "refused" else e for e in events
        ]
    )


def refusal_names_nothing(done: Done) -> None:
    """A refusal that does not say which issue there is."""
    done.rewrite(
        lambda events: [
            replace(e, text="no") if isinstance(e, replay.ResultRecorded) and e.how == "refused" else e for e in events
        ]
    )


def never_red(done: Done) -> None:
    """A log in which every test passed at once."""

    def green(event: replay.AnyEvent) -> replay.AnyEvent:
        if not isinstance(event, replay.ResultRecorded):
            return event
        return replace(event, text=event.text.replace('"passed": false', '"passed": true'))

    done.rewrite(lambda events: [green(event) for event in events])


def no_summary(done: Done) -> None:
    """A log without a summary."""

    def turns(events: list[replay.AnyEvent]) -> list[replay.AnyEvent]:
        return [replace(e, purpose="turn") if isinstance(e, replay.ModelAsked) else e for e in events]

    done.rewrite(turns)


def two_summaries(done: Done) -> None:
    """A log in which every ask was for a summary."""

    def summaries(events: list[replay.AnyEvent]) -> list[replay.AnyEvent]:
        return [replace(e, purpose="summary") if isinstance(e, replay.ModelAsked) else e for e in events]

    done.rewrite(summaries)


SABOTAGES: list[tuple[str, Callable[[Done], None]]] = [
    ("one-issue", second_filing),
    ("fix-noted", untold_fix),
    ("same-cause", filed_anyway),
    ("same-cause", noted_elsewhere),
    ("same-cause", rename_broken),
    ("comments-once", said_twice),
    ("comments-once", unsaid),
    ("unseen-left-alone", filed_unseen),
    ("unseen-left-alone", unsaved),
    ("comments-same-key", other_comment_key),
    ("comments-same-key", comments_under_one_key),
    ("second-filing-refused", filing_tried),
    ("second-filing-refused", refusal_names_nothing),
    ("corrected", never_red),
    ("summarised", no_summary),
    ("summarised", two_summaries),
]
