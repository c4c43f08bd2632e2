"""Names: which run ids exist, and which files in a run's directory are ours.

A run id becomes a directory's name and a part of every idempotency key, so two ids must never mean one directory on
any file system: lower-case ASCII only (no `A` beside `a`, no composed beside decomposed accents), no path separators,
no names that a system keeps for devices. It is checked before the file system is touched.
"""

import re

from eventlog.errors import BadRunId

COPY = "copy"
HEAD = "head"
INBOX = "inbox"
LOCK = "lock"
STATUS = "status"
TEMPORARY = ".tmp-"
MAX_RUN_ID = 128
MAX_SEGMENT = 999_999

_RUN = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SEGMENT = re.compile(r"seg-(?!000000)([0-9]{6})\.jsonl")
_SNAPSHOT = r"snap-(0|[1-9][0-9]{0,17})\.json"
_TORN = r"torn-([0-9]{6})-([0-9a-f]{64})"
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))],
)


def check_id(run: str) -> str:
    """Return `run` when it can be a run's id; otherwise raise `BadRunId`, before the file system is touched."""
    if not isinstance(run, str):
        raise BadRunId(repr(run), "it is not text")
    if not run:
        raise BadRunId(run, "it is empty")
    if len(run) > MAX_RUN_ID:
        raise BadRunId(run, f"it is longer than {MAX_RUN_ID} characters")
    if not _RUN.fullmatch(run):
        raise BadRunId(run, "only a-z, 0-9, dot, dash and underscore are allowed, a letter or digit first")
    if run.endswith("."):
        raise BadRunId(run, "it ends in a dot")
    if run.split(".", 1)[0] in _DEVICES:
        raise BadRunId(run, "it is the name of a device on some systems")
    return run


def is_id(run: str) -> bool:
    """Tell whether a directory's name can be a run id."""
    try:
        check_id(run)
    except BadRunId:
        return False
    return True


def segment_name(number: int) -> str:
    """Name the file of segment `number`, from 1."""
    return f"seg-{number:06d}.jsonl"


def segment_number(name: str) -> int | None:
    """Give the number of a segment's file name; None when the name is no segment's."""
    match = _SEGMENT.fullmatch(name)
    return int(match[1]) if match else None


def snapshot_name(seq: int) -> str:
    """Name the file of a snapshot of the state after line `seq`."""
    return f"snap-{seq}.json"


def snapshot_seq(name: str) -> int | None:
    """Give the line that a snapshot's file name names; None when the name is no snapshot's."""
    match = re.fullmatch(_SNAPSHOT, name)
    return int(match[1]) if match else None


def makes_a_run(name: str) -> bool:
    """Tell whether a file of this name shows that its directory is a run (a segment, the head or a snapshot)."""
    return name == HEAD or bool(_SEGMENT.fullmatch(name) or re.fullmatch(_SNAPSHOT, name))


def is_ours(name: str) -> bool:
    """Tell whether a file of this name belongs in a run's directory."""
    known = name in {COPY, INBOX, LOCK, STATUS} or name.startswith(TEMPORARY)
    return known or makes_a_run(name) or bool(re.fullmatch(_TORN, name))


def torn_name(segment: int, digest: str) -> str:
    """Name the evidence file of bytes cut from `segment`, by the SHA-256 of those bytes in hex."""
    return f"torn-{segment:06d}-{digest}"


def torn_parts(name: str) -> tuple[int, str] | None:
    """Give the segment and the digest that an evidence file's name names; None when the name is no such file's."""
    match = re.fullmatch(_TORN, name)
    return (int(match[1]), match[2]) if match else None
