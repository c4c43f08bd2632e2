"""What an attempt that raised proves, and whether it is worth repeating."""

import functools
import inspect
from contextlib import suppress

from runner._agent import sanitize
from runner._agent.call import Call
from runner._transport import SOON, worth_repeating
from runner.errors import NeedsPerson, OutcomeUnknown


def did_nothing(call: Call, body: functools.partial[object], error: BaseException) -> bool:
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
    """Seconds after which the attempt is worth repeating. A read that says nothing about it is judged by its error."""
    if isinstance(error, OutcomeUnknown):
        return error.retry_after if error.retry_after is not None or call.acts else SOON
    return None if call.acts else worth_repeating(error)


def type_of(error: BaseException) -> str:
    """The name of an error's class, as it is logged."""
    return sanitize.clean(type(error).__qualname__, sanitize.MAX_NAME)
