"""Digests: the first 16 bytes of SHA-256, in hex.

The digest of a conversation is a chain: each is made of the one before and one message. So the digest of "all messages
so far" costs one message at each request, not the whole history.
"""

import hashlib

import msgspec

from replay.messages import Message

_encoder = msgspec.json.Encoder(order="deterministic")
_sha256 = hashlib.sha256()
"""Copied for each digest. Looking the algorithm up takes as long as digesting a few hundred bytes."""


def of(data: bytes) -> str:
    """Digests bytes into 32 hex digits."""
    running = _sha256.copy()
    running.update(data)
    return running.hexdigest()[:32]


def of_value(value: object) -> str:
    """Digests the canonical JSON of a value (its keys sorted) into 32 hex digits."""
    return of(_encoder.encode(value))


def conversation(before: str, message: Message) -> str:
    """Digests a conversation, given the digest of all messages before the last one."""
    return of(before.encode() + _encoder.encode(message))
