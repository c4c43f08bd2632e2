"""The list of commands, and the frame around each: quiet logging, one place for errors.

Other packages bring commands by the entry-point group `refold.commands`; see `runner.commands`.
"""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, Never

import click

from runner._cli._io import errors as _errors
from runner._cli._io import logging_setup, out
from runner._cli._io.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "refold.commands"
_OURS = """
run=run enqueue=run worker=worker resume=resume stop=answer park=answer fork=run send=answer approve=answer
refuse=answer edit=answer respond=answer allow=answer settle=answer ls=ls inbox=ls show=show audit=audit report=export
ui=ui cat=log verify=log salvage=upkeep compact=log prune=upkeep migrate=log copy=log retrace=code preflight=code
export=export guarantees=code mcp=mcp bench=bench
"""
COMMANDS: dict[str, str] = dict(pair.split("=") for pair in _OURS.split())
"""Ours, from doing to looking, each with its module, which is imported when the command is run or listed."""


class Root(click.Group):
    """The group of all commands."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command line and exit. Text that the locale can't show is printed by its number."""
        _open_closed_streams()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        return super().main(*args, **{"prog_name": "refold", **extra})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's own signature)
        """Ours in the order of their registration, from doing to looking; then those of other packages."""
        return [*COMMANDS, *(name for _, names in external_names(COMMANDS) for name in names)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (as above)
        """One of ours, else one that a package brought."""
        return our_command(cmd_name) or external_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named; where there is none, the error says which was probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            raise click.UsageError(f"{error.message} Did you mean {close[0]}?", ctx) if close else error from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        for heading, names in (("Commands", list(COMMANDS)), *external_names(COMMANDS)):
            found = [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
            if found:
                with formatter.section(heading):
                    formatter.write_dl([(name, command.get_short_help_str(width)) for name, command in found])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever goes wrong becomes a sentence and an exit status."""
        try:
            logging_setup.configure(verbose=ctx.params["verbose"])
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if isinstance(error, BrokenPipeError):  # the reader of our output has gone, which click ends without a word
                raise
            _errors.say(error)
            if ctx.params["verbose"]:
                out.err("".join(traceback.format_exception(error)))
            ctx.exit(_errors.status(error))


def our_command(name: str) -> click.Command | None:
    """The command of this name, if it is one of ours."""
    if name not in COMMANDS:
        return None
    found: click.Command = getattr(importlib.import_module(f"runner._cli._commands.{COMMANDS[name]}"), name)
    return found


def _entries(name: str | None = None) -> EntryPoints:
    import importlib.metadata  # forty modules, for a name that is not ours

    entries = importlib.metadata.entry_points(group=GROUP)
    return entries if name is None else entries.select(name=name)


def external_names(taken: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """The names that are not `taken`, sorted under a heading each: other packages' first, our demonstration last."""
    entries = [entry for entry in _entries() if entry.name not in taken]
    demonstration = {entry.name for entry in entries if _package(entry) == "refold"}
    yield "Commands of other packages", sorted({entry.name for entry in entries} - demonstration)
    yield "Demonstration", sorted(demonstration)


def external_command(name: str) -> click.Command | None:
    """The command of this name, or None. One that can't be imported is a command that says so."""
    entry = next(iter(_entries(name)), None)
    if entry is None:
        return None
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (another package's code: whatever it raises is its answer)
        return _broken(entry, f"{type(error).__name__}: {error}")
    if not isinstance(loaded, click.Command):
        return _broken(entry, f"{entry.value} is a {type(loaded).__name__}, not a click.Command")
    return loaded


def _broken(entry: EntryPoint, why: str) -> click.Command:
    def refuse() -> Never:
        hint = f"Mend or uninstall {_package(entry)}, which brings it."
        raise Refused(f"the command {entry.name} can't be imported: {why}", hint)

    lenient = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(entry.name, lenient, refuse, short_help=f"(can't be imported: {why})", add_help_option=False)


def _package(entry: EntryPoint) -> str:
    return "an unknown package" if entry.dist is None else entry.dist.name


def _open_closed_streams() -> None:
    """Put /dev/null in the place of a standard stream that is closed: the next file would get its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 (as long as the process)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 (the same)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 (the same)


@click.group(name="refold", cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="refold", message="%(prog)s %(version)s", help="Show the version.")
@click.option("--verbose", is_flag=True, help="Say on stderr what the libraries do; $REFOLD_LOG sets a level.")
def main(*, verbose: bool) -> None:
    """Durable runs of LLM agents: a run is a directory, and a crash at any moment loses and repeats nothing.

    Exit status: 0 finished, 1 stopped or failed, 2 usage, 3 waiting for a person, 4 another process holds the run,
    5 the log is damaged, 6 finished and a result could not be kept as it came.
    """
