"""Names that make an effect recognisable: the key of a call, the intent of a call, the id of a run.

A key is the same for every attempt of one call in any process, and different from every other call's. It is made of the
run's `uid`, which is drawn at its start: the name of a run may be used again once its directory is deleted, its
identity never.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

import replay

UID = 16
"""The random bytes of a run's uid."""


def key(uid: str, call: str) -> str:
    """The idempotency key of a call: 32 hex digits.

    The first 16 bytes of SHA-256 over `<length>:<bytes>` of the run's uid, then of the call's id; lengths are decimal
    and count UTF-8 bytes.
    """
    if not all(isinstance(part, str) for part in (uid, call)):
        raise TypeError(
            f"a key is made of two texts, a run's uid and a call's id, not of {uid!r:.200} and {call!r:.200}"
        )
    parts = (uid.encode(), call.encode())
    return replay.digest(b"".join([b"%d:%b" % (len(part), part) for part in parts]))


def intent(tool: str, arguments: Mapping[str, object], once_per: Sequence[str]) -> str:
    """The intent of a call: what it does, however its other arguments are written.

    A digest of its tool and of the canonical JSON of the arguments named by `once_per`.
    """
    plain = msgspec.to_builtins({name: arguments.get(name) for name in once_per}, str_keys=True, order="sorted")
    chosen = json.dumps(_whole(plain), sort_keys=True, separators=(",", ":"))
    return key(tool, chosen)


def _whole(value: object) -> object:
    """`value` with 1.0 written as 1: they are one number in JSON."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(member) for member in value]
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    return value


def run_id(name: str, at: datetime, random: str) -> str:
    """The default id of a run: name, day and eight random characters."""
    return f"{_safe(name)}-{at:%Y%m%d}-{random}"


def child_id(agent: str, uid: str) -> str:
    """The id of a child run: its agent, and the first sixteen digits of the identity that its call gives it."""
    return f"{_safe(agent)}-{uid[:16]}"


def _safe(name: str) -> str:
    safe = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-") or "run"
    return safe[:64]
