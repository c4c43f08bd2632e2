"""A model's reply as it is saved: storable, with its calls named, and otherwise as it came.

A call's id is `<turn>.<index>`, given here, never derived from the provider's, which may repeat or be blank.
"""

import json
import math

from msgspec.structs import replace

import replay
from replay.events import ReplySaved
from replay.messages import Reply, ToolCall
from runner._agent import plain, sanitize
from runner.errors import ModelError

MAX_CALLS = 8 << 20
"""The most bytes that the arguments of all calls of a reply may take together; each call has an equal share."""
MAX_REPLY = 15 << 20
"""The most bytes of a whole reply: a line of the log holds no more."""


def storable(reply: object, turn: int, purpose: str) -> Reply:
    """`reply` as it will be saved and read by every later life.

    Raises a billed `ModelError`: a permanent one when a model's adapter returned something that is no reply, a
    transient one when a summary was asked for and came blank, refused or cut off.
    """
    if not isinstance(reply, Reply):
        raise ModelError(f"the model returned {type(reply).__name__}, not a Reply", transient=False, billed=True)
    try:
        made = _made(reply, turn)
        size = len(replay.encode(ReplySaved(reply=made)))
    except (replay.NotFaithful, TypeError, AttributeError, ValueError) as error:
        raise ModelError(
            f"the model's reply has a field of a wrong type: {error}", transient=False, billed=True
        ) from error
    if purpose == "summary" and (made.stop != "stop" or not made.text.strip()):  # it would stand for all it left out
        raise ModelError(f"the summary is none: it ended with {made.stop}, {len(made.text)} characters", billed=True)
    if size > MAX_REPLY:
        raise ModelError(f"the model's reply takes {size} bytes, more than a line holds", transient=False, billed=True)
    return made


def _made(reply: Reply, turn: int) -> Reply:
    text, raw = sanitize.clean(reply.text), sanitize.raw(reply.raw) if reply.raw else ""
    lossy = text != reply.text or raw != reply.raw
    calls = []
    share = min(plain.MAX_TEXT, MAX_CALLS // max(1, len(reply.calls)))
    for index, call in enumerate(reply.calls):
        given: object = call.arguments  # of an adapter that parsed them, an object
        came = given if isinstance(given, str) else json.dumps(given)
        arguments = sanitize.clean(came, share)
        name = sanitize.clean(call.tool, sanitize.MAX_NAME)
        provider_id = sanitize.clean(call.provider_id, sanitize.MAX_NAME)
        lossy = lossy or (arguments, name, provider_id) != (came, call.tool, call.provider_id)
        calls.append(ToolCall(tool=name, arguments=arguments, provider_id=provider_id, id=f"{turn}.{index}"))
    dollars = reply.dollars if reply.dollars is not None and 0 <= reply.dollars < math.inf else None
    if min(reply.usage.input_tokens, reply.usage.output_tokens) < 0:
        raise ValueError("tokens below zero")
    return replace(
        reply,
        text=text,
        raw=raw,
        model=sanitize.clean(reply.model, sanitize.MAX_NAME),
        calls=tuple(calls),
        dollars=float(dollars) if dollars is not None else None,
        lossy=lossy,
    )
