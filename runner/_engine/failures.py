"""What an attempt that raised proves, and whether it is worth repeating."""

import functools
import inspect
from collections.abc import Sequence
from contextlib import suppress

from replay.events import AttemptEnded, AttemptMarked
from runner import _logging
from runner._agent import sanitize
from runner._agent.call import Call, Withdrawn
from runner._agent.plain import Secret
from runner._transport import SOON, worth_repeating
from runner.errors import NeedsPerson, OutcomeUnknown, ToolFailed


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
        retry_after=sanitize.seconds(_retry_after(call, error)),
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


def _retry_after(call: Call, error: BaseException) -> object:
    """Seconds after which the attempt is worth repeating. A read that says nothing about it is judged by its error."""
    if isinstance(error, ToolFailed):
        return error.retry_after
    if isinstance(error, OutcomeUnknown):
        return error.retry_after if error.retry_after is not None or call.acts else SOON
    return None if call.acts else worth_repeating(error)


def type_of(error: BaseException) -> str:
    """The name of an error's class, as it is logged."""
    return sanitize.clean(type(error).__qualname__, sanitize.MAX_NAME)
