"""The innermost middleware: every request to the model is an ask."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, messages_from_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

import replay
from replay.messages import Reply
from replay.values import Digests
from runner._agent.call import CURRENT
from runner.adapters import Declarations, Durable
from runner.errors import ToolFailed
from runner.langchain._messages import as_json, dump, reply_of, sale_of
from runner.langchain._terms import declare, here
from runner.models._prices import bound

NOT_EDITED = "Not run: arguments can be edited in the interrupt mode 'batched', not in 'per_call'."


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
            made.append(await handler(request))
            return reply_of(made[0].result, request.model)

        reply = await self._ask(run, request, ask)
        return made[0] if made else await handler(_again(request, reply))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        run = here()
        if run is None:
            return handler(request)
        made: list[Any] = []

        def ask() -> Reply:
            made.append(handler(request))
            return reply_of(made[0].result, request.model)

        reply = run.wait(self._ask(run, request, ask))
        return made[0] if made else handler(_again(request, reply))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        self._check(request)
        return await handler(request)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self._check(request)
        return handler(request)

    def _check(self, request: Any) -> None:
        """Refuse what a reviewer edited while the attempt was on its way: the log shows other arguments."""
        call, given = CURRENT.get(None), request.tool_call["args"]
        if self._reviews_calls and call is not None and call.acts and json.loads(as_json(given)) != call.arguments:
            raise ToolFailed(NOT_EDITED)

    async def _ask(self, run: Durable, request: Any, ask: Callable[[], Any]) -> Reply:
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
    said = next(m for m in messages_from_dict(json.loads(reply.raw)) if isinstance(m, AIMessage))
    name = next((n for at in ("model_name", "model", "model_id") if (n := getattr(request.model, at, None))), None)
    return request.override(
        model=_Recorded(said=said, model_name=name, profile=getattr(request.model, "profile", None))
    )


def _shown(tool: Any) -> bytes:
    return as_json(tool if isinstance(tool, dict) else convert_to_openai_tool(tool)).encode()
