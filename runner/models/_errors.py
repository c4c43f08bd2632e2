"""What went wrong with an ask, in the runner's words: may it be asked again, may it have been paid, when.

1. Nothing was sent (no connection): transient, certainly free.
2. The provider refused it (4xx): permanent, except 408, 409, 425 and 429. Refused is free, except 408.
3. The provider broke (5xx): transient. It may have worked before it broke, so it may be billed; 503 and 529 say that it
   did not begin.
4. The connection broke after the request left, or a stream ended before the provider said that the reply is complete:
   transient, spend unknown.
5. An error in the body of a 200 or in a stream: its code means what the same HTTP status means; without one its kind
   decides, and a kind that is not known is transient. It may be billed.

A provider that says otherwise (`x-should-retry`, a used-up quota) is believed. `Retry-After` counts from the response's
own `Date`. No message contains a key, so no key reaches a log.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from runner._transport import FOR_GOOD, NOT_CONNECTED, causes, client_error, meaning, retry_after
from runner.errors import ModelError, RunError
from runner.models import _json

BROKE = 500
"""From this status on the provider says that the fault is its own."""
TIMED_OUT = 408
NOT_BEGUN = frozenset({503, 529})
SPENT = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})
"""Refusals that look passing (429) and last until somebody pays."""
PASSING_KINDS = frozenset({
    "api_error", "overloaded_error", "rate_limit_error", "rate_limit_exceeded", "server_error", "timeout_error",
    "vector_store_timeout",
})  # fmt: skip
"""Kinds of errors that pass, as providers name them."""
LASTING_KINDS = frozenset({
    "authentication_error", "bio_policy", "content_filter", "content_policy_violation", "context_length_exceeded",
    "cyber_policy", "model_not_found", "not_found_error", "permission_error", "request_too_large",
    "string_above_max_length",
})  # fmt: skip
"""Kinds of errors that asking again does not change, as are all that begin with `invalid_`."""

MOST_WORDS = 600
_STATUSES = frozenset(map(str, range(400, 600)))
CONVERSATION_STATUSES = frozenset({400, 422})
_limit = re.compile(r"context.(length|window)|too (long|large|many)|credit|billing|quota|safety|policy", re.IGNORECASE)
_conversation = re.compile(
    r"messages?\b|content|tool_(use|calls?|results?)|call_id|reasoning|thinking|arguments|\binput\b|image",
    re.IGNORECASE,
)
_other = re.compile(r"\btools?\b|schema|\bmodel\b|param|max_\w*tokens|temperature", re.IGNORECASE)
_keys = re.compile(r"\bsk-[A-Za-z0-9_*.-]{6,}")


class NotInstalled(RunError):
    """A package that an extra brings is missing."""

    sentence = "the package {package} is not installed"
    hint = "Install it: pip install 'refold[{extra}]'"
    package: str
    extra: str


def incomplete(why: str) -> ModelError:
    """No complete reply came, though the request was sent: the tokens spent are unknown."""
    return ModelError(why, transient=True, billed=True)


def said(body: str) -> ModelError:
    """An error that the provider reported where a reply, or the rest of one, should have been."""
    names, words = _words(body)
    statuses = [int(name) for name in names if name in _STATUSES]
    why = f"the provider reported an error{names[0] and f' ({names[0]})'}: {words}"
    return ModelError(why, transient=_passes(statuses[0] if statuses else None, names), billed=True)


def failure(error: Exception) -> ModelError | None:
    """What an exception on the way to a provider means, or None when it is none of its SDK or of ours."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, UnicodeDecodeError):
        return incomplete(f"the reply is not UTF-8: {error}")
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    if isinstance(status, int) and response is not None:
        return _refused(status, response)
    names = {client_error(cause) for cause in causes(error)} - {None}
    if names:
        unsent = names & (FOR_GOOD | NOT_CONNECTED)
        chain = " from ".join(dict.fromkeys(f"{type(cause).__name__}: {cause}" for cause in causes(error)))
        return ModelError(f"no answer came: {chain}", transient=not names & FOR_GOOD, billed=not unsent)
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if packages & {"anthropic", "openai"} or (isinstance(error, TypeError) and "authentication" in str(error)):
        return ModelError(f"it can't be asked: {error}", transient=False)
    return None


def masked(error: ModelError, secrets: Iterable[str]) -> ModelError:
    """The same error without the keys, whole or as providers abbreviate them."""
    why = error.why
    for secret in secrets:
        why = why.replace(secret, "[secret]")
    names = ("transient", "billed", "retry_after", "refused_conversation")
    return ModelError(_keys.sub("[secret]", why), **{name: getattr(error, name) for name in names})


def _refused(status: int, response: Any) -> ModelError:
    (kind, *more), words = _words(response.text)
    headers = response.headers
    transient = {"true": True, "false": False}.get(headers.get("x-should-retry", ""), _passes(status, [kind, *more]))
    known = headers.get("request-id") or headers.get("x-request-id")
    return ModelError(
        f"the provider answered {status}{kind and f' ({kind})'}: {words}{f' [request {known}]' if known else ''}",
        transient=transient,
        billed=status == TIMED_OUT or (status >= BROKE and status not in NOT_BEGUN),
        retry_after=retry_after(headers),
        refused_conversation=status in CONVERSATION_STATUSES and _about_the_conversation(words),
    )


def _about_the_conversation(words: str) -> bool:
    """Whether a refusal is about the messages, and not about a tool, a schema, the model, a parameter or a limit.

    A refusal of images is: without them the same messages are taken.
    """
    return "image" in words.lower() or (
        not _limit.search(words) and (bool(_conversation.search(words)) or not _other.search(words))
    )


def _passes(status: int | None, names: Sequence[str]) -> bool:
    """Whether asking again may help, by the status of an error, or else by the names of its kind."""
    if SPENT.intersection(names):
        return False
    if status is not None:
        return meaning(status) != "refused"
    lasting = any(name in LASTING_KINDS or name.startswith("invalid_") for name in names)
    return bool(PASSING_KINDS.intersection(names)) or not lasting


def _words(body: str) -> tuple[list[str], str]:
    """The names of an error's kind, the most telling first, and its message, wherever the provider put them."""
    try:
        found = _json.value(body)
    except _json.NotJson:
        found = None
    inner = found.get("error") if isinstance(found, dict) else None
    inner = inner if isinstance(inner, dict) else found
    if not isinstance(inner, dict):
        return [""], body.strip()[:MOST_WORDS] or "it said nothing"
    names = [str(inner[field]) for field in ("code", "status", "type") if isinstance(inner.get(field), str | int)]
    names.sort(key=lambda name: name not in SPENT | PASSING_KINDS)
    words = inner.get("message")
    return names or [""], (words if isinstance(words, str) and words else body.strip())[:MOST_WORDS]
