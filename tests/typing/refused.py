"""Lines that mypy and pyright must refuse, each marked `# E`. Read by the checkers, never run."""

from __future__ import annotations

from datetime import timedelta
from typing import TypedDict

import msgspec

import runner
from runner.testing import ScriptedModel

MODEL = ScriptedModel(["done"])


def body(order: str) -> str:
    """A plain function."""
    return order


TOOL = runner.tool(effect="reads")(body)
AGENT = runner.Agent(name="shop", model=MODEL)

runner.tool(effect="keyed")(body)  # E
runner.tool(effect="reads", key_ttl=timedelta(hours=1))(body)  # E
runner.tool(effect="once")(body)  # E
runner.tool(effect="keyed", key_ttl=3600)(body)  # E
runner.tool(effect="reads", retries=3)(body)  # E
runner.tool(timeout="5")(body)  # E
runner.tool(timeout=None)(body)  # E
runner.tool(approval="yes")(body)  # E
runner.tool("look")  # E
TOOL(5)  # E
TOOL("7", "8")  # E
print(TOOL("7").nothing)  # E
print(runner.tool(body)("7").nothing)  # E


class Desk:
    """A tool that is a method."""

    @runner.tool
    def look(self, order: str) -> int:
        """Look."""
        return len(order)


Desk().look(5)  # E


@TOOL.lookup  # E
def found(call: runner.Call) -> bool:
    """Answer with a word that the ladder does not know."""
    return bool(call.key)


runner.Agent(model=MODEL)  # E
runner.Agent("shop", MODEL)  # E
runner.Agent(name="shop", model="gpt-6")  # E
runner.Agent(name="shop", model=MODEL, tools=[body])  # E
runner.Agent(name="shop", model=MODEL, tools=TOOL)  # E
runner.Agent(name="shop", model=MODEL, approve="maybe")  # E
runner.Agent(name="shop", model=MODEL, limits=3)  # E

runner.start_sync(AGENT, "go")  # E
runner.start_sync(AGENT, "go", runs="runs", workspce=".")  # E
runner.start_sync("shop", "go", runs="runs")  # E
runner.start_sync(AGENT, "go", runs="runs", on_question=lambda _: "yes")  # E
print(runner.start_sync(AGENT, "go", runs="runs").answer)  # E
print(runner.start_sync(AGENT, "go", runs="runs").finished().questions)  # E
runner.resume_sync(AGENT, "r", runs="runs")  # E
runner.resume_sync("r", AGENT, runs="runs", task="go")  # E
runner.settle("r", "q1", "ada", "maybe", runs="runs")  # E


def waited() -> runner.Outcome:
    """Forget to await."""
    return runner.start(AGENT, "go", runs="runs")  # E


runner.ToolFailed(5)  # E
runner.ModelError("no", False)  # E
runner.BadTool()  # E


class Tenant(msgspec.Struct):
    """Inputs."""

    tenant: str


class Other(msgspec.Struct):
    """Other inputs."""

    thing: int


class Row(TypedDict):
    """Inputs as a dictionary."""

    tenant: str


@runner.tool
def first(call: runner.Call[Tenant], order: str) -> str:
    """Read the inputs."""
    return call.inputs.tenant + order


@runner.tool
def last(order: str, call: runner.Call[Tenant]) -> str:
    """Read the inputs."""
    return call.inputs.tenent + order  # E


@runner.tool
def blind(order: str, call: runner.Call) -> str:
    """Read inputs of an unknown type."""
    return call.inputs.tenant + order  # E


@runner.tool
def shared(call: runner.Call[object, Tenant], order: str) -> str:
    """Read resources that no agent has."""
    return call.id + order


def call_it(call: runner.Call[Tenant]) -> None:
    """Call a tool in a test."""
    first(call, 5)  # E
    first(call)  # E


TENANTS = runner.Agent(name="t", model=MODEL, inputs=Tenant)
runner.Agent(name="t", model=MODEL, tools=[first])  # E
runner.Agent(name="t", model=MODEL, inputs=Other, tools=[last])  # E
runner.Agent(name="t", model=MODEL, inputs=Tenant, tools=[shared])  # E
runner.Agent(name="t", model=MODEL, inputs=Tenant, instructions=lambda inputs: inputs.thing)  # E
runner.Agent(name="t", model=MODEL, instructions=repr)  # E
runner.start_sync(TENANTS, "go", runs="runs")  # E
runner.start_sync(TENANTS, "go", runs="runs", inputs=Other(1))  # E
runner.start_sync(AGENT, "go", runs="runs", inputs=Tenant("acme"))  # E
Row(tenent="acme")  # E
print(runner.start_sync(AGENT, "go", runs="runs").finished().output.cents)  # E
runner.Agent(name="t", model=MODEL, resources=Tenant("acme"))  # E
runner.enqueue(TENANTS, "go", runs="runs")  # E
runner.run_sync(TENANTS, "go", runs="runs", inputs=Tenant("acme"))  # E
runner.run_sync(TENANTS, "go", run="x", runs="runs")  # E


async def served(worker: runner.Worker) -> None:
    """Forget the inputs."""
    await worker.start(TENANTS, "go")  # E
    await worker.start(AGENT, "go", inputs=Tenant("acme"))  # E


class Refund(msgspec.Struct):
    """An answer."""

    cents: int


def judge(refund: Refund) -> str | None:
    """Judge an answer."""
    return None if refund.cents else "nothing is no refund"


runner.Agent(name="t", model=MODEL, output=Other, validate=judge)  # E
runner.Agent(name="t", model=MODEL, validate=judge)  # E
runner.Agent(name="t", model=MODEL, output=Refund, output_retries="2")  # E
REFUNDS = runner.Agent(name="t", model=MODEL, output=Refund)
print(runner.start_sync(REFUNDS, "go", runs="runs").finished().output.thing)  # E
