"""The documents are complete: every command, option, public name, default and finding."""

from __future__ import annotations

import importlib
import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any

import click
import pytest

import eventlog
import replay
import runner
import runner.commands
import runner.errors
import runner.mcp
import runner.models
import runner.otel
import runner.review
import runner.testing
import runner.ui
import runner.web
from eventlog import simdisk
from runner import triage
from runner._agent.declaration import OPTIONS
from runner._cli import main
from runner._cli._io.errors import Status
from runner.models.anthropic import Anthropic
from runner.models.openai import Chat, Responses
from runner.testing._inputs import Inputs, Swept
from tests.docs import documents
from tests.support import ROOT

GUIDE = "runner/README.md"
EVERYWHERE = {"--help", "--json", "--runs", "--verbose", "--version"}
"""Options that the guide explains once for all commands."""
GUIDES = {
    eventlog: "eventlog/README.md",
    replay: "replay/README.md",
    replay.events: "replay/README.md",
    replay.messages: "replay/README.md",
    replay.state: "replay/README.md",
    replay.stories: "replay/README.md",
    replay.values: "replay/README.md",
    simdisk: "eventlog/README.md",
    runner: GUIDE,
    runner.commands: GUIDE,
    runner.errors: GUIDE,
    runner.review: GUIDE,
    runner.mcp: GUIDE,
    runner.models: GUIDE,
    runner.otel: GUIDE,
    runner.testing: GUIDE,
    runner.ui: GUIDE,
    runner.web: GUIDE,
}
"""Where the public names of a package are explained."""
PATH = re.compile(r"(?<![\w/])((?:runner|eventlog|replay)(?:\.(?!py\b)[a-zA-Z]\w*)+)(?![\w/])")
"""A name with its package, as a text quotes it."""


def commands() -> list[tuple[str, click.Command]]:
    """Every command of this installation."""
    context = click.Context(main)
    return [(name, command) for name in main.list_commands(context) if (command := main.get_command(context, name))]


def synopses() -> list[str]:
    """The lines of the tables of commands."""
    rows = [row for document in (GUIDE, "runner/triage/README.md") for row in documents.tables(document)]
    return [row[0].strip("`") for row in rows if row[0].startswith("`refold ")]


def _options(command: click.Command) -> set[str]:
    long = {name for p in command.params for name in (*p.opts, *p.secondary_opts) if name.startswith("--")}
    return long - EVERYWHERE


@pytest.mark.parametrize(("name", "command"), commands(), ids=[name for name, _ in commands()])
def test_every_command_stands_in_a_table_with_all_of_its_options(name: str, command: click.Command) -> None:
    """Whoever looks for an option finds it; whoever finds one can use it."""
    mine = [line for line in synopses() if line.split()[1] == name]
    named = {word for line in mine for word in re.findall(r"--[a-z-]+", line)} - EVERYWHERE
    negated = {f"--no-{word.removeprefix('--')}" for word in named}
    assert named <= _options(command) <= named | negated
    arguments = [p for p in command.params if isinstance(p, click.Argument) and not isinstance(p.type, click.Choice)]
    words = {word.strip("[]") for line in mine for word in line.split()}
    assert {str(p.metavar).strip("[]") for p in arguments} <= words


def test_every_command_in_the_tables_exists() -> None:
    """A command that is gone is gone from the guide."""
    assert {line.split()[1] for line in synopses()} == {name for name, _ in commands()}


def test_every_option_that_all_commands_share_is_explained() -> None:
    """Once, before the tables."""
    assert {word for word in EVERYWHERE if word not in documents.section(GUIDE, "The command").text} == set()


def test_every_exit_status_is_documented() -> None:
    """A script can rely on them."""
    text = documents.section(GUIDE, "The command").text
    assert [int(n) for n in re.findall(r"\*\*(\d)\*\*", text)] == [int(status) for status in Status]


def _public(package: Any) -> list[str]:
    """What a package offers; for a module, the classes that it defines."""
    if hasattr(package, "__all__"):
        return list(package.__all__)
    classes = inspect.getmembers(package, inspect.isclass)
    return [name for name, made in classes if made.__module__ == package.__name__ and not name.startswith("_")]


def _names(document: str) -> set[str]:
    """Every name in a document's code."""
    code = [*documents.spans(documents.text(document))]
    code += [each.program for each in documents.sections(document)]
    return {name for piece in code for name in re.findall(r"\w+", piece)}


@pytest.mark.parametrize("package", GUIDES, ids=lambda package: package.__name__)
def test_every_public_name_stands_in_its_guide(package: Any) -> None:
    """What is public is explained somewhere; what nobody explains should not be public."""
    assert [name for name in _public(package) if name not in _names(GUIDES[package])] == []


@pytest.mark.parametrize("package", [*GUIDES, triage], ids=lambda package: package.__name__)
def test_every_public_name_has_a_docstring(package: Any) -> None:
    """What is promised stands where an editor shows it."""
    for name in _public(package):
        thing = getattr(package, name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            assert thing.__doc__, name


def test_every_name_in_the_guides_exists() -> None:
    """A name that is gone is gone from the documents: `runner.x`, `eventlog.x`, `replay.x`."""
    quoted = [
        (document, span) for document in documents.documents() for span in documents.spans(documents.text(document))
    ]
    paths = [(document, path) for document, span in quoted for path in PATH.findall(span)]
    assert len(paths) > 20
    assert [(document, path) for document, path in paths if not _exists(path)] == []


def _exists(path: str) -> bool:
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(thing, part) and part not in getattr(thing, "__annotations__", {}):
                return False
            thing = getattr(thing, part, None)
        return True
    return False


Defaults = dict[str, Any]
NONE = inspect.Parameter.empty


def _of(function: Callable[..., object], *positional: str) -> Defaults:
    """The options of a function with their defaults, `positional` apart."""
    return {p.name: p.default for p in inspect.signature(function).parameters.values() if p.name not in positional}


DECLARED: dict[str, list[Defaults]] = {
    "option of `runner.tool`": [{name: option.default for name, option in OPTIONS.items()}],
    "option of `runner.Agent`": [_of(runner.Agent)],
    "option of `runner.Limits`": [_of(runner.Limits)],
    "option of `start` and `resume`": [_of(runner.start, "agent", "task"), _of(runner.resume, "run", "agent")],
    "option of a model": [_of(vendor, "model") for vendor in (Anthropic, Chat, Responses)],
    "option of `runner.mcp.Server`": [_of(runner.mcp.Server)],
    "option of `ui.app`": [_of(runner.ui.app, "runs")],
    "option of `sweep` and `crash_sweep`": [
        _of(runner.testing.sweep, "swept"),
        {name: value for name, value in _of(Inputs).items() if name in Swept.__annotations__},
    ],
}
"""What stands in the table with this head: the options of one thing, or of several that share it."""


def _rows(head: str) -> dict[str, str]:
    """A table of the guide: the default of each option, as it is written."""
    rows = documents.tables(GUIDE)
    start = next(n for n, row in enumerate(rows) if row[0] == head)
    table = itertools.takewhile(lambda row: re.match(r"`\w+`", row[0]), rows[start + 1 :])
    return {name: row[-2] for row in table for name in re.findall(r"`(\w+)`", row[0])}


def _written(default: Any) -> str:
    return getattr(default, "__name__", None) or repr(default).replace("'", '"')


@pytest.mark.parametrize("head", DECLARED)
def test_every_option_stands_in_its_table_with_its_default(head: str) -> None:
    """A default that changed is changed in the guide."""
    rows, declared = _rows(head), {name: value for each in DECLARED[head] for name, value in each.items()}
    assert set(rows) == set(declared)
    for name, written in rows.items():
        default = declared[name]
        if written == "required":
            assert default is NONE, name
        elif re.fullmatch(r"`[^`]+`", written) and not repr(default).startswith("<factory"):
            assert written.strip("`") == _written(default), name


def test_what_only_one_of_start_and_resume_takes_is_named() -> None:
    """An option that moved would mislead whoever reads the second column."""
    start, resume = DECLARED["option of `start` and `resume`"]
    rows = [row for row in documents.tables(GUIDE) if row[1] in ("both", "`start`", "`resume`")]
    for name, where, *_ in rows:
        option = name.strip("`")
        assert (option in start, option in resume) == (where != "`resume`", where != "`start`"), option
    assert len(rows) == len(start | resume)


def test_every_finding_is_explained() -> None:
    """Whoever reads an audit can look its kinds up."""
    rows = {kind for row in documents.tables(GUIDE) for kind in re.findall(r"`([a-z-]+)`", row[0])}
    sources = [ROOT / "replay/_findings.py", ROOT / "runner/_review/audit.py"]
    said = r'(?:kind=|yield )"([a-z-]+)"'
    kinds = {kind for path in sources for kind in re.findall(said, path.read_text(encoding="utf-8"))}
    assert len(kinds) > 20
    assert kinds <= rows


def test_the_checks_of_the_demo_are_listed_in_their_order() -> None:
    """A reader can tell what 16/16 means."""
    text = re.sub(r"\n {2,}", " ", documents.text("runner/triage/README.md"))
    listed = re.findall(r"^\d+\. `([a-z-]+)` \((outside|log)\): (.+)$", text, re.MULTILINE)
    catalogue = triage.CATALOGUE["m1-done-after-delete"]
    place = {"world": "outside"}
    assert [tuple(row) for row in listed] == [(c.name, place.get(c.looks, c.looks), c.sentence) for c in catalogue]
    assert len(catalogue) == 16
    assert sum(c.looks != "log" for c in catalogue) >= 10
