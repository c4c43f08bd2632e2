"""Masks: what looks like a secret is not shown to whoever gets a copy.

A log holds whatever the agent read and is kept under its owner's permissions (spec row 12). A page or a test that is
made from it goes elsewhere, so secrets are masked there by their shape. A shape is a guess: it finds the tokens that
services mark as theirs, and names that say what stands behind them; a secret that looks like any other word needs a
pattern of the user's. The word that names a secret stays, so that a reader sees what was there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "[secret]"
"""What stands where a secret stood."""

_NAMES = (
    r"(?:api|access|auth|secret|private|client|session|refresh)[_\- ]?(?:key|token|secret)"
    r"|passw(?:or)?d|passphrase|pwd|secret|token|credentials?"
)
_LINE = r"(?<=\\[bfnrt])"
"""Behind a line break as JSON writes it, a backslash and a letter: what a log holds is JSON, and JSON within JSON."""

_START = rf"(?:(?<![A-Za-z0-9_-])|{_LINE})"
"""Where a token can begin: never inside another, so that no text is read more than once for each pattern."""

SECRETS: tuple[re.Pattern[str], ...] = (
    re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", re.DOTALL),
    re.compile(_START + r"(?:[sprw]k[-_]|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|hf_|npm_|pypi-)[\w-]{16,}"),
    re.compile(_START + r"(?:(?:AKIA|ASIA|AROA)[A-Z0-9]{16}(?![A-Za-z0-9])|AIza[\w-]{30,}|ya29\.[\w-]{20,})"),
    re.compile(_START + r"ey[A-Za-z0-9_-]{8,}+\.ey[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*)?"),
    re.compile(rf"(?i)(?P<keep>(?:\b|{_LINE})(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{{12,}}"),
    re.compile(r"(?P<keep>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,200}:)[^\s/@\"']{1,500}(?=@)"),
    re.compile(
        rf"(?i)(?P<keep>(?:\b|_|{_LINE})(?:{_NAMES})\\{{0,9}}[\"']?\s{{0,20}}[:=]\s{{0,20}}\\{{0,9}}[\"']?)"
        r"(?!\[secret\])[^\s\"'\\,;&<>)}\]]{4,}"
    ),
)
"""Tokens of known services, private keys, JSON web tokens, passwords in addresses, and `password=...` and its like.

The group `keep`, where a pattern has one, stays.
"""


def masked(text: str, patterns: Sequence[re.Pattern[str]] = SECRETS) -> str:
    """`text` with `[secret]` in the place of every match of a pattern. Masking twice changes nothing more."""
    for pattern in patterns:
        text = pattern.sub(_mask, text)
    return text


def _mask(found: re.Match[str]) -> str:
    return f"{found.groupdict().get('keep') or ''}{MASK}"
