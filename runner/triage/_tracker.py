"""The tracker's service: what it answers, over HTTP.

POST /issues {cause, title, body}   201 filed · 200 the same request under the same key: the first one's issue ·
                                    409 that key is in flight · 422 that key came with another request ·
                                    400 not a request · 413 too large
GET /issues?key=K                   issues that came under K · 503 when its manners say that the lookup is down
GET /issues?text=T                  issues that contain T; without either, all
GET /issues/{number}                one issue · 404
POST /issues/{number}/comments {text}  as filing; 404 when there is no such issue
GET /issues/{number}/comments?key=K    comments that came under K, or 503 as above; without it, all
GET /health                         {"token"}: which process this is

What is in flight is known to the process alone: it does not survive a restart, as in the services this one stands for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from runner.triage._manners import Manners
from runner.triage._tracker_store import Comment, Draft, Issue, KeyMismatch, NoSuchIssue, Remark, Store

_MAX_BODY = 1 << 20
_Answer = Callable[[Request], Awaitable[Response]]
_Asked = TypeVar("_Asked", Draft, Remark)
_Make = Callable[[_Asked, str | None, float], tuple[Issue | Comment, bool]]


class Idle:
    """How long nobody has asked for anything. `clock` tells seconds, monotonic."""

    def __init__(self, limit: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._last = clock()
        self._busy = 0

    def __enter__(self) -> None:
        self._busy += 1

    def __exit__(self, *_: object) -> None:
        self._busy -= 1
        self._last = self._clock()

    def over(self) -> bool:
        """Whether nothing is being answered and nobody has asked for `limit` seconds."""
        return not self._busy and self._clock() - self._last >= self._limit


class Tracker(Starlette):
    """The service. `manners` is asked at every request; `idle` is told of every request."""

    def __init__(self, store: Store, manners: Callable[[], Manners], idle: Idle, token: str) -> None:
        self._store = store
        self._manners = manners
        self._idle = idle
        self._token = token
        self._in_flight: set[str] = set()
        routes = [
            Route("/health", self._counted(self._health)),
            Route("/issues", self._counted(self._file), methods=["POST"]),
            Route("/issues", self._counted(self._find)),
            Route("/issues/{number:int}", self._counted(self._show)),
            Route("/issues/{number:int}/comments", self._counted(self._comment), methods=["POST"]),
            Route("/issues/{number:int}/comments", self._counted(self._comments)),
        ]
        super().__init__(routes=routes)

    def _counted(self, answer: _Answer) -> _Answer:
        async def counted(request: Request) -> Response:
            with self._idle:
                return await answer(request)

        return counted

    async def _health(self, _: Request) -> Response:
        return _json(200, {"token": self._token})

    async def _file(self, request: Request) -> Response:
        return await self._once(request, Draft, self._store.file)

    async def _comment(self, request: Request) -> Response:
        number: int = request.path_params["number"]
        return await self._once(request, Remark, lambda *asked: self._store.comment(number, *asked))

    async def _once(self, request: Request, kind: type[_Asked], make: _Make[_Asked]) -> Response:
        """Do what a request asks, under its key."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_BODY:
                return _json(413, {"error": f"a request has at most {_MAX_BODY} bytes"})
        try:
            asked = msgspec.json.decode(body, type=kind)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return _json(400, {"error": f"not such a request: {error}"})
        manners, key = self._manners(), request.headers.get("idempotency-key")
        if key is None or manners.ignore_keys:
            return await self._made(lambda: make(asked, key, 0.0), manners)
        if key in self._in_flight:
            return _json(409, {"error": "a request under this key is in flight"}, {"retry-after": "1"})
        self._in_flight.add(key)
        try:
            return await self._made(lambda: make(asked, key, manners.key_ttl), manners)
        finally:
            self._in_flight.discard(key)

    async def _made(self, make: Callable[[], tuple[Issue | Comment, bool]], manners: Manners) -> Response:
        try:
            made, new = make()
        except NoSuchIssue as error:
            return _json(404, {"error": f"there is no issue {error}"})
        except KeyMismatch:
            return _json(422, {"error": "this key came with another request"})
        if manners.delay:
            await asyncio.sleep(manners.delay)
        return _json(201 if new else 200, made)

    async def _find(self, request: Request) -> Response:
        key = request.query_params.get("key")
        if key is None:
            return _issues(self._store.search(request.query_params.get("text", "")))
        if self._manners().lookup_down:
            return _json(503, {"error": "the lookup is down"})
        return _issues(self._store.by_key(key))

    async def _comments(self, request: Request) -> Response:
        key = request.query_params.get("key")
        if key is not None and self._manners().lookup_down:
            return _json(503, {"error": "the lookup is down"})
        return _json(200, {"comments": self._store.comments_on(request.path_params["number"], key)})

    async def _show(self, request: Request) -> Response:
        number: int = request.path_params["number"]
        issue = self._store.by_id(number)
        return _json(404, {"error": f"there is no issue {number}"}) if issue is None else _json(200, issue)


def _issues(found: list[Issue]) -> Response:
    return _json(200, {"issues": found})


def _json(status: int, content: object, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), status, headers, media_type="application/json")
