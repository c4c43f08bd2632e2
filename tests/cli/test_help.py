"""The help is a page that reads well: a sentence for each command and each option, and all statuses."""

from __future__ import annotations

import importlib.metadata
import os
from datetime import timedelta

import click
import pytest

from runner._cli import _options, main
from runner._cli._errors import WORST_FIRST, Status
from tests.cli.conftest import Refold

NAMES = list(main.commands)
READING = ("ls", "show", "cat", "verify", "retrace", "preflight")


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_a_sentence_that_fits_the_list(refold: Refold, name: str) -> None:
    """Cut off in the middle it would say less than nothing."""
    lines = refold("--help").out.splitlines()
    (line,) = (line for line in lines if line.startswith(f"  {name} "))
    assert line.endswith(".")
    assert not line.endswith("...")


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_every_command_is_explained(refold: Refold, name: str) -> None:
    """An option without a word is one that nobody dares to use."""
    said = refold(name, "--help")
    assert said.status == 0
    assert max(len(line) for line in said.out.splitlines()) <= 80
    for parameter in main.commands[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[0] in said.out
            assert parameter.help is not None
            assert parameter.help.endswith((".", "7d.")), parameter.opts
        else:
            assert parameter.make_metavar(click.Context(main)) in said.out


def test_every_command_takes_runs_and_every_reading_one_json() -> None:
    """A program need not remember which ones do."""
    for name in NAMES:
        assert any("--runs" in parameter.opts for parameter in main.commands[name].params), name
    for name in READING:
        assert any("--json" in parameter.opts for parameter in main.commands[name].params), name


def test_every_exit_status_is_in_the_help(refold: Refold) -> None:
    """Scripts are built on them."""
    text = " ".join(refold("--help").out.split())
    for status, words in zip(
        Status,
        ["finished", "stopped or failed", "usage", "waiting for a person", "another process", "the log is damaged"],
        strict=True,
    ):
        assert f"{status.value} {words}" in text
    assert set(WORST_FIRST) == set(Status) - {Status.USAGE}


def test_the_version_is_the_distributions(refold: Refold, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run from a tree that was never installed it says so instead of failing."""
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.2.3")
    assert refold("--version").out == "refold 1.2.3\n"

    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert refold("--version") == (0, "refold (not installed)\n", "")


def test_a_command_that_does_not_exist_is_a_usage_error(refold: Refold) -> None:
    """And no command at all shows the help."""
    assert refold("frobnicate").status == 2
    said = refold()
    assert "Commands:" in said.out + said.err


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("7d", 604_800), ("1w", 604_800)]
)
def test_an_age_is_written_as_people_write_it(text: str, seconds: float) -> None:
    """A bare number is seconds."""
    assert _options.age(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "h", "-1h", "1y", "1 h", "1h1m", "\u0661h", "1e9", "9" * 12])
def test_an_age_that_is_none_is_refused(text: str) -> None:
    """Guessing would list the wrong runs."""
    with pytest.raises(click.BadParameter, match="is no stretch of time"):
        _options.age(text)


def test_an_account_without_a_name_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers run under numbers that no file knows."""
    monkeypatch.setattr(os, "getuid", lambda: 4_242_424)
    assert _options.account() == "uid 4242424"
