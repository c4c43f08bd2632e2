"""A value that a tool returned, as what JSON has: bounded, with the secrets in it masked by their names."""

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import Any

import msgspec

from replay.messages import Image
from runner._agent.redact import MASK, SecretPattern, named, redact

MAX_TEXT = 1 << 20
"""The most bytes of JSON that one text may take in an event (1 MiB)."""
MAX_DEPTH = 64
MAX_DIGITS = 4000
MAX_VALUES = 1 << 20
"""The most values in one result: shared ones may stand for more than any memory holds."""
MAX_IMAGES = 5 << 20
"""The most characters of base64 that the images of one result may take together."""
MOST_IMAGES = 20
_BASE64 = re.compile("[A-Za-z0-9+/]*={0,2}")
SEEN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The kinds of images that models see."""
SLACK = 64 << 10
"""Characters beyond what is kept that are masked too: a secret is shorter."""

Secret = str | re.Pattern[str]


class Unstorable(Exception):
    """A value without a JSON form, and its place."""


def unified(name: str) -> str:
    """A name without what spellings differ in."""
    return re.sub(r"[_ -]", "", name.casefold())


@functools.lru_cache(maxsize=64)
def patterns(secrets: tuple[Secret, ...]) -> tuple[SecretPattern, ...]:
    """What finds declared secrets in a text."""
    names = [secret for secret in secrets if isinstance(secret, str)]
    return (*named(names), *(secret for secret in secrets if isinstance(secret, re.Pattern)))


def masked(text: str, secrets: Sequence[Secret]) -> str:
    return redact(text, patterns(tuple(secrets))) if secrets else text


class Walk:
    """Turns a value into what JSON has, and remembers whether anything was bent."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self.secrets = secrets
        self.names = {unified(s) for s in secrets if isinstance(s, str)}
        self.lossy = False
        self.values = 0
        self.size = 0
        self.images: list[Image] = []

    def text(self, value: object) -> str:
        """The value as JSON; of a large one, which will be cut, only the start."""
        plain, parts, size = self.plain(value, "$", 0), list[str](), 0
        if self.size <= MAX_TEXT:
            return json.dumps(plain, ensure_ascii=False, allow_nan=False)
        for part in json.JSONEncoder(ensure_ascii=False, allow_nan=False).iterencode(plain):
            parts.append(part)
            size += len(part)
            if size > MAX_TEXT + SLACK:
                break
        return "".join(parts)

    def plain(self, value: object, place: str, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise Unstorable(f"{place} is nested deeper than {MAX_DEPTH}")
        self.values += 1
        if self.values > MAX_VALUES:
            raise Unstorable(f"{place} is past the first {MAX_VALUES} values")
        try:
            if isinstance(value, enum.Enum):
                return self.plain(value.value, place, depth + 1)
            if isinstance(value, str):
                value = str.__str__(value)  # a subclass may do as it likes
                self.size += len(value)
                return value[: MAX_TEXT + SLACK + 1]
            if value is None or isinstance(value, bool):
                return value
            if isinstance(value, Image):
                return self._image(value)
            scalar = self._scalar(value, place)
            return self._inside(value, place, depth) if scalar is None else scalar
        except Unstorable:
            raise
        except Exception as problem:  # a property, an iterator or a text of the user's that raises
            raise Unstorable(f"{place} raised") from problem

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
            self.size += len(value)
            data = bytes(value[: MAX_TEXT + SLACK])
            if self.secrets:  # it may be text
                kept = masked(data.decode(errors="surrogateescape"), self.secrets)
                data = kept.encode(errors="surrogateescape")
            return base64.b64encode(data).decode()
        if isinstance(value, dt.datetime | dt.date | dt.time):
            return value.isoformat()
        if isinstance(value, dt.timedelta):
            return value.total_seconds()
        if isinstance(value, decimal.Decimal | uuid.UUID | PurePath):
            return str(value)
        return None

    def _inside(self, value: object, place: str, depth: int) -> object:
        kind: Any = type(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        elif isinstance(value, msgspec.Struct):
            value = {name: getattr(value, name) for name in value.__struct_fields__}
        elif hasattr(kind, "__attrs_attrs__"):
            value = {field.name: getattr(value, field.name) for field in kind.__attrs_attrs__}
        elif hasattr(kind, "model_dump"):  # a pydantic model says itself what is shown of it
            value = kind.model_dump(value, mode="json", by_alias=True)
        if isinstance(value, Mapping):
            named = any(self._hides(value.get(name)) for name in ("name", "key", "Name", "Key"))
            hidden = {"value", "Value"} if named else set()
            made = {
                self._name(k, place): (
                    MASK if k in hidden or self._hides(k) else self.plain(v, f"{place}.{k}", depth + 1)
                )
                for k, v in value.items()
            }
            if len(made) < len(value):
                raise Unstorable(f"{place} has two keys that are written alike")
            return made
        if isinstance(value, list | tuple):
            if len(value) == 2 and self._hides(value[0]):  # noqa: PLR2004 (a pair)
                return [value[0], MASK]
            return [self.plain(v, f"{place}[{i}]", depth + 1) for i, v in enumerate(value)]
        if isinstance(value, AbstractSet):
            return [self.plain(v, f"{place}[{i}]", depth + 1) for i, v in enumerate(sorted(value, key=repr))]
        raise Unstorable(f"{place} is {_kind(value)}")

    def _image(self, image: Image) -> str:
        """What stands for a picture in the text; one that no model sees is named all the same."""
        given: Any = image.data
        data = base64.b64encode(given).decode() if isinstance(given, bytes) else given
        size = f"{image.mime}, {len(data)} characters of base64"
        room = MAX_IMAGES - sum(len(one.data) for one in self.images)
        if image.mime not in SEEN or len(self.images) == MOST_IMAGES or len(data) > room or not _BASE64.fullmatch(data):
            self.lossy = True
            return f"[{size}, not kept]"
        self.images.append(Image(image.mime, data))
        return f"[image {len(self.images)}: {size}]"

    def _name(self, name: object, place: str) -> str:
        if isinstance(name, str):
            return name
        if isinstance(name, int | float) or name is None:
            return str(name)
        raise Unstorable(f"{place} has a key that is {_kind(name)}")

    def _hides(self, name: object) -> bool:
        return bool(self.names) and isinstance(name, str) and unified(name) in self.names


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
