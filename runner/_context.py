"""The context policy: when the conversation grows too long, which part of it a summary stands for (spec row 6).

A policy is a pure function of the messages, the summary so far and the last reply's usage. It returns None, or a
`Summarise`; the summary is then asked for and saved like any other reply, and is never paid for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replay import Answered, Message, Replied, Said, State, Summary, Usage

INSTRUCTIONS = (
    "Summarise the conversation so far for the agent that will carry it on: the task, what was found out, what was "
    "done in the outside world with its exact identifiers, what is left. Leave out what is no longer needed."
)


@dataclass(frozen=True)
class Summarise:
    """Let a summary stand for the messages before index `upto`. `instructions` tell the model how to write it."""

    upto: int
    instructions: str = INSTRUCTIONS


Policy = Callable[[Sequence[Message], Summary | None, Usage], Summarise | None]


@dataclass(frozen=True)
class SummariseAfter:
    """A policy: once a reply's input was longer than `tokens`, summarise all but the last `keep` messages."""

    tokens: int
    keep: int = 6
    instructions: str = INSTRUCTIONS

    def __call__(
        self,
        messages: Sequence[Message],
        summary: Summary | None,  # noqa: ARG002 (every policy may look at it)
        usage: Usage,
    ) -> Summarise | None:
        """See `Policy`."""
        if usage.input_tokens <= self.tokens:
            return None
        return Summarise(len(messages) - self.keep, self.instructions)


def wanted(policy: Policy | None, state: State) -> Summarise | None:
    """The summary that is due now, its end moved back to where no results are torn from their calls."""
    if policy is None:
        return None
    messages = state.messages
    last = next((m for m in reversed(messages) if isinstance(m, Replied)), None)
    since = state.summary.upto if state.summary is not None else 0
    chosen = policy(messages, state.summary, last.reply.usage if last is not None else Usage())
    if chosen is None:
        return None
    upto = min(chosen.upto, len(messages))
    while 0 < upto < len(messages) and isinstance(messages[upto], Answered):
        upto -= 1
    return Summarise(upto, chosen.instructions) if upto > max(since, 1) else None


def sent(state: State) -> tuple[Message, ...]:
    """The messages of the next ask: all of them, or the task with its summary and what came since."""
    if state.summary is None:
        return state.messages[:]
    rest = state.messages[state.summary.upto :]
    return (_short("" if Said(state.task) in rest else state.task, state.summary), *rest)


def summarised(state: State, upto: int) -> tuple[Message, ...]:
    """The messages that a summary before `upto` is made from."""
    if state.summary is None:
        return state.messages[:upto]
    return (_short(state.task, state.summary), *state.messages[state.summary.upto : upto])


def _short(task: str, summary: Summary) -> Said:
    return Said(f"{task}\n\nWhat happened before, in short:\n{summary.text}".lstrip())
