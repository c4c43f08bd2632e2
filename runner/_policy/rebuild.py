"""A conversation rebuilt from its texts and calls: what any server takes, whatever it or another one sent before."""

import json
from collections.abc import Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from replay.messages import AssistantMessage, Message, ToolCall, ToolResults
from runner._agent import json_text


def rebuilt(messages: Sequence[Message], upto: int) -> tuple[Message, ...]:
    """The messages, with every reply before index `upto` made anew from its text and its calls."""
    return tuple(_rebuilt(messages, upto))


def _rebuilt(messages: Sequence[Message], upto: int) -> Iterator[Message]:
    for index, message in enumerate(messages):
        if index < upto and isinstance(message, ToolResults):  # not every server takes images
            yield ToolResults(tuple(replace(result, images=UNSET) for result in message.results))
        elif index >= upto or not isinstance(message, AssistantMessage):
            yield message
        else:
            reply = message.reply
            text = reply.text if reply.text.strip() else ""
            yield AssistantMessage(replace(reply, raw="", text=text, calls=tuple(_call(call) for call in reply.calls)))


def _call(call: ToolCall) -> ToolCall:
    """A call with no id of the provider's, so that adapters make one of ours."""
    try:
        given = call.arguments if json_text.parse(call.arguments) is not None else "{}"
    except json_text.InvalidArguments:
        given = json.dumps({"invalid": call.arguments}, ensure_ascii=False)
    return replace(call, provider_id="", arguments=given or "{}")
