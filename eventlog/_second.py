"""A second reader of the format, for `verify`: it shares the format's constants with the first one, and no code.

Two readers that agree are worth more than one that agrees with itself. Where the first matches a line with a regular
expression and msgspec, this one walks through it with the standard library's JSON; where the first takes good lines and
then judges the rest, this one takes a file apart at its newlines first. Speed is not its aim. Memory stays bounded by
the longest line, and by the longest snapshot.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from eventlog._frame import FORMAT, MAX_LINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from eventlog._disk import Disk

_CHUNK: Final = 1024 * 1024
_HEX: Final = frozenset("0123456789abcdef")
_DIGITS: Final = str.maketrans("123456789", "000000000")
_END: Final = len(',"sum":"') + 32 + len('"}\n')
_CHECKED: Final = len(',"check":"') + 32 + len('"}\n')
_HEAD: Final = 256


class NotOurs(Exception):
    """The bytes are not what they should be; the message says in what way."""


class Later(Exception):
    """A header names a format that this version does not know; the argument is its number."""


def _refuse(name: str) -> NoReturn:
    raise NotOurs(f"{name} is no JSON")


_plain: Final = json.JSONDecoder(parse_constant=_refuse)
_events: Final = json.JSONDecoder(parse_constant=_refuse, parse_int=str, parse_float=str)


class Read(NamedTuple):
    """One line as far as its place in the log is concerned. `header` is None for a line of events."""

    seq: int
    life: int
    prev: str
    sum: str
    header: dict[str, Any] | None


class Piece(NamedTuple):
    """Bytes of a file from `start` up to a newline, or to the file's end (then it is not `whole`).

    `solid` is where its last byte that is no NUL ends, `nul` tells of a NUL before that. `data` is empty when it is
    longer than a line may be.
    """

    start: int
    end: int
    solid: int
    data: bytes
    whole: bool
    nul: bool


def digest(data: bytes) -> str:
    """Give the first 16 bytes of SHA-256 in hex."""
    return hashlib.sha256(data).digest()[:16].hex()


def pieces(disk: Disk, fd: int) -> Iterator[Piece]:
    """Take a file apart at its newlines."""
    offset = start = solid = 0
    held = bytearray()
    nul = False
    while chunk := disk.pread(fd, _CHUNK, offset):
        for part in _split(chunk):
            kept = part.rstrip(b"\0")
            if kept:
                nul = nul or solid < offset or b"\0" in kept
                solid = offset + len(kept)
            offset += len(part)
            if offset - start <= MAX_LINE:
                held += part
            else:
                held.clear()
            if part.endswith(b"\n"):
                yield Piece(start, offset, solid, bytes(held), whole=True, nul=nul)
                held.clear()
                start = solid = offset
                nul = False
    if offset > start:
        yield Piece(start, offset, solid, bytes(held), whole=False, nul=nul)


def line(data: bytes) -> Read:
    """Read one line, newline included. Raises `NotOurs` or `Later`."""
    if len(data) > MAX_LINE:
        raise NotOurs("it is longer than a line may be")
    body, end = data[:-_END], data[-_END:]
    total = digest(body)
    if end != f',"sum":"{total}"}}\n'.encode():
        raise NotOurs("a whole line has a wrong sum" if end.startswith(b',"sum":"') else "a line has no sum")
    try:
        return _walk(body.decode(), total)
    except (ValueError, RecursionError) as error:
        raise NotOurs(f"the content of a line cannot be read: {error}") from error


def head(data: bytes) -> dict[str, Any] | None:
    """Read a head's bytes; None when they are not exactly a head."""
    try:
        found = _plain.decode(data.decode())
        state, segment, seq, offset = found["state"], found["segment"], found["seq"], found["offset"]
        text = f'{{"state":"{state}","segment":{segment:d},"seq":{seq:d},"offset":{offset:d},"sum":"{found["sum"]}"'
    except (ValueError, TypeError, KeyError, RecursionError, NotOurs):
        return None
    whole = f'{text},"check":"{digest(text.encode())}"}}'.ljust(_HEAD - 1) + "\n"
    good = state in {"open", "closed"} and _is_sum(found["sum"])
    good = good and 0 <= segment < 10**6 and -1 <= seq < 10**18 and 0 <= offset < 10**18
    return found if good and whole.encode() == data else None


def snapshot(data: bytes) -> dict[str, Any] | None:
    """Read a snapshot's bytes; None when they are not exactly one."""
    text, end = data[:-_CHECKED], data[-_CHECKED:]
    if end != f',"check":"{digest(text)}"}}\n'.encode():
        return None
    try:
        found = _plain.decode(data.decode())
    except (ValueError, RecursionError, NotOurs):
        return None
    shape = {"run": str, "seq": int, "sum": str, "version": int}
    return found if _is_like(found, shape) and "state" in found and _is_text(found["state"], data) else None


def _split(chunk: bytes) -> list[bytes]:
    """Split behind each newline, and behind nothing else that a text might call the end of a line."""
    parts = [part + b"\n" for part in chunk.split(b"\n")]
    parts[-1] = parts[-1][:-1]
    return [part for part in parts if part]


def _walk(text: str, total: str) -> Read:
    """Go through a line's fields in their order; what stands between them must be exactly what stands there."""
    at = 0
    values: list[Any] = []
    for lead in ('{"seq":', ',"life":', ',"at":"', ',"prev":"'):
        if not text.startswith(lead, at):
            raise NotOurs(f"{lead} is not where it must be")
        begin = at + len(lead) - lead.endswith('"')
        value, at = _plain.raw_decode(text, begin)
        if text[begin:at] != (f'"{value}"' if isinstance(value, str) else str(value)):
            raise NotOurs("a field is not written as it must be")
        values.append(value)
    seq, life, time, prev = values
    if not (_is_number(seq, 0, 10**18) and _is_number(life, 1, 10**9) and _is_sum(prev) and _is_time(time)):
        raise NotOurs("a field does not hold what it must")
    return Read(seq, life, prev, total, _content(text, at))


def _content(text: str, at: int) -> dict[str, Any] | None:
    """Read what a line says, from where it says it: its header, or None for events."""
    found = None
    if text.startswith(',"header":{', at):
        found, at = _plain.raw_decode(text, at + len(',"header":'))
        if not _is_text(found, text.encode()):
            raise NotOurs("a header names half a surrogate pair")
        _check_header(found)
    elif text.startswith(',"events":[', at):
        listed, at = _events.raw_decode(text, at + len(',"events":'))
        if not all(isinstance(event, dict) for event in listed):
            raise NotOurs("an event is not an object")
        if not _is_text(listed, text.encode()):
            raise NotOurs("an event names half a surrogate pair")
    else:
        raise NotOurs("a line has neither events nor a header")
    if text[at:].strip(" \t\r"):
        raise NotOurs("a line has more fields than it may")
    return found


def _check_header(header: dict[str, Any]) -> None:
    if not _is_number(header.get("format"), -(2**63), 2**64):
        raise NotOurs("a header names no format")
    if header["format"] != FORMAT:
        raise Later(header["format"])
    good = _is_like(header, {"run": str, "nonce": str, "segment": int}) and _is_storage(header.get("storage"))
    for name, is_good in (("parent", _is_parent), ("salvaged", _is_salvaged)):
        good = good and (header.get(name) is None or is_good(header[name]))
    if not good:
        raise NotOurs("a header does not hold what it must")


def _is_storage(found: object) -> bool:
    survives = {"survives": {"power loss", "killed process"}.__contains__}
    return _is_like(found, {"kind": str, "survives": str}, survives) and (
        "why" not in found or isinstance(found["why"], str)  # type: ignore[operator, index] # it is a dict
    )


def _is_parent(found: object) -> bool:
    return _is_like(found, {"run": str, "seq": int, "sum": str})


def _is_salvaged(found: object) -> bool:
    def is_gap(gap: object) -> bool:
        shape = {"after": int, "why": str}
        return _is_like(gap, shape) and (gap["before"] is None or _is_like(gap, {"before": int}))  # type: ignore[index] # it is a dict

    shape = {"run": str, "lines": int, "gaps": list}
    return _is_like(found, shape) and all(map(is_gap, found["gaps"]))  # type: ignore[index] # it is a dict


def _is_like(found: object, shape: dict[str, type], rules: dict[str, Callable[[Any], bool]] | None = None) -> bool:
    """Tell whether a value is an object with these fields, each of its type, and keeping its rule if there is one."""
    if not isinstance(found, dict):
        return False
    typed = all(type(found.get(name)) is kind for name, kind in shape.items())
    return typed and all(rule(found[name]) for name, rule in (rules or {}).items())


def _is_text(found: object, data: bytes) -> bool:
    """Tell whether UTF-8 can hold all text of a value read from `data`: JSON can name half a surrogate pair."""
    if b"\\ud" not in data.lower():
        return True
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(found: object, least: int, below: int) -> bool:
    return type(found) is int and least <= found < below


def _is_time(found: str) -> bool:
    """Tell whether text is a time with six digits in UTC. Raises `ValueError` for one that no calendar has."""
    shaped = found.isascii() and found.translate(_DIGITS) == "0000-00-00T00:00:00.000000Z"
    return shaped and datetime.fromisoformat(found[:-1]) is not None


def _is_sum(found: object) -> bool:
    return isinstance(found, str) and len(found) == 32 and _HEX.issuperset(found)  # noqa: PLR2004 - 16 bytes in hex
