"""The outermost middleware: every call of a tool is a call, and the agent's end is the run's."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from replay.events import ResultRecorded
from runner._agent.call import Call
from runner.adapters import Declarations, Durable, Verbatim, Withdrawn, counts
from runner.errors import ToolFailed
from runner.langchain._messages import as_json, pack, reply_of, text_of, unpack
from runner.langchain._terms import declare, here

_EDITS = "hitl_edited_tool_calls"
"""Where LangChain's `HumanInTheLoopMiddleware` keeps what a reviewer made of calls."""


class Calls(AgentMiddleware):
    """The outermost: every call of a tool is a call, and the agent's end is the run's."""

    def __init__(self, terms: Declarations) -> None:
        super().__init__()
        self._terms = terms

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        run = here()
        if run is None:
            return await handler(request)
        attempt = _Attempt(request, run)

        async def call_tool(call: Call) -> Verbatim:
            with attempt.of(call):
                return attempt.came_to(await handler(attempt.edited(call)))

        return attempt.result(await self._call(run, request, call_tool))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        run = here()
        if run is None:
            return handler(request)
        attempt = _Attempt(request, run)

        def call_tool(call: Call) -> Verbatim:
            with attempt.of(call):
                return attempt.came_to(handler(attempt.edited(call)))

        return attempt.result(run.wait(self._call(run, request, call_tool)))

    async def _call(self, run: Durable, request: Any, body: Callable[[Call], Any]) -> ResultRecorded:
        wanted, edits = request.tool_call, _edits(request)
        provider_id, ran = wanted["id"] or "", edits.get(wanted["id"], wanted)
        tool = request.tool
        if ran["name"] != wanted["name"]:
            tool = next((one for one in request.runtime.tools if one.name == ran["name"]), None)
            if tool is None:
                run.pump.refuse(f"a reviewer made a call of {wanted['name']} one of {ran['name']}, which is no tool")
        run.knows([declare(self._terms, ran["name"], tool)])
        messages = request.state["messages"] if isinstance(request.state, dict) else ()
        said = next((m for m in reversed(messages) if isinstance(m, AIMessage)), AIMessage("", tool_calls=[wanted]))
        calls = [{**call, **edits.get(call["id"], {})} for call in said.tool_calls]
        if not run.orders(*((call["id"] or "", call["name"]) for call in calls)):  # one of another tool, or an old one
            await run.adopt(reply_of([said.model_copy(update={"tool_calls": calls})], None))
        return await run.call(provider_id, ran["name"], body, json.loads(as_json(ran["args"])))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        self.after_agent(state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
        run = here()
        if run is None:
            return
        structured, messages = state.get("structured_response"), state["messages"]
        run.answer = as_json(structured) if structured is not None else str(messages[-1].text) if messages else ""


def _edits(request: Any) -> Mapping[Any, Any]:
    """What a reviewer made of calls of the reply, by their ids; this middleware sees a call before that is applied."""
    return (request.state.get(_EDITS) or {}) if isinstance(request.state, dict) else {}


class _Attempt:
    """One call of a tool: what it came to, and how that is handed to LangChain, now and in a later life."""

    def __init__(self, request: Any, run: Durable) -> None:
        self._run = run
        self._wanted = request.tool_call
        self._request = request
        self._made: Any = None

    def edited(self, call: Call) -> Any:
        """The request with the arguments that run, which a person may have edited."""
        if not self._run.edited(call.id):
            return self._request
        mine, args, edits = self._wanted["id"], dict(call.arguments), _edits(self._request)
        changed: dict[str, Any] = {"tool_call": {**self._wanted, "args": args}}
        if mine in edits:  # a reviewer's edit would be applied again
            changed["state"] = {**self._request.state, _EDITS: {**edits, mine: {**edits[mine], "args": args}}}
        return self._request.override(**changed)

    @contextlib.contextmanager
    def of(self, call: Call) -> Iterator[None]:
        """Take the call back when it is interrupted, or raises an error that did nothing: LangGraph raises it too."""
        try:
            yield
        except GraphBubbleUp as error:
            raise Withdrawn(error) from error
        except Exception as error:
            if not call.acts and not isinstance(error, ToolFailed):
                raise Withdrawn(error) from error
            raise

    def came_to(self, made: Any) -> Verbatim:
        """What the log keeps of it."""
        self._made = made
        raw = pack(made)
        if isinstance(made, ToolMessage):
            if made.status == "error":
                raise ToolFailed(str(made.text), raw=raw)
            return Verbatim(str(made.text), raw)
        return Verbatim(text_of(made), raw)

    def result(self, recorded: ResultRecorded) -> Any:
        """What LangChain is given."""
        if self._made is not None and recorded.raw:
            return self._made
        if recorded.raw:
            return unpack(json.loads(recorded.raw))
        status = "success" if counts(recorded) else "error"
        return ToolMessage(recorded.text, tool_call_id=self._wanted["id"], name=self._wanted["name"], status=status)
