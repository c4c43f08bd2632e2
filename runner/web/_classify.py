"""What came back over HTTP, and what it says about this attempt. An error is not a "no".

What a client's error and a status prove stands in `runner._transport`. Besides:

- A refusal because of the key itself (mostly 422, also 400) proves nothing.
- A 409 for a request with a key mostly means that an earlier request with the key is in flight. That may be a copy of
  this attempt, made by a proxy, so it does not prove that this attempt did nothing. It is unknown, and the ladder sends
  the same key again later, which is harmless.
- A service that keeps a key's answer repeats a 500 as it repeats a success, so a second 500 says no more than the
  first.
- A key mismatch says that another request came with this call's key, and the log does not know of it.
- A refusal proves nothing when another request of this attempt went out before it, or when a redirect was followed.
- Where nothing can have acted (a lookup, a tool that reads, a safe method), what is unknown is a failure that is worth
  another try.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from runner import Call, OutcomeUnknown, ToolFailed
from runner._transport import NEVER_SENT, SOON, Meaning, client_error, retry_after
from runner._transport import meaning as meaning_of
from runner.web import _body
from runner.web._hook import MARK, SAFE, Mark, calling

CONFLICT: Final = 409
UNPROCESSABLE: Final = 422
MOST_TEXT: Final = 500


def result(
    response: Any, *, done: Collection[int] = (), refused: Collection[int] = (), unknown: Collection[int] = ()
) -> Any:
    """The JSON or text of a response whose request was carried out.

    Args:
        response: A response of httpx or httpx2, its body read.
        done: Statuses that this service uses for success, such as a 404 that means "deleted already".
        refused: Statuses that prove that nothing happened, such as a 409 that is always a conflict of content.
        unknown: Statuses that prove nothing.

    Returns:
        The parsed JSON when the content type says JSON and it parses and is not nested very deep, else the text. Of
        more than 8 MiB the start, as text that says so.

    Raises:
        ToolFailed: The attempt certainly did nothing.
        OutcomeUnknown: It may have been carried out.
    """
    call = calling()
    history = list(getattr(response, "history", ()))
    requests = [_request(each) for each in (*history, response)]
    redirected = any(300 <= each.status_code < 400 for each in history)  # noqa: PLR2004 (HTTP's redirects)
    status = int(response.status_code)
    own: dict[int, Meaning] = {
        **dict.fromkeys(unknown, "unknown"),
        **dict.fromkeys(refused, "refused"),
        **dict.fromkeys(done, "done"),
    }
    keyed = any(_keyed(request, call) for request in requests)
    meaning = own.get(status) or meaning_of(status)
    if meaning == "refused" and keyed and status not in own and _about_the_key(status, response):
        meaning = "unknown"
    before = call is not None and any(sent is not requests[0] for sent in call.sent.values())
    _note(call, requests[0])
    if meaning == "done":
        return _body.content(response)
    why = f"the service said {status}: {_body.start(response, MOST_TEXT)}"
    after = retry_after(response.headers)
    if meaning == "wait" or (status == CONFLICT and keyed and meaning == "unknown"):
        after = after or SOON
    acts = (call is None or call.acts) and any(_acts(request) for request in requests)
    if acts and (meaning == "unknown" or before or redirected):
        raise OutcomeUnknown(why, after)
    if meaning == "unknown":
        raise ToolFailed(why, after or SOON)
    raise ToolFailed(why, after if meaning == "wait" else None)


@contextmanager
def sending() -> Iterator[None]:
    """Classifies a client's errors: the request was never sent, or its outcome is unknown.

    Use one `with sending():` block for each request of a call, in sync or async code. Errors that are not the
    client's pass unchanged.

    Raises:
        ToolFailed: The request was never sent.
        OutcomeUnknown: It may have been sent, or the block raised `ToolFailed` and an earlier block of the same attempt
            had sent something.
    """
    call = calling()
    acts = call is None or call.acts
    before = call is not None and bool(call.sent)
    try:
        yield
    except ToolFailed as error:
        if not (acts and before):
            raise
        raise OutcomeUnknown(f"{error.why} (an earlier request of this call was sent)", error.retry_after) from error
    except Exception as error:
        name = client_error(error)
        if name is None or name == "InvalidURL":  # a mistake in the tool's own code
            raise
        if name == "HTTPStatusError":  # `raise_for_status()` said no more than the status
            result(error.response)  # type: ignore[attr-defined] # this class has it
        request = _request(error)
        why = f"{name}: {error}" if str(error) else name
        if acts and (before or _may_have_acted(name, request)):
            _note(call, request)
            raise OutcomeUnknown(f"the request may have been carried out ({why})") from error
        raise ToolFailed(f"the request was not carried out ({why})", SOON) from error


def _about_the_key(status: int, response: Any) -> bool:
    """Whether a refusal is about the key: the words of Stripe, AWS and the IETF draft; a bare 422 is the draft's."""
    folded = _body.start(response, MOST_TEXT).casefold()
    if "idempoten" in folded:
        return True
    words = "".join(c if c.isalnum() else " " for c in folded).split()
    return status == UNPROCESSABLE and (not words or "key" in words)


def _may_have_acted(name: str, request: Any) -> bool:
    mark = request.extensions.get(MARK) if request is not None else None
    if name in NEVER_SENT:
        # After a redirect this is the error of a later hop. Without the hook's mark that can't be seen, but only a
        # redirect that turned the request into a safe one may follow something that acted.
        return mark.hops > 0 if isinstance(mark, Mark) else not _acts(request)
    return _acts(request) or not isinstance(mark, Mark) or mark.keyed or mark.hops > 0


def _request(of: Any) -> Any:
    """The request that a response or an error belongs to; both clients raise when it is not known."""
    with suppress(RuntimeError, AttributeError):
        return of.request
    return None


def _acts(request: Any) -> bool:
    return request is None or request.method not in SAFE


def _keyed(request: Any, call: Call | None) -> bool:
    if request is None:
        return False
    mark = request.extensions.get(MARK)
    if isinstance(mark, Mark):
        return mark.keyed
    return call is not None and any(call.key in value for value in request.headers.values())


def _note(call: Call | None, request: Any) -> None:
    """Remember a request that went without the hook, so that a later one's refusal does not speak for both."""
    if call is None or not call.acts or not _acts(request):
        return
    if not any(sent is request for sent in call.sent.values()):
        call.sent[f"without a key, {len(call.sent)}"] = request
