"""The conversation as a provider wants it: replies, and between them one message from our side.

A message of ours holds the results of the reply before it first, all of them together, then what was said; providers
refuse results that come later or apart. All of it follows from the messages alone, so that a resume in another process
sends the same bytes and the provider's prompt cache still hits.

A conversation that is to be summarised is sent as one text. Its calls can't be made again in it, so it needs neither
the tools they belong to nor a place for their results, and whatever a provider demands of a conversation holds.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from replay.messages import HAPPENED, AssistantMessage, Message, Reply, Result, ToolResults, UserMessage
from runner._agent.model import Request
from runner.errors import BadAgent
from runner.models import _json

ASKS = "Write the summary of this conversation now."
WITH_TOOLS = frozenset({"tools", "tool_choice", "parallel_tool_calls", "response_format", "output_format"})
"""Parameters that belong to turns: a summary has no tools, and is text."""

_id = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass
class Theirs:
    """A reply: as it came if that can go back, else None; and the id by which the provider knows each call, by ours."""

    reply: Reply
    kept: Any
    ids: Mapping[str, str]


@dataclass
class Ours:
    """What our side says at one place of the conversation; each result with the provider's id of its call."""

    results: list[tuple[str, Result]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def turns(request: Request, kept: Callable[[str], tuple[Any, int] | None]) -> Iterator[Theirs | Ours]:
    """The request's conversation in its order, what follows a reply gathered in one place.

    `kept` makes of a reply's raw text what goes back, and how many calls are in it; None if it is none of the vendor's.
    """
    ids: Mapping[str, str] = {}
    ours = Ours()
    for message in _messages(request):
        if isinstance(message, AssistantMessage):
            if ours.results or ours.texts:
                yield ours
                ours = Ours()
            found, calls = kept(message.reply.raw) or (None, 0)
            whole = found is not None and calls == len(message.reply.calls)
            ids = _names(message.reply, verbatim=whole)
            yield Theirs(message.reply, found if whole else None, ids)
        elif isinstance(message, ToolResults):
            ours.results += [(ids.get(result.call, result.provider_id), result) for result in message.results]
        else:
            ours.texts.append(message.text)
    if ours.results or ours.texts:
        yield ours


@functools.lru_cache(maxsize=2048)
def kept(raw: str, field: str, call: str) -> tuple[tuple[msgspec.Raw, ...], int] | None:
    """The parts of a reply that stand in a field of it, as they came, and how many of them are of the type `call`."""
    try:
        parts = _json.items(_json.inside(raw, field) or "")
    except _json.NotJson:
        return None
    calls = sum(_json.inside(part, "type") == f'"{call}"' for part in parts)
    return tuple(map(_json.raw, parts)), calls


def _messages(request: Request) -> Sequence[Message]:
    if request.purpose == "summary":
        return (UserMessage(f"{transcript(request.messages)}\n\n{ASKS}"),)
    return request.messages


def transcript(messages: Sequence[Message]) -> str:
    parts: list[str] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            if message.reply.text:
                parts.append(f"[assistant]\n{message.reply.text}")
            parts += [f"[call {call.id} of {call.tool}]\n{call.arguments}" for call in message.reply.calls]
        elif isinstance(message, ToolResults):
            parts += [f"[result of call {r.call} of {r.tool}: {r.how}]\n{r.text}" for r in message.results]
        else:
            parts.append(f"[user]\n{message.text}")
    return "\n\n".join(parts)


def _names(reply: Reply, *, verbatim: bool) -> dict[str, str]:
    """The id by which the provider knows each call of a reply, by our own.

    A reply that goes back as it came has the provider's own ids, blank ones too. One that another provider wrote keeps
    its ids if any provider can take them, else gets ones made from ours.
    """
    theirs = [call.provider_id for call in reply.calls]
    if verbatim or (len(set(theirs)) == len(theirs) and all(_id.fullmatch(one) for one in theirs)):
        return {call.id: call.provider_id for call in reply.calls}
    return {call.id: f"call_{call.id.replace('.', '_')}" for call in reply.calls}


def images(result: Result) -> list[str]:
    """The images of a result, each as a URL that holds it."""
    return [f"data:{image.mime};base64,{image.data}" for image in result.images or ()]


def failed(result: Result) -> bool:
    """Whether the model should read this result as an error."""
    return result.how not in HAPPENED | {"output", "responded"}


def parameters(request: Request, taken: frozenset[str]) -> dict[str, Any]:
    """The user's parameters, as they go into a request.

    Raises `BadAgent` when one of them is a field that is `taken` by the conversation, its model or its transport.
    """
    given = {str(name): value for name, value in request.parameters.items()}
    clash = sorted(taken & given.keys())
    if clash:
        raise BadAgent(f"the agent's parameters hold {', '.join(clash)}, which the model's adapter writes itself")
    if request.purpose == "summary":
        return {name: value for name, value in given.items() if name not in WITH_TOOLS}
    return given


def tools(own: Sequence[Mapping[str, Any]], given: dict[str, Any]) -> dict[str, Any]:
    """The field `tools`: the agent's own in their order, then those that the parameters add, as a vendor's own."""
    more = given.pop("tools", ())
    if not isinstance(more, list | tuple):
        raise BadAgent("the agent's parameter tools is no list")
    both = [*own, *more]
    return {"tools": both} if both else {}
