"""A second reader of the format, for `verify`: it shares the format's constants with the first one, and no code.

Two readers that agree are worth more than one that agrees with itself. Where the first matches a line with a regular
expression and msgspec, this one walks through it with the standard library's JSON; where the first takes good lines and
then judges the rest, this one takes a file apart at its newlines first. Speed is not its aim. Memory stays bounded by
the longest line, and by the longest snapshot.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, NoReturn

from eventlog._frame import MAX_LINE
from eventlog._line import FORMAT

_HEX: Final = frozenset("0123456789abcdef")
_DIGITS: Final = str.maketrans("123456789", "000000000")
_END: Final = len(',"sum":"') + 32 + len('"}\n')
_CHECKED: Final = len(',"check":"') + 32 + len('"}\n')
_HEAD: Final = 256
_DEPTH: Final = 128
_STORAGE: Final = {"kind": str, "survives": ("power loss", "killed process"), "why?": str}
_PARENT: Final = {"run": str, "seq": int, "sum": str}
_GAP: Final = {"after": int, "before": (int, None), "why": str}
_SALVAGED: Final = {"run": str, "lines": int, "gaps": [_GAP]}
_HEADER: Final = {
    "run": str,
    "nonce": str,
    "segment": int,
    "storage": _STORAGE,
    "parent?": (_PARENT, None),
    "salvaged?": (_SALVAGED, None),
    "snapshot?": str,
}
_SNAPSHOT: Final = {"run": str, "seq": int, "sum": str, "version": int}


class NotOurs(Exception):
    """The bytes are not what they should be; the message says in what way."""


class Later(Exception):
    """A header names a format that this version does not know; the argument is its number."""


def _refuse(name: str) -> NoReturn:
    raise NotOurs(f"{name} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise NotOurs("a field is named twice")
    return dict(pairs)


def _each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Keep every value that is named, whatever has the same name: all of it must be text."""
    return {f"{number} {name}": value for number, (name, value) in enumerate(pairs)}


def _whole(digits: str) -> int | float:
    """Read a whole number. One of thousands of digits is JSON, and no field holds it."""
    try:
        return int(digits)
    except ValueError:  # Python reads no more than 4300 digits
        return float("inf")


_plain: Final = json.JSONDecoder(parse_constant=_refuse, parse_int=_whole, object_pairs_hook=_once)
_events: Final = json.JSONDecoder(parse_constant=_refuse, parse_int=str, parse_float=str, object_pairs_hook=_each)


class Read:
    """One line as far as its place in the log is concerned. `header` is None for a line of events."""

    def __init__(self, seq: int, life: int, prev: str, total: str, header: dict[str, Any] | None) -> None:
        self.seq, self.life, self.prev, self.sum, self.header = seq, life, prev, total, header


class Piece:
    """Bytes of a file from `start` up to a newline, or to the file's end (then it is not `whole`).

    `solid` is where its last byte that is no NUL ends, `nul` tells of a NUL before that. `data` is empty when it is
    longer than a line may be.
    """

    def __init__(self, start: int, end: int, solid: int, data: bytes, *, whole: bool, nul: bool) -> None:
        self.start, self.end, self.solid, self.data = start, end, solid, data
        self.whole, self.nul = whole, nul


def digest(data: bytes) -> str:
    """Give the first 16 bytes of SHA-256 in hex."""
    return hashlib.sha256(data).digest()[:16].hex()


def pieces(chunks: Iterable[bytes]) -> Iterator[Piece]:
    """Take a file apart at its newlines."""
    offset = start = solid = 0
    held = bytearray()
    nul = False
    for chunk in chunks:
        for part in _split(chunk):
            kept = part.rstrip(b"\0") if part != bytes(len(part)) else b""  # ten times as fast for nothing but NULs
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
        raise NotOurs(_unlike(data, end))
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
        whole = f'{text},"check":"{digest(text.encode())}"}}'.ljust(_HEAD - 1) + "\n"
        good = state in {"open", "closed"} and _is_sum(found["sum"]) and whole.encode() == data
    except (ValueError, TypeError, KeyError, RecursionError, NotOurs):
        return None
    good = good and 0 <= segment < 10**6 and -1 <= seq < 10**18 and 0 <= offset < 10**18
    return found if good else None


def snapshot(data: bytes) -> dict[str, Any] | None:
    """Read a snapshot's bytes; None when they are not exactly one."""
    if data[-_CHECKED:] != f',"check":"{digest(data[:-_CHECKED])}"}}\n'.encode():
        return None
    try:
        text = data[:-_CHECKED].decode()
        values, at = _fields(text, ('{"run":"', ',"seq":', ',"sum":"', ',"version":'))
        if not text.startswith(',"state":', at):
            return None
        state, end = _events.raw_decode(text, at + len(',"state":'))
    except (ValueError, RecursionError, NotOurs):
        return None
    found = dict(zip(("run", "seq", "sum", "version"), values, strict=True))
    found["digest"] = digest(text[at + len(',"state":') :].encode())
    return found if end == len(text) and _fits(found, _SNAPSHOT) and _is_text(state, data) else None


def _unlike(data: bytes, end: bytes) -> str:
    """Say why a line has not its sum; some programs change a whole file."""
    if end[-2:] == b"\r\n":
        return "a line ends in CR LF: another program changed the line ends; copy the files as binary"
    if data[:3] == b"\xef\xbb\xbf":
        return "a line begins with a byte order mark: an editor has saved the file"
    return "a whole line has a wrong sum" if end.startswith(b',"sum":"') else "a line has no sum"


def _split(chunk: bytes) -> list[bytes]:
    """Split after each newline, and after nothing else that a text might call the end of a line."""
    parts = [part + b"\n" for part in chunk.split(b"\n")]
    parts[-1] = parts[-1][:-1]
    return [part for part in parts if part]


def _walk(text: str, total: str) -> Read:
    (seq, life, time, prev), at = _fields(text, ('{"seq":', ',"life":', ',"at":"', ',"prev":"'))
    if not (_is_number(seq, 0, 10**18) and _is_number(life, 1, 10**9) and _is_sum(prev) and _is_time(time)):
        raise NotOurs("a field does not hold what it must")
    return Read(seq, life, prev, total, _content(text, at))


def _fields(text: str, leads: tuple[str, ...]) -> tuple[list[Any], int]:
    """Go through fields in their order; what stands between them must be exactly what stands there."""
    at = 0
    values: list[Any] = []
    for lead in leads:
        if not text.startswith(lead, at):
            raise NotOurs(f"{lead} is not where it must be")
        begin = at + len(lead) - lead.endswith('"')
        value, at = _plain.raw_decode(text, begin)
        if text[begin:at] != (f'"{value}"' if lead.endswith('"') else str(value)):
            raise NotOurs("a field is not written as it must be")
        values.append(value)
    return values, at


def _content(text: str, at: int) -> dict[str, Any] | None:
    """Read what a line says, from where it says it: its header, or None for events."""
    found = None
    if text.startswith(',"header":{', at):
        found, at = _plain.raw_decode(text, at + len(',"header":'))
        if not _is_text(found, text.encode()):
            raise NotOurs("a header names half a surrogate pair")
        _check_header(found)
        listed = [found]
    elif text.startswith(',"events":[', at):
        listed, at = _events.raw_decode(text, at + len(',"events":'))
        if not all(isinstance(event, dict) for event in listed):
            raise NotOurs("an event is not an object")
        if not _is_text(listed, text.encode()):
            raise NotOurs("an event names half a surrogate pair")
    else:
        raise NotOurs("a line has neither events nor a header")
    if _is_deep(listed):
        raise NotOurs(f"a line is nested deeper than {_DEPTH}")
    if text[at:].strip(" \t\r"):
        raise NotOurs("a line has more fields than it may")
    return found


def _check_header(header: dict[str, Any]) -> None:
    if not _is_number(header.get("format"), -(2**63), 2**63):
        raise NotOurs("a header names no format")
    if header["format"] != FORMAT:
        raise Later(header["format"])
    if not _fits(header, _HEADER):
        raise NotOurs("a header does not hold what it must")


def _fits(found: object, shape: Any) -> bool:
    """Tell whether a value has a shape: a type, a value, one of several, a list, or an object (`?`: may be missing)."""
    if isinstance(shape, tuple):
        return any(_fits(found, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(found, list) and all(_fits(one, shape[0]) for one in found)
    if isinstance(shape, dict):
        return isinstance(found, dict) and all(
            _fits(found[name], inner) if (name := key.rstrip("?")) in found else key != name
            for key, inner in shape.items()
        )
    return type(found) is shape or (not isinstance(shape, type) and found == shape)


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


def _is_deep(level: list[Any]) -> bool:
    for _ in range(_DEPTH):
        if not level:
            break
        parts = (outer.values() if isinstance(outer, dict) else outer for outer in level)
        level = [inner for part in parts for inner in part if isinstance(inner, dict | list)]
    return bool(level)
