"""What pydantic-ai's durable operations go through: requests are asks, tools are calls, all else are steps."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pydantic_ai.durable_exec import (
    JournalCallableOperationBackend,
    ModelCompactMessagesId,
    ModelRequestId,
    RoleBasedOperationConfig,
    ToolsetCallToolId,
    record_durable_unit,
)
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import to_json, to_jsonable_python

import replay
from replay.events import ResultRecorded
from replay.messages import Reply, Stop, ToolCall, Usage
from replay.values import Digests
from runner._agent import json_text
from runner._agent.call import Call
from runner.adapters import Durable, Verbatim, Withdrawn, counts, current
from runner.errors import ToolFailed
from runner.models._prices import Sale, bound, cost

T = TypeVar("T")
_DID_NOTHING = ("approval_required", "call_deferred", "model_retry", "tool_failed", "validation_error")
"""The kinds of what a tool comes to that are no result: pydantic-ai's own words for its control flow."""
_RETRY = "refold:model_retry"
_DEFERRED = _DID_NOTHING[:2]
_CHANGES = ("timestamp", "run_id", "conversation_id", "instructions")
"""Fields of a message that are others in each life, or are instructions."""
_STOPS: Mapping[str, Stop] = {
    "stop": "stop",
    "tool_call": "tool_calls",
    "length": "length",
    "content_filter": "refusal",
}


_begun: WeakKeyDictionary[Durable, Counter[tuple[str, str]]] = WeakKeyDictionary()


def nth(run: Durable, agent: str, where: str = "") -> int:
    """Count one more run of this agent, there, in this life of a durable run."""
    counts = _begun.setdefault(run, Counter())
    counts[agent, where] += 1
    return counts[agent, where]


async def _in_loop_of(run: Durable, doing: Callable[[Callable[..., Any]], Awaitable[T]], body: Callable[..., Any]) -> T:
    """What `doing(body)` comes to in the run's loop, with `body` run in this one: `run_sync` has a loop of its own."""
    here = asyncio.get_running_loop()
    if here is run.loop:
        return await doing(body)

    async def there(*args: Any) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(body(*args), here))

    async def done() -> T:
        return await doing(there)

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(done(), run.loop))


class Backend(JournalCallableOperationBackend[None]):
    def __init__(self, owner: Any) -> None:
        none = RoleBasedOperationConfig[None](model=None, event=None, capability=None, tool=None)
        super().__init__(agent_name=owner.name, default_model_id=owner.default_model_id, config=none)
        self._owner = owner

    async def execute(self, *, operation_id: Any, name: str, body: Any, cache_key: Any, config: Any) -> object:  # noqa: ARG002
        run = current()
        assert run is not None  # the capability says when it is in a durable run
        ran = False

        async def noted() -> Any:
            nonlocal ran
            ran = True
            return await body()

        if isinstance(operation_id, ModelRequestId):
            payload = await self._ask(run, noted, *cache_key[1:5])
        elif isinstance(operation_id, ModelCompactMessagesId):
            asked = cache_key[1]
            shapes = (asked.messages, asked.model_settings, asked.model_request_parameters)
            payload = await self._ask(run, noted, *shapes, cache_key[3])
        elif isinstance(operation_id, ToolsetCallToolId):
            payload = await self._call(run, noted, *cache_key[:4])
        else:
            payload = await self._step(run, noted, name)
        record_durable_unit(executed=ran)
        return payload

    async def _step(self, run: Durable, body: Any, name: str) -> object:
        raised: list[Exception] = []

        async def step() -> object:
            try:
                return await body()
            except ModelRetry as retry:  # in later lives too
                return {_RETRY: retry.message}
            except Exception as error:
                raised.append(error)
                raise

        try:
            payload: Any = await _in_loop_of(run, lambda it: run.step(name, it), step)
        except Exception:  # what the step gives for it is of Python's own errors, and pydantic-ai looks for its own
            if raised:
                raise raised[0]  # noqa: B904 (what was raised here stays its context)
            raise
        if isinstance(payload, dict) and _RETRY in payload:
            raise ModelRetry(payload[_RETRY])
        return payload

    async def _ask(self, run: Durable, body: Any, messages: Any, settings: Any, parameters: Any, ctx: Any) -> object:
        async def ask() -> Reply:
            return reply_of(await body())

        run.hears(ctx.run_id, asks=True)
        tools = [self._owner.declare(tool) for tool in parameters.function_tools]
        last = next((m.instructions for m in reversed(messages) if m.kind == "request"), None)
        digests = Digests(
            instructions=replay.digest_value(last),
            tools=run.chain(tools, lambda tool: to_json([tool.name, tool.description, tool.schema]), of="tools"),
            messages=run.chain(messages, dump),
            parameters=replay.digest_value(to_jsonable_python(settings, fallback=str)),
        )
        sale = Sale(ctx.model.system, (ctx.model.model_name,), None)
        most_output = (settings or {}).get("max_tokens")
        most = bound(run.state.limits, sale, lambda: len(to_json(messages, fallback=str)), most_output)
        answers = {
            part.tool_call_id: part.model_response_str()
            if hasattr(part, "model_response_str")
            else part.model_response()
            for part in (messages[-1].parts if messages else ())
            if getattr(part, "tool_call_id", None)
        }
        reply = await _in_loop_of(run, lambda it: run.ask(digests, most, it, tools=tools, answers=answers), ask)
        return json.loads(reply.raw) if reply.raw else _rebuilt(reply)

    async def _call(self, run: Durable, body: Any, name: str, args: Any, ctx: Any, tool: Any) -> object:
        definition = getattr(tool, "tool_def", tool)

        async def call_tool(call: Call) -> Verbatim:
            try:
                _edit(args, call.arguments, tool, wanted=run.edited(call.id))
                payload = await body()
            except Exception as error:
                if not call.acts:
                    raise Withdrawn(error) from error
                raise
            return _kept(payload)

        async def called(it: Any) -> ResultRecorded:
            if definition is not None:
                run.knows([self._owner.declare(definition)])
            if not run.orders((ctx.tool_call_id, name)):
                said = next(message for message in reversed(ctx.messages) if message.kind == "response")
                await run.adopt(reply_of(to_jsonable_python(said)))
            result = await run.call(ctx.tool_call_id, name, it, _overridden(args, ctx, tool))
            if not ctx.tool_call_approved or not result.raw or json.loads(result.raw)["kind"] not in _DEFERRED:
                return result
            again = f"{ctx.tool_call_id} approved"
            await run.adopt(Reply(calls=(ToolCall(tool=name, arguments=written, provider_id=again),)))
            return await run.call(again, name, it)

        run.hears(ctx.run_id)
        written = json.dumps(to_jsonable_python(args, fallback=str))
        result = await _in_loop_of(run, called, call_tool)
        if result.raw:
            return json.loads(result.raw)
        if counts(result):
            return {"kind": "tool_return", "result": result.text}
        return {"kind": "tool_failed", "message": result.text}


def _kept(payload: Mapping[str, Any]) -> Verbatim:
    """What the log keeps of what a tool came to."""
    raw = json_text.written(payload)
    if payload["kind"] in _DID_NOTHING:
        raise ToolFailed(payload.get("message") or payload["kind"].replace("_", " "), raw=raw)
    return Verbatim(payload.get("result", payload), raw)


def _overridden(args: Mapping[str, Any], ctx: Any, tool: Any) -> Mapping[str, Any] | None:
    """The arguments of a call if whoever approved it in the framework gave others than the model."""
    if not ctx.tool_call_approved:
        return None
    parts = (part for message in reversed(ctx.messages) if message.kind == "response" for part in message.tool_calls)
    said = next((part for part in parts if part.tool_call_id == ctx.tool_call_id), None)
    validator = getattr(tool, "args_validator", None)
    if said is not None and validator is not None:
        with contextlib.suppress(ValueError):  # what the model wrote did not fit
            if validator.validate_python(said.args_as_dict()) == args:
                return None
    given: Mapping[str, Any] = to_jsonable_python(args, fallback=str)
    return given


def _edit(args: dict[str, Any], arguments: Mapping[str, Any], tool: Any, *, wanted: bool) -> None:
    """Put arguments that a person edited in the place of the model's."""
    if not wanted:
        return
    validator = getattr(tool, "args_validator", None)
    new = validator.validate_python(dict(arguments)) if validator is not None else dict(arguments)
    args.clear()
    args.update(new)


def dump(message: Any) -> bytes:
    """What a message is known by: without instructions, and without what is another in each life."""
    (plain,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    kept = {name: value for name, value in plain.items() if name not in _CHANGES}
    parts = [part for part in plain["parts"] if part["part_kind"] != "system-prompt"]
    kept["parts"] = [{k: v for k, v in part.items() if k not in _CHANGES} for part in parts]
    return to_json(kept)


def reply_of(payload: Mapping[str, Any]) -> Reply:
    """A model's response as the log tells it; `raw` is the framework's own, without what UTF-8 can't hold."""
    raw = json_text.written(payload)
    payload = json.loads(raw)
    parts, used = payload["parts"], payload.get("usage") or {}
    calls = tuple(
        ToolCall(
            tool=part["tool_name"],
            arguments=part["args"] if isinstance(part["args"], str) else json.dumps(part["args"] or {}),
            provider_id=part["tool_call_id"],
        )
        for part in parts
        if part["part_kind"] == "tool-call"
    )
    usage = Usage(**{name: used.get(name) or 0 for name in Usage.__struct_fields__})
    seller = payload.get("provider_name") or payload.get("provider_url") or ""
    model = payload.get("model_name") or ""
    return Reply(
        text="".join(part["content"] for part in parts if part["part_kind"] == "text"),
        calls=calls,
        usage=usage,
        dollars=cost(None, Sale(seller, (model,), None), usage, {}),
        stop=_STOPS.get(payload.get("finish_reason") or "", "tool_calls" if calls else "stop"),
        model=model,
        raw=raw,
    )


def _rebuilt(reply: Reply) -> Mapping[str, Any]:
    """A response that was too large to be kept as it came, of its text and its calls."""
    parts = [
        {"part_kind": "tool-call", "tool_name": call.tool, "args": call.arguments, "tool_call_id": call.provider_id}
        for call in reply.calls
    ]
    return {"kind": "response", "parts": [{"part_kind": "text", "content": reply.text}, *parts]}
