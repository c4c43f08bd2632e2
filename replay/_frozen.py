"""A state as bytes, for a snapshot. A snapshot is a cache of the fold; the log alone is the truth.

`FOLD_VERSION` is raised whenever the same lines would give another state, or the fields of a state change. A snapshot
of another version is passed over, and the log is folded from its first line.
"""

import functools
from typing import Any, get_type_hints

import msgspec

from replay._history import History
from replay.messages import Message
from replay.state import State

FOLD_VERSION = 22


def _to_json(value: object) -> object:
    if isinstance(value, History):
        return list(value)
    raise TypeError(type(value).__name__)


_encoder = msgspec.json.Encoder(enc_hook=_to_json)


@functools.cache
def _decoder() -> msgspec.json.Decoder[Any]:
    """Reads the fields of a state, the conversation as the list that it is in JSON; all of them must be there."""
    kinds = get_type_hints(State) | {"messages": list[Message]}
    return msgspec.json.Decoder(msgspec.defstruct("Stored", [(name, kinds[name]) for name in State.__struct_fields__]))


def dump(state: State) -> bytes:
    """Turns a state into one JSON object."""
    return _encoder.encode(state)


def restore(data: bytes) -> State | None:
    """Turns what `dump` made back into a state; None if these bytes are not a state of this version."""
    try:
        stored = _decoder().decode(data)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return None
    fields = {name: getattr(stored, name) for name in State.__struct_fields__}
    return State(**fields | {"messages": History(stored.messages)})
