"""The documents, cut into their sections: what stands under one heading, with its blocks of code.

The Python blocks of a section are one program. A text block in a section with a program is what the program prints.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.support import ROOT

_DATA = "runner/triage/"
"""Below this folder only the README is a document; the others belong to the applications that a demo repairs."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Section(NamedTuple):
    """A heading of a document with the text under it, up to the next heading."""

    document: str
    title: str
    text: str

    def blocks(self, language: str) -> list[str]:
        """The blocks of code in one language."""
        return [code for found, code in _BLOCK.findall(self.text) if found == language]

    @property
    def program(self) -> str:
        """The Python blocks, one after the other."""
        return "\n".join(self.blocks("python"))

    @property
    def prints(self) -> str | None:
        """What the program prints, or None where the document does not say."""
        return "".join(self.blocks("text")) if self.program and self.blocks("text") else None

    @property
    def name(self) -> str:
        """The section's name in a list of tests."""
        return f"{self.document}: {self.title}"


def documents() -> list[str]:
    """Every Markdown file of the project, by its path from the root."""
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*.md"))
    kept = (path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts))
    return sorted(path for path in kept if not (path.startswith(_DATA) and path.count("/") > _DATA.count("/")))


def text(document: str) -> str:
    """The text of a document."""
    return (ROOT / document).read_text(encoding="utf-8")


def sections(document: str) -> list[Section]:
    """The sections of a document, in their order; what stands before the first heading has an empty title."""
    blank = _BLOCK.sub(lambda block: re.sub(r"^#", " ", block[0], flags=re.MULTILINE), text(document))
    starts = [(0, 0, ""), *((m.start(), m.end(), m[1]) for m in re.finditer(r"^#{1,4} (.+)$", blank, re.MULTILINE))]
    ends = [start for start, _, _ in starts[1:]] + [len(blank)]
    whole = text(document)
    return [Section(document, title, whole[after:end]) for (_, after, title), end in zip(starts, ends, strict=True)]


def section(document: str, title: str) -> Section:
    """The section of this title."""
    (found,) = [each for each in sections(document) if each.title == title]
    return found


def everywhere(language: str) -> list[Section]:
    """Every section with a block in this language."""
    return [each for document in documents() for each in sections(document) if each.blocks(language)]


def tables(document: str) -> list[list[str]]:
    """Every row of every table of a document, as its cells."""
    rows = re.findall(r"^\| (.*) \|$", text(document), re.MULTILINE)
    return [[cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", row)] for row in rows]


def spans(text: str) -> list[str]:
    """The pieces of code in a text, without its blocks."""
    return re.findall(r"`([^`\n]+)`", _BLOCK.sub("", text))
