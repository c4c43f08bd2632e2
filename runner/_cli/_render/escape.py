"""Text of models, tools and servers, shown so that it can't act on a terminal, hide, or pass for our own words.

What a terminal would obey, and what nobody would see, is shown by its number. Text of several lines gets a mark before
each line. Arguments stand on one line, cut in the middle when they are long, so that nothing is pushed off the screen.
Names with letters of several alphabets say so, because some letters of different alphabets look the same.
"""

import json
import re
import unicodedata
from collections.abc import Iterator

SHOWN = 1_000
"""Characters of a call's arguments that are shown to a person at most."""

LINES = 12
"""Lines of one foreign text that are shown at most."""

MARK = "| "
"""Stands before every line of a text that is not ours."""

# Controls and surrogates; Unicode's format characters and its default-ignorable ones (zero widths, marks that turn the
# direction, variation selectors, tags, fillers); line separators, the blank Braille pattern, private use.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_OUTSIDE_STRINGS = re.compile(r'("(?:[^"\\]|\\.)*")|\s+', re.DOTALL)


def escape(text: str) -> str:
    """`text` with what a terminal would obey, and what nobody sees, shown by its number; line breaks and tabs stay."""
    return _UNSEEN.sub(_number, text)


def in_json(text: str) -> str:
    """`text`, which is JSON, with the same characters as JSON writes them by number."""
    return _UNSEEN.sub(
        lambda found: f"\\u{ord(found[0]):04x}" if found[0] < "\u0080" else json.dumps(found[0])[1:-1], text
    )


def one_line(text: str, most: int | None = None) -> str:
    """`text` on one line, at most `most` characters of it."""
    flat = escape(text).replace("\n", "\\n").replace("\t", "\\t")
    return flat if most is None or len(flat) <= most else f"{flat[: max(most - 3, 0)]}..."


def arguments(text: str, most: int = SHOWN) -> str:
    """A call's arguments on one line, without the space between them; the middle of long ones is a count."""
    flat = one_line(_OUTSIDE_STRINGS.sub(r"\1", text))
    if len(flat) <= most:
        return flat
    end = most // 3
    return f"{flat[: most - end]} [... {len(flat) - most:,} characters are not shown ...] {flat[-end:]}"


def marked(text: str, most: int | None = LINES) -> Iterator[str]:
    """The lines of a foreign text, a mark before each, at most so many; None for all."""
    lines = escape(text).replace("\t", "\\t").split("\n")
    yield from (f"{MARK}{line}" for line in lines[:most])
    if most is not None and len(lines) > most:
        yield f"[{len(lines) - most:,} more lines are not shown]"


def name(text: str) -> str:
    """A name on one line; one with letters of several alphabets is followed by their names."""
    alphabets = {unicodedata.name(letter, "UNNAMED").partition(" ")[0] for letter in text if letter.isalpha()}
    mixed = f" [letters of {', '.join(sorted(alphabets))}]" if len(alphabets) > 1 else ""
    return one_line(text) + mixed


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004 (what two and four hex digits hold)
