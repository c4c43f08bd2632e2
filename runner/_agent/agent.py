"""An agent: a model, tools, instructions, limits. A plain value: all that changes while it runs is in the log."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, Required, Self, TypeAlias, Unpack, overload

import msgspec

import replay
from replay.values import Definitions, Limits
from runner._agent import declaration
from runner._agent import output as _output
from runner._agent.adapters import Unsupported
from runner._agent.context import Policy
from runner._agent.generics import Defaults, TypeForm, TypeVar
from runner._agent.model import Model, ToolSpec
from runner._agent.tools import Tool
from runner._agent.typed import DoesNotFit, Typed
from runner.errors import BadAgent

InputsT = TypeVar("InputsT", default=None)
ResourcesT = TypeVar("ResourcesT", default=None)
Output_co = TypeVar("Output_co", covariant=True, default=str)
Inputs = TypeVar("Inputs", default=None)
Resources = TypeVar("Resources", default=None)
Output = TypeVar("Output", default=str)

if TYPE_CHECKING:
    from runner._agent.declaration import AgentOptions

    class PlainOptions(AgentOptions, Generic[Resources], total=False):
        """What an agent without inputs takes in any case."""

        tools: Sequence[Tool[None, Resources]]
        instructions: str

    class InputsOptions(AgentOptions, Generic[Inputs, Resources], total=False):
        """The same for one with inputs."""

        inputs: Required[TypeForm[Inputs]]
        tools: Sequence[Tool[Inputs, Resources]]
        instructions: str | Callable[[Inputs], str]


class Agent(Defaults, msgspec.Struct, Generic[InputsT, ResourcesT, Output_co], frozen=True, kw_only=True, dict=True):
    """What runs: a plain value, an `Agent[Inputs, Resources, Output]`.

    Attributes:
        name: The first part of its runs' ids. Only an agent of this name can resume them.
        model: Anything with `name`, `bound` and `ask`, as `runner.Model`.
        tools: Made by `runner.tool`, each name once.
        instructions: The system prompt, or a pure function of the run's inputs that returns it.
        inputs: The type of a run's inputs, which `start(inputs=)` is given and tools read as `call.inputs`.
        output: The type of the answer: `Finished.output` is a value of it. Without one the answer is text.
        output_retries: How often in a row the model is told why its answer is none, before the run stops.
        validate: A pure function of an output that says why it is none, or None.
        limits: Limits over the whole life of a run. Those of the agent that resumes it replace earlier ones.
        context: A policy that says when to summarise, or None: the whole conversation is sent.
        approve: `ask` a person, or `off`: approvals are answered yes in the policy's name.
        answer_within: How long an approval stays open; then it is refused in the policy's name.
        parallel: How many calls of a reply may run side by side, of tools that read or are declared `parallel`.
        parameters: Passed to the model's provider as they are.
        resources: Makes an async context manager; what it gives, tools and lookups read as `call.resources`. It is
            entered once for a run, and once for all runs of a `Worker`.

    Raises:
        BadAgent: Something can't work as given.
    """

    name: str
    model: Model
    tools: Sequence[Tool[InputsT, ResourcesT]] = ()
    instructions: str | Callable[[InputsT], str] = ""
    inputs: TypeForm[InputsT] | None = None
    output: TypeForm[Output_co] | None = None
    output_retries: int = 2
    validate: Callable[[Any], str | None] | None = None
    limits: Limits = msgspec.field(default_factory=Limits)
    context: Policy | None = None
    approve: Literal["ask", "off"] = "ask"
    answer_within: timedelta | None = None
    parallel: int = 8
    parameters: Mapping[str, Any] = {}
    resources: Callable[[], AbstractAsyncContextManager[ResourcesT]] | None = None

    if TYPE_CHECKING:

        @overload
        def __init__(self: Agent[None, None, str], **options: Unpack[PlainOptions[None]]) -> None: ...
        @overload
        def __init__(
            self: Agent[None, None, Output],
            *,
            output: TypeForm[Output],
            validate: Callable[[Output], str | None] | None = ...,
            **options: Unpack[PlainOptions[None]],
        ) -> None: ...
        @overload
        def __init__(
            self: Agent[None, Resources, str],
            *,
            resources: Callable[[], AbstractAsyncContextManager[Resources]],
            **options: Unpack[PlainOptions[Resources]],
        ) -> None: ...
        @overload
        def __init__(
            self: Agent[None, Resources, Output],
            *,
            resources: Callable[[], AbstractAsyncContextManager[Resources]],
            output: TypeForm[Output],
            validate: Callable[[Output], str | None] | None = ...,
            **options: Unpack[PlainOptions[Resources]],
        ) -> None: ...
        @overload
        def __init__(self: Agent[Inputs, None, str], **options: Unpack[InputsOptions[Inputs, None]]) -> None: ...
        @overload
        def __init__(
            self: Agent[Inputs, None, Output],
            *,
            output: TypeForm[Output],
            validate: Callable[[Output], str | None] | None = ...,
            **options: Unpack[InputsOptions[Inputs, None]],
        ) -> None: ...
        @overload
        def __init__(
            self: Agent[Inputs, Resources, str],
            *,
            resources: Callable[[], AbstractAsyncContextManager[Resources]],
            **options: Unpack[InputsOptions[Inputs, Resources]],
        ) -> None: ...
        @overload
        def __init__(
            self: Agent[Inputs, Resources, Output],
            *,
            resources: Callable[[], AbstractAsyncContextManager[Resources]],
            output: TypeForm[Output],
            validate: Callable[[Output], str | None] | None = ...,
            **options: Unpack[InputsOptions[Inputs, Resources]],
        ) -> None: ...
        def __init__(self, **options: Any) -> None: ...

    def __post_init__(self) -> None:
        declaration.check(declaration.AGENT, {name: getattr(self, name) for name in declaration.AGENT})
        limits = msgspec.structs.asdict(self.limits)
        declaration.check(declaration.LIMITS, {f"limits.{name}": limit for name, limit in limits.items()})
        if self.validate is not None and self.output is None:
            raise BadAgent(f"validate judges an output, and agent {self.name} declares none: give it `output=`")
        names = {_output.FINAL} if self.answers is not None else set[str]()
        tools: Sequence[object] = self.tools
        for tool in tools:
            if not isinstance(tool, Tool):
                raise BadAgent(f"{tool!r} is not a tool: put @runner.tool on its function")
            if tool.unbound:
                raise BadAgent(f"tool {tool.name} is a method without its object: take it from an instance")
            if tool.name in names:
                raise BadAgent(f"two tools are named {tool.name}")
            names.add(tool.name)
            self._reads_inputs(f"tool {tool.name}", tool.signature.inputs)
            self._reads_inputs(f"the lookup of tool {tool.name}", tool.find_reads)
        if self._inputs is None and callable(self.instructions):
            raise BadAgent(f"the instructions are a function of inputs, and agent {self.name} declares none")

    def _reads_inputs(self, who: str, wanted: Any) -> None:
        """Raise `BadAgent` unless a run's inputs are what a `Call` names. Protocols and TypedDicts are believed."""
        have = self.inputs if self._inputs is not None else type(None)
        try:
            fits = wanted in (object, Any, have) or issubclass(have, wanted)  # type: ignore[arg-type] # tried out
        except TypeError:
            fits = self._inputs is not None
        if not fits:
            says = f"inputs={self._inputs.name}" if self._inputs is not None else "no inputs"
            reads = getattr(wanted, "__name__", wanted)
            raise BadAgent(f"{who} reads inputs of type {reads}, and agent {self.name} declares {says}")

    @functools.cached_property
    def _inputs(self) -> Typed | None:
        try:
            return Typed(self.inputs) if self.inputs is not None else None
        except Unsupported as why:
            raise BadAgent(f"inputs: {why}") from None

    @functools.cached_property
    def answers(self) -> _output.Output | None:
        """What its answers must be; None when they are text."""
        try:
            return _output.Output(self.output, self.validate, self.model) if self.output is not None else None
        except Unsupported as why:
            raise BadAgent(f"output: {why}") from None

    def load_output(self, answer: str) -> Any:
        """The output that an answer says. Raises `BadAgent` for what is none of its type."""
        try:
            return answer if self.answers is None else self.answers.load(answer)
        except DoesNotFit as why:
            raise BadAgent(f"the answer is no {self.answers.name if self.answers else 'text'}: {why}") from why

    def dump_inputs(self, inputs: object) -> str | None:
        """The inputs of a run as the JSON that its log holds. Raises `BadAgent` for what is none of their type."""
        if self._inputs is None or inputs is None:
            self.load_inputs(None)
            if inputs is not None:
                raise BadAgent(f"agent {self.name} declares no inputs, and was given {type(inputs).__name__}")
            return None
        try:
            return self._inputs.dump(inputs)
        except DoesNotFit as why:
            raise BadAgent(f"the inputs are no {self._inputs.name}: {why}") from why

    def load_inputs(self, text: str | None) -> Any:
        """The inputs that this JSON says, a new value each time. Raises `BadAgent` for what is none of their type."""
        if self._inputs is None:
            return None
        if text is None:
            raise BadAgent(f"agent {self.name} reads inputs of type {self._inputs.name}, and the run has none")
        try:
            return self._inputs.load(text)
        except DoesNotFit as why:
            raise BadAgent(f"the run's inputs are no {self._inputs.name}: {why}") from why

    def instructions_for(self, inputs: str | None) -> str:
        """The system prompt of a run with these inputs, given as JSON. Raises `BadAgent` when there is none."""
        if isinstance(self.instructions, str):
            return self.instructions
        given = self.load_inputs(inputs)
        try:
            text: object = self.instructions(given)
        except Exception as error:  # the user's code
            raise BadAgent(f"the instructions of agent {self.name} raised {type(error).__name__}: {error}") from error
        if not isinstance(text, str):
            raise BadAgent(f"the instructions of agent {self.name} made {type(text).__name__}, not text")
        return text

    @property
    def framework(self) -> str:
        """Whose loop carries its runs on; empty for the runner's own."""
        return ""

    def carried(self, opened: Any, on_question: Any) -> Awaitable[Any] | None:  # noqa: ARG002 (a program's face)
        """Carry an open run on, if that is not the runner's loop."""
        return None

    def rehearsed(self, lines: Sequence[Any]) -> tuple[Self, replay.Divergence | None]:  # noqa: ARG002 (as above)
        """The agent as a history knew it, and where its program goes another way, if it has one."""
        return self, None

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)

    def tool(self, name: str) -> Tool[Any, Any] | None:
        """The tool of this name, or None."""
        return self._by_name.get(name)

    @functools.cached_property
    def _by_name(self) -> dict[str, Tool[InputsT, ResourcesT]]:
        return {t.name: t for t in self.tools}

    @functools.cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them, in their order."""
        final = self.answers.tool if self.answers is not None else None
        own = tuple(ToolSpec(t.name, t.description, t.schema) for t in self.tools)
        return own if final is None else (*own, final)

    @functools.cached_property
    def definitions(self) -> Definitions:
        """All that a resume may find changed: drift."""
        made = f"function {getattr(self.instructions, '__qualname__', '')}"
        said = self.instructions if isinstance(self.instructions, str) else made
        return Definitions(
            instructions=replay.digest(said.encode("utf-8", "replace")),
            inputs="" if self._inputs is None else replay.digest_value(self._inputs.schema),
            output="" if self.answers is None else replay.digest_value(self.answers.schema),
            tools={t.name: t.definition for t in self.tools},
            parameters=replay.digest_value(dict(self.parameters)),
            parallel=self.parallel,
            context="" if self.context is None else getattr(self.context, "__qualname__", repr(self.context)),
        )

    @functools.cached_property
    def tools_digest(self) -> str:
        """The digest of the tools as a request shows them."""
        return replay.digest_value([list(s) for s in self.specs])


AnyAgent: TypeAlias = Agent[Any, Any, Any]
"""An agent of whatever types."""
