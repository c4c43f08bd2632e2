"""Events to bytes and back, states for snapshots, and digests of both.

An event is encoded, decoded and compared before it may be written. So a value that JSON would change (a NaN becomes
null, and a constructor checks no types) is refused in memory, and not found out at a resume.
An event whose tag this version does not know is kept whole: a later version may have written it.
A snapshot is a cache of the fold; the log alone is the truth.
A digest is the first 16 bytes of SHA-256, in hex.
"""

import functools
import hashlib
import operator
from collections.abc import Iterable
from typing import Any, get_type_hints

import msgspec

from replay._event import EVENTS, Event
from replay._history import History
from replay.errors import NotFaithful, Undecodable
from replay.events import AnyEvent, UnknownEvent
from replay.messages import Message
from replay.state import State

FOLD_VERSION = 25
"""Raised whenever the same lines would give another state, or the fields of a state change. A snapshot of another
version is passed over, and the log is folded from its first line."""


class _Envelope(msgspec.Struct, frozen=True):
    type: str
    ignorable: bool = False


_encoder = msgspec.json.Encoder()


@functools.cache
def _decoder() -> msgspec.json.Decoder[Event]:
    """Made when it is first used: a program that lists runs decodes no event."""
    return msgspec.json.Decoder(functools.reduce(operator.or_, EVENTS.values()))


def tag(event: AnyEvent) -> str:
    """The event's tag on disk."""
    return event.tag if isinstance(event, UnknownEvent) else str(type(event).__struct_config__.tag)


def encode(event: AnyEvent) -> bytes:
    """One event as one JSON object.

    Raises `NotFaithful` when decoding these bytes would not give the same event back.
    """
    if isinstance(event, UnknownEvent):
        return event.raw
    try:
        raw = _encoder.encode(event)
        back = _decoder().decode(raw)
    except (msgspec.MsgspecError, UnicodeError, TypeError, OverflowError, RecursionError) as error:
        raise NotFaithful(tag(event), str(error)) from error
    if back != event:
        raise NotFaithful(tag(event), "it reads back as another value")
    return raw


def decode(raw: bytes | msgspec.Raw, *, seq: int | None = None) -> AnyEvent:
    """One JSON object as an event; an unknown tag comes back whole as `UnknownEvent`.

    Raises `Undecodable`, which names line `seq`, when a known tag has fields of another type or there is no tag.
    """
    try:
        return _decoder().decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        why = str(error)
    try:
        envelope = msgspec.json.decode(raw, type=_Envelope)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Undecodable(seq, str(error)) from error
    if envelope.type in EVENTS:
        raise Undecodable(seq, f"{envelope.type}: {why}")
    return UnknownEvent(envelope.type, bytes(raw), envelope.ignorable)


def decode_all(raws: list[msgspec.Raw], seq: int) -> Iterable[AnyEvent]:
    """What `decode` makes of each event of line `seq`. It raises for one only when those before it were taken."""
    try:
        return list(map(_decoder().decode, raws))
    except (msgspec.MsgspecError, RecursionError):
        return (decode(raw, seq=seq) for raw in raws)


_state_encoder = msgspec.json.Encoder(enc_hook=list)  # a history is the one part for which JSON has no form


@functools.cache
def _state_decoder() -> msgspec.json.Decoder[Any]:
    """Reads the fields of a state, the conversation as the list that it is in JSON; all of them must be there."""
    kinds = get_type_hints(State) | {"messages": list[Message]}
    return msgspec.json.Decoder(msgspec.defstruct("Stored", [(name, kinds[name]) for name in State.__struct_fields__]))


def dump(state: State) -> bytes:
    """Turns a state into one JSON object."""
    return _state_encoder.encode(state)


def restore(data: bytes) -> State | None:
    """Turns what `dump` made back into a state; None if these bytes are not a state of this version."""
    try:
        stored = _state_decoder().decode(data)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return None
    fields = {name: getattr(stored, name) for name in State.__struct_fields__}
    return State(**fields | {"messages": History(stored.messages)})


_sorted = msgspec.json.Encoder(order="deterministic")
_sha256 = hashlib.sha256()
"""Copied for each digest. Looking the algorithm up takes as long as digesting a few hundred bytes."""


def digest(*parts: bytes) -> str:
    """Digests bytes, in parts that need not be joined, into 32 hex digits."""
    running = _sha256.copy()
    for part in parts:
        running.update(part)
    return running.hexdigest()[:32]


def digest_value(value: object) -> str:
    """Digests the canonical JSON of a value (its keys sorted) into 32 hex digits."""
    return digest(_sorted.encode(value))


def digest_conversation(before: str, message: Message) -> str:
    """Digests a conversation, given the digest of all messages before the last one.

    It is a chain, so that the digest of all messages so far costs one message at each request, not the whole history.
    """
    return digest(before.encode(), _sorted.encode(message))
