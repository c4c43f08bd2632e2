"""What may be declared: each option of a tool once, with its default and what is accepted; and of an agent.

What can't work is refused where it is declared, in a sentence that says what to write instead.
"""

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, TypeGuard, get_args, get_type_hints

import msgspec

from replay.values import Effect, Limits
from runner._agent.call import Found, Missing, Unsure
from runner._agent.context import DropResults, KeepLast, Policy, SummariseAfter, TokenBudget
from runner._agent.model import Model
from runner._agent.plain import Secret
from runner._agent.sanitize import MAX_WAIT
from runner.errors import BadAgent, BadTool

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What Anthropic and OpenAI accept as the name of a tool."""

Approval = bool | Callable[[Mapping[str, Any]], bool]


class ToolOptions(TypedDict, total=False):
    """The options of every tool, whatever its effect. `runner.tool` says what each means."""

    approval: Approval
    once_per: Sequence[str]
    timeout: float
    attempts: int
    max_wait: float
    max_calls: int | None
    parallel: bool
    secret: Sequence[Secret]
    name: str
    schema: Mapping[str, Any]


class Option(msgspec.Struct, frozen=True):
    """A default, a check, and what the check accepts, in words."""

    default: Any
    fits: Callable[[Any], bool]
    words: str


def number(value: object, least: float) -> TypeGuard[float]:
    """Whether it is a finite number of at least `least`."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < math.inf


def several(value: object, kind: type | tuple[type, ...]) -> bool:
    """Whether it is a sequence, other than text, of values of this kind."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    return all(isinstance(one, kind) for one in value)


def _is_async(function: Any) -> bool:
    return any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004 (its own)


OPTIONS = {
    "effect": Option("non_idempotent", lambda v: v in get_args(Effect), f"one of {', '.join(get_args(Effect))}"),
    "key_ttl": Option(
        None, lambda v: v is None or isinstance(v, timedelta), "a timedelta, such as timedelta(hours=24)"
    ),
    "approval": Option(
        False,  # noqa: FBT003 (a default is a plain value)
        lambda v: isinstance(v, bool) or (callable(v) and not _is_async(v)),
        "True, False, or a function of the arguments that answers at once",
    ),
    "once_per": Option((), lambda v: several(v, str), 'a list of names of arguments, such as ["order"]'),
    "timeout": Option(
        60.0, lambda v: number(v, 0) and 0 < v <= MAX_WAIT, "a number of seconds above 0, at most 366 days"
    ),
    "attempts": Option(3, lambda v: number(v, 1) and isinstance(v, int), "a whole number from 1"),
    "max_wait": Option(
        3600.0, lambda v: number(v, 0) and v <= MAX_WAIT, "a number of seconds from 0, at most 366 days"
    ),
    "max_calls": Option(
        None, lambda v: v is None or (number(v, 0) and isinstance(v, int)), "a whole number from 0, or None"
    ),
    "parallel": Option(False, lambda v: isinstance(v, bool), "True or False"),  # noqa: FBT003 (a default is a plain value)
    "secret": Option((), lambda v: several(v, (str, re.Pattern)), "a list of names or compiled patterns"),
    "name": Option(
        None,
        lambda v: v is None or (isinstance(v, str) and NAME.fullmatch(v) is not None),
        "1 to 64 of a-z, A-Z, 0-9, _ and -, which every provider accepts",
    ),
    "schema": Option(None, lambda v: v is None or isinstance(v, Mapping), "a JSON schema, as a dictionary"),
}


def options(tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options with their defaults. Raises `BadTool` for one that is unknown or has a value that can't work."""
    for name, value in given.items():
        option = OPTIONS.get(name)
        if option is None:
            raise BadTool(tool, f"there is no option {name}: there are {', '.join(OPTIONS)}")
        if not option.fits(value):
            raise BadTool(tool, f"{name} is {value!r}, not {option.words}")
    return {name: given.get(name, option.default) for name, option in OPTIONS.items()}


def named(given: object) -> str:
    """The name of a function that a tool can be made of. Raises `BadTool` for anything else."""
    name = str(getattr(given, "__name__", None) or repr(given))
    if isinstance(given, type):
        raise BadTool(name, "it is a class: write a function that uses it")
    if isinstance(given, functools.partial) or not inspect.isroutine(given):
        raise BadTool(name, f"it is of type {type(given).__name__}: write a function that calls or uses it")
    body = getattr(given, "__func__", given)
    if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
        raise BadTool(name, "it is a generator, and calling it runs nothing: return a list instead of yielding")
    return name


def lookup(tool: str, find: object, visible_within: object) -> Any:
    """The type hint of a lookup's `Call`, None where nothing can be known. Raises `BadTool` for one that can't work."""
    if find is None:
        raise BadTool(tool, "visible_within says when a lookup is believed, and it has none")
    named(find)
    try:
        first = next(iter(inspect.signature(find).bind(None).arguments))  # type: ignore[arg-type] # named() made sure of it
    except TypeError:
        raise BadTool(tool, "its lookup must take one argument, a `runner.Call`") from None
    if visible_within is not None and not (number(visible_within, 0) and visible_within <= MAX_WAIT):
        raise BadTool(tool, f"visible_within is {visible_within!r}, not a number of seconds from 0, at most 366 days")
    try:
        hints = get_type_hints(find)
    except Exception:  # noqa: BLE001 (resolving a hint runs the user's own names and attributes)
        return None
    said = hints.get("return", Any)
    kinds = get_args(said) or (said,)
    if not any(kind in (Any, object) or not isinstance(kind, type) or issubclass(kind, _VERDICTS) for kind in kinds):
        name = said.__name__ if isinstance(said, type) else said
        raise BadTool(tool, f"its lookup must answer Found(result), Missing() or Unsure(), and {name} is none of them")
    return hints.get(first)


_VERDICTS = (Found, Missing, Unsure)


def _policy(value: object) -> bool:
    if isinstance(value, SummariseAfter | KeepLast | DropResults | TokenBudget):
        return all(number(count, 0) for name, count in msgspec.structs.asdict(value).items() if name != "instructions")
    return value is None or callable(value)


def _parameters(value: object) -> bool:
    try:
        return isinstance(value, Mapping) and bool(msgspec.json.encode(dict(value), order="sorted"))
    except (TypeError, ValueError, RecursionError):
        return False


def _model(value: object) -> bool:
    if isinstance(value, type) or not isinstance(getattr(value, "name", None), str):
        return False
    return all(callable(getattr(value, method, None)) for method in ("ask", "bound"))


Accepted = Mapping[str, tuple[Callable[[Any], bool], str]]
"""A check for each name, and what it accepts in words."""
AGENT: Accepted = {
    "name": (lambda v: isinstance(v, str) and bool(v.strip()) and "\0" not in v, 'a name, such as "support"'),
    "model": (
        _model,
        'a model with a text `name`, `bound` and an async `ask`, such as runner.models.named("anthropic:...")',
    ),
    "tools": (lambda v: several(v, object), "a list of tools"),
    "instructions": (lambda v: isinstance(v, str) or callable(v), "text, or a function of the inputs"),
    "output_retries": (lambda v: number(v, 0) and isinstance(v, int), "a whole number from 0"),
    "validate": (lambda v: v is None or callable(v), "a function of an output"),
    "limits": (lambda v: isinstance(v, Limits), "a runner.Limits"),
    "context": (_policy, "a policy, such as runner.SummariseAfter(100_000), of numbers from 0, or None"),
    "approve": (lambda v: v in ("ask", "off"), "'ask' or 'off'"),
    "answer_within": (
        lambda v: v is None or (isinstance(v, timedelta) and v > timedelta(0)),
        "a timedelta above 0, such as timedelta(hours=24)",
    ),
    "parallel": (lambda v: number(v, 1) and isinstance(v, int), "a whole number from 1"),
    "parameters": (_parameters, "a dictionary of what JSON has"),
    "resources": (lambda v: v is None or callable(v), "a function that makes an async context manager"),
}
"""What each field of an agent accepts."""
LIMITS: Accepted = {
    f"limits.{name}": (lambda v: v is None or number(v, 0), "a number from 0") for name in Limits.__struct_fields__
} | {
    "limits.resumes": (lambda v: number(v, 0) and isinstance(v, int), "a whole number from 0"),
    "limits.until": (lambda v: v is None or (isinstance(v, datetime) and v.tzinfo is not None), "a time with its zone"),
}
"""The same of its limits."""


def check(accepted: Accepted, given: Mapping[str, object]) -> None:
    """Raise `BadAgent` for a value that can't work."""
    for name, value in given.items():
        fits, words = accepted[name]
        if not fits(value):
            raise BadAgent(f"{name} is {value!r:.200}, not {words}")


if TYPE_CHECKING:

    class AgentOptions(TypedDict, total=False):
        """What has no part in an agent's type."""

        name: Required[str]
        model: Required[Model]
        limits: Limits
        context: Policy | None
        approve: Literal["ask", "off"]
        parameters: Mapping[str, Any]
        output_retries: int
        answer_within: timedelta | None
        parallel: int
