"""The help is a page that reads well: a sentence for each command and each option, and all statuses."""

import importlib.metadata
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click
import pytest

import runner
from runner._cli import main, options
from runner._cli._io.errors import WORST_FIRST, Status
from tests.cli.conftest import Refold
from tests.support import ROOT

NAMES = main.list_commands(click.Context(main))
READING = ("ls", "show", "cat", "verify", "retrace", "preflight")


def _command(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


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
    said = refold(name, "--help").ends(0)
    assert max(len(line) for line in said.out.splitlines()) <= 80
    for parameter in _command(name).params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[0] in said.out
            assert parameter.help is not None
            assert parameter.help.endswith((".", "7d.")), parameter.opts
        else:
            assert parameter.make_metavar(click.Context(main)) in said.out


def test_every_command_takes_runs_and_every_reading_one_json() -> None:
    """A program need not remember which ones do."""
    for name in NAMES:
        assert any("--runs" in parameter.opts for parameter in _command(name).params), name
    for name in READING:
        assert any("--json" in parameter.opts for parameter in _command(name).params), name


def test_every_exit_status_is_in_the_help(refold: Refold) -> None:
    """Scripts are built on them."""
    text = " ".join(refold("--help").out.split())
    for status, words in zip(
        Status,
        [
            *(
                "finished",
                "stopped or failed",
                "usage",
                "waiting for a person",
                "another process",
                "the log is damaged",
            ),
            "finished and a result could not be kept",
        ],
        strict=True,
    ):
        assert f"{status.value} {words}" in text
    assert set(WORST_FIRST) == set(Status) - {Status.USAGE}


def test_the_version_is_the_distributions(refold: Refold, monkeypatch: pytest.MonkeyPatch) -> None:
    """No second place says it."""
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.2.3")
    assert refold("--version").out == "refold 1.2.3\n"


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
    assert options.age(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "h", "-1h", "1y", "1 h", "1h1m", "\u0661h", "1e9", "9" * 12])
def test_an_age_that_is_none_is_refused(text: str) -> None:
    """Guessing would list the wrong runs."""
    with pytest.raises(click.BadParameter, match="is not a duration"):
        options.age(text)


def test_an_account_without_a_name_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers run under numbers that no file knows."""
    monkeypatch.setattr(os, "getuid", lambda: 4_242_424)
    assert options.account() == "uid 4242424"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands_and_options(process: Refold, shell: str) -> None:
    """As the guide says; the script is click's own."""
    said = process(env={"_REFOLD_COMPLETE": f"{shell}_source"})
    assert (said.status, "_REFOLD_COMPLETE" in said.out) == (0, True)
    words = {"COMP_WORDS": "refold sh", "COMP_CWORD": "sh" if shell == "fish" else "1"}
    said = process(env={"_REFOLD_COMPLETE": f"{shell}_complete", **words})
    assert "show" in said.out


@pytest.mark.parametrize(
    ("function", "command"),
    [
        (runner.start, "run"),
        (runner.resume, "resume"),
        (runner.run, "run"),
        (runner.enqueue, "enqueue"),
        (runner.Worker.start, "worker"),
    ],
    ids=["start", "resume", "run", "enqueue", "Worker.start"],
)
def test_each_way_to_begin_a_run_has_one_sentence(refold: Refold, function: Callable[..., Any], command: str) -> None:
    """The docstring's first line stands in the guide, and in the help of the command that does the same."""
    sentence = (function.__doc__ or "").partition("\n")[0]
    guide = " ".join((ROOT / "runner/README.md").read_text(encoding="utf-8").split())
    assert sentence in guide
    if command != "worker":
        assert sentence in " ".join(refold(command, "--help").out.split())
