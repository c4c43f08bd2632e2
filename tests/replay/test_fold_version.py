"""`FOLD_VERSION` is raised when the fold or the state changes: a snapshot of the old one must not be taken for the new.

A state that today's fold would not make, restored as if it had, is wrong in silence. So the sources of both are pinned
here, without their comments and docstrings.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from pathlib import Path

import replay

PACKAGE = Path(replay.__file__).parent
FILES = (
    *sorted(path.name for path in PACKAGE.glob("_fold*.py")),
    *("_rules.py", "_state.py", "_messages.py", "_values.py", "_history.py", "_digest.py", "_frozen.py"),
)
PINNED = (2, "c1899ef11ad3fc37")
"""The version, and the digest of what it means."""


def meaning(source: str) -> str:
    """Give a module's text without docstrings, comments, and the layout of its lines."""
    dropped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            dropped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    comments = {
        token.start
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    kept = []
    for number, line in enumerate(source.splitlines(), start=1):
        cut = next((column for row, column in comments if row == number), len(line))
        if number not in dropped:
            kept.append("".join(line[:cut].split()))
    return "".join(kept).replace(",)", ")").replace(",]", "]")


def digest() -> str:
    """Give the digest of what a state means and how it is made."""
    whole = hashlib.sha256()
    for name in FILES:
        whole.update(f"{name}\n{meaning((PACKAGE / name).read_text(encoding='utf-8'))}\n".encode())
    return whole.hexdigest()[:16]


def test_the_fold_and_the_state_are_those_of_this_version() -> None:
    """Raise `FOLD_VERSION` when a state of the same lines holds something else now; pin the new digest in any case."""
    assert (replay.FOLD_VERSION, digest()) == PINNED


def test_words_and_layout_do_not_count() -> None:
    """A better comment is no other fold; another operator is."""
    plain = 'def f(a, b):\n    """Say."""\n    return a + b  # why\n'
    assert meaning(plain) == meaning("def f(\n    a,\n    b,\n):\n    # because\n    return a + b\n")
    assert meaning(plain) != meaning(plain.replace("+", "-"))
