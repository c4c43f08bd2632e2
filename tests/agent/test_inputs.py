"""Inputs: facts of one run, typed, stored once, and shown to the model only where the instructions say so."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, TypedDict

import msgspec
import pydantic
import pytest

import eventlog
import replay
import runner
from replay.events import RunStarted
from runner.testing import ScriptedModel, tool_calls

RUN = "r1"


class Tenant(msgspec.Struct):
    """Inputs of most agents here."""

    tenant: str
    cents: Annotated[int, msgspec.Meta(ge=0)] = 5


class Fewer(msgspec.Struct):
    """What a deploy made of them."""

    customer: str


@dataclass
class AsDataclass:
    """The same."""

    tenant: str


class AsDict(TypedDict):
    """The same."""

    tenant: str


class AsModel(pydantic.BaseModel):
    """The same."""

    tenant: str


class HasTenant(Protocol):
    """Whatever names a tenant."""

    tenant: str


SEEN: list[Any] = []


@runner.tool(effect="idempotent", approval=True)
def look(call: runner.Call[Tenant], order: str) -> str:
    """Look."""
    SEEN.append(call.inputs)
    call.inputs.cents += 1
    return f"{order} of {call.inputs.tenant}"


@runner.tool(effect="reads")
def other(call: runner.Call[Fewer]) -> str:
    """Read other inputs."""
    return call.inputs.customer


@runner.tool(effect="reads")
def any_of(call: runner.Call[HasTenant]) -> str:
    """Read whatever has a tenant."""
    return call.inputs.tenant


@runner.tool
def asks(order: str) -> str:
    """Do something."""
    return order


@asks.lookup
def asked(call: runner.Call[Fewer]) -> runner.Unsure:
    """Look with other inputs."""
    return runner.Unsure(call.inputs.customer)


def agent(**changes: Any) -> runner.Agent[Tenant, None, str]:
    """An agent that reads its inputs in the instructions and in a tool."""
    script: list[Any] = [tool_calls(("look", {"order": "o-1"}), ("look", {"order": "o-2"})), "Done."]
    made = runner.Agent(
        name="desk",
        model=ScriptedModel(script),
        inputs=Tenant,
        tools=[look],
        instructions=lambda inputs: f"You work for {inputs.tenant}.",
    )
    return made.replace(**changes)


def test_inputs_survive_a_pause_and_every_tool_gets_its_own(tmp_path: Path) -> None:
    """They are read from the log by another life; what one call does to them, no other sees."""
    SEEN.clear()
    runner.start_sync(agent(), "Look.", runs=tmp_path, run=RUN, inputs=Tenant("acme"))
    for question in ("1.0-approve", "1.1-approve"):
        runner.approve(RUN, question, "ada", runs=tmp_path)
    assert runner.resume_sync(RUN, agent(), runs=tmp_path).finished().output == "Done."
    assert [Tenant("acme", 6), Tenant("acme", 6)] == SEEN
    assert json.loads(str(runner.read_state(RUN, tmp_path).inputs)) == {"tenant": "acme", "cents": 5}


def test_only_the_instructions_show_them_to_the_model(tmp_path: Path) -> None:
    """What goes to the model is what the function of the inputs says."""
    sent: list[runner.Request] = []

    def reply(request: runner.Request) -> runner.Reply:
        sent.append(request)
        return runner.Reply(text="Done.")

    runner.start_sync(agent(model=ScriptedModel([reply])), "Look.", runs=tmp_path, inputs=Tenant("acme"))
    (request,) = sent
    assert request.instructions == "You work for acme."
    assert "acme" not in repr(request.messages)


@pytest.mark.parametrize("given", [AsDataclass("acme"), AsDict(tenant="acme"), AsModel(tenant="acme")], ids=repr)
def test_a_type_may_be_of_any_kind(given: Any, tmp_path: Path) -> None:
    """As an argument may."""
    kind = AsDict if isinstance(given, dict) else type(given)
    read: list[Any] = []

    @runner.tool(effect="reads")
    def take(call: runner.Call[Any]) -> str:
        read.append(call.inputs)
        return ""

    typed: runner.Agent[Any, None, str] = runner.Agent(
        name="any", model=ScriptedModel([tool_calls(("take", {})), "Done."]), inputs=kind, tools=[take]
    )
    runner.start_sync(typed, "Go.", runs=tmp_path, inputs=given)
    assert read == [given]


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        (None, "reads inputs of type Tenant, and the run has none"),
        ({"tenent": "acme"}, "the inputs are no Tenant: Object missing required field `tenant`"),
        (Tenant("acme", -1), "cents: Expected `int` >= 0"),
        (Tenant("\ud800"), "surrogates not allowed"),
        (object(), "object has no JSON form"),
    ],
    ids=["none", "a typo", "below its bound", "half a character", "no JSON"],
)
@pytest.mark.fault("inputs that no tool could read")
def test_what_does_not_fit_starts_no_run(inputs: Any, says: str, tmp_path: Path) -> None:
    """It is refused before there is a run."""
    with pytest.raises(runner.BadAgent, match=says):
        runner.start_sync(agent(), "Look.", runs=tmp_path, run=RUN, inputs=inputs)
    assert not list(tmp_path.iterdir())


def test_inputs_that_nobody_declared_are_refused(tmp_path: Path) -> None:
    """They would be lost."""
    bare: Any = runner.Agent(name="bare", model=ScriptedModel(["Done."]))
    with pytest.raises(runner.BadAgent, match="declares no inputs"):
        runner.start_sync(bare, "Go.", runs=tmp_path, inputs=Tenant("acme"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tools": [other], "inputs": Tenant}, "tool other reads inputs of type Fewer, and agent a declares inputs=Te"),
        ({"tools": [asks], "inputs": Tenant}, "the lookup of tool asks reads inputs of type Fewer"),
        ({"tools": [look]}, "tool look reads inputs of type Tenant, and agent a declares no inputs"),
        ({"tools": [any_of]}, "tool any_of reads inputs of type HasTenant, and agent a declares no inputs"),
        ({"instructions": str}, "the instructions are a function of inputs, and agent a"),
        ({"inputs": object()}, "inputs: "),
    ],
    ids=["other inputs", "a lookup", "no inputs", "a protocol", "instructions", "no type"],
)
@pytest.mark.fault("a tool reads inputs that its agent does not have")
def test_a_tool_that_reads_other_inputs_is_refused(options: dict[str, Any], says: str) -> None:
    """A checker can't see it where the call is not the first parameter."""
    make: Any = runner.Agent
    with pytest.raises(runner.BadAgent, match=says):
        make(name="a", model=ScriptedModel([]), **options)
    make(name="a", model=ScriptedModel([]), tools=[any_of], inputs=Tenant)


@pytest.mark.parametrize(
    ("say", "says"),
    [(lambda inputs: inputs.nothing, "raised AttributeError"), (lambda _: 5, "made int, not text")],
    ids=["raises", "no text"],
)
def test_instructions_that_can_not_be_made_start_no_run(say: Any, says: str, tmp_path: Path) -> None:
    """What can't be asked leaves no run behind."""
    with pytest.raises(runner.BadAgent, match=says):
        runner.start_sync(agent(instructions=say), "Look.", runs=tmp_path, inputs=Tenant("acme"))
    assert not list(tmp_path.iterdir())


@pytest.mark.fault("a deploy changes the type of inputs under a run")
def test_a_deploy_that_can_not_read_the_inputs_is_caught_before_anything_is_written(tmp_path: Path) -> None:
    """Preflight says so, and a resume refuses."""
    runner.start_sync(agent(), "Look.", runs=tmp_path, run=RUN, inputs=Tenant("acme"))
    changed: Any = agent(inputs=Fewer, tools=[asks], instructions="Be brief.")
    (found,) = runner.review.preflight(tmp_path, changed)
    assert not found.able
    said = {issue.kind: issue.says for issue in found.issues}
    assert "the run's inputs are no Fewer" in said["refused"]
    assert "the inputs changed" in [issue.says for issue in found.issues]
    before = runner.read_state(RUN, tmp_path).seq
    with pytest.raises(runner.BadAgent, match="the run's inputs are no Fewer"):
        runner.resume_sync(RUN, changed, runs=tmp_path)
    assert runner.read_state(RUN, tmp_path).seq == before


def _of_other_inputs(line: eventlog.Line) -> eventlog.Line:
    """The line with other inputs, if it begins the run."""
    events = [replay.decode(raw) for raw in line.events]
    changed = [
        msgspec.structs.replace(event, inputs='{"tenant": "evil"}') if isinstance(event, RunStarted) else event
        for event in events
    ]
    return msgspec.structs.replace(line, events=[msgspec.Raw(replay.encode(event)) for event in changed])


def test_a_retrace_sees_other_inputs_and_other_instructions(tmp_path: Path) -> None:
    """As drift of what the model was told."""
    runner.start_sync(agent(), "Look.", runs=tmp_path, run=RUN, inputs=Tenant("acme"))
    assert not runner.review.retrace(RUN, agent(), runs=tmp_path).drift
    changed = agent(instructions=lambda inputs: f"You serve {inputs.tenant}.")
    found = runner.review.retrace(RUN, changed, runs=tmp_path)
    assert found.divergence is None
    assert {(one.tag, one.part) for one in found.drift} == {
        ("run_started", "instructions"),
        ("model_asked", "instructions"),
    }
    now: Any = agent()
    lines = [_of_other_inputs(line) for line in eventlog.store(tmp_path).read(RUN).lines]
    again = replay.retrace(lines, lambda state, at: runner.decide(now, state, at))
    assert {one.part for one in again.drift} == {"instructions"}


def test_a_fork_has_the_inputs_and_an_export_masks_them(tmp_path: Path) -> None:
    """They are the user's words, like the task."""
    secret = Tenant("password=hunter2hunter2")
    runner.start_sync(agent(), "Look.", runs=tmp_path, run=RUN, inputs=secret)
    raw, found = runner.review.export(RUN, agent(), runs=tmp_path)
    assert b"hunter2" not in raw
    assert found.divergence is None
    forked = runner.fork(RUN, at=1, runs=tmp_path, new="f1", who="ada")
    assert agent().load_inputs(forked.inputs) == secret
