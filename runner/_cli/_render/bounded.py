"""What an assistant is given of a run: data without what looks like a secret, and no more than it can read."""

from typing import Any

import runner

MOST = 64_000
"""Characters of one answer."""

_CUTS = ((4_000, 500), (1_000, 100), (200, 30), (60, 10), (20, 3))
"""Characters of a text and members of a list, step by step, until the answer fits."""


def bounded(value: Any, size: int) -> Any:
    """`value`, masked, and cut until it takes about `MOST` characters; `size` is how many it has now."""
    value = runner.review.redact(value)
    for text, members in _CUTS:
        if size <= MOST:
            break
        value, size = _cut(value, text, members)
    return value


def _cut(value: Any, text: int, members: int) -> tuple[Any, int]:
    """`value` with shorter texts and lists, and about how many characters it takes."""
    if isinstance(value, str):
        short = value if len(value) <= text else f"{value[:text]}... [cut: {len(value):,} characters]"
        return short, len(short) + 4
    if isinstance(value, dict):
        some = list(value.items())[:members]
        made = {key[:text]: _cut(member, text, members) for key, member in some}
        return {key: member for key, (member, _) in made.items()}, sum(len(k) + n + 6 for k, (_, n) in made.items()) + 4
    if isinstance(value, list):
        kept = [_cut(member, text, members) for member in value[:members]]
        rest = [f"[cut: {len(value):,} members]"] if len(value) > members else []
        return [*(member for member, _ in kept), *rest], sum(n + 4 for _, n in kept) + 40
    return value, 20
