"""Fork: the beginning of one log as the beginning of another.

The new run has its own nonce and its own chain, so nothing of it can be mistaken for the parent's. Its lines keep the
parent's numbers, lives and times: line 41 is line 41 in both, and what a person noted about the one holds for the
other. Where the parent began a segment, the fork has a line without events.

The fork appears whole or not at all: everything it begins with is in its first segment when that gets its name.
Between the two `ready` is called. Whoever must end the parent does it there: before that moment anything that goes
wrong (a full disk, an id that is taken) leaves the parent as it was, and behind it the parent is over, so the two can
never both go on. A crash exactly in between leaves a parent that was ended and no fork; forking it again makes one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from eventlog._create import founded
from eventlog._disk import DISK, Disk
from eventlog._frame import FORMAT, MAX_LINE, NO_SUM, Bad, Newer, build, checked, in_utc, parse
from eventlog._line import Header, Line, Parent, Storage
from eventlog._names import check_id, segment_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from eventlog._log import Log

_PIECE: Final = 4096


def fork(
    lines: Sequence[Line],
    new: str,
    *,
    runs: str | Path,
    keep: int,
    at: datetime,
    events: Sequence[bytes],
    ready: Callable[[], None] | None = None,
    force: bool = False,
    disk: Disk = DISK,
) -> Log:
    """Make the run `new` of another run's `lines`, from its first to the last they share, and open it.

    Of the last one only the first `keep` events are taken. Behind it stands a line of `events`, in a life of its own.
    `ready` is called when the fork is durable and does not exist yet; what it raises leaves no fork. Whoever forks a
    log that may be written holds its lock. Raises what `create` raises.
    """
    check_id(new)
    at = in_utc(new, at)
    first, last = lines[0], lines[-1]
    assert first.header is not None  # a log begins with a header
    parent = Parent(first.header.run, last.seq, last.sum)
    life = last.life + 1

    def beginning(storage: Storage) -> tuple[list[Line], list[bytes]]:
        header = Header(FORMAT, new, disk.random(16), 1, storage, parent)
        content = [build(0, first.life, first.at, NO_SUM, header)]
        made = [parse(content[0])]
        shared = [(line.life, line.at, [bytes(event) for event in line.events]) for line in lines[1:]]
        shared[-1] = (last.life, last.at, shared[-1][2][:keep])
        for era, when, kept in [*shared, (life, max(at, last.at), list(events))]:
            content.append(build(made[-1].seq + 1, era, when, made[-1].sum, kept))
            made.append(checked(new, content[-1], kept))
        return made, content

    return founded(Path(runs), new, beginning, life, ready=ready, force=force, disk=disk)


def header(runs: str | Path, run: str, *, disk: Disk = DISK) -> Header | None:
    """Read what the first line of a run says, and no more of it; None where there is no such line.

    Raises `BadRunId`.
    """
    check_id(run)
    try:
        fd = disk.open(Path(runs) / run / segment_name(1))
    except OSError:
        return None
    try:
        data = b""
        while b"\n" not in data and len(data) <= MAX_LINE and (piece := disk.pread(fd, _PIECE, len(data))):
            data += piece
        return parse(data[: data.find(b"\n") + 1]).header
    except (OSError, Bad, Newer):
        return None
    finally:
        disk.close(fd)
