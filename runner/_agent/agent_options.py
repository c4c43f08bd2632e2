"""What an agent may be given: the options that have no part in its type, and what each accepts."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, Required, TypedDict

import msgspec

from replay.values import Limits
from runner._agent import declaration
from runner._agent.context import DropResults, KeepLast, Policy, SummariseAfter, TokenBudget
from runner._agent.model import Model


def _limits(value: object) -> bool:
    fields = msgspec.structs.asdict(value) if isinstance(value, Limits) else {"turns": -1}
    until = fields.pop("until", None)
    aware = until is None or (isinstance(until, datetime) and until.tzinfo is not None)
    return aware and all(limit is None or declaration.number(limit, 0) for limit in fields.values())


def _policy(value: object) -> bool:
    if isinstance(value, SummariseAfter | KeepLast | DropResults | TokenBudget):
        return all(declaration.number(count, 0) for name, count in vars(value).items() if name != "instructions")
    return value is None or callable(value)


FITS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda v: isinstance(v, str) and bool(v.strip()), 'a name, such as "support"'),
    "model": (
        lambda v: not isinstance(v, type) and callable(getattr(v, "ask", None)) and callable(getattr(v, "bound", None)),
        'a model, such as runner.models.named("anthropic:...")',
    ),
    "tools": (lambda v: declaration.several(v, object), "a list of tools"),
    "instructions": (lambda v: isinstance(v, str) or callable(v), "text, or a function of the inputs"),
    "output_retries": (lambda v: declaration.number(v, 0) and isinstance(v, int), "a whole number from 0"),
    "validate": (lambda v: v is None or callable(v), "a function of an output"),
    "limits": (_limits, "a runner.Limits of numbers from 0, and a time with its zone"),
    "context": (_policy, "a policy, such as runner.SummariseAfter(100_000), of numbers from 0, or None"),
    "approve": (lambda v: v in ("ask", "off"), "'ask' or 'off'"),
    "answer_within": (
        lambda v: v is None or (isinstance(v, timedelta) and v > timedelta(0)),
        "a timedelta above 0, such as timedelta(hours=24)",
    ),
    "parallel": (lambda v: declaration.number(v, 1) and isinstance(v, int), "a whole number from 1"),
    "parameters": (lambda v: isinstance(v, Mapping), "a dictionary"),
    "resources": (lambda v: v is None or callable(v), "a function that makes an async context manager"),
}
"""What each field accepts, and in words."""


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


class PlainOptions(AgentOptions, total=False):
    """The same for an agent without inputs."""

    instructions: str
