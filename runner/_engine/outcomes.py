"""What came back, as it is saved: a model's reply, what an attempt that raised proves, what a workspace holds.

A reply is storable, with its calls named, and otherwise as it came. A call's id is `<turn>.<index>`, given here, never
derived from the provider's, which may repeat or be blank.
"""

import functools
import inspect
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

import eventlog
import replay
from replay import Event, State
from replay.events import AttemptEnded, AttemptMarked, ReplySaved, RunStopped, WorkspaceAccepted, WorkspaceMoved
from replay.messages import Reply, ToolCall
from runner import _logging
from runner._agent import plain, sanitize, workspace
from runner._agent.call import Call, Withdrawn
from runner._agent.plain import Secret
from runner._transport import SOON, worth_repeating
from runner.errors import ModelError, NeedsPerson, NoWorkspace, OutcomeUnknown, ToolFailed

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
    except (replay.NotFaithful, TypeError, AttributeError, ValueError, RecursionError) as error:
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


def ended(
    marked: AttemptMarked, call: Call, body: functools.partial[object], error: BaseException, secrets: Sequence[Secret]
) -> AttemptEnded:
    """How an attempt ended whose body raised."""
    if isinstance(error, Withdrawn):
        return AttemptEnded(call=marked.call, n=marked.n, did="nothing", error=str(error), withdrawn=True)
    if isinstance(error, ToolFailed | OutcomeUnknown):  # the tool's own words, not an accident
        text, trace = sanitize.error(error.why, secrets), ""
    else:
        text, trace = sanitize.error(error, secrets), sanitize.trace(error, secrets)
    sure = isinstance(error, ToolFailed) or _did_nothing(call, body, error)
    event = AttemptEnded(
        call=marked.call,
        n=marked.n,
        did="nothing" if sure else "unknown",
        error=text,
        retry_after=retry_after(call, error),
        asks=isinstance(error, NeedsPerson),
        error_type=type_of(error),
        traceback=trace,
        raw=sanitize.raw(error.raw, secrets) if isinstance(error, ToolFailed) else "",
    )
    log = _logging.logger(call=marked.call, key=marked.key)
    log.info("attempt ended", did=event.did, error=text, error_type=event.error_type, traceback=trace)
    return event


def _did_nothing(call: Call, body: functools.partial[object], error: BaseException) -> bool:
    """Whether an attempt that raised has certainly not acted: it only reads, or its body could not be called."""
    if not call.acts:
        return not isinstance(error, NeedsPerson)
    with suppress(ValueError):  # a function that has no signature to look at
        try:
            inspect.signature(body.func).bind(*body.args, **body.keywords)
        except TypeError:
            return isinstance(error, TypeError)
    return False


def retry_after(call: Call, error: BaseException) -> float | None:
    """Seconds after which the attempt is worth repeating. A read that says nothing about it is judged by its error.

    What is no time that anyone can wait still says that a repeat is worth making: at the schedule's, or at the latest.
    """
    if isinstance(error, ToolFailed | OutcomeUnknown):
        asked: Any = error.retry_after
        if asked is None and isinstance(error, OutcomeUnknown) and not call.acts:
            asked = SOON
    else:
        asked = None if call.acts else worth_repeating(error)
    if isinstance(asked, int | float) and asked > sanitize.MAX_WAIT:
        return sanitize.MAX_WAIT
    return None if asked is None else sanitize.seconds(asked) or 0.0


def type_of(error: BaseException) -> str:
    """The name of an error's class, as it is logged."""
    return sanitize.clean(type(error).__qualname__, sanitize.MAX_NAME)


def of_workspace(state: State, moved: str | None, accept: str | None, disk: eventlog.Disk) -> list[Event]:
    """What a resume finds: a file that holds no content of the run's own stops it, unless `accept` vouches for it.

    `moved`: where the workspace is now, if not where the log says.
    """
    try:
        changed = workspace.changed(moved or state.workspace, state.files, disk)
    except NoWorkspace as gone:
        return [RunStopped(reason="WorkspaceChanged", detail=str(gone))]
    by = sanitize.name(accept, "accepting the workspace") if accept is not None else ""
    if changed and not by:
        return [RunStopped(reason="WorkspaceChanged", detail=workspace.names(changed))]
    events: list[Event] = [WorkspaceMoved(path=moved, by=by)] if moved is not None else []
    return [*events, WorkspaceAccepted(by=by, files=tuple(changed))] if changed else events
