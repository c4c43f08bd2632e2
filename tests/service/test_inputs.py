"""Inputs of runs that are attached to: they are those that the run was begun with, or the call is another one."""

import asyncio
from pathlib import Path

import msgspec
import pytest

import runner
from runner.testing import ScriptedModel


class Tenant(msgspec.Struct):
    """The inputs."""

    tenant: str


def _greet(inputs: Tenant) -> str:
    return f"You work for {inputs.tenant}."


def agent() -> runner.Agent[Tenant, None, str]:
    """An agent that answers with its instructions."""
    model = ScriptedModel([lambda request: runner.Reply(text=request.instructions)])
    return runner.Agent(name="desk", model=model, inputs=Tenant, instructions=_greet)


@pytest.mark.fault("a call attaches to a run of other inputs")
def test_whoever_attaches_gives_the_same_inputs(tmp_path: Path) -> None:
    """By `run`, by `enqueue`, and by a worker."""
    queued = runner.enqueue(agent(), "go", runs=tmp_path, inputs=Tenant("acme"))
    done = runner.run_sync(agent(), "go", run="r", runs=tmp_path, inputs=Tenant("acme")).finished()
    assert done.answer == "You work for acme."
    with pytest.raises(runner.RunExists, match="inputs"):
        runner.run_sync(agent(), "go", run="r", runs=tmp_path, inputs=Tenant("evil"))

    async def serve() -> list[str]:
        async with runner.Worker([agent()], runs=tmp_path) as worker:
            same = await worker.start(agent(), "go", run=queued, inputs=Tenant("acme"))
            other = await worker.start(agent(), "go", inputs=Tenant("bolt"))
            with pytest.raises(runner.RunExists, match="inputs"):
                await worker.start(agent(), "go", run="r", inputs=Tenant("evil"))
            return [(await run.outcome()).finished().output for run in (same, other)]

    assert asyncio.run(serve()) == ["You work for acme.", "You work for bolt."]
