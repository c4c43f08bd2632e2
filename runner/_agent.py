"""An agent: a model, tools, instructions, limits. A plain value: all that changes while it runs is in the log."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import replay
from replay import Definitions, Limits
from runner._context import Policy
from runner._model import Model, ToolSpec
from runner._tools import Tool
from runner.errors import BadAgent


@dataclass(frozen=True)
class Agent:
    """What runs.

    model         anything with `bound` and `ask` (`runner.Model`)
    tools         made by `runner.tool`, each name once
    instructions  the system prompt
    name          the first part of default run ids; `ls` and `resume --all` find runs by it
    limits        of a run's whole life (spec rows 3 and 4); today's win over those a run was started with
    context       a policy that says when to summarise, or None: the whole conversation is sent
    approve       `ask` a person, or `off`: approvals are answered yes in the policy's name (row 25)
    parameters    passed to the model's provider as they are

    Raises `BadAgent` when two tools share a name.
    """

    model: Model
    tools: Sequence[Tool] = ()
    instructions: str = ""
    name: str = "agent"
    limits: Limits = field(default_factory=Limits)
    context: Policy | None = None
    approve: Literal["ask", "off"] = "ask"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given: Sequence[object] = self.tools
        strange = next((t for t in given if not isinstance(t, Tool)), None)
        if strange is not None:
            message = f"{strange!r} is not a tool: put @runner.tool on its function"
            raise BadAgent(message)
        if self.approve not in ("ask", "off"):
            message = f"approve is {self.approve!r}, not 'ask' or 'off'"
            raise BadAgent(message)
        names = [t.name for t in self.tools]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            message = f"two tools are named {', '.join(twice)}"
            raise BadAgent(message)

    def replace(self, **changes: Any) -> Agent:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def tool(self, name: str) -> Tool | None:
        """The tool of this name, or None."""
        return self._by_name.get(name)

    @functools.cached_property
    def _by_name(self) -> dict[str, Tool]:
        return {t.name: t for t in self.tools}

    @functools.cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them, in their order."""
        return tuple(ToolSpec(t.name, t.description, t.schema) for t in self.tools)

    @functools.cached_property
    def definitions(self) -> Definitions:
        """Digests of all that a resume may find changed (drift)."""
        return Definitions(
            instructions=replay.digest(self.instructions.encode("utf-8", "replace")),
            tools={
                t.name: replay.digest_value([t.description, t.schema, t.effect, t.remembers, t.once_per])
                for t in self.tools
            },
            parameters=replay.digest_value(dict(self.parameters)),
            context="" if self.context is None else getattr(self.context, "__qualname__", repr(self.context)),
        )

    @functools.cached_property
    def tools_digest(self) -> str:
        """The digest of the tools as a request shows them."""
        return replay.digest_value([list(s) for s in self.specs])
