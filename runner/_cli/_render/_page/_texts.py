"""Text on the page: what models and tools wrote, made harmless.

Every text is masked first, then what a screen would obey (terminal controls, marks that turn the direction of text) is
shown by its number, then it is escaped. Long ones are cut by one limit for the whole page, so that no run makes a page
that a browser can't open.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

import runner
from runner._cli._render.escape import escape, one_line

EACH, LEAST, MOST_EVENTS = 1_250, 1_000, 4_000
"""Bytes for each event of the log, and how many events count at least and at most. The story says most of it again: a
page of a thousand events holds 2.5 MB of texts, the longest page 10 MB.
"""

MOST = 250_000
"""Bytes of one text that a page ever shows."""

MARGIN = 4_096
"""Characters after what is shown that are looked at too, so that a secret across its end is still seen whole."""

LONG_LINE = 20_000
"""Characters of a text that a short line is made from."""

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_PARTIAL = re.compile(r"&[a-z]{0,3}\Z")


class Shown(NamedTuple):
    """One text, ready to stand between two tags; `cut` is how many characters the whole has, if this is not all."""

    html: Markup
    cut: int


class Texts:
    """Makes every text of a page about these events. Each takes `limit` bytes at most."""

    def __init__(self, patterns: Sequence[runner.review.SecretPattern], events: Sequence[str]) -> None:
        self._patterns = patterns
        self._masked: dict[str, str] = {}
        self.limit, sizes = MOST, [len(_escaped(event[:MOST])) for event in events]
        while sum(min(size, self.limit) for size in sizes) > EACH * min(max(len(events), LEAST), MOST_EVENTS):
            self.limit //= 2

    def line(self, text: str, most: int) -> str:
        """`text` on one line of at most `most` characters, masked, not escaped: the template does that."""
        return one_line(self._mask(text[:LONG_LINE]), most)

    def shown(self, text: str) -> Shown:
        """`text` as it came, but for what is masked, as far as the limit allows."""
        if len(text) > self.limit + 2 * MARGIN:
            head = self._mask(text[: self.limit + 2 * MARGIN])
            return Shown(_cut(_escaped(head[:-MARGIN]), self.limit), len(text))
        masked = self._mask(text)
        data = _escaped(masked)
        return Shown(_cut(data, self.limit), len(masked) if len(data) > self.limit else 0)

    def hides(self, text: str) -> bool:
        """Whether something of `text` looks like a secret."""
        return self._mask(text) != text

    def _mask(self, text: str) -> str:
        if text not in self._masked:
            self._masked[text] = runner.review.redact(text, self._patterns)
        return self._masked[text]


def _cut(data: bytes, most: int) -> Markup:
    """The beginning of an escaped text, with no letter and no escape cut in two."""
    shown = data.decode() if len(data) <= most else _PARTIAL.sub("", data[:most].decode(errors="ignore"))
    return Markup(shown)  # noqa: S704 (escaped)


def _escaped(text: str) -> bytes:
    return escape(text).translate(_ESCAPES).encode(errors="backslashreplace")
