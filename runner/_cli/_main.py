"""The list of commands, and the frame around each: our own packages, quiet logging, one place for errors."""

from __future__ import annotations

import importlib.metadata
import io
import sys
import traceback
from typing import Any

import click

from runner._cli import _errors, _logging, _out, _siblings
from runner._cli._answer import approve, refuse, settle, stop
from runner._cli._audit import audit
from runner._cli._bench import bench
from runner._cli._cat import cat
from runner._cli._compact import compact
from runner._cli._export import export
from runner._cli._fork import fork
from runner._cli._guarantees import guarantees
from runner._cli._ls import ls
from runner._cli._mcp import mcp
from runner._cli._preflight import preflight
from runner._cli._report import report
from runner._cli._resume import resume
from runner._cli._retrace import retrace
from runner._cli._run import run
from runner._cli._salvage import salvage
from runner._cli._show import show
from runner._cli._sweep import sweep
from runner._cli._tracker import tracker
from runner._cli._triage import triage
from runner._cli._verify import verify


class Root(click.Group):
    """The group of all commands."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command line and exit. Text that the locale can't show is printed by its number."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        return super().main(*args, **{"prog_name": "refold", **extra})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's own signature)
        """In the order of their registration, which goes from doing to looking."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever goes wrong becomes a sentence and an exit status."""
        try:
            _siblings.check()
            _logging.configure(verbose=ctx.params["verbose"])
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if _errors.is_broken_pipe(error):
                raise
            _errors.say(error)
            if ctx.params["verbose"]:
                _out.err("".join(traceback.format_exception(error)))
            ctx.exit(int(_errors.status(error)))


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click's own signature)
    """Print the version of the distribution and end."""
    if value:
        try:
            version = importlib.metadata.version("refold")
        except importlib.metadata.PackageNotFoundError:
            version = "(not installed)"
        click.echo(f"refold {version}")
        ctx.exit()


@click.group(name="refold", cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
@click.option("--verbose", is_flag=True, help="Say on stderr what the libraries do; $REFOLD_LOG sets a level.")
def main(*, verbose: bool) -> None:
    """Durable runs of LLM agents: a run is a directory, and a crash at any moment loses and repeats nothing.

    Exit status: 0 finished, 1 stopped or failed, 2 usage, 3 waiting for a person, 4 another process holds the run,
    5 the log is damaged.
    """


for command in (
    *(triage, tracker, run, resume, stop, fork, approve, refuse, settle),
    *(ls, show, audit, report, cat, verify, salvage, compact, retrace, preflight, export, guarantees, sweep, mcp),
    bench,
):
    main.add_command(command)
