"""The context policy: when the conversation grows too long, which part of it is sent.

A policy is a pure function of the messages, the summary so far and the last reply's usage. It returns None, a `Trim` of
what is sent, or a `Summarise`; the summary is then asked for and saved like any other reply, and is never paid for
twice. The first message, which is the task, is always sent.

A summary can't shrink what stays: the instructions, the tools, the last messages. Where the policy wants another one
right after a summary, it waits until requests have grown by half, so that it is not paid for at every turn.
"""

from collections.abc import Callable, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from replay import State
from replay.messages import AssistantMessage, Message, ToolResults, Usage, UserMessage
from replay.values import Summary

INSTRUCTIONS = (
    "Summarise the conversation so far for the agent that will carry it on: the task, what was found out, what was "
    "done in the outside world with its exact identifiers, what is left. Leave out what is no longer needed."
)


class Summarise(Struct, frozen=True):
    """Let a summary stand for the messages before index `upto`. `instructions` tell the model how to write it."""

    upto: int
    instructions: str = INSTRUCTIONS


class Trim(Struct, frozen=True):
    """Send less: no messages between the first and index `drop`, and a mark for each result before index `blank`."""

    drop: int = 0
    blank: int = 0


WHOLE = Trim()
"""Leaves nothing out."""


Policy = Callable[[Sequence[Message], Summary | None, Usage], Summarise | Trim | None]


class SummariseAfter(Struct, frozen=True):
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
        if usage.input_tokens <= self.tokens:
            return None
        return Summarise(len(messages) - self.keep, self.instructions)


class KeepLast(Struct, frozen=True):
    """A policy: send the first message and the last `messages`."""

    messages: int

    def __call__(self, messages: Sequence[Message], summary: Summary | None, usage: Usage) -> Trim:  # noqa: ARG002
        return Trim(drop=len(messages) - self.messages)


class DropResults(Struct, frozen=True):
    """A policy: send the results of calls only in the last `keep` messages, and a mark in place of earlier ones."""

    keep: int = 6

    def __call__(self, messages: Sequence[Message], summary: Summary | None, usage: Usage) -> Trim:  # noqa: ARG002
        return Trim(blank=len(messages) - self.keep)


class TokenBudget(Struct, frozen=True):
    """A policy: once a reply's input was longer than `tokens`, leave out the oldest messages, to three quarters of it.

    How long they were is known from the replies' own usage. What was left out once stays left out.
    """

    tokens: int

    def __call__(self, messages: Sequence[Message], summary: Summary | None, usage: Usage) -> Trim:  # noqa: ARG002
        sizes, drop = [_size(message) for message in messages], 1
        for index, message in enumerate(messages):
            if not isinstance(message, AssistantMessage) or message.reply.usage.input_tokens <= self.tokens:
                continue
            sent = sizes[0] + sum(sizes[drop:index])
            room = sent * self.tokens * 3 // (4 * message.reply.usage.input_tokens)
            while drop < index and sent > room:
                sent -= sizes[drop]
                drop += 1
        return Trim(drop=drop)


def _size(message: Message) -> int:
    """How long a message is, as far as one can be compared with another."""
    if isinstance(message, ToolResults):
        return sum(len(result.text) for result in message.results)
    if isinstance(message, UserMessage):
        return len(message.text)
    return len(message.reply.text) + sum(len(call.arguments) + len(call.tool) for call in message.reply.calls)


def wanted(policy: Policy | None, state: State) -> Summarise | None:
    """The summary that is due now, its end moved back to where no results are torn from their calls."""
    if policy is None:
        return None
    messages, usage = state.messages, _usage(state)
    since = state.summary.upto if state.summary is not None else 0
    chosen = policy(messages, state.summary, usage)
    if not isinstance(chosen, Summarise) or _was_no_use(policy, state, usage):
        return None
    upto = _whole(messages, chosen.upto)
    return Summarise(upto, chosen.instructions) if upto > max(since, 1) else None


def trim(policy: Policy | None, state: State) -> Trim:
    """What the policy leaves out of the next turn, its end moved back as for a summary."""
    if policy is None:
        return WHOLE
    chosen = policy(state.messages, state.summary, _usage(state))
    return Trim(_whole(state.messages, chosen.drop), chosen.blank) if isinstance(chosen, Trim) else WHOLE


def _usage(state: State) -> Usage:
    last = next((m for m in reversed(state.messages) if isinstance(m, AssistantMessage)), None)
    return last.reply.usage if last is not None else Usage()


def _whole(messages: Sequence[Message], upto: int) -> int:
    """An index that tears no results from their calls."""
    upto = max(min(upto, len(messages)), 0)
    while 0 < upto < len(messages) and isinstance(messages[upto], ToolResults):
        upto -= 1
    return upto


def _was_no_use(policy: Policy, state: State, now: Usage) -> bool:
    """Whether the policy wanted another summary right after the last one, and it is not worth its price yet."""
    if state.summary is None:
        return False
    start, messages = state.summary.asked_at, state.messages
    after = next((n for n in range(start, len(messages)) if isinstance(messages[n], AssistantMessage)), None)
    if after is None:
        return False
    usage = cast("AssistantMessage", messages[after]).reply.usage
    worth = 2 * now.input_tokens >= 3 * usage.input_tokens
    return not worth and isinstance(policy(messages[: after + 2], state.summary, usage), Summarise)


def sent(state: State, messages: tuple[Message, ...], less: Trim) -> tuple[Message, ...]:
    """The messages of the next turn, of `messages` in their form for it: all, or what a summary and a policy leave."""
    if state.summary is None and less.drop <= 1 >= less.blank and messages[:1] == (UserMessage(state.task),):
        return messages
    start = state.summary.upto if state.summary is not None else 1
    drop = max(less.drop, start)
    blank = max(less.blank, drop)
    rest = (*map(_blanked, messages[drop:blank]), *messages[blank:])
    pinned = "" if UserMessage(state.task) in rest else state.task
    first = messages[:1]
    if state.summary is not None:
        first = (_short(pinned, state.summary),)
    elif pinned and UserMessage(pinned) not in first:
        first = (*first, UserMessage(pinned))  # of a run that continues another one
    if drop > start:
        first = (*first, UserMessage(f"[{drop - start} messages are left out here]"))
    return (*first, *rest)


def _blanked(message: Message) -> Message:
    """A message without its results."""
    if not isinstance(message, ToolResults):
        return message
    marks = [f"[{len(result.text)} characters are left out here]" for result in message.results]
    pairs = zip(message.results, marks, strict=True)
    return ToolResults(tuple(replace(r, text=mark) if len(r.text) > len(mark) else r for r, mark in pairs))


def summarised(state: State, upto: int) -> tuple[Message, ...]:
    """The messages that a summary before `upto` is made from."""
    if state.summary is None:
        return state.messages[:upto]
    return (_short(state.task, state.summary), *state.messages[state.summary.upto : upto])


def _short(task: str, summary: Summary) -> UserMessage:
    return UserMessage(f"{task}\n\nWhat happened before, in short:\n{summary.text}".lstrip())
