"""The middleware: the innermost makes every request to the model an ask, the outermost every call of a tool a call."""

import contextlib
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import INVALID_TOOL_NAME_ERROR_TEMPLATE

import replay
from replay.events import ResultRecorded
from replay.messages import Reply
from replay.values import Digests
from runner._agent.call import CURRENT, Call
from runner._agent.declaration import NAME
from runner._agent.tools import Tool
from runner.adapters import Declarations, Durable, Verbatim, Withdrawn, counts, current
from runner.errors import ToolFailed
from runner.langchain._messages import as_json, dump, pack, rebuilt, reply_of, sale_of, storable, text_of, unpack
from runner.models._prices import bound

NOT_EDITED = "Not run: arguments can be edited in the interrupt mode 'batched', not in 'per_call'."
_EDITS = "hitl_edited_tool_calls"
"""Where LangChain's `HumanInTheLoopMiddleware` keeps what a reviewer made of calls."""


def declare(terms: Declarations, name: str, tool: BaseTool | None) -> Tool:
    """A tool of LangChain, if it is known, as refold's."""

    def about() -> tuple[str, Mapping[str, Any], Any]:
        spec = convert_to_openai_tool(tool)["function"] if tool is not None else {}
        return spec.get("description", ""), spec.get("parameters", {}), tool.metadata if tool is not None else None

    return terms.of(name, tool, about)


def here() -> Durable | None:
    """The run that this agent belongs to. One inside a tool belongs to the tool's attempt."""
    run, call = current(), CURRENT.get(None)
    if run is None or (call is not None and call.run == run.run):
        return None
    run.keep_open = True  # an interrupted agent returns like one that is done
    return run


class _Recorded(BaseChatModel):
    """A model that says what is in the log, and looks like the one that said it."""

    said: BaseMessage
    model_name: Any = None
    profile: Any = None

    @property
    def _llm_type(self) -> str:
        return "refold"

    def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ARG002
        return self

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.said)])

    async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
        return self._generate()


class Asks(AgentMiddleware):
    """The innermost: every request to the model is an ask."""

    def __init__(self, terms: Declarations, *, reviews_calls: bool = False) -> None:
        super().__init__()
        self._terms, self._reviews_calls = terms, reviews_calls

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        run = here()
        if run is None:
            return await handler(request)
        made: list[Any] = []

        async def ask() -> Reply:
            made.append(storable(await handler(request)))
            return reply_of(made[0].result, request.model)

        reply = await self._ask(run, request, ask)
        return made[0] if made and reply.raw else await handler(_again(request, reply))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        run = here()
        if run is None:
            return handler(request)
        made: list[Any] = []

        def ask() -> Reply:
            made.append(storable(handler(request)))
            return reply_of(made[0].result, request.model)

        reply = run.wait(self._ask(run, request, ask))
        return made[0] if made and reply.raw else handler(_again(request, reply))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(self._checked(request))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(self._checked(request))

    def _checked(self, request: Any) -> Any:
        """The request. Refused is one that a reviewer edited while it was on its way: the log shows other arguments."""
        call, given = CURRENT.get(None), request.tool_call["args"]
        if self._reviews_calls and call is not None and call.acts and json.loads(as_json(given)) != call.arguments:
            raise ToolFailed(NOT_EDITED)
        return request

    async def _ask(self, run: Durable, request: Any, ask: Callable[[], Any]) -> Reply:
        run.hears(_conversation(request), asks=True)
        digests = Digests(
            instructions=replay.digest(str(request.system_prompt or "").encode()),
            tools=run.chain(request.tools, _shown, of="tools"),
            messages=run.chain(request.messages, dump),
            parameters=replay.digest(as_json([repr(request.tool_choice), request.model_settings]).encode()),
        )
        tools = [declare(self._terms, tool.name, tool) for tool in request.tools if isinstance(tool, BaseTool)]
        since = itertools.takewhile(lambda m: not isinstance(m, AIMessage), reversed(request.messages))
        answers = {m.tool_call_id: str(m.text) for m in since if isinstance(m, ToolMessage)}
        most_output = request.model_settings.get("max_tokens") or getattr(request.model, "max_tokens", None)
        size = lambda: sum(len(dump(message)) for message in request.messages)  # noqa: E731 (measured only if needed)
        most = bound(run.state.limits, sale_of(request.model, {}), size, most_output)
        return await run.ask(digests, most, ask, tools=tools, answers=answers)


def _again(request: Any, reply: Reply) -> Any:
    """The request with a model that gives the recorded reply."""
    name = next((n for at in ("model_name", "model", "model_id") if (n := getattr(request.model, at, None))), None)
    return request.override(
        model=_Recorded(said=rebuilt(reply), model_name=name, profile=getattr(request.model, "profile", None))
    )


def _shown(tool: Any) -> bytes:
    return as_json(tool if isinstance(tool, dict) else convert_to_openai_tool(tool)).encode()


class Calls(AgentMiddleware):
    """The outermost: every call of a tool is a call, and the agent's end is the run's."""

    def __init__(self, terms: Declarations) -> None:
        super().__init__()
        self._terms = terms

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        run = here()
        if run is None:
            return await handler(request)
        if _is_invented(request):
            return _no_tool(request)
        attempt = _Attempt(request, run)

        async def call_tool(call: Call) -> Verbatim:
            with attempt.of(call):
                return attempt.came_to(await handler(attempt.edited(call)))

        return attempt.result(await self._call(run, request, call_tool))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        run = here()
        if run is None:
            return handler(request)
        if _is_invented(request):
            return _no_tool(request)
        attempt = _Attempt(request, run)

        def call_tool(call: Call) -> Verbatim:
            with attempt.of(call):
                return attempt.came_to(handler(attempt.edited(call)))

        return attempt.result(run.wait(self._call(run, request, call_tool)))

    async def _call(self, run: Durable, request: Any, body: Callable[[Call], Any]) -> ResultRecorded:
        run.hears(_conversation(request))
        wanted, edits = request.tool_call, _edits(request)
        provider_id, ran = wanted["id"] or "", edits.get(wanted["id"], wanted)
        tool = request.tool
        if ran["name"] != wanted["name"]:
            tool = next((one for one in request.runtime.tools if one.name == ran["name"]), None)
            if tool is None:
                run.pump.refuse(f"a reviewer made a call of {wanted['name']} one of {ran['name']}, which is no tool")
        run.knows([declare(self._terms, ran["name"], tool)])
        messages = _messages(request)
        said = next((m for m in reversed(messages) if isinstance(m, AIMessage)), AIMessage("", tool_calls=[wanted]))
        calls = [{**call, **edits.get(call["id"], {})} for call in said.tool_calls]
        if not run.orders(*((call["id"] or "", call["name"]) for call in calls)):  # one of another tool, or an old one
            await run.adopt(reply_of([said.model_copy(update={"tool_calls": calls})], None))
        return await run.call(provider_id, ran["name"], body, json.loads(as_json(ran["args"])))

    def after_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
        run = here()
        if run is None:
            return
        structured, messages = state.get("structured_response"), state["messages"]
        run.answer = as_json(structured) if structured is not None else str(messages[-1].text) if messages else ""


def _is_invented(request: Any) -> bool:
    """Whether a model calls what no tool can be named. Any other unknown name may be that of a middleware's tool."""
    return request.tool is None and NAME.fullmatch(request.tool_call["name"]) is None


def _no_tool(request: Any) -> ToolMessage:
    """What the model is told of a call of no tool, in LangChain's words. Nothing runs."""
    wanted, tools = request.tool_call, ", ".join(tool.name for tool in request.runtime.tools)
    told = INVALID_TOOL_NAME_ERROR_TEMPLATE.format(requested_tool=wanted["name"], available_tools=tools)
    return ToolMessage(told, tool_call_id=wanted["id"], name=wanted["name"], status="error")


def _messages(request: Any) -> Sequence[BaseMessage]:
    """The conversation that a request, or a call, belongs to."""
    return request.state["messages"] if isinstance(request.state, dict) else ()


def _conversation(request: Any) -> str | None:
    """What it is known by as long as an agent is invoked."""
    return next((message.id for message in _messages(request)), None)


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
        raw, whole = pack(made)
        self._made = made = made if whole else unpack(json.loads(raw))
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
