"""What is printed: results on stdout, everything about how they came on stderr, nothing that a terminal would obey.

JSON is printed in ASCII, which no terminal obeys and every locale shows.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from runner._cli._render.escape import MARK, escape, one_line

if TYPE_CHECKING:  # a line in a pipe needs none of it
    from rich.console import Console
    from rich.text import Text

Row = tuple[str, str | None]
"""A name and its value; a row whose value is None is left out."""

_LEAST = 9
"""Characters of a column that make it worth showing."""


def out(text: str = "") -> None:
    """A result, for people."""
    _write(sys.stdout, escape(text))


def err(text: str) -> None:
    """Something about the way to the result, for people."""
    _write(sys.stderr, escape(text))


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

        _print(Text(escape(text), style="bold"))
        return
    out(text)


def rows(pairs: Iterable[Row]) -> None:
    """Named values below each other, the values lined up. A command in a value stays on one line, to be copied."""
    named = [(name, value) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in named), default=0)
    for name, value in named:
        if not on_terminal():
            out(f"{name:<{width}}  {value}".rstrip().replace("\n", "\n" + " " * (width + 2)))
            continue
        from rich.text import Text

        for number, text in enumerate(value.split("\n")):
            _fold(Text(f"{'' if number else name:<{width + 2}}", style="bold"), text)


def line(text: str) -> None:
    """A result on one line, for people; on a terminal it is folded."""
    if on_terminal():
        from rich.text import Text

        _fold(Text(), text)
    else:
        out(text)


def _fold(head: Text, text: str) -> None:
    """On a terminal: `text` behind `head`, folded and set in, a foreign text with its mark; a command is not folded."""
    words = text.lstrip(" ")
    head = head + " " * (len(text) - len(words))
    whole, console = head + escape(words), _console()
    if words.startswith("refold ") or whole.cell_len <= console.width:
        _print(whole, soft_wrap=True)
        return
    first, *more = whole[len(head) :].wrap(console, max(console.width - head.cell_len - len(MARK), _LEAST))
    _print(head + first, soft_wrap=True)
    for part in more:
        _print(" " * head.cell_len + (MARK if words.startswith(MARK) else "  ") + part.plain, soft_wrap=True)


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> None:
    """A table with one line for each row.

    On a terminal its cells are folded into the width there is, but for those of the first column, which are to be
    copied; where the others would get no room, the last columns are left out.
    """
    flat = [list(head), *([one_line(cell) for cell in cells] for cells in body)]
    widths = [max(len(row[column]) for row in flat) for column in range(len(head))]
    if not on_terminal():
        for row in flat:
            out("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    columns = _fitting(widths, shutil.get_terminal_size().columns)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    grid.add_column(head[0], no_wrap=True, min_width=widths[0], overflow="ignore")
    for name in head[1:columns]:
        grid.add_column(name, overflow="fold")
    for row in flat[1:]:
        grid.add_row(*(Text(cell) for cell in row[:columns]))
    _print(grid)


def _fitting(widths: Sequence[int], room: int) -> int:
    """How many columns have room: the first in full, the others at least a few characters each."""
    taken, columns = widths[0], 1
    for width in widths[1:]:
        taken += min(width, _LEAST) + 3
        if taken > room:
            break
        columns += 1
    return columns


def _print(thing: object, *, soft_wrap: bool = False) -> None:
    _console().print(thing, soft_wrap=soft_wrap)


def _console() -> Console:
    from rich.console import Console

    return Console(width=shutil.get_terminal_size().columns, highlight=False, markup=False, emoji=False)
