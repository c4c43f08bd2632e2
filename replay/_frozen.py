"""A state as bytes, for a snapshot. A snapshot is a cache of the fold; the log alone is the truth.

`FOLD_VERSION` is raised whenever the same lines would give another state, or the fields of a state change. A snapshot
of another version is passed over, and the log is folded from its first line.
"""

import functools
from typing import Any, get_origin

import msgspec

from replay._history import History
from replay.messages import Message
from replay.state import State

FOLD_VERSION = 22


def _to_json(value: object) -> object:
    if isinstance(value, History):
        return list(value)
    raise TypeError(type(value).__name__)


def _from_json(kind: type, value: Any) -> object:
    if (get_origin(kind) or kind) is History:
        return History(msgspec.convert(value, list[Message]))
    raise TypeError(str(kind))


_encoder = msgspec.json.Encoder(enc_hook=_to_json)


@functools.cache
def _decoder() -> msgspec.json.Decoder[State]:
    return msgspec.json.Decoder(State, dec_hook=_from_json)


def dump(state: State) -> bytes:
    """Turns a state into one JSON object."""
    return _encoder.encode(state)


def restore(data: bytes) -> State | None:
    """Turns what `dump` made back into a state; None if these bytes are not a state of this version."""
    try:
        return _decoder().decode(data)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return None
