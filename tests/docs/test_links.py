"""The documents lead where they say, to files and headings that are there, and stay as short as they promise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import documents
from tests.support import ROOT


def links() -> Iterator[tuple[str, str]]:
    """Every link to a place in the repository, with the document it stands in."""
    for document in documents.documents():
        for target in re.findall(r"\]\(([^)\s]+)\)", documents.text(document)):
            if "://" not in target:
                yield document, target


def _anchors(document: str) -> set[str]:
    titles = [section.title for section in documents.sections(document)]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(("document", "target"), list(links()))
def test_every_link_leads_somewhere(document: str, target: str) -> None:
    """To a file that is there, and to a heading that is in it."""
    path, _, anchor = target.partition("#")
    place = (ROOT / document).parent / path if path else ROOT / document
    assert place.exists()
    if anchor:
        assert anchor in _anchors(place.resolve().relative_to(ROOT).as_posix())


def files() -> Iterator[str]:
    """Every file that a table of the architecture names; a name without a folder is beside the one before it."""
    for row in documents.tables("ARCHITECTURE.md"):
        folder = Path()
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", " ".join(row)):
            path = Path(name) if name.startswith(("eventlog/", "replay/", "runner/", "tests/")) else folder / name
            folder = path.parent
            yield path.as_posix()


@pytest.mark.parametrize("path", list(files()))
def test_every_file_that_the_architecture_names_is_there(path: str) -> None:
    """A file that moved is found again."""
    assert (ROOT / path).exists()


def test_the_documents_stay_as_short_as_they_promise() -> None:
    """A README that is read to its end, an architecture that fits on two pages."""
    assert len(documents.text("README.md").split()) <= 1900
    assert len(documents.text("ARCHITECTURE.md").splitlines()) <= 150
    glossary = documents.section("ARCHITECTURE.md", "Glossary").text.strip()
    assert len(glossary.splitlines()) <= 25
