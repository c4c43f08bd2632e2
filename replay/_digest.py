"""Digests: 16 bytes of SHA-256 in hex, over canonical bytes.

The conversation's digest is a chain, so that naming "all messages so far" at every ask costs one message, not the
whole history.
"""

from __future__ import annotations

import hashlib

import msgspec

from replay._messages import Message

_encoder = msgspec.json.Encoder(order="deterministic")


def of(data: bytes) -> str:
    """The digest of some bytes: 32 hex digits."""
    return hashlib.sha256(data).hexdigest()[:32]


def of_value(value: object) -> str:
    """The digest of a value's canonical JSON (keys sorted)."""
    return of(_encoder.encode(value))


def conversation(before: str, message: Message) -> str:
    """The digest of a conversation, from the digest of all messages before the last and that last one."""
    return of(before.encode() + _encoder.encode(message))
