"""The frame: bytes to lines and back, without any file.

The rule: a line that this module accepts is exactly a line that this module writes, for every field but the events
and the header, which are kept as they are. So the number of the next line comes from frames alone, and a changed bit
cannot hide in a field that a lenient reader would skip. The sum is the last field and covers every byte before it,
therefore one mechanism serves torn writes, corruption and audit. It does not stop someone who rewrites the whole log:
that shows only to a person who kept a later `sum` elsewhere.

An ordinary line is decoded in one pass and then held against what the writer would have written of the same values,
byte by byte at its beginning and by the count of bytes behind it. Whatever does not fit exactly goes through the strict
pattern, which also says what is wrong.

What the writer checks beyond its own reader: an event is one JSON object without a raw newline, it decodes (a lone
surrogate or a number beyond range would pass the frame and fail later, in the fold), and it is not nested so deeply
that a reader with less stack left would fail.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from eventlog._line import Header, Line
from eventlog.errors import NotStorable

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT: Final = 1
MAX_LINE: Final = 16 * 1024 * 1024
MAX_DEPTH: Final = 128
NO_SUM: Final = "0" * 32
"""`prev` of the first line."""

_TAIL = len(b',"sum":"' + b"0" * 32 + b'"}\n')
_PREFIX = re.compile(
    rb'\{"seq":(0|[1-9][0-9]{0,17}),"life":([1-9][0-9]{0,8}),'
    rb'"at":"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z)",'
    rb'"prev":"([0-9a-f]{32})",(?:"events":(?=\[)|"header":(?=(\{)))',
)
_LINE = msgspec.json.Decoder(Line)
_EVENTS = msgspec.json.Decoder(list[msgspec.Raw])
_HEADER = msgspec.json.Decoder(Header)
_ANY = msgspec.json.Decoder()
_TIME = msgspec.json.Encoder()
_TIME_SIZE = len('"2026-11-29T15:14:58.123456Z"')
_OPEN_BRACE = ord("{")
_MOST_SEQ: Final = 10**18
_MOST_LIFE: Final = 10**9
_SUM = re.compile("[0-9a-f]{32}")
_SHA256 = hashlib.sha256()
"""Copied for each sum: finding the algorithm anew takes as long as a short line's sum."""


class _Version(msgspec.Struct):
    format: int


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
        raise Bad("a whole line has a wrong sum" if data[-_TAIL : 8 - _TAIL] == b',"sum":"' else "a line has no sum")
    return _plain(data) or _content(data, given)


def checked(run: str, data: bytes, events: Sequence[bytes]) -> Line:
    """Read a built line back with the reader's own parser and compare; raise `NotStorable` unless it is the same.

    Called before anything is written: what cannot be read back must not be acknowledged (hazard 14).
    """
    if len(data) > MAX_LINE:
        raise NotStorable(run, f"it has {len(data)} bytes, the limit is {MAX_LINE}")
    if data.find(b"\n") != len(data) - 1:
        raise NotStorable(run, "an event holds a raw newline")
    is_shallow = _openers(data) <= MAX_DEPTH
    for event in events:
        try:
            value = _ANY.decode(event)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise NotStorable(run, f"an event is not JSON that can be read back: {error}") from error
        if not isinstance(value, dict):
            raise NotStorable(run, "an event is not an object")
        if not (is_shallow or _is_shallow(value)):
            raise NotStorable(run, f"an event is nested deeper than {MAX_DEPTH}")
    try:
        line = _plain(data) or _content(data, data[8 - _TAIL : -3].decode())
    except Bad as error:
        raise NotStorable(run, str(error)) from error
    if [bytes(event) for event in line.events] != list(events):
        raise NotStorable(run, "its events read back differently")
    return line


def _begin(seq: int, life: int, at: datetime, prev: str) -> bytes:
    time = _TIME.encode(at)
    if len(time) != _TIME_SIZE:  # on the full second it is written without a fraction; a line has six digits always
        time = time[:-2] + b'.000000Z"'
    return b'{"seq":%d,"life":%d,"at":%b,"prev":"%b",' % (seq, life, time, prev.encode())


def _end(given: str) -> bytes:
    return f',"sum":"{given}"}}\n'.encode()


def _plain(data: bytes) -> Line | None:
    """Read an ordinary line of events in one pass; None when it is a header's, or not exactly as it would be written.

    The counts prove the rest: as many bytes as the fields, the events and a comma between two of them take, so there is
    no other field, no second one of a name and no space. Whether the sum is right the caller knows.
    """
    try:
        line = _LINE.decode(data)
        if not data.isascii():
            data.decode()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    begin = _begin(line.seq, line.life, line.at, line.prev) + b'"events":['
    end = len(begin)
    for event in line.events:
        if not data.startswith(b"{", end):
            return None
        end += len(event) + 1
    is_exact = (
        end + (not line.events) + _TAIL == len(data)
        and data.startswith(begin)
        and 0 <= line.seq < _MOST_SEQ
        and 0 < line.life < _MOST_LIFE
        and _SUM.fullmatch(line.prev) is not None
    )
    return line if is_exact else None


def _content(data: bytes, given: str) -> Line:
    """Read what a line says before its sum, which is `given` and was compared already. The bytes are not copied."""
    match = _PREFIX.match(data)
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
    version = _VERSION.decode(body).format
    if version != FORMAT:
        raise Newer(version)
    return _HEADER.decode(body)


def _openers(data: bytes) -> int:
    """Count the brackets that may open a level: nothing is nested deeper. Replacing them is the fastest count."""
    return 2 * len(data) - len(data.replace(b"{", b"")) - len(data.replace(b"[", b""))


def _is_shallow(value: dict[str, object]) -> bool:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for outer in level:
            values = outer.values() if type(outer) is dict else outer
            inner += [item for item in values if type(item) is dict or type(item) is list]  # type: ignore[attr-defined] # a list
        if not inner:
            return True
        level = inner
    return False
