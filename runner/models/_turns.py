"""The conversation as a provider wants it: replies, and between them one message from our side.

A message of ours holds the results of the reply before it first, all of them together, then what was said; providers
refuse results that come later or apart. All of it follows from the messages alone, so that a resume in another process
sends the same bytes and the provider's prompt cache still hits.

A conversation that is to be summarised is sent as one text. Its calls can't be made again in it, so it needs neither
the tools they belong to nor a place for their results, and whatever a provider demands of a conversation holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from replay import HAPPENED, Answered, Message, Replied, Reply, Result, Said
from runner._model import Request
from runner.errors import BadAgent

ASKS = "Write the summary of this conversation now."
WITH_TOOLS = frozenset({"tools", "tool_choice", "parallel_tool_calls", "response_format", "output_format"})
"""Parameters that belong to turns: a summary has no tools, and is text."""

_id = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass
class Ours:
    """What our side says at one place of the conversation."""

    results: list[Result] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def turns(request: Request) -> Iterator[Reply | Ours]:
    """The request's conversation in its order, what follows a reply gathered in one place."""
    ours = Ours()
    for message in _messages(request):
        if isinstance(message, Replied):
            if ours.results or ours.texts:
                yield ours
                ours = Ours()
            yield message.reply
        elif isinstance(message, Answered):
            ours.results += message.results
        else:
            ours.texts.append(message.text)
    if ours.results or ours.texts:
        yield ours


def _messages(request: Request) -> Sequence[Message]:
    if request.purpose == "summary":
        return (Said(f"{transcript(request.messages)}\n\n{ASKS}"),)
    return request.messages


def transcript(messages: Sequence[Message]) -> str:
    """A conversation as text."""
    parts: list[str] = []
    for message in messages:
        if isinstance(message, Replied):
            if message.reply.text:
                parts.append(f"[assistant]\n{message.reply.text}")
            parts += [f"[call {call.id} of {call.tool}]\n{call.arguments}" for call in message.reply.calls]
        elif isinstance(message, Answered):
            parts += [f"[result of call {r.call} of {r.tool}: {r.how}]\n{r.text}" for r in message.results]
        else:
            parts.append(f"[user]\n{message.text}")
    return "\n\n".join(parts)


def names(reply: Reply, *, verbatim: bool) -> dict[str, str]:
    """The id by which the provider knows each call of a reply, by our own.

    A reply that goes back as it came has the provider's own ids, blank ones too. One that another provider wrote keeps
    its ids if any provider can take them, else gets ones made from ours.
    """
    theirs = [call.provider_id for call in reply.calls]
    if verbatim or (len(set(theirs)) == len(theirs) and all(_id.fullmatch(one) for one in theirs)):
        return {call.id: call.provider_id for call in reply.calls}
    return {call.id: f"call_{call.id.replace('.', '_')}" for call in reply.calls}


def failed(result: Result) -> bool:
    """Whether the model should read this result as an error."""
    return result.how not in HAPPENED


def parameters(request: Request, taken: frozenset[str]) -> dict[str, Any]:
    """The user's parameters, as they go into a request.

    Raises `BadAgent` when one of them is a field that is `taken` by the conversation, its model or its transport.
    """
    given = {str(name): value for name, value in request.parameters.items()}
    clash = sorted(taken & given.keys())
    if clash:
        message = f"the agent's parameters hold {', '.join(clash)}, which the model's adapter writes itself"
        raise BadAgent(message)
    if request.purpose == "summary":
        return {name: value for name, value in given.items() if name not in WITH_TOOLS}
    return given


def tools(own: Sequence[Mapping[str, Any]], given: dict[str, Any]) -> dict[str, Any]:
    """The field `tools`: the agent's own in their order, then those that the parameters add, as a vendor's own."""
    more = given.pop("tools", ())
    if not isinstance(more, list | tuple):
        message = "the agent's parameter tools is no list"
        raise BadAgent(message)
    both = [*own, *more]
    return {"tools": both} if both else {}
