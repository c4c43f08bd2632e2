"""The digest of a conversation, chained: naming all messages at every request costs the new ones, not the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import replay


class Chain:
    """Remembers the digest after each message that it has seen, by the message's identity."""

    def __init__(self) -> None:
        self._seen: list[tuple[Any, str]] = []

    def __contains__(self, digest: str) -> bool:
        """Whether what was digested last begins with what this is the digest of."""
        return any(known == digest for _, known in self._seen)

    def digest(self, messages: Sequence[Any], dump: Callable[[Any], bytes]) -> str:
        """The digest of these messages. Only those after the last common one are dumped and hashed."""
        same = 0
        for (known, _), message in zip(self._seen, messages, strict=False):
            if known is not message:
                break
            same += 1
        del self._seen[same:]
        so_far = self._seen[-1][1] if self._seen else ""
        for message in messages[same:]:
            so_far = replay.digest(so_far.encode() + dump(message))
            self._seen.append((message, so_far))
        return so_far
