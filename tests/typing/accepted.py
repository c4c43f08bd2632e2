"""Programs that mypy and pyright must accept, and the types that they must see. Read by the checkers, never run."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import timedelta
from typing import Any, Literal, Protocol, TypedDict, assert_never, assert_type

import msgspec

import runner
from runner.testing import ScriptedModel

MODEL = ScriptedModel(["done"])


@runner.tool
def bare(order: str) -> int:
    """Declare without options."""
    return len(order)


@runner.tool(effect="reads", timeout=5, approval=lambda given: given["order"] == "7", name="look")
def options(order: str, times: int = 1) -> str:
    """Declare with options."""
    return order * times


@runner.tool(effect="keyed", key_ttl=timedelta(hours=24), once_per=("invoice",))
async def pay(invoice: str, cents: int, call: runner.Call) -> str:
    """Await a tool that takes its call."""
    return f"{invoice} {cents} {call.key}"


@runner.tool
def anything(value: object, other: Any) -> None:
    """Take what a model writes as it is."""


assert_type(bare("7"), int)
assert_type(options("7", times=2), str)


async def direct(call: runner.Call) -> None:
    """Call an async tool in a test of its own."""
    assert_type(await pay("i-7", 100, call), str)


@bare.lookup
def found(call: runner.Call) -> runner.Found | runner.Missing:
    """Answer at once."""
    return runner.Found(call.key)


@pay.lookup(visible_within=60)
async def paid(call: runner.Call) -> runner.Found | runner.Unsure:
    """Answer later."""
    return runner.Unsure(call.key)


class Desk:
    """Tools that are methods."""

    @runner.tool(effect="reads")
    def look(self, order: str) -> int:
        """Look."""
        return len(order)

    def plain(self, order: str) -> str:
        """Return the order."""
        return order


DESK = Desk()
assert_type(DESK.look("7"), int)
assert_type(runner.tool(DESK.plain)("7"), str)

TOOLS = [bare, options, pay, DESK.look]
AGENT = runner.Agent(name="shop", model=MODEL, tools=TOOLS, limits=runner.Limits(turns=3), approve="off")
NAMED: list[runner.Tool] = [bare]
NAMED.append(runner.tool(effect="idempotent")(DESK.plain))
runner.Agent(name="shop", model=MODEL, tools=(*NAMED, *TOOLS, anything))


def computed(effect: runner.Effect, body: Callable[[str], str]) -> runner.Tool:
    """Declare an effect that is known when the program runs."""
    declare = functools.partial(runner.Tool, effect=effect, timeout=5)
    return declare(body)


def tools_for(place: str) -> Sequence[runner.Tool]:
    """Choose tools."""
    return [bare] if place == "test" else TOOLS


runner.Agent(name="shop", model=MODEL, tools=tools_for("test"))


def answer(question: runner.Question) -> runner.Answer | None:
    """Answer in the program's name."""
    return runner.Answer("approve", who="ada") if question.tool == "pay" else None


async def later(question: runner.Question) -> runner.Answer | None:
    """Answer after waiting for somebody."""
    return answer(question)


def sync() -> None:
    """Start and resume without an event loop."""
    outcome = runner.start_sync(AGENT, "go", runs="runs", run="r", on_question=answer)
    assert_type(outcome, runner.Outcome)
    assert_type(outcome.finished(), runner.Finished)
    assert_type(runner.resume_sync("r", AGENT, runs="runs", on_question=later).finished().answer, str)


async def outcomes() -> int:
    """Tell the outcomes apart."""
    outcome = await runner.start(AGENT, "go", runs="runs")
    match outcome:
        case runner.Finished(answer=text):
            return len(text)
        case runner.Paused(questions=questions):
            return len(questions)
        case runner.Waiting(until=until):
            return until.year
        case _:
            assert_never(outcome)


def caught() -> None:
    """Catch what an embedding program must know."""
    try:
        sync()
    except runner.RunExists as error:
        assert_type(error.run, str)
    except runner.RunLocked as error:
        assert_type(error.pid, int | None)
    except (runner.NoSuchRun, runner.LogDamaged, runner.DiskFull, runner.BadRunId) as error:
        assert_type(error.hint, str)
    except runner.Stopped as stop:
        assert_type(stop.reason, str)


def raised() -> None:
    """Raise what tools and models raise."""
    raise runner.ModelError("no", transient=False) from runner.ToolFailed("no", retry_after=3)


class Base(msgspec.Struct):
    """Inputs that others build on."""

    tenant: str


class Tenant(Base):
    """The inputs of most agents here."""

    user: str = ""


class HasUser(Protocol):
    """Whatever has a user."""

    user: str


class Row(TypedDict):
    """Inputs as a dictionary."""

    tenant: str


class Shop:
    """What tools share."""

    opened: int = 0


@runner.tool
def first(call: runner.Call[Tenant], order: str) -> str:
    """Take the call first, where everything is checked."""
    return call.inputs.user + order


@runner.tool(effect="reads")
async def last(order: str, times: int, call: runner.Call[Base]) -> int:
    """Take the call last: the result is checked, and what an agent's inputs must be."""
    return len(call.inputs.tenant + order) * times


@runner.tool
def some(call: runner.Call[HasUser], order: str) -> str:
    """Say no more of the inputs than is read."""
    return call.inputs.user + order


@runner.tool
def shared(call: runner.Call[object, Shop], order: str) -> str:
    """Read what tools share, whatever the inputs are."""
    return call.id + order


@first.lookup(visible_within=60)
async def known(call: runner.Call[Tenant]) -> runner.Found | runner.Missing:
    """Read the inputs, too."""
    return runner.Found(call.inputs.user)


class Counter:
    """Methods that read inputs."""

    @runner.tool
    async def counted(self, order: str, call: runner.Call[Tenant]) -> str:
        """Count."""
        return call.inputs.user + order


async def typed(call: runner.Call[Tenant, None]) -> None:
    """Call tools directly, as a test does."""
    assert_type(first(call, order="7"), str)
    assert_type(await last("7", times=1, call=call), int)


def greeting(inputs: Base) -> str:
    """Make the instructions."""
    return inputs.tenant


TENANTS = runner.Agent(
    name="tenants",
    model=MODEL,
    inputs=Tenant,
    tools=[first, last, some, bare, pay, Counter().counted],
    instructions=lambda inputs: inputs.user,
)
assert_type(AGENT, runner.Agent)
assert_type(AGENT, runner.Agent[None, None, str])
assert_type(TENANTS, runner.Agent[Tenant, None, str])
MIXED: list[runner.Tool[Tenant, None]] = [first, bare]
MIXED.append(last)
assert_type(
    runner.Agent(name="a", model=MODEL, inputs=Tenant, tools=[*TOOLS, *MIXED], instructions=greeting),
    runner.Agent[Tenant, None, str],
)
ROWS = runner.Agent(name="rows", model=MODEL, inputs=Row, limits=runner.Limits(turns=3))


async def with_inputs() -> None:
    """Start with inputs."""
    await runner.start(TENANTS, "go", runs="runs", inputs=Tenant("acme"), run="r")
    assert_type(
        runner.start_sync(ROWS, "go", runs="runs", inputs=Row(tenant="acme")).finished().output,
        str,
    )
    assert_type((await runner.resume("r", TENANTS, runs="runs")).finished(), runner.Finished)


def over(agent: runner.Agent[Tenant, Any, str], inputs: Tenant) -> str:
    """Take any agent with these inputs."""
    return runner.start_sync(agent, "go", runs="runs", inputs=inputs).finished().answer


@contextlib.asynccontextmanager
async def shop() -> AsyncGenerator[Shop]:
    """Open what tools share."""
    yield Shop()


SHARING = runner.Agent(name="sharing", model=MODEL, inputs=Tenant, resources=shop, tools=[first, shared, *TOOLS])
assert_type(SHARING, runner.Agent[Tenant, Shop, str])
assert_type(runner.Agent(name="s", model=MODEL, resources=shop, tools=[shared, bare]), runner.Agent[None, Shop, str])


async def served() -> None:
    """Serve runs of several agents."""
    async with runner.Worker([AGENT, SHARING], runs="runs", at_once=50, grace=5) as worker:
        begun = await worker.start(SHARING, "go", run="x", inputs=Tenant("acme"))
        assert_type(begun, runner.Run[str])
        assert_type((await begun.outcome()).finished().output, str)
        assert_type(await worker.start(AGENT, "go"), runner.Run)
    assert_type((await runner.run(SHARING, "go", run="x", runs="runs", inputs=Tenant("acme"))).finished().output, str)
    assert_type(runner.run_sync(AGENT, "go", run="x", runs="runs").finished().answer, str)
    assert_type(runner.enqueue(SHARING, "go", runs="runs", inputs=Tenant("acme")), str)


class Refund(msgspec.Struct):
    """An answer."""

    cents: int


class Refusal(msgspec.Struct):
    """Another answer."""

    why: str


def judge(refund: Refund) -> str | None:
    """Judge an answer."""
    return None if refund.cents else "nothing is no refund"


REFUNDS = runner.Agent(name="r", model=MODEL, inputs=Tenant, resources=shop, output=Refund, tools=[first, shared])
assert_type(REFUNDS, runner.Agent[Tenant, Shop, Refund])
assert_type(runner.Agent(name="r", model=MODEL, output=Refund, validate=judge), runner.Agent[None, None, Refund])
assert_type(runner.Agent(name="r", model=MODEL, output=list[Refund]), runner.Agent[None, None, list[Refund]])
assert_type(runner.Agent(name="r", model=MODEL, output=Row), runner.Agent[None, None, Row])
EITHER = runner.Agent(name="r", model=MODEL, output=Refund | Refusal, output_retries=3)


async def outputs() -> int:
    """Read what agents answer."""
    assert_type(runner.start_sync(EITHER, "go", runs="r").finished().output, Refund | Refusal)
    assert_type((await runner.resume("x", REFUNDS, runs="r", wait="return")).finished().output, Refund)
    yes = runner.Agent(name="b", model=MODEL, output=Literal["yes", "no"])
    assert_type(runner.start_sync(yes, "go", runs="r").finished().output, Literal["yes", "no"])
    outcome = await runner.run(REFUNDS, "go", run="x", runs="r", inputs=Tenant("acme"))
    match outcome:
        case runner.Finished(output):
            return output.cents
        case runner.Paused(questions):
            return len(questions)
        case runner.Waiting(until):
            return until.day
        case _:
            assert_never(outcome)
