"""A call without a result, and what the current code makes of it: its tool, its arguments, its intent.

One value for all that chooses. The gates, the fork guard, the approvals and the ladder take it, so that each of them
speaks of the same tool and the same arguments.
"""

import functools
from typing import Literal

import replay
from replay import CallState, State
from replay.events import QuestionAnswered, QuestionAsked, ResultRecorded
from replay.state import Question
from runner._agent import arguments as _arguments
from runner._agent import keys
from runner._agent.agent import AnyAgent
from runner._agent.arguments import Arguments
from runner._agent.tools import Tool


class Pending:
    """A call of the current reply that has no result yet.

    `tool` is the one that the current code has under its name. `gate` is what the gates said of it, once they were
    asked: a choice asks them for the questions of a reply, and again for its first call.
    """

    def __init__(self, agent: AnyAgent, state: State, call: CallState) -> None:
        self.agent, self.state, self.call = agent, state, call
        self.id = call.call.id
        self.tool: Tool | None = agent.tool(call.call.tool)
        self.gate: tuple[ResultRecorded | QuestionAsked | None] | None = None

    @functools.cached_property
    def arguments(self) -> Arguments:
        """The arguments as the current tool takes them, defaults included; without a tool, as they were written.

        What was shown to a person or marked before is what counts, not what the model wrote.
        """
        return prepare(self.tool, self.call.arguments)

    @functools.cached_property
    def misfit(self) -> str | None:
        """Why the current tool can't run this call as it was tried before, or None.

        A parameter that is new since then has a default that nobody approved and no earlier attempt sent.
        """
        if self.arguments.problem is not None:
            return f"can't take its arguments ({self.arguments.reasons})"
        if self.call.attempts and self.call.bound not in (None, self.arguments.text):
            return f"would run it with other arguments ({self.arguments.text})"
        return None

    @functools.cached_property
    def intent(self) -> str | None:
        """The intent, or None when the tool names none or can't take the arguments."""
        return intent(self.tool, self.arguments) if self.tool is not None else None

    def question(self, kind: Literal["approve", "settle"], why: str, guarded: int | None = None) -> QuestionAsked:
        """A question about this call, with the arguments that a person is shown and the digest of exactly those."""
        shown = self.call.arguments if self.call.attempts else self.arguments.text
        return QuestionAsked(
            id=self._next_id(kind),
            kind=kind,
            call=self.id,
            tool=self.call.call.tool,
            arguments=shown,
            digest=replay.digest(shown.encode()),
            why=why,
            guarded=guarded,
        )

    def _next_id(self, kind: Literal["approve", "settle"]) -> str:
        if kind == "settle":
            return settle_id(self.call, self.call.settle_questions + 1)
        return f"{self.id}-approve-{len(self.approvals) + 1}" if self.approvals else f"{self.id}-approve"

    @functools.cached_property
    def approvals(self) -> list[Question]:
        """The questions whether this call may run."""
        return [q for q in self.state.questions.values() if q.call == self.id and q.kind == "approve"]

    @property
    def given(self) -> QuestionAnswered | None:
        """The answer to the last of them."""
        return self.approvals[-1].answer if self.approvals else None

    @property
    def edited(self) -> bool:
        """Whether a person gave it other arguments."""
        return self.given is not None and self.given.answer == "edit"

    def invalid(self, why: str) -> ResultRecorded:
        """The result of a call that can't be run."""
        return ResultRecorded(call=self.id, how="invalid", text=f"The call was not run: {why}.")


def settle_id(call: CallState, n: int) -> str:
    """The id of the `n`-th question how a call ended."""
    return f"{call.call.id}-settle-{n}"


def prepare(tool: Tool | None, raw: str) -> Arguments:
    """Arguments for a tool of the current code, or read without one."""
    return tool.prepare(raw) if tool is not None else _arguments.prepare(raw)


def intent(tool: Tool, arguments: Arguments) -> str | None:
    """The intent of these arguments: made of what the function gets.

    A default left out and the same value written out are one intent.
    """
    if not tool.once_per or arguments.values is None:
        return None
    return keys.intent(tool.name, arguments.plain, tool.once_per)
