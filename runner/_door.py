"""The door: everything that comes from a model, a tool or a person is made storable here, before anything else sees it.

A save can't fail because of content (spec row 10). What UTF-8 cannot hold becomes U+FFFD, NaN stays visible as text,
depth and size are bounded with a clear result, and a value that has no JSON form is named by its place (`$.a[0].b`).
A call that ran has run: a result that can't be stored is still recorded as `ran`, saying so, and is never a reason to
repeat the call. Secrets that a tool declares are masked here, so no log ever holds them (row 12).
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import NamedTuple

import msgspec

MAX_TEXT = 1 << 20
"""The most bytes of JSON that one text may take in an event (1 MiB)."""
MAX_ERROR = 4 << 10
MAX_NAME = 1 << 10
MAX_DEPTH = 64
MAX_DIGITS = 4000
MAX_VALUES = 1 << 20
"""The most values in one result: shared ones may stand for more than any memory holds."""
MAX_WAIT = 366 * 86400.0
MASK = "[secret]"

_SURROGATES = re.compile("[\ud800-\udfff]")
_encoder = msgspec.json.Encoder()

Secret = str | re.Pattern[str]


class Stored(NamedTuple):
    """Text that any save can hold; `lossy` when it is not exactly what came."""

    text: str
    lossy: bool


class Unstorable(Exception):
    """A value without a JSON form, and its place."""


def clean(text: str, limit: int = MAX_TEXT) -> Stored:
    """`text` with lone surrogates replaced and cut to `limit` bytes of JSON, saying so at its end."""
    whole = _SURROGATES.sub("\ufffd", text)
    lossy = whole != text
    if len(whole) * 6 <= limit or len(_encoder.encode(whole)) <= limit:
        return Stored(whole, lossy)
    note = f"\n[cut here: {len(whole)} characters came]"
    low, high = 0, min(len(whole), limit)
    while low < high:
        middle = (low + high + 1) // 2
        if len(_encoder.encode(whole[:middle])) <= limit - len(note) - 2:
            low = middle
        else:
            high = middle - 1
    return Stored(whole[:low] + note, lossy=True)


def error(what: BaseException | str, secrets: Sequence[Secret] = ()) -> str:
    """An error as one bounded sentence with the type's name, what matches a secret's pattern masked."""
    try:
        text = what if isinstance(what, str) else f"{type(what).__name__}: {what}"
    except Exception:  # noqa: BLE001 (an error of the user's, whose own text raises)
        text = type(what).__name__
    return clean(_masked(text, secrets), MAX_ERROR).text


def _masked(text: str, secrets: Sequence[Secret]) -> str:
    for secret in secrets:
        if isinstance(secret, re.Pattern):
            text = secret.sub(MASK, text)
    return text


def seconds(value: object) -> float | None:
    """A wait that somebody asked for, in seconds; None when what came is no time that anyone can wait."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_WAIT:
        return None
    return float(value)


def result(value: object, secrets: Sequence[Secret] = ()) -> Stored:
    """A tool's return value as the text that the model, the log and every later life see.

    A string stays as it is, anything else becomes JSON. Never raises: a value that can't be stored gives a sentence
    that names its place.
    """
    lossy = False
    if isinstance(value, str):
        text = value
    else:
        walk = _Walk(secrets)
        try:
            text = json.dumps(walk.plain(value, "$", 0), ensure_ascii=False, allow_nan=False)
        except Unstorable as problem:
            return Stored(f"The call ran, but its result can't be stored: {problem}.", lossy=True)
        lossy = walk.lossy
    stored = clean(_masked(text, secrets))
    return Stored(stored.text, lossy or stored.lossy)


class _Walk:
    """Turns a value into what JSON has, and remembers whether anything was bent."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self.names = {s for s in secrets if isinstance(s, str)}
        self.lossy = False
        self.values = 0

    def plain(self, value: object, place: str, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise Unstorable(f"{place} is nested deeper than {MAX_DEPTH}")
        self.values += 1
        if self.values > MAX_VALUES:
            raise Unstorable(f"{place} is past the first {MAX_VALUES} values")
        try:
            if isinstance(value, enum.Enum):
                return self.plain(value.value, place, depth + 1)
            if value is None or isinstance(value, bool | str):
                return value
            scalar = self._scalar(value, place)
            return self._inside(value, place, depth) if scalar is None else scalar
        except Unstorable:
            raise
        except Exception as problem:  # a property, an iterator or a text of the user's that raises
            raise Unstorable(f"{place} raised {error(problem)}") from problem

    def _scalar(self, value: object, place: str) -> object:  # noqa: PLR0911 (one line a type)
        if isinstance(value, int):
            if value.bit_length() > MAX_DIGITS * 3:
                raise Unstorable(f"{place} is an integer of about {value.bit_length() * 3 // 10} digits")
            return int(value)
        if isinstance(value, float):
            if math.isfinite(value):
                return float(value)
            self.lossy = True
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        if isinstance(value, bytes | bytearray | memoryview):
            self.lossy = True
            return base64.b64encode(bytes(value)).decode()
        if isinstance(value, dt.datetime | dt.date | dt.time):
            return value.isoformat()
        if isinstance(value, dt.timedelta):
            return value.total_seconds()
        if isinstance(value, decimal.Decimal | uuid.UUID | PurePath):
            return str(value)
        return None

    def _inside(self, value: object, place: str, depth: int) -> object:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        elif isinstance(value, msgspec.Struct):
            value = {name: getattr(value, name) for name in value.__struct_fields__}
        if isinstance(value, Mapping):
            return {self._name(k, place): self._member(k, v, place, depth) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(v, f"{place}[{i}]", depth + 1) for i, v in enumerate(value)]
        if isinstance(value, AbstractSet):
            self.lossy = True
            return [self.plain(v, f"{place}[{i}]", depth + 1) for i, v in enumerate(sorted(value, key=repr))]
        raise Unstorable(f"{place} is {_kind(value)}")

    def _name(self, name: object, place: str) -> str:
        if isinstance(name, str):
            return name
        if isinstance(name, int | float) or name is None:
            self.lossy = True
            return str(name)
        raise Unstorable(f"{place} has a key that is {_kind(name)}")

    def _member(self, name: object, value: object, place: str, depth: int) -> object:
        if name in self.names:
            return MASK
        return self.plain(value, f"{place}.{name}", depth + 1)


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
