"""The tracker's service: what it answers, over HTTP.

POST /issues {cause, title, body}   201 filed · 200 the same request under the same key: the first one's issue ·
                                    409 that key is in flight · 422 that key came with another request ·
                                    400 not a request · 413 too large
GET /issues?key=K                   issues that came under K · 503 when the lookup is down
GET /issues?text=T                  issues that contain T; without either, all
POST /issues/{number}/comments {text}  as filing; 404 when there is no such issue
GET /issues/{number}/comments?key=K    comments that came under K, or 503 as above; without it, all

A request must name this machine as its host and come from no web page (403), so that no site that a browser shows can
use the tracker. What it sends must be JSON (415) and arrive within seconds (408). What is in flight is known to the
process alone: it does not survive a restart, as in the services this one stands for.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from runner.triage._tracker_store import Comment, Draft, Issue, KeyMismatch, NoSuchIssue, Remark, Store
from runner.triage._world import TrackerFaults

_MAX_BODY = 1 << 20
_BODY_SECONDS = 10.0
_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?")
_Asked = TypeVar("_Asked", Draft, Remark)


class Tracker(Starlette):
    """The service. `faults` is called at every request."""

    def __init__(self, store: Store, faults: Callable[[], TrackerFaults]) -> None:
        self._store = store
        self._faults = faults
        self._in_flight: set[str] = set()
        routes = [
            Route("/issues", self._file, methods=["POST"]),
            Route("/issues", self._find),
            Route("/issues/{number:int}/comments", self._comment, methods=["POST"]),
            Route("/issues/{number:int}/comments", self._find),
        ]
        super().__init__(routes=routes, exception_handlers=dict.fromkeys((HTTPException, OverflowError), _refused))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Request(scope)
        if not _HOST.fullmatch(asked.headers.get("host", "")) or "origin" in asked.headers:
            answer = await _refused(asked, HTTPException(403, "only programs on this machine may ask"))
            await answer(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    async def _file(self, request: Request) -> Response:
        return await self._once(request, Draft, self._store.file)

    async def _comment(self, request: Request) -> Response:
        return await self._once(request, Remark, partial(self._store.comment, request.path_params["number"]))

    async def _once(
        self, request: Request, kind: type[_Asked], make: Callable[[_Asked, str | None, float], tuple[object, bool]]
    ) -> Response:
        """Do what a request asks, under its key."""
        try:
            asked = msgspec.json.decode(await _body(request), type=kind)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise HTTPException(400, f"not such a request: {error}") from error
        faults, key = self._faults(), request.headers.get("idempotency-key")
        counted = {key} if key is not None and not faults.ignore_keys else set()
        if counted & self._in_flight:
            raise HTTPException(409, "a request under this key is in flight", {"retry-after": "1"})
        self._in_flight |= counted
        try:
            made, new = make(asked, key, faults.key_ttl if counted else 0.0)
            if faults.delay:
                await asyncio.sleep(faults.delay)
        except NoSuchIssue as error:
            raise HTTPException(404, f"there is no issue {error}") from error
        except KeyMismatch as error:
            raise HTTPException(422, "this key came with another request") from error
        finally:
            self._in_flight -= counted
        return _json(201 if new else 200, made)

    async def _find(self, request: Request) -> Response:
        key, number = request.query_params.get("key"), request.path_params.get("number")
        if key is not None and self._faults().lookup_down:
            raise HTTPException(503, "the lookup is down")
        under = {} if key is None else {"key": key}
        if number is not None:
            return _json(200, {"comments": self._store.find(Comment, issue=number, **under)})
        found = self._store.find(Issue, **under) if under else self._store.search(request.query_params.get("text", ""))
        return _json(200, {"issues": found})


async def _body(request: Request) -> bytes:
    """What a request sends. Raises `HTTPException`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "a request is application/json")
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MAX_BODY:
                    raise HTTPException(413, f"a request has at most {_MAX_BODY} bytes")
    except TimeoutError as error:
        raise HTTPException(408, f"a request arrives within {_BODY_SECONDS:g} s", {"connection": "close"}) from error
    return bytes(body)


async def _refused(_: Request, error: Exception) -> Response:
    """The answer for an error. Not a plain function: Starlette would call that in a thread, whose time is its own."""
    if not isinstance(error, HTTPException):
        error = HTTPException(404, "no such issue")  # no number of the store's is so large
    return _json(error.status_code, {"error": error.detail}, error.headers)


def _json(status: int, content: object, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), status, headers, media_type="application/json")
