"""The capability that makes an agent's runs durable."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, CombinedCapability
from pydantic_ai.capabilities.instrumentation import Instrumentation
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    DurabilityCodec,
    DurabilityEngineSpec,
    conversation_id_from_run_id,
    replay_scope,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_core import to_json, to_jsonable_python

from runner import durable
from runner._agent import json_text
from runner._agent.call import CURRENT
from runner._agent.tools import Tool
from runner.adapters import Declarations, current
from runner.pydantic_ai._backend import Backend, nth


class _Json(DurabilityCodec):
    """pydantic-ai's own, which would write bytes of a tool in another way than its model reads them."""

    load = JSON_CODEC.load

    def dump(self, tp: Any, value: Any) -> Any:
        if isinstance(getattr(value, "result", None), bytes):
            to_json(value.result)  # they must be UTF-8, as outside of a run
        return JSON_CODEC.dump(tp, value)


class _Scope(AbstractCapability[Any]):
    """Keeps the spans of what is replayed out of traces: the agent's own span too, so it is around that."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost", wraps=(Instrumentation,))

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:  # noqa: ARG002
        with replay_scope() if current() is not None else contextlib.nullcontext():
            return await handler()


class Refold(BaseDurabilityCapability[Any]):
    """Makes an agent's runs durable inside `runner.durable`; anywhere else the agent is as before.

    Args:
        tools: For a tool's name, the name of an effect, or the options of `runner.tool` with `lookup` and
            `visible_within`. It goes before the tool's metadata, which may hold the same options. A tool without any
            is `non_idempotent`: after a crash in it a person is asked.
        approvals: Whether a tool with `requires_approval=True` asks the run's question, which `refold approve`
            answers. Else pydantic-ai ends its run with `DeferredToolRequests`, as ever.
        options: Those of pydantic-ai's durable capabilities: `name`, `models`, `event_stream_handler`.
    """

    engine_spec = DurabilityEngineSpec(
        engine_name="refold",
        durable_unit_noun="step",
        durable_container_noun="run",
        codec=_Json(),
        toolset_lifecycles={
            "function": "enter-always",
            "mcp": "enter-in-durable-unit",
            "dynamic": "enter-in-durable-unit",
        },
        unsupported_runtime_toolset_kinds=frozenset({"function", "mcp", "dynamic"}),
    )

    def __init__(self, *, tools: Mapping[str, Any] | None = None, approvals: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self._terms = Declarations(tools)
        self._approvals = approvals
        self._given: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def for_agent(self, agent: Any) -> AbstractCapability[Any]:
        """The capability bound to an agent. pydantic-ai calls it."""
        return CombinedCapability([_Scope(), super().for_agent(agent)])

    def declare(self, definition: Any) -> Tool:
        """A tool of pydantic-ai as refold's. Raises `BadTool` when what is said of it contradicts itself."""
        about = definition.description or "", definition.parameters_json_schema, definition.metadata
        return self._terms.of(definition.name, about, lambda: about)

    @property
    def in_durable_context(self) -> bool:
        """Whether this code belongs to a durable run."""
        return current() is not None

    async def resolve_model_id(self, ctx: Any, *, model_id: str) -> Any:
        """A model that a run was given as an object. pydantic-ai calls it."""
        return self._given.get(model_id) or await super().resolve_model_id(ctx, model_id=model_id)

    def _find_model_id(self, model: Any) -> str | None:
        """The id of a request's model. One that nobody registered is known as itself: it stays in this process."""
        try:
            return super()._find_model_id(model)
        except UserError:
            name = f"{model.model_id} {id(model)}"
            self._given[name] = model
            return name

    def get_default_run_id(self) -> str | None:
        """The same id in each life."""
        run = current()
        if run is None:
            return None
        return f"{run.run}:{self.name}:{nth(run, self.name)}"

    def get_default_conversation_id(self, run_id: str) -> str | None:
        """The same id in each life."""
        return conversation_id_from_run_id(run_id) if current() is not None else None

    def get_durable_operation_backend(self) -> Backend:
        """What pydantic-ai's operations go through."""
        return Backend(self)

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        """Run the agent; inside a tool of a durable run, as a child run."""
        run = current()
        if run is None:
            return await handler()
        call = CURRENT.get(None)
        if call is not None and call.run == run.run:
            task = ctx.prompt if isinstance(ctx.prompt, str) else f"{self.name}, asked by another agent"
            number = nth(run, self.name, f"{call.id} {call.n}")
            name = self.name if number == 1 else f"{self.name}-{number}"
            assert run.pump.opened is not None  # a tool runs in a run that goes on
            store = run.pump.opened.life.store
            options: Any = {"limits": run.state.limits, "approve": run.state.approve}
            async with durable(task, runs=store, name=name, framework="pydantic-ai", **options):
                return await self.wrap_run(ctx, handler=handler)
        result = await super().wrap_run(ctx, handler=handler)
        output = result.output
        run.answer = output if isinstance(output, str) else json_text.written(to_jsonable_python(output, fallback=str))
        return result

    async def handle_deferred_tool_calls(
        self,
        ctx: Any,  # noqa: ARG002
        *,
        requests: DeferredToolRequests,
    ) -> DeferredToolResults | None:
        """Ask the run's questions for calls that need an approval."""
        run = current()
        if run is None or not self._approvals or not requests.approvals:
            return None
        results = DeferredToolResults()
        for call in requests.approvals:
            said = await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(run.approve(call.tool_call_id, call.tool_name), run.loop)
            )
            if said.answer in ("approve", "edit"):
                edited = json.loads(said.arguments) if said.arguments else None
                results.approvals[call.tool_call_id] = ToolApproved(override_args=edited)
            else:
                results.approvals[call.tool_call_id] = ToolDenied(said.text or f"{said.who} refused it.")
        return results
