"""What can't work is refused where it is declared, and the error says what to write instead."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

import runner
from runner.testing import ScriptedModel

MODEL = ScriptedModel(["done"])


def fine(order: str) -> str:
    """A function that every declaration below could be of."""
    return order


def _sync_generator(order: str) -> Iterator[str]:
    yield order


async def _async_generator(order: str) -> AsyncIterator[str]:
    yield order


def _optional_call(call: runner.Call | None) -> None: ...
def _starred(*orders: str) -> None: ...
def _keywords(**orders: str) -> None: ...
def _positional(order: str, /) -> None: ...


async def _later(arguments: Any) -> bool:
    return bool(arguments)


class Desk:
    """A class, and one whose objects can be called."""

    def __call__(self, order: str) -> None:
        """Nothing."""

    @runner.tool(effect="reads")
    def look(self, order: str) -> str:
        """Look."""
        return f"{order} on {type(self).__name__}"

    @runner.tool
    @staticmethod
    def count(order: str) -> int:
        """Count."""
        return len(order)


FUNCTIONS: list[tuple[Any, str]] = [
    (_sync_generator, "generator, and calling it runs nothing: return a list"),
    (_async_generator, "generator, and calling it runs nothing: return a list"),
    (lambda order: order, "give one with `name=`"),
    (functools.partial(fine, order="7"), "of type partial: write a function"),
    (Desk, "it is a class: write a function"),
    (Desk(), "of type Desk: write a function"),
    ("fine", "of type str: write a function"),
    (runner.tool(fine), "it is a tool already"),
    (_optional_call, "parameter call is given always: write `call: runner.Call`"),
    (_starred, "write `orders: list"),
    (_keywords, r"write `orders: dict\[str"),
    (_positional, "remove the `/`"),
]


@pytest.mark.fault("a function that can't be a tool")
@pytest.mark.parametrize(("function", "said"), FUNCTIONS, ids=[said for _, said in FUNCTIONS])
def test_a_function_that_cannot_be_a_tool_is_refused_with_what_to_write(function: Any, said: str) -> None:
    """A generator was once recorded as having run, and nothing had."""
    with pytest.raises(runner.BadTool, match=said) as refused:
        runner.tool(effect="reads")(function)
    assert refused.value.tool


OPTIONS: list[tuple[dict[str, Any], str]] = [
    *(
        ({"timeout": value}, "a number of seconds above 0")
        for value in (None, "5", 0, -1, 1e12, float("nan"), float("inf"))
    ),
    *(({"attempts": value}, "a whole number from 1") for value in (0, 1.5, "3", None, True)),
    *(({"approval": value}, "True, False, or a function") for value in ("yes", 1, None, _later)),
    *(({"once_per": value}, "a list of names of arguments") for value in ("order", [1], None)),
    *(({"secret": value}, "a list of names or compiled patterns") for value in ("token", [1])),
    *(({"name": value}, "1 to 64 of a-z") for value in ("a.b", "a/b", "x" * 65, "", "größe", 5)),
    ({"schema": "{}"}, "a JSON schema, as a dictionary"),
    ({"effect": "once"}, "not one of reads, idempotent, keyed, non_idempotent"),
    ({"effect": ["reads"]}, "not one of reads"),
    ({"effect": "keyed", "key_ttl": 3600}, "a timedelta, such as"),
    ({"effect": "keyed"}, "effect keyed needs `key_ttl`"),
    ({"key_ttl": timedelta(hours=1)}, "effect keyed needs `key_ttl`"),
    ({"effect": "keyed", "key_ttl": timedelta(seconds=60)}, "longer than the timeout"),
    ({"once_per": ["ordr"]}, "once_per names no argument: ordr"),
    ({"retries": 3}, "there is no option retries: there are effect, key_ttl"),
]


@pytest.mark.fault("an option that can't work")
@pytest.mark.parametrize(("options", "said"), OPTIONS, ids=[f"{n}-{list(o)[-1]}" for n, (o, _) in enumerate(OPTIONS)])
def test_an_option_that_cannot_work_is_refused_with_what_is_accepted(options: dict[str, Any], said: str) -> None:
    """Otherwise it fails in the middle of a run, or is never noticed."""
    with pytest.raises(runner.BadTool, match=said):
        runner.tool(**options)(fine)


def _find(_call: runner.Call) -> runner.Missing:
    return runner.Missing()


def _is_there(_call: runner.Call) -> bool | None:
    return True


LOOKUPS: list[tuple[Any, Any, str]] = [
    (_is_there, 0, r"must answer Found\(result\), Missing\(\) or Unsure\(\), and bool | None is none of them"),
    (_find, "5", "a number of seconds from 0"),
    (_find, -1, "a number of seconds from 0"),
    (_find, 1e12, "at most 366 days"),
    (lambda: None, 0, "must take one argument"),
    (lambda *, call: call, 0, "must take one argument"),
    (_sync_generator, 0, "generator"),
    ("find", 0, "of type str"),
]


@pytest.mark.fault("a lookup that can't work")
@pytest.mark.parametrize(("find", "visible_within", "said"), LOOKUPS)
def test_a_lookup_that_cannot_work_is_refused(find: Any, visible_within: Any, said: str) -> None:
    """It is asked after a crash; then it is too late."""
    with pytest.raises(runner.BadTool, match=said):
        runner.tool(fine).lookup(visible_within=visible_within)(find)


WRONG: list[Any] = [-1, "3"]
TEXT: Any = "100"
SUMMARIES = [runner.SummariseAfter(-1), runner.SummariseAfter(100, -1), runner.SummariseAfter(TEXT)]


class NamelessModel(ScriptedModel):
    """A model without the name by which it is priced."""

    def __init__(self, name: Any) -> None:
        super().__init__(["done"])
        self.name = name


AGENTS: list[tuple[dict[str, Any], str]] = [
    *(({"name": value}, "a name, such as") for value in ("", " ", "a\0b", None, 5)),
    *(({"model": value}, "an async `ask`, such as runner.models.named") for value in ("gpt-6", None, ScriptedModel)),
    *(({"model": NamelessModel(name)}, "a model with a text `name`") for name in (None, 5)),
    *(({"tools": value}, "a list of tools") for value in (runner.tool(fine), "fine", {runner.tool(fine)}, None)),
    ({"tools": [fine]}, "put @runner.tool on its function"),
    ({"tools": [runner.tool(fine), runner.tool(fine)]}, "two tools are named fine"),
    ({"tools": [Desk.look]}, "tool look is a method without its object: take it from an instance"),
    ({"instructions": None}, "not text"),
    ({"limits": 3}, "limits is 3, not a runner.Limits"),
    *(({"limits": runner.Limits(turns=value)}, f"limits.turns is {value!r}, not a number from 0") for value in WRONG),
    ({"limits": runner.Limits(resumes=cast("int", None))}, "limits.resumes is None, not a whole number from 0"),
    ({"limits": runner.Limits(dollars=float("nan"))}, "limits.dollars is nan, not a number from 0"),
    ({"limits": runner.Limits(until=datetime(2030, 1, 1))}, "limits.until is datetime.*, not a time with its zone"),  # noqa: DTZ001 (the fault)
    ({"context": 100_000}, "a policy, such as"),
    *(({"context": value}, "of numbers from 0") for value in SUMMARIES),
    ({"approve": "maybe"}, "'ask' or 'off'"),
    *(({"parameters": value}, "a dictionary of what JSON has") for value in ([1], {"seed": object()}, {"t": {1j}})),
    ({"validate": len}, "validate judges an output, and agent shop declares none"),
]


@pytest.mark.fault("an agent that can't work")
@pytest.mark.parametrize(("fields", "said"), AGENTS)
def test_an_agent_that_cannot_work_is_refused_with_what_is_accepted(fields: dict[str, Any], said: str) -> None:
    """Before a run exists."""
    with pytest.raises(runner.BadAgent, match=said):
        runner.Agent(**{"name": "shop", "model": MODEL, **fields})


def test_a_method_is_a_tool_of_its_object() -> None:
    """The model never sees `self`, and the lookup and the options stay."""
    desk = Desk()
    assert desk.look("7") == "7 on Desk"
    assert list(desk.look.schema["properties"]) == ["order"]
    agent = runner.Agent(name="shop", model=MODEL, tools=[desk.look, Desk.count])
    tool = agent.tool("look")
    assert tool is not None
    assert tool.function(order="7") == "7 on Desk"
    anything: Any = desk
    assert anything.count("seven") == 5


BOUND: list[Callable[..., object]] = [Desk().__call__, Desk.look.function.__get__(Desk()), functools.lru_cache(fine)]


@pytest.mark.parametrize("function", BOUND)
def test_a_bound_method_and_a_wrapped_function_are_functions(function: Callable[..., object]) -> None:
    """What is refused is only what could not work."""
    assert list(runner.tool(name="look")(function).schema["properties"]) == ["order"]
