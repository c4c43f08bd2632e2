"""Names that make an effect recognisable: the key of a call, the intent of a call, the id of a run.

A key is the same for every attempt of one call in any process, and different from every other call's (spec row 17). Run
ids are never reused (row 18), which is what makes keys unguessable and unique.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec


def key(run: str, call: str) -> str:
    """The idempotency key of a call: 32 hex digits (spec row 17).

    The first 16 bytes of SHA-256 over `<length>:<bytes>` of the run's id, then of the call's; lengths are decimal and
    count UTF-8 bytes.
    """
    digest = hashlib.sha256()
    for part in (run, call):
        data = part.encode()
        digest.update(b"%d:%b" % (len(data), data))
    return digest.hexdigest()[:32]


def intent(tool: str, arguments: Mapping[str, object], once_per: Sequence[str]) -> str:
    """The intent of a call (spec row 24).

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
    """The default id of a run: name, day and eight random characters (spec row 18)."""
    safe = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-") or "run"
    return f"{safe[:64]}-{at:%Y%m%d}-{random}"
