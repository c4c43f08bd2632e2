"""The tracker's service: what it answers, over HTTP.

POST /issues {cause, title, body}   201 filed · 200 the same request under the same key: the first one's issue ·
                                    409 that key is in flight · 422 that key came with another request ·
                                    400 not a request · 413 too large
GET /issues?key=K                   issues that came under K · 503 when the lookup is down
GET /issues?text=T                  issues that contain T; without either, all
POST /issues/{number}/comments {text}  as filing; 404 when there is no such issue
GET /issues/{number}/comments?key=K    comments that came under K, or 503 as above; without it, all
GET /health?challenge=C             {"proof"}: C signed with the token that the world's address file holds

A request must name this machine as its host and come from no web page (403), so that no site that a browser shows can
use the tracker. What it sends must be JSON (415) and arrive within seconds (408). What is in flight is known to the
process alone: it does not survive a restart, as in the services this one stands for.
"""

import asyncio
import re
from collections.abc import Callable
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
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
_Make = Callable[[_Asked, str | None, float], tuple[Issue | Comment, bool]]


class Tracker(Starlette):
    """The service. `faults` is called at every request; `proof` answers a challenge."""

    def __init__(self, store: Store, faults: Callable[[], TrackerFaults], proof: Callable[[str], str]) -> None:
        self._store = store
        self._faults = faults
        self._proof = proof
        self._in_flight: set[str] = set()
        routes = [
            Route("/health", self._health),
            Route("/issues", self._file, methods=["POST"]),
            Route("/issues", self._find),
            Route("/issues/{number:int}/comments", self._comment, methods=["POST"]),
            Route("/issues/{number:int}/comments", self._find),
        ]
        none = _json(404, {"error": "no such issue"})  # no number of the store's is so large
        super().__init__(routes=routes, exception_handlers={OverflowError: lambda *_: none})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Request(scope)
        if not _HOST.fullmatch(asked.headers.get("host", "")) or "origin" in asked.headers:
            await _json(403, {"error": "only programs on this machine may ask"})(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    async def _health(self, request: Request) -> Response:
        return _json(200, {"proof": self._proof(request.query_params.get("challenge", ""))})

    async def _file(self, request: Request) -> Response:
        return await self._once(request, Draft, self._store.file)

    async def _comment(self, request: Request) -> Response:
        number: int = request.path_params["number"]
        return await self._once(request, Remark, lambda *asked: self._store.comment(number, *asked))

    async def _once(self, request: Request, kind: type[_Asked], make: _Make[_Asked]) -> Response:
        """Do what a request asks, under its key."""
        body = await self._body(request)
        if isinstance(body, Response):
            return body
        try:
            asked = msgspec.json.decode(body, type=kind)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return _json(400, {"error": f"not such a request: {error}"})
        faults, key = self._faults(), request.headers.get("idempotency-key")
        if key is None or faults.ignore_keys:
            return await self._made(lambda: make(asked, key, 0.0), faults)
        if key in self._in_flight:
            return _json(409, {"error": "a request under this key is in flight"}, {"retry-after": "1"})
        self._in_flight.add(key)
        try:
            return await self._made(lambda: make(asked, key, faults.key_ttl), faults)
        finally:
            self._in_flight.discard(key)

    async def _body(self, request: Request) -> bytes | Response:
        """What a request sends, or why it is refused."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _json(415, {"error": "a request is application/json"})
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > _MAX_BODY:
                        return _json(413, {"error": f"a request has at most {_MAX_BODY} bytes"})
        except TimeoutError:
            return _json(408, {"error": f"a request arrives within {_BODY_SECONDS:g} s"}, {"connection": "close"})
        return bytes(body)

    async def _made(self, make: Callable[[], tuple[Issue | Comment, bool]], faults: TrackerFaults) -> Response:
        try:
            made, new = make()
        except NoSuchIssue as error:
            return _json(404, {"error": f"there is no issue {error}"})
        except KeyMismatch:
            return _json(422, {"error": "this key came with another request"})
        if faults.delay:
            await asyncio.sleep(faults.delay)
        return _json(201 if new else 200, made)

    async def _find(self, request: Request) -> Response:
        key, number = request.query_params.get("key"), request.path_params.get("number")
        if key is not None and self._faults().lookup_down:
            return _json(503, {"error": "the lookup is down"})
        under = {} if key is None else {"key": key}
        if number is not None:
            return _json(200, {"comments": self._store.find(Comment, issue=number, **under)})
        found = self._store.find(Issue, **under) if under else self._store.search(request.query_params.get("text", ""))
        return _json(200, {"issues": found})


def _json(status: int, content: object, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), status, headers, media_type="application/json")
