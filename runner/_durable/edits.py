"""Arguments that were edited: by a person, who answered the run's question, or by the framework, which the log says."""

import json
from collections.abc import Mapping
from typing import Any

from replay import Question, State
from replay.messages import ToolCall
from runner._agent.tools import Tool
from runner._durable.pump import Pump
from runner._policy.demands import EDITED

Arguments = Mapping[str, Any] | None


def edit_of(state: State, call: str) -> Question | None:
    """The question whose answer gave a call other arguments."""
    asked = (question for question in state.questions.values() if question.call == call)
    return next((q for q in asked if q.answer is not None and q.answer.answer == "edit"), None)


def changed(pump: Pump, tool: Tool | None, call: ToolCall, arguments: Arguments) -> str | None:
    """A framework's arguments for a call, as JSON, if there are any and they are not those that the log has for it.

    Refused with `BadAgent`: for a tool that needs a yes here, and for a call that was tried with others.
    """
    edit = edit_of(pump.state, call.id)
    if arguments is None or (edit is not None and edit.why != EDITED):
        return None  # a person's: the framework is handed those
    logged = edit.answer.arguments if edit is not None and edit.answer is not None else call.arguments
    if json.loads(logged or "null") == arguments:
        return None
    if tool is not None and tool.approval:
        pump.refuse(f"{call.tool} needs a yes of this run: edit the arguments of call {call.id} in its question")
    if any(one.call.id == call.id and one.tried for one in pump.state.calls):
        pump.refuse(f"call {call.id} of {call.tool} was tried with other arguments than its framework has now")
    return json.dumps(arguments, ensure_ascii=False)
