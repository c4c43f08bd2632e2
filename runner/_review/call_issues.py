"""What the current code makes of a call without a result: what preflight says of it."""

from collections.abc import Iterator

import msgspec

from replay import CallState, State
from replay.values import ToolDefinition
from runner._agent.agent import AnyAgent
from runner._agent.tools import Tool
from runner._policy import approvals


class PreflightIssue(msgspec.Struct, frozen=True):
    """What the current code meets in a run.

    Attributes:
        kind: One of the kinds that the guide lists.
        says: A sentence.
        blocks: Whether somebody should look before the deploy: the run does not get over it as it would have before.
        call: The id of the call that it is about, if it is about one.
    """

    kind: str
    says: str
    blocks: bool
    call: str | None = None


def declared(state: State) -> dict[str, ToolDefinition]:
    """The tools as they were declared when a process last began to work on the run."""
    return state.definitions.tools if state.definitions is not None else {}


def issues(state: State, agent: AnyAgent, call: CallState) -> Iterator[PreflightIssue]:
    """Compares a call without a result with the current tool of its name."""
    name, id_ = call.call.tool, call.call.id
    was, tool = declared(state).get(name), agent.tool(name)
    if tool is None:
        if was is not None:  # else the model made the name up, and the call was invalid all along
            comes = "it may have happened, and a person would be asked" if call.in_doubt else "it would not run"
            yield PreflightIssue("tool-gone", f"call {id_} is of {name}: {comes}", blocks=True, call=id_)
        return
    if call.attempts and call.attempts[-1].effect != tool.effect:
        says = f"call {id_} of {name} was marked as {call.attempts[-1].effect}, the current tool is {tool.effect}"
        yield PreflightIssue("effect-changed", says, blocks=call.in_doubt, call=id_)
    prepared = tool.prepare(call.arguments)
    problem = prepared.problem
    if problem is None and call.attempts and call.bound not in (None, prepared.text):
        says = f"call {id_} was tried as {call.bound}, and the current {name} would run it as {prepared.text}"
        yield PreflightIssue("schema-changed", says, blocks=call.in_doubt, call=id_)
    taken = call.bound is not None or call.attempts  # an earlier process could take them
    if problem is not None and (taken or was is None or was.digest != tool.definition.digest):
        reasons = "; ".join(line.removeprefix("- ") for line in prepared.reasons.splitlines())
        says = f"the current {name} can't take the arguments of call {id_}: {reasons}"
        yield PreflightIssue("schema-changed", says, blocks=True, call=id_)
    if was is not None:
        yield from _protections(state, was, tool, call)


def _protections(state: State, was: ToolDefinition, tool: Tool, call: CallState) -> Iterator[PreflightIssue]:
    """What protected this call and is gone. A call that only reads needs none."""
    now, name, id_ = tool.definition, tool.name, call.call.id
    tried_out = tool.effect == "idempotent" and call.attempts_used >= tool.attempts  # the lookup was what came next
    needs = tried_out or tool.effect in ("keyed", "non_idempotent")
    if was.lookup and not now.lookup and call.in_doubt and needs:
        says = f"call {id_} of {name} may have happened, and the current {name} has no lookup to ask"
        yield PreflightIssue("lookup-gone", says, blocks=True, call=id_)
    asked = any(q.call == id_ and q.kind == "approve" for q in state.questions.values())
    asks = now.approval != "never" and (
        asked or was.approval != "always" or approvals.needed(tool, tool.prepare(call.arguments))
    )
    if not asks and (asked or was.approval != "never") and not call.attempts:
        says = (
            f"call {id_} of {name} had to be approved, and the current {name} asks nobody: it is asked for all the same"
        )
        yield PreflightIssue("approval-gone", says, blocks=True, call=id_)
    if was.once_per and was.once_per != now.once_per and tool.effect != "reads":
        parts = ", ".join(now.once_per) or "nothing"
        says = f"call {id_} of {name} was to happen once per {', '.join(was.once_per)}, and now per {parts}"
        yield PreflightIssue("once-per-changed", says, blocks=True, call=id_)
