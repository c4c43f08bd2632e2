"""A user's agent, named on the command line as `module:attribute`.

The attribute is a `runner.Agent`, or a function that makes one. A function that takes an argument is given the state
of the run that the agent is for, so one name can stand for the agents of many runs.
"""

import functools
import importlib
import inspect
import operator
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import click

import runner
from replay import State
from runner._cli._io.errors import Refused, Status

AnyAgent: TypeAlias = runner.Agent[Any, Any, Any]
OURS = ("eventlog", "replay", "runner")


class Source(NamedTuple):
    """Where an agent comes from: `spec` as it was typed, and what was found there."""

    spec: str
    found: AnyAgent | Callable[..., Any]

    def takes_state(self) -> bool:
        """Whether it is a function that needs a run's state."""
        return not isinstance(self.found, runner.Agent) and bool(inspect.signature(self.found).parameters)

    def agent(self, state: State | None = None, model: str | None = None) -> AnyAgent:
        """The agent, for the run in `state` if there is one yet; `model`, as VENDOR:NAME, takes the place of its own.

        Raises `Refused`, status 2, where a function makes no agent, or needs a state and there is none; and
        `runner.models.NotInstalled`.
        """
        if self.takes_state() and state is None:
            hint = "Name a runner.Agent, or a function that takes no argument."
            raise _refused(f"{self.spec} makes the agent of a run that exists, and there is none yet", hint)
        made = self.agent_of(state)
        if made is None:
            raise _refused(f"{self.spec} has no agent for this run")
        if model is None:
            return made
        from runner import models

        try:
            return made.replace(model=models.named(model))
        except runner.errors.BadAgent as error:
            hint = "Write --model anthropic:NAME, openai:NAME or chat:NAME."
            raise _refused(f"--model {model}: {error}", hint) from error

    def agent_of(self, state: State | None) -> AnyAgent | None:
        """The agent for the run in `state`; None where a function says that this run is none of its own."""
        if isinstance(self.found, runner.Agent):
            return self.found
        try:
            made = self.found(state) if self.takes_state() else self.found()
        except (Exception, SystemExit) as error:
            raise _failed(f"calling {self.spec}", error) from error
        if not isinstance(made, runner.Agent | None):
            raise _refused(f"{self.spec} made something of type {type(made).__name__}, not a runner.Agent")
        return made


def load(spec: str) -> Source:
    """What `spec` names. Its module is imported with the current directory as the last place to look.

    Raises:
        Refused: there is no such module or attribute, importing it fails, or it can't give an agent; status 2.
    """
    module, colon, path = spec.partition(":")
    if not (module and colon and path):
        raise _refused(f"--agent {spec!r} names no attribute", "Write it as in --agent mine:agent.")
    if module.endswith(".py") or "/" in module:
        name = module.removesuffix(".py").strip("./").replace("/", ".")
        raise _refused(f"--agent {spec!r} names a file", f"Write it as it is imported: --agent {name}:{path}.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            why = f"there is no module {error.name} in {here} or where Python looks"
            hint = "Run refold where the module is, or name its directory in PYTHONPATH."
            raise _refused(why, _clash(module) or hint) from error
        raise _failed(f"importing {module}", error) from error
    try:
        found = operator.attrgetter(path)(imported)
    except AttributeError:
        hint = "--agent names a variable that holds a runner.Agent, or a function that makes one."
        raise _refused(f"the module {module} has no {path}", _clash(module) or hint) from None
    if not (isinstance(found, runner.Agent | functools.partial) or inspect.isroutine(found)):
        raise _refused(f"{spec} is of type {type(found).__name__}, not a runner.Agent")
    return Source(spec, found)


def _clash(module: str) -> str:
    """What to do when the module that was meant has the name of one of our packages."""
    top = module.partition(".")[0]
    return f"The module {top} is refold's own. If you have a {top}.py, give it another name." if top in OURS else ""


def _refused(why: str, hint: str = "") -> Refused:
    return Refused(why, hint, Status.USAGE)


def _failed(what: str, error: BaseException) -> Refused:
    """An error in the user's own module, with the place where it was raised; a syntax error names its own."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, SyntaxError) else f" ({last.filename}, line {last.lineno})"
    missing = "Install what it needs in the environment of refold." if isinstance(error, ModuleNotFoundError) else ""
    return _refused(f"{what} failed: {type(error).__name__}: {error}{where}", getattr(error, "hint", missing))


_agent = functools.partial(click.option, "--agent", type=load, metavar="MODULE:ATTRIBUTE")
option = _agent(
    "source",
    required=True,
    help="Your agent: a runner.Agent, or a function that makes one, in a module importable here.",
)
several = _agent(
    "sources", required=True, multiple=True, help="One of your agents, as in `refold run`; may be repeated."
)
resumable = _agent(
    "sources", multiple=True, help="One of your agents, whose runs can then be resumed there; may be repeated."
)
model = click.option(
    "--model", metavar="VENDOR:NAME", help="Another model than the agent's: anthropic:NAME, openai:NAME or chat:NAME."
)
