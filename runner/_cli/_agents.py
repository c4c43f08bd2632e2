"""A user's agent, named on the command line as `module:attribute`."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path

import click

import runner
from runner._cli._errors import Refused, Status

OURS = ("eventlog", "replay", "runner")

option = click.option(
    "--agent", metavar="MODULE:ATTRIBUTE", required=True, help="Your agent: a runner.Agent in a module importable here."
)
model = click.option(
    "--model", metavar="VENDOR:NAME", help="Another model than the agent's: anthropic:NAME, openai:NAME or chat:NAME."
)


def load(spec: str, model: str | None = None) -> runner.Agent:
    """The agent that `spec` names, with `model` instead of its own if one is named.

    Its module is imported with the current directory first. The model's key and address come from the environment.

    Raises `Refused`, status 2, when there is no such module or attribute, when importing it fails, or when it is no
    `runner.Agent`; `runner.BadAgent` and `runner.models.NotInstalled` for a model that can't be had.
    """
    loaded = _load(spec)
    if model is None:
        return loaded
    from runner import models

    return loaded.replace(model=models.named(model))


def _load(spec: str) -> runner.Agent:
    module, colon, path = spec.partition(":")
    if not (module and colon and path):
        raise _refused(f"--agent {spec!r} names no attribute", "Write it as in --agent mine:agent.")
    top = module.partition(".")[0]
    if top in OURS:
        raise _refused(f"the module {top} is refold's own", f"If you have a {top}.py, give it another name.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise _refused(f"there is no module {error.name} in {here} or where Python looks", "") from error
        raise _failed(module, error) from error
    except (Exception, SystemExit) as error:
        raise _failed(module, error) from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            hint = "--agent names a variable that holds a runner.Agent."
            raise _refused(f"the module {module} has no {path}", hint) from None
    if not isinstance(found, runner.Agent):
        raise _refused(f"{spec} is a {type(found).__name__}, not a runner.Agent", "")
    return found


def _refused(why: str, hint: str) -> Refused:
    return Refused(why, hint, Status.USAGE)


def _failed(module: str, error: BaseException) -> Refused:
    """An error in the user's own module, with the place where it was raised; a syntax error names its own."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, SyntaxError) else f" ({last.filename}, line {last.lineno})"
    return _refused(f"importing {module} failed: {type(error).__name__}: {error}{where}", "")
