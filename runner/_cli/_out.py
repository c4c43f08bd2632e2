"""What is printed: results on stdout, everything about how they came on stderr, nothing that a terminal would obey.

A log holds whatever a model or a tool said. Shown to a person it must not move the cursor, colour the screen or turn
the line around, so every control character is shown by its number. JSON is printed in ASCII for the same reason, and
because it is then right in every locale.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import msgspec

Row = tuple[str, str]

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def shown(text: str) -> str:
    """`text` with what a terminal would obey shown by its number; line breaks and tabs stay."""
    return _CONTROL.sub(_number, text)


def line(text: str, most: int | None = None) -> str:
    """`text` on one line, at most `most` characters of it."""
    flat = shown(text).replace("\n", "\\n").replace("\t", "\\t")
    return flat if most is None or len(flat) <= most else f"{flat[: max(most - 3, 0)]}..."


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"  # noqa: PLR2004 (what two hex digits hold)


def out(text: str = "") -> None:
    """A result, for people."""
    _write(sys.stdout, shown(text))


def err(text: str) -> None:
    """Something about the way to the result, for people."""
    _write(sys.stderr, shown(text))


def as_json(value: Any, indent: int | None = 2) -> None:
    """A result, for programs; on one line when `indent` is None."""
    _write(sys.stdout, json.dumps(msgspec.to_builtins(value), indent=indent))


def _write(stream: TextIO, text: str) -> None:
    """One piece of text in the stream's own encoding, at once, so that a reader who has gone is noticed here."""
    stream.write(f"{text}\n")
    stream.flush()


def on_terminal() -> bool:
    """Whether a person reads stdout."""
    return sys.stdout.isatty()


def heading(text: str) -> None:
    """A line that others stand below."""
    if on_terminal():
        from rich.text import Text

        _print(Text(shown(text), style="bold"))
        return
    out(text)


def rows(pairs: Sequence[Row]) -> None:
    """Named values below each other, the values lined up."""
    if on_terminal():
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        for name, value in pairs:
            grid.add_row(Text(name, style="bold"), Text(shown(value)))
        _print(grid)
        return
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        out(f"{name:<{width}}  {value}".rstrip().replace("\n", "\n" + " " * (width + 2)))


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> None:
    """A table with one line for each row; on a terminal it folds its cells into the width there is."""
    if on_terminal():
        from rich import box
        from rich.table import Table
        from rich.text import Text

        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        for name in head:
            grid.add_column(name, overflow="fold")
        for cells in body:
            grid.add_row(*(Text(line(cell)) for cell in cells))
        _print(grid)
        return
    flat = [list(head), *([line(cell) for cell in cells] for cells in body)]
    widths = [max(len(row[column]) for row in flat) for column in range(len(head))]
    for row in flat:
        out("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _print(thing: object) -> None:
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(thing)
