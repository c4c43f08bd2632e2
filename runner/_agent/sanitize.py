"""Everything that comes from a model, a tool or a person is made storable here, before anything else uses it.

A save can't fail because of content. What UTF-8 cannot hold becomes U+FFFD, NaN stays visible as text,
depth and size are bounded with a clear result, and a value that has no JSON form is named by its place (`$.a[0].b`).
A call that ran has run: a result that can't be stored is still recorded as `ran`, saying so, and is never a reason to
repeat the call. Secrets that a tool declares are masked here, so no log ever holds them.
"""

import bisect
import json
import re
import traceback
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from replay.messages import Image
from runner._agent import json_text
from runner._agent.plain import MAX_TEXT, SLACK, Secret, Unstorable, Walk, masked, unified
from runner._agent.redact import redact
from runner._urls import bare_urls
from runner.errors import NoName

MAX_ERROR = 4 << 10
MAX_TRACE = 8 << 10
MAX_NAME = 1 << 10
MAX_RAW = 4 << 20
MAX_FRAMES = 50
MAX_WAIT = 366 * 86400.0

_PACKAGE = str(Path(__file__).parents[1])
POLICY_NAME = "policy:"
"""How the name begins in which approvals are answered that nobody was asked."""

_LEAST_SECRET = 4
"""Characters of an argument's value that can be told from any other text."""

_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and signs that are drawn as nothing."""
_encoder = msgspec.json.Encoder()


class Stored(msgspec.Struct, frozen=True):
    """A result that any save can hold; `lossy` when it is not exactly what came."""

    text: str
    lossy: bool
    images: tuple[Image, ...] = ()

    def fields(self) -> dict[str, Any]:
        """The same as fields of an event, which has no images where there are none."""
        return {"text": self.text, "lossy": self.lossy, "images": self.images or msgspec.UNSET}


def clean(text: str, limit: int = MAX_TEXT, came: int = 0) -> str:
    """`text` with lone surrogates replaced and cut to `limit` bytes of JSON, saying so at its end.

    `came`: how long it was, if this is only its start. What is cut off is not copied: it may be of any size.
    """
    if came <= len(text) <= limit // 6 and text.isascii():  # most texts
        return text
    whole, came = json_text.without_surrogates(text[:limit]), max(came, len(text))
    if came <= limit and (came * 6 <= limit or len(_encoder.encode(whole)) <= limit):
        return whole
    note = f"\n[cut here: {came} characters came]"
    lengths, room = range(1, min(len(whole), limit) + 1), limit - len(note) - 2
    return whole[: bisect.bisect_right(lengths, room, key=lambda n: len(_encoder.encode(whole[:n])))] + note


def name(who: str, what: str) -> str:
    """The name of who decides. Raises `NoName` when nothing of it can be seen, or when it is the policy's own."""
    if not isinstance(who, str):
        raise NoName(what)
    stored = clean(who, MAX_NAME).strip()
    seen = "".join(letter for letter in unicodedata.normalize("NFKC", stored) if _is_seen(letter))
    if not seen or seen.casefold().startswith(POLICY_NAME):
        raise NoName(what)
    return stored


def _is_seen(letter: str) -> bool:
    """Whether a letter, digit or sign shows by itself; a mark needs another one to stand on."""
    return unicodedata.category(letter)[0] in "LNPS" and letter not in _BLANK


def error(what: BaseException | str, secrets: Sequence[Secret] = ()) -> str:
    """An error as one bounded sentence with the type's name, what matches a secret's pattern masked."""
    try:
        said = str(what)
        named = "" if isinstance(what, str) else f"{type(what).__name__}: "
    except Exception:  # noqa: BLE001 (an error of the user's, whose own text raises)
        said, named = "", type(what).__name__
    text = named + said[: MAX_ERROR + SLACK]
    return clean(masked(bare_urls(text), secrets), MAX_ERROR, len(said) if len(said) > len(text) else 0)


def trace(what: BaseException, secrets: Sequence[Secret] = ()) -> str:
    """The traceback of an exception without the frames of this package: its end, bounded, with secrets masked."""
    whole = traceback.TracebackException.from_exception(what, limit=-MAX_FRAMES)
    whole.stack = traceback.StackSummary.from_list(f for f in whole.stack if not f.filename.startswith(_PACKAGE))
    text = masked(redact(bare_urls("".join(whole.format())[-MAX_TEXT:])), secrets).rstrip()
    data = json_text.without_surrogates(text).encode()
    return data.decode() if len(data) <= MAX_TRACE else "..." + data[3 - MAX_TRACE :].decode(errors="ignore")


def secrets_of(declared: Sequence[Secret], arguments: Mapping[str, object]) -> tuple[Secret, ...]:
    """What is masked of a call: what its tool declares, and the values of the arguments that have such a name."""
    if not declared:
        return ()
    names = {unified(secret) for secret in declared if isinstance(secret, str)}
    return (*declared, *(re.compile(re.escape(value)) for value in _values(arguments, names, hidden=False)))


def _values(value: object, names: set[str], *, hidden: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from _values(member, names, hidden=hidden or unified(str(name)) in names)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _values(member, names, hidden=hidden)
    elif hidden and isinstance(value, str) and len(value) >= _LEAST_SECRET:
        yield value


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
    if isinstance(value, str):
        value = str.__str__(value)  # a subclass may do as it likes
        value = _json(value, secrets) if secrets else value
        if isinstance(value, str):
            return _stored(value, secrets)
    walk = Walk(secrets)
    try:
        text = walk.text(value)
    except Unstorable as problem:
        cause = f" {error(problem.__cause__)}" if problem.__cause__ is not None else ""
        return Stored(f"The call ran, but its result can't be stored: {problem}{cause}.", lossy=True)
    stored = _stored(text, secrets, walk.size)
    return Stored(stored.text, walk.lossy or stored.lossy, tuple(walk.images))


def _stored(text: str, secrets: Sequence[Secret], came: int = 0) -> Stored:
    """`text` masked and cut. A secret may stand across the cut, so more is masked than is kept."""
    if len(text) <= MAX_TEXT + SLACK:
        said, came = masked(text, secrets) if secrets else text, 0
    else:
        said, came = masked(text[: MAX_TEXT + SLACK], secrets)[:-SLACK], max(came, len(text))
    kept = clean(said, came=came)
    return Stored(kept, kept != said)


def _json(text: str, secrets: Sequence[Secret]) -> object:
    """The value of a text that is JSON, if a secret stands in it by its name; else the text."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        value = json.loads(text)
        return text if Walk(secrets).plain(value, "$", 0) == value else value
    except (ValueError, RecursionError, Unstorable):
        return text


def raw(text: str, secrets: Sequence[Secret] = ()) -> str:
    """A framework's own words; empty where they can't be kept as they are, or hold what is to be masked."""
    return "" if secrets or clean(text, MAX_RAW) != text else text
