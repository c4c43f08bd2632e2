"""A state as bytes, for a snapshot: a cache of the fold, never the truth (spec row 14).

`FOLD_VERSION` names what the fold means. It is raised whenever a state of the same lines would hold something else, or
a state's shape changes; a snapshot of another version is then passed over and the log is folded from its first line.
"""

from __future__ import annotations

from typing import Any, get_origin

import msgspec

from replay._history import History
from replay._messages import Message
from replay._state import State

FOLD_VERSION = 2


def _plain(value: object) -> object:
    if isinstance(value, History):
        return list(value)
    raise TypeError(type(value).__name__)


def _whole(kind: type, value: Any) -> object:
    if (get_origin(kind) or kind) is History:
        return History(msgspec.convert(value, list[Message]))
    raise TypeError(str(kind))


_encoder = msgspec.json.Encoder(enc_hook=_plain)
_decoder = msgspec.json.Decoder(State, dec_hook=_whole)


def dump(state: State) -> bytes:
    """The state as one JSON object."""
    return _encoder.encode(state)


def restore(data: bytes) -> State | None:
    """The state that `dump` gave, or None when these bytes are none of this version's."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return None
