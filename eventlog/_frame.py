"""The frame: bytes to lines and back, without any file.

The rule: a line that this module accepts is exactly a line that this module writes, for every field but the events
and the header, which are kept as they are. So the number of the next line comes from frames alone, and a changed bit
cannot hide in a field that a lenient reader would skip. The sum is the last field and covers every byte before it,
therefore one mechanism serves torn writes, corruption and audit. It does not stop someone who rewrites the whole log:
that shows only to a person who kept a later `sum` elsewhere.

An ordinary line that follows another is decoded in one pass and then compared with what the writer would have written
after that other: byte by byte at its beginning, and by the count of bytes after it. Whatever does not fit exactly goes
through the strict pattern, which also says what is wrong.

What the writer checks beyond its own reader: an event is one JSON object without a raw newline, it decodes (a lone
surrogate or a number beyond range would pass the frame and fail later, in the fold), and it is not nested so deeply
that a reader with less stack left would fail.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec

from eventlog._line import FORMAT, Header, Line
from eventlog.errors import NotStorable

MAX_LINE: Final = 16 * 1024 * 1024
MAX_DEPTH: Final = 128
NO_SUM: Final = "0" * 32
"""`prev` of the first line."""

_TAIL = len(b',"sum":"' + b"0" * 32 + b'"}\n')
_PREFIX = (
    rb'\{"seq":(0|[1-9][0-9]{0,17}),"life":([1-9][0-9]{0,8}),'
    rb'"at":"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z)",'
    rb'"prev":"([0-9a-f]{32})",(?:"events":(?=\[)|"header":(?=(\{)))'
)
_LINE = msgspec.json.Decoder(Line)
_EVENTS = msgspec.json.Decoder(list[msgspec.Raw])
_HEADER = msgspec.json.Decoder(Header)
_ANY = msgspec.json.Decoder()
_TIME = msgspec.json.Encoder()
_TIME_SIZE = len('"2026-11-29T15:14:58.123456Z"')
_OPEN_BRACE, _CLOSE_BRACE = b"{}"
_MOST_SEQ: Final = 10**18
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"{[]}"))
_SHA256 = hashlib.sha256()
"""Copied for each sum: finding the algorithm anew takes as long as a short line's sum."""


class _Version(msgspec.Struct):
    format: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


_VERSION = msgspec.json.Decoder(_Version)


class Bad(Exception):
    """The bytes are not a line. The message says in what way."""


class Newer(Exception):
    """A whole line with a right sum is the header of a format this version does not know."""

    def __init__(self, format: int) -> None:  # noqa: A002 - the field's name in the header
        super().__init__(format)
        self.format = format


def digest(data: bytes | memoryview) -> str:
    """Give the sum of a frame: the first 16 bytes of SHA-256, in hex."""
    running = _SHA256.copy()
    running.update(data)
    return running.hexdigest()[:32]


def in_utc(run: str, at: datetime) -> datetime:
    """Give a time in UTC; raise `NotStorable` for one without a zone, or too far out for one."""
    if at.tzinfo is UTC:
        return at
    if at.tzinfo is None:
        raise NotStorable(run, "its time has no zone")
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise NotStorable(run, f"its time cannot be written in UTC: {error}") from error


def build(seq: int, life: int, at: datetime, prev: str, content: Sequence[bytes] | Header) -> bytes:
    """Make the bytes of one line, newline included, from events (each one JSON object) or a header. `at` is UTC."""
    begin = _begin(seq, life, at, prev)
    if isinstance(content, Header):
        text = begin + b'"header":' + msgspec.json.encode(content)
    else:
        text = b'%b"events":[%b]' % (begin, b",".join(content))
    return text + _end(digest(text))


def parse(data: bytes) -> Line:
    """Read one line (newline included) by itself; its place in the chain is the caller's to check.

    Raises `Bad` when it is not exactly a line, `Newer` when it is a whole header of another format.
    """
    if len(data) > MAX_LINE:
        raise Bad(f"a line is longer than {MAX_LINE} bytes")
    given = digest(data[:-_TAIL])
    if not data.endswith(_end(given)):
        raise Bad(_why(data))
    line = _content(data, given)
    if _is_deep(data, MAX_DEPTH + (2 if line.header is None else 1)):
        raise Bad(f"a line is nested deeper than {MAX_DEPTH}")
    return line


def ordinary(data: bytes, seq: int, life: int, prev: str) -> Line | None:
    """Read a line of events that must be this one, in one pass; None when it is not exactly as it would be written.

    The counts prove the rest: as many bytes as the fields, the events and a comma between two of them take, so there is
    no other field, no second one of a name and no space.
    """
    try:
        line = _LINE.decode(data)
        if not data.isascii():
            data.decode()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    begin = _begin(seq, life, line.at, prev) + b'"events":['
    end = len(begin)
    for event in line.events:
        if not data.startswith(b"{", end):
            return None
        end += len(event) + 1
    is_exact = (
        data.startswith(begin)
        and end + (not line.events) + _TAIL == len(data) <= MAX_LINE
        and line.sum == digest(data[:-_TAIL])
        and seq < _MOST_SEQ
        and not _is_deep(data, MAX_DEPTH + 2)
    )
    return line if is_exact else None


def compose(run: str, seq: int, life: int, at: datetime, prev: str, events: Sequence[bytes]) -> tuple[bytes, Line]:
    """Make one line of events to be saved, and what a reader reads of it. `at` is UTC. Raises `NotStorable`.

    Each event is decoded strictly, by itself, before anything is written: what cannot be read back must not be
    acknowledged. One that is exactly one JSON object cannot reach into the frame, and the frame is written here.
    """
    content = b",".join(events)
    if content.find(b"\n") >= 0:
        raise NotStorable(run, "an event holds a raw newline")
    for event in events:
        try:
            value = _ANY.decode(event)
        except RecursionError as error:  # how deep a value must be for this differs between versions of Python
            raise NotStorable(run, f"an event is nested deeper than {MAX_DEPTH}, or than the stack allows") from error
        except (msgspec.DecodeError, ValueError) as error:
            raise NotStorable(run, f"an event is not JSON that can be read back: {error}") from error
        if type(value) is not dict or event[0] != _OPEN_BRACE or event[-1] != _CLOSE_BRACE:
            raise NotStorable(run, "an event is not an object, or stands between spaces")
    if _is_deep(content, MAX_DEPTH):
        raise NotStorable(run, f"an event is nested deeper than {MAX_DEPTH}")
    text = b'%b"events":[%b]' % (_begin(seq, life, at, prev), content)
    total = digest(text)
    data = text + _end(total)
    if len(data) > MAX_LINE:
        raise NotStorable(run, f"it has {len(data)} bytes, the limit is {MAX_LINE}")
    return data, Line(seq, life, at, prev, [msgspec.Raw(event) for event in events], total)


def _why(data: bytes) -> str:
    """Say why a line has not the sum that it should have."""
    if data.endswith(b"\r\n"):
        return "a line ends in CR LF: another program changed the line ends; copy the files as binary"
    if data.startswith(b"\xef\xbb\xbf"):
        return "a line begins with a byte order mark: an editor has saved the file"
    return "a whole line has a wrong sum" if data[-_TAIL : 8 - _TAIL] == b',"sum":"' else "a line has no sum"


def _begin(seq: int, life: int, at: datetime, prev: str) -> bytes:
    time = _TIME.encode(at)
    if len(time) != _TIME_SIZE:  # on the full second it is written without a fraction; a line has six digits always
        time = time[:-2] + b'.000000Z"'
    return b'{"seq":%d,"life":%d,"at":%b,"prev":"%b",' % (seq, life, time, prev.encode())


def _end(given: str) -> bytes:
    return f',"sum":"{given}"}}\n'.encode()


def _content(data: bytes, given: str) -> Line:
    """Read what a line says before its sum, which is `given` and was compared already. The bytes are not copied."""
    match = re.match(_PREFIX, data)
    if match is None:
        raise Bad("the first fields of a line are not what they must be")
    seq, life, time, prev, has_header = match.groups()
    body = memoryview(data)[match.end() : -_TAIL]
    events: list[msgspec.Raw] = []
    header: Header | None = None
    try:
        if not data.isascii():
            data.decode()
        at = datetime.fromisoformat(time.decode())
        if has_header:
            header = _header(body)
        else:
            events = _EVENTS.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Bad(f"the content of a line cannot be read: {error}") from error
    for event in events:
        if memoryview(event)[0] != _OPEN_BRACE:
            raise Bad("an event is not an object")
    return Line(int(seq), int(life), at, prev.decode(), events, given, header)


def _header(body: memoryview) -> Header:
    json.loads(bytes(body), object_pairs_hook=_each_once, parse_int=str)
    version = _VERSION.decode(body).format
    if version != FORMAT:
        raise Newer(version)
    return _HEADER.decode(body)


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse a key that is given twice: which one counts would depend on who reads."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Bad("a header names a field twice")
    return found


def _is_deep(data: bytes, most: int) -> bool:
    """Tell whether JSON is nested deeper than `most`: how deep a library can read it differs between Pythons.

    Replacing the brackets is the fastest way to count them, and few have so many.
    """
    if 2 * len(data) - len(data.replace(b"{", b"")) - len(data.replace(b"[", b"")) <= most:
        return False
    level = 0
    for bracket in _TEXT.sub(b"", data).translate(None, _NO_BRACKETS):
        level += 1 if bracket in b"{[" else -1
        if level > most:
            return True
    return False
