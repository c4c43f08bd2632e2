"""Events to bytes and back.

An event is encoded, decoded again and compared before anyone may write it: a value that JSON would bend (a NaN becomes
null, a wrong type passes a constructor) is refused here, in memory, and never found out at a resume (design, "Bytes").
A tag this version does not know is kept whole, because a later version's log must survive being read by this one.
"""

from __future__ import annotations

import msgspec

from replay import _events
from replay.errors import NotFaithful, Undecodable


class _Envelope(msgspec.Struct, frozen=True):
    type: str
    ignorable: bool = False


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_events.Known)
_envelope = msgspec.json.Decoder(_Envelope)
TAGS: frozenset[str] = frozenset(str(t.__struct_config__.tag) for t in _events.Event.__subclasses__())


def tag(event: _events.Any) -> str:
    """The event's tag on disk."""
    return event.tag if isinstance(event, _events.Unknown) else str(type(event).__struct_config__.tag)


def encode(event: _events.Any) -> bytes:
    """One event as one JSON object.

    Raises `NotFaithful` when decoding these bytes would not give the same event back.
    """
    if isinstance(event, _events.Unknown):
        return event.raw
    try:
        raw = _encoder.encode(event)
        back = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, TypeError, OverflowError, RecursionError) as error:
        raise NotFaithful(tag(event), str(error)) from error
    if back != event:
        raise NotFaithful(tag(event), "it reads back as another value")
    return raw


def decode(raw: bytes | msgspec.Raw, *, seq: int | None = None) -> _events.Any:
    """One JSON object as an event; an unknown tag comes back whole as `Unknown`.

    Raises `Undecodable`, which names line `seq`, when a known tag has fields of another type or there is no tag.
    """
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        why = str(error)
    try:
        envelope = _envelope.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Undecodable(seq, str(error)) from error
    if envelope.type in TAGS:
        raise Undecodable(seq, f"{envelope.type}: {why}")
    return _events.Unknown(envelope.type, bytes(raw), envelope.ignorable)


def encode_value(value: msgspec.Struct) -> str:
    """A value of an event as JSON text, for showing and comparing."""
    return _encoder.encode(value).decode()
