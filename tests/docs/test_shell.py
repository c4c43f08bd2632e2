"""Every command line in the documents could be typed: its command, its options, its target and its extra exist."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator

import click
import pytest

from runner._cli import main
from tests.docs import documents
from tests.support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
QUOTED, TABLE = re.compile(r"(pip install|make|refold [a-z]+) \S"), re.compile(r"[\[|]")
"""What a text quotes to be typed, and what makes it the row of a table that `test_reference` looks at."""
FOREIGN = {"cp", "jq", "ls", "mkdir", "python"}
"""Commands of the system that the documents use."""


def typed() -> Iterator[tuple[str, str]]:
    """Each line of each shell block, with the document it stands in; and each command that a text quotes."""
    for document in documents.documents():
        for section in documents.sections(document):
            lines = [line for block in section.blocks("sh") for line in block.splitlines() if line.strip()]
            quoted = [span for span in documents.spans(section.text) if QUOTED.match(span) and not TABLE.search(span)]
            yield from ((document, line) for line in (*lines, *quoted))


def parsed(words: list[str]) -> None:
    """Raise click's error when these words can't be a line of the command."""
    context = click.Context(main, info_name="refold")
    command = main.get_command(context, words[0])
    assert command is not None, f"there is no command {words[0]}"
    inner = click.Context(command, parent=context, info_name=words[0])
    values, rest, _ = command.make_parser(inner).parse_args(list(words[1:]))
    assert not rest, f"too many words: {rest}"
    missing = [p.name for p in command.params if p.required and not isinstance(values.get(str(p.name)), str | list)]
    assert not missing, f"{missing} are missing"


def test_there_are_shell_blocks_to_look_at() -> None:
    """An empty list would prove nothing."""
    assert len(list(typed())) > 15


@pytest.mark.parametrize(("document", "line"), list(typed()))
def test_every_line_of_a_shell_block_can_be_typed(document: str, line: str) -> None:
    """A reader copies it."""
    for part in re.split(r"\|\||&&|;| \| ", line.split("#", maxsplit=1)[0] if "'" not in line else line):
        words = [word for word in shlex.split(part, comments=True) if not re.fullmatch(r"[A-Z_]+=\S*", word)]
        if not words or words == ["true"]:
            continue
        first, *rest = words if words[0] != "xargs" else words[words.index("refold") :]
        if first == "refold":
            parsed(rest)
        elif first == "make":
            assert set(rest) <= TARGETS, document
        elif first == "pip":
            for extra in re.findall(r"refold\[([a-z,]+)\]", part):
                assert set(extra.split(",")) <= set(PROJECT["optional-dependencies"]), document
        elif first == "pytest":
            assert re.match(r"--crash-only ", " ".join(rest)), document
        else:
            assert first in FOREIGN, f"{document}: {first}"


def test_a_command_line_with_an_option_that_does_not_exist_is_noticed() -> None:
    """The check itself can fail."""
    with pytest.raises(click.NoSuchOption):
        parsed(["show", "RUN", "--backwards"])
    with pytest.raises(AssertionError, match="missing"):
        parsed(["show"])
    with pytest.raises(AssertionError, match="no command"):
        parsed(["undo"])
