"""What can be wrong with a history.

ReplayError
├── IllegalEvent      an event that the fold's table does not allow where it stands
├── NoSuchLine        a line that a history does not have, or that stands before its run began
├── NotFaithful       an event that would not come back from disk as it went in
├── Undecodable       bytes that are valid JSON but no event of this vocabulary
└── Diverged          a history that the current code would not have written
"""

from eventlog.errors import StructuredError


class ReplayError(StructuredError):
    """The root of replay's errors."""

    hint = "The log is untouched; `refold verify` and `refold cat` show what it holds."


class IllegalEvent(ReplayError):
    """An event stands where the fold's table does not allow it.

    `seq` is the line's sequence number, or None for an event that was not yet on disk; `tag` names the event.
    """

    seq: int | None
    tag: str
    phase: str
    why: str

    def __str__(self) -> str:
        where = "a new line" if self.seq is None else f"line {self.seq}"
        return f"{where}: {self.tag} is not legal in phase {self.phase}: {self.why}"


class NoSuchLine(ReplayError):
    """The run can't be forked at line `seq`: its history begins after it, or ends before it, with line `last`."""

    hint = "`refold cat RUN` and `refold audit RUN` show its lines; the first that can be forked holds run_started."
    run: str
    seq: int
    last: int

    def __str__(self) -> str:
        if self.seq > self.last:
            return f"{self.run} has no line {self.seq}: its last one is {self.last}"
        return f"{self.run} has not begun at line {self.seq}"


class NotFaithful(ReplayError):
    """An event would not be read back as it was given, so it was not written."""

    sentence = "{tag} can't be stored faithfully: {why}"
    hint = "Nothing was written. A value of this event has a shape that JSON does not keep; report it with the tag."
    tag: str
    why: str


class Undecodable(ReplayError):
    """A known tag with fields of other types, or an object without a tag: no version of refold wrote it."""

    seq: int | None
    why: str

    def __str__(self) -> str:
        where = "an event" if self.seq is None else f"an event of line {self.seq}"
        return f"{where} can't be decoded: {self.why}"


class Diverged(ReplayError):
    """The current code decides otherwise than this history; raised where a retrace is a test.

    `seq` is the first line that differs, `why` a sentence, `diff` both sides: `-` the history, `+` the current code.
    """

    hint = "If the other way is meant, make the test anew from a run that goes it; else change the code back."
    run: str
    seq: int
    why: str
    diff: str

    def __str__(self) -> str:
        return f"{self.run} diverges at line {self.seq}: {self.why}\n{self.diff}".rstrip()
