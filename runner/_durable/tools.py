"""A framework's tool as one of ours: its framework shows and checks its arguments, the rest is declared here.

Its arguments may be edited: by a person, who answers the run's question, or by the framework, which the log says.
"""

import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from replay import Question, State
from replay.events import ResultRecorded
from replay.messages import HAPPENED, ToolCall
from runner._agent.call import Call, current_call
from runner._agent.declaration import OPTIONS
from runner._agent.tools import Tool
from runner._durable.demand import Demand
from runner._durable.pump import Pump
from runner._policy.demands import EDITED

Body = Callable[[Call], object]
Arguments = Mapping[str, Any] | None
Terms = str | Mapping[str, Any] | None


def declared(name: str, description: str, schema: Mapping[str, Any], terms: Terms = None) -> Tool:
    """A tool that a framework knows.

    Args:
        name: Its name.
        description: What the model reads about it.
        schema: The JSON schema of its arguments.
        terms: The name of an effect, or the options of `runner.tool`, with `key_ttl` also in seconds, and `lookup` with
            `visible_within`; other names are somebody else's. None: it is `non_idempotent`, and tried once.

    Raises:
        BadTool: The declaration contradicts itself.
    """
    said: Mapping[str, Any] = {"effect": terms} if isinstance(terms, str) else terms or {}
    options = {
        option: value for option, value in said.items() if option in OPTIONS and option not in ("name", "schema")
    }
    if isinstance(options.get("key_ttl"), int | float):
        options["key_ttl"] = timedelta(seconds=options["key_ttl"])
    if not options:
        options = {"attempts": 1}
    parts: Mapping[str, Any] = schema.get("properties", {})
    bare = {
        key: {k: v for k, v in part.items() if k != "default"} if isinstance(part, dict) else part
        for key, part in parts.items()
    }  # its framework fills in the defaults
    shown = {"type": "object", **schema, "properties": bare, "description": description}
    made = Tool(_nothing, name=name, schema=shown, **options)
    made.undeclared = "effect" not in options
    if said.get("lookup") is not None:
        made.lookup(visible_within=said.get("visible_within"))(said["lookup"])
    return made


async def _nothing(call: Call) -> object:
    """The function of a tool whose program brings a body for each call."""
    raise NotImplementedError(call.tool)


class Declarations:
    """A framework's tools as ours. What is said of a name goes before a tool's own metadata, which may say the same."""

    def __init__(self, said: Mapping[str, Any] | None) -> None:
        self._said = {} if said is None else said
        self._known: dict[str, tuple[object, Tool]] = {}

    def of(self, name: str, mark: object, about: Callable[[], tuple[str, Mapping[str, Any], Terms]]) -> Tool:
        """A tool, by its description, schema and metadata; made again when the mark of it is another."""
        known, made = self._known.get(name, (None, None))
        if made is None or (known is not mark and known != mark):
            description, schema, metadata = about()
            made = declared(name, description, schema, self._said.get(name, metadata))
            self._known[name] = mark, made
        return made


def counts(result: ResultRecorded) -> bool:
    """Whether a framework shows its model this result as what came of the call, and not as a failure."""
    return result.how in HAPPENED or result.how == "responded"


def with_bodies(tool: Tool, body_of: Callable[[str], Body | None], *, is_async: bool) -> Tool:
    """A copy that runs what the program brings for a call, by its id, or else its own function.

    A body that is no coroutine function runs in a thread, as any tool's.
    """
    own = tool.function

    def chosen(values: dict[str, Any]) -> Callable[[], object]:
        call = current_call()
        body = body_of(call.id)
        return functools.partial(own, **values) if body is None else functools.partial(body, call)

    async def run(**values: Any) -> object:
        made = chosen(values)()
        return await made if inspect.isawaitable(made) else made

    def run_in_thread(**values: Any) -> object:
        return chosen(values)()

    function: Callable[..., object | Awaitable[object]] = run if is_async else run_in_thread
    return tool.around(lambda _: function)


class Tools:
    """The tools that a program has come up with so far, with the bodies that it brings for their calls."""

    def __init__(self, program: Any, pump: Pump) -> None:
        self.program, self._pump = program, pump
        self._shapes: dict[str, tuple[Tool, bool]] = {}

    def learn(self, tools: Iterable[Tool]) -> None:
        """Take note of tools that are new or declared anew."""
        for tool in tools:
            if self._shapes.get(tool.name, (None, True))[0] is not tool and self.program.tool(tool.name) is not tool:
                self._shape(tool, is_async=True)

    def demand(self, name: str, body: Body | None) -> Demand:
        """The demand for a call of this tool, which then runs such bodies."""
        demand = Demand(body)
        known, is_async = self._shapes.get(name, (self.program.tool(name), None))
        if body is not None and is_async is not demand.is_async:
            self._shape(known or declared(name, "", {}), is_async=demand.is_async)
        return demand

    def _shape(self, tool: Tool, *, is_async: bool) -> None:
        self._shapes[tool.name] = (tool, is_async)
        made = with_bodies(tool, self._pump.body_of, is_async=is_async)
        if self.program.instrument is not None:
            made = self.program.instrument(made)
        others = tuple(one for one in self.program.learned if one.name != tool.name)
        self.program = self.program.replace(learned=(*others, made))
        self._pump.use(self.program)


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
