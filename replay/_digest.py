"""Digests: 16 bytes of SHA-256 in hex, over canonical bytes.

The conversation's digest is a chain, so that naming "all messages so far" at every ask costs one message, not the
whole history.
"""

from __future__ import annotations

import hashlib

import msgspec

from replay._messages import Message

_encoder = msgspec.json.Encoder(order="deterministic")
_sha256 = hashlib.sha256()
"""Copied for each digest: finding the algorithm anew takes as long as digesting a few hundred bytes."""


def of(data: bytes) -> str:
    """The digest of some bytes: 32 hex digits."""
    running = _sha256.copy()
    running.update(data)
    return running.hexdigest()[:32]


def of_value(value: object) -> str:
    """The digest of a value's canonical JSON (keys sorted)."""
    return of(_encoder.encode(value))


def conversation(before: str, message: Message) -> str:
    """The digest of a conversation, from the digest of all messages before the last and that last one."""
    return of(before.encode() + _encoder.encode(message))
